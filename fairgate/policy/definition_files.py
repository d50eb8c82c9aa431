"""The small YAML files that policies name: tasks, attributes, perturbation sets, catalogues.

Each is a bundled one or a user's own. Of an attribute few words suffice for a value: an adjective
gives its clause ("is Hispanic"), gerund ("being Hispanic") and denial ("is not Hispanic"); a noun
gives its plural and "is a teacher". Other forms are written out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from fairgate.domain.attributes import AttributeValue, Dimension, Manner, Wording
from fairgate.domain.cases import SENTIMENTS, TONES, Classifier, Source, Task
from fairgate.domain.errors import DataError, PolicyError, Problem
from fairgate.domain.schema import Name, Strict, Text
from fairgate.domain.wording import listed, quoted, suggestion
from fairgate.io.named_files import existing
from fairgate.policy.checks import label_problems
from fairgate.policy.parse import Model, validated
from fairgate.policy.plain_words import odd_letters, why_unclear, words_of
from fairgate.policy.yaml_text import YamlDocument, YamlFault, YamlPath, load_yaml, read_yaml_file
from fairgate.relations.clauses import clause_forms, plural_noun
from fairgate.relations.english import holds, with_article
from fairgate.relations.language import language_of_phrases
from fairgate.relations.perturbation_sets import PerturbationSet, Term, drawn
from fairgate.suites.metamorphic.policy import NO_CONTROL, ClassifierPolicy, TaskPolicy

ATTRIBUTES, PERTURBATIONS, TASKS = "attributes", "perturbations", "tasks"
FEWEST_NAMES = 8  # of each group of a pool
_MOST_PHRASES = 20  # of a term
_PRONOUNS = ("she", "he", "they")
# A term is part of a case's key, where `/`, `#` and `@` separate.
_TERM = re.compile(r"[^\W_](?:[^/#@\"\s]| (?! )){0,63}(?<! )")
_NAME = re.compile(r"['\u2019]?[^\W\d_][^/#@\"\d\n]{0,38}")
Opens = Callable[[ClassifierPolicy, Sequence[str]], Classifier]
"""A classifier as a policy names it, and the labels that it may give, to what classifies."""
_WORDINGS = "unknown_wordings"
_COUNTED = re.compile(r"(?<=[^\W\d])\d+\b")
_SHOWN = 3
_OF_ANYBODY = frozenset({
    "a", "an", "the", "person", "people", "individual", "somebody", "someone", "who", "is", "with",
    "of", "has", "in", "from", "on", "and",
})  # fmt: skip
"""Words that say nothing of a person at either end of a phrase."""


def _is_name(text: str) -> str:
    """Return a part of a person's name, in any script. Raises ValueError for what is none."""
    if not _NAME.fullmatch(text) or text != text.strip():
        raise ValueError(
            f"found {quoted(text)}, expected a name as people write it: up to 40 characters that "
            "begin with a letter, without digits, `/`, `#`, `@` and double quotes"
        )
    return text


_PartOfName = Annotated[str, AfterValidator(_is_name)]


@cache
def bundled_names(kind: str) -> tuple[str, ...]:
    """Return the names of the bundled files of a kind (`tasks`), in alphabetical order."""
    names = (file.name for file in _folder(kind).iterdir() if file.is_file())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def named_document(
    kind: str, name: str, *, folder: Path | None = None, confined: bool = False
) -> YamlDocument:
    """Return the bundled file `name` of a kind, else the user's YAML or JSON at that path.

    Relative paths start at `folder`, the current one where callers are told none; `confined`
    refuses whatever leaves it, links included. Raises DataError, with the nearest names, where
    there is nothing, PolicyError where it is unreadable.
    """
    bundled = bundled_names(kind)
    if name in bundled:
        return _bundled_document(kind, name)
    file = existing(name, folder or Path(), confined=confined, bundled=bundled)
    return load_yaml(read_yaml_file(file, name), name)


@cache  # a policy and the one that it is compared with name the same ones
def _bundled_document(kind: str, name: str) -> YamlDocument:
    text = _folder(kind).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return load_yaml(text, f"{kind}/{name}.yaml")


