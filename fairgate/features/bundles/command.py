"""`fairgate bundle`: a run as a zip file, and whether such a file is what it claims.

Checked are its bytes, its hashes, and the verdict from its rows.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fairgate import __version__
from fairgate.domain.errors import BaselineError, DataError, ExitCode, PolicyError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.outcomes import GateResult, Provenance
from fairgate.domain.wording import harmless, quoted
from fairgate.features.bundles.bundle import (
    NOT_RECOMPUTED,
    OPTIONAL,
    REQUIRED,
    STATEMENT,
    VerdictInput,
    as_json,
    bundle_run,
    differences,
    policy_json,
    statement,
    verdict_input,
    versions_json,
)
from fairgate.gate.baseline import Baseline
from fairgate.gate.baseline_files import load_baseline
from fairgate.gate.gate import GateInput, result_of
from fairgate.io.text_files import read_whole
from fairgate.policy.parse import parse_policy
from fairgate.policy.schema import Policy
from fairgate.reports.run_record import run_record
from fairgate.systems.catalogue import policy_parts
from fairgate.terminal.options import EXISTING_FILE, EXISTING_FOLDER, runtime_of, runtime_options

MOST_BYTES = 512 << 20
_TIME = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16
_UNIX = 3
_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    ArithmeticError,
    LookupError,
    struct.error,
    EOFError,
    OSError,
)
"""What zipfile raises for archives that are none, are cut off, or need what it does not do."""
_AGAIN = "expected the file as `fairgate bundle` wrote it; get it again, or bundle the run again"
_FILE = click.Path(dir_okay=False, path_type=Path)
_MAKE = "make"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBundle:
    """A bundle that was found to be what it claims."""

    result: GateResult
    """Recomputed, not read."""
    statement: Mapping[str, Any]
    redacted: bool
    members: int


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of the members. Equal members give equal bytes, on every machine.

    It has one possible form, so that nothing can be hidden in one: members are stored, in the order
    of their names, with fixed times and modes. A file with any other byte is refused: reading makes
    the archive again from its members and compares it. Stored members cannot expand, so a file's
    size limits what reading it takes.
    """
    return _archive(members).getvalue()


def _archive(members: Mapping[str, bytes]) -> io.BytesIO:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = _UNIX, _REGULAR_FILE
            archive.writestr(info, members[name])
    return memory


def unzipped(path: Path, known: frozenset[str]) -> dict[str, bytes]:
    """Return the members of a bundle by name; `known` are the names that it may have.

    Raises DataError for whatever `zipped` would not have written.
    """
    data = read_whole(path, MOST_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _check_members(path, infos, known, len(data))
            members = {info.filename: archive.read(info) for info in infos}
    except _BROKEN as error:
        raise DataError(f"{path}: no bundle ({quoted(str(error))[:120]}); {_AGAIN}") from error
    digest = hashlib.sha256(data).digest()
    del data  # a bundle may be large: never more of it at once than its members and one archive
    if hashlib.sha256(_archive(members).getbuffer()).digest() != digest:
        raise DataError(
            f"{path}: its bytes are not those of a bundle with these members (other times, modes, "
            f"order, or data beside them); {_AGAIN}"
        )
    return members


def _check_members(
    path: Path, infos: list[zipfile.ZipInfo], known: frozenset[str], size: int
) -> None:
    """Raise DataError before anything is read that takes more than the file itself."""
    names = [info.filename for info in infos]
    unknown = sorted(set(names) - known)
    if unknown:
        raise DataError(f"{path}: has the member {quoted(unknown[0])}, which no bundle has")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}: has the member {twice} twice; {_AGAIN}")
    packed = [info.filename for info in infos if info.compress_type != zipfile.ZIP_STORED]
    if packed or sum(info.file_size for info in infos) > size:
        which = packed[0] if packed else "its members"
        raise DataError(f"{path}: {which} would expand; a bundle's members are stored; {_AGAIN}")


