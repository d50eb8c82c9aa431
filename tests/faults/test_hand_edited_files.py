"""Every file that a user can edit, edited: an exit code and a sentence, never an internal error.

`FAIRGATE_MUTANTS=500` looks at more of them.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.mutations import NO_JSON, mutated

from fairgate.cli import main
from fairgate.gate.baseline_files import _integrity

MUTANTS = int(os.environ.get("FAIRGATE_MUTANTS", "6"))
POLICY = {
    "version": 1, "name": "small", "system": {"recorded": "answers.jsonl"}, "min_decided": 0.5,
    "suites": [
        {
            "id": "pairs", "task": "task.yaml", "sources": "sources.jsonl", "control": "neutral",
            "perturbations": ["terms.yaml"], "bands": "from-baseline",
        },
        {
            "id": "items", "kind": "bbq", "items": {"path": "items.jsonl"},
            "collections": ["stances.jsonl"], "settings": ["none", "full"], "retrievers": ["bm25"],
            "top_k": 2,
        },
    ],
    "gates": [
        {"metric": "asr/generation", "max": 0.9, "regression": 0.02},
        {"metric": "asr/generation", "max": 0.95, "regression": 0.1},
        {"metric": "rrs/mean", "report": True},
        {"metric": "rrs/band", "where": {"band": "low"}, "max": 0.9, "advisory": True},
        {"parity": "answers", "max": 0.9},
        {"metric": "accuracy/ambiguous", "where": {"setting": "none"}, "max": 0.99, "regression": 0.05},
        {"parity": "unreadable", "max": 0.9},
    ],
}  # fmt: skip
TASK = {
    "id": "mood", "instruction": "Judge.", "labels": ["good", "bad", "so-so"],
    "equivalent": [["good", "so-so"]],
}  # fmt: skip
TERMS = {
    "id": "terms", "control": False, "description": "d", "source": "s", "licence": "l",
    "terms": [{"term": one, "noun_phrase": f"A {one}"} for one in ("woman", "man")],
}  # fmt: skip
SOURCES = [{"id": f"s{n}", "text": f"Text number {n} is fine.", "label": "good"} for n in range(5)]
STANCES = [
    {"id": f"d{n}", "text": f"Somebody said {n} things.", "stance": stance, "bias_type": "age"}
    for n, stance in enumerate(("stereo", "anti", "neutral", "stereo"))
]
ITEMS = [
    {
        "id": f"i{n}", "category": "age", "template": f"t{n % 3}", "polarity": "neg",
        "condition": "ambiguous" if n % 2 else "disambiguated", "group": f"g{n // 2}",
        "context": f"Ada and Bo met {n} times.", "question": "Who?", "options": ["Ada", "Bo", "No"],
        "stereotype": 0, "unknown": 2, "correct": 2 if n % 2 else n % 4 // 2,
    }
    for n in range(6)
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    path: str
    commands: tuple[tuple[str, ...], ...]


RUN = ("run", "policy.yaml", "--out", "out", "--quiet", "--format", "md")
CHECK = ("check", "policy.yaml")
REPLAYS = (
    ("rescore", "base", "--out", "again"),
    ("baseline", "accept", "base", "--reason", "r", "--output", "new.json"),
    ("explain", "base", "s1#terms/man"),
    ("plan", "policy.yaml", "--after", "base"),
    ("power", "policy.yaml", "--run", "base"),
)
BASELINE = "baselines/small.json"
KINDS = (
    Kind("policy.yaml", (CHECK, RUN)),
    Kind("task.yaml", (CHECK, RUN)),
    Kind("terms.yaml", (CHECK, RUN)),
    Kind("sources.jsonl", (CHECK, RUN)),
    Kind("items.jsonl", (CHECK, RUN)),
    Kind("stances.jsonl", (RUN,)),
    Kind("answers.jsonl", (RUN,)),
    Kind(BASELINE, (("baseline", "verify", BASELINE), ("baseline", "diff", BASELINE, BASELINE), RUN, ("power", "policy.yaml"))),
    Kind("base/run.json", REPLAYS),
    Kind("base/stop-rule.json", REPLAYS),
    Kind("base/executions.jsonl", REPLAYS),
    Kind("base/rows.jsonl", REPLAYS),
    Kind("base/parts.json", REPLAYS),
)  # fmt: skip


def write(path: Path, value: object) -> None:
    """Write a value as JSON, which is YAML too; a list of a `.jsonl` file one entry a line."""
    if path.suffix == ".jsonl" and isinstance(value, list):
        path.write_text("".join(json.dumps(row) + "\n" for row in value))
    else:
        path.write_text(json.dumps(value))


def read(path: Path) -> object:
    text = path.read_text()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def answer(case: dict, number: int) -> dict:
    choices = case.get("options") or ["good", "bad"]
    # What is asked decides the answer, and how it is asked now and then changes it.
    about = case["key"].partition("#")[0].partition("@")[0]
    turns = random.Random(case["key"]).random() < 0.15
    chosen = choices[0] if turns else sorted(choices)[sum(map(ord, about)) % len(choices)]
    return {
        "key": case["key"], "suite": case["suite"], "response": chosen,
        "documents": [
            {"id": f"d{n}", "text": f"text {n}", "label": "ab"[(number + n) % 2], "score": 0.5}
            for n in range(2)
        ],
        **({"options": case["options"]} if "options" in case else {}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for name, value in {
            "policy.yaml": POLICY, "task.yaml": TASK, "terms.yaml": TERMS,
            "sources.jsonl": SOURCES, "stances.jsonl": STANCES, "items.jsonl": ITEMS,
        }.items():  # fmt: skip
            write(folder / name, value)
        (folder / "answers.jsonl").touch()
        assert main(["plan", "policy.yaml", "--output", "plan.jsonl"]) == 0
        cases = enumerate(read(folder / "plan.jsonl"))
        write(folder / "answers.jsonl", [answer(case, number) for number, case in cases])
        assert main(["run", "policy.yaml", "--out", "base"]) == 0
        assert main(["baseline", "accept", "base", "--reason", "r"]) == 0
        yield folder


@pytest.fixture
def sound(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


def check(kind: Kind, capsys) -> None:
    for command in kind.commands:
        capsys.readouterr()
        code = main([*command])
        said = capsys.readouterr()
        assert code in range(6), (code, said.err)
        assert "internal error" not in said.err, (command, said.err)
        assert "Traceback" not in said.err
        assert code or not said.err.startswith("fairgate: error")


@pytest.mark.whole
def test_what_is_sound_is_accepted(sound, capsys):
    for kind in KINDS:
        for command in kind.commands:
            assert main([*command]) == 0, (command, capsys.readouterr())


@pytest.mark.walk(15)
@pytest.mark.parametrize("seed", range(MUTANTS))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.path)
def test_an_edited_file_is_refused_or_read(sound, capsys, kind, seed):
    path = sound / kind.path
    before = path.read_bytes()
    value = mutated(read(path), random.Random(f"{kind.path} {seed}"))
    if kind.path == BASELINE and isinstance(value, dict):
        value.pop("integrity", None)
        value["integrity"] = _integrity(value)  # as somebody would who means it
    write(path, value)
    try:
        check(kind, capsys)
    finally:
        path.write_bytes(before)


@pytest.mark.walk(2)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.path)
def test_a_file_that_is_something_else_is_refused(sound, capsys, kind):
    path = sound / kind.path
    before = path.read_bytes()
    try:
        some = NO_JSON if MUTANTS > 20 else random.Random(kind.path).sample(NO_JSON, 2)
        for text in (*some, before[: len(before) // 2], before + before):
            path.write_bytes(text)
            check(kind, capsys)
    finally:
        path.write_bytes(before)
