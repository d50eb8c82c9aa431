"""The note on a GitLab merge request: one for each policy, kept up to date, like GitHub's comment.

Everything but the token is what GitLab's runner says of itself. Nothing here changes a verdict.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgate.domain.errors import ApiError, ExitCode, FairGateError, UsageError
from fairgate.domain.wording import concealed, harmless
from fairgate.github.api import LIMITS, natural, value_at
from fairgate.github.comments import GONE, MARKER, Marker
from fairgate.io.http_client import HttpClient
from fairgate.io.http_messages import HttpError, Request, keeps_secrets
from fairgate.reports.escaping import disarmed_markdown
from fairgate.terminal.output import say

if TYPE_CHECKING:
    from fairgate.github.introduction import IntroductionReport
    from fairgate.github.report import ChangeReport

TOKEN = "FAIRGATE_GITLAB_TOKEN"  # noqa: S105 (the variable's name)
_TOKEN_BYTES, _TOKEN = 4096, re.compile(r"[\x21-\x7e]+")
NOTE_BYTES = 900_000
"""GitLab takes a million characters."""
_PER_PAGE, _PAGES = 100, 50
_FINE = range(200, 300)
_COMMAND = re.compile(r"^([^\S\n]*(?:>[^\S\n]*)*)/", re.MULTILINE)
_REFERENCE = re.compile(r'[%~](?=[\w"])|[!&](?=\d)|\[(?=\w+:\S)')
_APART = "\u200b"


def as_note(text: str, job_url: str) -> str:
    """Return the comment's text for GitLab, which acts on more than GitHub does.

    A line that begins with a slash is a command in the name of the token's owner (`/approve`), and
    a percent sign before a word links a milestone: a space of no width keeps both plain, as it does
    what both act on.
    """
    plain = disarmed_markdown(text, job_url)
    return _REFERENCE.sub(rf"\g<0>{_APART}", _COMMAND.sub(rf"\1{_APART}/", plain))


class GitLabApi:
    """Requests in the name of one token. Every failure is an ApiError."""

    def __init__(self, root: str, token: str) -> None:
        """Talk to the API at `root`, `https://gitlab.com/api/v4`. Raises ApiError."""
        if not keeps_secrets(root):
            raise ApiError(f"{harmless(root[:100])} is no address of an API; expected https://…")
        self._root, self._token = root.rstrip("/"), token
        limits = replace(LIMITS, most_bytes=32 << 20)
        self._client = HttpClient(limits, secrets=[token], pause=None)

    def __repr__(self) -> str:
        """Name the address, never the token."""
        return f"GitLabApi({self._root!r})"

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON answer."""
        headers = {"Accept": "application/json", "PRIVATE-TOKEN": self._token}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Request(
            method=method,
            url=f"{self._root}{path}",
            headers=headers,
            body=None if body is None else json.dumps(body).encode(),
            is_repeatable=method != "POST",
        )
        request_line = f"{method} {path.partition('?')[0]}"
        try:
            answer = self._client.ask(request)
        except HttpError as error:
            raise ApiError(f"{request_line}: {error}") from None
        try:
            content = json.loads(answer.body) if answer.body.strip() else None
        except (ValueError, RecursionError) as error:
            raise ApiError(f"{request_line}: GitLab's answer is no JSON") from error
        if answer.status in _FINE:
            return content
        words = harmless(concealed(str(value_at(content, "message")), [self._token])[:200])
        raise ApiError(f"{request_line}: {answer.status} {words}", status=answer.status)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the items of all pages of a list."""
        for page in range(1, _PAGES + 1):
            items = self.ask("GET", f"{path}?per_page={_PER_PAGE}&page={page}")
            if not isinstance(items, list):
                raise ApiError(f"GET {path}: the answer is no list")
            yield from items
            if len(items) < _PER_PAGE:
                return
        raise ApiError(f"GET {path}: more than {_PAGES} pages")


@dataclass(slots=True)
class StickyNote:
    """The note of one policy on one merge request: found again and updated, never doubled.

    Ours is a note by the token's own account that begins with the policy's marker. A marker of a
    later pipeline keeps its text only if GitLab lists that pipeline for the merge request.
    """

    api: GitLabApi
    request: str
    """`/projects/7/merge_requests/3`."""
    marker: Marker

    def put(self, text: str, *, create: bool, link: str = "") -> None:
        """Set the note's text; where there is none yet, only if `create`. Raises ApiError.

        Whoever wrote the text, nothing in it acts but links to `link`.
        """
        body = f"{self.marker}\n{as_note(text, link)}"
        notes = f"{self.request}/notes"
        author = natural(value_at(self.api.ask("GET", "/user"), "id"))
        if author is None:
            raise ApiError("GitLab does not say whose the token is")
        ours = sorted(
            (natural(note.get("id")) or 0, str(note.get("body")))
            for note in self.api.pages(notes)
            if isinstance(note, dict) and self._is_ours(note, author)
        )
        if not ours:
            if create:
                self.api.ask("POST", notes, {"body": body})
            return
        (oldest, before), *others = ours
        if any(self._is_newer(text) for _, text in ours):
            return
        if before.replace("\r\n", "\n") != body:
            self.api.ask("PUT", f"{notes}/{oldest}", {"body": body})
        for number, _ in others:
            with contextlib.suppress(ApiError):
                self.api.ask("DELETE", f"{notes}/{number}")

    def _is_ours(self, note: Mapping[str, Any], author: int) -> bool:
        prefix = str(self.marker).split(" head=", 1)[0] + " "
        by = natural(value_at(note, "author", "id"))
        return by == author and str(note.get("body")).startswith(prefix)

    def _is_newer(self, body: str) -> bool:
        stored = MARKER.match(body)
        pipeline = int(stored[3]) if stored else 0
        if pipeline <= self.marker.run[0]:
            return False
        listed = self.api.pages(f"{self.request}/pipelines")
        return pipeline in [natural(value_at(entry, "id")) for entry in listed]


@dataclass(slots=True)
class Note:
    """Where a run's report goes, if anywhere."""

    sticky: StickyNote | None = None
    job_url: str = ""

    def put(self, report: ChangeReport | IntroductionReport, needs_attention: bool) -> None:  # noqa: FBT001
        """Put the report; that GitLab refuses it is a warning."""
        if self.sticky is not None:
            self._put(report.comment(self.job_url, NOTE_BYTES), create=needs_attention)

    def put_error(self, error: BaseException) -> None:
        """Keep an earlier verdict from standing there as if it were this run's."""
        from fairgate.github.no_verdict import no_verdict

        if self.sticky is None or isinstance(error, KeyboardInterrupt):
            return
        code = error.exit_code if isinstance(error, FairGateError) else ExitCode.EXECUTION
        self._put(no_verdict(error, code), create=True)

    def _put(self, text: str, *, create: bool) -> None:
        assert self.sticky is not None  # noqa: S101 (asked by both callers)
        try:
            self.sticky.put(text, create=create, link=self.job_url)
        except ApiError as error:
            hint = ""
            if error.status in {401, 403, *GONE}:
                hint = f"; {TOKEN} needs the scope `api` and the role Reporter"
            say(
                "fairgate: warning: the note could not be written, the verdict stands: "
                f"{error}{hint}"
            )


