"""No test's outcome depends on how fast the machine is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).resolve().parents[1]
NO_TESTS = ("node",)  # what measures time on purpose
CLOCKS = {"sleep", "time", "monotonic", "perf_counter"}
SHORTEST = 60
"""Seconds; a limit below it could end a test on a machine that has much else to do."""


@pytest.mark.parametrize("profile", ["default", "whole"])
def test_an_example_may_take_as_long_as_it_takes(profile):
    chosen = settings.get_profile(profile)
    assert chosen.deadline is None
    assert HealthCheck.too_slow in chosen.suppress_health_check


def findings(text):
    """Yield what in a test's source waits, reads a clock or sets a short limit."""
    if not re.search(r"\b(time|timeout|deadline)\b", text):
        return
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        comment = lines[getattr(node, "lineno", 1) - 1].partition("#")[2]
        if any(words in comment for words in EXEMPT):
            continue
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr=name)):
                if name in CLOCKS:
                    yield f"{node.lineno}: time.{name}"
            case ast.ImportFrom(module="time"):
                yield f"{node.lineno}: names of `time`"
            case ast.keyword(arg="deadline", value=ast.Constant(value=value)) if value is not None:
                yield f"{node.value.lineno}: deadline={value}"
            case ast.keyword(arg="timeout", value=ast.Constant(value=value)) if value < SHORTEST:
                yield f"{node.value.lineno}: timeout={value}"


EXEMPT = ("lower bound", "any moment")
"""What a comment says where a test measures that something takes at least so long, or where what it
asserts holds at whatever moment the machine comes to it."""


def test_the_check_finds_what_it_looks_for():
    text = "import time\ntime.sleep(1)\ntime.monotonic()\nrun(timeout=5)\n@settings(deadline=9)\ndef f(): ...\n"
    assert len(list(findings(text))) == 4
    assert list(findings("from time import sleep\n"))
    assert not list(
        findings("time.process_time()\nrun(timeout=600)\n@settings(deadline=None)\ndef f(): ...\n")
    )


def test_no_test_waits_or_measures_time():
    found = [
        f"{path.relative_to(TESTS)}:{finding}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.relative_to(TESTS).parts[0] not in NO_TESTS
        for finding in findings(path.read_text(encoding="utf-8"))
    ]
    assert found == []
