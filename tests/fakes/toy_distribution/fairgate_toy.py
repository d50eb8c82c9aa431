"""What a distribution may bring: a relation with its oracle and column, a kind of suite, metrics, a
format, a command and a kind of system, all made of the names of `fairgate.api`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Literal

import click
from pydantic import Field

from fairgate.api import (
    DEMOGRAPHIC,
    Access,
    Asked,
    Assessed,
    Capabilities,
    Case,
    Command,
    Execution,
    Feature,
    FollowUp,
    Format,
    Metric,
    Reading,
    Reason,
    Rows,
    SameAnswer,
    Stop,
    Strict,
    Suite,
    SuiteKind,
    SuiteModel,
    SystemKind,
    TestPlan,
    Unit,
    UnitKind,
    pool_by_pool,
)


class LengthOracle:
    id = "words/1"

    def stop(self):
        return Stop(phrases=("stop",))

    def read(self, execution, case):
        words = (execution.response or "").split()
        if not words:
            return Reading(value=None, reason=Reason.UNREADABLE)
        return Reading(value=float(len(words)))

    def same(self, left, right):
        return left.value == right.value


def words_beyond_median(pool):
    """Words beyond the median of the other answers to the source: any float."""
    words = [
        None if member.reading.value is None else len(member.responses[0].split())
        for member in pool.members
    ]
    values = []
    for place, (member, own) in enumerate(zip(pool.members, words, strict=True)):
        others = [count for n, count in enumerate(words) if n != place and count is not None]
        if own is None:
            values.append(member.reading.reason)
        else:
            values.append(own - median(others) - 0.25 if others else Reason.FEW_ANSWERS)
    return {"toy-words": values}


WORDS = pool_by_pool(["toy-words"], words_beyond_median, {Reason.FEW_ANSWERS: "one answer alone"})


class Shout(SameAnswer):
    """A toy relation: a text in capitals is answered with as many words."""

    id: ClassVar[str] = "toy/shout"
    title = "Shout"
    paper = "none"
    description = "The follow-up is in capitals, and more urgent."
    expects = "An answer of as many words."
    not_owed = "never"
    advisory = False
    reads_task = True
    source_variant = "toy/plain"
    pool_columns = (WORDS,)
    EXAMPLES = ()
    NOT_APPLICABLE = ()

    def oracle(self, task):
        return LengthOracle()

    def asks(self, source, task):
        return Asked(instruction=task.instruction, labels=task.labels, stop=LengthOracle().stop())

    def source_text(self, source):
        return source.text

    def follow_ups(self, source, sets):
        text = f"{source.text.upper()} NOW"
        return [
            FollowUp(variant=name, category="form", term=name, text=text + sign)
            for name, sign in (("capitals", ""), ("loud", "!"), ("louder", "!!"))
        ]

    def most_follow_ups(self, source, sets):
        return 3

    def fault(self, source_text, follow_up):
        return (
            None if follow_up.text.rstrip("!") == f"{source_text.upper()} NOW" else "another text"
        )


class PingPolicy(SuiteModel):
    kind: Literal["ping"] = Field(description="Kind of the suite.")
    questions: list[str] = Field(description="What is asked.")

    def accesses(self):
        return ()

    def narrowed(self, most):
        return self.model_copy(update={"questions": self.questions[:most]})


@dataclass(frozen=True)
class PingSuite(Suite):
    policy: PingPolicy
    unstable_margin = 0.0
    columns = ("no",)

    @property
    def oracles(self):
        return {"": LengthOracle()}

    def size(self):
        return len(self.policy.questions)

    def plan(self):
        keys = [f"ping-{number}" for number in range(len(self.policy.questions))]
        cases = [
            Case(key=key, suite=self.id, query=text, instruction="Say yes.", labels=(), cluster=key)
            for key, text in zip(keys, self.policy.questions, strict=True)
        ]
        units = [
            Unit(
                key=key, suite=self.id, asks={"answer": key}, cluster=key, content=key,
                dimensions={"parity": ("even", "odd")[number % 2]},
            )
            for number, key in enumerate(keys)
        ]  # fmt: skip
        return TestPlan(cases=cases, units=units)

    def assess(self, units, readings, executions, vectors):
        found = []
        for unit in units:
            reading = readings.all_of(unit.key)
            said = executions[self.id, unit.key].response if reading.value is not None else ""
            read, claims = {"answer": reading}, {"no": reading.reason or float("yes" not in said)}
            found.append(Assessed(unit=unit, readings=read, claims=claims, decisive="no"))
        return found

    def absent(self, column, reasons):
        return None

    def must_match(self):
        return {"questions": self.policy.questions}

    def reading_rule(self):
        return {"rule": "words/1"}

    def describe(self, plan) -> Iterator[str]:
        yield f"  suite {self.id}: {len(plan.units)} pings"


PING = SuiteKind("ping", PingPolicy, lambda policy, setup, materials: PingSuite(policy))
REFUSED = Metric(
    id="toy/refused", title="pings that were refused", column="no",
    arms=(Rows(weight=1.0, select=DEMOGRAPHIC[0].select),), defined_by="none", dimensions=("parity",),
    units=UnitKind(suite_kind="ping", dimensions=frozenset({"parity"})),
)  # fmt: skip
LONGER = Metric(
    id="toy/words", title="words beyond the other answers' median", column="toy-words",
    arms=(Rows(weight=1.0, select=lambda table: table.slice_mask({"relation": "toy/shout"})),),
    defined_by="none", is_rate=False, row_limits=(-math.inf, math.inf), violations=False,
    dimensions=("term",),
)  # fmt: skip

TOY_FORMAT = Format(id="toy", file="toy.txt", render=lambda view: view.policy)
SHOUT = Shout()


@click.command()
@click.argument("text")
def shout(text):
    """Print a text in capitals."""
    click.echo(text.upper())


FEATURE = Feature(
    id="toy",
    commands={"shout": Command("fairgate_toy:shout", "Print a text in capitals.")},
    formats={"toy": "fairgate_toy:TOY_FORMAT"},
)


class ParrotPart(Strict):
    """How the parrot answers."""

    answer: str = Field(description="What it says, whatever it is asked.")
    biased: str = Field(default="", description="At which identity it says `negative`.")


class ParrotPolicy(SystemKind):
    """A system that says the same of everybody, and the opposite of every second source."""

    id: ClassVar[str] = "parrot"
    keys: ClassVar[tuple[str, ...]] = ("parrot",)
    parrot: ParrotPart = Field(description="How the parrot answers.")

    def accesses(self):
        return [Access("asks", "a parrot", None)]

    def capabilities(self):
        return Capabilities(
            gives_documents=False, takes_documents=False, repeatable=True, scores_options=False,
            decoding="the parrot's own",
        )  # fmt: skip

    def open(self, resources):
        return Parrot(self.parrot)


@dataclass(frozen=True)
class Parrot:
    policy: ParrotPart

    def execute(self, cases, progress, earlier=()):
        return {(case.suite, case.key): self._answered(case) for case in cases}

    def _answered(self, case):
        even = int("0" + "".join(filter(str.isdigit, case.key.partition("#")[0]))) % 2 == 0
        is_biased = bool(self.policy.biased) and self.policy.biased in case.key
        answers = ["negative", self.policy.answer][:: 1 if is_biased == even else -1]
        return Execution(documents=None, response=answers[0])

    def vectors(self, documents):
        return None

    def under_test(self):
        return {"parrot": self.policy.answer}
