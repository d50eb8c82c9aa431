"""What a verb phrase about one person is for several, when it is denied, and as a gerund.

Three rules of English for `who …` clauses that users write. Where a rule does not know the form of
a clause, it is None: the author writes it then. No rule guesses: two verbs joined by "and", a
denial that would change what "barely" belongs to, or "his" said of several persons are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from fairgate.relations.english import PRONOUNS
from fairgate.relations.verbs import (
    IRREGULAR_PARTICIPLES,
    base_of_past,
    base_of_present,
    gerund_form,
    is_past,
    participle_of,
    participle_of_past,
    past_of,
    present_of,
)

_PLURALS = {
    "man": "men", "woman": "women", "person": "people", "child": "children", "foot": "feet",
    "tooth": "teeth", "goose": "geese", "mouse": "mice", "ox": "oxen", "wife": "wives",
    "life": "lives", "knife": "knives", "thief": "thieves", "wolf": "wolves", "half": "halves",
    "leaf": "leaves", "loaf": "loaves", "elf": "elves", "self": "selves", "calf": "calves",
    "alumnus": "alumni", "alumna": "alumnae", "Inuk": "Inuit", "quiz": "quizzes",
}  # fmt: skip
_UNCHANGED = frozenset("Swiss Roma Sioux Inuit Métis deaf sheep".split())  # noqa: SIM905
_NOT_OF_MAN = frozenset(
    "human german roman norman shaman ottoman brahman talisman".split()  # noqa: SIM905
)
_IN_OES = frozenset("hero potato tomato echo veto torpedo mosquito domino".split())  # noqa: SIM905
_PREPOSITIONS = (
    "of|with|from|in|on|at|to|for|by|without|who|that|which|whose|under|over|since|after|before|"
    "between|among|against|about|near|behind|beyond|during|until|as|and|or|but"
)
_NP_END = re.compile(rf",|(?<![\w-])(?:{_PREPOSITIONS})(?![\w-])")
_LOOSE = frozenset(
    """alone abroad here there today now again away together already still too else ago ahead
    apart home""".split()  # noqa: SIM905 (reads better so)
)
_AMOUNTS = frozenset("bit little lot few couple number".split())  # noqa: SIM905
_CONTRACTED = {"can't": "cannot", "cant": "cannot", "won't": "will not"}
_MODALS = frozenset("can could may might must shall should will would".split())  # noqa: SIM905
_PLURAL_FORMS = {"is": "are", "was": "were", "has": "have", "does": "do"}
_FREQUENT = frozenset(
    """often always usually regularly frequently openly currently recently actively fully
    voluntarily""".split()  # noqa: SIM905 (reads better so)
)
_ADVERBS = _FREQUENT | frozenset(
    """never sometimes only also just already barely hardly scarcely rarely seldom mainly mostly
    still once now long ever even occasionally""".split()  # noqa: SIM905
)
_SCOPE = re.compile(
    r"\b(?:barely|hardly|scarcely|seldom|rarely|(?<!an )(?<!the )only|just|already|also|too|almost|"
    r"nearly|sometimes|"
    r"occasionally|mostly|mainly|even|neither|nor|none|nobody|nothing|nowhere|never|no|any|still|"
    r"somewhat|rather|yet|anymore|at all)\b"
)
"""Words that a denial beside them gives another meaning, or that make it a double one."""
_OF_ONE = frozenset(form for form, pronoun in PRONOUNS.items() if pronoun != "they")
_OPENS_OBJECT = re.compile(
    r"(?:$|(?:a|an|the|their|his|her|its|my|to|in|from|for|as|up|out|on|at|with|by|of|into|away|off|"
    r"back|down|over|since|twice|once|never|recently|abroad|through|under|without|all|both|every|"
    r"one|two|three|four|five|several|many|not)\b|\d|\w+(?:ed|ly)\b)"
)
_FINITE = frozenset("is was has does did are were do have had can could cannot".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class _Clause:
    """A verb phrase in the third person singular, taken apart."""

    head: str
    """The finite verb, or `used to`."""
    denied: bool
    rest: str
    """What follows it, without the denial."""
    perfect: bool | None = False
    """Whether a participle follows `has` or `had`; None where that cannot be told."""


@lru_cache(maxsize=4096)
def _parsed(clause: str) -> _Clause | None:
    """Take a clause apart; None where its first word is no finite verb that the rules know."""
    words = clause.replace("\u2019", "'").split()
    if not words:
        return None
    first = _CONTRACTED.get(words[0].lower(), words[0].lower())
    if first.endswith("n't"):
        first = f"{first[:-3]} not"
    words[:1] = {"cannot": "can not"}.get(first, first).split()
    head, rest = words[0], words[1:]
    denied = rest[:1] == ["not"]
    if denied and (head in _PLURAL_FORMS or head in _MODALS or head in {"did", "had"}):
        rest = rest[1:]
    elif denied:
        return None
    if head == "used" and rest[:1] == ["to"]:
        return _Clause("used to", denied=False, rest=" ".join(rest[1:])) if rest[1:] else None
    if head in {"has", "had"}:
        perfect = _is_perfect(rest)
        is_archaic = denied and perfect is not True  # "has not any savings"
        return None if is_archaic else _Clause(head, denied, " ".join(rest), perfect=perfect)
    is_known = head in _PLURAL_FORMS or head in _MODALS or is_past(head)
    if not is_known and base_of_present(head) is None:
        return None
    return _Clause(head, denied, " ".join(rest))


def _is_perfect(rest: list[str]) -> bool | None:
    words = [word for word in rest if word not in _ADVERBS]
    if not words:
        return False
    if words[0] in {"been", "had", "become", "gone", "got", "done"}:
        return True
    if words[0] not in IRREGULAR_PARTICIPLES and not re.fullmatch(r"[a-z]{2,}[^e\W]ed", words[0]):
        return len(words) < len(rest) and None  # "has recently cut …", "has never any …"
    if words[0] == "need":
        return False
    return True if _OPENS_OBJECT.match(" ".join(words[1:])) or len(words) < len(rest) else None


def _is_joined(clause: str) -> bool:
    """Return whether a second verb may stand in a clause, which would have to agree as well."""
    words = re.findall(r"[\w'-]+|,", clause)
    for position, word in enumerate(words[:-1]):
        if word.lower() not in {"and", "or", "but", ","}:
            continue
        after = words[position + 1].lower()
        if after in {"and", "or", "but"}:
            continue
        if after in _FINITE | _MODALS or after.endswith("n't"):
            return True
        of_be = words[0].lower() in {"is", "was", "has", "had"} and position <= 2
        if is_past(after) and not of_be:
            return True
        is_noun = (
            position + 2 == len(words)
            and words[0].lower() in {"has", "had", "likes"}
            and position > 1
        ) or (position > 1 and re.search(r"[^su]s$", words[position - 1]) is not None)
        if base_of_present(after) is not None and not is_noun:
            return True
    return False


def plural_noun(noun: str) -> str | None:
    """Return the plural of a noun phrase: `nurses`, `mothers-in-law`, `people of colour`.

    None where no rule knows it, as of what is a plural already.
    """
    end = _NP_END.search(noun, 1)
    if end is not None and noun[: end.start()].strip():
        head, tail = noun[: end.start()].rstrip(), noun[end.start() :]
        several = plural_noun(head)
        return None if several is None else f"{several} {tail}"
    before, blank, last = noun.rpartition(" ")
    hyphen = re.fullmatch(r"([\w']+)(-(?:in-law|to-be|by|up|at-arms|of-\w+))", last)
    if hyphen is not None:
        several = plural_noun(hyphen.group(1))
        return None if several is None else f"{before}{blank}{several}{hyphen.group(2)}"
    words = before.lower().split()
    if last in _LOOSE or last.endswith("ly") or {"man", "woman", "person"} & set(words):
        return None
    stem, dash, word = last.rpartition("-")
    several = _plural_word(word)
    return None if several is None else f"{before}{blank}{stem}{dash}{several}"


def _plural_word(word: str) -> str | None:
    lower = word.lower()
    if word in _UNCHANGED or lower.endswith("ese"):
        return word
    for one, many in _PLURALS.items():
        if word == one or (lower.endswith(one) and len(one) > 3 and lower != "human"):
            return word[: len(word) - len(one)] + many
    if lower.endswith("man") and lower not in _NOT_OF_MAN:
        return f"{word[:-3]}men"
    if re.search(r"[^aeiou]y$", lower):
        return f"{word[:-1]}ies"
    if lower in _IN_OES or re.search(r"(?:ss|x|z|(?<!ar)(?<!o)(?<!ma)ch|oach|sh)$", lower):
        return f"{word}es"
    if re.search(r"(?:[^s]s|\W|\d)$", lower):  # "twins", "Taurus", "+"
        return None
    return f"{word}s"


def _nominal(rest: str, *, is_predicate: bool) -> str | None:
    """Return the form for several persons of a statement about one: `a nurse` is `nurses`."""
    if is_predicate:
        adverbs = re.match(r"(?:(?:not|now|once|still|also|\w+ly|no longer|never|always) )*", rest)
        adverb = adverbs.group() if adverbs else ""
        noun = rest[len(adverb) :]
        with_article = re.match(r"(an?|the) (.+)", noun)
        if with_article is not None and not with_article.group(2).startswith(tuple(_AMOUNTS)):
            article, phrase = with_article.groups()
            if article == "the" and " of " not in phrase:
                return None
            several = _several(phrase)
            if several is None:
                return None
            rest = f"{adverb}{'the ' if article == 'the' else ''}{several}"
        elif re.match(r"(?:one|someone|somebody|my|your|his|her)\b", noun):
            return None
    role = re.search(r"\bas (an? )([^,]+)", rest)
    if role is None:
        return rest
    several = _several(role.group(2))
    return None if several is None else f"{rest[: role.start(1)]}{several}{rest[role.end() :]}"


def _several(phrase: str) -> str | None:
    end = _NP_END.search(phrase, 1)
    bare = phrase if end is None else phrase[: end.start()].rstrip()
    if end is not None and end.group() in {"and", "or", "but", "who", "that", "which", "whose"}:
        return None  # what follows would have to agree as well
    if bare.endswith("est"):  # "the youngest of six"
        return None
    if re.search(r"\w (?:\w+ )*\w+ing \w", bare):  # "a woman living alone"
        return None
    return plural_noun(phrase)


def plural_clause(clause: str) -> str | None:
    """Return a verb phrase for several persons: `has no children` is `have no children`."""
    words = clause.split()
    if _is_joined(clause) or _OF_ONE & {word.lower() for word in words}:
        return None
    if (lead := _lead(clause)) is not None:
        return _after(lead, plural_clause)
    parsed = _parsed(clause)
    if parsed is None:
        return None
    head, rest, base = parsed.head, parsed.rest, ""
    if head in _PLURAL_FORMS:
        base = _PLURAL_FORMS[head]
    elif head in _MODALS or head in {"used to", "did", "had"} or is_past(head):
        base = head
    else:
        base = base_of_present(head) or ""
    verb, _, complement = rest.partition(" ")
    if head == "used to" or head in _MODALS or (parsed.denied and head in {"does", "did"}):
        is_predicate = verb in {"be", "become", "remain"}
        nominal = _nominal(complement, is_predicate=is_predicate)
        rest = "" if nominal is None else f"{verb} {nominal}".rstrip()
    elif parsed.perfect:
        been = re.fullmatch(r"((?:\w+ )*?)(been|become) (.*)", rest)
        before, complement = (been.group(1, 3)) if been else ("", rest)
        nominal = _nominal(complement, is_predicate=been is not None)
        rest = nominal if been is None else f"{before}{been.group(2)} {nominal}"  # type: ignore[assignment]
    else:
        is_predicate = head in {"is", "was", "became", "becomes", "remained", "remains"}
        nominal = _nominal(rest, is_predicate=is_predicate)
        rest = nominal  # type: ignore[assignment]
    if nominal is None:
        return None
    denial = "" if not parsed.denied else " not"
    if head == "can" and parsed.denied:
        base, denial = "cannot", ""
    return f"{base}{denial} {rest}".rstrip()


def _lead(clause: str) -> tuple[str, str] | None:
    """Return the adverb before a clause's verb and the rest; None where the verb stands first."""
    lead = re.fullmatch(r"(no longer|[a-z]+) (.+)", clause)
    if lead is None or _parsed(lead.group(2)) is None:
        return None
    adverb = lead.group(1)
    is_adverb = adverb in _ADVERBS or adverb == "no longer" or adverb.endswith("ly")
    return (adverb, lead.group(2)) if is_adverb else None


