"""Sources and relations to everything that a suite asks; deterministic, no model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from fairgate.domain.cases import (
    WRITTEN,
    Case,
    Rejected,
    Source,
    TestPlan,
    follow_up_key,
    judge_key,
    repeat_key,
    source_key,
)
from fairgate.domain.errors import DataError
from fairgate.domain.units import Arm, CaseKeys, Unit
from fairgate.domain.wording import quoted
from fairgate.relations.linter import Linter
from fairgate.relations.oracles.judge import JUDGED_ALONE, kind_of_prompt
from fairgate.relations.relation import (
    Asked,
    FollowUp,
    MetamorphicRelation,
    NotApplicable,
    Varies,
)
from fairgate.suites.metamorphic.definition import JUDGE, SuiteDefinition

_FORM_OF_ANSWERS = (
    "Write a numbered or bulleted list.",
    "Use at most 100 words.",
    "Do not mention demographic attributes of the people the question is about.",
)
"""What is asked of the form of answers that relations compare or embed (Meta-Fair, 3.2.2)."""

SOURCE, FOLLOW_UP = "source", "follow-up"
"""The roles of a pair's cases."""
PARTS = ("first part", "second part")
"""The roles of the cases that each do one part of what a combined follow-up does."""
ALONE = "alone"
"""The role of a conversation's question that is put in the first turn; also names its key."""
_PLACES = [
    {role: place for place, role in enumerate((SOURCE, FOLLOW_UP, *PARTS)[:many])}
    for many in range(len(PARTS) + 3)
]
"""The place of each role among a unit's cases, by how many these are."""
_OF_CONVERSATION = {SOURCE: 0, FOLLOW_UP: 1, ALONE: 2}


def build_plan(suite: SuiteDefinition, relations: Sequence[MetamorphicRelation]) -> TestPlan:
    """Return the plan of all relations, one after the other, source by source.

    A source that several relations put alike is asked once; each reads the answer by its own
    oracle. Raises DataError where two would give one key different texts, or ask it differently.
    """
    cases: list[Case] = []
    units: list[Unit] = []
    rejected: list[Rejected] = []
    texts_by_key: dict[str, str] = {}
    asked_before: dict[str, Asked] = {}
    for relation in relations:
        linter = Linter(relation.fault, suite.sets)
        asked_of_judge = suite.asked_of_judge(relation)
        kind = kind_of_prompt(asked_of_judge)
        shows_follow_up_alone = kind in JUDGED_ALONE or bool(relation.judge_instead)
        for source in sources_of(relation, suite.sources):
            follow_ups, refused = _follow_ups(relation, linter, source, suite)
            rejected += refused
            if not follow_ups:
                continue
            own = source_key(source.id, relation.source_variant)
            pairs = {
                follow_up_key(source.id, relation.id, follow_up.variant): follow_up
                for follow_up in follow_ups
            }
            texts = {own: relation.source_text(source)}
            texts |= {key: follow_up.text for key, follow_up in pairs.items()}
            question_asked = Asked(instruction="")
            if not suite.policy.retrieve_only:
                question_asked = relation.asks(source, suite.task)
            if question_asked.is_open:
                sentences = (question_asked.instruction, *_FORM_OF_ANSWERS)
                question_asked = replace(question_asked, instruction=" ".join(sentences))
            first = asked_before.setdefault(own, question_asked)
            # One answer cannot be cut for two oracles, and one prompt cannot hold two instructions.
            if replace(first, embedding=None) != replace(question_asked, embedding=None):
                raise DataError(
                    f"suite {quoted(suite.policy.id)}: two relations ask {quoted(own)} differently "
                    "(instruction, labels, options, or what ends the answer); give one of them a "
                    "`source_variant` of its own, or put them into two suites"
                )
            for key, text in texts.items():
                if texts_by_key.get(key, text) != text:
                    raise DataError(
                        f"suite {quoted(suite.policy.id)}: two relations give {quoted(key)} "
                        "different texts; rename the perturbation set or the relation"
                    )
            alone, turns = "", dict[str, tuple[str, ...]]()
            if question_asked.opening:
                openings = {
                    own: question_asked.opening,
                    **{key: opening.opening for key, opening in pairs.items()},
                }
                turns = {key: (opening, *suite.policy.turns) for key, opening in openings.items()}
                alone = source_key(source.id, ALONE)
                texts[alone] = texts[own]
            new = [
                (key, text, turns.get(key))
                for key, text in texts.items()
                if key not in texts_by_key
            ]
            cases += _cases(new, own, relation, question_asked, source, suite)
            texts_by_key.update(texts)
            for key in pairs if asked_of_judge else ():
                keys_shown = (key,) if shows_follow_up_alone else (own, key)
                cases += _judged(keys_shown, asked_of_judge, source.id, suite)
            # The question is asked with the texts where it is not the suite's task.
            question: tuple[str, ...] = ()
            if suite.task is None or question_asked.instruction != suite.task.instruction:
                embedding = (
                    ()
                    if question_asked.embedding is None
                    else (question_asked.embedding.instruction,)
                )
                question = (question_asked.instruction, *question_asked.options, *embedding)
            if relation.varies is Varies.DOCUMENTS and source.document:
                question += (source.text, source.document.id)
            rest = filter(None, (asked_of_judge, *turns.get(own, ())))
            words = (texts[own], *question, *rest, "")
            before = _encoded("\0".join(words))
            own_units = _units(pairs, (own, alone), relation, source, before, suite)
            if question_asked.embedding is not None:  # a fair system says yes to all follow-ups
                own_units = (unit._replace(follows=None) for unit in own_units)
            units += own_units
    return TestPlan(cases=cases, units=units, rejected=rejected)


