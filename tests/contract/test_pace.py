"""A system that answers more slowly than for its baseline: the reports say so, and it passes."""

import functools
import json

import pytest
from contract.conftest import Slow, questions

from fairgate.gate import run_folder
from fairgate.gate.composition import Composition
from fairgate.systems.budget import Meter

NOTE = (
    "The system answers more slowly than in the first run with this baseline: 0.2 s for an answer "
    "(the median of 138), 0.05 s then. No verdict depends on that."
)


@pytest.fixture
def took(monkeypatch):
    def set_to(seconds, count=138):
        monkeypatch.setattr(Composition, "answer_seconds", [seconds] * count)

    return set_to


def unwrapped(text):
    return " ".join(text.split())


def notices(place, out="out"):
    return " ".join(json.loads((place.root / out / "run.json").read_text())["notices"])


def accepted(place, system):
    assert place.gate(system) == 0, place.err
    assert place.call("baseline", "accept", "out", "--reason", "the first") == 0, place.err
    (place.root / "out").rename(place.root / "first")


@pytest.mark.parametrize("name", ["http", "python"])
def test_a_slower_system_is_green_and_the_reports_say_so(place, ways, took, name):
    system = ways[name]()
    took(0.05)
    accepted(place, system)
    notes = []
    for seconds in (0.05, 0.2, 0.05, 0.01):
        took(seconds)
        assert place.gate(system) == 0
        assert "PASS" in place.out
        notes.append(NOTE in notices(place))
        (place.root / "out").rename(place.root / f"run-{len(notes) - 1}")
    assert notes == [False, True, False, False]
    equal, slow, *others = (place.files(f"run-{n}") for n in range(4))
    assert [equal, equal] == others
    told = {file for file, raw in slow.items() if b"No verdict depends on that" in raw}
    assert told == {"report.md", "report.html", "run.json"}
    changed = {file for file in slow if slow[file] != equal[file]}
    assert changed == {*told, "parts.json"}
    record, before = (json.loads(each["run.json"]) for each in (slow, equal))
    assert record.pop("pace") == {"seconds": 0.2, "baseline_seconds": 0.05, "answers": 138}
    assert record.pop("notices") == [*before.pop("notices"), NOTE]
    assert record == before


def test_the_note_stays_with_the_run(place, ways, took):
    """Judged again and accepted, without being asked again."""
    system = ways["http"]()
    took(0.05)
    accepted(place, system)
    took(0.2)
    assert place.gate(system) == 0
    took(0.01)
    assert place.call("rescore", "out", "--out", "again") == 0, place.err
    first, again = (json.loads((place.root / n / "run.json").read_text()) for n in ("out", "again"))
    assert first["pace"] == again["pace"]
    assert NOTE in notices(place, "again")
    assert place.call("baseline", "accept", "out", "--reason", "slower") == 0, place.err
    assert "pace" not in (place.root / "baselines" / "app.json").read_text()


@pytest.mark.parametrize(
    "pace",
    [
        7, [], {}, {"seconds": "x"}, {"seconds": 1e999, "baseline_seconds": 1.0, "answers": 1},
        {"seconds": 1.0, "baseline_seconds": 2.0, "answers": 1},
        {"seconds": 2.0, "baseline_seconds": 1.0, "answers": -1},
        {"seconds": float("nan"), "baseline_seconds": 1.0, "answers": 1},
    ],
)  # fmt: skip
def test_what_is_no_pace_is_not_repeated(tmp_path, pace):
    fine = {"seconds": 2.0, "baseline_seconds": 1.0, "answers": 20}
    for value, is_read in ((pace, False), (fine, True)):
        (tmp_path / "run.json").write_text(json.dumps({"pace": value}))
        _, read, _ = run_folder._recorded(tmp_path)
        assert (read is not None) is is_read


@pytest.fixture
def slowed(start, monkeypatch):
    """Return the application over HTTP, whose every answer takes `takes` by a clock of its own."""
    app = start()
    app.takes, app.now = 0.0, 0.0
    send = app.RequestHandlerClass._send

    def slowly(handler, *answer):
        app.now += app.takes
        send(handler, *answer)

    monkeypatch.setattr(app.RequestHandlerClass, "_send", slowly)
    monkeypatch.setattr(
        "fairgate.systems.budget.Meter", functools.partial(Meter, clock=lambda: app.now)
    )
    return app


def test_a_server_that_is_slowed(place, slowed, http_system):
    slowed.takes = 0.05
    system = http_system(slowed, concurrency=1)
    accepted(place, system)
    slowed.takes = 0.2
    assert place.gate(system) == 0, place.out
    files = [place.files()[name].decode() for name in ("report.md", "report.html", "run.json")]
    for text in files:
        assert "0.2 s for an answer (the median of 138)" in unwrapped(text)


def test_answers_from_the_store_have_no_pace(place, slowed, http_system):
    slowed.takes = 0.05
    system = http_system(slowed, concurrency=1, revision="1")
    accepted(place, system)
    asked = len(slowed.seen)
    slowed.takes = 5.0
    assert place.gate(system) == 0
    equal = place.files()
    assert place.gate(system) == 0
    assert len(slowed.seen) == asked
    assert place.files() == equal
    assert "pace" not in json.loads(equal["run.json"])


@pytest.mark.parametrize(
    ("before", "rows"),
    [
        (0.05, [(0.075, 138, True), (0.0745, 138, False), (0.2, 19, False), (0.2, 0, False)]),
        (0.01, [(0.03, 138, True), (0.0299, 138, False)]),
    ],
)
def test_what_is_said_of_a_pace(place, ways, took, before, rows):
    """Half as much again, and 20 ms more, over enough answers; nothing without a baseline."""
    system = ways["python"]()
    took(before)
    accepted(place, system)
    assert "more slowly" not in notices(place, "first")
    for seconds, count, is_said in rows:
        took(seconds, count)
        assert place.gate(system) == 0
        assert ("more slowly" in notices(place)) is is_said, seconds


def test_latency_is_from_the_question_to_its_answer():
    slow = Slow(lambda position: position + 1.0)
    meter = Meter(clock=lambda: slow.now)
    assert len(list(meter.asked(questions(3), slow.ask, lambda: True))) == 3
    assert list(meter.latencies) == [1.0, 2.0, 3.0]
