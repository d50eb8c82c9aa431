"""What a record reads of a run: the parts of `run.json` that it needs, cut and made harmless."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fairgate.domain.parity import Against, Level
from fairgate.domain.units import Reason
from fairgate.domain.wording import harmless
from fairgate.gate.run_folder import TABLE
from fairgate.io.git import FULL_COMMIT
from fairgate.metrics.parity import OUTCOMES
from fairgate.reports.escaping import excerpt

_MOST_CHARACTERS = 1000


def short(text: str) -> str:
    """Return a text of a run, cut and made harmless."""
    return harmless(excerpt(text, _MOST_CHARACTERS))


Text = Annotated[str, Field(max_length=200_000), AfterValidator(short)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
KnownOutcome = Annotated[str, Field(pattern=f"^({'|'.join(each.id for each in OUTCOMES)})$")]


class ReadPart(BaseModel):
    """A part of `run.json`, of which other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ReadWaiver(ReadPart):
    """A waiver of `run.json`."""

    owner: Text
    reason: Text
    up_to: Number = Field(description="Largest difference that it covers, in the claim's unit.")
    expires: Text


class Change(ReadPart):
    """What a rule compared with an accepted run."""

    base: Number | None
    margin: Number
    p_corrected: Share
    method: Text


class Rule(ReadPart):
    """A rule and its result."""

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
    change: Change | None
    since_anchor: Change | None
    waived: ReadWaiver | None = None


class Estimate(ReadPart):
    """A difference with its range."""

    column: Text
    estimate: Number
    low: Number | None
    high: Number | None
    rate: Number | None
    control: Number | None


class Named(Estimate):
    """Whom a scan names."""

    level: Level
    p: Share
    before: Number | None
    control_before: Number | None
    by_phrase: dict[Text, Number]
    who: list[Text]


class Identity(Estimate):
    """The difference of one identity."""

    who: Text


class Scan(ReadPart):
    """What a scan answered about one outcome."""

    suite: Text
    outcome: KnownOutcome
    against: Against
    p: Share
    alpha: Share
    named: list[Named]
    reach: dict[Text, Number | None]
    sources: int
    control_prompts: int
    unjudged: Text
    identities: list[Identity]

    @property
    def beside(self) -> str:
        """What identities are compared with."""
        return "control prompts" if self.control_prompts else "the other identities"

    @property
    def is_now(self) -> bool:
        """Whether differences count in both directions: since an accepted run only worse ones."""
        return self.against in (Against.CONTROL, Against.REFERENCE)


class Selected(ReadPart):
    """How often test scores of one identity reach a cut-off."""

    suite: Text
    who: Text
    cut_off: Number
    sources: int
    rate: Share
    interval: tuple[Number, Number] | None
    ratio: Number | None = Field(description="To the highest rate of its category.")
    ratio_interval: tuple[Number, Number] | None
    control: Share | None = Field(description="Rate of the control prompts.")


class Measured(ReadPart):
    """How many cases a metric counts in a slice."""

    metric: Text
    suite: Text
    where: dict[Text, Text]
    decided: int
    inconclusive: int


class Labelled(ReadPart):
    """People's labels on the readings of one suite."""

    right: int = Field(ge=0)
    labelled: int = Field(ge=1)
    interval: tuple[Number, Number]


class Rejected(ReadPart):
    """A case that was not asked."""

    reason: Text = ""


class Evidence(ReadPart):
    """How much of the plan was decided."""

    planned: int
    decided: int
    undecided: dict[Reason, int]
    problems: list[Text]
    rejected: list[Rejected]


class Origin(ReadPart):
    """What was tested, and where."""

    policy_path: Text
    policy_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    under_test: dict[Text, Text] = Field(description="Parts of the system, with fingerprints.")
    environment: dict[Text, Text]


class Provenance(Origin):
    """The same, with the commit."""

    commit: Annotated[str, Field(pattern=f"^(?:{FULL_COMMIT.pattern})$")] | None


class Verdict(ReadPart):
    """How a run ended."""

    fairgate: Text
    policy: Text
    outcome: Literal["pass", "fail", "inconclusive"] = Field(description="By the policy's limits.")
    confidence: Share = Field(description="Level of ranges that no scan gives.")
    notices: list[Text] = Field(description="What the run itself remarks.")


class Run(Verdict):
    """All that a record reads of a run's `run.json`."""

    schema_version: int
    regression_level: Share
    day: dt.date
    measurements: list[Measured]
    rules: list[Rule]
    parity: list[Scan]
    selection: list[Selected] = []
    labels: dict[Text, Labelled] = {}
    evidence: Evidence
    baseline: Text | None
    accepted: dict[Text, Text | None] | None
    answers: dict[Literal["asked", "stored"], int] | None = None
    fingerprint: dict[Text, dict[Text, Text]]
    provenance: Provenance

    @property
    def is_table(self) -> bool:
        """Whether the answers were read from a table, so that there is no policy file."""
        return TABLE in self.provenance.under_test


def first_problem(error: ValidationError) -> str:
    """Return the first of what is wrong, on one line."""
    details = error.errors(include_url=False)[0]
    return harmless(f"{'.'.join(map(str, details['loc']))}: {details['msg']}"[:200])
