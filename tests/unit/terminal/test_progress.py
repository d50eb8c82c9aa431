"""Progress names the stage and says how long it will take; it never changes a result."""

from __future__ import annotations

from fakes.planted import Bench, Plant, policy_of

from fairgate.gate.gate import run_gate
from fairgate.terminal import progress


class Recorded:
    def __init__(self):
        self.stages = []

    def start(self, stage, total, cached):
        self.stages.append(stage)

    def generated(self, tokens):
        self.tokens = tokens

    def advance(self, steps):
        pass

    def finish(self):
        pass

    def note(self, text):
        pass


def test_what_is_left_is_told_at_the_pace_so_far(monkeypatch):
    clock, said = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "say", said.append)
    beat = progress.Heartbeat()
    beat.start("generate", 1000, 400)
    clock[0] = 30.0
    beat.advance(60)
    clock[0] = 60.0
    beat.advance(500)
    assert said == [
        "fairgate: generate: 600 to do, 400 in store",
        "fairgate: generate: 460 of 1000, about 4 min left",
        "fairgate: generate: 960 of 1000, about 4 s left",
    ]


def test_a_stage_that_has_done_nothing_promises_nothing(monkeypatch):
    clock, said = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "say", said.append)
    beat = progress.Heartbeat()
    beat.start("generate", 10, 4)
    clock[0] = 30.0
    beat.advance(0)
    assert said[-1] == "fairgate: generate: 4 of 10"


def test_attribution_is_not_called_the_same_as_the_planned_questions():
    bench, seen = Bench(policy=policy_of(), sources=6, sets=("gender",)), Recorded()
    run_gate(bench.given(None), bench.system(Plant(retrieval={"A man": 1.0})), seen)
    assert seen.stages[:2] == ["retrieve", "generate"]
    assert "attribution: generate" in seen.stages
    assert seen.stages.count("generate") == 1
