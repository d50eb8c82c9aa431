"""`fairgate relations` and `fairgate metrics`."""

from __future__ import annotations

import click

from fairgate.domain.errors import ExitCode


@click.group(short_help="List and explain the metamorphic relations.")
def relations() -> None:
    """Metamorphic relations that suites can name."""


@relations.command("list")
def list_relations() -> int:
    """List every relation: id and what it does."""
    from fairgate.relations.catalogue import RELATIONS

    for relation in RELATIONS:
        kind = " (advisory)" if relation.advisory else ""
        click.echo(f"{relation.id:<32} {relation.title}{kind} — {relation.paper}")
    return ExitCode.PASS


@relations.command("explain")
@click.argument("relation")
def explain_relation(relation: str) -> int:
    """Explain RELATION: transformation, what must hold, where it does not apply, examples."""
    from fairgate.relations.catalogue import RELATIONS

    found = RELATIONS[relation]
    lines = [
        f"{found.id}: {found.title} ({found.paper})",
        "",
        found.description,
        f"Must hold: {found.expects}",
        "A violation fails the build." if not found.advisory else "Advisory: reported only.",
        "",
    ]
    for example in found.EXAMPLES:
        lines += [f"source     {example.source!r}"]
        lines += [f"follow-up  {text!r}" for text in example.follow_ups] + [""]
    lines += [f"not for    {item.text!r}: {item.reason}" for item in found.NOT_APPLICABLE]
    click.echo("\n".join(lines))
    return ExitCode.PASS


@click.group(short_help="List and explain the metrics.")
def metrics() -> None:
    """Numbers that rules can name."""


@metrics.command("list")
def list_metrics() -> int:
    """List every metric: id, plain words, which direction is better, dimensions."""
    from fairgate.metrics.catalogue import METRICS

    for metric in METRICS:
        by = f"; by {', '.join(metric.dimensions)}" if metric.dimensions else ""
        click.echo(f"{metric.id:<28} {metric.title} ({metric.better} is better{by})")
    return ExitCode.PASS