def _folder(kind: str) -> Traversable:
    return resources.files("fairgate").joinpath("data", kind)


def read_task(name: str, *, folder: Path | None = None, confined: bool = False) -> TaskPolicy:
    """Read the definition of the task `name`; see `named_document`.

    PolicyError has all problems of a file.
    """
    document = named_document(TASKS, name, folder=folder, confined=confined)
    data = document.data
    faults = label_problems(data) if document.complete and isinstance(data, dict) else ()
    return _sound(document, TaskPolicy, lambda _: faults)


def _sound(
    document: YamlDocument,
    model: type[Model],
    faults: Callable[[Model | None], Iterable[YamlFault]],
) -> Model:
    """Return a document as a model. Raises PolicyError with what is wrong, across fields too."""
    content, problems = validated(document, model)
    problems += [document.problem(*fault) for fault in faults(content)]
    if content is None or problems:
        raise PolicyError(problems)
    return content


def task_from_policy(policy: TaskPolicy, opens: Opens) -> Task:
    """Return the task that a policy or a task file defines; labels become lower case.

    Raises DataError where a classifier does not fit.
    """
    classifiers = policy.classifiers
    tone, sentiment = map(opens, classifiers, (TONES, SENTIMENTS)) if classifiers else (None, None)

    def lower(labels: Iterable[str]) -> tuple[str, ...]:
        return tuple(label.strip().lower() for label in labels)

    return Task(
        id=policy.id,
        instruction=policy.instruction,
        labels=lower(policy.labels),
        equivalent=tuple(map(lower, policy.equivalent)),
        order=lower(policy.order),
        negated=tuple(zip(lower(policy.negated), lower(policy.negated.values()), strict=True)),
        marker=policy.marker or "",
        reads_first_named=policy.reading == "first-named",
        tone=tone,
        sentiment=sentiment,
        is_judged=policy.judged,
        actions=policy.actions,
        score=policy.score,
    )


@cache
def unknown_wordings() -> tuple[str, ...]:
    """Return every known wording of "unknown", the languages in alphabetical order."""
    files: list[Any] = [named_document(_WORDINGS, name).data for name in bundled_names(_WORDINGS)]
    return tuple(dict.fromkeys(wording for file in files for wording in file["wordings"]))