def check_bundle(path: Path) -> CheckedBundle:
    """Recompute a bundle's hashes and verdict. Raises DataError where anything differs."""
    members = unzipped(path, REQUIRED | OPTIONAL)
    missing = sorted(REQUIRED - members.keys())
    if missing:
        raise DataError(f"{path}: the member {missing[0]} is missing; bundle the run again")
    bundle = _Bundle(path, members)
    record = bundle.object("run.json")
    tables = bundle.object("tables.json")
    if record.get("fairgate") != __version__:
        raise DataError(
            f"{path}: made by FairGate {quoted(str(record.get('fairgate')))}, and this is "
            f"{__version__}, which words and rounds its own way: verify it with the version that "
            "made it"
        )
    try:
        claimed = statement({k: v for k, v in members.items() if k != STATEMENT}, record)
        bundle.expect(STATEMENT, as_json(claimed), "the other members' hashes and verdict")
        bundle.expect("versions.json", versions_json(record), "run.json and this FairGate")
        policy = bundle.policy()
        bundle.expect("policy.json", policy_json(policy), "policy.yaml")
        found = verdict_input(tables, bundle.rows(), [suite.id for suite in policy.suites])
        result = result_of(
            _gate_input(bundle, policy, found, record), found.tables, found.judged, ()
        )
        computed = json.loads(json.dumps(run_record(result, found.must_match)))
        redacted = tables["redacted"]
        bundle.expect_texts(redacted=redacted)
    except BaselineError as error:
        raise DataError(f"{path}: its rows do not fit its baseline: {error!s:.300}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: its rows are none of a run ({type(error).__name__}: {error!s:.120})"
        ) from error
    first = next(differences(record, computed, redacted=redacted), None)
    if first is not None:
        raise DataError(f"{path}: its rows do not give the verdict that it records: {first}")
    return CheckedBundle(result=result, statement=claimed, redacted=redacted, members=len(members))


def _gate_input(
    bundle: _Bundle, policy: Policy, found: VerdictInput, record: Mapping[str, Any]
) -> GateInput:
    return GateInput(
        policy=policy,
        suites={},
        plan=found.plan,
        must_match=found.must_match,
        baseline=bundle.baseline("baseline.json", policy.name),
        baseline_path=record["baseline"] or "",
        anchor=bundle.baseline("anchor.json", policy.name),
        anchor_path=record["anchor"] or "",
        provenance=Provenance(
            under_test={}, environment={}, fairgate=record["fairgate"], policy_path=""
        ),
    )


class _Bundle:
    """The members of one bundle; every error names the bundle and the member."""

    def __init__(self, path: Path, members: Mapping[str, bytes]) -> None:
        self._path, self._members = path, members

    def expect(self, name: str, data: bytes, source: str) -> None:
        """Raise DataError unless a member is what follows from `source`."""
        if self._members[name] != data:
            raise DataError(f"{self._path}: {name} is not what follows from {source}")

    def expect_texts(self, *, redacted: object) -> None:
        """Raise DataError unless questions and answers are hashes where the tables say so."""
        hashes = {"suite", "key", "sha256"}
        for name in ("plan.jsonl", "executions.jsonl"):
            for line in io.BytesIO(self._members[name]):
                if redacted is not (set(self._json(name, line)) == hashes):
                    raise DataError(f"{self._path}: {name} is not as redacted as tables.json says")
        if redacted and "report.html" in self._members:
            raise DataError(f"{self._path}: has a page, which a redacted bundle has not")

    def object(self, name: str) -> dict[str, Any]:
        value = self._json(name, self._members[name])
        if not isinstance(value, dict):
            raise DataError(f"{self._path}: {name} holds no JSON object")
        return value

    def rows(self) -> Iterator[Any]:
        """Yield the rows one by one: all at once take five times their file."""
        for n, line in enumerate(io.BytesIO(self._members["rows.jsonl"]), start=1):
            yield self._json(f"rows.jsonl:{n}", line)

    def policy(self) -> Policy:
        try:
            text = self._members["policy.yaml"].decode()
            return parse_policy(text, f"{self._path}: policy.yaml", policy_parts()).policy
        except (UnicodeDecodeError, PolicyError) as error:
            raise DataError(f"{self._path}: policy.yaml is no policy: {error!s:.300}") from error

    def baseline(self, name: str, policy: str) -> Baseline | None:
        if name not in self._members:
            return None
        try:
            found = load_baseline(self._members[name].decode(), f"{self._path}: {name}")
        except (UnicodeDecodeError, BaselineError) as error:
            raise DataError(f"{self._path}: {name} is no baseline: {error!s:.300}") from error
        if found.policy != policy:
            raise DataError(f"{self._path}: {name} is of another policy, {found.policy!r:.60}")
        return found

    def _json(self, name: str, data: bytes) -> Any:
        try:
            return read_json(data)
        except JsonError as error:
            raise DataError(f"{self._path}: {name}: {error}") from error


