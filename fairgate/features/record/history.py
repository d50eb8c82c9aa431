"""What git says of the policy that judged: who changed which entry, and in which commit."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairgate.domain.errors import FairGateError
from fairgate.features.record.model import Commit, Written
from fairgate.features.record.run import ReadWaiver, Rule, Run, short
from fairgate.io.git import FULL_COMMIT, Repository, repository_of
from fairgate.policy.yaml_text import YamlDocument, YamlPath, decode_yaml, load_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What git says of the policy that judged, at the commit that was tested."""

    tested: str
    why: str = ""
    """Why nothing is known of it; empty where something is."""
    repository: Repository | None = None
    inside: str = ""
    """The policy's path in the repository."""
    is_of_commit: bool | None = None
    document: YamlDocument | None = None
    lines: Mapping[int, str] = field(default_factory=dict)
    """Number of a line, from 1, to the commit that changed it last; "" where history lacks."""

    @classmethod
    def of(cls, run: Run, policy: Path | None) -> History:
        """Ask the checkout that the policy lies in; nothing is known where there is none."""
        commit = run.provenance.commit or ""
        if run.is_table:
            why = "a table's limits come with the command, which no commit holds"
            return cls(tested=commit, why=why)
        if not commit:
            return cls(tested=commit, why="the run names no commit")
        repository = repository_of(policy.resolve().parent) if policy else None
        if repository is None or policy is None:
            return cls(tested=commit, why="the policy is in no checkout here")
        inside = policy.resolve().relative_to(repository.top).as_posix()
        known = cls(tested=commit, repository=repository, inside=inside)
        if repository.ask("cat-file", "-e", commit) is None:
            return replace(known, why="this checkout does not have the commit tested")
        document = known.policy_at(commit, run.provenance.policy_sha256)
        if document is None:
            why = "the policy that judged is not the file of the commit tested"
            return replace(known, is_of_commit=False, why=why)
        lines = _blamed(repository, commit, inside)
        return replace(known, is_of_commit=True, document=document, lines=lines)

    @property
    def data(self) -> Mapping[str, Any]:
        """The policy as the commit has it; empty where that is not known."""
        data = self.document.data if self.document else None
        return data if isinstance(data, dict) else {}

    def policy_at(self, commit: str, sha256: str) -> YamlDocument | None:
        """Return the policy that a commit has; None where its text has another checksum."""
        raw = self._blob(commit, self.inside)
        try:
            text = "" if raw is None else decode_yaml(raw, self.inside)
        except FairGateError:
            return None
        is_it = hashlib.sha256(text.encode()).hexdigest() == sha256
        return load_yaml(text, self.inside) if text and is_it else None

    def sha256(self, path: str) -> str:
        """Return the checksum of a file in the commit tested; empty where it has none."""
        raw = self._blob(self.tested, path) if path else None
        return "" if raw is None else hashlib.sha256(raw).hexdigest()

    def _blob(self, commit: str, path: str) -> bytes | None:
        if self.repository is None or not FULL_COMMIT.fullmatch(commit):
            return None
        return self.repository.ask("cat-file", "blob", f"{commit}:{path}")

    def commit(self, name: str | None) -> Commit | None:
        """Return a commit with its date and author, as far as git has it."""
        if not name:
            return None
        command = ("show", "-s", "--no-show-signature", "--format=%cd%x00%an", "--date=format:%s")
        output = (self.repository and self.repository.ask(*command, name, "--")) or b"\0"
        date, _, author = output.decode("utf-8", "replace").strip("\n").partition("\0")
        day = ""
        if re.fullmatch(r"\d{1,12}", date):
            day = dt.datetime.fromtimestamp(int(date), tz=dt.UTC).date().isoformat()
        return Commit(id=name, date=day, author=short(author))

    def sources(self) -> dict[str, str]:
        """Return the sources of texts that the policy names, by suite."""
        suites = self.data.get("suites")
        listed = [each for each in suites if isinstance(each, dict)] if suites else []
        return {
            str(each.get("id")): str(each.get("sources", each.get("items", ""))) for each in listed
        }

    def limit(self, rule: Rule) -> tuple[Mapping[str, Any] | None, Written]:
        """Return the entry of `gates` that a rule is of, and when it was last changed."""
        if self.document is None:
            return None, self.written(())
        gates = self.data.get("gates")
        entry = gates[rule.gate] if isinstance(gates, list) and rule.gate < len(gates) else None
        if not isinstance(entry, dict):
            # Without `gates` the limits are those of the policy as a whole.
            return {}, self.written(())
        return entry, self.written(("gates", rule.gate))

    def waiver(self, rule: Rule, waived: ReadWaiver) -> Written:
        """Say when a waiver was last changed."""
        keys = {"rule": rule.metric, **waived.model_dump()}
        for index, entry in enumerate(self.data.get("waivers") or ()):
            written = entry.items() if isinstance(entry, dict) else ()
            known = {
                key: short(value) if isinstance(value, str) else value for key, value in written
            }
            if keys.items() <= known.items():
                return self.written(("waivers", index))
        return Written(when="unknown", commit=None, why=self.why or "no entry has these words")

    def written(self, within: YamlPath) -> Written:
        """Say when a part of the policy was last changed."""
        marks = self.document.marks if self.document else {}
        changed = {
            self.lines.get(mark[0], "")
            for path, mark in marks.items()
            if path[: len(within)] == within
        }
        if not changed or "" in changed:
            why = self.why or "the history of this checkout is not complete"
            return Written(when="unknown", commit=None, why=why)
        if self.tested in changed:
            return Written(when="with", commit=self.commit(self.tested), why="")
        commits = [self.commit(name) for name in sorted(changed)]
        newest = max((each for each in commits if each), key=lambda each: (each.date, each.id))
        return Written(when="before", commit=newest, why="")


def _blamed(repository: Repository, commit: str, inside: str) -> dict[int, str]:
    """Return the commit that last changed each line; "" where a shallow clone does not tell."""
    command = ("blame", "--porcelain", "--root", "--ignore-revs-file=", "--no-textconv")
    output = repository.ask(*command, commit, "--", inside) or b""
    shallow = (repository.ask("rev-parse", "--is-shallow-repository") or b"").strip() == b"true"
    ends = set((repository.ask("rev-list", "--max-parents=0", commit) or b"").decode().split())
    lines: dict[int, str] = {}
    for line in output.split(b"\n"):
        if head := re.match(rb"([0-9a-f]{40,64}) \d+ (\d+)", line):
            name = head[1].decode()
            lines[int(head[2])] = "" if shallow and name in ends else name
    return lines
