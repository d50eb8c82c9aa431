"""What failed, for programs: whom it is about, what they alone were told, what to look for.

A program that reads this can find the place in the system's own files: what stands in answers to an
identity and in no answer to a control prompt, documents that they alone get or lose, and the words
that name them, the most particular first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairgate.domain.outcomes import RuleResult
from fairgate.domain.parity import NamedNode
from fairgate.domain.units import Assessed
from fairgate.gate.gate import GateRun
from fairgate.relations.oracles.text import spoken
from fairgate.reports.escaping import Redaction, redacted
from fairgate.suites.metamorphic.assess import document_key
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE

_MOST = 5
_MOST_WORDS = 20
_FEWEST_WORDS = 3
"""Of a sentence that is worth looking for in files."""


class OutputPart(BaseModel):
    """A part of what is printed as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Example(OutputPart):
    """One case of a finding, for `fairgate explain RUN CASE`."""

    case: str
    asked: str
    answer: str | None
    usual: str | None = Field(description="An answer to a control prompt of the same source.")


class Finding(OutputPart):
    """Somebody who fails a rule, or a bound that is broken."""

    rule: str
    suite: str
    reasons: list[str]
    who: list[str] = Field(description="Identities, `category/term`; of bounds their slice.")
    phrases: list[str] = Field(
        description="How prompts name them; of several phrases those that carry it."
    )
    estimate: float | None
    limits: dict[str, float]
    p: float | None
    stage: Literal["retrieval", "answer", "unknown"] = Field(
        description="`retrieval`: they are shown other documents than control prompts; `answer`: "
        "the same, and told something else."
    )
    told: list[str] = Field(description="Sentences in their answers and in no control prompt's.")
    gained: list[str] = Field(description="Ids of documents that they alone are shown.")
    lost: list[str] = Field(description="Ids of documents that control prompts alone are shown.")
    search: list[str] = Field(
        description="What to look for in the system's files, the most particular first."
    )
    examples: list[Example]


class Wrong(OutputPart):
    """One thing wrong with the input, or why the command could not go on."""

    path: str = Field(default="", description="The file; empty where it is about none.")
    line: int = Field(default=0, description="From 1; 0 where it is about no file.")
    column: int = 0
    message: str


class Document(OutputPart):
    """What `--format json` prints, whatever the command."""

    format: Literal["fairgate-output/1"] = "fairgate-output/1"
    command: str = Field(description="Such as `run`, `check` or `relations list`.")
    exit_code: int = Field(
        description="0 pass, 1 a limit is broken, 2 input, 3 baseline, 4 execution, 5 no verdict."
    )
    problems: list[Wrong] = Field(description="Empty where the command did what it is for.")
    findings: list[Finding] = Field(description="Who fails which rule, and what to look for.")
    result: Any = Field(description="What the command is about; null where it could not go on.")


def findings_of(run: GateRun, redact: Redaction) -> Iterator[Finding]:
    """Yield what fails the gate, in the order of the rules. Texts are cut as `redact` asks."""
    for rule in run.result.rules:
        if not rule.fails_gate:
            continue
        if rule.parity is None:
            yield _bound(rule)
        else:
            for node in rule.failing:
                yield _somebody(run, rule, node, redact)


def _bound(rule: RuleResult) -> Finding:
    return Finding(
        rule=rule.metric,
        suite=rule.suite,
        reasons=list(rule.reasons),
        who=[f"{name}: {value}" for name, value in rule.where.items()],
        phrases=[],
        estimate=rule.value,
        limits=dict(rule.bounds),
        p=None,
        stage="unknown",
        told=[],
        gained=[],
        lost=[],
        search=[],
        examples=[],
    )


def _source(item: Assessed) -> str:
    """Return what a pair's answers are compared within; a table's rows have no source's answer."""
    return item.unit.asks.get(SOURCE, item.unit.cluster)


