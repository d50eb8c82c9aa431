"""`fairgate record`: what finished runs measured, as a page that a person can date and sign.

Everything comes from the runs' records, from git (the commit that was tested, and when each limit
was written) and from the command line. A record says what was measured, never what that means in
law. Equal runs of equal histories give equal bytes.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import click
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairgate.domain.errors import DataError, ExitCode, FairGateError, UsageError
from fairgate.domain.parity import PARITY, Against
from fairgate.domain.wording import harmless, probability
from fairgate.gate.run_folder import EXECUTIONS, RECORD, TABLE, check_run, run_policy_path
from fairgate.io.durable import PARTS, write_text
from fairgate.io.git import FULL_COMMIT, Repository, keep_output_out_of_git, repository_of
from fairgate.io.tables import read_json_object
from fairgate.metrics.parity import OUTCOMES
from fairgate.policy.definition_files import PERTURBATIONS, embedded_names, load_perturbation_set
from fairgate.policy.yaml_text import YamlDocument, decode_yaml, load_yaml
from fairgate.reports.escaping import excerpt
from fairgate.reports.formats import SCHEMA_VERSION
from fairgate.terminal import options as shared

FORMAT = "fairgate-record/1"
_INSTALLED = "pip install 'fairgate[cpu] @ git+https://github.com/org/fairgate@COMMIT'"
_MOST_CHARACTERS = 1000
_QUESTIONS = {
    Against.CONTROL: "is anybody treated differently, beside control prompts?",
    Against.BASELINE: "has anybody's difference become worse since the baseline?",
    Against.ANCHOR: "has anybody's difference become worse since the anchor?",
    Against.REFERENCE: "does naming somebody move more than with the reference system?",
}
_UNSEEN = """\
Whether answers are right was not tested. Answers are compared with answers: what the system does \
to everybody who asks is equal here, however harmful it is.
Identities are named in words. Names, dialect, places and topics that only hint at them are tested \
where the list of identities has them, and nowhere else.
Identities that stand in no list above were not tested, nor combinations of several (an elderly \
gay man) that do not stand there, nor sources that nobody wrote.
A difference that is smaller than the reach of its row is missed more often than twice in ten.
Whether the sources are like what the system is asked in use was not tested, nor what people do \
with its answers.
Files outside of version control are not seen: whether the working copy was otherwise the commit \
that is named is not known.
""".splitlines()

Text = Annotated[str, Field(max_length=200_000)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Read(BaseModel):
    """A part of `run.json`, of which other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Waived(_Read):
    owner: Text
    reason: Text
    up_to: Number
    expires: Text


class _Rule(_Read):
    metric: Text
    suite: Text
    where: dict[Text, Text]
    gate: int
    outcome: Literal["pass", "fail", "inconclusive", "not-evaluated"]
    reasons: list[Text]
    bounds: dict[Text, Number]
    value: Number | None
    interval: tuple[Number, Number] | None
    advisory: bool
    reported: bool
    waived: _Waived | None = None


class _Named(_Read):
    level: Text
    column: Text
    estimate: Number
    low: Number | None
    high: Number | None
    p: Share
    who: list[Text]


class _Identity(_Read):
    who: Text
    column: Text
    estimate: Number
    low: Number | None
    high: Number | None


class _Parity(_Read):
    suite: Text
    outcome: Text
    against: Against
    p: Share
    named: list[_Named]
    reach: dict[Text, Number | None]
    sources: int
    control_prompts: int
    unjudged: Text
    identities: list[_Identity]


class _Selected(_Read):
    suite: Text
    who: Text
    cut_off: Number
    sources: int
    rate: Share
    interval: tuple[Number, Number] | None
    ratio: Number | None
    ratio_interval: tuple[Number, Number] | None
    highest: Text


class _Measured(_Read):
    metric: Text
    suite: Text
    where: dict[Text, Text]
    decided: int
    inconclusive: int


class _Labelled(_Read):
    right: int = Field(ge=0)
    labelled: int = Field(ge=1)
    interval: tuple[Number, Number]


class _Evidence(_Read):
    planned: int
    decided: int
    problems: list[Text]
    missing: list[Text]
    rejected: list[dict[Text, Any]]


class _Provenance(_Read):
    policy_path: Text
    policy_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    commit: Annotated[str, Field(pattern=f"^(?:{FULL_COMMIT.pattern})$")] | None
    under_test: dict[Text, Text]
    environment: dict[Text, Text]


