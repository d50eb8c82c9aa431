"""Columns hold what rows hold: numbers, reasons and readings, in any order, replaced or taken."""

import random

import numpy as np
import pytest

from fairgate.domain.units import Assessed, Reading, Reason, Unit
from fairgate.metrics.columns import AssessedSuite, AssessedUnits, Column, RowReasons
from fairgate.metrics.parity import OUTCOMES

REASONS = (Reason.MISSING, Reason.UNREADABLE, Reason.UNSTABLE)


def drawn_claims(rng, n):
    values = (0.0, 1.0, -2.5, 0.1 + 0.2, *REASONS)
    return [rng.choice(values) for _ in range(n)]


def test_a_column_reads_like_the_list_of_its_values():
    for seed in range(50):
        rng = random.Random(seed)
        claims = drawn_claims(rng, rng.randrange(30))
        column = Column.of(claims)
        assert [column[row] for row in range(len(column))] == claims
        reasons = {row: claim for row, claim in enumerate(claims) if isinstance(claim, Reason)}
        assert dict(column.reasons) == reasons
        assert sum(column.counts().values()) == len(reasons)
        for reason in REASONS:
            assert column.having(reason).tolist() == [claim is reason for claim in claims]
        rows = np.asarray([rng.randrange(len(claims)) for _ in range(20)] if claims else [], int)
        taken = column.taken(rows)
        assert [taken[place] for place in range(len(rows))] == [claims[row] for row in rows]
        codes = np.asarray([rng.randrange(3) for _ in claims], np.uint8)
        words = (None, Reason.NOT_TAKEN, Reason.MISSING)
        out = column.without(RowReasons(codes, words))
        wanted = [words[code] or claim for code, claim in zip(codes.tolist(), claims, strict=True)]
        assert [out[row] for row in range(len(out))] == wanted
        assert out.counts() == {r: wanted.count(r) for r in out.counts()}


def rows_of(rng, suite):
    rows = []
    for number in range(rng.randrange(1, 12)):
        unit = Unit(f"k{number}", {"answer": f"k{number}"}, {}, "c", suite, f"s{number}")
        reading = Reading(value=rng.choice(["a", "b", None]), margin=rng.choice([None, 0.5]))
        extra = {"controls": Reading(value="a")} if rng.random() < 0.5 else {}
        (claim,) = drawn_claims(rng, 1)
        claims = {"x": claim, "y": float(number)}
        rows.append(
            Assessed(unit=unit, readings={"answer": reading, **extra}, claims=claims, decisive="x")
        )
    return rows


def test_views_are_equal_to_the_rows_that_columns_were_made_of():
    for seed in range(50):
        rng = random.Random(seed)
        first, second = rows_of(rng, "s"), rows_of(rng, "t")
        columns = AssessedUnits.of([*first, *second])
        assert list(columns.suites) == ["s", "t"]
        assert len(columns) == len(first) + len(second)
        for place, (view, row) in enumerate(zip(columns, [*first, *second], strict=True)):
            assert view == row
            assert columns[place] == row
            assert dict(view.readings) == row.readings
            assert dict(view.claims) == row.claims
            assert view.decision == row.decision
        assert columns[-1] == second[-1]
        assert columns[1:3] == [*first, *second][1:3]
        undecided = [row for row in first if isinstance(row.decision, Reason)]
        assert len(AssessedSuite.of(first).decisions.reasons) == len(undecided)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.id)
def test_what_is_compared_is_compared_once(outcome):
    """Never "are seen less more": an event that compares already needs no further word."""
    for column in (*outcome.columns, *outcome.reference_columns):
        for estimate in (0.1, -0.1):
            words = column.compared(estimate).split()
            assert len([word for word in words if word in ("more", "less")]) <= 1, words
