"""Whether an answer over HTTP can be used, and what to do where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairgate.domain.errors import ApplicationError
from fairgate.domain.secrets import concealed
from fairgate.domain.wording import harmless
from fairgate.io.http_messages import BUSY, Answer, HttpError, asks_to_wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """What is asked, as messages name it."""

    name: str
    secrets: Sequence[str]
    """Values that no message holds."""
    variables: tuple[str, ...]
    """NAMES of the environment variables that were sent."""
    attempts: int
    remedy: str
    """What to check where the status says no more."""
    key: str = "`headers_env`"
    """Where the policy gives a key."""


def usable(found: Answer | HttpError, asker: Asker, about: str) -> Answer:
    """Return the answer. Raises ApplicationError unless its status is a success."""
    if isinstance(found, HttpError):
        raise ApplicationError(
            f"{asker.name}, asked {about}: {found.sentence}; check that it runs, and its address"
        )
    if found.status // 100 != 2:
        message = concealed(found.body[:2000].decode("utf-8", "replace"), asker.secrets)
        words = f" and the message {harmless(message.strip()[:120])!r}" if message.strip() else ""
        raise ApplicationError(
            f"{asker.name}, asked {about}: answered with HTTP {found.status}{words}; "
            f"{_hint(found, asker)}"
        )
    return found


def _hint(answer: Answer, asker: Asker) -> str:
    if answer.status in (401, 403):
        named = ", ".join(asker.variables)
        return f"check what {named} holds" if named else f"give the key in {asker.key}"
    if 300 <= answer.status < 400:
        target = harmless(concealed(answer.headers.get("location", ""), asker.secrets)[:100])
        return f"redirects are not followed: name the address it leads to ({target!r})"
    if wait := asks_to_wait(answer):
        return wait
    if answer.status in BUSY:
        return f"tried {asker.attempts} times; look into its log"
    return asker.remedy
