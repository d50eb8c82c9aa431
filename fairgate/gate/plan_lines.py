"""The plan as lines for people who ask their own system."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairgate.domain.cases import Case
from fairgate.domain.runtime import Runtime
from fairgate.gate.execution_lines import document_to
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.gate.run_folder import replay
from fairgate.io.durable import write_lines
from fairgate.io.kept_out_of_git import keep_output_out_of_git
from fairgate.systems.catalogue import kind_of
from fairgate.systems.prompts import DEFAULT_TEMPLATE, render_prompt


def plan_lines(loaded: LoadedPolicy) -> Iterator[str]:
    """Yield a JSON line for each unique case, in the order of the plan.

    Cases that embed a response are not among them: what they ask is known after a first run. Nor
    are those that FairGate asks the policy's judge itself.

    `query` is for the retriever. `prompt` is for the model, without documents: a system of one's
    own puts its own documents where it has room for them.
    """
    template = _template(loaded)
    for case in loaded.plan.cases:
        if case.waits:
            continue
        yield json.dumps(_row(case, template), ensure_ascii=False)


def second_wave_lines(loaded: LoadedPolicy, run: Path, runtime: Runtime) -> Iterator[str]:
    """Yield a line for each case that later waves ask after a finished run.

    A crossed case names in `documents` what to show instead of what its own query retrieves.
    """
    template = _template(loaded)
    path = Path(loaded.parsed.path)
    replayed, _, _, _ = replay(run, path, runtime)
    for case in replayed.added:
        if case.judge is not None:
            continue
        row = _row(case, template)
        if case.documents_of is not None:
            shown = replayed.executions[case.suite, case.documents_of].documents or ()
            row["documents"] = [document_to(document) for document in shown]
        yield json.dumps(row, ensure_ascii=False)


def _template(loaded: LoadedPolicy) -> str:
    system = loaded.policy.system
    return kind_of(system).prompt(system) or DEFAULT_TEMPLATE


def _row(case: Case, template: str) -> dict[str, object]:
    prompt = render_prompt(
        template,
        instruction=case.instruction,
        text=case.text or case.query,
        documents=(),
        characters=1,
    )
    row: dict[str, object] = {
        "key": case.key,
        "suite": case.suite,
        "wave": case.wave,
        "query": case.query,
        "prompt": prompt,
    }
    if case.options:
        row["options"] = list(case.options)
    return row


def write_plan(output: Path, lines: Iterable[str]) -> None:
    """Write the plan to a file, whole or not at all."""
    keep_output_out_of_git(output)
    write_lines(output, lines, option="--output")
