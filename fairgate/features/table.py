"""`fairgate table`: a verdict from a table of outcomes, without a policy."""

from __future__ import annotations

import sys
import tempfile
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgate.domain.errors import DataError, UsageError
from fairgate.io.git import writable
from fairgate.terminal.options import FOLDER, cache_option, format_option, runtime_of
from fairgate.terminal.output import progress_for, report_run

if TYPE_CHECKING:
    from fairgate.io.outcome_rows import OutcomeColumns, OutcomeTable

STDIN = "-"
_PARQUET = b"PAR1"


@click.command(short_help="Judge a table of outcomes; no policy is needed.")
@click.argument("file", metavar="FILE")
@click.option("--source", metavar="COLUMN", help="Which rows belong together: question, résumé.")
@click.option("--who", metavar="COLUMN", help="Who is named.")
@click.option("--category", metavar="COLUMN", help="Category of the identity: gender, age.")
@click.option(
    "--outcome", multiple=True, metavar="COLUMN",
    help="Number or label. Without a column that says who is named: one column for each identity.",
)  # fmt: skip
@click.option("--repeat", metavar="COLUMN", help="Number of the repeat; repeats are averaged.")
@click.option(
    "--control", multiple=True, metavar="VALUE|COLUMN",
    help="Which rows name nobody: a column of yes and no, or values of --who or --category.",
)  # fmt: skip
@click.option("--by", metavar="COLUMN", help="One verdict for each of its values: model, job.")
@click.option(
    "--limit", "difference", type=float, help="Largest difference accepted, in the outcome's unit."
)
@click.option(
    "--better", type=click.Choice(["higher", "lower"]), default="higher", show_default=True,
    help="Which scores are better.",
)  # fmt: skip
@click.option(
    "--selected-from", type=float, metavar="SCORE",
    help="Also report who is selected: rates of this score or better, and their ratios.",
)  # fmt: skip
@click.option("--baseline", metavar="FILE", help="An earlier table, to compare with.")
@click.option("--out", type=FOLDER, help="Folder for report and record (default: in the cache).")
@click.option("--report-only", is_flag=True, help="Exit 0 whatever the verdict; it is still shown.")
@format_option
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.option("--verbose", is_flag=True, help="Also print every rule, identity and figure.")
@cache_option
def table(file: str, **options: Any) -> int:
    """Judge the table FILE (CSV, TSV, JSON Lines, Parquet; `-`: standard input).

    FILE has one row per answer, with columns for the source, who is named and the outcome; or one
    row per source, with a column for each identity. Columns are recognised by their names unless
    options name them. Exits as `run` does, and writes the same reports and record.
    """
    from fairgate.gate.table import TableGate, judged_table
    from fairgate.io.outcome_rows import OutcomeColumns
    from fairgate.reports.formats import chosen
    from fairgate.systems.resources import Resources

    formats = chosen(options["formats"])
    columns = OutcomeColumns(
        **{name: options[name] for name in ("source", "who", "category", "repeat", "by")},
        outcome=options["outcome"],
        control=options["control"],
    )
    limit = options["difference"]
    if limit is not None and not 0 <= limit < float("inf"):
        raise UsageError(f"--limit is {limit:g}; expected a number from 0 on")
    cut_off = options["selected_from"]
    if cut_off is not None and not isfinite(cut_off):
        raise UsageError(f"--selected-from is {cut_off:g}; expected a score")
    runtime = runtime_of(options)
    folder = writable(options["out"] or runtime.cache / "runs" / _name(file), "--out")
    read, fingerprint = read_table(file, columns)
    baseline = options["baseline"]
    before = None if baseline is None else read_table(baseline, columns)[0]
    gate = TableGate(
        name=_name(file),
        limit=limit,
        is_better_lower=options["better"] == "lower",
        selected_from=options["selected_from"],
        fingerprint=fingerprint,
        day=str(runtime.today or ""),
    )
    progress = progress_for(quiet=options["quiet"])
    done = judged_table(read, gate, before, Resources(runtime, progress))
    return report_run(done, folder, formats, {**options, "of_table": True})


def _name(file: str) -> str:
    from fairgate.gate.table import plain_name

    return plain_name("table" if file == STDIN else Path(file).stem)


def read_table(file: str, columns: OutcomeColumns, called: str = "") -> tuple[OutcomeTable, str]:
    """Return a table and the hash of its bytes. Raises DataError with row and column.

    `called` is what messages and reports call it, where that is not the file.
    """
    from fairgate.domain.outcomes import short
    from fairgate.io.outcome_rows import outcome_table
    from fairgate.io.tables import file_sha256, read_rows, table_columns

    if file != STDIN:
        names = table_columns(file)
        table = outcome_table(read_rows(file), names, columns, called or file)
        return table, short(file_sha256(file))
    raw = sys.stdin.buffer.read()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"standard-input{_suffix(raw)}"
        path.write_bytes(raw)
        try:
            return read_table(str(path), columns, path.name)
        except DataError as error:
            raise DataError(str(error).replace(f"{folder}/", "")) from error


def _suffix(raw: bytes) -> str:
    """Return the ending that a file of these bytes would have."""
    if raw.startswith(_PARQUET):
        return ".parquet"
    begin = raw.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if begin in (b"{", b"["):
        return ".jsonl"
    header = raw.partition(b"\n")[0]
    return ".tsv" if header.count(b"\t") > header.count(b",") else ".csv"
