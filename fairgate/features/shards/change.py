"""The gate of a change in parts: each job of a matrix asks one, the last job decides.

`fairgate github run --shard` asks what every side of the change asks, the base commit's policy and
the change's own; sides that differ in their rules alone are asked once. `fairgate github merge`
decides.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import harmless
from fairgate.features.shards import parsed, parts, sentence
from fairgate.features.shards.parts import Part
from fairgate.gate.composition import Composition, FinishedRun
from fairgate.github import runner
from fairgate.github.event import base_commit, identity
from fairgate.github.gate_step import (
    Posting,
    empty_report_dir,
    gate_change,
    gate_policy,
    prefix_of,
    subject_of,
)
from fairgate.github.no_verdict import accounted
from fairgate.github.runner import Inputs, input_options, read_inputs, read_parts
from fairgate.github.sides import Side
from fairgate.terminal.output import progress_for


def gate_in_parts(github: click.Group) -> click.Group:
    """Return `fairgate github` with `merge`."""
    group = copy.copy(github)
    group.commands = {**github.commands, "merge": merge}
    return group


@click.command()
@input_options
@click.option("--shards", default="", envvar="FAIRGATE_SHARDS", help="Folder of the parts.")
@click.option(
    "--attribution", default="ask", envvar="FAIRGATE_ATTRIBUTION", help="`ask` or `skip`."
)
def merge(shards: str, attribution: str, **options: str) -> int:
    """Gate the pull request, push or merge group of this workflow run by what its parts asked.

    The parts are folders that `fairgate github run --shard` wrote: untrusted data, read from
    outside of the checkout. Everything else is as without parts.
    """
    with accounted() as account:
        environment, account.is_gate = account.environment, True
        inputs = read_inputs(options, environment)
        account.prefix = prefix_of(inputs)
        empty_report_dir(inputs, account)
        shards_folder = shards and str(Path(shards).absolute())
        os.chdir(inputs.root)

        @cache
        def find() -> list[Part]:
            """Return all parts; a change that only introduces policies has none."""
            return parts.find_shards([read_parts(shards_folder, attribution, inputs, environment)])

        subject = subject_of(inputs, environment)
        progress, about, used = progress_for(quiet=False), _about(inputs, subject), set[Path]()

        def judged(side: Side) -> FinishedRun:
            """Return the result by a side; parts of other sides and policies are left to those."""
            own = _of_side(find(), side, about)
            used.update(part.folder for part in own)
            composition = Composition(side.loaded, side.runtime, progress)
            return parts.merge(own, composition, side.accepted_runs, asks=attribution == "ask")

        def require_all_used() -> None:
            every = find() if used else []
            if unused := [part for part in every if part.folder not in used]:
                raise UsageError(
                    f"{unused[0].folder}: is a part of another run, of policy "
                    f"{unused[0].policy!a}; {len(unused)} of {len(every)} parts belong to "
                    "nothing that is judged here: name every policy that was asked, or "
                    "download the parts of this run alone"
                )

        return gate_change(inputs, subject, judged, require_all_used)


def _of_side(every_part: list[Part], side: Side, about: Mapping[str, str]) -> list[Part]:
    """Return the parts that asked a side's questions. Raises UsageError where there are none."""
    facts = parts.expected(side.loaded, side.runtime, about)
    own = [part for part in every_part if parts.objection(part, facts) is None]
    if not own:
        name = side.loaded.policy.name
        near = next((part for part in every_part if part.policy == name), every_part[0])
        raise UsageError(
            f"{side.loaded.parsed.path}: no part of a run asked its questions; the nearest, "
            f"{near.folder}, {parts.objection(near, facts)}. Give the steps with `shard` and this "
            "one the same `policy` and `root`, and run them in one workflow run"
        )
    return own


def ask_part(inputs: Inputs, shard_text: str, environment: Mapping[str, str]) -> int:
    """Ask a part for every policy and every side of the change; no verdict, no comment."""
    shard = parsed(shard_text)
    folder = inputs.scratch / "shards" / f"{shard.number}-of-{shard.of}"
    subject = subject_of(inputs, environment)
    progress, about = progress_for(quiet=False), _about(inputs, subject)
    parts_asked: dict[str, Part] = {}
    notices: list[str] = []

    def ask(side: Side) -> Part:
        """Return the part for a side's system, asked now or for an earlier side."""
        facts = json.dumps(parts.expected(side.loaded, side.runtime, about), sort_keys=True)
        digest = hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{side.loaded.policy.name}-{digest[:12]}"
        if name not in parts_asked:
            composition = Composition(side.loaded, side.runtime, progress)
            parts_asked[name] = parts.run_shard(composition, shard, folder / name, about)
            notices.extend(composition.notices)
        return parts_asked[name]

    output = environment.get("GITHUB_OUTPUT", "")
    for policy in inputs.policies:
        gate_policy(inputs, policy, subject, ask)
    for notice in notices:
        click.echo(f"fairgate: note: {harmless(notice)}", err=True)
    lines = [f"{name}: {sentence(part)}" for name, part in parts_asked.items()]
    for line in lines:
        click.echo(f"fairgate: {line}")
    written = (
        str(folder) if parts_asked else ""
    )  # nothing where the change only introduces policies
    runner.write_outputs(output, {"outcome": "part", "exit-code": "0", "shard-folder": written})
    bullets = "".join(f"- {line}\n" for line in lines)
    summary = f"### FairGate: part {shard.number} of {shard.of}, not a verdict\n\n{bullets}"
    runner.append_summary(environment.get("GITHUB_STEP_SUMMARY", ""), summary)
    return ExitCode.PASS


def _about(inputs: Inputs, subject: Posting) -> dict[str, str]:
    """Return the identity of this workflow run, so that no part of another one counts."""
    base = base_commit(subject.event, inputs.root, inputs.workspace, subject.api)
    return identity(subject.event, base)