class _Run(_Read):
    schema_version: int
    fairgate: Text
    policy: Text
    outcome: Literal["pass", "fail", "inconclusive"]
    day: dt.date
    measurements: list[_Measured]
    rules: list[_Rule]
    parity: list[_Parity]
    selection: list[_Selected] = []
    labels: dict[Text, _Labelled] = {}
    evidence: _Evidence
    baseline: Text | None
    notices: list[Text]
    provenance: _Provenance


class Part(BaseModel):
    """A part of a record; fields are documented by its JSON schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Commit(Part):
    """A commit, as git has it."""

    id: str
    date: str = Field(description="Committer date in UTC, YYYY-MM-DD; empty: git does not know it.")
    author: str = Field(description="Name of its author; empty: git does not know it.")


class LimitSet(Part):
    """When a limit was written into the policy."""

    when: Literal["before", "with", "unknown"] = Field(
        description="`before`: in an earlier commit than the one tested; `with`: in that one; "
        "`unknown`: the policy that judged is not in version control as it was, or history lacks."
    )
    commit: Commit | None = Field(description="The newest commit that changed a line of its entry.")
    is_standard: bool = Field(
        description="Whether the policy names no number, so that FairGate's own limit holds."
    )


class Claim(Part):
    """What one rule asked, by which limit, and what was measured."""

    question: str
    rule: str = Field(description="As waivers and `run.json` name it.")
    suite: str
    where: dict[str, str]
    limits: dict[str, float] = Field(description="`max`, `min`, `max_abs`, `regression`, `budget`.")
    limit_set: LimitSet
    outcome: str = Field(description="pass, fail, inconclusive or not-evaluated, by the limit.")
    binding: bool = Field(description="Whether a failure stops a build.")
    sources: int | None
    cases: int | None = Field(description="Decided pairs or items, where the metric counts them.")
    control_prompts: int | None
    who: str = Field(description="Of parity, who is named first; else empty.")
    estimate: float | None
    interval: tuple[float, float] | None
    p: float | None = Field(description='Of "nobody is treated differently", corrected.')
    reach: dict[str, float] = Field(
        description="Least difference that is named eight times of ten, by how many it is about."
    )
    reasons: list[str]
    waived: dict[str, str | float] | None


class Estimate(Part):
    """One identity beside control prompts; a description, no finding by itself."""

    suite: str
    outcome: str
    unit: str
    who: str
    estimate: float
    interval: tuple[float, float] | None


class Selection(Part):
    """How often test scores of one identity reached the cut-off; a description, no finding."""

    suite: str
    who: str
    cut_off: float
    sources: int
    rate: float
    interval: tuple[float, float] | None
    ratio: float | None = Field(description="To the highest rate of its category.")
    ratio_interval: tuple[float, float] | None
    highest: str = Field(description="Whose rate is the highest of the category.")


class TestedRun(Part):
    """One finished run of one policy."""

    policy: str
    policy_path: str
    policy_sha256: str
    policy_in_commit: bool | None = Field(
        description="Whether the policy that judged is the file of the commit; null: not known."
    )
    day: str
    outcome: str = Field(description="pass, fail or inconclusive, by the policy's limits.")
    fairgate: str
    commit: Commit | None
    under_test: dict[str, str] = Field(description="Parts of the system, each with fingerprint.")
    environment: dict[str, str]
    baseline: str | None
    files: dict[str, str] = Field(description="SHA-256 of the run's files.")
    verified: list[str] = Field(description="What was verified, and against what; nothing else.")
    tested: dict[str, list[str]] = Field(description="Identities, by category.")
    not_tested: list[str] = Field(description="Shipped sets of identities that were not asked.")
    sources: dict[str, str] = Field(
        description="Where each suite's texts come from, as the policy names it; empty: not known."
    )
    planned: int
    decided: int
    rejected: int
    missing: int
    claims: list[Claim]
    identities: list[Estimate]
    selection: list[Selection]
    unseen: list[str] = Field(description="What this run could not judge, and why.")
    repeat: list[str] = Field(description="Commands that repeat the run.")


class Record(Part):
    """The record: what was tested, by which limits, and what was measured."""

    format: Literal["fairgate-record/1"] = FORMAT  # type: ignore[assignment]
    date: str = Field(description="Day of the newest run.")
    tested_by: str = Field(description="Who ran the tests; empty: to be filled in by hand.")
    runs: list[TestedRun]
    unseen: list[str] = Field(description="What no reading here sees.")
    since: str = Field(description="Date of the record that changes are told from, or empty.")
    changes: list[str]


@click.command(short_help="Write what runs measured as a record to sign.")
@click.argument("runs", type=shared.EXISTING_FOLDER, nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), multiple=True, required=True,
    help="File to write, `.html` (a page to print and sign) or `.json`; may be repeated.",
)  # fmt: skip
@click.option("--by", default="", help="Who ran the tests (default: a line to fill in).")
@click.option(
    "--since", type=shared.EXISTING_FILE, help="Earlier record (.json): list what changed."
)
@click.option(
    "--policy", type=shared.EXISTING_FILE, multiple=True,
    help="Policy of each RUN, in their order (default: the files that the runs' records name).",
)  # fmt: skip
def record(runs: tuple[Path, ...], out: tuple[Path, ...], **options: Any) -> int:
    """Write one record of the finished runs in the folders RUN.

    It has the system's fingerprints, who was tested and who was not, every limit with the commit
    that set it, what was measured and what was not seen, waivers, and lines to sign.
    """
    if wrong := [path for path in out if path.suffix not in (".html", ".json")]:
        raise UsageError(f"--out {wrong[0]}: expected a name that ends in .html or .json")
    policies: tuple[Path, ...] = options["policy"]
    if policies and len(policies) != len(runs):
        raise UsageError(f"--policy is given {len(policies)} times for {len(runs)} runs")
    given = policies or (None,) * len(runs)
    tested = [_tested(run, policy) for run, policy in zip(runs, given, strict=True)]
    earlier = _earlier(options["since"]) if options["since"] else None
    whole = Record(
        date=max(run.day for run in tested),
        tested_by=_short(options["by"]),
        runs=tested,
        unseen=[*_UNSEEN],
        since=earlier.date if earlier else "",
        changes=[*_changes(earlier, tested)] if earlier else [],
    )
    for path in out:
        text = _json(whole) if path.suffix == ".json" else render_record(whole)
        keep_output_out_of_git(path)
        write_text(path, text)
        click.echo(f"{harmless(str(path))}: {len(tested)} run{'s' * (len(tested) > 1)}")
    return ExitCode.PASS


def _json(whole: Record) -> str:
    return whole.model_dump_json(indent=1, ensure_ascii=True) + "\n"


def _earlier(path: Path) -> Record:
    """Return an earlier record. Raises DataError where the file is none."""
    try:
        return Record.model_validate(read_json_object(path))
    except ValidationError as error:
        raise DataError(
            f"{path}: is no record of this version ({_first(error)}); name the `.json` that "
            "`fairgate record` wrote"
        ) from error


def _first(error: ValidationError) -> str:
    details = error.errors(include_url=False)[0]
    return harmless(f"{'.'.join(map(str, details['loc']))}: {details['msg']}"[:200])


def _tested(folder: Path, policy: Path | None) -> TestedRun:
    """Read a run's record and git's history. Raises DataError where its files were edited."""
    check_run(folder)
    raw = read_json_object(folder / RECORD)
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise DataError(f"{folder / RECORD}: is not of version {SCHEMA_VERSION}: run again")
    try:
        run = _Run.model_validate(raw)
    except ValidationError as error:
        raise DataError(f"{folder / RECORD}: {_first(error)}; run again") from error
    history = _History.of(run.provenance, policy or _own_policy(folder))
    shas = read_json_object(folder / PARTS)["parts"]
    tested = _who(run)
    known = {name: load_perturbation_set(name) for name in embedded_names(PERTURBATIONS)}
    categories = [name for name, group in known.items() if not group.control and name not in tested]
    name = shlex.quote(_short(run.provenance.policy_path))
    return TestedRun(
        policy=_short(run.policy),
        policy_path=_short(run.provenance.policy_path),
        policy_sha256=run.provenance.policy_sha256,
        policy_in_commit=history.is_of_commit,
        day=run.day.isoformat(),
        outcome=run.outcome,
        fairgate=_short(run.fairgate),
        commit=history.commit(run.provenance.commit),
        under_test=_shortened(run.provenance.under_test),
        environment=_shortened(run.provenance.environment),
        baseline=run.baseline and _short(run.baseline),
        files={name: shas[name] for name in (RECORD, EXECUTIONS)},
        verified=[*_verified(run, history)],
        tested=tested,
        not_tested=categories,
        sources=history.sources()
        if run.provenance.policy_sha256
        else {_short(run.policy): _short(run.provenance.policy_path)},
        planned=run.evidence.planned,
        decided=run.evidence.decided,
        rejected=len(run.evidence.rejected),
        missing=len(run.evidence.missing),
        claims=[*_claims(run, history)],
        identities=[*_identities(run)],
        selection=[
            Selection(
                **each.model_dump()
                | {name: _short(getattr(each, name)) for name in ("suite", "who", "highest")}
            )
            for each in run.selection
        ],
        unseen=[_short(text) for text in _unseen(run)],
        repeat=[
            f"git checkout {run.provenance.commit or 'COMMIT'}",
            f"{_INSTALLED} # your fork or copy, at version {_short(run.fairgate)}",
            f"fairgate {'table' if TABLE in run.provenance.under_test else 'run'} {name} --out RUN",
        ],
    )


def _verified(run: _Run, history: _History) -> Iterator[str]:
    """Yield what was compared with what; all else is the run's own word."""
    yield (
        f"{RECORD} and {EXECUTIONS} have the checksums that {PARTS} beside them names. Whoever "
        "edits a file can edit that one too: this shows damage, and proves no origin. Compare the "
        "checksums with those that the job of the run printed or kept."
    )
    commit = run.provenance.commit or ""
    if not commit:
        yield "No commit is named, so that nothing was compared with version control."
    elif history.is_of_commit is None:
        yield f"Commit {commit[:12]} is not in this checkout, so that nothing was compared with it."
    else:
        has = "has" if history.is_of_commit else "does not have"
        yield f"The policy {has} the content that commit {commit[:12]} of this checkout gives it."
    yield (
        "That this commit ran, its answers, figures and outcomes are the run's own word: nothing "
        "was asked or computed again."
    )


