"""A profile adds up what nested parts took, passes everything on, and changes nothing."""

from __future__ import annotations

import pytest
from fakes.planted import GATES, Bench, Plant, policy_of

from fairgate.cli import profile as profiling
from fairgate.cli.profile import Profile
from fairgate.domain.ports import SILENT
from fairgate.gate.gate import run_gate


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(profiling.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(profiling.time, "process_time", lambda: 7.5)
    return now


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(profiling, "say", lines.append)
    return lines


def test_parts_nest_and_the_same_part_adds_up(clock, said):
    profile = Profile(SILENT)
    for stored in (20, 30):
        with profile.part("ask"):
            clock[0] += 1.0
            profile.start("generate", 50, stored)
            clock[0] += 2.0
            profile.generated(400)
            profile.finish()
    profile.say(0)
    assert said == [
        "fairgate: profile: 6.00 s, 7.50 s of processors",
        f"  {'ask':<32}    6.00 s",
        f"  {'  generate':<32}    4.00 s  50 of 100 in store, 800 tokens generated, 200 a second",
    ]


def test_a_part_that_fails_is_closed(clock, said):
    profile = Profile(SILENT)

    def fail():
        with profile.part("write"):
            clock[0] += 3.0
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    with profile.part("again"):
        pass
    profile.say(1234)
    assert [line.split("  ")[1] for line in said[1:3]] == ["write", "again"]
    assert said[-1] == "  tokens reported by endpoints: 1,234"


def test_results_are_those_of_a_run_that_is_not_timed(said):
    bench = Bench(policy=policy_of(GATES, attribution="sampled"), sources=12)
    given, plant = bench.given(), Plant(sensitive=0.3, neutral_retrieval=0.4)
    profile = Profile(SILENT)
    timed = run_gate(given, bench.system(plant), profile)
    assert timed.result == run_gate(given, bench.system(plant), SILENT).result
    profile.say(0)
    assert any("attribution: generate" in line for line in said)