class _MakesByDefault(click.Group):
    """Reads `bundle RUN` as `bundle make RUN`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `make` before a first argument that names neither a command nor an option."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = [_MAKE, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_MakesByDefault, short_help="Put a run into one file that carries its proof.")
def bundle() -> None:
    """Put a finished run into one file that carries its proof, and verify such files.

    `fairgate bundle RUN --out FILE` is short for `fairgate bundle make RUN --out FILE`.
    """


@bundle.command(short_help="Write the bundle of a finished run.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.option("--out", type=_FILE, default="bundle.zip", show_default=True, help="File to write.")
@click.option(
    "--predicate", type=_FILE,
    help="Also write the in-toto predicate alone, for `predicate-path` of actions/attest.",
)  # fmt: skip
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@click.option("--baseline", help="Baseline of the run, or `none`; default: as its record has it.")
@click.option(
    "--redact", is_flag=True,
    help="Hashes instead of prompts, documents and answers, and no page.",
)  # fmt: skip
@runtime_options
def make(run: Path, out: Path, predicate: Path | None, **options: Any) -> int:
    """Write policy, baseline, plan, answers, rows, verdict and hashes of the run in RUN as one zip.

    The run's answers are judged again first; they must give the run's verdict. Equal runs give
    equal bytes. Exits 0 whatever the verdict is.
    """
    from fairgate.io.durable import write_bytes

    runtime = runtime_of(options)
    members = bundle_run(
        run, options["policy"], runtime, options["baseline"], redact=options["redact"]
    )
    write_bytes(out, zipped(members))
    found = read_json(members[STATEMENT])["predicate"]
    if predicate is not None:
        write_bytes(predicate, as_json(found), option="--predicate")
    click.echo(f"{harmless(str(out))}: {len(members)} files, result {found['result']}")
    return ExitCode.PASS


@bundle.command(short_help="Recompute the hashes and the verdict of a bundle.")
@click.argument("file", type=EXISTING_FILE, metavar="FILE")
def verify(file: Path) -> int:
    """Recompute all hashes of the bundle FILE, and its verdict from its rows.

    Exits 0 where the bundle is what it claims, whatever its verdict is, and 4 where it is not.
    Who made a bundle is shown by its attestation alone: `gh attestation verify FILE`.
    """
    found = check_bundle(file)
    result = found.result
    name = harmless(str(file))
    answers = "hashes of answers" if found.redacted else "answers"
    click.echo(
        f"{name}: {found.members} files are as they were written (with {answers})\n"
        f"{name}: {len(result.judged):,} rows and {len(result.rules)} rules give the recorded "
        f"verdict: {result.outcome.value}, exit code {int(result.exit_code)}, "
        f"{found.statement['predicate']['result']}\n"
        f"{name}: not computed again, held by hashes alone: questions, answers and page; of "
        f"run.json {', '.join(sorted(NOT_RECOMPUTED))}; of rows what no value follows from"
    )
    return ExitCode.PASS