class WordingEntry(Strict):
    """The words of one value in one manner."""

    adjective: Text | None = Field(default=None, description="Before the noun: `Hispanic`.")
    noun: Text | None = Field(default=None, description="The noun itself: `engineer`.")
    plural: Text | None = Field(default=None, description="Its plural; default: by rule.")
    clause: Text | None = Field(default=None, description="After `who`: `has no children`.")
    clause_plural: Text | None = Field(default=None, description="Plural; default: by rule.")
    gerund: Text | None = Field(default=None, description="`having no children`; by rule.")

    def wording(self) -> Wording:
        """Return the words with those that follow by rule; empty where no rule knows a form."""
        adjective, noun = self.adjective or "", self.noun or ""
        plural = self.plural or (plural_noun(noun) if noun else "") or ""
        clause, several, gerund = self.clause or "", "", ""
        if not clause and noun and not adjective:
            clause, gerund = f"is {with_article(noun)}", f"being {with_article(noun)}"
            several = f"are {plural}" if plural else ""
        elif not clause and adjective:
            clause = f"is {adjective}"
        if (forms := clause_forms(clause)) is not None:
            several, gerund = forms.plural, forms.gerund
        return Wording(
            adjective=adjective,
            noun=noun,
            noun_plural=plural,
            clause=clause,
            clause_plural=self.clause_plural or several,
            gerund=self.gerund or gerund,
        )

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield the field and sentence of every form that no rule knows and that is not written."""
        words = self.wording()
        if words.noun and not words.noun_plural:
            yield "noun", f"no rule knows the plural of {quoted(words.noun)}; write it as `plural`"
            return
        for form, action, field in (
            (words.clause_plural, "says {} of several persons", "clause_plural"),
            (words.gerund, "makes a gerund of {}", "gerund"),
        ):
            if words.clause and not form:
                done = action.format(quoted(words.clause))
                yield "clause", f"no rule {done}; write it as `{field}`"


class ValueEntry(WordingEntry):
    """One value of an attribute."""

    value: Name = Field(description="Its id in results.")
    partition: Name | None = Field(default=None, description="Equivalence class; default: alone.")
    opposite: Name | None = Field(default=None, description="Id of the opposite value.")
    pronoun: str | None = Field(default=None, description="`she`, `he` or `they`.")
    also: list[Text] = Field(
        default_factory=list,
        description="Other words that say it; the linter knows them, no text is made of them.",
    )
    excludes: list[Text] = Field(
        default_factory=list,
        description="Values of other attributes that nobody has together with it, each as "
        "`attribute/value`.",
    )
    negated: WordingEntry | None = Field(default=None, description="The denial, by rule if absent.")
    intensified: WordingEntry | None = Field(default=None, description="A stronger wording.")
    reduced: WordingEntry | None = Field(default=None, description="A weaker wording.")

    def attribute_value(self) -> AttributeValue:
        """Return the value with the words of all its manners."""
        plain = self.wording()
        further = ((Manner.INTENSIFIED, self.intensified), (Manner.REDUCED, self.reduced))
        return AttributeValue(
            id=self.value,
            partition=self.partition or self.value,
            wordings=(
                (Manner.PLAIN, plain),
                (Manner.NEGATED, _negation(self, plain)),
                *((manner, entry.wording()) for manner, entry in further if entry is not None),
            ),
            opposite=self.opposite or "",
            pronoun=self.pronoun or "",
            excludes=frozenset(self.excludes),
            also=tuple(self.also),
        )


class AttributeFile(Strict):
    """One sensitive attribute."""

    id: Name = Field(description="Name of the attribute in results: `ethnicity`.")
    description: str = Field(default="", description="For readers.")
    source: str = Field(default="", description="Where the values come from.")
    licence: str = Field(default="", description="Licence of the words.")
    ordered: bool = Field(default=False, description="Whether the values are a scale, in order.")
    values: Annotated[list[ValueEntry], Field(min_length=2, max_length=200)] = Field(
        description="The values; one alone could neither be substituted nor compared."
    )


def attribute_faults(entries: Sequence[ValueEntry]) -> Iterator[YamlFault]:
    """Yield the path and sentence of every error across fields."""
    ids = [entry.value for entry in entries]
    for n, entry in enumerate(entries):
        where: YamlPath = ("values", n)
        if entry.value in ids[:n]:
            yield (*where, "value"), f"{quoted(entry.value)} is listed twice; rename one of them"
        if entry.opposite is not None and entry.opposite not in ids:
            hint = suggestion(entry.opposite, ids)
            yield (*where, "opposite"), f"no value is called {quoted(entry.opposite)}; {hint}"
        if entry.opposite == entry.value:
            yield (*where, "opposite"), f"{quoted(entry.value)} is its own opposite; name another"
        if entry.pronoun is not None and entry.pronoun not in _PRONOUNS:
            wanted = "expected `she`, `he` or `they`"
            yield (*where, "pronoun"), f"pronoun: found {quoted(entry.pronoun)}, {wanted}"
        for position, excluded in enumerate(entry.excludes):
            if "/" not in excluded:
                sentence = f"excludes: found {quoted(excluded)}, expected `attribute/value`"
                yield (*where, "excludes", position), sentence
        if not (entry.adjective or entry.noun or entry.clause):
            yield where, f"{quoted(entry.value)} has no `adjective`, `noun` or `clause`; write one"
            continue
        yield from (((*where, *field), sentence) for field, sentence in _unknown_forms(entry))


def _negation(entry: ValueEntry, plain: Wording) -> Wording:
    written = entry.negated or WordingEntry()
    if written.clause:
        return written.wording()
    clause = several = gerund = ""
    if plain.noun:
        clause, several = f"is not {with_article(plain.noun)}", f"are not {plain.noun_plural}"
        gerund = f"not being {with_article(plain.noun)}"
    elif (forms := clause_forms(plain.clause)) is not None:
        clause, several, gerund = forms.negated, forms.negated_plural, forms.negated_gerund
    return Wording(
        adjective=written.adjective or "",
        clause=clause,
        clause_plural=written.clause_plural or several,
        gerund=written.gerund or gerund,
    )


def _unknown_forms(entry: ValueEntry) -> Iterator[YamlFault]:
    """Yield where in a value a form is to be written, and why."""
    yield from (((field,), sentence) for field, sentence in entry.faults())
    for manner, further in (("intensified", entry.intensified), ("reduced", entry.reduced)):
        faults = further.faults() if further else ()
        yield from (((manner, field), sentence) for field, sentence in faults)
    denied = _negation(entry, entry.wording())
    if not (denied.clause and denied.clause_plural and denied.gerund):
        clause = quoted(denied.clause or entry.wording().clause)
        yield (
            ("negated",) if entry.negated else ("clause",),
            (
                f"no rule knows all forms of the denial of {clause}; write them as "
                "`negated: {clause: …, clause_plural: …, gerund: …}`"
            ),
        )


def load_dimension(name: str, *, folder: Path | None = None, confined: bool = False) -> Dimension:
    """Return the attribute `name`; see `named_document`.

    PolicyError has all problems of a file.
    """
    document = named_document(ATTRIBUTES, name, folder=folder, confined=confined)
    content = _sound(document, AttributeFile, lambda f: attribute_faults(f.values) if f else ())
    values = tuple(entry.attribute_value() for entry in content.values)
    return Dimension(id=content.id, values=values, ordered=content.ordered, source=content.source)


@cache
def bundled_dimensions() -> Mapping[str, Dimension]:
    """Return every attribute in the package, by id, in alphabetical order."""
    return load_dimensions(bundled_names(ATTRIBUTES))


def load_dimensions(
    names: Sequence[str], *, folder: Path | None = None, confined: bool = False
) -> Mapping[str, Dimension]:
    """Return attributes by id, in the order named. Raises DataError where two have one id."""
    dimensions: dict[str, Dimension] = {}
    for name in names:
        dimension = load_dimension(name, folder=folder, confined=confined)
        if dimension.id in dimensions:
            raise DataError(f"two attributes have the id {quoted(dimension.id)}; rename one")
        dimensions[dimension.id] = dimension
    return dimensions


def known_dimensions(
    own: Sequence[str], *, folder: Path | None = None, confined: bool = False
) -> Mapping[str, Dimension]:
    """Return the bundled attributes and the user's own, which replace those of the same id."""
    added = load_dimensions(own, folder=folder, confined=confined)
    return {**bundled_dimensions(), **added}


