"""Every policy that a page, an example or the package shows: red of a planted harm, green of fair systems.

One harm to one identity, one fair and noisy system, and one placebo (any follow-up, whoever it names,
turns answers) are put to the gates, on as many sources as a page's reader has: 60. `-rP` prints the rules.
"""

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from fakes.planted_policies import Behaviour, Planted, pages_policies
from ruamel.yaml import YAML

from fairgate.cli import main
from fairgate.domain.errors import ExitCode
from fairgate.gate.accepted_runs import baseline_of

ROOT = Path(__file__).parents[2]
YAML_TEXT = YAML(typ="safe")
SOURCES = 60
NOT_JUDGED = {
    "generate-cases.md:Judges in a gate": "a judge decides, whose verdicts are its own",
    "paper-genfair": "limits nothing: figures beside the paper's",
    "paper-meta-fair": "limits nothing: figures beside the paper's",
    "paper-rag-sentiment": "limits nothing: figures beside the paper's",
    "paper-rag-social-bias": "limits nothing: figures beside the paper's",
    "smollm2-sentiment": "a model's makers answer for its bias: changes alone are limited",
    "own-model.md:Before you ship another model": "two systems are compared, which `test_shift.py` plants harm in",
    "kill-tables.md": "a line that a table suggests, of a policy that is tested above",
}
SYSTEMS = {
    "harm": Behaviour(harm=1.0, noise=0.05),
    "fair": Behaviour(),
    "noisy": Behaviour(noise=0.15),
    "very noisy": Behaviour(noise=0.3),
    "placebo": Behaviour(placebo=0.3, noise=0.05),
}
EXCEPT = {
    ("rag-people", "harm"): "16 sources: it says itself what it is too small to see",
    (
        "own-terms.md:Free answers",
        "harm",
    ): "each source has attributes of its own: one of many moves little",
}
"""What is not asked of a policy, and why."""


def shown():
    """Name to the mapping that is shown, of pages, examples and shipped policies."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    for page in pages:
        for heading, text in pages_policies(page):
            data = YAML_TEXT.load(text)
            yield f"{page.name}:{heading}", {"gates": data} if isinstance(data, list) else data
    for folder in ("policies", "docs/examples/review-service/policies"):
        for path in sorted((ROOT / folder).glob("*.yaml")):
            yield path.stem, YAML_TEXT.load(path)


def is_of_other_answers(policy):
    """Whether it judges what is not planted here: two systems, sentences or degrees alone."""
    reads = [suite.get("read", ()) for suite in policy.get("suites") or ()]
    return "reference" in policy or "degrees" in reads or any("sentences" in r for r in reads)


SHOWN = {
    name: data
    for name, data in shown()
    if not any(name.startswith(skip) for skip in NOT_JUDGED) and not is_of_other_answers(data)
}


def test_every_place_that_shows_gates_is_walked():
    assert {name.partition(":")[0] for name in SHOWN} >= {
        "verdict.md", "baselines.md", "generate-cases.md", "own-system.md", "own-terms.md",
        "social-bias.md", "README.md", "rag-sentiment", "rag-people",
        "rag-toxicity", "rag-social-bias", "actions", "conversations", "names", "people-in-notes",
        "reviews",
    }  # fmt: skip


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with what the shown policies name."""
    root = tmp_path_factory.mktemp("pages")
    (root / "answers.jsonl").touch()
    (root / "data").mkdir()
    _rows(root / "sources.jsonl", ({"id": f"s{n}", "text": _text(n)} for n in range(SOURCES)))
    documents = [
        {"id": f"q{n}", "text": f"Who sells bowls number {n}?", "document_id": f"d{n}",
         "document": f"Bowls number {n}, made by {{the potter}}."}
        for n in range(SOURCES)
    ]  # fmt: skip
    _rows(root / "sellers.jsonl", documents)
    _rows(root / "corpus.jsonl", ({"id": f"d{n}", "text": _text(n)} for n in range(SOURCES)))
    cases = str(root / "cases.jsonl")
    assert main(["generate", "genfair", "--limit", str(SOURCES), "--out", cases]) == 0
    return root


def _text(number):
    return f"Review number {number} says what it says."


def _rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def completed(policy, root):
    """Return a whole policy with these gates, on made sources; systems are planted.

    Labels are planted, without degrees.
    """
    suites = policy.get("suites") or [{"id": "s", "task": "sentiment"}]
    for suite in suites:
        if suite.get("read") == ["labels", "degrees"]:
            del suite["read"]
        if suite.get("kind") == "bbq":
            suite |= {"items": "demo-bbq", "collections": ["demo-stances"]}
            suite |= {"retrievers": ["dense"], "top_k": 3}
            suite.pop("categories", None)
            continue
        named = suite.get("sources", "sources.jsonl")
        if named not in ("meta-fair", "demo-people", "cases.jsonl", "demo-comments"):
            about = "documents/subject" in suite.get("relations", ())
            suite["sources"] = "sellers.jsonl" if about else "sources.jsonl"
        suite["attribution"] = "off"
        if suite.get("retrieve_only"):
            suite.pop("attribution")
    system = policy.get("system", {})
    is_alone = "retriever" in system and "generator" not in system
    alone = {"retriever": {**system.get("retriever", {}), "corpus": "corpus.jsonl"}}
    whole = {
        "version": 1,
        "name": "shown",
        "system": alone if is_alone else {"recorded": "answers.jsonl"},
        "suites": suites,
        "gates": policy.get("gates") or [],
        "min_decided": 0.5,
    }
    return Planted(text=json.dumps(whole), root=root)


@cache
def planted(name, root):
    return completed(SHOWN[name], root)


def reds(name, kind, root, seeds):
    """In how many worlds a policy is red of a system, and by which rules.

    A policy that limits changes alone is compared with the same system before its harm.
    """
    policy, red, rules = planted(name, root), 0, set()
    bounds = {"max", "min", "max_abs", "parity"}
    gates = SHOWN[name].get("gates") or [{}]
    changes = all("regression" in gate and not bounds & {*gate} for gate in gates)
    for world in seeds:
        behaviour = replace(SYSTEMS[kind], world=world)
        baseline = None
        if changes:
            before = policy.run(replace(behaviour, harm=0.0, run=1))
            baseline = baseline_of(before, reason="planted", date="2026-01-01")
        result = policy.run(behaviour, baseline).result
        red += result.exit_code is ExitCode.GATE_FAILED
        rules |= {rule.metric for rule in result.rules if rule.fails_gate}
        if result.exit_code not in (ExitCode.PASS, ExitCode.GATE_FAILED):
            rules |= {*result.evidence.problems}
            red = math.nan
    print(f"{name}, {kind}: {red} of {len(seeds)} red; {', '.join(sorted(rules)) or '-'}")
    return red


@pytest.mark.whole
@pytest.mark.parametrize("seeds", [1, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SHOWN)
def test_a_shown_policy_is_red_of_harm_and_of_nothing_else(name, seeds, files):
    """One world in ten may be red by chance; where the first is, the next is looked at."""
    wrong = []
    for kind in SYSTEMS:
        if (name, kind) not in EXCEPT:
            red = reds(name, kind, files, range(seeds))
            if red and kind != "harm" and seeds == 1:
                red = reds(name, kind, files, range(1, 2))
            holds = red >= 0.9 * seeds if kind == "harm" else red <= 0.1 * seeds
            wrong += [] if holds else [(kind, red)]
    assert not wrong
