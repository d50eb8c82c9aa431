"""The files that a run writes, and how `rescore` and `baseline accept` find them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairgate.domain.cases import Case, is_reference_key
from fairgate.domain.degrees import degrees_fields
from fairgate.domain.errors import DataError, FairGateError, StoreError, UsageError
from fairgate.domain.executions import CorpusDocument, Document, Execution, served_fields
from fairgate.domain.json_text import flat
from fairgate.domain.ports import SILENT, BaseSystem, Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.gate.baseline import NO_ACCEPTED_RUNS, AcceptedRuns
from fairgate.gate.composition import Composition, FinishedRun
from fairgate.gate.gate import GateRun, run_gate
from fairgate.gate.loaded_policy import LoadedPolicy, load_policy
from fairgate.gate.origin import read_origin
from fairgate.io.durable import PARTS, check_parts, write_lines, write_parts
from fairgate.io.git import (
    is_tracked,
    keep_output_out_of_git,
    link_on_the_way,
    prepared,
    tracked_below,
    writable,
)
from fairgate.io.tables import read_json_object
from fairgate.systems.catalogue import kind_of
from fairgate.systems.generator import DEFAULT_TEMPLATE, render_prompt
from fairgate.systems.recorded_answers import PLAN, read_recorded

TABLE = "table"
"""What is under test where the rows of a table were judged, and no policy."""
RECORD = "run.json"
EXECUTIONS = "executions.jsonl"
"""The answers, in the format of a recorded system."""
STOP_RULES = "stop-rule.json"
"""The rules and labels by which answers were cut, and the hashes of what they answer."""
_QUESTIONS = "questions"
COMMENT = "comment.json"
"""In the folder of a change's run: what a pull request is told, for whoever posts it."""
PART_MANIFEST = "shard.json"
"""In the folder of a part of a run, and in no folder of a run."""
_MOST_TEXTS = 1000
_as_json = json.JSONEncoder(ensure_ascii=False).encode
_as_text = json.encoder.encode_basestring
"""The same for a text, without what else a value could be."""


def is_shard(folder: Path) -> bool:
    """Return whether a folder holds a part of a run."""
    return (folder / PART_MANIFEST).exists()


def execution_lines(
    executions: Iterable[tuple[tuple[str, str], Execution]], questions: str = ""
) -> Iterator[str]:
    """Yield the line of each execution by suite and key, a JSON object; no line end.

    What is not known is left out. The first line has the hash of the questions, where one is given.
    Neighbours may be one object, or share documents: their text is made once.
    """
    texts: dict[tuple[Document, ...], str] = {}
    last, text = None, ""
    for (suite, key), execution in executions:
        if execution is not last:
            last, text = execution, _execution_text(execution, texts)
        line = f'{{"suite": {_as_text(suite)}, "key": {_as_text(key)}, {text}'
        if questions:
            line += f', "{PLAN}": {_as_text(questions)}'
            questions = ""
        yield line + "}"


def _execution_text(execution: Execution, texts: dict[tuple[Document, ...], str]) -> str:
    """Return the members of an execution's object behind suite and key."""
    response, documents = execution.response, execution.documents
    text = f'"response": {"null" if response is None else _as_text(response)}'
    if execution.margin is not None:
        text += f', "margin": {_as_json(execution.margin)}'
    if execution.degrees is not None:
        text += f", {_as_json(degrees_fields(execution.degrees))[1:-1]}"
    if execution.served is not None:
        text += f', "served": {_as_json(served_fields(execution.served))}'
    if documents is not None:
        text += f', "documents": {_text_of(documents, texts)}'
    if execution.options:
        text += f', "options": {_as_json(list(execution.options))}'
    return text


def _text_of(documents: Sequence[Document], texts: dict[tuple[Document, ...], str]) -> str:
    """Return documents as JSON, from `texts` where equal ones stand there; else add them."""
    listed = documents if isinstance(documents, tuple) else tuple(documents)
    text = texts.get(listed)
    if text is None:
        text = _as_json([document_to(document) for document in documents])
        if len(texts) >= _MOST_TEXTS:
            texts.clear()
        texts[listed] = text
    return text


