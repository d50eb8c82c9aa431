"""A kind of system that the package does not know: it answers by a rule and sends its secrets."""

import os
from typing import ClassVar

from fakes.following import following
from pydantic import Field

from fairgate.domain.executions import Execution
from fairgate.domain.ports import NOTHING
from fairgate.domain.schema import Access, Capabilities, Strict
from fairgate.systems.system_kind import SystemKind


class ToyPart(Strict):
    """How the toy answers."""

    url: str = Field(default="http://127.0.0.1:9/", description="Where it would ask.")
    answer: str = Field(
        default="positive",
        description="What it says of everybody, and the opposite of every second source.",
    )
    biased: str = Field(default="", description="Of whom it says `negative`.")
    headers_env: dict[str, str] = Field(default={}, description="Header to variable.")


class ToyPolicy(SystemKind):
    """A system of the tests."""

    id: ClassVar[str] = "toy"
    keys: ClassVar[tuple[str, ...]] = ("toy",)
    sent: ClassVar[list[str | None]]
    asked: ClassVar[int]
    toy: ToyPart = Field(description="How the toy answers.")

    def accesses(self):
        variables = list(self.toy.headers_env.values()) or [None]
        return [Access("asks", self.toy.url, variable) for variable in variables]

    def capabilities(self):
        return Capabilities(
            gives_documents=False,
            takes_documents=False,
            repeatable=True,
            scores_options=False,
            decoding="the toy's own",
        )

    def open(self, resources):
        return OpenToy(type(self), self.toy)


def toy_kind():
    """A new kind, which counts what is asked and sent."""

    class Toy(ToyPolicy):
        """A system of the tests."""

        sent: ClassVar[list[str | None]] = []
        asked: ClassVar[int] = 0

    return Toy


class OpenToy:
    def __init__(self, kind, policy):
        self.kind, self.policy = kind, policy

    def execute(self, cases, progress, earlier=NOTHING):
        self.kind.sent += [os.environ.get(name) for name in self.policy.headers_env.values()]
        self.kind.asked += len(cases)
        return {
            (case.suite, case.key): Execution(documents=None, response=self._answer(case))
            for case in cases
        }

    def _answer(self, case):
        biased = self.policy.biased and self.policy.biased in case.query
        return following(case.key, "negative" if biased else self.policy.answer)

    def vectors(self, documents):
        return None

    def under_test(self):
        return {"toy": self.policy.answer}
