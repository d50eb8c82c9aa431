"""Generators of source cases: templates, and what three ways of filling them make (P3).

A generator is a function from `Ingredients` and a random generator to cases. They come one by one
and none twice; the first n are the same whatever is taken after them. Equal arguments give equal
cases in equal order.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from fairgate.domain.attributes import (
    AttributeUse,
    AttributeValue,
    Dimension,
    Form,
    Manner,
    contradiction,
    excluded,
)
from fairgate.domain.errors import DataError, PolicyError, UsageError
from fairgate.domain.schema import Name, Strict, Text
from fairgate.domain.wording import listed, quoted, suggestion
from fairgate.policy.definition_files import named_document
from fairgate.policy.parse import validated
from fairgate.relations.english import english_fault
from fairgate.relations.frames import realise
from fairgate.suites.metamorphic.sources import GeneratedCase

LEAST_SLOTS = 3


@dataclass(frozen=True, slots=True)
class Slot:
    """Which attribute a template states, and in which form."""

    dimension: Dimension
    form: Form


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTemplate:
    """A frame with its slots, in the order in which the frame is given their attributes."""

    id: str
    frame: str
    slots: tuple[Slot, ...]

    def uses(self, row: Sequence[int]) -> tuple[AttributeUse, ...]:
        """Return the attributes that a row states: for each slot the number of its value."""
        return tuple(
            AttributeUse(dimension=slot.dimension, value=slot.dimension.values[n], form=slot.form)
            for slot, n in zip(self.slots, row, strict=True)
        )

    def named_values(self) -> list[list[tuple[str, AttributeValue]]]:
        """Return for each slot its values with their names (`age/young`)."""
        return [
            [(f"{slot.dimension.id}/{value.id}", value) for value in slot.dimension.values]
            for slot in self.slots
        ]


class SlotEntry(Strict):
    """One slot of a template."""

    dimension: Name = Field(description="Id of the attribute.")
    form: Annotated[str, Field(pattern="^(adjective|noun|clause|gerund)$")] = Field(
        description="`adjective`, `noun`, `clause` or `gerund`."
    )


class TemplateEntry(Strict):
    """One template."""

    id: Name = Field(description="Its name in results.")
    frame: Text = Field(description="The text with slots in braces.")
    slots: Annotated[list[SlotEntry], Field(min_length=LEAST_SLOTS, max_length=12)] = Field(
        description="The attributes that it states, in order; three or more."
    )


class TemplateFile(Strict):
    """Templates that are used together."""

    id: Name = Field(description="Name of the collection.")
    description: str = Field(default="", description="For readers.")
    source: str = Field(default="", description="Where the templates come from.")
    licence: str = Field(default="", description="Licence of the templates.")
    templates: Annotated[list[TemplateEntry], Field(min_length=1, max_length=500)] = Field(
        description="The templates."
    )


def load_templates(
    name: str,
    dimensions: Mapping[str, Dimension],
    *,
    folder: Path | None = None,
    confined: bool = False,
) -> tuple[CaseTemplate, ...]:
    """Return the templates `name`: bundled ones, else those of a YAML or JSON file.

    A relative path starts at `folder` (default: the current directory), and cannot leave it where
    `confined`. Raises DataError, with the nearest names, where there is no such file, and
    PolicyError with all problems of a file: unknown attributes, unknown slots, values that a slot
    cannot say.
    """
    document = named_document("templates", name, folder=folder or Path(), confined=confined)
    content, problems = validated(document, TemplateFile)
    if content is not None:
        ids = [entry.id for entry in content.templates]
        for n, entry in enumerate(content.templates):
            if entry.id in ids[:n]:
                sentence = f"{quoted(entry.id)} is listed twice; rename one of them"
                problems.append(document.problem(("templates", n, "id"), sentence))
            faults = _template_faults(entry, dimensions)
            problems += [document.problem(("templates", n, *path), fault) for path, fault in faults]
    if content is None or problems:
        raise PolicyError(problems)
    return tuple(
        CaseTemplate(
            id=entry.id,
            frame=entry.frame,
            slots=tuple(Slot(dimensions[s.dimension], Form(s.form)) for s in entry.slots),
        )
        for entry in content.templates
    )


def _template_faults(
    entry: TemplateEntry, dimensions: Mapping[str, Dimension]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path and sentence of every error across a template's fields.

    Of a slot that cannot state some values of its attribute the first such value is named.
    """
    names = [slot.dimension for slot in entry.slots]
    for m, name in enumerate(names):
        path = ("slots", m, "dimension")
        if name not in dimensions:
            yield path, f"no attribute is called {quoted(name)}; {suggestion(name, dimensions)}"
        elif name in names[:m]:
            yield path, f"{quoted(name)} occurs twice in one template; use it once"
    try:
        fault = _wording_fault(entry.frame, ())
    except DataError as error:
        fault = str(error)
    if fault is not None:
        yield ("frame",), fault
        return
    if not set(names) <= dimensions.keys() or len(set(names)) < len(names):
        return
    rows = math.prod(len(dimensions[name].values) for name in names)
    if rows > MOST_ROWS:
        yield ("slots",), f"{rows:,} combinations of values; at most {MOST_ROWS:,}: use fewer slots"
    for m, slot in enumerate(entry.slots):
        dimension = dimensions[slot.dimension]
        uses = (
            AttributeUse(dimension=dimension, value=value, form=Form(slot.form))
            for value in dimension.values
        )
        unsayable = next(filter(None, (_wording_fault(entry.frame, [use]) for use in uses)), None)
        if unsayable is not None:
            yield ("slots", m), f"{unsayable}; choose another form or frame"


