"""Attributes that a plain sentence states, as frame and attributes for GenFair's relations.

One person of a text is found by the catalogue's own words: adjectives before a noun, an occupation
as the noun, clauses after "who", or a list of gerunds. Whatever is found is put together again
(`realise`), and counts only if that gives the text to the character. Which pronouns are the
person's follows from a stated gender alone; whoever names the text has to look at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fairgate.domain.attributes import AttributeUse, AttributeValue, Dimension, Form, Manner
from fairgate.relations.clauses import plural_verb
from fairgate.relations.english import (
    FORMS,
    FUNCTION_WORDS,
    PRONOUNS,
    articles_for,
)
from fairgate.relations.frames import Realised, realise
from fairgate.relations.language import other_language

_ARTICLE = re.compile(r"(?<![\w'])(an?|the)\s(?=\w)", re.IGNORECASE)
_WORD = re.compile(r"[\w'\u2019-]+")
_THINGS = (
    "restaurant|plant|elephant|paper|letter|dinner|supper|number|computer|order|water|summer|winter|"
    "river|colou?r|door|floor|event|accent|content|parent company|rent|percent|tent|center|"
    "centre|corner|weather|matter|power|tower|sweater|newspaper|poster|chapter|career|border|"
    "cancer|mirror|error|horror|terror|humou?r|labou?r|favou?r|flavou?r|motor|sector|list|coffee|"
    "committee|fee|tree|degree|process|business|address|success|dress|access|illness|kindness"
)
"""Words for things that end as words for persons do."""
_PERSON_NOUN = re.compile(
    rf"(?!\w*ment\b|{_THINGS}\b)"
    r"(?:person|people|individual|adult|nurse|chef|cook|guest|judge|guard|pupil|friend|clerk|"
    r"candidate|delegate|graduate|advocate|associate|inmate|coach|guide|pilot|athlete|youth|"
    r"neighbou?r|citizen|colleague|bride|"
    r"\w*(?:wo)?m[ae]n|\w{2,}(?:er|or|ist|ian|ant|ent|ee|eer|ess))s?",
    re.IGNORECASE,
)
_MOST_WORDS = 3
"""Of a noun that no attribute gives: "a {senior software engineer}"."""
_TRAITS = "your background"
"""What stands for a list of gerunds that holds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotated:
    """A text with the frame and the attributes that give it."""

    text: str
    frame: str
    attributes: tuple[AttributeUse, ...]
    unmarked: tuple[str, ...] = ()
    """Words of the catalogue that the text has elsewhere, which no relation changes."""

    @property
    def marked(self) -> str:
        """Return the text with every attribute in brackets: `A [young: age/young] nurse`."""
        shown, end = "", 0
        for use in sorted(self.attributes, key=lambda use: use.start):
            denied = "" if use.manner is Manner.PLAIN else f", {use.manner}"
            words = self.text[use.start : use.end]
            shown += f"{self.text[end : use.start]}[{words}: {use.name}{denied}]"
            end = use.end
        return shown + self.text[end:]


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A person as a text names them: adjectives, and an attribute's noun or another one."""

    adjectives: list[_CatalogueWords]
    noun: _CatalogueWords | None
    head: str
    end: int
    comma: bool
    """Whether a comma stands behind the first adjective."""


@dataclass(frozen=True, slots=True)
class _CatalogueWords:
    """Words of the catalogue, by the form in which they stand."""

    dimension: Dimension
    value: AttributeValue
    form: Form
    manner: Manner
    words: str

    @property
    def use(self) -> AttributeUse:
        """Return the attribute as a text states it, without its position."""
        return AttributeUse(
            dimension=self.dimension, value=self.value, form=self.form, manner=self.manner
        )