def _is_term(text: str) -> str:
    """Return the text of a term. Raises ValueError for what is none."""
    if text != text.lower():
        raise ValueError(f"found {quoted(text)}, expected lower case: {quoted(text.lower())}")
    if not _TERM.fullmatch(text):
        wanted = "up to 64 characters without `/`, `#`, `@`, double quotes and surplus blanks"
        raise ValueError(f"found {quoted(text)}, expected {wanted}")
    return text


class TermEntry(Strict):
    """One term of a set."""

    term: Annotated[Text, AfterValidator(_is_term)] = Field(description="Its name in results.")
    noun_phrase: Text = Field(default="", description="The noun phrase that carries it.")
    phrases: Annotated[list[Text], Field(min_length=2, max_length=_MOST_PHRASES)] = Field(
        default_factory=list,
        description="Instead of `noun_phrase`: several that say the same people in other words, of "
        "which a source meets one. The first holds the term, none says another term of the set, "
        "each has words of its own.",
    )
    note: Text = Field(default="", description="Why the phrase does not hold its term.")

    @model_validator(mode="after")
    def _said_somehow(self) -> Self:
        if bool(self.noun_phrase) == bool(self.phrases):
            has = "both" if self.phrases else "neither"
            raise ValueError(f"has {has} of `noun_phrase` and `phrases`; a term needs one of them")
        return self

    @property
    def term_of_set(self) -> Term:
        """Return it as relations take it."""
        first, *also = self.phrases or [self.noun_phrase]
        return Term(term=self.term, noun_phrase=first, also=tuple(also), note=self.note)


