"""Texts that do not go well behind a speaker who is named before them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fairgate.domain.cases import Source
from fairgate.domain.wording import quoted
from fairgate.relations.clauses import plural_noun
from fairgate.relations.english import NOUNS
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.relations.relation import MetamorphicRelation, Varies

_OF_THINGS = frozenset("black white straight young old poor rich blind deaf".split())  # noqa: SIM905
"""Terms that are also said of things ("a black coat"): they count before a word for a person."""
_OF_SPEAKERS = frozenset(
    """woman man girl boy lady gentleman husband wife boyfriend girlfriend widow widower
    """.split()  # noqa: SIM905 (reads better so)
)
"""Nouns that say a gender of whom a text is about, or of a speaker ("my husband")."""
_PERSON = r"(?:person|people|m[ae]n|wom[ae]n|guys?|girls?|boys?|lady|ladies|males?|females?)"


def cautions(
    relations: Iterable[MetamorphicRelation],
    sources: Sequence[Source],
    sets: Iterable[PerturbationSet],
) -> Iterator[str]:
    """Yield how many texts hold quotes inside those around them, or speak of an identity."""
    texts = [source for source in sources if source.text.strip()]
    if not texts or not any(_quotes(relation, texts[0]) for relation in relations):
        return
    nested = [source.id for source in texts if '"' in source.text]
    if nested:
        yield (
            f"    {len(nested)} of {len(texts)} texts hold double quotes inside those around the "
            f"text ({quoted(nested[0])}): a model may take one for the end; single quotes are "
            "clearer"
        )
    patterns = [pattern for group in sets if (pattern := words_of_identities(group)) is not None]
    findings = [
        (source.id, match.group())
        for source in texts
        if (match := next(filter(None, (p.search(source.text) for p in patterns)), None))
    ]
    if findings:
        id_, words = findings[0]
        yield (
            f"    {len(findings)} of {len(texts)} texts speak of an identity themselves "
            f"({quoted(id_)} says {quoted(words)}): said by somebody of another one they may mean "
            "something else, and another answer is no bias then; read them, or leave them out"
        )


def _quotes(relation: MetamorphicRelation, source: Source) -> bool:
    """Whether a relation puts the text in double quotes behind a speaker."""
    return (
        relation.varies is not Varies.PAIRS and relation.source_text(source) == f'"{source.text}"'
    )


def words_of_identities(group: PerturbationSet) -> re.Pattern[str] | None:
    """Return the pattern of the words of a set's identities in a text; None for names and controls.

    Singular and plural, and where the set has a noun of a gender further nouns of genders.
    """
    if group.control or group.is_pool or not group.terms:
        return None
    words = {term.term.lower() for term in group.terms}
    if words & NOUNS.keys():
        words |= _OF_SPEAKERS
    words |= {plural for word in words if (plural := plural_noun(word))}
    ordered = sorted(words, key=lambda word: (-len(word), word))
    alternatives = (
        re.escape(word) + (rf" {_PERSON}" if word in _OF_THINGS else "") for word in ordered
    )
    return re.compile(rf"(?i)(?<![\w'-])(?:{'|'.join(alternatives)})(?![\w-])")
