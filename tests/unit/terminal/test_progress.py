"""Progress says how long it will take, and changes no result."""

import gc
import time
from unittest import mock

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.ports import SILENT
from fairgate.gate.gate import run_gate
from fairgate.terminal import output


@pytest.fixture
def lines_said(monkeypatch):
    lines = []
    monkeypatch.setattr(output, "say", lines.append)
    return lines


@pytest.mark.parametrize(
    ("total", "steps", "expected"),
    [
        # The first results say nothing of the pace: a model was opened before them.
        (1000, (60, 60, 440), [
            "fairgate: generate: 600 to do, 400 in store",
            "fairgate: generate: 460 of 1000",
            "fairgate: generate: 520 of 1000, about 4 min left",
            "fairgate: generate: 960 of 1000, about 5 s left",
        ]),
        # A stage that has done nothing promises nothing.
        (410, (0,), ["fairgate: generate: 10 to do, 400 in store", "fairgate: generate: 400 of 410"]),
    ],
)  # fmt: skip
def test_what_is_left_is_told_at_the_pace_so_far(monkeypatch, lines_said, total, steps, expected):
    clock = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: clock[0])
    beat = output.Heartbeat()
    beat.start("generate", total, 400)
    for done in steps:
        clock[0] += 30.0
        beat.advance(done)
    assert lines_said == expected


def test_attribution_is_not_called_the_same_as_the_planned_questions():
    bench, seen = Bench(policy=policy_of(), sources=6, sets=("gender",)), mock.Mock(spec=SILENT)
    run_gate(bench.given(None), bench.system(Plant(retrieval={"A man": 1.0})), seen)
    stages = [call.args[0] for call in seen.start.call_args_list]
    assert stages[:2] == ["retrieve", "generate"]
    assert "attribution: generate" in stages
    assert stages.count("generate") == 1


@pytest.mark.parametrize("kind", [output.Heartbeat, output.Bars])
def test_a_silent_stage_is_told_once_and_then_after_twice_as_long(monkeypatch, capsys, kind):
    monkeypatch.setattr(output, "_SILENT_SECONDS", 0.2)
    progress = kind()
    progress.start("ask", 10, 0)
    time.sleep(1.0)  # lower bound: nothing comes
    progress.advance(1)
    progress.finish()
    told = capsys.readouterr().err
    assert 1 <= told.count("ask: nothing has come for") <= 3
    time.sleep(0.5)  # lower bound: nobody listens any more
    assert "nothing" not in capsys.readouterr().err


def test_what_always_takes_long_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr(output, "_SILENT_SECONDS", 0.1)
    progress = output.Heartbeat()
    progress.start("ask", 10, 0)
    for _ in range(4):
        time.sleep(0.15)  # lower bound: nothing comes
        progress.advance(1)
    progress.finish()
    assert capsys.readouterr().err.count("nothing has come for") <= 2


def test_who_gets_results_is_told_no_silence_and_who_has_gone_tells_nothing(
    monkeypatch, lines_said
):
    monkeypatch.setattr(output, "_SILENT_SECONDS", 1.0)
    beat = output.Heartbeat()
    beat.start("ask", 100, 0)
    for _ in range(15):
        time.sleep(0.1)  # lower bound: results come
        beat.advance(1)
    assert lines_said == ["fairgate: ask: 100 to do, 0 in store"]
    del beat  # a run that failed ends no stage
    gc.collect()
    time.sleep(1.5)  # lower bound: nobody listens any more
    assert len(lines_said) == 1


def test_a_repeat_says_what_the_store_spares_it(lines_said):
    beat = output.Heartbeat()
    for total, cached in ((1300, 1300), (1300, 1299), (0, 0)):
        beat.start("generate", total, cached)
        beat.finish()
    assert lines_said == [
        "fairgate: generate: all 1,300 in store",
        "fairgate: generate: 1 to do, 1299 in store",
    ]
