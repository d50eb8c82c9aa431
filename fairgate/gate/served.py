"""What answered, by the replies' own words: models, caches, prompts that were cut.

No verdict rests on answers that were not made for their questions: on those of a cache or of
several models, on prompts that were cut. Which models an application asks, and how, is its own
business, so of these two it is a warning there; an endpoint's model and prompt are the policy's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from fairgate.domain.cases import asked_part, split_variant
from fairgate.domain.executions import Execution, Served
from fairgate.domain.ports import Executed
from fairgate.domain.wording import first_few, quoted
from fairgate.policy.schema import Policy

_LEAST_CUT, _SHARE_CUT, _LONGER = 8, 0.1, 1.25
"""Prompts were cut where so many, and this share of all, have the largest count of tokens that any
has, and the longest of them has this many times the characters of the shortest. Prompts that were
read whole share their largest count with those of their own source alone, which are as long."""
_Answers = Sequence[tuple[str, Served]]
"""Keys, and what is said of the answers."""


def served_problems(executions: Executed, policy: Policy) -> list[str]:
    """Say why the replies are no ground for a verdict."""
    problems: list[str] = []
    for part, answers in _by_part(executions).items():
        problems += _cached(part, answers)
        if part != "system" or _asked_model(policy):
            problems += [*_several(part, answers), *_cut(part, answers)]
    return problems


def served_warnings(executions: Executed, policy: Policy) -> Iterator[str]:
    """Yield what a reader must know first: who got no answer, and that other models answered."""
    yield from _failures(executions)
    for part, answers in _by_part(executions).items():
        yield from _changed(part, answers)
    asked = _asked_model(policy)
    answers = _by_part(executions).get("system", [])
    if not asked:
        yield from (*_several("system", answers), *_cut("system", answers))
    elif others := [model for model in _models(answers) if not _is_name_of(model, asked)]:
        yield (
            f"the system's replies name the model {first_few([*map(quoted, others)])}, while "
            f"the policy asks for {quoted(asked)}: look whether it is the same"
        )


def served_notices(executions: Executed) -> Iterator[str]:
    """Yield the models that answered, by their replies' own words."""
    for part, answers in _by_part(executions).items():
        named = [f"{quoted(model)} ({count:,})" for model, count in _models(answers).items()]
        if named:
            yield f"the {part}'s replies name the model {first_few(named)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What came instead of answers, by suite and variant (`race/black`) of the cases."""

    asked: Counter[tuple[str, str]]
    failed: Mapping[str, Counter[tuple[str, str]]]
    """By kind, such as `HTTP 500`."""
    first: Mapping[str, str]
    """The first error of each kind; of empty answers there is none."""


def failures_of(executions: Executed) -> Failures:
    """Count what came instead of answers."""
    failed: dict[str, Counter[tuple[str, str]]] = {}
    first: dict[str, str] = {}
    for (suite, key), execution in executions.items():
        if failure := _failure_of(execution):
            failed.setdefault(failure, Counter())[suite, _variant_of(key)] += 1
            if execution.served is not None and execution.served.failure is not None:
                first.setdefault(failure, execution.served.error or failure)
    keys = executions if failed else ()
    asked = Counter((suite, _variant_of(key)) for suite, key in keys)
    return Failures(asked=asked, failed=failed, first=first)


def _failures(executions: Executed) -> Iterator[str]:
    """Yield for each kind of failure at which variants it came instead of an answer, how often."""
    failures = failures_of(executions)
    for failure, error in failures.first.items():
        counts = first_few(
            [
                f"`{case[1]}`, {count:,} of {failures.asked[case]:,}"
                for case, count in failures.failed[failure].most_common()
            ]
        )
        yield (
            f"{failure} for {counts}: their sources were answered right after each, so these count "
            f"as unreadable answers. The first: {error}"
        )