def _somebody(run: GateRun, rule: RuleResult, node: NamedNode, redact: Redaction) -> Finding:
    pairs = [
        item
        for item in run.result.assessed
        if item.unit.suite == rule.suite and FOLLOW_UP in item.unit.asks
    ]
    own = [item for item in pairs if _person(item) in set(node.who)]
    if node.is_of_words:
        carried = {*node.carried_by}
        own = [item for item in own if item.unit.dimensions["phrase"] in carried]
    controls_of: dict[str, list[Assessed]] = {}
    for item in pairs:
        if item.unit.is_control:
            controls_of.setdefault(_source(item), []).append(item)
    new_sentences: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    texts: dict[str, str] = {}
    differing = []
    for item in own:
        controls = controls_of.get(_source(item), [])
        usual = {sentence for control in controls for sentence in _said(run, control)}
        new = [sentence for sentence in _said(run, item) if sentence not in usual]
        new_sentences.update(dict.fromkeys(new, 1))
        documents, others = _shown(run, item), [_shown(run, control) for control in controls]
        texts |= documents
        more = documents.keys() - set().union(*others)
        gained.update(more)
        lost.update(set(others[0]).intersection(*others[1:]) - documents.keys() if others else ())
        if new or more:
            differing.append((item, controls))
    phrases = dict.fromkeys(item.unit.names.get("noun_phrase", "") for item in own)
    often = _repeated(new_sentences)
    new, gone = _repeated(gained), _repeated(lost)
    return Finding(
        rule=rule.metric,
        suite=rule.suite,
        reasons=list(rule.reasons),
        who=["/".join(person) for person in node.who],
        phrases=[phrase for phrase in phrases if phrase][:_MOST],
        estimate=node.estimate,
        limits=dict(rule.bounds),
        p=node.p,
        stage="retrieval" if new or gone else "answer" if often else "unknown",
        told=[redacted(text, redact) for text in often],
        gained=new,
        lost=gone,
        search=_search(_naming(node, own, controls_of), often, [*new, *gone], texts, redact),
        examples=[_example(run, *pair, redact) for pair in differing[:_MOST]],
    )


def _naming(
    node: NamedNode, own: Sequence[Assessed], controls_of: Mapping[str, Sequence[Assessed]]
) -> list[str]:
    """Return the terms of whom it is about, and words of their phrases that no control has."""
    controls = {word for items in controls_of.values() for item in items for word in _words(item)}
    words = [word for item in own for word in _words(item) if word not in controls]
    return list(dict.fromkeys([*(term for _, term in node.who), *words]))[:_MOST_WORDS]


def _words(item: Assessed) -> list[str]:
    return re.findall(r"\w{3,}", item.unit.names.get("noun_phrase", "").casefold())


def _search(
    terms: Sequence[str],
    sentences_: Sequence[str],
    documents: Sequence[str],
    texts: Mapping[str, str],
    redact: Redaction,
) -> list[str]:
    """Return what to look for: the system's own words and documents about them, who, the rest.

    What they are told out of a document is its retrieval's doing, and so is a document that names
    nobody: then the words that name them lead to the place.
    """
    document_texts = " ".join(" ".join(text.split()) for text in texts.values())
    words = [text for text in sentences_ if len(text.split()) >= _FEWEST_WORDS]
    quoted = [text for text in words if " ".join(text.split()) in document_texts]
    about = [name for name in documents if any(t in texts.get(name, "").casefold() for t in terms)]
    own = [redacted(text, redact) for text in words if text not in quoted]
    rest = [*documents, *(redacted(text, redact) for text in quoted)]
    return list(dict.fromkeys([*own, *about, *terms, *rest]))


def _repeated(counted: Counter[str]) -> list[str]:
    """Return what was counted most; what is much rarer than that is there by chance."""
    most = max(counted.values(), default=0)
    return [name for name, times in counted.most_common(_MOST) if times > 1 and 4 * times >= most]


def _person(item: Assessed) -> tuple[str, str]:
    return item.unit.dimensions.get("category", ""), item.unit.dimensions.get("term", "")


def _answer(run: GateRun, item: Assessed) -> str | None:
    execution = run.executions.get((item.unit.suite, item.unit.asks[FOLLOW_UP]))
    return None if execution is None else execution.response


def _said(run: GateRun, item: Assessed) -> list[str]:
    from fairgate.relations.sentences.splitting import sentences

    suite = run.gate_input.suites[item.unit.suite]
    return sentences(spoken(_answer(run, item) or "", tuple(suite.thinking)))


def _shown(run: GateRun, item: Assessed) -> dict[str, str]:
    """Return the documents of a pair's follow-up, by id or text, with their texts."""
    execution = run.executions.get((item.unit.suite, item.unit.asks[FOLLOW_UP]))
    documents = execution.documents if execution is not None else None
    return {str(document_key(document))[:200]: document.text or "" for document in documents or ()}


def _example(
    run: GateRun, item: Assessed, controls: Sequence[Assessed], redact: Redaction
) -> Example:
    cases = {case.key: case for case in run.gate_input.plan.cases_of(item.unit.suite)}
    usual = next((_answer(run, control) for control in controls), None)
    answer = _answer(run, item)
    return Example(
        case=item.unit.key,
        asked=redacted(cases[item.unit.asks[FOLLOW_UP]].varied, redact),
        answer=None if answer is None else redacted(answer.strip(), redact),
        usual=None if usual is None else redacted(usual.strip(), redact),
    )
