"""A system that answers more slowly than for its baseline: the run says so, and passes."""

import pytest

from fairgate.composition.building import Composition
from fairgate.domain.applications import Question, Reply
from fairgate.engine.budget import Budget, BudgetedApplication, Meter

NOTE = "answers more slowly than for the baseline: 0.2 s for an answer (the median of 138), 0.05 s"


@pytest.fixture
def took(monkeypatch):
    """Return a function that sets how long each answer takes."""

    def set_to(seconds, count=138):
        monkeypatch.setattr(Composition, "answer_seconds", [seconds] * count)

    return set_to


def files_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def accepted(place, system):
    assert place.gate(system) == 0, place.err
    assert place.call("baseline", "accept", "out", "--reason", "the first") == 0, place.err
    (place.root / "out").rename(place.root / "first")


@pytest.mark.parametrize("name", ["http", "python"])
def test_a_slower_system_is_green_and_the_run_says_so(place, ways, took, name):
    place.sources(6)
    system = ways[name]()
    took(0.05)
    accepted(place, system)
    notes = []
    for seconds in (0.05, 0.2, 0.2):
        took(seconds)
        assert place.gate(system) == 0
        (place.root / "out").rename(place.root / f"run-{len(notes)}")
        notes.append(NOTE in place.err)
    assert notes == [False, True, True]
    assert files_of(place.root / "run-0") == files_of(place.root / "run-1")


@pytest.mark.parametrize(("seconds", "count"), [(0.06, 138), (0.2, 19), (0.2, 0), (0.01, 138)])
def test_little_slower_or_too_few_answers_is_not_said(place, ways, took, seconds, count):
    place.sources(6)
    took(0.05)
    accepted(place, ways["python"]())
    took(seconds, count)
    assert place.gate(ways["python"]()) == 0
    assert "more slowly" not in place.err


def test_a_run_without_a_baseline_says_nothing(place, ways, took):
    place.sources(6)
    for seconds in (0.05, 0.2):
        took(seconds)
        assert place.gate(ways["python"]()) == 0
        assert "more slowly" not in place.err


class Slow:
    """An application whose answers take 1, 2 and 3 seconds, by a clock of its own."""

    name, fingerprint, revision = "slow", "slow", "1"
    now = 0.0

    def ask(self, questions):
        for position, _ in enumerate(questions):
            self.now += position + 1.0
            yield position, Reply(answer="x")


def test_latency_is_from_the_question_to_its_answer():
    slow = Slow()
    meter = Meter(Budget(), clock=lambda: slow.now)
    questions = [Question(query=str(n), text="", instruction="", prompt="") for n in range(3)]
    assert len(list(BudgetedApplication(slow, meter, lambda: True).ask(questions))) == 3
    assert list(meter.latencies) == [1.0, 2.0, 3.0]
