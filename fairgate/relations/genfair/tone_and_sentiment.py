"""The output relation of MR5 and MR8: equal tone, and equal sentiment too (P3 section V-B2)."""

from __future__ import annotations

from fairgate.domain.cases import Task
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.oracles.tone import oracle_of
from fairgate.relations.person import PersonRelation
from fairgate.relations.relation import needed


class ToneAndSentiment(PersonRelation):
    """Free answers are read for tone and sentiment; of labels nothing more is compared."""

    def oracle(self, task: Task | None) -> Oracle:
        """Return the oracle of the suite's task, with sentiment."""
        return oracle_of(needed(task), with_sentiment=True)
