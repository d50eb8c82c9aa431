"""The few rules of English that edits of a text need: what agrees, and what is a fault."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

# Vowel letters that are spoken with a consonant first ("a European", "a one-off", "a Ugandan").
_SPOKEN_CONSONANT = re.compile(
    r"eu|ew|one(?![a-z])|once|oaxac|ou(?:ij|i$)|u(?:ga|kr|k(?![a-z])|rugu|rani|yg|ighu|nanim|"
    r"ni(?:on|qu|corn|cycl|camer|form|fy|lat|sex|son|ta|te|ts?(?![a-z])|ver|v(?![a-z])|x)|"
    r"s(?:a|e|i|u)|t(?:e|il|op|ah)|bi|ri|ra)"
)
# Consonant letters that are silent or spoken with a vowel first ("an hour", "an X-ray").
_SPOKEN_VOWEL = re.compile(r"hour|hono|honest|hors(?![a-z])|heir|x-|mbti|8|11(?!\d)|18(?!\d)")
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
TITLE = re.compile(r"\b(?:Mrs|Ms|Miss|Madam|Mr|Mister|Sir)\b")
"""A title that says the gender of whom it names."""
_OF_EITHER = frozenset("actor host heir landlord".split())  # noqa: SIM905
"""Nouns that are also said of women."""
FUNCTION_WORDS = frozenset(
    """a an the who and or of to in on at for with by from as is are was were be been has have had
    do does did not will would can may i you he she it we they my your his her its our their this
    that what how why when where there here""".split()  # noqa: SIM905 (reads better so)
)
_PIECE = re.compile(r"[^\W_]+(?:[-'\u2019](?!s\b)[^\W_]+)*|['\u2019]s\b|[^\w\s]")
_SAID_OF_ONE = (
    "is|has|does|was|isn't|wasn't|hasn't|doesn't|asks|believes|comes|feels|gets|goes|hopes|knows|"
    "likes|lives|looks|loves|makes|needs|says|seems|speaks|takes|thinks|tries|wants|wishes|works|"
    "writes"
)
_SAID_OF_SEVERAL = "are|do|have|were|aren't|don't|haven't|weren't"
_VERB = "says '{0}': the verb disagrees"
_DENIAL = "says '{0}': a broken denial"
_LEFT_OVER = "says '{0}': a word is left over"
_RULES = (
    (r"[{}]", "holds the brace of a slot"),
    (r"^\s|\s$|[^\S\n]{2,}", "has a surplus blank"),
    (r"\s[,.;:?!]", "has a blank before a sign"),
    (r"[,;](?=[^\W\d_])", "has no blank after a comma"),
    (r",\s*,|\?\?|,\s*[.?!]", "has two signs in a row"),
    (r"(?i)\b(?!(?:that|had)\b)([^\W\d_]+) \1\b", "says the word '{0}' twice"),
    (rf"(?i)\b(?:they|we|you) (?:{_SAID_OF_ONE})\b", _VERB),
    (r"(?i)\b(?:he|she|it) (?:are|have|do|were)\b", _VERB),
    (r"(?i)\b(?:is|has|does|was|isn't|wasn't|hasn't|doesn't) (?:they|we|you)\b", _VERB),
    (rf"(?i)\b(?:{_SAID_OF_SEVERAL}) s?he\b", _VERB),
    (r"(?i)\b(?:do|does|did)(?: not|n't) (?:is|has|does|was)\b", _DENIAL),
    (r"(?i)\bnot (?:is|are|has|have not|does|not\b|non-(?!binary))", _DENIAL),
    (r"(?i)\bnot \w+ non-(?!binary)", "says '{0}': denied twice"),
    (r"(?i)\bwho not\b", _DENIAL),
    (r"(?i)\bwho(?: is| are)?[,.;?!]", "says '{0}': a clause is unfinished"),
    (r"(?i)\b(?:who|being|not) (?:and|or)\b|\band[,.;?!]", _LEFT_OVER),
    (r"(?i)\b(?:has|have|how|what) and\b", _LEFT_OVER),
)
"""Faults as patterns, which are compiled where a relation edits texts, and what they say."""


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


def pronoun_of_noun(phrase: str) -> str:
    """Return the pronoun of a noun that says a gender (`young man`, `policewoman`); else empty."""
    bare = re.split(r"\b(?:of|from|with|in|on|at|who|living|without)\b", phrase)[0].split()
    last = bare[-1].lower() if bare else ""
    if last in _OF_EITHER:
        return ""
    ending = re.search(r"(?<!hu)(?<!ger)(?<!ro)(?<!nor)(?<!sha)((?:wo)?man)$", last)
    return NOUNS.get(last) or (NOUNS[ending.group(1)] if ending else "")


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
    earlier_rules = {rule for rule, _ in _faults(before)}
    return next((sentence for rule, sentence in _faults(after) if rule not in earlier_rules), None)


def _faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of a rule and what it finds."""
    for rule, (pattern, sentence) in enumerate(_RULES):
        match = re.search(pattern, text)
        if match is not None:
            word = match.group(1) if match.re.groups else match.group()
            yield rule, sentence.format(word.strip())
    if article := article_fault(text.replace("\u2019", "'")):
        yield -1, article
    if text.count('"') % 2:
        yield -2, "opens a quotation that it does not close"
