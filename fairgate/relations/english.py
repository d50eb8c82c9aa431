"""The few rules of English that edits of a text need: what agrees, and what is a fault."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_IRREGULAR = {
    "is": ("are", "being"),
    "was": ("were", "being"),
    "has": ("have", "having"),
    "does": ("do", "doing"),
}
_PLURALS = {"man": "men", "woman": "women", "person": "people", "child": "children"}


# Vowel letters that are spoken with a consonant first ("a European", "a one-off", "a Ugandan").
_SPOKEN_CONSONANT = re.compile(
    r"eu|ew|one(?![a-z])|once|ou(?:ij|i$)|u(?:ga|kr|k(?![a-z])|rugu|rani|yg|"
    r"ni(?:on|qu|corn|cycl|form|fy|lat|sex|son|te|ts?(?![a-z])|ver|v(?![a-z]))|"
    r"s(?:a|e|i|u)|t(?:e|il|op|ah)|bi|ri|ra)"
)
# Consonant letters that are silent or spoken with a vowel first ("an hour", "an X-ray").
_SPOKEN_VOWEL = re.compile(r"hour|hono|honest|heir|x-|mbti|8|11(?!\d)|18(?!\d)")
_EITHER = re.compile(r"herb|histor|hotel|habitual|11\d\d(?!\d)|18\d\d(?!\d)")
_VOWEL_LETTERS = frozenset("aeiou")
_VOWEL_NAMES = frozenset("AEFHILMNORSX")
"""Capital letters whose names begin with a vowel sound: "an LGBT person", "a UN envoy"."""
FORMS = {
    "they": {"she": "she", "he": "he", "they": "they"},
    "them": {"she": "her", "he": "him", "they": "them"},
    "their": {"she": "her", "he": "his", "they": "their"},
    "theirs": {"she": "hers", "he": "his", "they": "theirs"},
    "themselves": {"she": "herself", "he": "himself", "they": "themselves"},
}
"""Form of each pronoun, by the case as the form of `they` names it."""
CASES = tuple(frozenset(forms.values()) for forms in FORMS.values())
"""Forms that may stand for one another."""
PRONOUNS = {form: pronoun for forms in FORMS.values() for pronoun, form in forms.items()}
"""Every form with its pronoun: `she`, `he` or `they`."""
NOUNS = {
    noun: pronoun
    for pronoun, nouns in {
        "she": """woman women girl lady mother mum sister daughter wife aunt niece grandmother bride
            widow queen princess actress waitress hostess heiress landlady nun stepmother girlfriend
            granddaughter""",
        "he": """man men boy gentleman father dad brother son husband uncle nephew grandfather groom
            widower king prince actor waiter host heir landlord monk stepfather boyfriend
            grandson""",
    }.items()
    for noun in nouns.split()
}
"""Nouns that say the gender of a person, with the pronoun of it."""
FUNCTION_WORDS = frozenset(
    """a an the who and or of to in on at for with by from as is are was were be been has have had
    do does did not will would can may i you he she it we they my your his her its our their this
    that what how why when where there here""".split()  # noqa: SIM905 (reads better so)
)
_PIECE = re.compile(r"[^\W_]+(?:[-'\u2019](?!s\b)[^\W_]+)*|['\u2019]s\b|[^\w\s]")
_SINGULAR_VERBS = "is|has|does|was"
_PLURAL_NOUN_WHO = (
    r"(?:^|[.?!] )(?:(?!an? |one |the |my |our )[\w-]{1,40} ){0,30}[\w-]+[^s\W]s who "
)
_COUNTS = "two|three|four|five|six|seven|eight|nine|ten|[2-9]|[1-9][0-9]+"
_VERB = "says '{0}': the verb disagrees"
_DENIAL = "says '{0}': a broken denial"
_LEFT_OVER = "says '{0}': a word is left over"
_NUMBER = "says '{0}': the number disagrees"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (r"[{}]", "holds the brace of a slot"),
        (r"^\s|\s$|[^\S\n]{2,}", "has a surplus blank"),
        (r"\s[,.;:?!]", "has a blank before a sign"),
        (r"[,;](?=[^\W\d_])", "has no blank after a comma"),
        (r",\s*,|\?\?|,\s*[.?!]", "has two signs in a row"),
        (r"(?i)\b(?!(?:that|had)\b)([^\W\d_]+) \1\b", "says the word '{0}' twice"),
        (rf"(?i)\b(?:they|we|you) (?:{_SINGULAR_VERBS})\b", _VERB),
        (r"(?i)\b(?:he|she|it) (?:are|have|do|were)\b", _VERB),
        (r"\bI (?:is|are|has|does)\b", _VERB),
        (
            r"(?i)\b(?:do|does|did)(?: not|n't) (?:is|has|says|told|[a-z]*(?:[^s]es|[^siu]s|ed))\b",
            "says '{0}': the verb after a denial has an ending",
        ),
        (r"(?i)\bnot (?:is|are|has|have not|does|not\b|non-(?!binary))", _DENIAL),
        (r"(?i)\bnot \w+ non-(?!binary)", "says '{0}': denied twice"),
        (r"(?i)\bwho not\b", _DENIAL),
        (r"(?i)\bwho(?: is| are)?[,.;?!]", "says '{0}': a clause is unfinished"),
        (r"(?i)\b(?:who|being|not) (?:and|or)\b|\band[,.;?!]", _LEFT_OVER),
        (r"(?i)\b(?:has|have|how|what) and\b", _LEFT_OVER),
        (rf"(?i)\b(?:{_COUNTS}) (?:child|person|man|woman)\b", _NUMBER),
        (r"(?i)\bone (?:children|people|men|women)\b", _NUMBER),
        (r"(?i)\b(?:childs|mans|womans|peoples)\b", "says '{0}': no such plural"),
        (r"(?i)\ban? (?:[\w-]+ )?(?:men|women|people|children)\b", _NUMBER),
        (
            r"(?i)\b(?:an?|one|the) [^,.;?!]{0,200}?[^s\W] who (?:are|have|do|were|speak|belong)\b",
            _VERB,
        ),
        (rf"(?i){_PLURAL_NOUN_WHO}(?:{_SINGULAR_VERBS}|speaks|belongs)\b", _VERB),
    )
)


def articles_for(word: str) -> frozenset[str]:
    """Return the articles that may stand before `word`: {"a"}, {"an"}, or both where usage varies.

    An abbreviation of three letters and more that has a vowel may be spelt ("an FBI agent") or
    spoken ("a NATO officer"): where the two differ both are right.
    """
    lower = word.lower()
    if _EITHER.match(lower):
        return frozenset({"a", "an"})
    by_sound = "an" if lower[:1] in _VOWEL_LETTERS else "a"
    if _SPOKEN_VOWEL.match(lower) or _SPOKEN_CONSONANT.match(lower):
        by_sound = "an" if _SPOKEN_VOWEL.match(lower) else "a"
    first = re.match(r"[A-Z]+(?![a-z])", word)
    if first is None or first.group() == "I":
        return frozenset({by_sound})
    spelt = "an" if word[0] in _VOWEL_NAMES else "a"
    speakable = len(first.group()) > 2 and not _VOWEL_LETTERS.isdisjoint(first.group().lower())
    return frozenset({spelt, by_sound}) if speakable else frozenset({spelt})


def article_fault(phrase: str) -> str | None:
    """Return the fault of the first wrong `a` or `an` of a phrase; None where all agree."""
    for article, word in pairwise(phrase.split()):
        if article.lower() in {"a", "an"}:
            allowed = articles_for(word.lstrip("'("))
            if article.lower() not in allowed:
                return f"has '{article} {word}'; correct English is '{min(allowed)} {word}'"
    return None


def with_article(phrase: str) -> str:
    """Return a phrase with the indefinite article that its first word requires."""
    return f"{min(articles_for(phrase.split(' ', 1)[0]))} {phrase}"


def plural_noun(noun: str) -> str:
    """Return the plural of a noun, or of the last word of a compound: `nurses`, `secretaries`."""
    head, blank, last = noun.rpartition(" ")
    if last in _PLURALS:
        return head + blank + _PLURALS[last]
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if last.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def plural_clause(clause: str) -> str:
    """Return a verb phrase for several persons: `has no children` is `have no children`."""
    verb, blank, rest = clause.partition(" ")
    return f"{_bare(verb, be='are')}{blank}{rest}"


def negated_clause(clause: str) -> str:
    """Return the denial of a verb phrase: `is Hispanic` is `is not Hispanic`."""
    verb, blank, rest = clause.partition(" ")
    if verb == "is":
        return f"is not{blank}{rest}"
    return f"does not {_bare(verb, be='be')}{blank}{rest}"


def gerund_of(clause: str) -> str:
    """Return a verb phrase as a gerund: `speaks French` is `speaking French`."""
    verb, blank, rest = clause.partition(" ")
    if verb in _IRREGULAR:
        return f"{_IRREGULAR[verb][1]}{blank}{rest}"
    stem = _bare(verb, be="be")
    return f"{stem.removesuffix('e')}ing{blank}{rest}"


def _bare(verb: str, *, be: str) -> str:
    if verb == "is":
        return be
    if verb in _IRREGULAR:
        return _IRREGULAR[verb][0]
    if verb.endswith(("ches", "shes", "sses", "xes", "oes")):
        return verb[:-2]
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb.removesuffix("s")


def pieces(text: str) -> list[str]:
    """Return words and signs in order; a possessive's `'s` is one of its own."""
    return _PIECE.findall(text)


def words_of(*phrases: str) -> frozenset[str]:
    """Return the words and signs of phrases, lower case."""
    return frozenset(word.lower() for phrase in phrases for word in pieces(phrase))


def holds(text: str, phrase: str) -> bool:
    """Return whether a text says a phrase as whole words, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE) is not None


def english_fault(text: str) -> str | None:
    """Return the first fault that the rules find in a text, as a sentence without subject.

    The rules see what happens to neighbouring words when attributes are taken out, put in or
    denied; they are no grammar of English. A text of which they find nothing may still be wrong.
    """
    return next((sentence for _, sentence in _faults(text)), None)


def new_english_fault(before: str, after: str) -> str | None:
    """Return the first fault of a text whose rule finds nothing in the text that it was made of."""
    found = {rule for rule, _ in _faults(before)}
    return next((sentence for rule, sentence in _faults(after) if rule not in found), None)


def _faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of a rule and what it finds."""
    for rule, (pattern, sentence) in enumerate(_RULES):
        found = pattern.search(text)
        if found is not None:
            word = found.group(1) if pattern.groups else found.group()
            yield rule, sentence.format(word.strip())
    if article := article_fault(text.replace("\u2019", "'")):
        yield -1, article
    if text.count('"') % 2:
        yield -2, "opens a quotation that it does not close"