def _variant_of(key: str) -> str:
    """Return what a case's key has behind its source's: `race/black`."""
    return split_variant(key)[1].strip("#")


def _failure_of(execution: Execution) -> str:
    """Return what came instead of an answer, such as `HTTP 500`; empty where one came."""
    if execution.served is not None and execution.served.failure is not None:
        return execution.served.failure
    is_empty = execution.response is not None and not execution.response.strip()
    return "an empty answer" if is_empty else ""


def _by_part(executions: Executed) -> Mapping[str, _Answers]:
    """Return what is said of answers, by what gave them: the system, its reference, each judge."""
    parts: dict[str, list[tuple[str, Served]]] = {}
    for (_, key), execution in executions.items():
        if execution.served is not None and execution.served.failure is None:
            parts.setdefault(asked_part(key), []).append((key, execution.served))
    return parts


def _models(answers: _Answers) -> Counter[str]:
    return Counter(served.model for _, served in answers if served.model is not None)


def _asked_model(policy: Policy) -> str:
    """Return the model that the policy names to an endpoint; empty where it names none."""
    generator = getattr(policy.system, "generator", None)
    return str(getattr(getattr(generator, "endpoint", None), "model", ""))


def _is_name_of(model: str, asked: str) -> bool:
    """Whether a reply names what was asked for: servers add versions, folders and file endings."""
    reported, wanted = (name.rsplit("/", 1)[-1].casefold() for name in (model, asked))
    return reported in wanted or wanted in reported


def _cached(part: str, answers: _Answers) -> Iterator[str]:
    cached = [(key, served.cache) for key, served in answers if served.cache is not None]
    if cached:
        key, header = cached[0]
        yield (
            f"{len(cached):,} of {len(answers):,} replies of the {part} come from a cache "
            f"(`{header}`, the first to {quoted(key)}), so they may have been made for another "
            "question, or by another version: no two questions of a run are the same; ask past the "
            "cache"
        )


def _changed(part: str, answers: _Answers) -> Iterator[str]:
    """Yield that what computes the answers was exchanged: provider, `system_fingerprint`."""
    first: dict[str, str] = {}
    for key, served in answers:
        if served.fingerprint is not None:
            first.setdefault(served.fingerprint, key)
    if len(first) > 1:
        named = first_few([f"{quoted(name)} (first {quoted(key)})" for name, key in first.items()])
        yield (
            f"the {part}'s replies name {len(first):,} providers or system fingerprints: {named}; "
            "the model, its settings or who runs it changed during the run, so what differs "
            "between identities may differ between these: keep one, or run again and see whether "
            "it stays"
        )


def _several(part: str, answers: _Answers) -> Iterator[str]:
    first: dict[str, str] = {}
    models = _models(answers)
    for key, served in answers:
        if served.model is not None:
            first.setdefault(served.model, key)
    if len(models) > 1:
        named = first_few(
            [f"{quoted(m)} ({count:,}, first {quoted(first[m])})" for m, count in models.items()]
        )
        yield (
            f"the {part}'s replies name {len(models):,} models: {named}; what differs between "
            "identities may differ between these: let one model answer the whole run"
        )


def _cut(part: str, answers: _Answers) -> Iterator[str]:
    counts = [(served.prompt_tokens, served.characters) for _, served in answers]
    known = [(tokens, size) for tokens, size in counts if tokens and size]
    most = max(map(itemgetter(0), known), default=0)
    lengths = [size for tokens, size in known if tokens == most]
    if len(lengths) < max(_LEAST_CUT, _SHARE_CUT * len(known)):
        return
    if max(lengths) >= _LONGER * min(lengths):
        yield (
            f"{len(lengths):,} of {len(known):,} prompts of the {part} are {most:,} tokens by its "
            f"replies, though they have {min(lengths):,} to {max(lengths):,} characters: they are "
            "cut, and what is cut off, such as who asks, does not reach the model; give the server "
            "a longer context"
        )
