"""`fairgate github`: the commands that the steps of GitHub workflows call."""

from __future__ import annotations

import os
import re
from functools import partial

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import quoted
from fairgate.github.gate_step import empty_report_dir, gate_change, prefix_of, step, subject_of
from fairgate.github.no_verdict import accounted
from fairgate.github.runner import input_options, read_inputs, write_outputs
from fairgate.terminal.output import progress_for


@click.group(short_help="The gate inside GitHub Actions.")
def github() -> None:
    """Do what the GitHub Action does; outside of GitHub Actions use `fairgate run`."""


@click.command()
@click.option("--artifact", default="fairgate-report", envvar="FAIRGATE_ARTIFACT", help="Its name.")
@click.option(
    "--comment-key", default="", envvar="FAIRGATE_COMMENT_KEY",
    help="Distinguishes gates (default: the artifact's name).",
)  # fmt: skip
@click.option(
    "--comment-digest", default="", envvar="FAIRGATE_COMMENT_DIGEST",
    help="What the gate's step says of the comment that it wrote.",
)  # fmt: skip
@click.option(
    "--pr-number", default="", envvar="FAIRGATE_PR_NUMBER",
    help="Number of the pull request, if the event does not name one.",
)  # fmt: skip
@click.option("--github-token", default="", envvar="FAIRGATE_GITHUB_TOKEN", help="May write.")
def comment(
    artifact: str, comment_key: str, comment_digest: str, pr_number: str, github_token: str
) -> int:
    """Comment on the pull request what the gate's job has left in an artifact.

    A job of its own does this, for the gate's runs files of the pull request and so has no token
    that may write. Under `workflow_run` it comments what a fork's run has reported of itself. The
    artifact is untrusted data: nothing of it is executed or copied, and which pull request, commit
    and run it is about only GitHub says.
    """
    from fairgate.github.comments import comment_foreign_report, comment_own_report
    from fairgate.github.event import github_api, read_event, read_roots, resolved

    with accounted() as account:
        environment = account.environment
        if pr_number and not re.fullmatch(r"[1-9][0-9]{0,9}", pr_number, re.ASCII):
            raise UsageError(f"pr-number is {quoted(pr_number)}, expected a number")
        roots = read_roots(environment)
        api = github_api(roots, github_token)
        if api is None:
            raise UsageError("there is no `github-token` to comment with; give the step one")
        event = read_event(environment, int(pr_number) if pr_number else None)
        shared_arguments = api, roots, artifact, comment_key
        if event.name != "workflow_run" or not event.is_fork:
            url, reason = comment_own_report(
                resolved(event, api), *shared_arguments, comment_digest
            )
        else:
            url, reason = comment_foreign_report(event, *shared_arguments)
    click.echo(f"fairgate: {url or 'no comment'}: {reason or 'up to date'}")
    write_outputs(environment.get("GITHUB_OUTPUT", ""), {"comment-url": url})
    return ExitCode.PASS


github.add_command(comment)


@github.command()
@input_options
@click.option(
    "--shard", default="", envvar="FAIRGATE_SHARD", help="Ask the I-th of N parts: `I/N`."
)
def run(shard: str, **options: str) -> int:
    """Gate the pull request, push or merge group of this workflow run.

    Policy and baseline are read from the base commit. Writes the report files, step outputs, job
    summary and annotations, and into the run's folder the comment for the job that posts it. With
    --shard it asks a part of the questions and decides nothing.
    """
    with accounted() as account:
        account.is_gate = not shard  # a part that fails is missing for the step that decides
        inputs = read_inputs(options, account.environment)
        account.prefix = prefix_of(inputs)
        if account.is_gate:
            empty_report_dir(inputs, account)
        os.chdir(inputs.root)
        if shard and inputs.answers:
            raise UsageError(
                "answers-artifact and shard are given together; a part takes no stored answers: "
                "leave one of them out of the step's `with:`"
            )
        if shard:
            return int(step("shard")(inputs, shard, account.environment))
        from fairgate.github.change import evaluated

        evaluate = partial(evaluated, progress=progress_for(quiet=False))
        return gate_change(inputs, subject_of(inputs, account.environment), evaluate)