class Annotator:
    """Finds the attributes of one catalogue in sentences."""

    def __init__(self, dimensions: Mapping[str, Dimension]) -> None:
        """Take every wording of every value, the longest first."""
        by_form: dict[tuple[Form, bool], list[_CatalogueWords]] = {
            (form, plural): [] for form in Form for plural in (False, True)
        }
        for dimension in dimensions.values():
            for value in dimension.values:
                for manner, wording in value.wordings:
                    for (form, plural), entries in by_form.items():
                        if words := wording.words(form, plural=plural):
                            entries.append(_CatalogueWords(dimension, value, form, manner, words))
        self._by_form = {
            form: sorted(entries, key=lambda entry: -len(entry.words))
            for form, entries in by_form.items()
        }

    def annotate(self, text: str) -> Annotated | str:
        """Return the text with its frame and attributes, or why it has none."""
        if words := other_language(text):
            return f"it is not English ({words}), and the rules know no other language"
        if "{" in text or "}" in text:
            return "it holds a brace, which a frame uses for slots"
        readings = [*self._persons(text), *self._lists(text)]
        exact = [
            Annotated(text=text, frame=frame, attributes=realised.attributes)
            for frame, uses in readings
            if isinstance(realised := realise(frame, uses), Realised) and realised.text == text
        ]
        if not exact:
            stated = self._stated(text)
            if not stated:
                return "it states no attribute of the catalogue; name your own with --attributes"
            words = ", ".join(sorted(stated))
            return f"it states {words}, but not in a form that the relations can change"
        best = max(exact, key=lambda annotated: len(annotated.attributes))
        marked = {text[use.start : use.end].lower() for use in best.attributes}
        rest = tuple(sorted(self._stated(text) - marked))
        return Annotated(text=text, frame=best.frame, attributes=best.attributes, unmarked=rest)

    def _stated(self, text: str) -> set[str]:
        """Return the words of the catalogue that stand anywhere in a text, the longest alone."""
        rest, stated = text.lower(), set[str]()
        catalogue = {entry.words.lower() for entries in self._by_form.values() for entry in entries}
        for words in sorted(catalogue, key=len, reverse=True):
            pattern = rf"(?<![\w-]){re.escape(words)}(?![\w-])"
            rest, count = re.subn(pattern, "\0", rest)
            if count:
                stated.add(words)
        return stated

    def _at(
        self, form: Form, text: str, position: int, *, plural: bool = False
    ) -> _CatalogueWords | None:
        """Return the longest words of a form that stand at a position."""
        for entry in self._by_form[form, plural]:
            end = position + len(entry.words)
            if (
                text[position:end].lower() == entry.words.lower()
                and not text[end : end + 1].isalnum()
            ):
                return entry
        return None

    def _persons(self, text: str) -> Iterator[tuple[str, list[AttributeUse]]]:
        """Yield a frame and attributes for each noun phrase that states some."""
        behind_articles = {article.end(): article for article in _ARTICLE.finditer(text)}
        for word in _WORD.finditer(text):
            article = behind_articles.get(word.start())
            if article is not None and article.group(1).lower() == "the":
                several = self._phrase(text, word.start(), plural=True)
                article = None if several is not None else article  # "the {plural guests}"
            begin = word.start() if article is None else article.start()
            is_capital = (
                text[begin].isupper() and not text[:begin].strip(" \"'\u201c")[-1:].isalnum()
            )
            name = "plural" if article is None else article.group(1).lower()
            phrase = self._phrase(text, word.start(), plural=article is None)
            if phrase is None:
                continue
            for entries, noun, enclosed, behind in self._ways(phrase, text, plural=article is None):
                uses = [entry.use for entry in entries]
                own = min(articles_for(noun)) if name in {"a", "an"} else name
                own = own.capitalize() if is_capital else own
                comma = "," if phrase.comma else ""
                slot = f"{{{own}{comma} {noun}{', who' if enclosed else ''}}}"
                before, after = text[:begin], text[behind:]
                if enclosed and after.startswith(","):
                    after = after[1:]
                pronoun = next((use.value.pronoun for use in uses if use.value.pronoun), "")
                if pronoun and article is not None:
                    before, after = (_with_pronouns(part, pronoun) for part in (before, after))
                yield before + slot + after, uses

    def _phrase(self, text: str, position: int, *, plural: bool) -> _Phrase | None:
        """Return the adjectives and the noun at a position; None where they name no person.

        Without an article there is at least one adjective.
        """
        adjectives: list[_CatalogueWords] = []
        comma = False
        while (entry := self._at(Form.ADJECTIVE, text, position)) is not None:
            adjectives.append(entry)
            position += len(entry.words)
            gap = re.compile(r",? ").match(text, position)
            if gap is None:
                return None
            comma = comma or (gap.group() == ", " and len(adjectives) == 1)
            position = gap.end()
        noun = self._at(Form.NOUN, text, position, plural=plural)
        head = (
            text[position : position + len(noun.words)]
            if noun is not None
            else _head(text, position)
        )
        if not head or (plural and not (adjectives and _is_plural(head))):
            return None
        return _Phrase(adjectives, noun, head, position + len(head), comma)

    def _ways(
        self, phrase: _Phrase, text: str, *, plural: bool
    ) -> Iterator[tuple[list[_CatalogueWords], str, bool, int]]:
        """Yield attributes, the slot's noun, whether commas enclose its clauses, and its end."""
        anybody = "people" if plural else "person"
        ways = [(phrase.adjectives, phrase.head)]
        if phrase.noun is not None and phrase.noun.value.pronoun:  # "a Hispanic woman"
            gender = replace(phrase.noun, form=Form.ADJECTIVE)
            ways.append(([*phrase.adjectives, gender], anybody))
        elif phrase.noun is not None:
            ways = [([*phrase.adjectives, phrase.noun], anybody)]
        clauses, end, enclosed = self._clauses(text, phrase.end, plural=plural)
        for entries, noun in ways:
            if entries:
                yield entries, noun, False, phrase.end
            if clauses:
                yield [*entries, *clauses], noun, enclosed, end

    def _clauses(
        self, text: str, position: int, *, plural: bool
    ) -> tuple[list[_CatalogueWords], int, bool]:
        """Return the clauses behind a noun, where they end, and whether commas enclose them."""
        begin = re.compile(r"(,?) who ").match(text, position)
        if begin is None:
            return [], position, False
        clauses: list[_CatalogueWords] = []
        position = begin.end()
        while (entry := self._at(Form.CLAUSE, text, position, plural=plural)) is not None:
            clauses.append(entry)
            position += len(entry.words)
            gap = re.compile(r", (?!who)| and (?:who )?").match(text, position)
            if gap is None or self._at(Form.CLAUSE, text, gap.end(), plural=plural) is None:
                break
            position = gap.end()
        return clauses, position, bool(begin.group(1))

    def _lists(self, text: str) -> Iterator[tuple[str, list[AttributeUse]]]:
        """Yield a frame and attributes for a list of gerunds: "How has being Asian …"."""
        for start in (match.start() for match in _WORD.finditer(text)):
            gerunds: list[_CatalogueWords] = []
            position = start
            while (entry := self._at(Form.GERUND, text, position)) is not None:
                gerunds.append(entry)
                position += len(entry.words)
                gap = re.compile(r", (?:and )?| and ").match(text, position)
                if gap is None or self._at(Form.GERUND, text, gap.end()) is None:
                    break
                position = gap.end()
            if gerunds:
                for sign in ("", ","):
                    frame = f"{text[:start]}{{traits{sign}|{_TRAITS}}}{text[position:]}"
                    yield frame, [entry.use for entry in gerunds]
                return


