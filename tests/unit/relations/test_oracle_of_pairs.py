"""A relation that reads no task compares pairs by what its oracle holds the same."""

import pytest

from fairgate.domain.units import Reading
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.relation import SameAnswer


class AnyCase(Oracle):
    def same(self, left, right):
        return left.value.casefold() == right.value.casefold()


class Spelling(SameAnswer):
    def __init__(self, *, reads_task):
        self.reads_task = reads_task

    def oracle(self, task):
        return AnyCase()


@pytest.mark.parametrize("reads_task", [False, True])
def test_what_the_oracle_holds_the_same_violates_nothing_unless_a_task_is_read(reads_task):
    yes, shouted, no = (Reading(value=value) for value in ("yes", "YES", "no"))
    violated = float(reads_task)
    claims = Spelling(reads_task=reads_task).claims(yes, shouted, yes)
    assert claims == {"generation": violated, "controlled": violated}
    assert Spelling(reads_task=reads_task).claims(yes, no, yes)["generation"] == 1.0
