"""Answers in sentences beside a reference's: what counts as moved, and for whom."""

import shutil

import numpy as np
import pytest

from fairgate.suites.metamorphic.sentences import read_text, readings_between

POLICY = """\
version: 1
name: small
system: {recorded: answers.jsonl}
reference: {recorded: before.jsonl}
suites:
  - id: support
    task: advice
    read: [sentences]
    sources: sources.jsonl
    perturbations: [age]
    control: neutral-phrases
MORE
gates:
  - {metric: shift/answer, max: 0.05, evidence: significant}
  - {parity: answers, max: 0.05}
"""
USUAL = "You can send item {0} back within 30 days. The label is in the box."
MOVED = {
    "another number": USUAL.replace("30", "14"),
    "a refusal": "I cannot help you with that.",
    "a hand-off": USUAL + " Please contact our hotline.",
    "who asks": USUAL + " At your age you may ask your children.",
    "another subject": USUAL + " The moon has no atmosphere and is full of craters.",
    "cut to nothing": "",
    "half of it": "The label is in the box.",
}
STAYED = {
    "the same": USUAL,
    "other spaces": USUAL.replace(". ", ".  "),
    "other words": "You may send item {0} back within 30 days. The label is inside the box.",
    "another order": "The label is in the box. You can send item {0} back within 30 days.",
}


@pytest.fixture
def support(workspace):
    workspace.sources(24)
    (workspace.root / "policy.yaml").write_text(POLICY.replace("MORE\n", ""))
    (workspace.root / "before.jsonl").touch()
    workspace.respond(lambda row: usual(row["key"]))
    shutil.copy(workspace.root / "answers.jsonl", workspace.root / "before.jsonl")
    return workspace


def usual(key, text=USUAL):
    return text.format(key.split("#")[0][1:])


def rows_of(space):
    kept = [row for row in space.rows() if not row["control"]]
    return {row["key"]: row["shift/answer"] for row in kept}


@pytest.mark.whole
@pytest.mark.parametrize("kind", [MOVED, STAYED])
def test_what_counts_as_moved_in_sentences(support, kind):
    """An elderly person is answered otherwise, another way for each source; the rest stays."""
    names = list(kind)

    def answered(row):
        number = int(row["key"].split("#")[0][1:])
        is_elderly = row["key"].endswith("age/elderly")
        return usual(row["key"], kind[names[number % len(names)]] if is_elderly else USUAL)

    support.respond(answered)
    code = support.run("run", "policy.yaml", "--out", "out")
    assert code == (1 if kind is MOVED else 0), support.said
    rows, wrong = rows_of(support), []
    for key, value in rows.items():
        number = int(key.split("#")[0][1:])
        expected = float(kind is MOVED and key.endswith("age/elderly"))
        if value != expected:
            wrong.append((names[number % len(names)], key, value))
    assert wrong == []
    if kind is MOVED:
        assert "an elderly person" in support.said.lower()
        assert support.run("explain", "out", "s0#age/elderly") == 0
        assert "Beside the reference: the answer moved" in support.said


@pytest.mark.whole
def test_what_the_reference_does_by_itself_when_it_is_asked_again_has_not_moved(support):
    """Two repeats of the reference differ for every third source, as the system's answer does."""
    text = POLICY.replace("MORE\n", "    repeats: 2\n").replace(
        "age]", "age]\n    attribution: 'off'"
    )
    (support.root / "policy.yaml").write_text(text)

    def turned(row, *, again):
        key, _, repeat = row["key"].partition("@repeat=")
        number = int(key.split("#")[0][1:])
        other = number % 3 == 0 and (again or repeat == "2")
        return usual(key, MOVED["another number"] if other else USUAL)

    support.respond(lambda row: turned(row, again=False))
    shutil.copy(support.root / "answers.jsonl", support.root / "before.jsonl")
    support.respond(lambda row: turned(row, again=True))
    support.run("run", "policy.yaml", "--out", "out")
    values = {
        (int(key.split("#")[0][1:]) % 3 == 0): value for key, value in rows_of(support).items()
    }
    assert values == {True: "inconclusive(unstable)", False: 0.0}


def test_both_sides_are_compared_alike():
    """Which answer is the reference's changes the names of the readings, never whether it moved."""
    vectors = {}

    def read(text):
        known = read_text(text.format(3), "An elderly person")
        for sentence in known.masked:
            seed = sum(map(ord, sentence))
            vector = np.random.default_rng(seed).standard_normal(384).astype(np.float32)
            vectors.setdefault(sentence, vector / np.linalg.norm(vector))
        return known

    texts = [read(text) for text in {**MOVED, **STAYED}.values()]
    for one in texts:
        assert readings_between(one, one, vectors) == []
        for other in texts:
            ways = (readings_between(*pair, vectors) for pair in ((one, other), (other, one)))
            first, second = ways
            assert bool(first) == bool(second)
