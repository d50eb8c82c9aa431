"""A policy's kill score in a file beside it, so that later reports can show it.

No verdict depends on it. A file that cannot be used is told in one sentence and otherwise ignored.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.domain.findings import KeptKillScore
from fairgate.io.durable import write_text
from fairgate.io.json_file import read_json_object

SUFFIX = ".kill-score.json"
MOST_SENTENCES = 30
"""On what a policy does not see, that are kept."""
_MOST_BYTES = 1 << 16
_MOST_CHARACTERS = 1000
_GREEN, _YELLOW = 0.9, 0.5


def kill_score_path(policy: Path) -> Path:
    """Return the file of a policy's kill score."""
    return policy.with_name(f"{policy.stem}{SUFFIX}")


def policy_hash(policy_json: str) -> str:
    """Return what changes whenever anything but comments and order of a policy does."""
    return hashlib.sha256(policy_json.encode("utf-8", "surrogatepass")).hexdigest()


def write_kill_score(path: Path, score: KeptKillScore) -> None:
    """Write the file, whole or not at all. Equal scores give equal bytes."""
    write_text(path, json.dumps(asdict(score), indent=1, sort_keys=True) + "\n", option="--save")


def read_kill_score(path: Path) -> KeptKillScore | None:
    """Return the score; None where there is no file. Raises DataError where it is none."""
    if not path.is_file():
        return None
    found = read_json_object(path, _MOST_BYTES)
    again = f"{path}: no kill score; make it again with `fairgate mutate POLICY RUN --save`"
    names = {field.name for field in fields(KeptKillScore)}
    if found.keys() | {"not_seen"} != names or not _are_sentences(found.get("not_seen", [])):
        raise DataError(again)
    score = KeptKillScore(**found)
    counts = (score.caught, score.mutants, score.false_kills, score.controls, score.sources)
    if not all(type(count) is int and 0 <= count < 10**9 for count in (*counts, score.seeds)):
        raise DataError(again)
    if not isinstance(score.policy_hash, str) or not isinstance(score.strength, int | float):
        raise DataError(again)
    is_possible = 0 < score.mutants >= score.caught and score.controls >= score.false_kills
    if not is_possible or not 0 < score.strength <= 1:
        raise DataError(again)
    return score


def _are_sentences(found: object) -> bool:
    return (
        isinstance(found, list)
        and len(found) <= MOST_SENTENCES
        and all(isinstance(each, str) and len(each) <= _MOST_CHARACTERS for each in found)
    )


def kill_score_badge(score: KeptKillScore) -> str:
    """Return the score for a badge, in the form that shields.io's endpoint badges read."""
    share = score.share
    colour = "brightgreen" if share >= _GREEN else "yellow" if share >= _YELLOW else "red"
    badge = {
        "schemaVersion": 1,
        "label": "kill score",
        "message": f"{score.percent} %",
        "color": colour,
    }
    return json.dumps(badge) + "\n"
