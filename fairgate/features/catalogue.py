"""Every feature there is: its file or folder, and its entry here, in the order of `--help`.

Places begin at this folder: `.lint:lint` is `lint` in `lint.py`.
"""

from __future__ import annotations

from fairgate.domain.catalogue import Command, Feature

SHIPPED = (
    Feature(
        id="init",
        before="run",
        commands={
            "init": Command(
                ".init:init", "Write a starter policy, a baselines folder and a workflow."
            )
        },
    ),
    Feature(
        id="shards",
        before="check",
        commands={
            "merge": Command(
                ".shards:merge",
                "Judge the parts of a run, asked with `run --shard`, as one.",
                answers=True,
            )
        },
        extends={"run": ".shards:run_in_parts", "github": ".shards.change:gate_in_parts"},
        steps={"shard": ".shards.change:ask_part"},
    ),
    Feature(id="ray", extends={"run": ".ray:with_workers", "merge": ".ray:with_workers"}),
    Feature(
        id="doctor",
        before="plan",
        commands={
            "doctor": Command(
                ".doctor:doctor",
                "Ask a policy's system three questions: what comes back, what a run would measure.",
                answers=True,
            )
        },
    ),
    Feature(
        id="explain",
        commands={
            "explain": Command(".explain:explain", "Show everything about one pair of a run.")
        },
    ),
    Feature(
        id="shrink",
        commands={
            "shrink": Command(
                ".shrink:shrink", "Make findings of a run as short as they still fail."
            )
        },
    ),
    Feature(
        id="power",
        commands={
            "power": Command(
                ".power:power",
                "Show what the suite can detect, and how many sources more would take.",
            )
        },
    ),
    Feature(
        id="burn_in",
        commands={
            "burn-in": Command(
                ".burn_in:burn_in", "Measure the noise of the unchanged system and of its gate."
            )
        },
    ),
    Feature(
        id="mutation",
        commands={
            "mutate": Command(
                ".mutation:mutate", "Say how much bias a policy would have caught in a run."
            )
        },
    ),
    Feature(
        id="blame",
        commands={
            "blame": Command(
                ".blame:blame", "Say which change, and which documents, explain a red verdict."
            )
        },
        steps={"blame": ".blame.versions:BlamedChange"},
    ),
    Feature(
        id="baselines",
        commands={
            "baseline": Command(
                ".baselines:baseline", "Accept, compare and verify baselines.", answers=True
            )
        },
    ),
    Feature(
        id="bundles",
        commands={
            "bundle": Command(
                ".bundles:bundle",
                "Put a run into one file that carries its proof, or verify one.",
                answers=True,
            )
        },
    ),
    Feature(
        id="corpus",
        commands={"corpus": Command(".corpus:corpus", "Prepare a corpus for the retriever.")},
    ),
    Feature(
        id="generation",
        commands={
            "generate": Command(
                ".generation.command:generate",
                "Generate source test cases about people with known attributes.",
            )
        },
        extends={"check": ".generation.command:check_cases_too"},
    ),
    Feature(
        id="lint",
        commands={
            "lint": Command(
                ".lint:lint",
                "Judge pairs of texts: is the follow-up its source with one edit?",
                answers=True,
            )
        },
    ),
    Feature(
        id="judges",
        commands={"judge": Command(".judges:judge", "Measure language models as judges of bias.")},
    ),
    Feature(
        id="onnx_export",
        commands={
            "export": Command(
                ".onnx_export.command:export",
                "Turn a Hugging Face model into ONNX (needs the `export` extra).",
            )
        },
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
