"""rows.jsonl: what is written once for many pairs is what each pair says by itself."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from canonical_results import regression

from fairgate.domain.units import Reading, Reason
from fairgate.reports import formats
from fairgate.reports.formats import rows_jsonl


def result(change):
    found = regression().result
    return replace(found, assessed=[change(n, each) for n, each in enumerate(found.assessed)])


def with_margin(number, assessed):
    margin = [0.25, math.nan, None, 1e-12][number % 4]
    own = replace(assessed.readings["follow-up"], margin=margin)
    return replace(assessed, readings={**assessed.readings, "follow-up": own})


def hostile(number, assessed):
    words = 'a "quoted"\n\\ {brace} \u2028 ü \U0001f600 %s'
    dimensions = {**assessed.unit.dimensions, "term": f"{words}{number % 3}"}
    return replace(
        assessed, unit=assessed.unit._replace(key=f"{words}{number}", dimensions=dimensions)
    )


def undecided(number, assessed):
    silent = Reading(value=None, reason=Reason.MISSING)
    claims = {**assessed.claims, "generation": Reason.MISSING, "rrs": math.inf}
    readings = {**assessed.readings, "follow-up": silent}
    return replace(assessed, readings=readings, claims=claims) if number % 2 else assessed


@pytest.mark.parametrize("change", [lambda _, each: each, with_margin, hostile, undecided])
def test_lines_are_compact_json_whatever_pairs_share(change, monkeypatch):
    found = result(change)
    lines = list(rows_jsonl(found))
    assert len(lines) == len(found.assessed)
    for line, assessed in zip(lines, found.assessed, strict=True):
        record = json.loads(line)
        assert line == json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
        assert record["key"] == assessed.unit.key
        assert record["source"] == assessed.unit.asks["source"]
        assert record["term"] == assessed.unit.dimensions["term"]
        margin = assessed.readings["follow-up"].margin
        assert record["margin"] == (margin if margin and math.isfinite(margin) else None)
        says = assessed.claims["generation"]
        expected = {1.0: "violated", 0.0: "satisfied"}.get(says, f"inconclusive({says})")
        assert record["generation"] == expected
    monkeypatch.setattr(formats, "_MOST_HELD", 0)
    assert list(rows_jsonl(found)) == lines


def test_pairs_that_are_made_while_they_are_written_do_not_take_another_ones_outcome():
    found = regression().result

    class Passing:
        """Judged pairs that nobody else holds, so that their ids are free again at once."""

        def __iter__(self):
            return (with_margin(n, each) for n, each in enumerate(found.assessed))

    lines = list(rows_jsonl(replace(found, assessed=Passing())))
    assert lines == list(rows_jsonl(result(with_margin)))
