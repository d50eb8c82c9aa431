"""`fairgate record`: what finished runs measured, as a page that a person can date and sign.

Everything comes from the runs' records, from git (the commit that was tested, and when each limit
was written) and from the command line. A record says what was measured, never what that means in
law. Equal runs of equal histories give equal bytes. Every text of a run is cut and made harmless as
it is read.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fairgate.domain.errors import DataError, ExitCode, FairGateError, UsageError
from fairgate.domain.parity import SCORE, Against, Level, rule_name
from fairgate.domain.units import Reason, counted
from fairgate.domain.wording import MINUS, harmless, in_own_unit, probability
from fairgate.features.record import words
from fairgate.gate.run_folder import EXECUTIONS, RECORD, TABLE, check_run, run_policy_path
from fairgate.io.durable import PARTS, write_text
from fairgate.io.git import FULL_COMMIT, Repository, keep_output_out_of_git, repository_of
from fairgate.io.tables import file_sha256, read_json_object
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.parity import OUTCOMES, OVERLAP, RULES, SCORES, OutcomeColumn
from fairgate.policy.definition_files import PERTURBATIONS, embedded_names, load_perturbation_set
from fairgate.policy.yaml_text import YamlDocument, YamlPath, decode_yaml, load_yaml
from fairgate.reports.escaping import excerpt
from fairgate.reports.formats import SCHEMA_VERSION
from fairgate.terminal import options as shared

if TYPE_CHECKING:
    import markupsafe

FORMAT = "fairgate-record/1"
_MOST_CHARACTERS = 1000
_MOST_LISTED = 3
_MOST_OF_VALUE = 60
_LEAST_TENTH = 0.05
"""Points that a tenth still shows; smaller ones have one digit."""
FOUR_FIFTHS = 0.8
"""Impact ratios below it are marked, because people ask for that; nothing fails by it."""


def _short(text: str) -> str:
    return harmless(excerpt(text, _MOST_CHARACTERS))


Text = Annotated[str, Field(max_length=200_000), AfterValidator(_short)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
KnownOutcome = Annotated[str, Field(pattern=f"^({'|'.join(each.id for each in OUTCOMES)})$")]


class _Read(BaseModel):
    """A part of `run.json`, of which other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Waived(_Read):
    owner: Text
    reason: Text
    up_to: Number = Field(description="Largest difference that it covers, in the claim's unit.")
    expires: Text


class _Change(_Read):
    base: Number | None
    margin: Number
    p_corrected: Share
    method: Text


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
    change: _Change | None
    since_anchor: _Change | None
    waived: _Waived | None = None


class _Estimate(_Read):
    column: Text
    estimate: Number
    low: Number | None
    high: Number | None
    rate: Number | None
    control: Number | None


class _Named(_Estimate):
    level: Level
    p: Share
    before: Number | None
    control_before: Number | None
    by_phrase: dict[Text, Number]
    who: list[Text]


class _Identity(_Estimate):
    who: Text


class _Parity(_Read):
    suite: Text
    outcome: KnownOutcome
    against: Against
    p: Share
    alpha: Share
    named: list[_Named]
    reach: dict[Text, Number | None]
    sources: int
    control_prompts: int
    unjudged: Text
    identities: list[_Identity]

    @property
    def beside(self) -> str:
        """What identities are compared with."""
        return "control prompts" if self.control_prompts else "the other identities"

    @property
    def is_now(self) -> bool:
        """Whether differences count in both directions: since an accepted run only worse ones."""
        return self.against in (Against.CONTROL, Against.REFERENCE)


class _Selected(_Read):
    suite: Text
    who: Text
    cut_off: Number
    sources: int
    rate: Share
    interval: tuple[Number, Number] | None
    ratio: Number | None = Field(description="To the highest rate of its category.")
    ratio_interval: tuple[Number, Number] | None
    control: Share | None = Field(description="Rate of the control prompts.")


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


class _Rejected(_Read):
    reason: Text = ""


class _Evidence(_Read):
    planned: int
    decided: int
    undecided: dict[Reason, int]
    problems: list[Text]
    rejected: list[_Rejected]


class _Origin(_Read):
    policy_path: Text
    policy_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    under_test: dict[Text, Text] = Field(description="Parts of the system, with fingerprints.")
    environment: dict[Text, Text]


