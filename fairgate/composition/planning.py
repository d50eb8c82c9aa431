"""The plan as lines for people who ask their own system."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairgate.adapters.files.durable import write_lines
from fairgate.composition.loading import LoadedPolicy
from fairgate.engine.prompts import DEFAULT_TEMPLATE, render_prompt


def plan_lines(loaded: LoadedPolicy) -> Iterator[str]:
    """Yield a JSON line for each unique case, in the order of the plan.

    `query` is for the retriever. `prompt` is for the model, without documents: a system of one's
    own puts its own documents where it has room for them.
    """
    generator = loaded.policy.system.generator
    template = (generator.prompt if generator else None) or DEFAULT_TEMPLATE
    for case in loaded.plan.cases:
        prompt = render_prompt(
            template, instruction=case.instruction, text=case.query, documents=(), characters=1
        )
        row = {
            "key": case.key,
            "suite": case.suite,
            "wave": case.wave,
            "query": case.query,
            "prompt": prompt,
        }
        if case.options:
            row["options"] = list(case.options)
        yield json.dumps(row, ensure_ascii=False)


def write_plan(output: Path, lines: Iterable[str]) -> None:
    """Write the plan to a file, whole or not at all."""
    write_lines(output, lines, option="--output")