def _own_policy(folder: Path) -> Path | None:
    """Return the file of this checkout that the record names; None where it names none of it."""
    try:
        return run_policy_path(folder)
    except FairGateError:
        return None


def _short(text: str) -> str:
    return harmless(excerpt(text, _MOST_CHARACTERS))


def _shortened(facts: Mapping[str, str]) -> dict[str, str]:
    return {_short(name): _short(value) for name, value in facts.items()}


def _who(run: _Run) -> dict[str, list[str]]:
    """Return the identities by category, of parity and of measurements by category and term."""
    persons = [each.who.partition("/") for scan in run.parity for each in scan.identities]
    pairs = [(category, term) for category, _, term in persons]
    pairs += [
        (of.where["category"], of.where["term"])
        for of in run.measurements
        if of.where.keys() >= {"category", "term"}
    ]
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for category, term in pairs:
        found[_short(category)][_short(term)] = None
    for of in run.measurements:  # of question items the categories alone
        if "category" in of.where:
            found[_short(of.where["category"])].update({})
    return {category: [*terms] for category, terms in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """What git says of the policy that judged, at the commit that was tested."""

    tested: str
    repository: Repository | None = None
    is_of_commit: bool | None = None
    document: YamlDocument | None = None
    lines: Mapping[int, str] = field(default_factory=dict)
    """Number of a line, from 1, to the commit that changed it last; "" where history lacks."""

    @classmethod
    def of(cls, provenance: _Provenance, policy: Path | None) -> _History:
        """Ask the checkout that the policy lies in; nothing is known where there is none."""
        commit = provenance.commit or ""
        repository = repository_of(policy.resolve().parent) if policy else None
        if repository is None or policy is None or not commit:
            return cls(tested=commit)
        inside = policy.resolve().relative_to(repository.top).as_posix()
        raw = repository.ask("cat-file", "blob", f"{commit}:{inside}")
        if raw is None:
            is_known = repository.ask("cat-file", "-e", commit) is not None
            return cls(
                tested=commit, repository=repository, is_of_commit=False if is_known else None
            )
        try:
            text = decode_yaml(raw, inside)
        except FairGateError:
            text = ""
        if hashlib.sha256(text.encode()).hexdigest() != provenance.policy_sha256:
            return cls(tested=commit, repository=repository, is_of_commit=False)
        return cls(
            tested=commit,
            repository=repository,
            is_of_commit=True,
            document=load_yaml(text, inside),
            lines=_blamed(repository, commit, inside),
        )

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
        return Commit(id=name, date=day, author=_short(author))

    def sources(self) -> dict[str, str]:
        """Return the sources of texts that the policy names, by suite."""
        data = self.document.data if self.document else None
        suites = data.get("suites") if isinstance(data, dict) else None
        listed = [each for each in suites if isinstance(each, dict)] if suites else []
        return {
            _short(str(each.get("id"))): _short(str(each.get("sources", each.get("items", ""))))
            for each in listed
        }

    def limit(self, gate: int, bounds: Mapping[str, float]) -> LimitSet:
        """Say when the entry of `gates` was last changed."""
        document = self.document
        if document is None:
            return LimitSet(when="unknown", commit=None, is_standard=False)
        data = document.data if isinstance(document.data, dict) else {}
        gates = data.get("gates")
        entry = gates[gate] if isinstance(gates, list) and gate < len(gates) else None
        is_standard = not (isinstance(entry, dict) and entry.keys() & bounds.keys())
        # Without `gates` the limits are those of the policy as a whole.
        within: tuple[str | int, ...] = () if entry is None else ("gates", gate)
        marks = {
            mark[0] for place, mark in document.marks.items() if place[: len(within)] == within
        }
        changed = {self.lines.get(line, "") for line in marks}
        if not changed or "" in changed:
            return LimitSet(when="unknown", commit=None, is_standard=is_standard)
        commits = [self.commit(name) for name in sorted(changed)]
        newest = max((each for each in commits if each), key=lambda each: (each.date, each.id))
        if self.tested in changed:
            return LimitSet(when="with", commit=self.commit(self.tested), is_standard=is_standard)
        return LimitSet(when="before", commit=newest, is_standard=is_standard)


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


def _claims(run: _Run, history: _History) -> Iterator[Claim]:
    """Yield what each rule asked and what came of it, in the order of the run."""
    scans: defaultdict[tuple[str, str], list[_Parity]] = defaultdict(list)
    for scan in run.parity:
        since = "" if scan.against is Against.CONTROL else f"/{scan.against}"
        scans[scan.suite, f"{PARITY}{scan.outcome}{since}"].append(scan)
    counted = {
        (each.metric, each.suite, tuple(sorted(each.where.items()))): each
        for each in run.measurements
    }
    for rule in run.rules:
        own = scans[rule.suite, rule.metric]
        scan_of = own.pop(0) if own else None
        first = scan_of.named[0] if scan_of and scan_of.named else None
        measured = counted.get((rule.metric, rule.suite, tuple(sorted(rule.where.items()))))
        ends = (first.low, first.high) if first else rule.interval
        yield Claim(
            question=_question(rule, scan_of),
            rule=_short(rule.metric),
            suite=_short(rule.suite),
            where=_shortened(rule.where),
            limits={_short(name): value for name, value in rule.bounds.items()},
            limit_set=history.limit(rule.gate, rule.bounds),
            outcome=rule.outcome,
            binding=not (rule.advisory or rule.reported),
            sources=scan_of.sources or None if scan_of else None,
            cases=measured.decided if measured else None,
            control_prompts=scan_of.control_prompts or None if scan_of else None,
            who=_person(first) if first else "",
            estimate=first.estimate if first else rule.value,
            interval=_ends(ends),
            p=scan_of.p if scan_of and rule.outcome != "not-evaluated" else None,
            reach={
                _short(level): least
                for level, least in (scan_of.reach if scan_of else {}).items()
                if least is not None
            },
            reasons=[_short(reason) for reason in rule.reasons],
            waived=_waived(rule.waived),
        )  # fmt: skip


def _waived(waiver: _Waived | None) -> dict[str, str | float] | None:
    if waiver is None:
        return None
    words = {name: _short(getattr(waiver, name)) for name in ("owner", "reason", "expires")}
    return {**words, "up_to": waiver.up_to}


def _ends(ends: tuple[float | None, float | None] | None) -> tuple[float, float] | None:
    return None if ends is None or ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _person(node: _Named) -> str:
    return _short(node.who[0] if node.level == "identity" and node.who else node.level) + (
        f" ({_short(', '.join(node.who))})" if node.level == "category" else ""
    )


def _question(rule: _Rule, scan: _Parity | None) -> str:
    if scan is not None:
        return f"{_short(scan.outcome)}: {_QUESTIONS[scan.against]}"
    return f"{_short(rule.metric)}: is its value within the limit?"


def _identities(run: _Run) -> Iterator[Estimate]:
    """Yield every identity's difference from control prompts, now."""
    columns = {
        column.column: (f"{outcome.noun} {column.event}", column.unit)
        for outcome in OUTCOMES
        for column in outcome.columns
    }
    for scan in run.parity:
        if scan.against is not Against.CONTROL:
            continue
        for each in scan.identities:
            named = f"{_short(scan.outcome)}, {_short(each.column)}"
            outcome, unit = columns.get(each.column, (named, "share"))
            yield Estimate(
                suite=_short(scan.suite),
                outcome=outcome,
                unit=unit,
                who=_short(each.who),
                estimate=each.estimate,
                interval=_ends((each.low, each.high)),
            )


def _unseen(run: _Run) -> Iterator[str]:
    """Yield what this run could not judge."""
    yield from (f"No verdict: {text}" for text in run.evidence.problems)
    for scan in run.parity:
        if scan.unjudged:
            yield f"{scan.suite}, {scan.outcome}: {scan.unjudged}"
    if undecided := run.evidence.planned - run.evidence.decided:
        yield f"{undecided:,} of {run.evidence.planned:,} cases were not decided."
    if run.baseline is None:
        yield "No baseline was compared with: whether anybody is treated worse than before is open."
    for suite, precision in run.labels.items():
        low, high = (100 * end for end in precision.interval)
        yield (
            f"{suite}: of {precision.labelled:,} reported differences that people looked at, they "
            f"call {precision.right:,} read right ({low:.0f} to {high:.0f} %); others may be read "
            "wrong."
        )
    if not run.labels:
        yield "Nobody has labelled cases: how many reported differences are read wrong is open."
    yield from run.notices


def _changes(earlier: Record, runs: Sequence[TestedRun]) -> Iterator[str]:
    """Yield what differs from an earlier record, run by run (by policy and path)."""

    def by_name(tested: Sequence[TestedRun]) -> dict[str, TestedRun]:
        return {f"{run.policy} ({run.policy_path})": run for run in tested}

    then, now = by_name(earlier.runs), by_name(runs)
    for name in {**then, **now}:
        if name not in then or name not in now:
            yield f"{name}: {'is new' if name in now else 'is no longer tested'}"
            continue
        yield from (f"{name}: {what}" for what in _differences(then[name], now[name]))


def _differences(then: TestedRun, now: TestedRun) -> Iterator[str]:
    for name_of in ("outcome", "fairgate", "policy_sha256"):
        before, after = getattr(then, name_of), getattr(now, name_of)
        if before != after:
            yield f"{name_of}: {before} → {after}"
    for part in {**then.under_test, **now.under_test}:
        before, after = (side.under_test.get(part, "none") for side in (then, now))
        if before != after:
            yield f"system, {part}: {before} → {after}"
    persons = [
        {f"{category}/{term}" for category, terms in side.tested.items() for term in terms}
        for side in (then, now)
    ]
    for change, left in (("no longer", persons[0] - persons[1]), ("now", persons[1] - persons[0])):
        if left:
            yield f"{change} tested: {', '.join(sorted(left))}"
    claims = [
        {f"{c.rule} in {c.suite} {c.where or ''}".strip(): c for c in side.claims}
        for side in (then, now)
    ]
    for name in {**claims[0], **claims[1]}:
        old, new = (side.get(name) for side in claims)
        if old is None or new is None:
            yield f"{name}: {'asked anew' if new else 'no longer asked'}"
            continue
        for name_of in ("limits", "outcome", "estimate"):
            before, after = getattr(old, name_of), getattr(new, name_of)
            if before != after:
                yield f"{name}, {name_of}: {_told(before)} → {_told(after)}"


def _told(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {limit:g}" for name, limit in value.items()) or "none"
    return "none" if value is None else str(value)


def render_record(whole: Record) -> str:
    """Return the record as a page that needs nothing else and runs nothing."""
    import jinja2
    import markupsafe

    style = resources.files(__package__).joinpath("record.css").read_text("utf-8")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "."),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        finalize=lambda value: harmless(value) if type(value) is str else value,
    )  # fmt: skip
    environment.filters.update(
        points=_points, probability=lambda p: "" if p is None else probability(p)
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("record.html.j2").render(
        record=whole,
        digest=hashlib.sha256(_json(whole).encode()).hexdigest(),
        style=markupsafe.Markup(style),  # noqa: S704 (our own file)
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
    )


def _points(value: float | None, times: int = 100) -> str:
    """Return a fraction in points, a score as it is."""
    return "–" if value is None or not math.isfinite(value) else f"{times * value:.1f}"