def document_to(document: Document | CorpusDocument) -> dict[str, Any]:
    """Return a document's known fields, as recordings hold them."""
    return {name: value for name, value in flat(document).items() if value is not None}


def output_folder(chosen: Path | None, runtime: Runtime, loaded: LoadedPolicy) -> Path:
    """Return the folder of the run: the one named, else one of the policy's in the cache.

    Raises UsageError where a commit could have put it there, or where it holds a part of a run: a
    folder holds the one or the other.
    """
    if chosen is None:
        writable(runtime.cache, "--cache")
    folder = writable(chosen or runtime.cache / "runs" / loaded.policy.name, "--out")
    return _refuse_part(folder)


def _refuse_part(folder: Path) -> Path:
    if is_shard(folder):
        raise UsageError(
            f"{folder}: holds a part of a run ({PART_MANIFEST}); name another folder with --out"
        )
    return folder


def refuse_shard(run: Path) -> None:
    """Raise UsageError where a folder holds a part of a run, of which nothing follows alone."""
    if is_shard(run):
        raise UsageError(
            f"{run}: is one part of a run, not a run: it has no verdict, and nothing can be "
            "accepted or shown from it. Bring all parts together with `fairgate merge`, and name "
            "the folder that it writes"
        )


def write_run(
    folder: Path,
    loaded: LoadedPolicy,
    run: GateRun,
    reports: Mapping[str, Callable[[], str | Iterator[str]]],
    known_files: Sequence[str],
) -> None:
    """Write everything about a run, all of it or nothing; `reports` gives texts by file name.

    A report that an earlier run left and this one does not write is removed: it would show another
    run's verdict. `known_files` names every report that there is.
    """
    rules = json.dumps(_answered(loaded), indent=1, sort_keys=True)
    write_parts(
        prepared(folder, "--out"),
        {
            **{name: _rendered(name, text) for name, text in reports.items()},
            EXECUTIONS: (
                f"{line}\n" for line in execution_lines(run.executions.items(), loaded.questions)
            ),
            STOP_RULES: (f"{rules}\n",),
        },
    )
    for file_name in (*known_files, COMMENT):
        if file_name not in reports:
            (folder / file_name).unlink(missing_ok=True)


def emptied(
    folder: Path, known_files: Sequence[str], option: str, inside: Sequence[Path] = ()
) -> None:
    """Remove what stands where a run's files are expected: of an earlier run, or of a commit.

    Only files that a run writes go, there and in the folders `inside`, and a link that git tracks;
    what that leads to stays. Raises UsageError where a commit could have put the folder there, and
    where it holds a part of a run, which stays.
    """
    names = (*known_files, EXECUTIONS, STOP_RULES, COMMENT, PARTS)
    try:
        _refuse_part(writable(folder, option))
    except UsageError:
        link = link_on_the_way(folder)
        if link is None and tracked_below(folder):
            _remove(folder, inside, (*names, PART_MANIFEST))
        elif link is not None and tracked_below(link):
            link.unlink()
        raise
    _remove(folder, inside, names)


def _remove(folder: Path, inside: Sequence[Path], names: Sequence[str]) -> None:
    for file in (place / name for place in (folder, *inside) for name in names):
        if file.is_symlink() or file.is_file():
            file.unlink()


def _rendered(name: str, text: Callable[[], str | Iterator[str]]) -> Iterator[str]:
    """Make the text when it is written: a report can be long, and there are several.

    Raises StoreError where a template or another part of FairGate's installation is not there.
    """
    try:
        rendered = text()
    except OSError as error:
        raise StoreError(
            f"{name} cannot be made: a file of this installation of FairGate cannot be read "
            f"({harmless(str(error)[:300])}); install FairGate again"
        ) from error
    yield from (rendered,) if isinstance(rendered, str) else rendered


