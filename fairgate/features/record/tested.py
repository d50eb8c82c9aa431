"""One finished run of a policy, as a record tells it."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from fairgate.domain.errors import DataError, FairGateError
from fairgate.domain.parity import Against
from fairgate.domain.units import counted
from fairgate.features.record.claims import claims_of, difference_of, selections_of
from fairgate.features.record.history import History
from fairgate.features.record.model import TestedRun, Texts
from fairgate.features.record.run import Run, Verdict, first_problem, short
from fairgate.gate.run_folder import EXECUTIONS, RECORD, check_run, run_policy_path
from fairgate.io.durable import PARTS
from fairgate.io.tables import file_sha256, read_json_object
from fairgate.metrics.parity import SCORES
from fairgate.policy.definition_files import PERTURBATIONS, bundled_names, load_perturbation_set
from fairgate.reports.formats import SCHEMA_VERSION


def tested_run(folder: Path, policy: Path | None) -> tuple[TestedRun, History]:
    """Read a run's record and git's history. Raises DataError where its files were edited."""
    check_run(folder)
    raw = read_json_object(folder / RECORD)
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise DataError(f"{folder / RECORD}: is not of version {SCHEMA_VERSION}: run again")
    try:
        run = Run.model_validate(raw)
    except ValidationError as error:
        raise DataError(f"{folder / RECORD}: {first_problem(error)}; run again") from error
    history = History.of(run, policy or _own_policy(folder))
    shas = read_json_object(folder / PARTS)["parts"]
    tested = _who(run)
    known = {name: load_perturbation_set(name) for name in bundled_names(PERTURBATIONS)}
    categories = [name for name, group in known.items() if not group.control and name not in tested]
    evidence = run.evidence
    tested_run = TestedRun(
        **run.model_dump(include=set(Verdict.model_fields)),
        **run.provenance.model_dump(exclude={"commit"}),
        is_table=run.is_table,
        policy_in_commit=history.is_of_commit,
        day=run.day.isoformat(),
        commit=history.commit(run.provenance.commit),
        baseline={"path": run.baseline, **{name: fact or "" for name, fact in run.accepted.items()}}
        if run.baseline and run.accepted
        else {},
        files={name: shas[name] for name in (RECORD, EXECUTIONS)}
        | {PARTS: file_sha256(str(folder / PARTS))},
        verified=_verified(run, history),
        tested=tested,
        not_tested=categories,
        texts=_texts(run, history),
        planned=evidence.planned,
        decided=evidence.decided,
        undecided={
            counted({reason: number}).partition(" ")[2]: number
            for reason, number in evidence.undecided.items()
        },
        rejected=dict(Counter(each.reason for each in evidence.rejected)),
        answers=_answers(run),
        claims=[*claims_of(run, history)],
        identities=[
            difference_of(run, scan, each)
            for scan in run.parity
            for each in scan.identities
            if scan.against is Against.CONTROL
        ],
        selection=[*selections_of(run)],
        unseen=[*_unseen(run)],
        repeat=[*_repeat(run)],
    )
    return tested_run, history


def _texts(run: Run, history: History) -> dict[str, Texts]:
    """Return by suite where its texts come from, and how many sources a scan had of them."""
    named = history.sources()
    sources: dict[str, int] = {}
    for scan in run.parity:
        sources[scan.suite] = max(scan.sources, sources.get(scan.suite, 0))
    suites = dict.fromkeys([*run.fingerprint, *named])
    path = run.provenance.policy_path if run.is_table else ""
    return {
        short(suite): Texts(
            name=short(named.get(suite, path)),
            sources=sources.get(suite) or None,
            sha256=history.sha256(named.get(suite, "")),
        )
        for suite in suites
    }


def _answers(run: Run) -> str:
    """Say how many answers there are, and why more than cases."""
    if run.is_table:
        return "none asked for: they were read from the table; it does not say when they were given"
    if run.answers is None:
        return "not known: a run records it only for a system that is asked from outside"
    asked, stored = run.answers["asked"], run.answers["stored"]
    counts = f"{asked:,} asked for in this run, {stored:,} from the store"
    if more := asked + stored - run.evidence.planned:
        why = "each source is also asked unchanged" if more > 0 else "equal texts are asked once"
        counts += f"; {abs(more):,} {'more' if more > 0 else 'fewer'} than cases: {why}"
    return counts


def _repeat(run: Run) -> Iterator[str]:
    """Yield the commands that repeat the run, with nothing in them that is not known."""
    name = shlex.quote(run.provenance.policy_path)
    if run.provenance.commit:
        yield f"git checkout {run.provenance.commit}"
    if not run.is_table:
        yield f"fairgate run {name} --out repeated"
        return
    asked = {rule.bounds["max"] for rule in run.rules if rule.gate and "max" in rule.bounds}
    limits = [f"--limit {limit:g}" for limit in sorted(asked)]
    cut_offs = {f"--selected-from {each.cut_off:g}": None for each in run.selection}
    columns = {each.column for scan in run.parity for each in scan.identities}
    better = ["--better lower"] * (SCORES[1] in columns)
    yield " ".join(["fairgate table", name, *limits, *better, *cut_offs, "--out repeated"])


def _verified(run: Run, history: History) -> str:
    """Say what the policy was compared with; all else is the run's own word."""
    commit = run.provenance.commit or ""
    if not commit:
        return "No commit is named, so that nothing was compared with version control."
    if history.is_of_commit is None:
        return (
            f"Commit {commit[:12]} is not in this checkout, so that nothing was compared with it."
        )
    has = "has" if history.is_of_commit else "does not have"
    return f"The policy {has} the content that commit {commit[:12]} of this checkout gives it."


def _own_policy(folder: Path) -> Path | None:
    """Return the file of this checkout that the record names; None where it names none of it."""
    try:
        return run_policy_path(folder)
    except FairGateError:
        return None


def _who(run: Run) -> dict[str, list[str]]:
    """Return the identities by category, of parity and of measurements by category and term."""
    persons = [each.who.partition("/") for scan in run.parity for each in scan.identities]
    pairs = [(category, term) for category, _, term in persons]
    pairs += [
        (measured.where["category"], measured.where["term"])
        for measured in run.measurements
        if measured.where.keys() >= {"category", "term"}
    ]
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for category, term in pairs:
        found[category][term] = None
    for measured in run.measurements:  # of question items the categories alone
        if "category" in measured.where:
            found[measured.where["category"]].update({})
    return {category: [*terms] for category, terms in found.items()}


def _unseen(run: Run) -> Iterator[str]:
    """Yield what this run could not judge."""
    yield from (f"No verdict: {text}" for text in run.evidence.problems)
    for scan in run.parity:
        if scan.unjudged:
            yield f"{scan.suite}, {scan.outcome}: {scan.unjudged}"
    if undecided := run.evidence.planned - run.evidence.decided:
        yield f"{undecided:,} of {run.evidence.planned:,} cases were not decided: see section 2."
    if run.baseline is None:
        yield "No baseline was compared with: whether anybody is treated worse than before is open."
    for suite, precision in run.labels.items():
        low, high = (100 * end for end in precision.interval)
        yield (
            f"{suite}: of {precision.labelled:,} reported differences that people looked at, they "
            f"call {precision.right:,} read right ({low:.0f} to {high:.0f} %); others may be read "
            "wrong."
        )
    if not run.labels:
        yield (
            "Nobody has looked at cases and said whether their answers were read right: how many "
            "reported differences are read wrong is open."
        )
