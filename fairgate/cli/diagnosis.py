"""`fairgate explain`, `power` and `burn-in`: what happened, what could be seen, what is noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgate.cli.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    FOLDER,
    allow_python,
    echo_json,
    json_option,
    refuse_machine_options,
    runtime_of,
    runtime_options,
)
from fairgate.cli.progress import progress_for
from fairgate.cli.saying import say
from fairgate.composition.loading import load_policy
from fairgate.domain.errors import ExitCode
from fairgate.domain.records import flat


@click.command(short_help="Show everything about one pair of a run.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.argument("case", metavar="CASE")
@click.option("--suite", help="Suite of the case, where several have it.")
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@json_option
@runtime_options
def explain(run: Path, case: str, **options: Any) -> int:
    """Show what happened to the follow-up CASE in the finished run in the folder RUN.

    Shows both prompts with the difference marked, both document lists side by side, both answers
    with margins, the crossed answers, the neutral speakers' answers, and one sentence about it all.
    """
    from fairgate.composition.diagnosing import explain_run_case
    from fairgate.reports.explanation import explanation_record, render_explanation

    runtime = runtime_of(options)
    found, redact = explain_run_case(run, case, options["suite"], options["policy"], runtime)
    if options["shape"] == "json":
        echo_json(explanation_record(found, redact=redact))
        return ExitCode.PASS
    click.echo(render_explanation(found, redact=redact))
    return ExitCode.PASS


@click.command(short_help="Make findings of a run as short as they still fail.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@click.option("--suite", help="Suite of the cases, where several have them.")
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@click.option(
    "--findings", type=click.IntRange(1, 1000), default=5, show_default=True,
    help="Most findings, where no CASE is named.",
)  # fmt: skip
@click.option(
    "--questions", type=click.IntRange(1, 100_000), default=1000, show_default=True,
    help="Most questions to the system for one finding.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@json_option
@allow_python
@runtime_options
def shrink(run: Path, cases: tuple[str, ...], **options: Any) -> int:
    """Leave words and attributes out of a finding's source as long as it still fails.

    Each shorter text passes the linter and is asked anew; at the end no single word and no single
    attribute can be left out (1-minimal). CASE is a violated pair of the finished run in the folder
    RUN; without one, findings of `intersectional/hidden` are taken in the order of the plan.
    """
    from fairgate.composition.shrinking import ShrinkChoice, shrink_run
    from fairgate.reports.shrunk import render_shrunk, shrunk_record

    runtime = runtime_of(options)
    chosen = {name: options[name] for name in ("suite", "policy", "findings", "questions")}
    progress = progress_for(quiet=options["quiet"])
    shrinking = shrink_run(run, ShrinkChoice(keys=cases, **chosen), runtime, progress)
    say(shrinking.announcement)
    if options["shape"] == "json":
        redact = shrinking.redact
        echo_json([shrunk_record(found, redact=redact) for found in shrinking.results])
        return ExitCode.PASS
    for found in shrinking.results:
        click.echo(render_shrunk(found, redact=shrinking.redact))
    return ExitCode.PASS


@click.command(short_help="Show what the suite can detect, and how many sources more would take.")
@click.argument("policy", type=EXISTING_FILE)
@click.option("--baseline", help="Baseline file; default: baselines/<policy name>.json, if any.")
@click.option("--run", type=EXISTING_FOLDER, help="A finished run to compare with the baseline.")
@click.option("--burn-in", "burn_in_file", type=EXISTING_FILE, help="A burn-in.json.")
@json_option
@runtime_options
def power(policy: Path, **options: Any) -> int:
    """Show which changes the regression rules of POLICY can detect, and what more would take.

    Counts the sources that it takes to see +1, +2 and +5 points. Rests on the standard deviation
    of the per-source change: the largest of what the policy declares (`sd`), what a burn-in
    measured, and what --run and --baseline show. Says besides how many pairs must hide something
    for a bound of `intersectional/hidden` to fail.
    """
    from fairgate.composition.accepted_runs import locate_references
    from fairgate.composition.diagnosing import policy_power
    from fairgate.engine.few_sources import hidden_notices
    from fairgate.engine.rules import expand_rules
    from fairgate.reports.noise_tables import render_power

    if options["run"] is None:
        refuse_machine_options("--run RUN, whose documents are embedded again")
    runtime = runtime_of(options)
    loaded = load_policy(policy, runtime)
    baseline = locate_references(loaded, policy, options["baseline"]).baseline
    rows = policy_power(
        loaded, runtime, baseline, run=options["run"], burn_in_file=options["burn_in_file"]
    )
    if options["shape"] == "json":
        echo_json([{**flat(row), "where": dict(row.where)} for row in rows])
        return ExitCode.PASS
    click.echo(render_power(rows, confidence=loaded.policy.confidence))
    rules = expand_rules(loaded.policy, loaded.plan)
    for notice in hidden_notices(rules, loaded.plan, confidence=loaded.policy.confidence):
        click.echo(f"\n{notice}")
    return ExitCode.PASS


@click.command("burn-in", short_help="Measure the noise of the unchanged system and of its gate.")
@click.argument("policy", type=EXISTING_FILE)
@click.option(
    "--repeats", type=click.IntRange(2, 50), default=4, show_default=True,
    help="How many replicas to run; each asks every question again.",
)  # fmt: skip
@click.option("--out", type=FOLDER, help="Folder for burn-in.json (default: in the cache).")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@allow_python
@runtime_options
def burn_in(policy: Path, **options: Any) -> int:
    """Run the unchanged system of POLICY several times and compare the replicas with each other.

    Replicas differ by what means nothing: other neutral phrases, another order of the documents in
    the prompt, other sampling seeds. Reports how often the gate would have failed, how steady the
    labels are, and the standard deviations that `power` and `baseline accept --burn-in` use.
    """
    from fairgate.composition.diagnosing import burn_in_policy, write_burn_in
    from fairgate.reports.noise_tables import render_burn_in

    runtime = runtime_of(options)
    progress = progress_for(quiet=options["quiet"])
    loaded = load_policy(policy, runtime)
    found = burn_in_policy(loaded, runtime, progress, options["repeats"])
    folder = options["out"] or runtime.cache / "burn-in" / loaded.policy.name
    path = write_burn_in(folder, found)
    click.echo(render_burn_in(found))
    click.echo(f"\n{path}: for `fairgate power --burn-in` and `fairgate baseline accept --burn-in`")
    return ExitCode.PASS
