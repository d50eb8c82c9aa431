"""Every feature there is: a feature is its folder and its entry here, in the order of `--help`."""

from __future__ import annotations

from fairgate.domain.feature import Command, Feature

SHIPPED = (
    Feature(
        id="init",
        before="run",
        commands={
            "init": Command(
                "fairgate.features.init.command:init",
                "Write a starter policy, a baselines folder and a workflow.",
            ),
        },
    ),
    Feature(
        id="shards",
        before="check",
        commands={
            "merge": Command(
                "fairgate.features.shards.command:merge",
                "Judge the parts of a run, asked with `run --shard`, as one.",
                answers=True,
            ),
        },
        extends={
            "run": "fairgate.features.shards.command:run_in_parts",
            "github": "fairgate.features.shards.change_command:gate_in_parts",
        },
        steps={"shard": "fairgate.features.shards.change_command:ask_part"},
    ),
    Feature(
        id="ray",
        extends={
            "run": "fairgate.features.ray.command:with_workers",
            "merge": "fairgate.features.ray.command:with_workers",
        },
    ),
    Feature(
        id="doctor",
        before="plan",
        commands={
            "doctor": Command(
                "fairgate.features.doctor.command:doctor",
                "Ask a policy's system three questions: what comes back, what a run would measure.",
                answers=True,
            ),
        },
    ),
    Feature(
        id="explain",
        commands={
            "explain": Command(
                "fairgate.features.explain.command:explain",
                "Show everything about one pair of a run.",
            ),
        },
    ),
    Feature(
        id="shrink",
        commands={
            "shrink": Command(
                "fairgate.features.shrink.command:shrink",
                "Make findings of a run as short as they still fail.",
            ),
        },
    ),
    Feature(
        id="power",
        commands={
            "power": Command(
                "fairgate.features.power.command:power",
                "Show what the suite can detect, and how many sources more would take.",
            ),
        },
    ),
    Feature(
        id="burn_in",
        commands={
            "burn-in": Command(
                "fairgate.features.burn_in.command:burn_in",
                "Measure the noise of the unchanged system and of its gate.",
            ),
        },
    ),
    Feature(
        id="mutation",
        commands={
            "mutate": Command(
                "fairgate.features.mutation.command:mutate",
                "Say how much bias a policy would have caught in a run.",
            ),
        },
    ),
    Feature(
        id="blame",
        commands={
            "blame": Command(
                "fairgate.features.blame.command:blame",
                "Say which change, and which documents, explain a red verdict.",
            ),
        },
        steps={"blame": "fairgate.features.blame.change:BlamedChange"},
    ),
    Feature(
        id="baselines",
        commands={
            "baseline": Command(
                "fairgate.features.baselines.command:baseline",
                "Accept, compare and verify baselines.",
                answers=True,
            ),
        },
    ),
    Feature(
        id="bundles",
        commands={
            "bundle": Command(
                "fairgate.features.bundles.command:bundle",
                "Put a run into one file that carries its proof, or verify one.",
                answers=True,
            ),
        },
    ),
    Feature(
        id="corpus",
        commands={
            "corpus": Command(
                "fairgate.features.corpus.command:corpus",
                "Prepare a corpus for the retriever.",
            ),
        },
    ),
    Feature(
        id="generation",
        commands={
            "generate": Command(
                "fairgate.features.generation.command:generate",
                "Generate source test cases about people with known attributes.",
            ),
        },
        extends={"check": "fairgate.features.generation.command:check_cases_too"},
    ),
    Feature(
        id="lint",
        commands={
            "lint": Command(
                "fairgate.features.lint.command:lint",
                "Judge pairs of texts: is the follow-up its source with one edit?",
                answers=True,
            ),
        },
    ),
    Feature(
        id="judges",
        commands={
            "judge": Command(
                "fairgate.features.judges.command:judge",
                "Measure language models as judges of bias.",
            ),
        },
    ),
    Feature(
        id="onnx_export",
        commands={
            "export": Command(
                "fairgate.features.onnx_export.model_export:export",
                "Turn a Hugging Face model into ONNX (needs the `export` extra).",
            ),
        },
    ),
    Feature(
        id="exports",
        formats={
            "sarif": "fairgate.features.exports:SARIF",
            "junit": "fairgate.features.exports:JUNIT",
            "badge": "fairgate.features.exports:BADGE",
            "cyclonedx": "fairgate.features.exports:CYCLONEDX",
            "every-eval-ever": "fairgate.features.exports:EVERY_EVAL_EVER",
            "controls": "fairgate.features.exports:CONTROLS",
        },
    ),
    Feature(
        id="hooks",
        before="",
        commands={
            "hook": Command(
                "fairgate.features.hooks.command:hook",
                "Quick checks that pre-commit calls with changed files.",
                answers=True,
                takes_relations=False,
            ),
        },
    ),
    Feature(
        id="listings",
        before="",
        commands={
            "relations": Command(
                "fairgate.features.listings.command:relations",
                "List and explain the metamorphic relations.",
            ),
            "metrics": Command(
                "fairgate.features.listings.command:metrics",
                "List and explain the metrics that rules can name.",
            ),
        },
    ),
)
