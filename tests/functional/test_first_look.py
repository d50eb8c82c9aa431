"""`run --limit` is a first look that says so; colour is for people."""

import pytest

from fairgate.suites.metamorphic import plan

LOUD = "This is a first look."


@pytest.fixture
def limited(workspace):
    assert workspace.gate("positive", out="look", options=("--limit", "5")) in (0, 5)
    return workspace


def test_fewer_sources_are_asked_and_every_report_says_so(limited):
    for name in ("report.md", "report.html"):
        assert LOUD in (limited.root / "look" / name).read_text()
    assert LOUD in limited.out
    assert "baseline accept" not in limited.out
    assert "fairgate run policy.yaml" in limited.out
    evidence = limited.record("look")["evidence"]
    limited.run("run", "policy.yaml", "--out", "whole")
    assert LOUD not in limited.out
    assert evidence["planned"] * 4 == limited.record("whole")["evidence"]["planned"]


def test_nothing_is_planned_that_is_not_asked(workspace, monkeypatch):
    limited = ("--limit", "2")
    assert workspace.gate("positive", out="first", options=limited) in (0, 5)
    planned = []
    real = plan._follow_ups
    monkeypatch.setattr(
        plan, "_follow_ups", lambda *given: planned.append(given[2].id) or real(*given)
    )
    assert workspace.run("run", "policy.yaml", "--out", "look", *limited) in (0, 5)
    assert len(planned) == 2


def test_a_part_becomes_no_baseline_and_is_compared_with_none(limited):
    assert limited.run("baseline", "accept", "look", "--reason", "quick") != 0
    assert not (limited.root / "baselines").exists()
    assert limited.run("run", "policy.yaml", "--limit", "5", "--baseline", "b.json") == 2
    assert "--limit" in limited.err


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False),
     (True, {"TERM": "dumb"}, False)],
)  # fmt: skip
def test_colour_is_for_terminals(monkeypatch, terminal, environment, coloured):
    from fairgate.terminal import output

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(output.sys, "stdout", type("Out", (), {"isatty": lambda self: terminal})())
    assert output.has_colour() is coloured