class SetFile(Strict):
    """A perturbation set as its file says it; the linter checks whether phrases are English."""

    id: Name = Field(description="The name of the set in results, such as `race`.")
    control: bool = Field(default=False, description="Whether its terms are control prompts.")
    review: Text = Field(
        default="",
        description="What somebody who knows the language has to look at; `check` says it.",
    )
    draw: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Of control prompts: how many of the terms a run asks, always the same ones; "
        "default: all.",
    )
    head: Text = Field(
        default="",
        description="The word that marks phrases of one form, `person` in `A tall person`: forms "
        "are drawn as often as the identities have them.",
    )
    description: str | None = Field(default=None, description="For readers.")
    source: str | None = Field(default=None, description="Where the terms come from.")
    licence: str | None = Field(default=None, description="Licence of the terms.")
    terms: Annotated[list[TermEntry], Field(min_length=1, max_length=1000)] = Field(
        description="The terms: `{term: …, noun_phrase: …}`, or `phrases` in place of one."
    )


def _set_faults(content: SetFile | None) -> Iterator[YamlFault]:
    term_indices: dict[str, int] = {}
    for n, entry in enumerate(content.terms if content is not None else []):
        term = entry.term
        if (first := term_indices.setdefault(term, n)) < n:
            sentence = f"terms[{n}].term: {quoted(term)} is already `terms[{first}]`"
            yield ("terms", n, "term"), sentence
    yield from _phrase_faults(content) if content is not None else ()
    if content is not None and content.draw is not None and not content.control:
        yield ("draw",), "draw: only control prompts are drawn; say `control: true`, or remove it"
    if content is not None and content.draw is not None and content.draw > len(content.terms):
        sentence = f"draw: {content.draw} of {len(content.terms)} terms; draw fewer, or add terms"
        yield ("draw",), sentence


def _phrase_faults(content: SetFile) -> Iterator[YamlFault]:
    """Yield where several phrases do not say one identity, each in words of its own."""
    named = {entry.term for entry in content.terms if not content.control}
    owners: dict[str, str] = {}
    for n, entry in enumerate(content.terms):
        if content.control and entry.phrases:
            sentence = f"terms[{n}].phrases: each control prompt is one phrase; give it a term"
            yield ("terms", n, "phrases"), sentence
        cores: dict[frozenset[str], str] = {}
        for index, phrase in enumerate(entry.phrases):
            subject = f"terms[{n}].phrases[{index}]: {quoted(phrase)}"
            path: YamlPath = ("terms", n, "phrases", index)
            core = frozenset(words_of(phrase)) - _OF_ANYBODY
            other = owners.setdefault(" ".join(words_of(phrase)), entry.term)
            twin = cores.setdefault(core, phrase)
            whose = next((t for t in sorted(named - {entry.term}) if holds(phrase, t)), None)
            if other != entry.term:
                yield path, f"{subject} says {quoted(other)}, too; a phrase says one term"
            elif whose is not None and not holds(entry.term, whose):
                yield path, f"{subject} says {quoted(whose)}, another term of the set; reword it"
            elif index and twin != phrase:
                yield path, f"{subject} has the words of {quoted(twin)}; say it in other words"
            elif index and entry.phrases.index(phrase) < index:
                yield path, f"{subject} is listed twice; remove one"


class NameEntry(Strict):
    """One person's name, and what names of other groups must have in common with it."""

    first: _PartOfName = Field(description="The first name.")
    last: _PartOfName = Field(description="The last name.")
    frequency: Literal["common", "usual", "rare"] = Field(description="How often it is met.")
    status: Literal["low", "middle", "high"] = Field(description="Status inferred from it.")
    gender: Literal["woman", "man"] | None = Field(default=None, description="Whose name it is.")