def _is_plural(noun: str) -> bool:
    return re.search(r"(?:[^s]s|[^\W]men|people|children)$", noun) is not None


def _head(text: str, position: int) -> str:
    """Return the noun that stands at a position, with the words before it; empty where none is."""
    words: list[re.Match[str]] = []
    while len(words) < _MOST_WORDS and (word := _WORD.match(text, position)) is not None:
        if word.group().lower() in FUNCTION_WORDS:
            break
        words.append(word)
        if text[word.end() : word.end() + 1] != " ":
            break
        position = word.end() + 1
    persons = [n for n, word in enumerate(words) if _PERSON_NOUN.fullmatch(word.group())]
    if not persons:
        return ""
    last = persons[0]
    while last + 1 in persons:
        last += 1
    return text[words[0].start() : words[last].end()]


def _with_pronouns(text: str, pronoun: str) -> str:
    """Return a part of a text with slots for the pronouns of one gender, and verbs that agree."""
    parts, end = "", 0
    for match in _WORD.finditer(text):
        word = match.group()
        if match.start() < end or PRONOUNS.get(word.lower()) != pronoun or pronoun == "they":
            continue
        following = _WORD.match(text, match.end() + 1)
        kind = _case(word.lower(), pronoun, following.group().lower() if following else "")
        slot = f"{{{kind.capitalize() if word[0].isupper() else kind}}}"
        parts += text[end : match.start()]
        end = match.end()
        if kind == "they":
            asked = re.search(r"(?i)\b(is|has|does|was) $", parts)
            if asked is not None:
                verb = asked.group(1)
                several = plural_verb(verb.lower())
                several = several.capitalize() if verb[0].isupper() else several
                parts = f"{parts[: asked.start()]}{{{verb}/{several}}} "
            elif following is not None and text[match.end()] == " ":
                verb = following.group()
                several = plural_verb(verb)
                if several != verb:
                    slot += f" {{{verb}/{several}}}"
                    end = following.end()
        parts += slot
    return parts + text[end:]


def _case(word: str, pronoun: str, following: str) -> str:
    """Return which form of `they` a pronoun is; "her" and "his" by the word behind."""
    kinds = [kind for kind, forms in FORMS.items() if forms[pronoun] == word]
    if len(kinds) == 1:
        return kinds[0]
    owns = bool(following) and following not in FUNCTION_WORDS
    return "their" if owns else next(kind for kind in kinds if kind != "their")
