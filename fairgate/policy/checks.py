"""Checks across fields: names that conflict or do not exist, rules without any effect.

Works on the plain data, so that these problems are reported together with those of the schema;
values of the wrong type are skipped here, because the schema already reports them.
"""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgate.domain.outcomes import Better
from fairgate.domain.parity import SCORE
from fairgate.domain.wording import harmless, quoted, suggestion
from fairgate.policy.assembled import SystemPart, systems_meant
from fairgate.policy.schema import ANCHOR_SUFFIX
from fairgate.policy.yaml_text import YamlFault, YamlPath
from fairgate.relations.catalogue import RELATIONS, families
from fairgate.relations.oracles.text import folded

if TYPE_CHECKING:
    from fairgate.metrics.metric import Metric


NOT_STARTED = (
    "{} cannot be started ({}); check `command`: an executable file, found from the folder that "
    "relative paths start at"
)
_PERCENT = 100
_INSTEAD = "to print the value without judging it set `report: true` instead"


def contradictions(data: object, systems: Sequence[SystemPart]) -> Iterator[YamlFault]:
    """Yield the path of every value that contradicts another one, with the sentence."""
    if not isinstance(data, dict):
        return
    suites = _mappings(data.get("suites"))
    if isinstance(name := data.get("name"), str) and name.endswith(ANCHOR_SUFFIX):
        sentence = (
            f"the name {quoted(name)} ends in `{ANCHOR_SUFFIX}`: its baseline would be the file of "
            f"the anchor of {quoted(name.removesuffix(ANCHOR_SUFFIX))}; name it otherwise"
        )
        yield ("name",), sentence
    first: dict[object, int] = {}
    for position, suite in suites:
        own = suite.get("id")
        if isinstance(own, str) and first.setdefault(own, position) != position:
            sentence = f"the id {quoted(own)} is already used by `suites[{first[own]}]`"
            yield ("suites", position, "id"), sentence
        yield from _suite(("suites", position), suite)
    gates = _mappings(data.get("gates"))
    names = [suite["id"] for _, suite in suites if isinstance(suite.get("id"), str)]
    for position, gate in gates:
        suite_id = gate.get("suite")
        if isinstance(suite_id, str) and names and suite_id not in names:
            sentence = f"no suite has the id {quoted(suite_id)}; {suggestion(suite_id, names)}"
            yield ("gates", position, "suite"), sentence
        yield from idle_rule(("gates", position), gate)
        earlier = [number for number, other in gates if number < position and other == gate]
        if earlier:
            yield ("gates", position), f"repeats `gates[{earlier[0]}]` word for word; remove one"
    for key in ("system", "reference"):
        for part in systems_meant(data.get(key), systems):
            for path, sentence in part.model().contradictions(data[key]):
                yield (key, *path), sentence


def _mappings(value: object) -> list[tuple[int, dict[str, Any]]]:
    entries = value if isinstance(value, list) else []
    return [(position, entry) for position, entry in enumerate(entries) if isinstance(entry, dict)]


def _suite(where: YamlPath, suite: dict[str, Any]) -> Iterator[YamlFault]:
    relation_names = (*RELATIONS.ids, *families())
    for key in ("relations", "perturbations"):
        names = suite.get(key)
        entries = names if isinstance(names, list) else []
        for position, name in enumerate(entries):
            if not isinstance(name, str):
                continue
            if name in entries[:position]:
                yield (*where, key, position), f"{quoted(name)} is listed twice; remove one"
            if key == "relations" and name not in relation_names:
                sentence = (
                    f"no relation is called {quoted(name)}; {suggestion(name, relation_names)}"
                )
                yield (*where, key, position), sentence
    perturbations = suite.get("perturbations")
    control = suite.get("control", "neutral")
    if isinstance(perturbations, list) and control in perturbations:
        sentence = (
            f"{quoted(str(control))} is the control set of this suite; remove it from the list"
        )
        yield (*where, "perturbations", perturbations.index(control)), sentence
    task = suite.get("task")
    if isinstance(task, dict):
        for path, sentence in label_problems(task):
            yield (*where, "task", *path), sentence


def label_problems(task: dict[str, Any]) -> Iterator[YamlFault]:
    """Yield what is wrong between a task's labels, its groups of equals and how they are read."""
    labels = task.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return
    lower = [label.strip().lower() for label in labels]
    before: set[str] = set()
    for position, label in enumerate(map(folded, lower)):
        if not label:
            yield ("labels", position), "a label must not be blank"
        elif label in before:
            sentence = f"the label {quoted(lower[position])} is listed twice (case is ignored)"
            yield ("labels", position), sentence
        before.add(label)
    yield from _groups(task, lower)
    yield from _order_faults(task, lower)
    yield from _denials(task, lower)
    marker = task.get("marker")
    if isinstance(marker, str) and marker.strip() and not folded(marker):
        yield ("marker",), "a marker must have a character that can be seen"


def _groups(task: dict[str, Any], labels: list[str]) -> Iterator[YamlFault]:
    grouped: dict[str, int] = {}
    groups = task.get("equivalent")
    for number, group in enumerate(groups if isinstance(groups, list) else []):
        for position, member in enumerate(group if isinstance(group, list) else []):
            if not isinstance(member, str):
                continue
            name, path = member.strip().lower(), ("equivalent", number, position)
            if name not in labels:
                yield path, f"{quoted(member)} is not among `labels`; {suggestion(name, labels)}"
            elif grouped.setdefault(name, number) != number:
                first = grouped[name]
                yield path, f"{quoted(member)} is already in group {first}; merge the groups"


