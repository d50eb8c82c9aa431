"""`fairgate.scan`: the verdict on a table of outcomes, for notebooks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairgate.domain.errors import ExitCode
from fairgate.domain.parity import NamedNode
from fairgate.gate.composition import FinishedRun
from fairgate.gate.table import TableGate, judged_table
from fairgate.io.outcome_rows import OutcomeColumns, OutcomeTable, outcome_table, rows_of
from fairgate.reports.blocks import View
from fairgate.reports.formats import run_record
from fairgate.reports.markdown import render_report
from fairgate.reports.present import view_of
from fairgate.reports.sections.parity import plain

_PLACE = "table"


@dataclass(frozen=True, kw_only=True)
class TableVerdict:
    """What `fairgate.scan` says of a table: a verdict, who is named, and the whole report."""

    run: FinishedRun = field(repr=False)

    @property
    def exit_code(self) -> int:
        """Return the exit code of `fairgate table`: 0 pass, 1 fail, 3 or 5 no verdict."""
        return int(self.run.run.result.exit_code)

    @property
    def passed(self) -> bool:
        """Return whether nobody differs beyond the limit; False without a verdict."""
        return self.exit_code == ExitCode.PASS

    @property
    def named(self) -> Sequence[NamedNode]:
        """Return everybody who is named, within the limit too; of each outcome the clearest first.

        Estimates are in the outcome's unit, and more is worse.
        """
        return [node for one in self.run.run.result.parity_results for node in one.named]

    @property
    def title(self) -> str:
        """Return the verdict in a line: `scores are 2.1 lower for women,`."""
        return plain(self._view.title).removesuffix(",")

    @cached_property
    def _view(self) -> View:
        return view_of(self.run.run, self.run.loaded, of_table=True, run_command="fairgate.scan")

    def to_markdown(self) -> str:
        """Return the report as Markdown, as `fairgate table` writes `report.md`."""
        return render_report(self._view)

    _repr_markdown_ = to_markdown

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values, as `fairgate table` writes `run.json`."""
        return run_record(self.run.run.result)

    def __repr__(self) -> str:
        """Return outcome and title."""
        return f"<{self.run.run.result.outcome.value}: {self.title}>"


def scan(  # noqa: PLR0913 (a column each, all by name)
    table: Any,
    *,
    source: str | None = None,
    who: str | None = None,
    category: str | None = None,
    outcome: str | Sequence[str] = (),
    repeat: str | None = None,
    control: str | Sequence[str] = (),
    by: str | None = None,
    limit: float | None = None,
    better: str = "higher",
    selected_from: float | None = None,
    baseline: Any = None,
) -> TableVerdict:
    """Say who is treated differently in a table of outcomes.

    `table` is a frame (pandas, polars, pyarrow), columns by name, or a list of rows as mappings:
    a row an answer, or a row a source with a column for each identity. The other arguments are the
    options of `fairgate table`; columns are found by their names where none is given. `control`
    names a column of yes and no, or values of `who` or `category`. `limit` is in the outcome's unit
    and `better` says which scores are the better ones, `higher` or `lower`; with `selected_from`
    rates of that score or a better one are reported, too. `baseline` is an earlier table with the
    same columns.

    Reads and writes nothing; equal tables give equal results, whatever the order of their rows.
    Raises DataError where the table cannot be judged, with the row and the column.
    """
    columns = OutcomeColumns(
        source=source, who=who, category=category, outcome=_several(outcome), repeat=repeat,
        control=_several(control), by=by,
    )  # fmt: skip
    gate = TableGate(limit=limit, is_better_lower=better == "lower", selected_from=selected_from)
    before = None if baseline is None else _read(baseline, columns, "baseline")
    return TableVerdict(run=judged_table(_read(table, columns, _PLACE), gate, before))


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _read(table: Any, columns: OutcomeColumns, name: str) -> OutcomeTable:
    rows, names = rows_of(table)
    return outcome_table(rows, names, columns, name)