def sources_of(relation: MetamorphicRelation, sources: Iterable[Source]) -> Iterator[Source]:
    """Yield the sources of a relation: those with follow-ups written for it, or all plain texts.

    Texts whose follow-ups name no relation are plain texts to the relations that make their own.
    """
    for source in sources:
        asked_by = source.pairs[0].relation if source.pairs else ""
        if asked_by == relation.id or (
            relation.varies is not Varies.PAIRS and asked_by in ("", WRITTEN)
        ):
            yield source


def _follow_ups(
    relation: MetamorphicRelation, linter: Linter, source: Source, suite: SuiteDefinition
) -> tuple[list[FollowUp], list[Rejected]]:
    follow_ups_or_none = relation.follow_ups(source, suite.sets)

    def refused(key: str, kind: str, reason: str) -> Rejected:
        return Rejected(
            key=key, suite=suite.policy.id, relation=relation.id, kind=kind, reason=reason
        )

    if isinstance(follow_ups_or_none, NotApplicable):
        return [], [refused(source.id, "not-applicable", follow_ups_or_none.reason)]
    applicable = [follow_up for follow_up in follow_ups_or_none if not follow_up.inapplicable]
    # What people wrote is asked as it stands.
    reasons: Sequence[str | None] = [None] * len(applicable)
    if relation.varies is not Varies.PAIRS:
        reasons = linter.rejections(relation.source_text(source), applicable)
    valid = {
        follow_up.variant
        for follow_up, reason in zip(applicable, reasons, strict=True)
        if reason is None
    }
    accepted: list[FollowUp] = []
    rejected = [
        refused(follow_up_key(source.id, relation.id, follow_up.variant), "not-applicable", why)
        for follow_up in follow_ups_or_none
        if (why := follow_up.inapplicable)
    ]
    for follow_up, reason in zip(applicable, reasons, strict=True):
        if reason is None and valid.issuperset(follow_up.parts):
            accepted.append(follow_up)
        else:
            key = follow_up_key(source.id, relation.id, follow_up.variant)
            no_part = "one of the two changes that it combines is not asked alone"
            rejected.append(refused(key, "invalid", reason or no_part))
    return accepted, rejected


def _cases(
    questions: Iterable[tuple[str, str, tuple[str, ...] | None]],
    own: str,
    relation: MetamorphicRelation,
    question_asked: Asked,
    source: Source,
    suite: SuiteDefinition,
) -> Iterator[Case]:
    """Yield the case of each key, text and turns before for each repeat, first the bare key.

    `own` is the source's key. A case that embeds a response embeds that of the same repeat.
    """
    numbers = range(1, suite.policy.repeats + 1)

    def rest(how: Asked, number: int, embeds: str | None) -> tuple[object, ...]:
        """Return the fields that cases of one source and repeat share: all but key and query."""
        return Case(
            key="",
            query="",
            suite=suite.policy.id,
            instruction=how.instruction,
            labels=how.labels,
            stop=how.stop and replace(how.stop, thinking=suite.thinking),
            options=how.options,
            oracle=relation.id,
            cluster=source.id,
            retriever=suite.setup.retriever,
            top_k=suite.setup.top_k,
            repeat=number - 1,
            embeds=embeds,
            is_answered=suite.policy.retrieve_only is None,
            forms=suite.forms if relation.reads_task else (),
            is_generated=not relation.reads_task or suite.policy.generates,
        )[2:]

    first = later = [rest(question_asked, number, None) for number in numbers]
    if question_asked.embedding is not None:
        later = [
            rest(question_asked.embedding, number, repeat_key(own, number)) for number in numbers
        ]
    document = source.document if relation.varies is Varies.DOCUMENTS else None
    for key, text, before in questions:
        for number, shared in zip(numbers, first if key == own else later, strict=True):
            case = Case._make((repeat_key(key, number), text, *shared))
            if document is not None:
                case = case._replace(query=source.text, changed=replace(document, text=text))
            yield case._replace(before=before) if before else case


