"""Folders of results that git is told to leave alone, by a `.gitignore` of their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

CACHE = ".fairgate"
"""Name of the folder of indexes, stored answers and runs, where nobody names another."""
_EVERYTHING = "# Made by FairGate: what is in here can be had again, and belongs in no commit.\n*\n"


def keep_out_of_git(folder: Path) -> None:
    """Make the folder, and a `.gitignore` of everything in it where it is new or is our cache.

    What stands there stays. Where nothing can be written, whoever writes next says so.
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
