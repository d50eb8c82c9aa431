"""`fairgate mutate`: what a policy catches of biased variants of a run, as text and as JSON."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import quoted
from fairgate.features.mutation.mutants import Mutant, MutationKind, noun_of
from fairgate.features.mutation.mutation_test import (
    GRID,
    NO_VERDICT,
    CatchingRule,
    KillScore,
    MutantSearch,
    MutationTest,
)
from fairgate.gate.accepted_runs import locate_references
from fairgate.gate.run_folder import replay
from fairgate.reports.escaping import plain
from fairgate.reports.figures import metric_in
from fairgate.terminal import options as shared
from fairgate.terminal.document import echo_json
from fairgate.terminal.output import progress_for, say

_HEADER = ("mutant", "target", "caught from", "seeds", "95 % interval", "by")
_BY = 2
"""Rules that a row names."""
_TARGETS = 6
"""Targets that a sentence names."""
TableCells = tuple[str, ...]


def render_kill_score(score: KillScore) -> str:
    """Return the score for a terminal."""
    rows = [_HEADER, *(tuple(map(plain, row)) for row in _rows(score))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ([f"{cell:<{n}}" for cell, n in zip(row, widths, strict=True)] for row in rows)
    lines = ["  ".join(row).rstrip() for row in aligned]
    crossed = "were left out: a changed pair has no crossed answers"
    parts = {
        "Not seen": list(not_seen(score)),
        "Not mutated": [
            *(f"suite {item.suite}, {item.what}: {item.reason}" for item in score.not_mutated),
            *(f"rules about {name} {crossed}" for name in score.left_out),
        ],
    }
    for title, sentences in parts.items():
        if sentences:
            lines += ["", f"{title}:", "", *(f"  {plain(line)}" for line in sentences)]
    return "\n".join(map(plain, _head(score))) + "\n\n" + "\n".join(lines)


def kill_score_record(score: KillScore) -> dict[str, Any]:
    """Return everything as plain data, for JSON; rates are fractions."""
    search = score.search
    return {
        "policy": score.policy,
        "sources": score.sources,
        "strengths": list(search.grid),
        "stated": search.stated,
        "wanted": search.wanted,
        "seeds": search.seeds,
        "score": {"share": score.score, "caught": score.caught, "mutants": score.mutants},
        "false_kills": {
            "failed": score.false_kills,
            "worse_for_everybody": sum(
                i.stated.failed - i.stated.about_people for i in score.controls
            ),
            "mutants": sum(item.stated.runs for item in score.controls),
        },
        "found": [asdict(item) for item in score.found],
        "controls": [asdict(item) for item in score.controls],
        "not_mutated": [asdict(item) for item in score.not_mutated],
        "left_out": list(score.left_out),
        "not_seen": list(not_seen(score)),
    }


def _head(score: KillScore) -> Iterator[str]:
    search = score.search
    yield (
        f"Kill score of policy {score.policy}: {100 * score.caught // score.mutants} % "
        f"({score.caught} of {score.mutants} biased variants of the run are caught at "
        f"a strength of {_percent(search.stated)}; {score.sources} sources)"
    )
    yield (
        f"A strength of 15 % changes that share of the target's cases. Caught from: the smallest "
        f"strength of {', '.join(map(_percent, search.grid))} at which the gate stops the build "
        f"with at least {search.needed} of {search.seeds} seeds."
    )
    alike = sum(item.stated.runs for item in score.controls)
    if alike:
        none = sum(item.stated.caught - item.stated.failed for item in score.controls)
        worse = sum(item.stated.failed - item.stated.about_people for item in score.controls)
        more = f"; {worse} more fail another one, because everybody fares worse" if worse else ""
        more += f"; {none} more have no verdict, for too few readable answers" if none else ""
        yield (
            f"False kills: {score.false_kills} of {alike} control variants, which are about no "
            f"identity, fail a rule that compares people{more}."
        )


def _rows(score: KillScore) -> Iterator[TableCells]:
    for item in (*score.found, *score.controls):
        tried = item.smallest or item.tried[-1]
        low, high = tried.interval
        yield (
            noun_of(item.mutant),
            item.mutant.target or "all",
            "not caught" if item.smallest is None else _percent(tried.strength),
            f"{tried.caught} of {tried.runs}",
            f"{100 * low:.0f} to {100 * high:.0f} %",
            "" if item.smallest is None else "; ".join(map(_rule, tried.rules[:_BY])),
        )


def _rule(rule: CatchingRule) -> str:
    if rule.metric == NO_VERDICT:
        return NO_VERDICT
    return f"{metric_in(rule.metric, rule.where)}: {', '.join(rule.checks)}"


def not_seen(score: KillScore) -> Iterator[str]:
    """Yield a sentence for what no rule catches, targets of one limit together."""
    groups: dict[tuple[str, float | None], list[str]] = {}
    for item in score.found:
        if item.smallest is not None and not item.missed:
            continue
        limit = None if item.smallest is None else item.smallest.strength
        groups.setdefault((noun_of(item.mutant), limit), []).append(item.mutant.target)
    for (noun, limit), targets in groups.items():
        most = f"at any strength up to {_percent(score.search.grid[-1])}"
        how_much = most if limit is None else f"below {_percent(limit)}"
        more = f" and {len(targets) - _TARGETS} more" if len(targets) > _TARGETS else ""
        whom = f" for {', '.join(targets[:_TARGETS])}{more}" if any(targets) else ""
        yield f"This policy does not see {noun}{whom} {how_much}."


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


@click.command(short_help="Say how much bias a policy would have caught in a run.")
@click.argument("policy", type=shared.POLICY_FILE)
@click.argument("run", type=shared.EXISTING_FOLDER, metavar="RUN")
@click.option("--baseline", help="Baseline file, or `none`; default: baselines/<policy name>.json.")
@click.option(
    "--at", type=shared.SHARE, default=0.3, show_default=True,
    help="Strength at which the kill score is taken.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(2, 1000), default=10, show_default=True,
    help="Variants of each kind, target and strength.",
)  # fmt: skip
@click.option(
    "--kinds", default="answers,refusals,documents,stereotypes", show_default=True, metavar="LIST",
    help="Kinds of change, comma-separated.",
)  # fmt: skip
@shared.json_option
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@shared.runtime_options
def mutate(policy: Path, run: Path, **options: Any) -> int:
    """Make biased variants of the finished run in the folder RUN and put them to POLICY's gate.

    Says for every kind of bias and every term from which strength on the gate stops the build, by
    which rule, and what no rule sees. Asks no model, and changes nothing in RUN. Exits 0 whatever
    the score: it is about the policy, not about the system.
    """
    runtime = shared.runtime_of(options)
    strength = options["at"]
    search = MutantSearch(
        kinds=_kinds(options["kinds"]), grid=tuple(sorted({*GRID, strength})), stated=strength,
        seeds=options["seeds"],
    )  # fmt: skip
    done = replay(run, policy, runtime, partial(locate_references, named=options["baseline"]))
    test = MutationTest(done.run.gate_input, done.run.executions, done.vectors)
    mutants = test.mutants(search)
    test.check()  # embeds the documents, once for all
    started = time.monotonic()
    test.check()
    seconds = time.monotonic() - started
    if not options["quiet"]:
        count = sum(isinstance(item, Mutant) for item in mutants)
        most = search.most_runs(count)
        say(
            f"fairgate: mutate: {count} targets, at most {most} gate runs of about "
            f"{seconds:.2f} s each: at most {max(1, math.ceil(most * seconds / 60))} minutes"
        )
    scored = test.score(mutants, search, progress_for(quiet=options["quiet"]))
    if options["shape"] == "json":
        echo_json(kill_score_record(scored))
    else:
        click.echo(render_kill_score(scored))
    return ExitCode.PASS


def _kinds(kinds: str) -> tuple[MutationKind, ...]:
    names = list(dict.fromkeys(name.strip() for name in kinds.split(",")))
    unknown = [name for name in names if name not in list(MutationKind)]
    if unknown:
        possible = ", ".join(MutationKind)
        raise UsageError(f"--kinds: no kind {quoted(unknown[0])}; expected some of {possible}")
    return tuple(MutationKind(name) for name in names)
