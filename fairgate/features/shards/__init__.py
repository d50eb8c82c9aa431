"""A run in parts: `fairgate run --shard` asks one, `fairgate merge` judges them as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import harmless
from fairgate.gate.loaded_policy import load_policy
from fairgate.terminal import options as shared
from fairgate.terminal.output import progress_for, report_run, say

if TYPE_CHECKING:
    from fairgate.features.shards.parts import Part, Shard

_OF_MERGE = {
    "limit": "--limit",
    "baseline": "--baseline",
    "report_only": "--report-only",
    "formats": "--format",
}
"""Options of `run` that a part of a run has no use for."""


@click.command(short_help="Judge the parts of a run as one.")
@click.argument("policy", type=shared.POLICY_FILE)
@click.argument("shards", type=shared.EXISTING_FOLDER, nargs=-1, required=True, metavar="SHARD...")
@click.option(
    "--out", type=shared.FOLDER, help="Folder for report and record (default: in the cache)."
)
@click.option("--baseline", help="Baseline file, or `none`; default: baselines/<policy name>.json.")
@click.option("--report-only", is_flag=True, help="Exit 0 whatever the verdict; it is still shown.")
@shared.format_option
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.option(
    "--no-attribution", is_flag=True,
    help="Ask nothing: changes are not attributed to retriever or generator.",
)  # fmt: skip
@shared.allow_python
@shared.runtime_options
def merge(policy: Path, shards: tuple[Path, ...], **options: Any) -> int:
    """Judge the parts of `fairgate run POLICY --shard i/n` by POLICY, and exit with the verdict.

    Each SHARD is the folder of a part, or a folder that contains several. All n parts are needed,
    each once, with the same questions, system and version. Report, record and rows are those of a
    run in a single process.

    No model is loaded, unless attribution has questions: they depend on the answers of all parts,
    and are asked here.
    """
    from fairgate.features.shards import parts
    from fairgate.gate.accepted_runs import locate_accepted_runs
    from fairgate.gate.composition import Composition
    from fairgate.gate.run_folder import output_folder
    from fairgate.reports.formats import chosen

    formats = chosen(options["formats"])
    runtime = shared.runtime_of(options)
    asks = not options["no_attribution"]
    parts_to_merge = parts.find_shards(shards)
    loaded = load_policy(policy, runtime)
    folder = output_folder(options["out"], runtime, loaded)
    accepted_runs = locate_accepted_runs(loaded, policy, options["baseline"])
    composition = Composition(loaded, runtime, progress_for(quiet=options["quiet"]))
    done = parts.merge(parts_to_merge, composition, accepted_runs, asks=asks)
    return report_run(done, folder, formats, options)


def run_in_parts(run: click.Command) -> click.Command:
    """Return `fairgate run` with `--shard`."""
    whole: Any = run.callback

    @click.option(
        "--shard", metavar="I/N",
        help="Ask the I-th of N parts; `fairgate merge` decides.",
    )  # fmt: skip
    def run_(policy: Path, shard: str | None, **options: Any) -> int:
        if shard is not None:
            return _run_part(policy, shard, options)
        return int(whole(policy=policy, **options))

    says = "\nWith --shard it asks a part of the questions and has no verdict."
    return shared.extended(run, run_, before="allow_python", says=says)


def parsed(text: str) -> Shard:
    """Return the part that `--shard` names. Raises UsageError."""
    from fairgate.features.shards.parts import MOST_SHARDS, Shard

    number, _, division = text.partition("/")
    if all(part.isascii() and part.isdigit() and len(part) <= 4 for part in (number, division)):
        shard = Shard(int(number), int(division))
        if shard.is_possible:
            return shard
    raise UsageError(
        f"--shard is '{harmless(text[:40])}'; expected i/n, the i-th of n parts: 1/4, 2/4, 3/4 and "
        f"4/4, n at most {MOST_SHARDS:,}"
    )


def _run_part(policy: Path, shard_text: str, options: dict[str, Any]) -> int:
    """Ask the part of a run that `--shard` names; it has no verdict, so its code is 0."""
    from fairgate.features.shards.parts import run_shard, shard_folder
    from fairgate.gate.composition import Composition

    runtime, shard = shared.runtime_of(options), parsed(shard_text)
    useless = [option for name, option in _OF_MERGE.items() if options[name]]
    if useless:
        raise UsageError(
            f"{useless[0]} belongs to a whole run, and --shard asks a part of one, which is "
            "neither compared nor reported; leave it out here"
        )
    progress = progress_for(quiet=options["quiet"])
    composition = Composition(load_policy(policy, runtime), runtime, progress)
    folder = shard_folder(options["out"], composition, shard)
    done = run_shard(composition, shard, folder)
    for notice in composition.notices:
        say(f"fairgate: note: {harmless(notice)}")
    click.echo(
        f"{sentence(done)}; {harmless(str(folder))}\n"
        f"Bring all {shard.of} parts together with `fairgate merge`: it decides."
    )
    return ExitCode.PASS


def sentence(done: Part) -> str:
    """Return the number of questions that a part has asked, and that it is no verdict."""
    amount = (
        f"{done.questions:,} questions about {done.sources:,} sources or templates answered"
        if done.questions
        else "nothing to ask, there are fewer sources than parts"
    )
    return f"part {done.shard.number} of {done.shard.of}, not a verdict: {amount}"
