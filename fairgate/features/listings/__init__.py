"""`fairgate relations` and `fairgate metrics`: the catalogues."""

from __future__ import annotations

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
