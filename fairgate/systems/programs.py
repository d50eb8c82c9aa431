"""What programs of the user's are given, and what is shown of what they said."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO

from fairgate.domain.errors import UsageError
from fairgate.domain.secrets import concealed
from fairgate.domain.wording import harmless, quoted
from fairgate.io.spawn import close_to_others

_EVERY_PROGRAM = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV",
    "PYTHONPATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_SHOWN = 400


def program_environment(named: Sequence[str]) -> dict[str, str]:
    """Return the variables of every program and those that `env` names; all others are kept back.

    From here on programs of the same user cannot read them from this process either. Raises
    UsageError where a named one is not set.
    """
    missing = [name for name in named if name not in os.environ]
    if missing:
        raise UsageError(
            f"the environment variable {quoted(missing[0])}, which `env` names, is not set"
        )
    close_to_others()
    return {name: os.environ[name] for name in (*_EVERY_PROGRAM, *named) if name in os.environ}


def last_words(messages: IO[bytes], secrets: Sequence[str]) -> str:
    """Return the end of what a program wrote, on one line and without secrets; empty for none."""
    size = messages.seek(0, os.SEEK_END)
    messages.seek(max(0, size - 10 * _SHOWN))
    text = concealed(messages.read().decode("utf-8", "replace"), secrets).strip()
    return harmless(text[-_SHOWN:])
