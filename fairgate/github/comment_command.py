"""`fairgate github comment`: what a fork's own run has reported, on its pull request."""

from __future__ import annotations

import os

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.github.errors import accounted


@click.command()
@click.option("--artifact", default="fairgate-report", envvar="FAIRGATE_ARTIFACT", help="Its name.")
@click.option(
    "--comment-key", default="", envvar="FAIRGATE_COMMENT_KEY", help="Distinguishes gates."
)
@click.option("--github-token", default="", envvar="FAIRGATE_GITHUB_TOKEN", help="May write.")
def comment(artifact: str, comment_key: str, github_token: str) -> int:
    """Comment on a fork's pull request what its own run has reported (event `workflow_run`).

    Reads run.json from the run's artifact as untrusted data: nothing of it is executed or
    copied, and the pull request is the one whose head commit ran.
    """
    from fairgate.github import runner
    from fairgate.github.event import read_event, read_roots
    from fairgate.github.foreign_reports import comment_foreign_report
    from fairgate.github.pull_requests import github_api

    environment = dict(os.environ)
    os.environ.pop("FAIRGATE_GITHUB_TOKEN", None)
    with accounted(environment):
        roots = read_roots(environment)
        api = github_api(roots, github_token)
        if api is None:
            raise UsageError("there is no `github-token` to comment with; give the step one")
        event = read_event(environment)
        done = comment_foreign_report(event, api, roots, artifact, comment_key)
    url = done.posted.url if done.posted else ""
    click.echo(f"fairgate: {url or 'no comment'}: {done.reason or 'up to date'}")
    runner.write_outputs(environment.get("GITHUB_OUTPUT", ""), {"comment-url": url})
    return ExitCode.PASS
