"""`fairgate power`: what a policy's regression rules can see, and how many sources more would take.

A change of x points is seen where the rule fails nine times of ten when the true change is x
(`stats/regression.py`). That rests on the standard deviation of the per-source change: the largest
of what the policy declares, what a burn-in measured, and what two runs showed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.errors import ExitCode
from fairgate.domain.json_text import flat
from fairgate.gate.accepted_runs import locate_references
from fairgate.gate.baseline import Baseline, KnownSd, Reference, read_burn_in, unit_contents
from fairgate.gate.bounds import hidden_notices
from fairgate.gate.changes import Comparison, prepare_rule
from fairgate.gate.gate import GateRun
from fairgate.gate.loaded_policy import LoadedPolicy, load_policy
from fairgate.gate.rules import Rule, expand_rules
from fairgate.gate.run_folder import replay
from fairgate.gate.wording_power import (
    DEGREES,
    LABELS,
    POWER,
    Group,
    SuitePower,
    WordingNoise,
    read_wording,
    suite_powers,
    wording_noise,
)
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.sentences import FEWEST_SOURCES, GROUNDED, LEAST_CORE, MISSING, RECURRING
from fairgate.policy.schema import Policy
from fairgate.reports import figures
from fairgate.reports.escaping import plain
from fairgate.reports.figures import metric_in
from fairgate.stats.exchange import exchange_p
from fairgate.stats.observations import cluster_contributions
from fairgate.stats.regression import (
    PreparedRegression,
    RuleDesign,
    minimum_detectable_effect,
    simulated_power,
    sources_needed,
)
from fairgate.systems.catalogue import kind_of
from fairgate.terminal import options as shared

EFFECTS = (0.01, 0.02, 0.05)
ASSUMED = (0.05, 0.1, 0.2, 0.4)
"""Standard deviations that are shown where none is known."""


@click.command(short_help="Show what the suite can detect, and how many sources more would take.")
@click.argument("policy", type=shared.EXISTING_FILE)
@click.option("--baseline", help="Baseline file; default: baselines/<policy name>.json, if any.")
@click.option(
    "--run", type=shared.EXISTING_FOLDER, help="A finished run to compare with the baseline."
)
@click.option("--burn-in", "burn_in_file", type=shared.EXISTING_FILE, help="A burn-in.json.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), metavar="S",
    help="How long one question takes, for the minutes; a burn-in says it.",
)  # fmt: skip
@shared.json_option
@shared.runtime_options
def power(policy: Path, **options: Any) -> int:
    """Show which changes the regression rules of POLICY can detect, and what more would take.

    Counts the sources that it takes to see +1, +2 and +5 points. Rests on the standard deviation
    of the per-source change: the largest of what the policy declares (`sd`), what a burn-in
    measured, and what --run and --baseline show. Says besides how much harm to one identity, a
    category or everyone is told from what neutral phrases do, in questions and minutes, how many
    pairs must hide something for a bound of `intersectional/hidden` to fail, and how many of one
    identity's answers must show a reading of answers in sentences.
    """
    if options["run"] is None:
        shared.refuse_machine_options("--run RUN, whose documents are embedded again")
    runtime = shared.runtime_of(options)
    loaded = load_policy(policy, runtime)
    baseline = locate_references(loaded, policy, options["baseline"]).baseline
    sds = list(baseline.sds) if baseline else []
    noises: list[WordingNoise] = []
    if options["burn_in_file"] is not None:
        sds += read_burn_in(options["burn_in_file"], loaded.policy.name)
        noises += read_wording(options["burn_in_file"])
    rules = expand_rules(loaded.policy, loaded.plan)
    observed = {}
    if options["run"] is not None:
        run = replay(options["run"], Path(loaded.parsed.path), runtime).run
        noises += wording_noise(run.tables, "run")
        observed = {} if baseline is None else _observed(run, rules, loaded, baseline)
    rows = rule_power(rules, loaded.plan, loaded.policy, sds, observed)
    powers = list(suite_powers(loaded.plan, _metrics_of(loaded), noises))
    if options["shape"] == "json":
        regressions = [{**flat(row), "where": dict(row.where)} for row in rows]
        shared.echo_json({"regressions": regressions, "wording": list(map(_flat_power, powers))})
        return ExitCode.PASS
    if powers:
        click.echo("\n".join(wording_lines(powers, options["seconds"])) + "\n")
    click.echo("\n".join(power_lines(rows, loaded.policy.confidence)))
    for notice in hidden_notices(rules, loaded.plan, confidence=loaded.policy.confidence):
        click.echo(f"\n{notice}")
    temperature = kind_of(loaded.policy.system).capabilities().temperature
    if lines := list(sentence_lines(rules, loaded.plan, loaded.policy, temperature)):
        click.echo("\n" + "\n".join(lines))
    return ExitCode.PASS


def _metrics_of(loaded: LoadedPolicy) -> dict[str, list[str]]:
    """Name the metrics of each suite of which it is told what harm they tell."""
    metrics = {}
    for name, suite in loaded.suites.items():
        degrees = [DEGREES] if getattr(suite.policy, "reads_degrees", False) else []
        labels = [] if suite.lacks(BY_ID[LABELS].column) else [LABELS]
        metrics[name] = degrees + labels
    return metrics


def _flat_power(suite_power: SuitePower) -> dict[str, Any]:
    return {
        "suite": suite_power.noise.suite,
        "metric": suite_power.noise.metric,
        "origin": suite_power.noise.origin,
        "identities": suite_power.identities,
        "phrases": suite_power.phrases,
        "designs": [
            {"sources": design.sources, "questions": design.questions}
            | {group.value: round(least, 4) for group, least in design.least.items()}
            for design in suite_power.designs
        ],
    }


def wording_lines(powers: Sequence[SuitePower], seconds: float | None) -> Iterator[str]:
    """Yield which harm each suite tells from neutral wording, and what more sources would tell."""
    yield (
        f"Beside neutral wording, harm is told {10 * POWER:.0f} times of 10 from so many points "
        "on; a rule's limit comes on top:"
    )
    for suite_power in powers:
        noise = suite_power.noise
        yield ""
        yield (
            f"{noise.metric} in suite {plain(noise.suite)}, {suite_power.identities} identities "
            f"beside {suite_power.phrases} neutral phrases"
        )
        header = "".join(f"{group.value:>15}" for group in Group)
        yield f"  {'sources':>9}{'questions':>11}{'minutes':>9}{header}"
        for number, design in enumerate(suite_power.designs):
            minutes = "" if seconds is None else f"{design.questions * seconds / 60:,.1f}"
            least = "".join(f"{_points(design.least[group]):>15}" for group in Group)
            now = " now" if not number else ""
            yield f"  {design.sources:>9,}{design.questions:>11,}{minutes:>9}{least}{now}"
    if any(suite_power.noise.origin == "assumed" for suite_power in powers):
        yield ""
        yield (
            "Nothing is known yet about how answers of this system vary: assumed is what a small "
            "model's do (SmolLM2-135M on reviews). Measure it with `fairgate burn-in`, or name a "
            "finished run with --run."
        )
    if seconds is None:
        yield ""
        yield "For minutes say how long a question takes (--seconds); `fairgate burn-in` says it."


def _points(value: float) -> str:
    return f"{100 * value:.1f}" if value <= 1 else "nothing"


def _observed(
    run: GateRun, rules: Sequence[Rule], loaded: LoadedPolicy, baseline: Baseline
) -> dict[int, PreparedRegression]:
    """Return a finished run's comparison with the baseline, by position of the rule."""
    tables, plan = run.tables, run.gate_input.plan
    contents = {name: unit_contents(plan, name) for name in tables}
    comparison = Comparison(runs={Reference.BASELINE: baseline}, contents=contents)
    observed = {}
    for number, rule in enumerate(rules):
        if rule.gate.regression is not None:
            prepared = prepare_rule(rule, tables[rule.suite], comparison, loaded.policy.seed)
            if prepared is not None and prepared.evidence.evaluated:
                observed[number] = prepared
    return observed


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePower:
    """What one regression rule can see with one standard deviation of the per-source change."""

    metric: str
    suite: str
    where: Mapping[str, str]
    sources: int
    margin: float
    detect: float
    sd: float
    origin: str
    """`declared`, `burn-in`, `observed`, or `assumed`."""
    level: float
    """One-sided level: the strictest that the rule has under Holm."""
    sees: float | None
    """Smallest change that is caught nine times of ten; None: none at all."""
    needed: Mapping[float, int | None]
    """Change to sources that make it significant, and where it is above the margin also failing;
    None where ten million would not do."""
    simulated: float | None
    """Chance to catch a change of `detect`, simulated from the observed changes."""


