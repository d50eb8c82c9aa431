"""Stored answers of the base branch's runs, on runners that keep nothing between jobs.

Only answers of runs that GitHub itself ties to the base branch are believed
(`adapters/github/base_runs.py`); within them each is found by its content, as in any store.
Whatever fails here costs time, never a verdict: every question is asked.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from fairgate.domain.errors import FairGateError
from fairgate.domain.wording import quoted
from fairgate.github.api import GitHubApi
from fairgate.github.base_runs import base_run_file
from fairgate.github.event import Event
from fairgate.io.durable import write_bytes
from fairgate.systems.result_store import SqliteResultStore

STORE = "store.sqlite"
"""The store's file in a cache, and in the artifact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAnswers:
    """What was had of earlier runs."""

    commit: str = ""
    """Of the run whose answers are used; empty where none are."""
    notice: str = ""
    """Why none are."""


def fetch_answers(
    event: Event, api: GitHubApi | None, artifact: str, cache: Path, ref: str
) -> BaseAnswers:
    """Put the answers of the newest run of the base branch into an empty cache.

    `ref` is what GitHub started the run on, which counts for runs of the default branch itself.
    """
    base = event.base_sha or (event.sha if is_default_branch(event, ref) else "")
    if api is None or not base:
        missing = "the step has no token" if api is None else "the event has no base commit"
        return BaseAnswers(notice=f"no stored answers are used: {missing}")
    if (cache / STORE).exists():
        return BaseAnswers(notice="the runner has stored answers of its own; no others are fetched")
    try:
        found = base_run_file(api, event.repository, event.default_branch, base, artifact, STORE)
        if found is None:
            return BaseAnswers(
                notice=f"no push run of the base branch has left an artifact {quoted(artifact)}: "
                "every question is asked"
            )
        commit, content = found
        cache.mkdir(parents=True, exist_ok=True)
        write_bytes(cache / STORE, content)
        with contextlib.closing(SqliteResultStore(cache / STORE)):
            pass  # what cannot be opened here would end the run later
    except (FairGateError, OSError) as error:
        (cache / STORE).unlink(missing_ok=True)
        return BaseAnswers(
            notice=f"the base branch's answers cannot be had, every question is asked: {error}"
        )
    return BaseAnswers(commit=commit)


def keep_answers(event: Event, cache: Path, folder: Path, ref: str) -> str:
    """Return the file that a run of the default branch leaves for later runs.

    Empty elsewhere, where nothing was asked, and where it cannot be written.
    """
    if event.name != "push" or not is_default_branch(event, ref) or not (cache / STORE).is_file():
        return ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(SqliteResultStore(cache / STORE)) as store:
            store.copy_to(folder / STORE)
    except (FairGateError, OSError):
        return ""
    return str(folder / STORE)


def is_default_branch(event: Event, ref: str) -> bool:
    """Return whether the run is of the default branch itself, pushed to this repository."""
    return bool(event.default_branch) and ref == f"refs/heads/{event.default_branch}"
