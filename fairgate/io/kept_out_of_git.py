"""Folders of results that git ignores, by a `.gitignore` of their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

CACHE = ".fairgate"
"""Default name of the folder of indexes, stored answers and runs."""
_EVERYTHING = "# Made by FairGate: what is in here can be made again; do not commit it.\n*\n"


def keep_out_of_git(folder: Path) -> None:
    """Make the folder, and a `.gitignore` of everything in it where it is new or is our cache.

    Existing files are kept. Where nothing can be written, the next write reports it.
    """
    is_new = not folder.exists()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if is_new or folder.name == CACHE:
            # Never through a link: a checkout could have one that leads out of it.
            with (folder / ".gitignore").open("x", encoding="utf-8") as file:
                file.write(_EVERYTHING)


def keep_output_out_of_git(output: Path) -> None:
    """Do so for the cache that a file or folder to be written lies in; elsewhere nothing."""
    for folder in (output, *output.parents):
        if folder.name == CACHE:
            keep_out_of_git(folder)
            return