def _wording_fault(frame: str, uses: Sequence[AttributeUse]) -> str | None:
    stated = realise(frame, uses)
    if isinstance(stated, str):
        return stated
    fault = english_fault(stated.text)
    return None if fault is None else f"the text {fault}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """Attributes and templates that cases are made of."""

    dimensions: Mapping[str, Dimension]
    templates: Sequence[CaseTemplate]
    strength: int = 2
    """The t of t-way combinations."""


def _distinct(
    digests: set[bytes],
    template: str,
    frame: str,
    attributes: Sequence[AttributeUse],
    operators: Sequence[str] = (),
) -> GeneratedCase | None:
    """Return the case of a frame; None where it cannot be worded, or its text was made before.

    `digests` has 8 bytes of the digest of every text.
    """
    worded = realise(frame, attributes)
    if isinstance(worded, str) or english_fault(worded.text) is not None:
        return None
    digest = hashlib.sha256(worded.text.encode()).digest()
    if digest[:8] in digests:
        return None
    digests.add(digest[:8])
    return GeneratedCase(
        id=f"{template}-{digest[:6].hex()}", text=worded.text, template=template, frame=frame,
        attributes=worded.attributes, operators=tuple(operators),
    )  # fmt: skip


MOST_REDRAWN = 200
"""Draws in a row without a new text after which a template counts as used up."""


def template_cases(ingredients: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
    """Yield templates with values drawn at random, in turn, until none gives a new text.

    The template-based baseline of GenFair's evaluation (P3, section V.C.1): every value is as
    likely as the others; nothing is mutated, negated or moved to a boundary, and no combination is
    looked for.
    """
    texts: set[bytes] = set()
    rows: dict[str, set[bytes]] = {template.id: set() for template in ingredients.templates}
    unfinished = list(ingredients.templates)
    while unfinished:
        for template in tuple(unfinished):
            sizes = [len(slot.dimension.values) for slot in template.slots]
            for drawn in rng.integers(0, sizes, size=(MOST_REDRAWN, len(sizes)), dtype=np.uint8):
                if drawn.tobytes() in rows[template.id]:
                    continue
                rows[template.id].add(drawn.tobytes())
                uses = template.uses(drawn.tolist())
                if contradiction(uses) is not None:
                    continue
                if case := _distinct(texts, template.id, template.frame, uses):
                    yield case
                    break
            else:
                unfinished.remove(template)


PERSON = ("religion", "ethnicity", "language", "political-views")
CLAUSES = ("occupation", "economic-conditions")
VERBS = ("feels", "is", "seems", "appears", "looks")
OBJECTS = ("happy", "sad", "excited", "angry", "content", "frustrated")
PERSON_ATTRIBUTES = 3
MOST_REPEATS = 2000
"""Draws in a row without a new text after which the grammar counts as used up."""


def astraea_cases(ingredients: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
    """Yield sentences of one weighted grammar, until it makes no new text.

      SENTENCE -> The PERSON who works as OCCUPATION and is or has ECONOMIC-CONDITIONS VERB OBJECT.
      PERSON   -> three values of distinct attributes of religion, ethnicity, language, politics
      VERB     -> feels | is | seems | appears | looks
      OBJECT   -> happy | sad | excited | angry | content | frustrated

    The ASTRAEA-like baseline of GenFair's evaluation (P3, section V.C.2). The paper's probabilities
    are not published: the k-th value of an attribute has weight 1/k here. The paper's sentence
    ("The Muslim Asian liberal who is an teacher from an low-income background, feels happy") is put
    into correct English, so that wrong articles do not affect the comparison. Raises UsageError
    where an attribute of the grammar is missing.
    """
    missing = [name for name in (*PERSON, *CLAUSES) if name not in ingredients.dimensions]
    if missing:
        raise UsageError(
            f"the grammar needs {listed(missing, last='and')}, which the attributes in use do not "
            "hold; add it, or choose another generator"
        )
    texts: set[bytes] = set()
    draws = 0
    while draws < MOST_REPEATS:
        draws += 1
        chosen = rng.permutation(len(PERSON))[:PERSON_ATTRIBUTES]
        uses = [
            *(_weighted(ingredients.dimensions[PERSON[n]], Form.ADJECTIVE, rng) for n in chosen),
            *(_weighted(ingredients.dimensions[name], Form.CLAUSE, rng) for name in CLAUSES),
        ]
        verb, thing = (words[int(rng.integers(len(words)))] for words in (VERBS, OBJECTS))
        frame = f"{{The person}} {verb} {thing}."
        if contradiction(uses) is None and (case := _distinct(texts, "astraea", frame, uses)):
            draws = 0
            yield case


def _weighted(dimension: Dimension, form: Form, rng: np.random.Generator) -> AttributeUse:
    weights = 1.0 / np.arange(1, len(dimension.values) + 1)
    drawn = int(rng.choice(len(dimension.values), p=weights / weights.sum()))
    return AttributeUse(dimension=dimension, value=dimension.values[drawn], form=form)


MANNERS = {"intensify": Manner.INTENSIFIED, "reduce": Manner.REDUCED, "negate": Manner.NEGATED}
NEGATE, SUBSTITUTE, BOUNDARY = "negate", "substitute", "boundary"
OPERATORS = (*MANNERS, SUBSTITUTE, BOUNDARY)
RECIPES: tuple[tuple[str, ...], ...] = (
    (),
    *((name,) for name in OPERATORS),
    *((name, BOUNDARY) for name in (*MANNERS, SUBSTITUTE)),
)
"""Operators of one case after another of a template."""

Uses = tuple[AttributeUse, ...]
MOST_ROWS = 2**14
"""Rows of values that a template may have: all of them are compared."""
_NEW, _USED = 1e12, 1e9  # what a new combination and an earlier use of a row weigh

Cells = npt.NDArray[np.int64]


class Counts:
    """How often each combination was stated: one cell for each, shared by all templates."""

    def __init__(self, templates: Sequence[CaseTemplate], strength: int) -> None:
        """Lay out the combinations of the templates, all at zero."""
        self.strength = strength
        self._starts: dict[tuple[str, ...], int] = {}
        size = 0
        for template in templates:
            for slots in self.groups(template):
                chosen = sorted((template.slots[n].dimension for n in slots), key=lambda d: d.id)
                key = tuple(dimension.id for dimension in chosen)
                if key not in self._starts:
                    self._starts[key] = size
                    size += math.prod(len(dimension.values) for dimension in chosen)
        self.stated = np.zeros(size, dtype=np.int64)

    def groups(self, template: CaseTemplate) -> list[tuple[int, ...]]:
        """Return the slots that are counted together; all where a template has fewer than t."""
        slots = range(len(template.slots))
        return list(itertools.combinations(slots, min(self.strength, len(slots))))

    def cells(self, template: CaseTemplate, rows: Cells) -> Cells:
        """Return the cell of each combination of each row, `[groups, rows]`."""
        groups = []
        for slots in self.groups(template):
            order = sorted(slots, key=lambda n: template.slots[n].dimension.id)
            cell = np.zeros(len(rows), dtype=np.int64)
            for n in order:
                cell = cell * len(template.slots[n].dimension.values) + rows[:, n]
            groups.append(cell + self._starts[tuple(template.slots[n].dimension.id for n in order)])
        return np.stack(groups)


def fitting_rows(template: CaseTemplate) -> Cells:
    """Return the rows `[rows, slots]` without two values that nobody has together."""
    slots = template.named_values()
    rows = np.indices([len(values) for values in slots]).reshape(len(slots), -1).T
    fits = np.ones(len(rows), dtype=bool)
    for (n, uses), (m, others) in itertools.combinations(enumerate(slots), 2):
        clash = np.array([[excluded(use, other) for other in others] for use in uses])
        fits &= ~clash[rows[:, n], rows[:, m]]
    return rows[fits]


class CandidateRows:
    """The rows of one template, with how often each was used.

    A covering array is built row by row (greedy, as in AETG): all rows of a template are compared,
    and the row with the most new combinations of t values is taken; where nothing is new, the row
    whose combinations are rarest. Rows that hold two values which nobody has together are left out.
    """

    def __init__(self, template: CaseTemplate, counts: Counts, rng: np.random.Generator) -> None:
        """Take the counts that all templates share; `use` adds to them."""
        self.template = template
        self.used = 0
        self.gain = len(counts.groups(template))
        """Most combinations that a row can add: an upper bound until `best` was called."""
        self._counts = counts
        self._rng = rng
        slots = len(template.slots)
        groups = counts.groups(template)
        self._without = [[n for n, g in enumerate(groups) if s not in g] for s in range(slots)]
        self._rows = fitting_rows(template)
        self._cells = counts.cells(template, self._rows)
        self._uses = np.zeros(len(self._rows))

    def best(self, denied: int | None = None) -> int | None:
        """Return the row to take next; None where no row is left.

        Combinations of the slot `denied` do not count: a denied value is not stated.
        """
        cells = self._cells if denied is None else self._cells[self._without[denied]]
        stated = self._counts.stated[cells]
        new = (stated == 0).sum(axis=0)
        cost = self._uses * _USED + stated.sum(axis=0) - new * _NEW + self._rng.random(len(new))
        if not len(cost) or math.isinf(cost[row := int(cost.argmin())]):
            return None
        if denied is None:
            self.gain = int(new[row])
        return row

    def uses(self, row: int) -> tuple[AttributeUse, ...]:
        """Return the attributes that a row states."""
        return self.template.uses(self._rows[row].tolist())

    def use(self, row: int, denied: int | None) -> None:
        """Count a row as stated, but for the slot that is denied."""
        self.used += 1
        self._uses[row] += 1
        cells = self._cells[:, row]
        self._counts.stated[cells if denied is None else cells[self._without[denied]]] += 1

    def strike(self, row: int) -> None:
        """Leave a row out from now on: every text of it was made."""
        self._uses[row] = math.inf


def genfair_cases(ingredients: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
    """Yield partitions, mutants and boundary values, until every text of every template was made.

    Every case is a row of values of its own (`Rows`), stated plainly, or after an operator, or
    after a mutation and a boundary value; each template takes these in turn. While combinations of
    values are missing, the template comes next that adds most of them, and each has half its equal
    share at least; then they take turns. So every beginning of the stream states nearly as many
    combinations as so many cases can. An operator touches the attribute that it touched least.
    Source: GenFair (P3), section IV.
    """
    counts = Counts(ingredients.templates, ingredients.strength)
    turns = {
        CandidateRows(template, counts, rng): n for n, template in enumerate(ingredients.templates)
    }
    variants = _Variants()
    while turns:
        share = sum(rows.used for rows in turns) / len(turns)
        usable = [rows for rows in turns if rows.used < share / 2] or list(turns)
        while True:  # what a row can add only falls, so most templates need not be looked at
            first = max(usable, key=lambda rows: (rows.gain, -rows.used))
            bound = first.gain
            if not bound or first.best() is None or first.gain == bound:
                break
        if case := variants.case(first, turns[first] + first.used):
            yield case
        else:
            del turns[first]


class _Variants:
    """The cases of rows, with the counts that decide which attribute is touched next."""

    def __init__(self) -> None:
        self._touched: Counter[tuple[str, str]] = Counter()
        self._texts: set[bytes] = set()

    def case(self, rows: CandidateRows, turn: int) -> GeneratedCase | None:
        """Return a case with the operators of a turn; with others where these give no new text.

        None where no text of the template is left.
        """
        turn %= len(RECIPES)
        recipes = (*RECIPES[turn:], *RECIPES[:turn])
        if NEGATE in recipes[0]:
            slots = [slot.dimension.id for slot in rows.template.slots]
            for n in sorted(range(len(slots)), key=lambda n: self._touched[NEGATE, slots[n]]):
                row = rows.best(denied=n)
                if row is not None and (case := self._new(rows, row, recipes[0], n)):
                    return case
        while (row := rows.best()) is not None:
            for recipe in recipes:
                if case := self._new(rows, row, recipe):
                    return case
            rows.strike(row)
        return None

    def _new(
        self, rows: CandidateRows, row: int, recipe: tuple[str, ...], denied: int | None = None
    ) -> GeneratedCase | None:
        for uses, touched in self._changed(rows.uses(row), recipe, (), denied):
            names = [f"{operator}:{name}" for operator, name in touched]
            if case := _distinct(self._texts, rows.template.id, rows.template.frame, uses, names):
                self._touched.update(touched)
                denials = (n for n, use in enumerate(uses) if use.manner is Manner.NEGATED)
                rows.use(row, next(denials, None))
                return case
        return None

    def _changed(
        self,
        uses: Uses,
        recipe: tuple[str, ...],
        touched: tuple[tuple[str, str], ...],
        denied: int | None,
    ) -> Iterator[tuple[Uses, tuple[tuple[str, str], ...]]]:
        """Yield what a recipe makes of a row, the attributes that were touched least first."""
        if not recipe:
            yield uses, touched
            return
        operator, *later_operators = recipe
        touched_names = {name for _, name in touched}
        names = [use.dimension.id for use in uses]
        order = sorted(range(len(uses)), key=lambda n: self._touched[operator, names[n]])
        for n in order if denied is None or operator != NEGATE else [denied]:
            use = _after(uses[n], operator)
            if use is not None and names[n] not in touched_names:
                others = (*uses[:n], use, *uses[n + 1 :])
                more = (*touched, (operator, names[n]))
                yield from self._changed(others, tuple(later_operators), more, denied)


def _after(use: AttributeUse, operator: str) -> AttributeUse | None:
    """Return a use as an operator leaves it; None where the operator cannot have led to it.

    A row holds the values that a substitution or a move to the boundary ends with.
    """
    manner = MANNERS.get(operator)
    if manner is not None:
        return None if use.value.wording(manner) is None else replace(use, manner=manner)
    return None if operator == BOUNDARY and use.value not in use.dimension.boundaries else use


CaseGenerator = Callable[[Ingredients, np.random.Generator], Iterator[GeneratedCase]]
GENERATORS: Mapping[str, CaseGenerator] = {
    "genfair": genfair_cases,
    "template": template_cases,
    "astraea": astraea_cases,
}
"""Every generator of cases from templates or a grammar, as `fairgate generate` names it."""