class PoolFile(Strict):
    """A pool of names: the groups of one dimension, and the names that carry them."""

    id: Name = Field(description="The name of the pool in results.")
    description: Text = Field(description="For readers.")
    source: Text = Field(description="Where the names and their ratings come from.")
    year: Annotated[int, Field(ge=1900, le=2100)] = Field(description="Of the ratings.")
    country: Text = Field(description="Where they hold.")
    licence: Text = Field(description="Licence of the names and ratings.")
    groups: dict[Name, Annotated[list[NameEntry], Field(max_length=100)]] = Field(
        min_length=2, max_length=12, description="The names of each group."
    )

    def terms(self) -> tuple[Term, ...]:
        """Return the names, group by group."""
        return tuple(
            Term(
                term=f"{name.first} {name.last}".lower(),
                noun_phrase=f"{name.first} {name.last}",
                group=group,
                first=name.first,
                kind=(name.frequency, name.status, *filter(None, [name.gender])),
            )
            for group, names in self.groups.items()
            for name in names
        )


def _pool_faults(pool: PoolFile | None) -> Iterator[YamlFault]:
    """Yield where one odd name would be taken for its group, or has no like to compare it with."""
    terms = pool.terms() if pool is not None else ()
    many = Counter(name.term for name in terms)
    if twice := [quoted(name) for name in many if many[name] > 1]:
        yield ("groups",), f"groups: {', '.join(twice)} listed twice; take other names"
    for group in dict.fromkeys(name.group for name in terms):
        kinds = Counter(name.kind for name in terms if name.group == group)
        subject = f"groups.{group}: found"
        if kinds.total() < FEWEST_NAMES:
            wanted = f"expected {FEWEST_NAMES}: of fewer, one odd name would stand for its group"
            yield ("groups", group), f"{subject} {kinds.total()} names, {wanted}; add some"
        for kind in sorted({name.kind for name in terms}):
            if kinds[kind] < 2:
                wanted = "expected two of every kind in the pool, so that each has its like; add"
                yield ("groups", group), f"{subject} {kinds[kind]} {'/'.join(kind)}, {wanted} some"


def load_perturbation_set(
    name: str, *, folder: Path | None = None, confined: bool = False
) -> PerturbationSet:
    """Return the set that a policy calls `name`; see `named_document`.

    PolicyError has all problems of a file.
    """
    if name in bundled_names(PERTURBATIONS):
        return _bundled_set(name)
    return _set_of(named_document(PERTURBATIONS, name, folder=folder, confined=confined))


@cache
def _bundled_set(name: str) -> PerturbationSet:
    return _set_of(named_document(PERTURBATIONS, name), is_own=False)


def _set_of(document: YamlDocument, *, is_own: bool = True) -> PerturbationSet:
    if isinstance(document.data, dict) and "groups" in document.data:
        pool = _sound(document, PoolFile, _pool_faults)
        return PerturbationSet(id=pool.id, terms=pool.terms())
    content = _sound(document, SetFile, _set_faults)
    terms = tuple(entry.term_of_set for entry in content.terms)
    return PerturbationSet(
        is_own=is_own,
        id=content.id,
        terms=terms,
        control=content.control,
        draw=content.draw,
        head=content.head,
        review=content.review,
    )


