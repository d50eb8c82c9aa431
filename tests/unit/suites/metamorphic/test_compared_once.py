"""Pairs whose answers are read alike are compared once, however many there are."""

import pytest
from functional.conftest import Workspace

from fairgate.suites.metamorphic import assess


@pytest.fixture
def counted(monkeypatch):
    calls = []
    compared = assess._compared
    monkeypatch.setattr(
        assess, "_compared", lambda *given: (calls.append(given), compared(*given))[1]
    )
    return calls


def test_the_number_of_comparisons_grows_with_the_answers_and_not_with_the_pairs(
    tmp_path, monkeypatch, counted
):
    labels = ("positive", "negative", "neutral")
    many = {}
    for sources in (12, 48):
        root = tmp_path / str(sources)
        root.mkdir()
        monkeypatch.chdir(root)
        workspace = Workspace(root)
        rows = [{"id": f"s{n}", "text": f"Film {n} was long."} for n in range(sources)]
        workspace.write("sources.jsonl", rows)
        workspace.policy(gates="  - {metric: asr/generation, max: 0.99}\n")
        workspace.answers(
            lambda key: labels[(int(key.partition("#")[0][1:]) + key.endswith("/woman")) % 3]
        )
        counted.clear()
        assert workspace.gate() == 0, workspace.out
        pairs = len((root / "out" / "rows.jsonl").read_text().splitlines())
        many[pairs] = len(counted)
    (few, first), (more, second) = sorted(many.items())
    assert more == 4 * few
    # A source's label, the follow-up's and what its controls say: of three labels 27 at most.
    assert first == second <= 27