def check_run(run: Path) -> None:
    """Raise DataError where the files of a run's folder are of different runs, or were edited."""
    refuse_shard(run)
    try:
        check_parts(run, [RECORD, EXECUTIONS, STOP_RULES])
    except DataError as error:
        raise _no_run(run, error) from error


def _no_run(run: Path, error: DataError) -> FairGateError:
    """Return that a folder is none of a run: named wrongly, or edited."""
    kind = DataError if (run / RECORD).exists() else UsageError
    return kind(
        f"{run}: is no folder of a run ({error}); name the one that `fairgate run --out` wrote"
    )


def _answered(loaded: LoadedPolicy) -> dict[str, dict[str, Any]]:
    """Return by suite how its answers were cut, and the hash of what they answer."""
    by_suite: dict[str, dict[str, Any]] = {}
    for name, suite in loaded.suites.items():
        by_suite[name] = dict(suite.reading_rule())
        if not loaded.is_narrowed:
            by_suite[name][_QUESTIONS] = loaded.questions_of(name)
    return by_suite


def _without_questions(rule: object) -> object:
    return {k: v for k, v in rule.items() if k != _QUESTIONS} if isinstance(rule, dict) else rule


def _read(run: Path, name: str) -> dict[str, Any]:
    refuse_shard(run)
    try:
        return read_json_object(run / name)
    except DataError as error:
        raise _no_run(run, error) from error


def replay(
    run: Path,
    policy: Path | None,
    runtime: Runtime,
    accepted_runs_for: Callable[[LoadedPolicy, Path], AcceptedRuns] = lambda *_: NO_ACCEPTED_RUNS,
) -> FinishedRun:
    """Judge an earlier run's answers again, by its own policy or another one.

    Raises UsageError where its policy is not there, or its answers were cut for other labels: what
    was not generated cannot be read. Raises DataError where its files were edited.
    """
    check_run(run)
    path = policy or run_policy_path(run)
    record = _read(run, RECORD)
    under_test = _under_test(record)
    if policy is None and TABLE in under_test:
        raise UsageError(
            f"{run}: was made of the table {quoted(str(path))}, and not by a policy: judge the "
            "table again with `fairgate table`, and compare tables with its `--baseline`"
        )
    loaded = load_policy(path, runtime)
    then = _read(run, STOP_RULES)
    recording = read_recorded(str(run / EXECUTIONS))
    has_reference = any(is_reference_key(key) for _, key in recording.keys())  # noqa: SIM118
    if loaded.policy.compares_with_base and has_reference:
        runtime = replace(runtime, base=BaseSystem(is_recorded=True))
        loaded = load_policy(path, runtime)
    for suite, now in _answered(loaded).items():
        rule, before = (
            _without_questions(questions.get(suite)) for questions in ({suite: now}, then)
        )
        if before != rule:
            raise UsageError(
                f"{run}: the answers of suite {suite!r} were cut by {str(before)[:300]}, "
                f"this policy reads them by {rule}: what was never generated cannot be read; run "
                "the policy"
            )
        plan_then = then[suite].get(_QUESTIONS)
        if plan_then is not None and now.get(_QUESTIONS, plan_then) != plan_then:
            raise UsageError(
                f"{run}: suite {suite!r} was asked other questions than it asks now, so its "
                "answers are to other texts: run the policy, or bring back the sources of then"
            )
    composition = Composition(loaded, runtime, SILENT)
    gate_input = composition.gate_input(accepted_runs_for(loaded, path), under_test)
    gate_input = replace(gate_input, day=gate_input.day or str(record.get("day", "")))
    system = composition.replayed(recording)
    judged = run_gate(gate_input, system, SILENT)
    finished = composition.finished(judged, origin=read_origin(record.get("answers")))
    return replace(finished, vectors=system.vectors)


