"""Which of a baseline's cases a run is compared with, and what of its own table they take over."""

from __future__ import annotations

import numpy as np
import pytest

from fairgate.domain.units import Reason
from fairgate.gate.baseline import BaselineSuite, comparable_rows
from fairgate.metrics.intersectional import HIDDEN
from fairgate.metrics.metric import observe
from fairgate.metrics.table import Table

CONTENTS = {"a": "1", "b": "2", "c": "3"}


def table(**more) -> Table:
    return Table(
        suite="s",
        keys=list(CONTENTS),
        clusters=np.arange(3),
        cluster_names=list(CONTENTS),
        control=np.zeros(3, dtype=bool),
        dimensions={"category": ["x", "y", "x"]},
        values={"hidden": np.asarray([np.nan, 1.0, 0.0])},
        **more,
    )


KEPT = table(reasons={"hidden": {0: Reason.NO_COMBINATION}})
BASE = BaselineSuite(must_match={}, contents=CONTENTS, table=KEPT, quartiles=None)


@pytest.mark.parametrize("changed", ["", "a", "b"])
def test_nothing_is_said_of_undecided_rows_whether_or_not_all_can_be_compared(changed):
    now = table(advisory=frozenset({"r"}), bands=(0.1, 0.2))
    found = comparable_rows(now, BASE, CONTENTS | dict.fromkeys(filter(None, [changed]), "new"))
    assert found.keys == [key for key in CONTENTS if key != changed]
    assert not found.reasons
    assert (found.advisory, found.bands) == (now.advisory, now.bands)
    assert KEPT.reasons, "what is kept stays as it is"


def test_the_values_compared_do_not_depend_on_what_was_said_of_undecided_rows():
    found = observe(HIDDEN, comparable_rows(table(), BASE, CONTENTS), {})
    told = observe(HIDDEN, KEPT, {})
    decided = [
        {key: value for key, value in zip(one.keys, one.values, strict=True) if value in (0, 1)}
        for one in (found, told)
    ]
    assert decided == [{"b": 1.0, "c": 0.0}] * 2
