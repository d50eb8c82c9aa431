"""`fairgate github run --shard` and `fairgate github merge`: the gate of a change in parts."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping

import click

from fairgate.domain.errors import BudgetError, ExitCode
from fairgate.domain.wording import harmless
from fairgate.github.command import Posting, gate_change, judge_policy, place_of, subject_of
from fairgate.github.errors import accounted
from fairgate.github.inputs import Inputs, input_options, read_inputs, read_parts
from fairgate.terminal.progress import progress_for


def gate_in_parts(github: click.Group) -> click.Group:
    """Return `fairgate github` with `merge`."""
    found = copy.copy(github)
    found.commands = {**github.commands, "merge": merge}
    return found


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
    from fairgate.features.shards.change_parts import PartsJudge
    from fairgate.features.shards.parts import find_shards

    environment = dict(os.environ)
    os.environ.pop("FAIRGATE_GITHUB_TOKEN", None)
    with accounted(environment) as account:
        account.options = options
        inputs = read_inputs(options, environment)
        account.place = place_of(inputs, environment)
        folder = read_parts(shards, attribution, inputs, environment)
        parts = find_shards([folder])
        os.chdir(inputs.root)
        subject = subject_of(inputs, environment)
        judge = PartsJudge(
            shards=parts,
            progress=progress_for(quiet=False),
            asks=attribution == "ask",
            identity=_identity(inputs, subject),
        )
        return gate_change(inputs, subject, environment, judge, judge.require_all_used)


def ask_part(inputs: Inputs, named: str, environment: Mapping[str, str]) -> int:
    """Ask a part for every policy and every side of the change; no verdict, no comment."""
    from fairgate.features.shards.change_parts import PartAsker
    from fairgate.features.shards.command import parsed, sentence
    from fairgate.github import runner

    shard = parsed(named)
    folder = inputs.scratch / "shards" / f"{shard.number}-of-{shard.of}"
    subject = subject_of(inputs, environment)
    asker = PartAsker(
        shard=shard,
        folder=folder,
        progress=progress_for(quiet=False),
        identity=_identity(inputs, subject),
    )
    output = environment.get("GITHUB_OUTPUT", "")
    try:
        for policy in inputs.policies:
            judge_policy(inputs, policy, subject, environment, asker)
    except BudgetError:  # the folder says it to the step that decides
        runner.write_outputs(output, {"shard-folder": str(folder)})
        raise
    for notice in asker.notices:
        click.echo(f"fairgate: note: {harmless(notice)}", err=True)
    lines = [f"{name}: {sentence(manifest)}" for name, manifest in asker.asked.items()]
    for line in lines:
        click.echo(f"fairgate: {line}")
    outputs = {"outcome": "part", "exit-code": "0", "shard-folder": str(folder)}
    runner.write_outputs(output, outputs)
    shown = "".join(f"- {line}\n" for line in lines)
    summary = f"### FairGate: part {shard.number} of {shard.of}, not a verdict\n\n{shown}"
    runner.append_summary(environment.get("GITHUB_STEP_SUMMARY", ""), summary)
    return ExitCode.PASS


def _identity(inputs: Inputs, subject: Posting) -> dict[str, str]:
    from fairgate.github.pull_requests import base_commit, identity

    base = base_commit(subject.event, inputs.root, inputs.workspace, subject.api)
    return identity(subject.event, base)
