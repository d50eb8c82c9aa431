"""`fairgate blame`: what explains a red verdict, for terminals, as data, and in one line.

Ids of documents are text that nobody has checked: each is cut and escaped, and few are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.wording import quoted
from fairgate.features.blame.factors import (
    Blame,
    ExplainedRule,
    Known,
    Move,
    SearchedDocuments,
    rule_name,
)
from fairgate.features.blame.mixed_corpus import ChangedDocument
from fairgate.features.blame.sides import Factor
from fairgate.io.git import writable
from fairgate.reports.escaping import plain, short_name
from fairgate.reports.figures import count, points, signed, value
from fairgate.terminal import options as shared
from fairgate.terminal.document import echo_json
from fairgate.terminal.output import progress_for, say

_LISTED = 50
_IN_A_LINE = 10
_RULES = 20
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


def blame_line(blamed: Blame) -> str:
    """Return the one sentence for a pull request's comment; empty where nothing is red."""
    unknown = "Which part of the change explains it is not known:"
    if blamed.known is Known.OUT_OF_BUDGET:
        return f"{unknown} the budget of {count(blamed.budget, 'question')} ended."
    if blamed.known is Known.NOT_COMBINABLE:
        return f"{unknown} parts of it need each other."
    if blamed.known is not Known.EXPLAINED:
        return ""
    if not blamed.restoring:
        rule = max(blamed.rules, key=lambda one: abs((one.head or 0.0) - (one.base or 0.0)))
        shares = ", ".join(f"{move.factor.value} {_share(move)}" for move in rule.moves)
        return f"No part of the change explains it alone: of {rule.metric}, {shares}."
    *others, last = (factor.value for factor in blamed.restoring)
    how = "change explains it"
    if others:
        last = f"{', '.join(others)} and {last}"
        how = "changes explain it: taking back any one of them restores the verdict"
    return f"The {last} {how}{_which(blamed.documents)}."


def _which(documents: SearchedDocuments | None) -> str:
    """Return `: documents 17, 203`; nothing where no set is known to be minimal."""
    if documents is None or not documents.found:
        return ""
    if not documents.minimal:
        return f": some of {count(len(documents.found), 'document')}, the budget ended"
    ids = [shown_id(document) for document in documents.found[:_IN_A_LINE]]
    unlisted = len(documents.found) - len(ids)
    more = f" and {unlisted:,} more" if unlisted else ""
    return f": document{'' if len(documents.found) == 1 else 's'} {', '.join(ids)}{more}"


def shown_id(document: ChangedDocument) -> str:
    """Return a document's id: as it is where it is plain, else cut, escaped and quoted."""
    return document.id if _PLAIN_ID.fullmatch(document.id) else quoted(short_name(document.id))


def _value(number: float | None, rule: ExplainedRule) -> str:
    """Return a rule's value; of parity the difference from control prompts."""
    if number is None or not rule.who:
        return value(number, rule.metric)
    return f"{signed(number, rule.metric)} points"


def _share(move: Move) -> str:
    return "–" if move.share is None else f"{100 * move.share:.0f} %"


def render_blame(blamed: Blame) -> str:
    """Return the lines for a terminal."""
    return "\n".join(map(plain, _lines(blamed)))


def _lines(blamed: Blame) -> Iterator[str]:
    cost = f"asked {count(blamed.asked, 'question')} of a budget of {blamed.budget:,}"
    for note in blamed.notes:
        yield f"note: {note}"
    if blamed.known is Known.NOTHING_DIFFERS:
        yield f"No factor differs between BASE and HEAD ({', '.join(Factor)}): nothing to blame."
        return
    if blamed.known is Known.GREEN:
        yield "HEAD fails no rule that BASE does not fail: nothing to blame."
        yield (
            "A gate that is red all the same compares with an older baseline: name the commit of "
            "that baseline as BASE."
        )
        yield cost
        return
    if blamed.failing:
        fail = "fails" if len(blamed.failing) == 1 else "fail"
        yield f"{count(len(blamed.failing), 'rule')} {fail} at HEAD and not at BASE"
    if blamed.known is not Known.EXPLAINED:
        yield from (f"  {name}" for name in blamed.failing[:_RULES])
        yield blame_line(blamed)
        if blamed.known is Known.OUT_OF_BUDGET:
            yield "Answers are stored: run again with a larger --budget to go on from there."
        yield cost
        return
    for rule in blamed.rules[:_RULES]:
        yield from _rule_lines(rule)
    if len(blamed.rules) > _RULES:
        yield f"  and {len(blamed.rules) - _RULES:,} more, see --format json"
    alone = ", ".join(factor.value for factor in blamed.restoring)
    yield f"Taken back alone, these restore the verdict: {alone or 'none'}"
    if blamed.documents is not None:
        yield from _document_lines(blamed.documents, blamed.rules)
    yield blame_line(blamed)
    yield cost


