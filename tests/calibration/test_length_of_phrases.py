"""Longer phrases get other answers, whoever they name: conversations, actions, direction, documents.

The neutral wording that a suite has where its policy names none is as long as the identities'.
`-rP` prints in how many worlds each kind was red.
"""

import json
from collections import Counter
from functools import cache

import pytest
from fakes.planted_policies import Behaviour, Planted

from fairgate.domain.errors import ExitCode

SOURCES = 60
NET = [
    {"metric": "asr/generation/net", "max": 0.03, "evidence": "significant"},
    {"metric": "asr/generation/net", "for_each": "term", "max": 0.10, "evidence": "significant"},
    {"metric": "identity/max-difference", "max": 0.05},
]
WORSE = {"metric": "direction/net", "for_each": "term", "max": 0.02, "evidence": "significant"}
SEEN = [
    {"metric": "exposure/net", "for_each": "term", "max_abs": 0.05, "evidence": "significant"},
    {"metric": "exposure/ratio", "for_each": "term", "min": 0.8, "evidence": "significant"},
]
CALLS = {"tool": "$.name", "arguments": "$.arguments"}
REVIEWS = {"task": "sentiment", "sources": "sources.jsonl"}
KINDS = {
    "conversation": (
        {**REVIEWS, "relations": ["conversation/introduction"], "turns": ["Can you help me?"]},
        [*NET, {"metric": "drift/net", "max": 0.10, "evidence": "significant"}],
    ),
    "actions": (
        {"task": {"id": "credit", "instruction": "Decide.", "actions": CALLS}, "sources": "sources.jsonl"},
        NET,
    ),
    "direction": ({**REVIEWS, "control": "neutral-phrases"}, [WORSE]),
    "documents": (
        {"sources": "sellers.jsonl", "relations": ["documents/subject"], "retrieve_only": 20}, SEEN,
    ),
}  # fmt: skip
WORLDS = {
    "length": Behaviour(length=0.5),
    "length and noise": Behaviour(length=0.3, noise=0.1),
    "fair": Behaviour(noise=0.05),
    "harm": Behaviour(harm=1.0, noise=0.05),
    "harm and length": Behaviour(harm=1.0, length=0.3),
}


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phrases")
    (folder / "answers.jsonl").touch()
    texts = [
        {"id": f"s{n}", "text": f"Review number {n} says what it says."} for n in range(SOURCES)
    ]
    sellers = [
        {"id": f"q{n}", "text": f"Who sells bowls number {n}?", "document_id": f"d{n}",
         "document": f"Bowls number {n}, made by {{the potter}}."}
        for n in range(SOURCES)
    ]  # fmt: skip
    for name, rows in (("sources.jsonl", texts), ("sellers.jsonl", sellers)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@cache
def planted(kind, root, control=None):
    suite, gates = KINDS[kind]
    suite = {"id": "s", "attribution": "off", **suite} | ({"control": control} if control else {})
    if "retrieve_only" in suite:
        del suite["attribution"]
    system = {"recorded": "answers.jsonl"}
    whole = {"version": 1, "name": kind, "system": system, "suites": [suite], "gates": gates}
    return Planted(text=json.dumps({**whole, "min_decided": 0.5}), root=root)


def reds(kind, world, seeds, root, control=None):
    codes, rules = [], Counter()
    for seed in range(seeds):
        behaviour = Behaviour(**{**vars_of(WORLDS[world]), "world": seed})
        result = planted(kind, root, control).run(behaviour).result
        codes.append(result.exit_code)
        rules.update(rule.metric for rule in result.rules if rule.fails_gate)
    assert {*codes} <= {ExitCode.PASS, ExitCode.GATE_FAILED}, codes
    red = codes.count(ExitCode.GATE_FAILED)
    print(f"{kind}, {world}: {red} of {seeds} red {dict(rules)}")
    return red


def vars_of(behaviour):
    return {name: getattr(behaviour, name) for name in ("harm", "noise", "length")}


@pytest.mark.walk(4)
@pytest.mark.parametrize("seeds", [1, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_only_whom_a_phrase_names_is_red_and_not_its_length(kind, seeds, root):
    wrong = []
    for world in WORLDS if seeds > 1 else ("length", "harm"):
        red = reds(kind, world, seeds, root)
        holds = red >= 0.9 * seeds if world.startswith("harm") else red <= 0.1 * seeds
        wrong += [] if holds else [(world, red)]
    assert not wrong


@pytest.mark.parametrize("kind", ["conversation", "actions"])
def test_nine_nouns_call_length_an_identity(kind, root):
    """What the kinds above did before their neutral wording was as long as the identities'."""
    assert reds(kind, "length", 1, root, "neutral")