def rule_power(
    rules: Sequence[Rule],
    plan: TestPlan,
    policy: Policy,
    sds: Sequence[KnownSd],
    observed: Mapping[int, PreparedRegression],
) -> list[RulePower]:
    """Return a row for each regression rule; several, with assumed SDs, where none is known.

    `observed` maps positions in `rules` to the comparison of a run with a baseline.
    """
    level_of = _levels(rules, policy)
    rows = []
    for number, rule in enumerate(rules):
        regression, seen = rule.gate.regression, observed.get(number)
        if regression is None:
            continue
        design = RuleDesign(level=level_of[number], margin=regression.margin)
        sources = len({unit.cluster for unit in plan.units if unit.suite == rule.suite})
        simulated = None
        if seen is not None and seen.evidence.sd > 0:
            changes = cluster_contributions(seen.pairs.difference) * seen.evidence.n_sources
            centred, rng = changes - changes.mean(), np.random.default_rng(seen.evidence.n_sources)
            simulated = simulated_power(centred, regression.detect, sources, design, rng=rng)
        sd_with_origin = _known(rule, sds, seen)
        for sd, origin in (
            [sd_with_origin] if sd_with_origin else [(sd, "assumed") for sd in ASSUMED]
        ):
            sees = minimum_detectable_effect(sd, sources, design)
            # Where the margin already tolerates a change, the sources are for the test alone.
            margins = {e: design.margin if e > design.margin else 0.0 for e in EFFECTS}
            needed = {
                effect: sources_needed(effect, sd, replace(design, margin=margin))
                for effect, margin in margins.items()
            }
            row = RulePower(
                metric=rule.metric.id,
                suite=rule.suite,
                where=rule.where,
                sources=sources,
                margin=regression.margin,
                detect=regression.detect,
                sd=sd,
                origin=origin,
                level=design.level,
                sees=sees if math.isfinite(sees) else None,
                needed=needed,
                simulated=simulated,
            )
            rows.append(row)
    return rows