class _Provenance(_Origin):
    commit: Annotated[str, Field(pattern=f"^(?:{FULL_COMMIT.pattern})$")] | None


class _Verdict(_Read):
    fairgate: Text
    policy: Text
    outcome: Literal["pass", "fail", "inconclusive"] = Field(description="By the policy's limits.")
    confidence: Share = Field(description="Level of ranges that no scan gives.")
    notices: list[Text] = Field(description="What the run itself remarks.")


class _Run(_Verdict):
    schema_version: int
    regression_level: Share
    day: dt.date
    measurements: list[_Measured]
    rules: list[_Rule]
    parity: list[_Parity]
    selection: list[_Selected] = []
    labels: dict[Text, _Labelled] = {}
    evidence: _Evidence
    baseline: Text | None
    accepted: dict[Text, Text | None] | None
    answers: dict[Literal["asked", "stored"], int] | None = None
    fingerprint: dict[Text, dict[Text, Text]]
    provenance: _Provenance

    @property
    def is_table(self) -> bool:
        """Whether the answers were read from a table, so that there is no policy file."""
        return TABLE in self.provenance.under_test


class Part(BaseModel):
    """A part of a record; fields are documented by its JSON schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Commit(Part):
    """A commit, as git has it."""

    id: str
    date: str = Field(description="Committer date in UTC, YYYY-MM-DD; empty: git does not know it.")
    author: str = Field(description="Name of its author; empty: git does not know it.")


class Written(Part):
    """When an entry of the policy was written."""

    when: Literal["before", "with", "unknown"] = Field(
        description="`before`: in an earlier commit than the one tested; `with`: in that one."
    )
    commit: Commit | None = Field(description="The newest commit that changed a line of its entry.")
    why: str = Field(description="Why it is not known; empty where it is.")


class Waived(_Waived, Part):
    """What keeps a failure from stopping a build."""

    written: Written


Unit = Literal["points", "score", "value"]


class Difference(Part):
    """Somebody beside what they are compared with; of the annex no finding by itself."""

    suite: str
    who: str
    outcome: str = Field(description="What a positive difference means.")
    unit: Unit = Field(description="`points`: numbers here are fractions, 0.01 is a point.")
    scale: str
    estimate: float
    interval: tuple[float, float] | None
    level: float = Field(description="Of the range, whose ends hold at once for the whole scan.")
    mean: float | None = Field(description="Their own.")
    beside: str
    beside_mean: float | None
    before: float | None = Field(description="Their own mean in the accepted run.")
    beside_before: float | None
    p: float | None
    phrases: dict[str, float] = Field(description="Phrases that name one identity: differences.")


class Claim(Part):
    """What one rule asked, by which limit, and what was measured."""

    question: str
    rule: str = Field(description="As waivers and `run.json` name it.")
    suite: str
    where: dict[str, str]
    unit: Unit
    scale: str
    limits: dict[str, float] = Field(description="`max`, `min`, `max_abs`, `regression`, `budget`.")
    is_standard: bool | None = Field(
        description="Whether the policy names no number, so that FairGate's own limit holds."
    )
    standard: float | None = Field(default=None, description="FairGate's own limit, of parity.")
    limit_set: Written
    outcome: str = Field(description="pass, fail, inconclusive or not-evaluated, by the limit.")
    binding: bool = Field(description="Whether a failure stops a build.")
    counts: dict[str, int] = Field(description="`sources`, `identities`, …; empty: none.")
    named: list[Difference] = Field(
        default=[], description="Of parity, who is named, the clearest first."
    )
    value: float | None = Field(default=None, description="Of metrics, of the suite or the slice.")
    interval: tuple[float, float] | None = None
    base: float | None = Field(default=None, description="Of metrics, in the accepted run.")
    test: str
    level: float | None
    p: float | None = Field(description='Of "nobody is treated differently", corrected.')
    reach: dict[str, float] = Field(default={}, description="By how many it is about.")
    missed: str = Field(description="What the reach means beside the limit.")
    decides: str = Field(description="What made it pass, fail, or neither.")
    reasons: list[str]
    waived: Waived | None


class Selection(_Selected, Part):
    """How often test scores of one identity reached the cut-off; a description, no finding."""

    selected: float = Field(description="Of `sources`; of several phrases their mean.")
    below_four_fifths: bool = Field(description="A mark, no verdict.")
    highest: list[str] = Field(description="Whose rates are the highest of the category.")
    level: float = Field(description="Of each range by itself.")


class Texts(Part):
    """Where a suite's texts come from."""

    name: str = Field(description="As the policy names it.")
    sources: int | None
    sha256: str = Field(description="Of the file in the commit tested; empty: it has none.")