def _order_faults(task: dict[str, Any], labels: list[str]) -> Iterator[YamlFault]:
    """Yield faults of the order: of each group of equals one label has a rank."""
    order, groups = task.get("order"), task.get("equivalent")
    group_of = {
        str(name).strip().lower(): number
        for number, group in enumerate(groups if isinstance(groups, list) else [])
        for name in (group if isinstance(group, list) else [])
    }
    labels_by_group: dict[object, str] = {}
    for position, label in enumerate(order if isinstance(order, list) else []):
        name, path = str(label).strip().lower(), ("order", position)
        group = group_of.get(name, name)
        if name not in labels:
            yield path, f"{quoted(name)} is not among `labels`; {suggestion(name, labels)}"
        elif group in labels_by_group:
            twin = quoted(labels_by_group[group])
            yield path, f"{quoted(name)} has the place of {twin}; name one of them"
        labels_by_group.setdefault(group, name)
    lacking = [quoted(name) for name in labels if group_of.get(name, name) not in labels_by_group]
    if labels_by_group and lacking:
        sentence = "name every label, or one of each group of equals"
        yield ("order",), f"has no place for {', '.join(lacking)}; {sentence}"


def _denials(task: dict[str, Any], labels: list[str]) -> Iterator[YamlFault]:
    negated = task.get("negated")
    for label, opposite in (negated if isinstance(negated, dict) else {}).items():
        for name in (label, opposite):
            if isinstance(name, str) and name.strip().lower() not in labels:
                hint = suggestion(name.strip().lower(), labels)
                yield ("negated", label), f"{quoted(name)} is not among `labels`; {hint}"
        if isinstance(opposite, str) and str(label).strip().lower() == opposite.strip().lower():
            yield ("negated", label), f"{quoted(opposite)} cannot be its own opposite"


def idle_rule(where: YamlPath, gate: dict[str, Any]) -> Iterator[YamlFault]:
    """Yield each bound of a gate at or beyond the limits of its metric, with the sentence."""
    from fairgate.metrics.catalogue import METRICS

    if "parity" in gate:
        yield from _idle_parity(where, gate)
    metric = METRICS.get(str(gate.get("metric")))
    if metric is None:
        return
    for key in ("max", "max_abs", "min"):
        bound = _number(gate.get(key))
        if bound is not None and (sentence := _bound(metric, key, bound)):
            yield (*where, key), harmless(sentence)
    widest = metric.greatest - metric.least
    if metric.better is Better.TOWARD_ZERO:
        widest = max(abs(metric.least), abs(metric.greatest))
    for key in ("regression", "budget"):
        limit = _number(gate.get(key))
        if limit is not None and limit >= widest:
            sentence = (
                f"{metric.id} never changes by more than {widest:g}, so a {key} of {limit:g} "
                "cannot fail; lower it, or remove it"
            )
            yield (*where, key), sentence


def _idle_parity(where: YamlPath, gate: dict[str, Any]) -> Iterator[YamlFault]:
    """Yield each limit of an outcome that no difference exceeds: shares differ by 1 at most."""
    if gate.get("parity") == SCORE:
        return
    for key in ("max", "regression", "budget", "must_see"):
        limit = _number(gate.get(key))
        if limit is not None and limit >= 1:
            percent = f"; limits are fractions: write {limit / 100:g}" if limit <= _PERCENT else ""
            sentence = f"shares never differ by more than 1, so {limit:g} cannot fail{percent}"
            yield (*where, key), sentence


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _bound(metric: Metric, key: str, bound: float) -> str:
    """Return the fault of one bound; empty where a run can keep and can break it."""
    # `max` acts on the size of what is better the nearer it is to 0.
    by_size = key == "max_abs" or metric.better is Better.TOWARD_ZERO
    lowest = 0.0 if by_size else metric.least
    highest = max(abs(metric.least), abs(metric.greatest)) if by_size else metric.greatest
    above = f"{metric.id} never exceeds {highest:g}"
    below = f"{metric.id} never falls below {lowest:g}"
    percent = f"; rates are fractions, so {bound:g} % is {bound / 100:g}" if metric.is_rate else ""
    if key == "min":
        if bound <= lowest:
            return f"{below}, so a `min` of {bound:g} cannot fail; raise it, or {_INSTEAD}"
        if bound > highest:
            return f"{above}, so no run reaches a `min` of {bound:g}{percent}"
        return ""
    if bound > highest and percent:
        return f"{above}, so a bound of {bound:g} cannot fail{percent}"
    if bound >= highest:
        return f"{above}, so a bound of {bound:g} cannot fail; lower it, or {_INSTEAD}"
    return f"{below}, so no run keeps a bound of {bound:g}" if bound < lowest else ""


def missing_programs(part: object, folder: Path, where: YamlPath = ()) -> Iterator[YamlFault]:
    """Yield every `command` and `run` of a part of a policy whose program is not there."""
    for name, value in part.items() if isinstance(part, dict) else ():
        if name in ("command", "run") and isinstance(value, list):
            first = str(value[0])
            if shutil.which(folder / first if "/" in first else first) is None:
                lacking = FileNotFoundError(2, "No such file or directory", first)
                program = f"the program {quoted(shlex.join(value))}"
                yield (*where, name), NOT_STARTED.format(program, lacking)
        elif name not in ("request", "response"):
            yield from missing_programs(value, folder, (*where, name))