def _levels(rules: Sequence[Rule], policy: Policy) -> dict[int, float]:
    """Return the strictest level of each rule that is tested: its line's part of the whole."""
    tested = [n for n, r in enumerate(rules) if r.gate.regression or r.metric.compares_terms]
    lines = [(rules[n].position, rules[n].suite) for n in tested]
    many = Counter(lines)
    alpha = 1 - policy.confidence
    if policy.correction != "holm":
        return dict.fromkeys(tested, alpha)
    regressions = {line: rules[n].gate.regression for line, n in zip(lines, tested, strict=True)}
    parts = sum(
        1 if regression is None or regression.budget is None else 2
        for regression in regressions.values()
    )
    return {n: alpha / parts / many[line] for n, line in zip(tested, lines, strict=True)}


def _known(
    rule: Rule, sds: Sequence[KnownSd], observed: PreparedRegression | None
) -> tuple[float, str] | None:
    """Return the largest known standard deviation and its source."""
    name = (rule.metric.id, rule.suite, dict(rule.where))
    candidates = [(sd.sd, "burn-in") for sd in sds if (sd.metric, sd.suite, dict(sd.where)) == name]
    if rule.gate.regression is not None and rule.gate.regression.sd is not None:
        candidates.append((rule.gate.regression.sd, "declared"))
    # Two equal runs of a deterministic system say nothing about noise.
    if observed is not None and observed.evidence.sd > 0:
        candidates.append((observed.evidence.sd, "observed"))
    return max(candidates, default=None)


def power_lines(rows: Sequence[RulePower], confidence: float) -> Iterator[str]:
    """Yield what every regression rule can see, and the sources that more would take."""
    if not rows:
        yield "The policy has no regression rule: nothing is compared with a baseline."
        return
    yield (
        "A change is seen when the rule fails 9 times of 10 if the true change is that large, "
        f"at {100 * confidence:g} % confidence for all rules together."
    )
    previous = None
    for row in rows:
        name = metric_in(row.metric, row.where)
        if name != previous:
            yield ""
            yield f"{plain(name)} in suite {plain(row.suite)}: {row.sources} sources now"
            header = "".join(f"{_change(effect, row.metric) + ' takes':>20}" for effect in EFFECTS)
            yield f"  {'SD of the change':<18}{'seen from':>14}{header}"
        previous = name
        counts = "".join(f"{_shown_sources(row, effect):>20}" for effect in EFFECTS)
        sees = "nothing" if row.sees is None else _change(row.sees, row.metric)
        yield f"  {f'{row.sd:.3f} {row.origin}':<18}{sees:>14}{counts}"
        if row.simulated is not None:
            yield (
                f"  simulated from the observed changes: {_change(row.detect, row.metric)} is "
                f"caught in {100 * row.simulated:.0f} % of runs"
            )
    if any(effect <= row.margin for row in rows for effect in EFFECTS):
        yield ""
        yield "* would be significant, but the rule tolerates a change of that size (`margin`)"
    if any(row.origin == "burn-in" for row in rows):
        yield ""
        yield (
            "A burn-in measures the unchanged system; a change that hits sources unequally brings "
            "an SD of its own."
        )
    if any(row.origin == "assumed" for row in rows):
        yield ""
        yield (
            "Nothing is known yet about the noise of the rules with assumed SDs: measure it with "
            "`fairgate burn-in`, or compare a run with a baseline (--baseline and --run)."
        )


