"""Units with the same answers and documents are decided once; what each of them says stays its own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.units import Arm, Judged, Reading, Reason, Unit
from fairgate.gate.judge import table_of

CLAIMS = (
    {"a": 1.0, "b": Reason.NO_LABELS},
    {"a": 0.0, "b": Reason.NO_TEXT},
    {"a": Reason.MISSING, "b": Reason.NO_LABELS},
    {"a": 0.1234567, "b": Reason.NO_TEXT},
)


class SuiteOfTwoColumns:
    id = "s"
    columns = ("a", "b")

    def absent(self, column, reasons):
        return f"{column}: {', '.join(reasons)}"


def judged(number: int, claims) -> Judged:
    unit = Unit(
        key=f"k{number}",
        suite="s",
        asks={"answer": f"k{number}"},
        cluster=f"c{number % 3}",
        dimensions={"relation": "r", "term": f"t{number % 2}"},
        content="",
        arm=Arm.CONTROL if number % 4 == 0 else Arm.TEST,
    )
    return Judged(unit=unit, readings={"answer": Reading(value="x")}, claims=claims, decisive="a")


@given(st.lists(st.tuples(st.sampled_from(CLAIMS), st.booleans()), min_size=1, max_size=30))
def test_a_table_is_that_of_every_row_by_itself(chosen):
    """Whether equal claims are one object or several is no matter."""
    rows = [
        judged(number, claims if shared else dict(claims))
        for number, (claims, shared) in enumerate(chosen)
    ]
    table = table_of(SuiteOfTwoColumns(), rows, (0.0, 1.0))
    for column in ("a", "b"):
        claims = [row.claims[column] for row in rows]
        numbers = [np.nan if isinstance(c, Reason) else round(c, 6) for c in claims]
        np.testing.assert_array_equal(table.values[column], numbers)
        reasons = {row: str(c) for row, c in enumerate(claims) if isinstance(c, Reason)}
        assert dict(table.reasons[column]) == reasons
        if len(reasons) == len(rows):
            assert table.not_evaluated[column] == f"{column}: {', '.join(reasons.values())}"
        else:
            assert column not in table.not_evaluated
