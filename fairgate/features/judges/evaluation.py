"""Measure a judge on pairs that people have labelled, and write its record."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fairgate.domain.errors import ModelError, PolicyError
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.features.judges.classification import Figure, figures
from fairgate.features.judges.labelled_pairs import LabelledPair, read_labelled_pairs
from fairgate.io.durable import write_text
from fairgate.io.lines import file_sha256
from fairgate.policy.parse import validated
from fairgate.policy.yaml_text import load_yaml, read_yaml_file
from fairgate.relations.oracles.verdict import JUDGE_RULE, Verdict
from fairgate.stats.entropy import entropy, stability
from fairgate.stats.interval import Interval
from fairgate.stats.wilson import wilson
from fairgate.systems.judge_votes import Judgements, Vote, judge_all, vote
from fairgate.systems.judges import JudgeFile, fingerprints, open_judges
from fairgate.systems.resources import Resources

CONFIDENCE = 0.95
_DECIMALS = 4
_CLAIMS = (Verdict.BIASED, Verdict.UNBIASED)
_NAMES = {"f1": "F1", "auc": "AUC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationChoice:
    """What `fairgate judge evaluate` is asked to do."""

    repeats: int
    seed: int


def load_judge(path: Path) -> JudgeFile:
    """Return the judge that a file describes. Raises PolicyError with all problems."""
    judge, problems = validated(load_yaml(read_yaml_file(path), str(path)), JudgeFile)
    if judge is None or problems:
        raise PolicyError(problems)
    return judge


def evaluate_judge(
    path: Path, labelled: Path, choice: EvaluationChoice, runtime: Runtime, progress: Progress
) -> dict[str, object]:
    """Ask a judge about labelled pairs, and return its record: plain data, the same every time.

    Raises ModelError where it gave no verdict at all.
    """
    judge = load_judge(path)
    pairs = read_labelled_pairs(str(labelled))
    resources = Resources(runtime, progress)
    texts = {pair.id: pair.texts for pair in pairs}
    opened = open_judges(judge, resources)
    judged = judge_all(texts, opened, choice.repeats, progress)
    first = {key: vote(repeats[0]) for key, repeats in judged.items()}
    decided = [pair for pair in pairs if first[pair.id].verdict in _CLAIMS]
    if not decided:
        raise ModelError(
            f"{path}: the judge called none of the {len(pairs)} pairs BIASED or UNBIASED "
            f"({_counted(first.values())}); expected JSON verdicts: try a larger model, more "
            "`max_new_tokens`, or look at one answer"
        )
    rng = np.random.default_rng(choice.seed)
    return {
        "schema_version": 1,
        "judge": judge.id,
        "models": judge.names,
        "definition": judge.definition,
        "fingerprints": fingerprints(opened),
        "rule": JUDGE_RULE,
        "labelled": file_sha256(str(labelled)),
        "pairs": len(pairs),
        "biased": sum(pair.is_biased for pair in pairs),
        "decided": len(decided),
        "verdicts": dict(sorted(Counter(_word(one) for one in first.values()).items())),
        "repeats": choice.repeats,
        "confidence": CONFIDENCE,
        "seed": choice.seed,
        **_agreement(decided, first, rng),
        **_steadiness(judged),
    }


def write_record(record: Mapping[str, object], output: Path) -> None:
    """Write a judge's record, keys sorted."""
    write_text(output, json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def summary_lines(record: Mapping[str, object]) -> Iterator[str]:
    """Yield a record's summary as lines."""
    verdicts = record["verdicts"]
    assert isinstance(verdicts, dict)  # noqa: S101 (made above)
    counts = ", ".join(f"{number} {word}" for word, number in verdicts.items())
    yield f"judge {record['judge']}: {record['decided']} of {record['pairs']} pairs decided"
    yield f"  verdicts   {counts}"
    for name in ("precision", "recall", "f1", "auc", "kappa", "stability", "entropy"):
        figure = record.get(name)
        if isinstance(figure, dict):
            yield f"  {_NAMES.get(name, name):<10} {_shown(figure)}"


def _agreement(
    decided: Sequence[LabelledPair], votes: Mapping[str, Vote], rng: np.random.Generator
) -> dict[str, object]:
    judged = np.asarray([votes[pair.id].verdict is Verdict.BIASED for pair in decided], dtype=bool)
    true = np.asarray([pair.is_biased for pair in decided], dtype=bool)
    scores = np.asarray([votes[pair.id].score for pair in decided], dtype=np.float64)
    found = figures(judged, true, scores, confidence=CONFIDENCE, rng=rng)
    return {name: _plain(figure) for name, figure in found.items()}


def _steadiness(judged: Mapping[str, Judgements]) -> dict[str, object]:
    """Return the share of pairs with one verdict over all repeats, and the mean entropy."""
    words = [[_word(vote(one)) for one in repeats] for repeats in judged.values()]
    if len(words[0]) < 2:
        return {}
    share = stability(words)
    found = wilson(share * len(words), len(words), confidence=CONFIDENCE)
    low, high = (found.low, found.high) if isinstance(found, Interval) else (math.nan, math.nan)
    return {
        "stability": _plain(Figure(share, low, high)),
        "entropy": {"value": round(float(np.mean([entropy(each) for each in words])), _DECIMALS)},
    }


def _word(one: Vote) -> str:
    return "none" if one.verdict is None else str(one.verdict)


def _counted(votes: Iterable[Vote]) -> str:
    counts = Counter(_word(one) for one in votes)
    return ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))


def _plain(figure: Figure) -> dict[str, float | None]:
    return {
        name: None if math.isnan(value) else round(value, _DECIMALS) + 0.0
        for name, value in asdict(figure).items()
    }


def _shown(figure: Mapping[str, float | None]) -> str:
    value, low, high = (figure.get(name) for name in ("value", "low", "high"))
    if value is None:
        return "not defined"
    return f"{value:.2f}" + (f"  ({low:.2f} to {high:.2f})" if None not in (low, high) else "")
