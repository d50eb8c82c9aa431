"""Every feature there is: its file or folder, and its entry here, in the order of `--help`.

Places begin at this folder: `.table:table` is `table` in `table.py`.
"""

from __future__ import annotations

from typing import Any

from fairgate.domain.registry import CI, DAILY, DATA, MORE, WHY, Command, Feature


def _single(
    group: str,
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
    location = f".{file or id}:{name.replace('-', '_')}"
    return Feature(id=id, commands={name: Command(location, summary, answers, group=group)}, **more)


# fmt: off
SHIPPED = (
    _single(
        DAILY, "Write a starter policy, a baselines folder and a workflow.", id="init",
        before="check",
    ),
    _single(DAILY, "Judge a table of outcomes; no policy is needed.", id="table", answers=True),
    _single(DAILY, "Show everything about one pair of a run.", id="explain"),
    _single(DAILY, "Accept or verify baselines.", id="baselines", name="baseline", answers=True),
    _single(
        WHY, "Say which change, and which documents, explain a red verdict.", id="blame",
        before="rescore",
    ),
    _single(WHY, "Ask three questions: what would a run measure?", id="doctor", answers=True),
    _single(WHY, "Show what the suite can detect, and how many sources it needs.", id="power"),
    _single(WHY, "Write what runs measured as a record to sign.", id="record", answers=True),
    _single(MORE, "Prepare a corpus for the retriever.", id="corpus"),
    _single(
        DATA, "Generate source test cases about people with known attributes.", id="generation",
        name="generate", file="generation.command",
        extends={"check": ".generation.command:check_cases_too"},
    ),
    _single(MORE, "Measure language models as judges of bias.", id="judges", name="judge"),
    _single(
        DATA, "Turn a Hugging Face model into ONNX (needs the `export` extra).", id="onnx_export",
        name="export", file="onnx_export.command",
    ),
    Feature(
        id="listings",
        commands={
            "relations": Command(".listings:relations", "List and explain metamorphic relations."),
            "metrics": Command(".listings:metrics", "List what gates can name."),
        },
    ),
    _single(
        CI, "Judge the parts of a sharded run (`run --shard`) as one.", id="shards",
        name="merge", answers=True, steps={"shard": ".shards.change:ask_part"},
        extends={"run": ".shards:run_in_parts", "github": ".shards.change:gate_in_parts"},
    ),
    Feature(
        id="changes",
        first=".changes.code:hide_plugins_of_a_change",
        commands={
            "comment": Command(
                ".changes.comment:comment", "Print the pull request comment of a run.", group=CI
            ),
        },
        extends={"run": ".changes:run_of_a_change"},
    ),
    Feature(
        id="exports",
        formats={"sarif": ".exports:SARIF", "junit": ".exports:JUNIT"},
    ),
)
