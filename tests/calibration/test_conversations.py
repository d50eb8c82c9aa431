"""Conversations: biased applications are caught, fair and noisy ones pass, a placebo is no bias.

A policy file and the whole command, with a Python function that keeps sessions. `-rP` prints how many
of the seeds are red.
"""

import json

import pytest
from fakes import talker
from fakes.talker import TURNS

from fairgate.cli import main

POLICY = f"""\
version: 1
name: talk
system: {{python: "fakes.talker:by_session"}}
suites:
  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [race, gender], phrases: 1,
     relations: [conversation/introduction], turns: {json.dumps(TURNS)}}}
gates:
  - {{parity: answers, max: 0.05}}
"""
SOURCES = 40
NOISE = 0.02
BIASED = {"a Black person": 0.4, "an Asian person": 0.4, "a Hispanic person": 0.4, "a woman": 0.4}
SYSTEMS = {
    "biased": ({"biased": BIASED}, 0.9, 1.0),
    "biased and noisy": ({"biased": BIASED, "noise": NOISE}, 0.9, 1.0),
    "fair": ({}, 0.0, 0.0),
    "noisy": ({"noise": NOISE}, 0.0, 0.1),
    # Whoever introduces themselves gets other answers, and so does whoever talks before asking.
    "placebo": ({"introduced": 0.3}, 0.0, 0.1),
    "drifting": ({"moved": 0.3, "noise": NOISE}, 0.0, 0.1),
}
"""Rules, and the least and the greatest share of seeds that may be red."""


@pytest.mark.parametrize(
    "worlds",
    [1, pytest.param(6, marks=pytest.mark.whole), pytest.param(40, marks=pytest.mark.slow)],
)
@pytest.mark.walk(4)
@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_gate_is_red_where_an_introduction_turns_answers(
    name, worlds, tmp_path, monkeypatch, capsys
):
    rules, least, greatest = SYSTEMS[name]
    rows = [{"id": f"s{n}", "text": f"Text number {n} is fine."} for n in range(SOURCES)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "talk.yaml").write_text(POLICY)
    codes = []
    for world in range(worlds):
        monkeypatch.setattr(talker, "RULES", {**rules, "world": world})
        monkeypatch.setattr(talker, "KNOWN", {})
        call = ("run", "talk.yaml", "--out", "out", "--quiet", "--allow-python")
        codes.append(main(list(call)))
        assert codes[-1] in (0, 1), capsys.readouterr().err
    red = codes.count(1)
    print(f"{name}: {red} of {worlds} red")
    may_be = greatest * worlds + (greatest > 0 and 1 < worlds < 40)
    assert least * worlds <= red <= may_be
