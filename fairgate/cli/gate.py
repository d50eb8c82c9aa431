"""`fairgate run`, `check`, `plan` and `rescore`."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import duration, harmless, listed
from fairgate.gate.loaded_policy import NO_BASELINE, LoadedPolicy, load_policy
from fairgate.io.git import writable
from fairgate.terminal.document import echo_json
from fairgate.terminal.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    FOLDER,
    POLICY_FILE,
    allow_python,
    format_option,
    json_option,
    place_options,
    refuse_machine_options,
    runtime_of,
    runtime_options,
)
from fairgate.terminal.output import progress_for, report_run, say


@click.command(short_help="Run a policy's gate.")
@click.argument("policy", type=POLICY_FILE)
@click.option("--out", type=FOLDER, help="Folder for report and record (default: in the cache).")
@click.option("--baseline", help="Baseline file, or `none`; default: baselines/<policy name>.json.")
@click.option("--report-only", is_flag=True, help="Exit 0 whatever the verdict; it is still shown.")
@format_option
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.option("--verbose", is_flag=True, help="Also print every rule, identity and figure.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N",
    help="Ask about at most N sources or items per suite: a first look, not the gate.",
)  # fmt: skip
@allow_python
@runtime_options
def run(policy: Path, **options: Any) -> int:
    """Run the gate of POLICY and exit with its verdict.

    Writes the reports that --format names, and run.json, rows.jsonl and executions.jsonl, into the
    folder --out. With --limit it is a quick first look, without comparison, that cannot become a
    baseline.
    """
    from fairgate.gate.accepted_runs import locate_accepted_runs
    from fairgate.gate.composition import Composition
    from fairgate.gate.examine import all_at_once
    from fairgate.gate.run_folder import output_folder
    from fairgate.reports.formats import chosen

    formats, runtime = chosen(options["formats"]), runtime_of(options)
    limit, baseline = options["limit"], options["baseline"]
    if limit is not None and baseline not in (None, NO_BASELINE):
        reason = "--limit asks a part of the suite, which no baseline fits; leave one out"
        raise UsageError(reason)
    with all_at_once(policy, runtime, NO_BASELINE if limit is not None else baseline):
        loaded = load_policy(policy, runtime, limit)
        baseline = baseline if limit is None else NO_BASELINE
        folder = output_folder(options["out"], runtime, loaded)
        composition = Composition(loaded, runtime, progress_for(quiet=options["quiet"]))
        with composition.until_it_ends():
            done = composition.run(locate_accepted_runs(loaded, policy, baseline))
            return report_run(done, folder, formats, options)


@click.command(short_help="Judge an earlier run's answers again.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.option(
    "--policy",
    type=EXISTING_FILE,
    help="Policy to judge by (default: the file that the run's record names).",
)
@click.option("--out", type=FOLDER, help="Folder for report and record (default: RUN/rescored).")
@click.option("--baseline", help="Baseline file, or `none`; default: baselines/<policy name>.json.")
@click.option("--report-only", is_flag=True, help="Exit 0 whatever the verdict; it is still shown.")
@format_option
@runtime_options
def rescore(run: Path, policy: Path | None, **options: Any) -> int:
    """Judge the stored answers of RUN again; no language model is loaded.

    Criterion, matching, bands, margins and gates may differ from the run's; labels may not,
    because answers are cut where the rest could not change the label.
    """
    from fairgate.gate.accepted_runs import locate_accepted_runs
    from fairgate.gate.run_folder import replay
    from fairgate.reports.formats import chosen

    formats = chosen(options["formats"])
    runtime = runtime_of(options)
    baseline = options["baseline"]
    folder = writable(options["out"] or run / "rescored", "--out")
    if options["out"] is None and folder.is_symlink():
        raise UsageError(f"{folder}: is a link, which came with the run; name a folder with --out")
    done = replay(run, policy, runtime, partial(locate_accepted_runs, named=baseline))
    return report_run(done, folder, formats, options)


@click.command(short_help="Validate a policy.")
@click.argument("files", type=POLICY_FILE, nargs=-1, required=True, metavar="POLICY...")
@click.option("--models", is_flag=True, help="Refuse a model that is to be fetched from the hub.")
@json_option
@place_options
def check(files: tuple[Path, ...], **options: Any) -> int:
    """Validate each POLICY and show what would run and what it costs; loads no model.

    Reports every problem that shows without a run, including model folders, the corpus, and
    which questions a recording answers. If `doctor` has asked the same `system`, each gate is tried
    on the answers that it got.
    """
    from fairgate.gate.examine import examine

    runtime, checked = runtime_of(options), []
    for file in files:
        loaded, notes = examine(file, runtime, fetches=not options["models"])
        if options["shape"] == "json":
            checked.append(_record(loaded, runtime.today, notes))
        else:
            lines = [_checked(loaded, runtime.today), *(f"  {note}" for note in notes)]
            click.echo("\n".join(lines))
    if options["shape"] == "json":
        echo_json(checked)
    return ExitCode.PASS


def _record(loaded: LoadedPolicy, today: dt.date | None, notes: Sequence[str]) -> dict[str, Any]:
    """Describe the run of a valid policy, for programs."""
    from fairgate.gate.rules import expand_rules, parity_rules

    plan = loaded.plan
    return {
        "path": loaded.parsed.path,
        "policy": loaded.policy.name,
        "suites": [
            {"suite": name, "cases": len(plan.cases_of(name)), "pairs": len(plan.units_of(name))}
            for name in loaded.suites
        ],
        "rules": [
            *(rule.name for rule in parity_rules(loaded.policy, loaded.suites)),
            *(rule.metric.id for rule in expand_rules(loaded.policy, plan)),
        ],
        "rejected": [
            {"case": item.key, "suite": item.suite, "kind": item.kind, "reason": item.reason}
            for item in plan.rejected
        ],
        "notes": [*_notices(loaded, today), *notes],
    }


def _notices(loaded: LoadedPolicy, today: dt.date | None) -> Iterator[str]:
    from fairgate.gate.rules import about_documents, idle_notices, sampled_notices
    from fairgate.gate.waivers import ended_notices
    from fairgate.systems.catalogue import kind_of

    yield from idle_notices(loaded.policy)
    can = kind_of(loaded.policy.system).capabilities()
    names = [] if can.gives_documents else about_documents(loaded.policy)
    if names:
        yield (
            f"{listed(names, last='and')}: a run would have no verdict, because the system tells "
            "no documents; give their place, or remove the rule"
        )
    yield from sampled_notices(loaded.policy, can.temperature)
    yield from ended_notices(loaded.policy, today)


def _checked(loaded: LoadedPolicy, today: dt.date | None) -> str:
    from fairgate.domain.cases import TestPlan
    from fairgate.gate.attribution import crosses, most_pairs, most_questions
    from fairgate.gate.rules import expand_rules, parity_rules
    from fairgate.systems.catalogue import kind_of

    plan, policy = loaded.plan, loaded.policy
    can = kind_of(policy.system).capabilities()
    rules = expand_rules(policy, plan)
    lines = [f"{loaded.parsed.path}: valid policy {policy.name!r}"]
    for name, suite in loaded.suites.items():
        own = TestPlan(cases=plan.cases_of(name), units=plan.units_of(name))
        lines += suite.describe(own)
        if not own.cases:
            lines.append("    nothing is asked of it, so a run has no verdict (exit code 5)")
        if crosses(suite) and can.gives_documents and can.takes_documents and can.repeatable:
            greedy = can.is_greedy
            crossed = most_pairs(suite, len(own.cases))
            most = most_questions(own.units, is_greedy=greedy, pairs=crossed)
            lines.append(
                f"    attribution ({suite.crossing}) asks more once answers are known, at "
                f"most {most}: where documents changed"
            )
    if policy.reference is not None:
        asked = sum(1 for case in plan.cases if not case.waits)
        who = "the reference is"
        if policy.compares_with_base:
            who = "where a base commit is known, on a pull request or with `--base`, its system is"
        lines.append(
            f"  {who} asked the same, {asked} questions less those in store: parts that are those "
            "of the system cost nothing"
        )
    refused = [item for item in plan.rejected if item.kind == "invalid"]
    lines += [f"  {len(refused)} follow-ups rejected by the linter:"] if refused else []
    lines += [f"    {item.key}: {item.reason}" for item in refused[:10]]
    pairs = {name for name, suite in loaded.suites.items() if suite.crossing is not None}
    skipped = [
        rejection
        for rejection in plan.rejected
        if rejection.suite in pairs and rejection.kind != "invalid"
    ]
    what = "sources or follow-ups that a relation does not apply to"
    lines += [f"  {len(skipped)} {what}:"] if skipped else []
    reasons = Counter(item.reason for item in skipped).most_common(5)
    lines += [f"    {count} times: {harmless(reason)}" for reason, count in reasons]
    questions = parity_rules(policy, loaded.suites)
    if questions:
        outcomes = dict.fromkeys(question.outcome.id for question in questions)
        lines.append(f"  {len(questions)} questions about parity of {', '.join(outcomes)}")
    if rules:
        lines.append(f"  {len(rules)} bounds of metrics")
    lines += [f"  {notice}" for notice in _notices(loaded, today)]
    return "\n".join(lines)


@click.command(short_help="Write the questions of a run.")
@click.argument("policy", type=POLICY_FILE)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="JSONL file (default: stdout).",
)  # fmt: skip
@click.option(
    "--after", type=EXISTING_FOLDER, metavar="RUN",
    help="Write what attribution asks after this run.",
)  # fmt: skip
@runtime_options
def plan(policy: Path, output: Path | None, after: Path | None, **options: Any) -> int:
    """Write one JSON line for each unique question of POLICY: key, wave, query, prompt, options.

    Send the query to your own retriever and the prompt to your own model, write {"key", "response",
    "documents"?} lines, and score them with `system: {recorded: FILE}`. The number of questions and
    the time that asking them takes are printed on stderr.
    """
    from fairgate.gate.run_folder import plan_lines, second_wave_lines, write_plan

    if after is None:
        refuse_machine_options("--after RUN, whose documents are embedded again")
    runtime = runtime_of(options)
    loaded = load_policy(policy, runtime)
    lines = plan_lines(loaded) if after is None else second_wave_lines(loaded, after, runtime)
    rows = list(lines)
    if output is not None:
        write_plan(output, rows)
    else:
        for row in rows:
            click.echo(row)
    amount = f"{len(rows):,} question{'s' * (len(rows) != 1)}"
    pace = f"`fairgate doctor {policy}` measures the system's own pace"
    if rows or after is not None:
        say(f"{amount}: {duration(len(rows))} at one second each. {pace}.")
    else:
        say(f"nothing is asked: `fairgate check {policy}` says why")
    return ExitCode.PASS