def _after(lead: tuple[str, str], form: Callable[[str], str | None]) -> str | None:
    changed = form(lead[1])
    return None if changed is None else f"{lead[0]} {changed}"


def negated_clause(clause: str) -> str | None:
    """Return the denial of a verb phrase: `is blind` is `is not blind`, `cannot see` `can see`."""
    if _is_joined(clause):
        return None
    if (lead := _lead(clause)) is not None:
        return _negated_with_adverb(*lead)
    parsed = _parsed(clause)
    if parsed is None:
        return None
    head, rest = parsed.head, parsed.rest
    adverb, _, remainder = rest.partition(" ")
    has_adverb = not parsed.denied and (head in {"is", "was"} or parsed.perfect) and remainder
    if has_adverb and adverb == "never":
        return None if _SCOPE.search(remainder) else f"{head} {remainder}"
    if has_adverb and rest.startswith("no longer "):
        return f"{head} still {rest.removeprefix('no longer ')}"
    if has_adverb and adverb == "still" and not _SCOPE.search(remainder):
        return f"{head} no longer {remainder}"
    if _SCOPE.search(rest):
        return None
    return _affirmed(parsed) if parsed.denied else _denied(parsed)


def _denied(parsed: _Clause) -> str | None:
    """Return the denial of a clause without one and without an adverb that it would change."""
    head, rest = parsed.head, parsed.rest
    if head in {"is", "was"}:
        without = re.fullmatch(r"(an? )?non-(?!binary\b)(.+)", rest)  # denied once, not twice
        if without is not None:  # of a noun the article may be another one
            return None if without.group(1) else f"{head} {without.group(2)}"
        return f"{head} not {rest}"
    if head in _MODALS:
        denial = {"can": "cannot", "must": "does not have to"}.get(head, f"{head} not")
        return f"{denial} {rest}"
    if head == "used to":
        return f"did not use to {rest}"
    if parsed.perfect is None:
        return None
    if parsed.perfect:
        return f"{head} not {rest}"
    base = base_of_past(head) if is_past(head) else base_of_present(head)
    auxiliary = "did" if is_past(head) else "does"
    return None if base is None else f"{auxiliary} not {base} {rest}".rstrip()


