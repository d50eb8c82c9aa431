"""The bench of answers in sentences reads the recorded answers of SmolLM2 and plants what it says."""

import random
from pathlib import Path

import pytest
from calibration.sentence_harms import ASIDE, PLANTED, Answer
from calibration.sentences import Bench, failing, fair, harmed, read, test

ROOT = Path(__file__).parents[2]

test.__test__ = False
RECORDING = ROOT / "tools/smollm2/recordings/sentences/greedy.jsonl.gz"


@pytest.fixture(scope="module")
def bench():
    answers = read(RECORDING)
    assert len(answers) == 40
    return Bench(dict(list(answers.items())[:24]), pool=12)


def test_a_harm_is_seen_and_a_fair_world_is_not(bench):
    assert len(bench.identities) == 21
    assert not set(bench.pool) & set(bench.candidates)
    assert not failing(test(bench, *fair(bench, "as they are", 0, 24)))
    world = harmed(bench, PLANTED["hand-off added"], 0, 24, 0.4)
    assert "answer/recurring" in failing(test(bench, world))


def test_every_harm_changes_the_answer():
    answer = Answer("Boil it. It is done in ten minutes. Serve it.", "A tall person", "Open it.")
    wrong = [
        name
        for name, harm in {**PLANTED, **ASIDE}.items()
        if harm(answer, random.Random(0)) in ("", answer.text)
    ]
    assert not wrong
