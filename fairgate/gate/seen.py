"""What `fairgate doctor` saw of a system, which `fairgate check` tries every gate against."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairgate.domain.errors import DataError
from fairgate.domain.ports import Runtime
from fairgate.gate.rules import about_documents
from fairgate.io.durable import write_text
from fairgate.io.git import prepared
from fairgate.io.tables import read_json_object
from fairgate.policy.schema import Policy

YES = "yes"
NO_DOCUMENTS = "no: the system tells no documents"
ANSWERS = "answers"
UNREAD = "no: none of the answers could be read"
LABELS = "labels of documents (asr/retrieval)"
DISTANCE = "distance of documents (retrieval/mean-distance)"
BOTH = "both together (rrs)"
_PARTS = {"asr/retrieval": LABELS, "retrieval/mean-distance": DISTANCE}


def keep(policy: Policy, measured: Mapping[str, str], runtime: Runtime) -> None:
    """Store what can be measured of a policy's system, each `yes` or why not, in the cache."""
    prepared(runtime.cache, "--cache")
    write_text(_file(policy, runtime), json.dumps(dict(measured)) + "\n", option="--cache")


def kept(policy: Policy, runtime: Runtime) -> dict[str, str]:
    """Return what was stored of this very `system`; nothing where it was not asked, or edited."""
    try:
        found = read_json_object(_file(policy, runtime))
    except (OSError, DataError):
        return {}
    return {str(name): str(answer) for name, answer in found.items()}


def without_value(policy: Policy, measured: Mapping[str, str]) -> Iterator[str]:
    """Yield the rules of a policy that what came back gives no value to."""
    for name in about_documents(policy):
        part = BOTH if name.startswith("rrs/") else _PARTS.get(name, "")
        answer = measured.get(part, NO_DOCUMENTS if NO_DOCUMENTS in measured.values() else YES)
        if answer != YES:
            yield f"`{name}`: a run would have no verdict: {answer.removeprefix('no: ')}"
    if measured.get(ANSWERS) == UNREAD:
        yield f"a run would have no verdict: {UNREAD.removeprefix('no: ')}"


def _file(policy: Policy, runtime: Runtime) -> Path:
    written = policy.system.model_dump_json()
    return runtime.cache / "doctor" / f"{hashlib.sha256(written.encode()).hexdigest()[:32]}.json"
