"""The record as data: what is written as JSON, and what the page shows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fairgate.features.record.run import Origin, ReadWaiver, Selected, Verdict
from fairgate.reports.findings import OutputPart

FORMAT = "fairgate-record/1"


class Commit(OutputPart):
    """A commit, as git has it."""

    id: str
    date: str = Field(description="Committer date in UTC, YYYY-MM-DD; empty: git does not know it.")
    author: str = Field(description="Name of its author; empty: git does not know it.")


class Written(OutputPart):
    """When an entry of the policy was written."""

    when: Literal["before", "with", "unknown"] = Field(
        description="`before`: in an earlier commit than the one tested; `with`: in that one."
    )
    commit: Commit | None = Field(description="The newest commit that changed a line of its entry.")
    why: str = Field(description="Why it is not known; empty where it is.")


class Waived(ReadWaiver, OutputPart):
    """What keeps a failure from stopping a build."""

    written: Written


Unit = Literal["points", "score", "value"]


class Difference(OutputPart):
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


class Claim(OutputPart):
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


class Selection(Selected, OutputPart):
    """How often test scores of one identity reached the cut-off; a description, no finding."""

    selected: float = Field(description="Of `sources`; of several phrases their mean.")
    below_four_fifths: bool = Field(description="A mark, no verdict.")
    highest: list[str] = Field(description="Whose rates are the highest of the category.")
    level: float = Field(description="Of each range by itself.")


class Texts(OutputPart):
    """Where a suite's texts come from."""

    name: str = Field(description="As the policy names it.")
    sources: int | None
    sha256: str = Field(description="Of the file in the commit tested; empty: it has none.")


class TestedRun(Verdict, Origin, OutputPart):
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


class Record(OutputPart):
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
        description="`date`, and `sha256` of the JSON, of the record that changes are counted from."
    )
    changes: list[str]


def as_json(whole: Record) -> str:
    """Return the text of the JSON file, whose SHA-256 the page shows."""
    return whole.model_dump_json(indent=1, ensure_ascii=True) + "\n"
