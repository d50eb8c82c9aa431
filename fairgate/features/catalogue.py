"""Every feature there is: its file or folder, and its entry here, in the order of `--help`.

Places begin at this folder: `.lint:lint` is `lint` in `lint.py`.
"""

from __future__ import annotations

from typing import Any

from fairgate.domain.catalogue import Command, Feature


def _single(
    summary: str,
    *,
    id: str,  # noqa: A002 - as a feature's field is called
    name: str = "",
    file: str = "",
    answers: bool = False,
    **more: Any,
) -> Feature:
    """Return a feature of one command, called `name` or as the feature; `file` has its function."""
    name = name or id
    place = f".{file or id}:{name.replace('-', '_')}"
    return Feature(id=id, commands={name: Command(place, summary, answers)}, **more)


SHIPPED = (
    _single("Write a starter policy, a baselines folder and a workflow.", id="init", before="run"),
    _single(
        "Judge the parts of a run, asked with `run --shard`, as one.",
        id="shards",
        name="merge",
        answers=True,
        before="check",
        extends={"run": ".shards:run_in_parts", "github": ".shards.change:gate_in_parts"},
        steps={"shard": ".shards.change:ask_part"},
    ),
    Feature(id="ray", extends={"run": ".ray:with_workers", "merge": ".ray:with_workers"}),
    _single(
        "Ask a policy's system three questions: what comes back, what a run would measure.",
        id="doctor",
        answers=True,
        before="plan",
    ),
    _single("Show everything about one pair of a run.", id="explain"),
    _single("Make findings of a run as short as they still fail.", id="shrink"),
    _single("Show what the suite can detect, and how many sources more would take.", id="power"),
    _single(
        "Measure the noise of the unchanged system and of its gate.", id="burn_in", name="burn-in"
    ),
    _single("Say how much bias a policy would have caught in a run.", id="mutation", name="mutate"),
    _single(
        "Say which change, and which documents, explain a red verdict.",
        id="blame",
        steps={"blame": ".blame.versions:BlamedChange"},
    ),
    _single("Accept, compare and verify baselines.", id="baselines", name="baseline", answers=True),
    _single(
        "Put a run into one file that carries its proof, or verify one.",
        id="bundles",
        name="bundle",
        answers=True,
    ),
    _single("Prepare a corpus for the retriever.", id="corpus"),
    _single(
        "Generate source test cases about people with known attributes.",
        id="generation",
        name="generate",
        file="generation.command",
        extends={"check": ".generation.command:check_cases_too"},
    ),
    _single(
        "Judge pairs of texts: is the follow-up its source with one edit?", id="lint", answers=True
    ),
    _single("Measure language models as judges of bias.", id="judges", name="judge"),
    _single(
        "Turn a Hugging Face model into ONNX (needs the `export` extra).",
        id="onnx_export",
        name="export",
        file="onnx_export.command",
    ),
    Feature(
        id="exports",
        formats={
            "sarif": ".exports:SARIF",
            "junit": ".exports:JUNIT",
            "badge": ".exports:BADGE",
            "every-eval-ever": ".exports:EVERY_EVAL_EVER",
            "controls": ".exports:CONTROLS",
        },
    ),
    Feature(
        id="hooks",
        before="",
        commands={
            "hook": Command(
                ".hooks:hook",
                "Quick checks that pre-commit calls with changed files.",
                answers=True,
                takes_relations=False,
            )
        },
    ),
    Feature(
        id="listings",
        before="",
        commands={
            "relations": Command(
                ".listings:relations", "List and explain the metamorphic relations."
            ),
            "metrics": Command(
                ".listings:metrics", "List and explain the metrics that rules can name."
            ),
        },
    ),
)
