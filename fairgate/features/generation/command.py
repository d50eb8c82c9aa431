"""`fairgate generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.terminal import options as shared
from fairgate.terminal.output import progress_for, say

_OF_MODEL = {"policy", "relations", "dimensions", *shared.MACHINE}
_OF_TEMPLATES = {"strength", "templates", "attributes"}


@click.command(short_help="Generate source test cases.")
@click.argument("generator", type=click.Choice(["genfair", "template", "astraea", "model"]))
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="JSONL file to write; review it, commit it, and name it under `sources`.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(1, 10_000_000), default=1000, show_default=True,
    help="Maximum number of cases.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=42, show_default=True,
    help="Seed of all random choices.",
)  # fmt: skip
@click.option(
    "--t", "strength", type=click.IntRange(1, 4), default=2, show_default=True,
    help="Cover all combinations of T attribute values.",
)  # fmt: skip
@click.option(
    "--templates", default="genfair", show_default=True,
    help="Bundled templates, or a file of your own.",
)  # fmt: skip
@click.option(
    "--attributes", multiple=True, metavar="FILE",
    help="File of an attribute of your own, beside the bundled ones; can be repeated.",
)  # fmt: skip
@click.option(
    "--policy", type=shared.EXISTING_FILE,
    help="`model`: policy whose generator writes, or a YAML file with `generator` alone.",
)  # fmt: skip
@click.option(
    "--relation", "relations", multiple=True, metavar="ID",
    help="`model`: relation or family to write pairs of; can be repeated. Default: all on pairs.",
)  # fmt: skip
@click.option(
    "--dimension", "dimensions", multiple=True, metavar="NAME",
    help="`model`: dimension of bias; can be repeated. Default: all of the catalogue.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@shared.runtime_options
def generate(generator: str, out: Path, **options: Any) -> int:
    """Write source test cases about people with known sensitive attributes.

    GENERATOR is `genfair` (partitions, mutation, boundary values), or one of the baselines that
    GenFair was compared with: `template` (templates filled at random) and `astraea` (one grammar).

    `model` asks the language model of --policy for written pairs (Meta-Fair), at most three times
    as often as --limit; what is no pair by form, catalogue and linter is refused and counted.
    """
    runtime, chosen_options = shared.runtime_of(options), shared.given_options()
    strange = _OF_TEMPLATES if generator == "model" else _OF_MODEL
    for option in (chosen_options[name] for name in chosen_options if name in strange):
        raise UsageError(f"{option} is not for `generate {generator}`; leave it out")
    if generator == "model":
        if "policy" not in chosen_options:
            raise UsageError(
                "`generate model` needs --policy FILE: a policy with a local system, or a YAML "
                "file with `generator` alone, such as {generator: {endpoint: {base_url: …, "
                "model: …}}}"
            )
        from fairgate.features.generation.pairs import generate_pairs

        lines = generate_pairs(out, runtime, progress_for(quiet=False), options)
    else:
        from fairgate.features.generation.cases import generate_cases

        lines = generate_cases(generator, out, runtime, options)
    for line in lines:
        say(line)
    return ExitCode.PASS


def check_cases_too(check: click.Command) -> click.Command:
    """Return `fairgate check` for files of generated cases, too."""
    of_policies: Any = check.callback

    @click.option(
        "--quality", is_flag=True,
        help="Show diversity, perplexity and coherence of generated cases.",
    )  # fmt: skip
    @click.option(
        "--perplexity-model", metavar="NAME",
        help="Causal language model for the perplexity of --quality.",
    )  # fmt: skip
    @shared.machine_options
    def check_(
        files: tuple[Path, ...], *, quality: bool, perplexity_model: str | None, **options: Any
    ) -> int:
        generated = [file for file in files if file.suffix.lower() == ".jsonl"]
        if not quality:
            shared.refuse_machine_options("--quality")
        if quality and not generated:
            raise UsageError("--quality is of generated cases; name a .jsonl file of them")
        if options["shape"] == "json":
            if generated:
                raise UsageError("--format json is of policies; leave out the .jsonl files")
            return int(of_policies(files=files, **options))
        runtime = shared.runtime_of({**options})
        for file in files:
            if file in generated:
                from fairgate.features.generation.cases import check_cases

                click.echo("\n".join(check_cases(file, runtime)))
            else:
                of_policies(files=(file,), **options)
        if quality:
            from fairgate.features.generation.cases import quality_table

            for line in quality_table(generated, perplexity_model, runtime):
                click.echo(line)
        return ExitCode.PASS

    return shared.extended(
        check,
        check_,
        says="\n\nA file of generated cases (`.jsonl`) may take the place of a policy: its texts, "
        "attributes and coverage are shown, with --quality also a table of all such files.",
    )
