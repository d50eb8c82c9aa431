"""`fairgate power`: what could be seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.json_text import flat
from fairgate.domain.runtime import Runtime
from fairgate.gate.loaded_policy import LoadedPolicy, load_policy
from fairgate.terminal.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    echo_json,
    json_option,
    refuse_machine_options,
    runtime_of,
    runtime_options,
)

if TYPE_CHECKING:
    from fairgate.features.power.power import RulePower
    from fairgate.gate.baseline import Baseline
    from fairgate.stats.regression import PreparedRegression


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
    from fairgate.features.power.report import render_power
    from fairgate.gate.accepted_runs import locate_references
    from fairgate.gate.few_sources import hidden_notices
    from fairgate.gate.rules import expand_rules

    if options["run"] is None:
        refuse_machine_options("--run RUN, whose documents are embedded again")
    runtime = runtime_of(options)
    loaded = load_policy(policy, runtime)
    baseline = locate_references(loaded, policy, options["baseline"]).baseline
    rows = _rows(
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


def _rows(
    loaded: LoadedPolicy,
    runtime: Runtime,
    baseline: Baseline | None,
    *,
    run: Path | None,
    burn_in_file: Path | None,
) -> list[RulePower]:
    """Return what each regression rule can see, from all that is known about its noise."""
    from fairgate.features.power.power import rule_power
    from fairgate.gate.baseline import unit_contents
    from fairgate.gate.burn_in_file import read_burn_in
    from fairgate.gate.comparison import Comparison, prepare_rule
    from fairgate.gate.rules import expand_rules
    from fairgate.gate.run_folder import replay

    sds = list(baseline.sds) if baseline else []
    if burn_in_file is not None:
        sds += read_burn_in(burn_in_file, loaded.policy.name)
    rules = expand_rules(loaded.policy, loaded.plan)
    observed: dict[int, PreparedRegression] = {}
    if run is not None:
        if baseline is None:
            raise UsageError("--run needs a baseline to compare with; name it with --baseline")
        path = Path(loaded.parsed.path)
        replayed, given, _, _ = replay(run, path, runtime)
        contents = {name: unit_contents(given.plan, name) for name in replayed.tables}
        comparison = Comparison(baseline=baseline, contents=contents)
        for number, rule in enumerate(rules):
            if rule.gate.regression is not None:
                table = replayed.tables[rule.suite]
                found = prepare_rule(rule, table, comparison, loaded.policy.seed)
                if found is not None and found.evidence.evaluated:
                    observed[number] = found
    return rule_power(rules, loaded.plan, loaded.policy, sds, observed)
