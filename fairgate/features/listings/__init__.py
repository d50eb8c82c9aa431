"""`fairgate relations` and `fairgate metrics`: the catalogues, and measured precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.terminal import options as shared
from fairgate.terminal.document import echo_json


@click.group(short_help="List and explain the metamorphic relations.")
def relations() -> None:
    """Metamorphic relations that suites can name."""


@relations.command("list")
@shared.json_option
def list_relations(shape: str) -> int:
    """List every relation: id, what it does, paper, oracle, default, measured precision."""
    from fairgate.features.listings.precision import default_of, oracle_of, precision_of
    from fairgate.relations.catalogue import RELATIONS

    if shape == "json":
        rows = [
            {
                "id": relation_listed.id,
                "title": relation_listed.title,
                "paper": relation_listed.paper,
                "oracle": oracle_of(relation_listed),
                "advisory": relation_listed.advisory,
                "precision": precision_of(relation_listed.id),
            }
            for relation_listed in RELATIONS
        ]
        echo_json(rows)
        return ExitCode.PASS
    for relation in RELATIONS:
        facts = (relation.paper, f"oracle {oracle_of(relation)}", default_of(relation))
        precision = f"precision {precision_of(relation.id)}"
        click.echo(f"{relation.id:<32} {relation.title} — {'; '.join((*facts, precision))}")
    return ExitCode.PASS


@relations.command("explain")
@click.argument("relation")
def explain_relation(relation: str) -> int:
    """Explain RELATION: transformation, when it holds and when not, oracle, examples."""
    from fairgate.features.listings.precision import oracle_of, precision_of
    from fairgate.relations.catalogue import RELATIONS

    explained = RELATIONS[relation]
    lines = [
        f"{explained.id}: {explained.title} ({explained.paper})",
        "",
        explained.description,
        f"Must hold: {explained.expects}",
        f"Not owed where: {explained.not_owed}",
        f"Oracle: {oracle_of(explained)}. Precision: {precision_of(explained.id)}.",
        "A violation fails the build." if not explained.advisory else "Advisory: reported only.",
        "",
    ]
    for example in explained.EXAMPLES:
        lines += [f"source     {example.source!r}"]
        lines += [f"follow-up  {text!r}" for text in example.follow_ups]
        lines += [f"{s.verdict:<10} {s.source!r} / {s.follow_up!r}" for s in example.answers]
        lines += [""]
    lines += [f"not for    {item.text!r}: {item.reason}" for item in explained.NOT_APPLICABLE]
    click.echo("\n".join(lines))
    return ExitCode.PASS


@relations.command("measure")
@click.argument("labelled", type=shared.EXISTING_FILE, required=False, metavar="[LABELLED]")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="JSON file for the figures."
)
@shared.json_option
@shared.runtime_options
def measure(labelled: Path | None, out: Path | None, **options: Any) -> int:
    """Measure on labelled answers how many reported violations are real differences.

    LABELLED (JSONL; default: the answers that FairGate ships) has a row for each pair of answers:
    {"relation", "source", "follow_up", "differs", "task"?, "items"?}. `relation` is an id or a
    family, `differs` whether a person reads a difference that the relation compares.
    """
    from fairgate.features.listings.precision import (
        embedded_labels,
        measure_relations,
        record_of,
        share,
    )
    from fairgate.io.durable import write_text

    path = labelled or embedded_labels()
    measured = measure_relations(path, shared.runtime_of(options))
    record = record_of(measured, path)
    if out is not None:
        write_text(out, f"{json.dumps(record, indent=1, sort_keys=True)}\n", option="--out")
    if options["shape"] == "json":
        echo_json(record)
        return ExitCode.PASS
    for name, figures in measured.items():
        click.echo(
            f"{name:<32} precision {share(figures.real, figures.reported)}, recall "
            f"{share(figures.real, figures.differing)}; {figures.answers} answers, "
            f"{figures.undecided} undecided"
        )
        if figures.wrong:
            more = f" and {len(figures.wrong) - 1} more" if figures.wrong[1:] else ""
            lines = f"line {figures.wrong[0]}{more}"
            click.echo(f"{'':<32} reported, but labelled as no difference: {lines}")
    return ExitCode.PASS


@click.group(short_help="List what gates can name.")
def metrics() -> None:
    """List what gates can name: outcomes of `parity`, and metrics."""


@metrics.command("list")
@shared.json_option
def list_metrics(shape: str) -> int:
    """List the outcomes that `parity` takes, then every metric with its words and dimensions."""
    from fairgate.metrics.catalogue import METRICS
    from fairgate.metrics.parity import OUTCOMES

    if shape == "json":
        limits = ("id", "max", "regression")
        columns = ("id", "title", "better", "dimensions", "version")
        echo_json(
            {
                "outcomes": [{name: getattr(each, name) for name in limits} for each in OUTCOMES],
                "metrics": [
                    {name: getattr(each, name) for name in columns}
                    | {"suite_kind": each.units.suite_kind}
                    for each in METRICS
                ],
            }
        )
        return ExitCode.PASS
    for outcome in OUTCOMES:
        click.echo(
            f"{f'parity: {outcome.id}':<28} who has other {outcome.noun} than control prompts; "
            f"standard limits: max {outcome.max:g}, regression {outcome.regression:g}"
        )
    for metric in METRICS:
        by = f"; by {', '.join(metric.dimensions)}" if metric.dimensions else ""
        click.echo(f"{metric.id:<28} {metric.title} ({metric.better} is better{by})")
    return ExitCode.PASS