_OFTEN = 0.05
"""Rate of neutral answers that show a reading, beside none, for which its power is told."""
_RECURS_WHEN_SAMPLED = {1: 0.4, 2: 0.2}
"""Share of answers with a recurring sentence that is seen nine times of ten at temperature 0.7.

By answers to a question; of SmolLM2's answers to 40 questions (`docs/explanation/sentences.md`).
"""


def sentence_lines(
    rules: Sequence[Rule], plan: TestPlan, policy: Policy, temperature: float | None
) -> Iterator[str]:
    """Yield how many of one identity's answers must show a reading for its rule to fail.

    `temperature`: of the system's answers; None: not known.
    """
    level_of = _levels(rules, policy)
    repeats_of = {suite.id: getattr(suite, "repeats", 1) for suite in policy.suites}
    told: set[str] = set()
    for number, rule in enumerate(rules):
        metric = rule.metric
        if not metric.compares_terms_with_neutral or rule.where or metric.id in (MISSING, GROUNDED):
            continue
        units = [unit for unit in plan.units if unit.suite == rule.suite]
        sources, repeats = len({unit.cluster for unit in units}), repeats_of[rule.suite]
        phrases = len({unit.dimensions.get("term", "") for unit in units if unit.is_control})
        identities = {
            (unit.dimensions.get("category", ""), unit.dimensions.get("term", ""))
            for unit in units
            if not unit.is_control
        }
        if rule.suite not in told:
            told.add(rule.suite)
            yield (
                f"Answers in sentences in suite {plain(rule.suite)}, {sources} for each of "
                f"{len(identities)} identities beside {phrases} neutral phrases"
                f"{_repeated(repeats)}. A rule fails if one identity's answers show its reading in"
            )
        level, limit = level_of[number] / max(1, len(identities)), rule.gate.max or 0.0
        if sources < FEWEST_SOURCES:
            yield f"  {metric.id}: no verdict below {FEWEST_SOURCES} sources"
            continue
        least = fewest_answers(sources, phrases, level, limit, repeats=repeats)
        if least is not None and metric.id == RECURRING:
            least = max(least, LEAST_CORE)
        line = f"  {metric.id}: {_of(least, sources)}, where no neutral answer does"
        if metric.id == RECURRING and temperature:
            least_seen = min(_RECURS_WHEN_SAMPLED.values())
            sampled = math.ceil(sources * _RECURS_WHEN_SAMPLED.get(repeats, least_seen))
            line += f"; about {_of(sampled, sources)} at temperature 0.7"
        elif metric.id != RECURRING:
            often = fewest_answers(sources, phrases, level, limit, neutral=_OFTEN, repeats=repeats)
            line += f"; {_of(often, sources)}, where {100 * _OFTEN:g} % of the neutral ones do"
        yield line
    if told and temperature != 0:
        drawn = "Sampled answers" if temperature is None else "Answers drawn at a temperature"
        yield (
            f"{drawn} hold strange sentences by chance, those of neutral phrases, too: ask "
            "greedily (`temperature: 0`), or with `repeats: 3`."
        )


def _repeated(repeats: int) -> str:
    return f", each asked {repeats} times" if repeats > 1 else ""


def _of(count: int | None, sources: int) -> str:
    return "more answers than there are" if count is None else f"{count:,} of {sources:,}"


def fewest_answers(
    sources: int,
    phrases: int,
    level: float,
    limit: float,
    *,
    neutral: float = 0.0,
    repeats: int = 1,
) -> int | None:
    """Count the answers to one identity that must show a reading for its rule to fail; None: more.

    The permutation within sources at `level`, and a difference from neutral wording above `limit`.
    Of the neutral answers, `phrases` to each source in each of `repeats`, the rate `neutral` shows
    it, whichever they are.
    """
    others = np.zeros((sources, phrases))
    for shown in range(1, repeats + 1):  # so many of an answer's repeats, or more
        share = math.fsum(
            math.comb(repeats, n) * neutral**n * (1 - neutral) ** (repeats - n)
            for n in range(shown, repeats + 1)
        )
        counts = np.diff(np.rint(np.arange(sources + 1) * phrases * share))
        others += (np.arange(phrases) < counts[:, None]) / repeats
    for count in range(1, sources + 1):
        own = np.repeat([1.0, 0.0], [count, sources - count])
        if count / sources - neutral > limit and exchange_p(own, list(others))[0] <= level:
            return count
    return None


def _shown_sources(row: RulePower, effect: float) -> str:
    count = row.needed[effect]
    mark = "*" if effect <= row.margin else " "
    return "too many " if count is None else f"{count:,} sources{mark}"


def _change(value: float, metric: str) -> str:
    return figures.signed(value, metric) + figures.points(metric)
