"""The Hugging Face hub: tables of data sets by their id, and errors that hold no token.

Only tables are fetched, from the local cache or the hub, never loading scripts. Nothing is fetched
when HF_HUB_OFFLINE is set.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from fairgate.domain.errors import DataError, FairGateError
from fairgate.domain.wording import concealed, quoted

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_PATTERNS = ["*.jsonl", "*.csv", "*.tsv", "*.parquet"]


def hub_table(name: str) -> tuple[str, str] | None:
    """Split `organisation/data-set[/file]` into the id and the file; None for another form."""
    parts = name.split("/", 2)
    dataset, file = "/".join(parts[:2]), "".join(parts[2:])
    if _ID.fullmatch(dataset) is None or {"", ".", ".."} & set(file.split("/")) - {file}:
        return None
    return None if file in {".", ".."} else (dataset, file)


@contextlib.contextmanager
def asking_the_hub(failure: Callable[[str], FairGateError]) -> Iterator[None]:
    """Raise `failure` with the message, in one line, for any error in the block.

    A server can put the token that it was sent into its answer. The error itself is not passed on,
    since a traceback would show it.

    Which HTTP library the client uses, and so what it raises, differs by its version.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  # see above
        from huggingface_hub import get_token

        message = concealed(str(error), [get_token() or ""]).strip()
        raise failure(message.splitlines()[0] if message else type(error).__name__) from None


def fetch_dataset(name: str, file: str = "") -> Path:
    """Return a folder with the data set's tables, or with the one named. Raises DataError."""
    from huggingface_hub import snapshot_download

    def failure(reason: str) -> DataError:
        return DataError(
            f"the data set {quoted(name)} is not available from the hub ({quoted(reason)}); check "
            "the name and the network, or put the path of a downloaded file in its place"
        )

    wanted = [file] if file else _PATTERNS
    with asking_the_hub(failure):
        return Path(snapshot_download(name, repo_type="dataset", allow_patterns=wanted))


def fetch_table(name: str, file: str = "") -> Path:
    """Return a table of a data set: the one named, else the only one there is.

    Raises DataError that lists the tables where the choice is not clear.
    """
    folder = fetch_dataset(name, file)
    found = sorted(path for pattern in _PATTERNS for path in folder.rglob(pattern))
    chosen = [path for path in found if not file or path == folder / file]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(str(path.relative_to(folder)) for path in found[:8]) or "none"
    raise DataError(
        f"the data set {quoted(name)} has {len(found)} tables ({names}); name one of them as "
        f"{name}/FILE"
    )
