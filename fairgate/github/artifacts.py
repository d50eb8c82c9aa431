"""One file out of another run's artifact, which is untrusted."""

from __future__ import annotations

import io
import zipfile

from fairgate.domain.errors import DataError
from fairgate.domain.wording import quoted
from fairgate.github.api import GitHubApi

MAX_ARCHIVE_BYTES = 16 << 20
"""Also bounds the table of contents, which is read whole."""
MAX_MEMBER_BYTES = 16 << 20


def artifact_member(
    api: GitHubApi, repository: str, run: int, artifact: str, member: str, *, head: str
) -> bytes:
    """Return a file of an artifact that a run of commit `head` has left.

    Nothing is unpacked: the one member is read in memory, up to its limit, whatever it claims.
    Raises ApiError, and DataError where the run has no such artifact of that commit.
    """
    path = f"/repos/{repository}/actions/runs/{run}/artifacts"
    found = api.get(path, per_page=100, name=artifact)
    listed = found.get("artifacts") if isinstance(found, dict) else None
    matching = [
        item
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, dict)
        and item.get("name") == artifact
        and isinstance(item.get("id"), int)
        and not item.get("expired")
    ]
    if not matching:
        raise DataError(
            f"run {run} has no artifact {quoted(artifact)}; upload the gate's `report-json` under "
            "that name, or name the artifact in the step's `with:`"
        )
    newest = max(matching, key=lambda item: int(item["id"]))  # a repeated run leaves several
    origin = newest.get("workflow_run")
    commit = origin.get("head_sha") if isinstance(origin, dict) else None
    if commit not in (None, head):  # older servers do not say it
        raise DataError(
            f"artifact {quoted(artifact)} of run {run} belongs to commit {quoted(str(commit))}, "
            f"not to {head[:12]}, which ran; run the gate again"
        )
    archive = f"/repos/{repository}/actions/artifacts/{newest['id']}/zip"
    raw = api.download(archive, MAX_ARCHIVE_BYTES)
    return member_of(raw, artifact, member, MAX_MEMBER_BYTES)


def member_of(raw: bytes, artifact: str, member: str, most: int) -> bytes:
    """Return a file of an archive, of at most so many bytes. Raises DataError."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(member) as file:
            content = file.read(most + 1)
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(
            f"artifact {quoted(artifact)} has no readable {member} ({type(error).__name__}): it "
            "may be truncated, run the gate again"
        ) from error
    except Exception as error:  # zlib.error and what other decompressors raise
        raise DataError(f"artifact {quoted(artifact)} is damaged; run the gate again") from error
    if len(content) > most:
        size = f"{most >> 20} MiB"
        raise DataError(f"{member} of artifact {quoted(artifact)} is larger than {size}")
    return content