def token_handed_over(environment: MutableMapping[str, str]) -> str:
    """Return the token from the file that the variable names, and remove both; empty: none given.

    Any program that runs in the job reads the environment of the job's shell, and no program could
    take a variable out of that. Raises UsageError where the variable has no such file.
    """
    name = environment.pop(TOKEN, "")
    if not name:
        return ""
    file, token = Path(name), ""
    with contextlib.suppress(OSError, ValueError):
        if file.is_absolute() and not file.is_symlink() and file.is_file():
            if file.stat().st_size <= _TOKEN_BYTES:
                token = file.read_text(encoding="ascii").strip()
            file.unlink()
    if not _TOKEN.fullmatch(token) or file.exists():
        raise UsageError(
            f"{TOKEN} is no path of a file that holds one token and can be removed. Make it a "
            "variable of the type File in GitLab's settings; a token that was the variable's own "
            "value could be read by every program of the job: revoke that"
        )
    return token


@contextlib.contextmanager
def merge_request_note(environment: Mapping[str, str], token: str, policy: str) -> Iterator[Note]:
    """Return where the report of a merge request's pipeline goes; nowhere outside of one.

    Without the token no note is written and nothing is said: the job's artifacts have the report.
    An error that ends the block replaces an earlier verdict.
    """
    note = Note()
    names = ("CI_MERGE_REQUEST_PROJECT_ID", "CI_MERGE_REQUEST_IID", "CI_PIPELINE_ID")
    project, request, pipeline = (natural(environment.get(name)) for name in names)
    if token and project and request and pipeline:
        head = environment.get("CI_COMMIT_SHA", "")
        head = head if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head) else ""
        job = natural(environment.get("CI_JOB_ID")) or 0
        address = environment.get("CI_JOB_URL", "")
        try:
            sticky = StickyNote(
                GitLabApi(environment.get("CI_API_V4_URL", ""), token),
                f"/projects/{project}/merge_requests/{request}",
                Marker(key=policy, head=head, run=(pipeline, job)),
            )
            note = Note(sticky, address if re.fullmatch(r"https?://[\w.:/~-]+", address) else "")
        except ApiError as error:
            say(f"fairgate: warning: there is no note: {error}")
    try:
        yield note
    except BaseException as error:
        note.put_error(error)
        raise