def _rule_lines(rule: ExplainedRule) -> Iterator[str]:
    metric = rule.metric
    others = f"; {rule.left_out:,} others are not decided everywhere" if rule.left_out else ""
    yield (
        f"  {rule_name(rule)}: {_value(rule.base, rule)} at BASE, {_value(rule.head, rule)} at "
        f"HEAD ({count(rule.cases, 'case')}{others})"
    )
    for move in rule.moves:
        yield (
            f"    {move.factor.value:<9} {signed(move.change, metric):>7}{points(metric)} "
            f"{_share(move):>6}"
        )
    if rule.residual:
        yield (
            f"    shared equally, for three or more act together: "
            f"{signed(rule.residual, metric)}{points(metric)}"
        )


def _document_lines(documents: SearchedDocuments, rules: Sequence[ExplainedRule]) -> Iterator[str]:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in documents.changed.items())
    total = sum(documents.changed.values())
    yield f"{count(total, 'document')} changed{f' ({kinds})' if kinds else ''}"
    if documents.found:
        claim = "minimal: none of them can be left out" if documents.minimal else "no claim"
        yield (
            f"  with {count(len(documents.found), 'document')} as at BASE the verdict is restored "
            f"({claim}; {count(documents.trials, 'gate run')})"
        )
        yield from (
            f"    {shown_id(document)} {document.kind}" for document in documents.found[:_LISTED]
        )
        if len(documents.found) > _LISTED:
            yield f"    and {len(documents.found) - _LISTED:,} more, see --format json"
        for rule, number in zip(rules[:_RULES], documents.reverted, strict=False):
            yield f"    {rule.metric} of HEAD is {_value(number, rule)} then"
    if documents.why_not:
        yield f"  not searched to the end: {documents.why_not}"


def blame_record(blamed: Blame) -> dict[str, Any]:
    """Return everything as plain data; rates are fractions."""
    documents = None
    if blamed.documents is not None:
        ids = [{"id": document.id, "kind": document.kind} for document in blamed.documents.found]
        documents = {**asdict(replace(blamed.documents, found=())), "found": ids}
    return {
        "version": 1,
        "known": blamed.known.value,
        "sentence": blame_line(blamed),
        "base": blamed.labels.get("base", ""),
        "head": blamed.labels.get("head", ""),
        "factors": [factor.value for factor in blamed.factors],
        "combinations": blamed.combinations,
        "failing": list(blamed.failing),
        "restoring": [factor.value for factor in blamed.restoring],
        "rules": [asdict(rule) for rule in blamed.rules],
        "documents": documents,
        "asked": blamed.asked,
        "budget": blamed.budget,
        "notes": list(blamed.notes),
    }


@click.command(short_help="Say which change, and which documents, explain a red verdict.")
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@click.option("--policy", required=True, help="Path of the policy in BASE and in HEAD.")
@click.option(
    "--budget", type=click.IntRange(0, 10_000_000), default=20_000, show_default=True,
    help="Most questions to the models; stored answers cost none.",
)  # fmt: skip
@click.option(
    "--run",
    type=shared.EXISTING_FOLDER,
    help="Folder of HEAD's run, for blame.json beside its reports.",
)
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@shared.json_option
@shared.cache_option
@shared.machine_options
def blame(base: str, head: str, **options: Any) -> int:
    """Cross BASE and HEAD over what differs between them, and say what explains HEAD's red verdict.

    BASE and HEAD are folders that hold the policy, or git revisions of the current repository.
    Model, prompt, decoding, embedder, corpus and top_k are exchanged; where the corpus explains the
    verdict, a smallest set of changed documents is searched whose reversal restores it. Answers are
    stored, so that a second call goes on where the first ended. Exits 0 whatever is found.
    """
    from fairgate.features.blame.versions import blaming, write_blame
    from fairgate.gate.run_folder import check_run

    runtime = shared.runtime_of(options)
    progress = progress_for(quiet=options["quiet"])
    if options["run"] is not None:
        check_run(writable(options["run"], "--run"))
    with blaming(base, head, options["policy"], runtime, options["budget"], progress) as crossed:
        if not options["quiet"]:
            say(f"fairgate: blame: {crossed.announcement}")
        blamed = crossed.result(progress)
    for notice in crossed.sides.notices:
        say(f"fairgate: note: {notice}")
    if options["run"] is not None:
        write_blame(options["run"], blamed)
    if options["shape"] == "json":
        echo_json(blame_record(blamed))
    else:
        click.echo(render_blame(blamed))
    return ExitCode.PASS
