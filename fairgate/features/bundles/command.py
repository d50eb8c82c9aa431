"""`fairgate bundle RUN` and `fairgate bundle verify FILE`: a verdict that carries its proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.wording import harmless
from fairgate.terminal.options import EXISTING_FILE, EXISTING_FOLDER, runtime_of, runtime_options

_FILE = click.Path(dir_okay=False, path_type=Path)
_MAKE = "make"


class _MakesByDefault(click.Group):
    """Reads `bundle RUN` as `bundle make RUN`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `make` before a first argument that names neither a command nor an option."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = [_MAKE, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_MakesByDefault, short_help="Put a run into one file that carries its proof.")
def bundle() -> None:
    """Put a finished run into one file that carries its proof, and verify such files.

    `fairgate bundle RUN --out FILE` is short for `fairgate bundle make RUN --out FILE`.
    """


@bundle.command(short_help="Write the bundle of a finished run.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.option("--out", type=_FILE, default="bundle.zip", show_default=True, help="File to write.")
@click.option(
    "--predicate", type=_FILE,
    help="Also write the in-toto predicate alone, for `predicate-path` of actions/attest.",
)  # fmt: skip
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@click.option("--baseline", help="Baseline of the run, or `none`; default: as its record has it.")
@click.option(
    "--redact", is_flag=True,
    help="Hashes instead of prompts, documents and answers, and no page.",
)  # fmt: skip
@runtime_options
def make(run: Path, out: Path, predicate: Path | None, **options: Any) -> int:
    """Write policy, baseline, plan, answers, rows, verdict and hashes of the run in RUN as one zip.

    The run's answers are judged again first; they must give the run's verdict. Equal runs give
    equal bytes. Exits 0 whatever the verdict is.
    """
    from fairgate.domain.json_text import read_json
    from fairgate.features.bundles.bundle import STATEMENT, as_json, bundle_run
    from fairgate.features.bundles.bundle_zip import zipped
    from fairgate.io.durable import write_bytes

    runtime = runtime_of(options)
    members = bundle_run(
        run, options["policy"], runtime, options["baseline"], redact=options["redact"]
    )
    write_bytes(out, zipped(members))
    found = read_json(members[STATEMENT])["predicate"]
    if predicate is not None:
        write_bytes(predicate, as_json(found), option="--predicate")
    click.echo(f"{harmless(str(out))}: {len(members)} files, result {found['result']}")
    return ExitCode.PASS


@bundle.command(short_help="Recompute the hashes and the verdict of a bundle.")
@click.argument("file", type=EXISTING_FILE, metavar="FILE")
def verify(file: Path) -> int:
    """Recompute all hashes of the bundle FILE, and its verdict from its rows.

    Exits 0 where the bundle is what it claims, whatever its verdict is, and 4 where it is not.
    Who made a bundle is shown by its attestation alone: `gh attestation verify FILE`.
    """
    from fairgate.features.bundles.bundle import NOT_RECOMPUTED
    from fairgate.features.bundles.check import check_bundle

    found = check_bundle(file)
    result = found.result
    name = harmless(str(file))
    answers = "hashes of answers" if found.redacted else "answers"
    click.echo(
        f"{name}: {found.members} files are as they were written (with {answers})\n"
        f"{name}: {len(result.judged):,} rows and {len(result.rules)} rules give the recorded "
        f"verdict: {result.outcome.value}, exit code {int(result.exit_code)}, "
        f"{found.statement['predicate']['result']}\n"
        f"{name}: not computed again, held by hashes alone: questions, answers and page; of "
        f"run.json {', '.join(sorted(NOT_RECOMPUTED))}; of rows what no value follows from"
    )
    return ExitCode.PASS