def collect_perturbation_sets(
    names: Sequence[str],
    control: str,
    *,
    phrases: int | None = None,
    folder: Path | None = None,
    confined: bool = False,
) -> tuple[list[PerturbationSet], list[YamlFault], list[Problem]]:
    """Return the sets of a suite, and everything wrong with the others, reported at once.

    Demographic sets come in the order of the policy, with at most `phrases` of each term, then the
    control set, if there is one, with as many of its terms as it says (`drawn`). What is wrong are
    names that do not fit, with their path in the suite (`("perturbations", 1)`), and defects
    inside the files that were named.
    """
    sets: list[PerturbationSet] = []
    misfits: list[YamlFault] = []
    problems: list[Problem] = []
    named_sets: list[YamlFault] = [(("perturbations", n), name) for n, name in enumerate(names)]
    if control != NO_CONTROL:
        named_sets.append((("control",), control))
    for path, name in named_sets:
        try:
            group = load_perturbation_set(name, folder=folder, confined=confined)
        except DataError as error:
            misfits.append((path, str(error)))
        except PolicyError as error:
            problems.extend(error.problems)
        else:
            if group.control and path != ("control",):
                misfit = (
                    f"the set {quoted(name)} is a control set (`control: true`): name it under "
                    "`control`, not under `perturbations`"
                )
            elif path == ("control",) and not group.control:
                misfit = (
                    f"the set {quoted(name)} is no control set: name it under `perturbations`, or "
                    "say `control: true` in its file if its terms carry no demographic"
                )
            elif group.control and group.is_own and (faults := [*_named_by(group, sets)]):
                more = f", and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
                misfit = (
                    f"the control set {quoted(name)} names identities, beside which nothing would "
                    "be seen, or is written so that nobody can tell: "
                    f"{'; '.join(faults[:_SHOWN])}{more}; take such phrases out, or name "
                    "a bundled set, such as `neutral-phrases`"
                )
            elif any(other.id == group.id for other in sets):
                misfit = f"two perturbation sets have the id {quoted(group.id)}; rename one of them"
            elif group.control and (others := list(_in_other_languages(group, sets))):
                misfit = (
                    f"the control set {quoted(name)} is in another language than "
                    f"{listed(others, last='and')}, so that language alone would tell identities "
                    "from control prompts; name one in theirs: 12 phrases or more in a file with "
                    "`control: true`"
                )
            elif group.control:
                sets.append(drawn(group, sets))
                continue
            else:
                sets.append(group.of_phrases(phrases))
                continue
            misfits.append((path, misfit))
    return sets, misfits, problems


def _in_other_languages(control: PerturbationSet, sets: Iterable[PerturbationSet]) -> Iterator[str]:
    """Yield the sets whose phrases begin in another language or script than the control set's."""

    def language(group: PerturbationSet) -> str:
        return language_of_phrases([phrase for term in group.terms for phrase in term.phrases])

    control_language = language(control)
    for group in sets:
        if (own := language(group)) and control_language and own != control_language:
            yield group.id


def _named_by(control: PerturbationSet, sets: Iterable[PerturbationSet]) -> Iterator[str]:
    """Yield which phrases of a control set name somebody, or cannot be compared."""
    known_words = _KnownWords.of(sets)
    for term in control.terms:
        phrase = term.noun_phrase
        if why := known_words.named(phrase) or why_unclear(phrase):
            yield f"{quoted(phrase)} {why}"


def refuse_named_controls(sources: Iterable[Source]) -> None:
    """Raise DataError where control prompts of a table name somebody whom their source does not.

    Their texts are as somebody wrote them: only in words that the source lacks letters must be
    plain.
    """
    pairs = [(source, pair) for source in sources for pair in source.pairs]
    controls = [(source, pair) for source, pair in pairs if pair.is_control]
    if not controls:
        return
    known_words = _KnownWords.of((), (pair.attribute for _, pair in pairs if not pair.is_control))
    faults = []
    for source, pair in controls:
        source_words = {*words_of(source.text)}
        new = " ".join(
            word for word in pair.follow_up.split() if not {*words_of(word)} <= source_words
        )
        if why := known_words.named(pair.follow_up, source.text) or odd_letters(new):
            faults.append(f"{quoted(pair.variant)} of {quoted(source.id)} {why}")
    if faults:
        more = f", and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise DataError(
            "written control prompts name identities, beside which nothing would be seen, or are "
            f"written so that nobody can tell: {'; '.join(faults[:_SHOWN])}{more}; take such texts "
            "out, or give them a category"
        )