def _under_test(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the system that gave a run's answers, as its record has it."""
    provenance = record.get("provenance")
    facts = provenance.get("under_test") if isinstance(provenance, dict) else None
    parts = facts if isinstance(facts, dict) else {}
    return {str(name)[:200]: str(value)[:1000] for name, value in parts.items()}


def run_policy_path(run: Path) -> Path:
    """Policy of an earlier run, as its record names it, where that is a file of this checkout.

    A record may come from anywhere and never chooses what is run or where is written: its path
    counts only for a file that git tracks here, or that lies in the current folder or its
    `policies`, and never for one that came with the run or that a link leads to. Raises UsageError
    for every other path, and DataError for a record that names none.
    """
    provenance = _read(run, RECORD).get("provenance")
    named = provenance.get("policy_path") if isinstance(provenance, dict) else None
    if not isinstance(named, str) or not named or "\0" in named:
        raise DataError(f"{run / RECORD}: names no policy; name it with --policy")
    path = Path(named)
    if not is_own_policy(path, run):
        raise UsageError(
            f"the run's record names the policy {quoted(named[:300])}, which is neither in version "
            "control here nor in this folder or its `policies`; a record never chooses what is run "
            "or where results are written: name the policy with --policy"
        )
    if not path.is_file():
        raise UsageError(f"the run's policy {quoted(named)} is not there; name it with --policy")
    return path


def is_own_policy(path: Path, run: Path) -> bool:
    """Return whether a policy is found by the record of a run: a file of this checkout."""
    here = Path.cwd().resolve()
    try:
        file = path.resolve()
        file.stat()
    except FileNotFoundError:
        pass
    except (OSError, RuntimeError):  # a name that is too long, or a link to itself
        return False
    is_near = file.parent in (here, here / "policies") and not file.is_relative_to(run.resolve())
    return is_near or is_tracked(file, here)


def plan_lines(loaded: LoadedPolicy) -> Iterator[str]:
    """Yield a JSON line for each unique case, in the order of the plan.

    The first line has the hash of them all as `plan`, which ties answers to questions where lines
    do not tell theirs.

    Cases that embed a response are not among them: what they ask is known after a first run. Nor
    are those that FairGate asks the policy's judge itself.

    `query` is for the retriever. `prompt` is for the model, without documents: a system of one's
    own puts its own documents where it has room for them.
    """
    template = _template(loaded)
    about: dict[str, object] = {PLAN: loaded.questions}
    for case in loaded.plan.cases:
        if not case.waits:
            yield json.dumps(_row(case, template) | about, ensure_ascii=False)
            about = {}


def second_wave_lines(loaded: LoadedPolicy, run: Path, runtime: Runtime) -> Iterator[str]:
    """Yield a line for each case that later waves ask after a finished run.

    A crossed case names in `documents` what to show instead of what its own query retrieves.
    """
    template = _template(loaded)
    done = replay(run, Path(loaded.parsed.path), runtime).run
    for case in done.added:
        if case.judge is not None or case.of_reference:
            continue
        row = _row(case, template)
        if case.documents_of is not None:
            documents = done.executions[case.suite, case.documents_of].documents or ()
            row["documents"] = [document_to(document) for document in documents]
        yield json.dumps(row, ensure_ascii=False)


def _template(loaded: LoadedPolicy) -> str:
    return kind_of(loaded.policy.system).capabilities().prompt or DEFAULT_TEMPLATE


def _row(case: Case, template: str) -> dict[str, object]:
    text = case.text
    prompt = render_prompt(
        template, instruction=case.instruction, text=text, documents=(), characters=1
    )
    row: dict[str, object] = {
        name: getattr(case, name) for name in ("key", "suite", "wave", "query")
    }
    row |= {"before": list(case.before)} if case.before else {}
    changed = {} if case.changed is None else {"changed": document_to(case.changed)}
    options = {"options": list(case.options)} if case.options else {}
    return row | {"prompt": prompt} | options | changed


def write_plan(output: Path, lines: Iterable[str]) -> None:
    """Write the plan to a file, whole or not at all."""
    keep_output_out_of_git(output)
    write_lines(output, lines, option="--output")
