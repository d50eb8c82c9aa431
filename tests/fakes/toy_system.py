"""A kind of system that the package does not know: it answers by a rule and sends its secrets."""

import os
from typing import ClassVar

from fakes.following import following
from pydantic import Field

from fairgate.domain.executions import Execution
from fairgate.domain.ports import NOTHING
from fairgate.domain.schema import Access, Capabilities, Strict, SystemModel
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


class ToyPolicy(SystemModel):
    """A system of the tests."""

    keys: ClassVar[tuple[str, ...]] = ("toy",)
    toy: ToyPart = Field(description="How the toy answers.")


class Toy(SystemKind[ToyPolicy]):
    id = "toy"
    model = ToyPolicy

    def __init__(self):
        self.sent = []
        self.asked = 0

    def accesses(self, policy):
        variables = list(policy.toy.headers_env.values()) or [None]
        return [Access("asks", policy.toy.url, variable) for variable in variables]

    def capabilities(self, policy):
        return Capabilities(
            gives_documents=False, takes_documents=False, repeatable=True, scores_options=False
        )

    def must_match(self, policy):
        return {"decoding": "the toy's own"}

    def open(self, policy, resources):
        return OpenToy(self, policy.toy)


class OpenToy:
    def __init__(self, kind, policy):
        self.kind, self.policy = kind, policy

    def execute(self, plan, progress, earlier=NOTHING):
        self.kind.sent += [os.environ.get(name) for name in self.policy.headers_env.values()]
        self.kind.asked += len(plan.cases)
        return {
            (case.suite, case.key): Execution(
                key=case.key, suite=case.suite, documents=None, response=self._answer(case)
            )
            for case in plan.cases
        }

    def _answer(self, case):
        biased = self.policy.biased and self.policy.biased in case.query
        return following(case.key, "negative" if biased else self.policy.answer)

    def vectors(self, documents):
        return None

    def under_test(self):
        return {"toy": self.policy.answer}

    def replica(self, number):
        return [], self