class TestedRun(_Verdict, _Origin, Part):
    """One finished run of one policy."""

    is_table: bool = Field(description="Whether answers were read from a table.")
    policy_in_commit: bool | None = Field(
        description="Whether the policy that judged is the file of the commit; null: not known."
    )
    day: str
    commit: Commit | None
    baseline: dict[str, str] = Field(
        description="`path`, `date`, `fairgate`, `commit`, `sha256` of the accepted run; or none."
    )
    files: dict[str, str] = Field(description="SHA-256 of the run's files.")
    verified: str = Field(description="What the policy was compared with.")
    tested: dict[str, list[str]] = Field(description="Identities, by category.")
    not_tested: list[str] = Field(description="Shipped sets of identities that were not asked.")
    texts: dict[str, Texts] = Field(description="By suite.")
    planned: int
    decided: int
    undecided: dict[str, int] = Field(
        description="Reason to cases: with `decided` they add up to `planned`."
    )
    rejected: dict[str, int] = Field(description="Reason to cases that were not asked.")
    answers: str = Field(description="How many answers were asked for, and why so many.")
    claims: list[Claim]
    identities: list[Difference]
    selection: list[Selection]
    unseen: list[str] = Field(description="What this run could not judge, and why.")
    repeat: list[str] = Field(description="Commands that repeat the run.")


class Record(Part):
    """The record: what was tested, by which limits, and what was measured."""

    format: Literal["fairgate-record/1"] = FORMAT  # type: ignore[assignment]
    date: str = Field(description="Day of the newest run.")
    tested_by: str = Field(description="Who ran the tests; empty: to be filled in by hand.")
    runs: list[TestedRun]
    terms: dict[str, str] = Field(description="Words, as they are meant here.")
    counted: dict[str, str] = Field(description="Of differences, what each outcome counts.")
    unseen: list[str] = Field(description="What no reading here sees.")
    verified: list[str] = Field(description="What was verified of every run; nothing else.")
    since: dict[str, str] = Field(
        description="`date`, and `sha256` of the JSON, of the record that changes are told from."
    )
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
    since = options["since"]
    earlier = _earlier(since) if since else None
    whole = Record(
        date=max(run.day for run, _ in tested),
        tested_by=_short(options["by"]),
        runs=[run for run, _ in tested],
        terms=dict(words.TERMS),
        counted=_counted(run for run, _ in tested),
        unseen=words.UNSEEN,
        verified=[*words.VERIFIED],
        since={"date": earlier.date, "sha256": file_sha256(str(since))} if earlier else {},
        changes=[_short(text) for text in _changes(earlier, tested)] if earlier else [],
    )
    for path in out:
        text = _json(whole) if path.suffix == ".json" else render_record(whole)
        keep_output_out_of_git(path)
        write_text(path, text)
        click.echo(f"{harmless(str(path))}: {len(tested)} run{'s' * (len(tested) > 1)}")
    return ExitCode.PASS


def _counted(runs: Iterable[TestedRun]) -> dict[str, str]:
    """Return, in words, the count of each outcome that differs in some run."""
    compared = {each.outcome for run in runs for each in run.identities}
    return {
        event: words.COUNTED.get(column.column, ("", f"the answers {column.event}"))[1]
        for outcome in OUTCOMES
        for column in outcome.columns
        if (event := f"{outcome.noun} {column.event}") in compared
    }


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


