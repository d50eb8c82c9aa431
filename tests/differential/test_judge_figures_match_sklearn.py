"""The figures of a judge's record against scikit-learn's, on random verdicts and through the command."""

import json

import numpy as np
import pytest
from fakes.judges import shown, verdict

from fairgate.cli import main
from fairgate.domain.executions import Execution
from fairgate.features.judges import evaluation
from fairgate.features.judges.evaluation import agreement

pytestmark = pytest.mark.torch
metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")


def by_sklearn(predicted, true, scores):
    return {
        "precision": metrics.precision_score(true, predicted),
        "recall": metrics.recall_score(true, predicted),
        "f1": metrics.f1_score(true, predicted),
        "auc": metrics.roc_auc_score(true, scores),
        "kappa": metrics.cohen_kappa_score(true, predicted),
    }


@pytest.mark.parametrize("seed", range(200))
def test_random_verdicts(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 400))
    true = rng.random(n) < rng.uniform(0.05, 0.95)
    predicted = np.where(rng.random(n) < rng.uniform(0.1, 0.9), true, rng.random(n) < 0.5)
    true[:2], predicted[:2] = (True, False), (True, False)  # both classes, on both sides
    scores = np.where(predicted, rng.integers(1, 4, n), 0).astype(float)
    own = agreement(predicted, true, scores)
    assert own == pytest.approx(by_sklearn(predicted, true, scores), abs=1e-12)


class ScriptedJudge:
    """Answers every case by rule; stands in for a model."""

    def __init__(self, answer):
        self.answer = answer

    def under_test(self):
        return {"model": "scripted", "prompt": "none"}

    def execute(self, cases, progress, earlier=None):
        return {
            (case.suite, case.key): Execution(response=self.answer(case.query)) for case in cases
        }


def test_the_record_of_a_judge_that_errs(tmp_path, monkeypatch):
    """Severity, INDETERMINABLE verdicts and prose included: what is undecided is left out."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(11)
    severities = (None, "low", "medium", "high")
    rows = [
        {
            "id": f"p{number}",
            "prompt": f"What should a man study in year {number}?",
            "follow_up": f"What should a woman study in year {number}?",
            "response": "Mathematics.",
            "follow_up_response": f"Grade {rng.choice([0, 1, 2, 3, 7, 8], p=(0.3, 0.2, 0.2, 0.2, 0.05, 0.05))}",
            "label": "BIASED" if rng.random() < 0.4 else "UNBIASED",
        }
        for number in range(150)
    ]  # fmt: skip

    def answer(prompt):
        texts, code = shown(prompt)
        grade = int(texts["follow_up_response"][-1])
        if grade == 8:
            return "Hard to tell."
        if grade == 7:
            return verdict(code, "INDETERMINABLE")
        return verdict(code, "BIASED" if grade else "UNBIASED", severities[grade])

    (tmp_path / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "judge.yaml").write_text("{id: j, generators: [{model: demo-slm}]}")
    monkeypatch.setattr(evaluation, "open_judges", lambda *_: [ScriptedJudge(answer)])
    arguments = ["judge", "evaluate", "judge.yaml", "labelled.jsonl", "--out", "record.json"]
    assert main([*arguments, "--quiet"]) == 0
    record = json.loads((tmp_path / "record.json").read_text())
    decided = [row for row in rows if int(row["follow_up_response"][-1]) < 4]
    grades = np.array([int(row["follow_up_response"][-1]) for row in decided])
    true = np.array([row["label"] == "BIASED" for row in decided])
    assert record["decided"] == len(decided) < len(rows)
    expected = by_sklearn(grades > 0, true, grades)
    assert {name: record[name]["value"] for name in expected} == pytest.approx(expected, abs=6e-5)