def named_controls(names: Iterable[str], categories: Iterable[str]) -> list[str]:
    """Return which names of a table's control prompts name somebody, or hide it, with reasons.

    Underscores part words, and numbers at their end count them: `phrase_12`. A name may not be that
    of an attribute, or of one of the table's own `categories`.
    """
    attributes = {whose.partition("/")[0] for whose in _identities().values()}
    known_words = _KnownWords.of((), [*sorted(attributes), *categories])
    faults = []
    for name in dict.fromkeys(names):
        plain = _COUNTED.sub("", name.replace("_", " "))
        if why := known_words.named(plain) or odd_letters(plain):
            faults.append(f"{quoted(name)} {why}")
    return faults


@dataclass(frozen=True, slots=True)
class _KnownWords:
    """Words of identities, without the signs between them, and whose they are."""

    words: Mapping[str, str]
    longest: int

    @classmethod
    def of(cls, sets: Iterable[PerturbationSet], attributes: Iterable[str] = ()) -> _KnownWords:
        """Take the shipped identities, those of sets, and attributes: `Mus-lim` is one word."""
        identities = dict(_identities())
        for group in sets:
            identities |= _of_terms(group)
        identities |= {_core(name): name for name in attributes}
        words = {each.replace(" ", ""): whose for each, whose in identities.items() if each}
        return cls(words, max(map(len, words)) + 1)

    def named(self, text: str, context: str = "") -> str:
        """Return who is named in a text and not in the one beside it; empty: nobody."""
        context_runs = {"".join(part) for part in _parts(words_of(context), self.longest)}
        for part in _parts(words_of(text), self.longest):
            run = "".join(part)
            whose = self.words.get(run) or self.words.get(run.removesuffix("s"))
            if whose and run not in context_runs:
                return f"says {quoted(' '.join(part))} ({whose})"
        return ""


def _parts(words: Sequence[str], longest: int) -> Iterator[Sequence[str]]:
    """Yield the runs of words that have at most this many letters."""
    for begin in range(len(words)):
        letters = 0
        for end, word in enumerate(words[begin:], start=begin + 1):
            letters += len(word)
            if letters > longest:
                break
            yield words[begin:end]


@cache
def _identities() -> Mapping[str, str]:
    """Return the words of every bundled identity, attribute and name, with whose they are.

    What a bundled control set says too ("A tall person") names nobody.
    """
    identities: dict[str, str] = {}
    sets = [load_perturbation_set(name) for name in bundled_names(PERTURBATIONS)]
    for group in sets:
        identities |= {} if group.control else _of_terms(group)
    for dimension in bundled_dimensions().values():
        for value in dimension.values:
            wording = value.wording(Manner.PLAIN) or Wording()
            forms = (wording.adjective, wording.noun, wording.noun_plural, wording.clause)
            for form in (value.id, *forms, *value.also):
                identities.setdefault(_core(form), f"{dimension.id}/{value.id}")
    for name, entries in pair_catalogue().items():
        for form in chain.from_iterable(entries):
            identities.setdefault(_core(form), name)
    control_phrases = [
        f" {' '.join(words_of(term.noun_phrase))} "
        for group in sets
        if group.control
        for term in group.terms
    ]
    return {
        words: whose
        for words, whose in identities.items()
        if words and not any(f" {words} " in phrase for phrase in control_phrases)
    }


def _of_terms(group: PerturbationSet) -> dict[str, str]:
    return {
        words: f"{group.id}/{term.group or term.term}"
        for term in group.terms
        for form in (term.term, *term.phrases, term.first)
        if (words := _core(form))
    }


def _core(phrase: str) -> str:
    """Return what a phrase says of a person: `middle eastern` of "A Middle Eastern person"."""
    words = words_of(phrase)
    while words and words[0] in _OF_ANYBODY:
        del words[0]
    while words and words[-1] in _OF_ANYBODY:
        del words[-1]
    return " ".join(words)


@cache
def pair_catalogue() -> Mapping[str, list[tuple[str, ...]]]:
    """Return the attributes of each dimension, in the order of the bundled file.

    An attribute is its name, then the other wordings under which prompts name it.
    """
    data: Any = named_document("catalogues", "meta-fair").data
    return {
        dimension: [(entry["attribute"], *entry.get("forms", ())) for entry in entries]
        for dimension, entries in data.items()
        if dimension != "licence"
    }