def _tested(folder: Path, policy: Path | None) -> tuple[TestedRun, _History]:
    """Read a run's record and git's history. Raises DataError where its files were edited."""
    check_run(folder)
    raw = read_json_object(folder / RECORD)
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise DataError(f"{folder / RECORD}: is not of version {SCHEMA_VERSION}: run again")
    try:
        run = _Run.model_validate(raw)
    except ValidationError as error:
        raise DataError(f"{folder / RECORD}: {_first(error)}; run again") from error
    history = _History.of(run, policy or _own_policy(folder))
    shas = read_json_object(folder / PARTS)["parts"]
    tested = _who(run)
    known = {name: load_perturbation_set(name) for name in embedded_names(PERTURBATIONS)}
    categories = [name for name, group in known.items() if not group.control and name not in tested]
    evidence = run.evidence
    tested_run = TestedRun(
        **run.model_dump(include=set(_Verdict.model_fields)),
        **run.provenance.model_dump(exclude={"commit"}),
        is_table=run.is_table,
        policy_in_commit=history.is_of_commit,
        day=run.day.isoformat(),
        commit=history.commit(run.provenance.commit),
        baseline={"path": run.baseline, **{name: fact or "" for name, fact in run.accepted.items()}}
        if run.baseline and run.accepted
        else {},
        files={name: shas[name] for name in (RECORD, EXECUTIONS)}
        | {PARTS: file_sha256(str(folder / PARTS))},
        verified=_verified(run, history),
        tested=tested,
        not_tested=categories,
        texts=_texts(run, history),
        planned=evidence.planned,
        decided=evidence.decided,
        undecided={
            counted({reason: number}).partition(" ")[2]: number
            for reason, number in evidence.undecided.items()
        },
        rejected=dict(Counter(each.reason for each in evidence.rejected)),
        answers=_answers(run),
        claims=[*_claims(run, history)],
        identities=[
            _difference(run, scan, each)
            for scan in run.parity
            for each in scan.identities
            if scan.against is Against.CONTROL
        ],
        selection=[*_selections(run)],
        unseen=[*_unseen(run)],
        repeat=[*_repeat(run)],
    )
    return tested_run, history


def _texts(run: _Run, history: _History) -> dict[str, Texts]:
    """Return by suite where its texts come from, and how many sources a scan had of them."""
    named = history.sources()
    sources: dict[str, int] = {}
    for scan in run.parity:
        sources[scan.suite] = max(scan.sources, sources.get(scan.suite, 0))
    suites = dict.fromkeys([*run.fingerprint, *named])
    path = run.provenance.policy_path if run.is_table else ""
    return {
        _short(suite): Texts(
            name=_short(named.get(suite, path)),
            sources=sources.get(suite) or None,
            sha256=history.sha256(named.get(suite, "")),
        )
        for suite in suites
    }


def _answers(run: _Run) -> str:
    """Say how many answers there are, and why more than cases."""
    if run.is_table:
        return "none asked for: they were read from the table; it does not say when they were given"
    if run.answers is None:
        return "not known: a run tells it only of a system that is asked from outside"
    asked, stored = run.answers["asked"], run.answers["stored"]
    counts = f"{asked:,} asked for in this run, {stored:,} from the store"
    if more := asked + stored - run.evidence.planned:
        why = "each source is asked as it stands, too" if more > 0 else "equal texts are asked once"
        counts += f"; {abs(more):,} {'more' if more > 0 else 'fewer'} than cases: {why}"
    return counts


def _repeat(run: _Run) -> Iterator[str]:
    """Yield the commands that repeat the run, with nothing in them that is not known."""
    name = shlex.quote(run.provenance.policy_path)
    if run.provenance.commit:
        yield f"git checkout {run.provenance.commit}"
    if not run.is_table:
        yield f"fairgate run {name} --out repeated"
        return
    asked = {rule.bounds["max"] for rule in run.rules if rule.gate and "max" in rule.bounds}
    limits = [f"--limit {limit:g}" for limit in sorted(asked)]
    cut_offs = {f"--selected-from {each.cut_off:g}": None for each in run.selection}
    columns = {each.column for scan in run.parity for each in scan.identities}
    better = ["--better lower"] * (SCORES[1] in columns)
    yield " ".join(["fairgate table", name, *limits, *better, *cut_offs, "--out repeated"])


def _verified(run: _Run, history: _History) -> str:
    """Say what the policy was compared with; all else is the run's own word."""
    commit = run.provenance.commit or ""
    if not commit:
        return "No commit is named, so that nothing was compared with version control."
    if history.is_of_commit is None:
        return (
            f"Commit {commit[:12]} is not in this checkout, so that nothing was compared with it."
        )
    has = "has" if history.is_of_commit else "does not have"
    return f"The policy {has} the content that commit {commit[:12]} of this checkout gives it."


