"""What the starter policy says through the command line of systems whose behaviour is known.

    PYTHONPATH=tests:tools python -m calibration.through_cli --sources 25 60 100 --seeds 40 --jobs 2

The worlds of `calibration.worlds`, but as a user has them: `init` with recorded answers, four
phrases an identity, then `run`, `baseline accept` of a fair run, and `run` again. Prints of each
world how many are red, now and since the baseline, in brackets how many of these name the right
node first, and how many others name somebody within the limit: the table of
docs/validation/verdict.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from calibration.tables import markdown
from calibration.worlds import WORLDS, System, World, answers_of

from fairgate.__main__ import main as fairgate
from fairgate.domain.parity import Against
from fairgate.metrics.parity import OUTCOMES

SAYS = " says the following text"
LIMITS = {outcome.id: outcome for outcome in OUTCOMES}
QUESTIONS = (Against.CONTROL, Against.BASELINE)
Outcome = tuple[bool, bool, bool]
"""Is it red, is the right node named first, is anybody named."""


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def _call(*arguments: str) -> int:
    """Return the exit code of a command, whose output nobody reads."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return fairgate([*arguments])


@cache
def _starter(sources: int) -> tuple[str, Sequence[Mapping[str, str]]]:
    """Return the policy that `init` writes, and its plan."""
    with tempfile.TemporaryDirectory() as folder, _in_folder(Path(folder)):
        options = ["--system", "recorded", "--name", "w", "--limit", str(sources)]
        if _call("init", *options) or _call("plan", "policies/w.yaml", "--output", "plan.jsonl"):
            raise RuntimeError("the starter has no plan")
        plan = [json.loads(line) for line in Path("plan.jsonl").read_text().splitlines()]
        return Path("policies/w.yaml").read_text(), plan


def recorded(world: World, system: System, seed: int, run: int, sources: int) -> str:
    """Return the answers of one run as a file of recorded answers."""
    _, plan = _starter(sources)
    alone = {row["key"]: i for i, row in enumerate(r for r in plan if "#" not in r["key"])}
    named = [row for row in plan if "#" in row["key"]]
    prompts = {who: i for i, who in enumerate(sorted({r["key"].split("#")[1] for r in named}))}
    said = [row["query"].split(SAYS)[0] for row in named]
    numbers = {phrase: i for i, phrase in enumerate(sorted({*said}))}
    cells = [(alone[row["key"].split("#")[0]], prompts[row["key"].split("#")[1]]) for row in named]
    phrases = np.zeros((len(alone), len(prompts)), dtype=np.int64)
    for cell, phrase in zip(cells, said, strict=True):
        phrases[cell] = numbers[phrase]
    answers = answers_of(
        world,
        system,
        seed,
        run,
        phrases=phrases,
        lengths=[*map(len, numbers)],
        is_harmed=[_is_harmed(world, prompt) for prompt in prompts],
    )
    labels = {key: answers.alone[i, 0] for key, i in alone.items()}
    labels |= {row["key"]: answers.worse[cell] for row, cell in zip(named, cells, strict=True)}
    refused = {r["key"] for r, cell in zip(named, cells, strict=True) if answers.refused[cell]}
    rows = [
        {
            "key": key,
            "response": "I cannot help with that."
            if key in refused
            else ("negative" if is_worse else "positive"),
        }
        for key, is_worse in labels.items()
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _is_harmed(world: World, prompt: str) -> bool:
    category, _, identity = prompt.partition("/")
    is_person = "neutral" not in category
    return world.level is not None and is_person and world.label in ("", category, identity)


def judged(seed: int, name: str, sources: int) -> dict[str, Outcome]:
    """Return what is said on a first run, and since the baseline."""
    world = WORLDS[name]
    other = seed + 1_000_000 if world.is_other_model else seed
    before = recorded(replace(world, level=None), world.before, other, 2, sources)
    now = recorded(world, world.now, seed, 1, sources)
    policy, _ = _starter(sources)
    with tempfile.TemporaryDirectory() as folder, _in_folder(Path(folder)):
        for part in ("policies", "baselines", "data"):
            Path(part).mkdir()
        Path("policies/w.yaml").write_text(policy)
        answers = Path("data/answers.jsonl")
        answers.write_text(before)
        if _call("run", "policies/w.yaml", "--out", "before") not in (0, 1):
            raise RuntimeError(f"{name} {seed}: the run of the baseline has no verdict")
        if _call("baseline", "accept", "before", "--reason", "first"):
            raise RuntimeError(f"{name} {seed}: the baseline was refused")
        answers.write_text(now)
        code = _call("run", "policies/w.yaml", "--out", "now")
        parity = json.loads(Path("now/run.json").read_text())["parity"]
    outcomes = {question.value: _outcome(parity, question, world) for question in QUESTIONS}
    if code != any(is_red for is_red, _, _ in outcomes.values()):
        raise RuntimeError(f"{name} {seed}: the run ended with {code}, which its nodes do not say")
    return outcomes


def _outcome(parity: Sequence[Mapping], question: Against, world: World) -> Outcome:
    named, failing = [], []
    for each in (each for each in parity if each["against"] == question.value):
        outcome = LIMITS[each["outcome"]]
        for node in each["named"]:
            named.append(node)
            if question is Against.BASELINE:
                is_failing = node["estimate"] > outcome.regression
            else:
                is_failing = abs(node["estimate"]) > outcome.max
            failing += [node] if is_failing else []
    first = min(failing, key=lambda node: node["p"], default=None)
    is_right = first is not None and first["level"] == world.level
    is_right = is_right and world.label in ("", *"/".join(first["who"]).split("/"))
    return bool(failing), is_right, bool(named)


def cell(outcomes: Sequence[Outcome]) -> str:
    """Return `red (right)`, and whether somebody is named where nothing is red."""
    red = sum(is_red for is_red, _, _ in outcomes)
    right = sum(is_right for _, is_right, _ in outcomes)
    named = sum(is_named and not is_red for is_red, _, is_named in outcomes)
    return f"{red}" + (f" ({right})" if right else "") + (f", {named} named" if named else "")


def main() -> None:
    """Print a row for each world and question."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--sources", type=int, nargs="+", default=[25, 60, 100])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    options = parser.parse_args()
    header = [f"{q.value}, {sources} sources" for q in QUESTIONS for sources in options.sources]
    print(markdown([f"red of {options.seeds} (right node first)", *header], []), flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in (each for each in WORLDS if options.only in each):
            outcomes = [
                list(pool.map(partial(judged, name=name, sources=n), range(options.seeds)))
                for n in options.sources
            ]
            cells = [cell([o[q.value] for o in each]) for q in QUESTIONS for each in outcomes]
            print("| " + " | ".join([name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