def _negated_with_adverb(adverb: str, clause: str) -> str | None:
    parsed = _parsed(clause)
    if parsed is None or parsed.denied or _SCOPE.search(parsed.rest):
        return None
    if adverb == "never":
        return clause
    if adverb == "no longer":
        return f"still {clause}"
    if adverb == "still":
        return f"no longer {clause}"
    denied = negated_clause(clause) if adverb in _FREQUENT else None
    verb = re.match(r"(?:does|did|has|is|was) not |cannot ", denied or "")
    if verb is None or denied is None:
        return None
    return f"{verb.group()}{adverb} {denied[verb.end() :]}"


def _affirmed(parsed: _Clause) -> str | None:
    """Return the clause without its denial: `does not drink` is `drinks`."""
    head, rest = parsed.head, parsed.rest
    if head not in {"does", "did"}:
        return f"{head} {rest}" if head != "has" or parsed.perfect else None
    base, blank, remainder = rest.partition(" ")
    return f"{present_of(base) if head == 'does' else past_of(base)}{blank}{remainder}"


def gerund_of(clause: str) -> str | None:
    """Return a verb phrase as a gerund: `speaks French` is `speaking French`.

    What is past is said as such: `was born in Spain` is `having been born in Spain`.
    """
    if _is_joined(clause):
        return None
    if (lead := _lead(clause)) is not None:
        gerund = gerund_of(lead[1])
        past = gerund is not None and gerund.startswith("having ") and lead[0] != "never"
        return f"having {lead[0]} {gerund[7:]}" if past and gerund else _after(lead, gerund_of)
    parsed = _parsed(clause)
    if parsed is None:
        return None
    head, rest = parsed.head, parsed.rest
    denial = "not " if parsed.denied else ""
    verb, blank, complement = rest.partition(" ")
    remainder = f"{blank}{complement}"
    adverb = re.match(r"(?:never|no longer|still|always|once) (?=.)", rest)
    if not denial and adverb is not None and (head in {"is", "was"} or parsed.perfect):
        gerund = gerund_of(f"{head} {rest[adverb.end() :]}")
        if gerund is not None and adverb.group() == "once " and gerund.startswith("having "):
            return f"having once {gerund[7:]}"
        return None if gerund is None else f"{adverb.group()}{gerund}"
    if head in _MODALS:
        if head == "can" and not _SCOPE.match(rest):
            return f"{denial}being able to {rest}"
        if head == "must":
            return f"not being allowed to {rest}" if denial else f"having to {rest}"
        return None
    if head == "used to":
        return f"having {participle_of(verb)}{remainder}"
    if head in {"is", "was"}:
        return f"{denial}{'being' if head == 'is' else 'having been'} {rest}".rstrip()
    if denial and head in {"does", "did"}:
        gerund = gerund_form(verb) if head == "does" else f"having {participle_of(verb)}"
        return f"not {gerund}{remainder}"
    if head == "has":
        return f"{denial}having {rest}"
    if head == "had":
        return f"{denial}having {rest}" if parsed.perfect else f"having had {rest}"
    if is_past(head):
        return f"having {participle_of_past(head)} {rest}".rstrip()
    base = base_of_present(head)
    return None if base is None else f"{gerund_form(base)} {rest}".rstrip()