def _own_policy(folder: Path) -> Path | None:
    """Return the file of this checkout that the record names; None where it names none of it."""
    try:
        return run_policy_path(folder)
    except FairGateError:
        return None


def _who(run: _Run) -> dict[str, list[str]]:
    """Return the identities by category, of parity and of measurements by category and term."""
    persons = [each.who.partition("/") for scan in run.parity for each in scan.identities]
    pairs = [(category, term) for category, _, term in persons]
    pairs += [
        (measured.where["category"], measured.where["term"])
        for measured in run.measurements
        if measured.where.keys() >= {"category", "term"}
    ]
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for category, term in pairs:
        found[category][term] = None
    for measured in run.measurements:  # of question items the categories alone
        if "category" in measured.where:
            found[measured.where["category"]].update({})
    return {category: [*terms] for category, terms in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
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
    def of(cls, run: _Run, policy: Path | None) -> _History:
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
        return Commit(id=name, date=day, author=_short(author))

    def sources(self) -> dict[str, str]:
        """Return the sources of texts that the policy names, by suite."""
        suites = self.data.get("suites")
        listed = [each for each in suites if isinstance(each, dict)] if suites else []
        return {
            str(each.get("id")): str(each.get("sources", each.get("items", ""))) for each in listed
        }

    def limit(self, rule: _Rule) -> tuple[Mapping[str, Any] | None, Written]:
        """Return the entry of `gates` that a rule is of, and when it was last changed."""
        if self.document is None:
            return None, self.written(())
        gates = self.data.get("gates")
        entry = gates[rule.gate] if isinstance(gates, list) and rule.gate < len(gates) else None
        if not isinstance(entry, dict):
            # Without `gates` the limits are those of the policy as a whole.
            return {}, self.written(())
        return entry, self.written(("gates", rule.gate))

    def waiver(self, rule: _Rule, waived: _Waived) -> Written:
        """Say when a waiver was last changed."""
        keys = {"rule": rule.metric, **waived.model_dump()}
        for index, entry in enumerate(self.data.get("waivers") or ()):
            written = entry.items() if isinstance(entry, dict) else ()
            known = {
                key: _short(value) if isinstance(value, str) else value for key, value in written
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


def _claims(run: _Run, history: _History) -> Iterator[Claim]:
    """Yield what each rule asked and what came of it, in the order of the run."""
    scans: defaultdict[tuple[str, str], list[_Parity]] = defaultdict(list)
    for scan in run.parity:
        scans[scan.suite, rule_name(scan.outcome, scan.against)].append(scan)
    measured = {
        (each.metric, each.suite, tuple(sorted(each.where.items()))): each
        for each in run.measurements
    }
    for rule in run.rules:
        own = scans[rule.suite, rule.metric]
        entry, written = history.limit(rule)
        limits = dict(rule.bounds)
        if own:
            claim = _parity_claim(run, rule, own.pop(0))
        else:
            where = tuple(sorted(rule.where.items()))
            claim = _metric_claim(run, rule, measured.get((rule.metric, rule.suite, where)))
            # What compares with an accepted run is no bound, nor told before there is one.
            for name, change in (("regression", rule.change), ("budget", rule.since_anchor)):
                most = change.margin if change else (entry or {}).get(name)
                if isinstance(most, int | float) and not isinstance(most, bool):
                    limits[name] = most
        waived = rule.waived
        yield Claim(
            rule=rule.metric,
            suite=rule.suite,
            where=rule.where,
            limits=limits,
            is_standard=None if entry is None else not entry.keys() & rule.bounds.keys(),
            limit_set=written,
            outcome=rule.outcome,
            binding=not (rule.advisory or rule.reported),
            reasons=rule.reasons,
            waived=None
            if waived is None
            else Waived(**waived.model_dump(), written=history.waiver(rule, waived)),
            **claim,
        )


def _parity_claim(run: _Run, rule: _Rule, scan: _Parity) -> dict[str, Any]:
    """Return the members that a question about an outcome adds to its claim."""
    outcome = RULES[rule.metric][0]
    unit, scale = _unit(run, scan, outcome.columns[0].column)
    limit = next(iter(rule.bounds.values()), None)
    people = len({each.who for each in scan.identities})
    counts = {
        "sources": scan.sources, "identities": people, "control prompts": scan.control_prompts
    }  # fmt: skip
    reach = {level: least for level, least in scan.reach.items() if least is not None}
    return {
        "question": f"{scan.outcome}: {words.QUESTIONS[scan.against]}",
        "unit": unit,
        "scale": scale,
        "standard": outcome.max if scan.is_now else outcome.regression,
        "counts": counts if scan.sources else {},
        "named": [_difference(run, scan, each) for each in scan.named],
        "test": words.TESTS[scan.against],
        "level": scan.alpha,
        "p": None if rule.outcome == "not-evaluated" else scan.p,
        "reach": reach,
        "missed": _missed(rule, scan, reach, limit),
        "decides": _decides(rule, scan, unit, limit),
    }


def _metric_claim(run: _Run, rule: _Rule, measured: _Measured | None) -> dict[str, Any]:
    """Return the members that a rule about a metric adds to its claim."""
    metric = BY_ID.get(rule.metric)
    first = rule.change or rule.since_anchor
    unit: Unit = "points" if metric and metric.is_rate else "value"
    counts = {"cases": measured.decided, "not decided": measured.inconclusive} if measured else {}
    scale = "not known: FairGate has no such metric"
    if metric is not None:
        ends = f"{_size(metric.least, unit)} to {_size(metric.greatest, unit)}"
        scale = f"{'points: hundredths' if metric.is_rate else 'its own unit'}, {ends}"
        scale += f"; {metric.better} is better"
    return {
        "question": f"{metric.title if metric else rule.metric}: is it within the limit?",
        "unit": unit,
        "scale": scale,
        "counts": counts,
        "value": rule.value,
        "interval": rule.interval,
        "base": first.base if first else None,
        "test": f"{first.method}, against the accepted run" if first else words.NO_TEST,
        "level": run.regression_level if first else None,
        "p": first.p_corrected if first else None,
        "missed": "none: only a scan has a reach",
        "decides": "; ".join(rule.reasons),
    }


def _unit(run: _Run, scan: _Parity, column: str) -> tuple[Unit, str]:
    """Return the unit of a column's figures, and in words what it is and its scale."""
    if scan.outcome == SCORE:
        oracle = run.fingerprint.get(scan.suite, {}).get("oracle", "")
        ends = re.search(r"score \d+ ([-+.\d]+) to ([-+.\d]+)", oracle)
        scale = f"{ends[1]} to {ends[2]}" if ends else "not known: no policy or table states one"
        return "score", f"score, as the answers give it; scale {scale}"
    noun = words.COUNTED.get(column, ("answers", ""))[0]
    return "points", f"points: hundredths of {noun}, -100 to 100"


def _missed(rule: _Rule, scan: _Parity, reach: Mapping[str, float], limit: float | None) -> str:
    """Say what the reach means beside the limit."""
    if not reach:
        if scan.sources and not scan.unjudged and rule.outcome != "not-evaluated":
            return "not known: within no source is there a difference that could be noise"
        why = scan.unjudged or "; ".join(rule.reasons)
        return f"not known: {why}"
    wide = [level for level, least in reach.items() if limit is not None and least > limit]
    if not limit:
        return "the limit is 0: what is smaller than the reach can pass unseen"
    if not wide:
        return "each is below the limit"
    who = ", ".join(level if level == Level.EVERYBODY else f"one {level}" for level in wide)
    return f"a difference of the size of the limit is missed more than twice in ten for {who}"


def _decides(rule: _Rule, scan: _Parity, unit: Unit, limit: float | None) -> str:
    """Say what made a question pass or fail, or neither."""
    if rule.outcome in ("not-evaluated", "inconclusive") or limit is None:
        return "; ".join(rule.reasons)
    key = next(iter(rule.bounds))

    def is_beyond(estimate: float) -> bool:
        return (abs(estimate) if scan.is_now else estimate) > limit

    named = [
        f"{_person(node)} {_size(node.estimate, unit)} is "
        f"{'above' if is_beyond(node.estimate) else 'within'} it"
        for node in scan.named
    ]
    text = f"`{key}` applies to those whom the scan names: {', '.join(named) or 'nobody'}"
    by_itself = {node.who[0] for node in scan.named if node.level == Level.IDENTITY and node.who}
    unnamed = {
        each.who: f"{each.who} {_size(each.estimate, unit)}"
        for each in sorted(scan.identities, key=lambda each: -abs(each.estimate))
        if is_beyond(each.estimate) and each.who not in by_itself
    }
    if unnamed:
        listed_first = ", ".join([*unnamed.values()][:_MOST_LISTED])
        more = f" and {len(unnamed) - _MOST_LISTED} more" * (len(unnamed) > _MOST_LISTED)
        text += (
            f". Larger than it, and not named: {listed_first}{more}; beyond who is named, the scan "
            "does not tell them from chance and wording"
        )
    return text


def _difference(run: _Run, scan: _Parity, each: _Named | _Identity) -> Difference:
    """Return somebody beside what they are compared with."""
    outcome = RULES[rule_name(scan.outcome, scan.against)][0]
    column = outcome.by_column.get(each.column)
    unit, scale = _unit(run, scan, each.column)
    node = each if isinstance(each, _Named) else None
    event = f"{outcome.noun} {column.event}" if column else each.column
    if scan.against is not Against.CONTROL:
        event += f", beside the {scan.against}"

    def mean(value: float | None) -> float | None:
        return None if value is None or column is None else _as_counted(value, column)

    return Difference(
        suite=scan.suite,
        who=_person(each),
        outcome=event,
        unit=unit,
        scale=scale,
        estimate=each.estimate,
        interval=_ends((each.low, each.high)),
        level=round(1 - scan.alpha, 6),
        mean=mean(each.rate),
        beside=scan.beside,
        beside_mean=mean(each.control),
        before=mean(node.before) if node else None,
        beside_before=mean(node.control_before) if node else None,
        p=node.p if node else None,
        phrases=node.by_phrase if node else {},
    )


def _as_counted(value: float, column: OutcomeColumn) -> float:
    """Return a mean in the column's own sense: a score as it was given, documents as lost."""
    return round(1 + value, 6) if column.column == OVERLAP else column.shown(value)


def _person(node: _Named | _Identity) -> str:
    if isinstance(node, _Identity):
        return node.who
    if node.level is Level.IDENTITY and node.who:
        return node.who[0]
    return str(node.level) + f" ({', '.join(node.who)})" * (node.level is Level.CATEGORY)


def _selections(run: _Run) -> Iterator[Selection]:
    """Yield how often each identity is selected, beside the highest of its category."""
    rates: defaultdict[tuple[str, str], list[_Selected]] = defaultdict(list)
    for each in run.selection:
        rates[each.suite, each.who.partition("/")[0]].append(each)
    for each in run.selection:
        peers = rates[each.suite, each.who.partition("/")[0]]
        most = max(peer.rate for peer in peers)
        yield Selection(
            **each.model_dump(),
            selected=round(each.rate * each.sources, 2),
            below_four_fifths=each.ratio is not None and each.ratio < FOUR_FIFTHS,
            highest=[peer.who for peer in peers if peer.rate == most],
            level=run.confidence,
        )


def _ends(ends: tuple[float | None, float | None]) -> tuple[float, float] | None:
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _unseen(run: _Run) -> Iterator[str]:
    """Yield what this run could not judge."""
    yield from (f"No verdict: {text}" for text in run.evidence.problems)
    for scan in run.parity:
        if scan.unjudged:
            yield f"{scan.suite}, {scan.outcome}: {scan.unjudged}"
    if undecided := run.evidence.planned - run.evidence.decided:
        yield f"{undecided:,} of {run.evidence.planned:,} cases were not decided: see section 2."
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
        yield (
            "Nobody has looked at cases and said whether their answers were read right: how many "
            "reported differences are read wrong is open."
        )


def _changes(earlier: Record, runs: Sequence[tuple[TestedRun, _History]]) -> Iterator[str]:
    """Yield what differs from an earlier record, run by run (by policy and path)."""
    then = {f"{run.policy} ({run.policy_path})": run for run in earlier.runs}
    now = {f"{run.policy} ({run.policy_path})": (run, history) for run, history in runs}
    for name in {**then, **now}:
        if name not in then or name not in now:
            yield f"{name}: {'is new' if name in now else 'is no longer tested'}"
            continue
        yield from (f"{name}: {what}" for what in _differences(then[name], *now[name]))


def _differences(then: TestedRun, now: TestedRun, history: _History) -> Iterator[str]:
    for name_of in ("day", "outcome", "fairgate"):
        before, after = getattr(then, name_of), getattr(now, name_of)
        if before != after:
            yield f"{name_of}: {before} → {after}"
    commits = [side.commit.id[:12] if side.commit else "not known" for side in (then, now)]
    if commits[0] != commits[1]:
        yield f"commit tested: {' → '.join(commits)}"
    if then.policy_sha256 != now.policy_sha256:
        old = history.policy_at(then.commit.id if then.commit else "", then.policy_sha256)
        keys = [*_changed_keys(old.data, history.data)] if old and history.document else None
        why = "not known which keys: the earlier policy, or this one, is no file of a commit here"
        yield f"policy, keys that changed: {why if keys is None else '; '.join(keys) or 'none'}"
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
        if name not in claims[0] or name not in claims[1]:
            yield f"{name}: {'asked anew' if name in claims[1] else 'no longer asked'}"
            continue
        for what, value_of in (
            ("limit", lambda c: _sizes(c.limits, c.unit)),
            ("outcome", lambda c: c.outcome + ", waived" * (c.waived is not None)),
            ("named", lambda c: _sizes({d.who: d.estimate for d in c.named}, c.unit)),
            ("value", lambda c: _size(c.value, c.unit)),
        ):
            before, after = (value_of(side[name]) for side in claims)
            if before != after:
                yield f"{name}, {what}: {before} → {after}"


def _changed_keys(then: object, now: object, key: str = "") -> Iterator[str]:
    """Yield the keys of a policy that changed, each with both values."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in {**then, **now}:
            yield from _changed_keys(then.get(name), now.get(name), f"{key}.{name}".lstrip("."))
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for index, (before, after) in enumerate(zip(then, now, strict=True)):
            yield from _changed_keys(before, after, f"{key}[{index}]")
    elif then != now:
        yield f"{key} ({_entry(then)} → {_entry(now)})"


def _entry(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
    return "none" if value is None else excerpt(str(value), _MOST_OF_VALUE)


def _sizes(sizes: Mapping[str, float], unit: Unit) -> str:
    return ", ".join(f"{name} {_size(size, unit)}" for name, size in sizes.items()) or "none"


def _size(value: float | None, unit: Unit, digits: int = 3) -> str:
    """Return a figure as every part of a record prints it: points to a tenth, else 3 digits.

    Means of scores have one digit more, so that their difference has 3 of its own.
    """
    if value is None:
        return "not known"
    if unit != "points":
        text = in_own_unit(value, digits)
    else:
        is_tenth = abs(100 * value) >= _LEAST_TENTH or not value
        text = f"{100 * value:.1f}" if is_tenth else f"{100 * value:.1g}"
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", MINUS)


def _span(ends: tuple[float, float] | None, unit: Unit, why: str = "not known") -> str:
    """Return a range, and in words why it has no width."""
    if ends is None:
        return why
    low, high = (_size(end, unit) for end in ends)
    if low != high:
        return f"{low} to {high}"
    same = "narrower than it is rounded"
    if ends[0] == ends[1]:
        same = "no width: nothing differed in any of these sources" if not ends[0] else (
            "no width: all of these sources differ alike"
        )  # fmt: skip
    return f"{low} to {high}, {same}"


def render_record(whole: Record) -> str:
    """Return the record as a page that needs nothing else and runs nothing."""
    import jinja2
    import markupsafe

    style = resources.files(__package__).joinpath("record.css").read_text("utf-8")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "."),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        finalize=lambda value: (
            harmless(value).replace("`", "'") if type(value) is str else value
        ),
    )  # fmt: skip
    environment.filters.update(size=_size, sizes=_sizes, span=_span, marked=_marked, p=probability)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("record.html.j2").render(
        record=whole,
        digest=hashlib.sha256(_json(whole).encode()).hexdigest(),
        style=markupsafe.Markup(style),  # noqa: S704 (our own file)
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
    )


def _marked(text: str) -> markupsafe.Markup:
    """Return a text of ours or a run's, escaped, with `names` as code and no backtick left."""
    from markupsafe import Markup, escape

    parts = str(escape(harmless(text))).split("`")
    html = "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))
    return Markup(html)  # noqa: S704 (every part is escaped)
