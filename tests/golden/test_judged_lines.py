"""rows.jsonl: what is written once for many pairs is what each pair says by itself."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from canonical_results import regression

from fairgate.domain.units import Reading, Reason
from fairgate.reports import run_record
from fairgate.reports.run_record import rows_jsonl


def result(change):
    """Return a verdict whose judged pairs are changed one by one."""
    found = regression().result
    return replace(found, judged=[change(n, each) for n, each in enumerate(found.judged)])


def with_margin(number, judged):
    margin = [0.25, math.nan, None, 1e-12][number % 4]
    own = replace(judged.readings["follow-up"], margin=margin)
    return replace(judged, readings={**judged.readings, "follow-up": own})


def hostile(number, judged):
    words = 'a "quoted"\n\\ {brace} \u2028 ü \U0001f600 %s'
    dimensions = {**judged.unit.dimensions, "term": f"{words}{number % 3}"}
    return replace(judged, unit=judged.unit._replace(key=f"{words}{number}", dimensions=dimensions))


def undecided(number, judged):
    silent = Reading(value=None, reason=Reason.MISSING)
    claims = {**judged.claims, "generation": Reason.MISSING, "rrs": math.inf}
    readings = {**judged.readings, "follow-up": silent}
    return replace(judged, readings=readings, claims=claims) if number % 2 else judged


@pytest.mark.parametrize("change", [lambda _, each: each, with_margin, hostile, undecided])
def test_lines_are_compact_json_whatever_pairs_share(change, monkeypatch):
    found = result(change)
    lines = list(rows_jsonl(found))
    assert len(lines) == len(found.judged)
    for line, judged in zip(lines, found.judged, strict=True):
        record = json.loads(line)
        assert line == json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
        assert record["key"] == judged.unit.key
        assert record["source"] == judged.unit.asks["source"]
        assert record["term"] == judged.unit.dimensions["term"]
        margin = judged.readings["follow-up"].margin
        assert record["margin"] == (margin if margin and math.isfinite(margin) else None)
        says = judged.claims["generation"]
        expected = {1.0: "violated", 0.0: "satisfied"}.get(says, f"inconclusive({says})")
        assert record["generation"] == expected
    monkeypatch.setattr(run_record, "_MOST_HELD", 0)
    assert list(rows_jsonl(found)) == lines


def test_pairs_that_are_made_while_they_are_written_do_not_take_another_ones_outcome():
    found = regression().result

    class Passing:
        """Judged pairs that nobody else holds, so that their ids are free again at once."""

        def __iter__(self):
            return (with_margin(n, each) for n, each in enumerate(found.judged))

    assert list(rows_jsonl(replace(found, judged=Passing()))) == list(
        rows_jsonl(result(with_margin))
    )
