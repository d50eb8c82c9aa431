"""One comment per policy on a pull request: found again, updated, never doubled.

The first line of the comment is a marker that names the policy and the run. A comment counts as
ours only if its author is the account we write as, so a copied marker has no effect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fairgate.domain.errors import ApiError
from fairgate.github.api import GitHubApi

GONE = frozenset({404, 410})
_SERVER_ERROR = 500
_ROUNDS = 4
_BOT = "github-actions[bot]"
_MARKER = re.compile(
    r'<!-- fairgate:report:v1 key="([^"<>]*)" head="([0-9a-f]*)" '
    r'run="([0-9]{1,18})\.([0-9]{1,18})" -->'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The hidden first line of a comment."""

    key: str
    head: str
    run: tuple[int, int]

    def __str__(self) -> str:
        """Return the HTML comment that GitHub does not show."""
        key = re.sub(r"[^A-Za-z0-9._/-]", "_", self.key).replace("--", "-_")
        run, attempt = self.run
        return f'<!-- fairgate:report:v1 key="{key}" head="{self.head}" run="{run}.{attempt}" -->'


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What happened to the comment."""

    url: str
    action: str
    """`created`, `updated`, `unchanged`, `newer run has reported` or `not wanted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    id: int
    url: str
    body: str
    run: tuple[int, int]


class StickyComment:
    """The comment of one policy on one pull request."""

    def __init__(self, api: GitHubApi, *, repository: str, number: int, graphql: str) -> None:
        """Take the pull request; nothing is asked yet."""
        self._api = api
        self._issue = f"/repos/{repository}/issues/{number}/comments"
        self._comments = f"/repos/{repository}/issues/comments"
        self._graphql = graphql
        self._author: str | None = None

    def put(self, marker: Marker, text: str, *, create: bool) -> Posted:
        """Set the comment's text; where there is none yet, only if `create`.

        Raises ApiError. Of two runs that race the newer one's text stays, once.
        """
        body = f"{marker}\n{text}"
        own, failed = 0, None
        for _ in range(_ROUNDS):
            found = self._mine(marker)
            if not found:
                if not create:
                    return Posted(url="", action="not wanted")
                own, failed = self._create(body)
                continue  # look again: another run may have created one at the same time
            oldest = found[0]
            if max(comment.run for comment in found) > marker.run:
                self._delete([comment for comment in found[1:] if comment.id == own])
                return Posted(url=oldest.url, action="newer run has reported")
            changed = oldest.body != body
            if changed and not self._update(oldest.id, body):
                continue  # deleted in between
            self._delete(found[1:])
            action = "created" if own == oldest.id else "updated" if changed else "unchanged"
            return Posted(url=oldest.url, action=action)
        raise failed or ApiError(
            "the comment was modified concurrently several times; another job writes it"
        )

    def _mine(self, marker: Marker) -> list[_Found]:
        """Return our comments of this policy, oldest first."""
        prefix = str(marker).split(" head=", 1)[0] + " "
        found = []
        for comment in self._api.pages(self._issue):
            body = comment.get("body") if isinstance(comment, dict) else None
            if not isinstance(body, str) or not body.startswith(prefix) or not self._is_us(comment):
                continue
            stored = _MARKER.match(body)
            run = (int(stored[3]), int(stored[4])) if stored else (0, 0)
            found.append(
                _Found(
                    id=_id_of(comment),
                    url=_url_of(comment),
                    body=body.replace("\r\n", "\n"),
                    run=run,
                )
            )
        return sorted(found, key=lambda comment: comment.id)

    def _is_us(self, comment: dict[str, Any]) -> bool:
        if self._author is None:
            self._author = self._who_we_are()
        user = comment.get("user")
        return isinstance(user, dict) and user.get("login") == self._author

    def _who_we_are(self) -> str:
        # A workflow's own token may not ask REST who it is, but GraphQL answers.
        try:
            answer = self._api.query(self._graphql, "query { viewer { login } }")
            login = answer["data"]["viewer"]["login"]
        except (ApiError, LookupError, TypeError):
            return _BOT
        return login if isinstance(login, str) else _BOT

    def _create(self, body: str) -> tuple[int, ApiError | None]:
        """Return the new comment's number; 0 and the error where it is unknown if there is one."""
        try:
            answer = self._api.send("POST", self._issue, {"body": body})
        except ApiError as error:
            if error.status < _SERVER_ERROR and error.status != 0:
                raise
            return 0, error  # it may be there all the same: the next round looks
        return _id_of(answer), None

    def _update(self, comment: int, body: str) -> bool:
        try:
            self._api.send("PATCH", f"{self._comments}/{comment}", {"body": body})
        except ApiError as error:
            if error.status in GONE:
                return False
            raise
        return True

    def _delete(self, comments: list[_Found]) -> None:
        for comment in comments:
            try:
                self._api.send("DELETE", f"{self._comments}/{comment.id}")
            except ApiError as error:
                if error.status not in GONE:
                    raise


def _id_of(comment: object) -> int:
    found = comment.get("id") if isinstance(comment, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise ApiError("GitHub's answer has a comment without its number")
    return found


def _url_of(comment: dict[str, Any]) -> str:
    found = comment.get("html_url")
    return found if isinstance(found, str) else ""