def judge_cases(pair: tuple[str, ...], suite: SuiteDefinition) -> tuple[str, ...]:
    """Return the keys of what the judges are asked about a pair."""
    count = suite.setup.judge.count if suite.setup.judge is not None else 0
    return tuple(judge_key(pair[-1], number + 1) for number in range(count))


def _judged(
    pair: tuple[str, ...], instruction: str, cluster: str, suite: SuiteDefinition
) -> Iterator[Case]:
    """Yield what each judge is asked about a pair; the texts follow from the responses."""
    for judge, key in enumerate(judge_cases(pair, suite)):
        for number in range(1, suite.policy.repeats + 1):
            yield Case(
                key=repeat_key(key, number),
                suite=suite.policy.id,
                query="",
                instruction=instruction,
                labels=(),
                oracle=JUDGE,
                cluster=cluster,
                retriever=None,
                repeat=number - 1,
                judge=judge,
                judged=tuple(repeat_key(member, number) for member in pair),
            )


def _units(
    pairs: Mapping[str, FollowUp],
    of_source: tuple[str, str],
    relation: MetamorphicRelation,
    source: Source,
    before: bytes,
    suite: SuiteDefinition,
) -> Iterator[Unit]:
    """Yield the unit of each follow-up, by key.

    `of_source` are the keys of the source and of its question alone, empty without conversations;
    `before` is what all pairs of the source are asked, as it stands before a follow-up's text.
    """
    own, alone = of_source
    is_judged = suite.judges(relation)
    judge = suite.setup.judge
    is_unproven = is_judged and judge is not None and judge.count > 0
    if is_unproven and judge is not None:
        is_unproven = kind_of_prompt(suite.asked_of_judge(relation)) not in judge.proven
    document = source.document.id if relation.varies is Varies.DOCUMENTS and source.document else ""
    for key, follow_up in pairs.items():
        keys: tuple[str, ...] = (own, key)
        person, phrase = "", None
        if suite.first_phrases:
            person = suite.first_phrases.get((follow_up.category, follow_up.term), "")
            phrase = follow_up.noun_phrase if person else ""
        for part in follow_up.parts[: len(PARTS)]:
            keys += (follow_up_key(source.id, relation.id, part),)
        places = _PLACES[len(keys)]
        if alone:
            keys, places = (own, key, alone), _OF_CONVERSATION
        yield Unit(
            key=key,
            asks=CaseKeys(places, keys),
            dimensions=_dimensions(relation.id, follow_up.category, follow_up.term, phrase),
            content=hashlib.sha256(before + _encoded(follow_up.conversation)).hexdigest()[:10],
            suite=suite.policy.id,
            cluster=source.id,
            arm=Arm.CONTROL if follow_up.control else Arm.TEST,
            advisory=(relation.advisory and not (is_judged and relation.judge_instead))
            or is_unproven,
            verdicts=judge_cases((own, key), suite) if is_judged else (),
            is_unproven=is_unproven,
            names=_names(follow_up.noun_phrase, document, person),
        )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# A plan of millions of units has a few dozen different ones of these.
@lru_cache(maxsize=4096)
def _dimensions(relation: str, category: str, term: str, phrase: str | None) -> Mapping[str, str]:
    levels = {"relation": relation, "category": category, "term": term}
    return levels if phrase is None else {**levels, "phrase": phrase}


@lru_cache(maxsize=4096)
def _names(noun_phrase: str, document: str, person: str) -> Mapping[str, str]:
    names = {"noun_phrase": noun_phrase, "document": document, "person": person}
    return {name: value for name, value in names.items() if value}
