"""How values are put into messages: short, harmless, rounded alike, and never a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

SHOWN_CHARACTERS = 60
"""Longest excerpt of a user's value inside a message."""
_MOST_BITS = 1024
"""Python does not write very long numbers; these are beyond the range of a double."""

_MOST_KNOWN = 40
"""Longest list of names that is shown whole, so that all metrics and relations are."""
_NEAREST_KNOWN = _MOST_NAMED = 5
_AS_NEAR = 0.12
"""Similarity, of 1, that a further suggestion may lack."""
MINUS = "\N{MINUS SIGN}"
CONCEALED = "***"
_MOST_DIGITS = 12
_LEAST_IN_ANSWERS = 8
"""Characters; shorter secrets also occur in ordinary answers, which would be changed."""
_NO_NAMES = re.compile(
    r"any|anybody|anyone|each|every|many|most|no|nobody|one|other|some|somebody|"
    r"someone|these|this|those|two|adult|adults|boy|boys|child|children|citizen|"
    r"citizens|elder|elders|girl|girls|kid|kids|man|men|mother|mothers|father|fathers|"
    r"parent|parents|people|person|persons|woman|women|youth|youths|student|students|worker|"
    r"workers|immigrant|immigrants|refugee|refugees|able-bodied|aged|bisexual|blind|deaf|"
    r"disabled|elderly|female|gay|heterosexual|homeless|homosexual|lesbian|male|married|"
    r"middle-aged|non-binary|old|older|pansexual|poor|queer|rich|single|straight|trans|"
    r"transgender|unemployed|wealthy|widowed|young|younger",
    re.IGNORECASE,
)
"""Words that begin a noun phrase and are written small inside a sentence."""


def harmless(text: str) -> str:
    """Return `text` on one line, unable to steer a terminal or to give a CI runner a command.

    Non-printable characters (controls, line ends, bidirectional marks) become escapes; `::` and
    `##[`, with which workflow commands begin, are broken by a space.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    while "::" in text:
        text = text.replace("::", ": :")
    return text.replace("##[", "## [")


def shown(value: object) -> str:
    """Return `value` as messages show it: `'0.1' (text)`, `3`, `true`, `an empty list`."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"{quoted(value)} (text)"
    if isinstance(value, list | tuple):
        entries = "1 entry" if len(value) == 1 else f"{len(value)} entries"
        return f"a list of {entries}" if value else "an empty list"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a whole number of {value.bit_length():,} bits"
    return _capped(repr(value) if isinstance(value, int | float) else type(value).__name__)


def quoted(text: str) -> str:
    """Return `text` in single quotes, capped and harmless."""
    # Cut before escaping: the text may be a megabyte, and repr() would copy all of it.
    return f"'{_capped(text[: SHOWN_CHARACTERS + 1])}'"


def _capped(text: str) -> str:
    clean = harmless(text)
    return clean if len(clean) <= SHOWN_CHARACTERS else clean[: SHOWN_CHARACTERS - 1] + "…"


def nearest(name: str, candidates: Iterable[str]) -> list[str]:
    """Return up to three known names that `name` may be a typing error of, best first.

    Names that are clearly farther off than the best one are left out.
    """
    import difflib

    by_lower = {candidate.lower(): candidate for candidate in candidates}
    typed = name[:200].lower()
    close = difflib.get_close_matches(typed, by_lower, n=3, cutoff=0.65)
    near = {match: difflib.SequenceMatcher(None, match, typed).ratio() for match in close}
    close = [match for match in close if near[match] > max(near.values()) - _AS_NEAR]
    if len(typed) >= 3:
        close += [c for c in by_lower if c not in close and (c in typed or typed in c)]
    return [by_lower[candidate] for candidate in close[:3]]


def listed(names: Iterable[str], *, last: str = "or") -> str:
    """Return names as code, in words: "`a`, `b` or `c`"."""
    quoted_names = [f"`{harmless(name)}`" for name in names]
    if len(quoted_names) < 2:
        return "".join(quoted_names)
    return f"{', '.join(quoted_names[:-1])} {last} {quoted_names[-1]}"


def within_sentence(name: str) -> str:
    """Return an identity's name within a sentence: `an elderly person`, `elderly people`.

    Names of people and groups stay as they are (`An Nguyen`, `Muslims`): a word in lower case must
    follow an article, and other first words become small only if they are known to be no names.
    """
    first, _, following = name.partition(" ")
    is_phrase = first in ("A", "An", "The") and any(word.islower() for word in following.split())
    is_word = bool(_NO_NAMES.fullmatch(first)) and first[1:].islower()
    return f"{name[:1].lower()}{name[1:]}" if is_phrase or is_word else name


def first_few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Return "did you mean `x`?", or, where nothing is near, what there is to choose from.

    Of many names only the nearest few are listed, with the number of the others.
    """
    names = list(dict.fromkeys(candidates))
    close = nearest(name, names)
    if close:
        return f"did you mean {listed(close)}?"
    if len(names) > _MOST_KNOWN:
        import difflib

        least_far = difflib.get_close_matches(name[:200], names, n=_NEAREST_KNOWN, cutoff=0.0)
        few = [f"`{harmless(known_name)}`" for known_name in least_far]
        return f"known: {', '.join(few)} and {len(names) - len(few):,} more"
    return f"known: {listed(names, last='and')}" if names else "there are none to choose from"


def value(number: float, *, is_rate: bool, is_difference: bool = False) -> str:
    """Return `9.4 %` for a rate, `9.4 points` for a difference of rates, `0.712` for a score."""
    unit = "points" if is_difference else "%"
    return _minus(f"{100 * number:.1f} {unit}" if is_rate else f"{number:.3f}")


def in_own_unit(number: float, digits: int = 3) -> str:
    """Return a score to so many digits: `0.285`, `4.23`, and a large one whole: `52,340`."""
    text = f"{number:.{digits}g}"
    return f"{number:,.0f}" if "e+" in text else text


def signed(number: float, *, is_rate: bool) -> str:
    """Return `+5.3` (percentage points) or `+0.050`; nothing has no sign."""
    return _minus(f"{100 * number:+.1f}" if is_rate else f"{number:+.3f}")


def told_apart(number: float, limit: float, *, is_rate: bool) -> tuple[str, str]:
    """Return two values as `value` has them, with as many decimals more as tell unequal ones apart.

    Results have six decimals, so that much is enough: 2.04 % is above 2.00 %, never 2.0 % above it.
    What no decimal tells apart (1 and the float below it) is equal to a reader.
    """
    factor, fewest, unit = (100.0, 1, " %") if is_rate else (1.0, 3, "")
    short = value(number, is_rate=is_rate), value(limit, is_rate=is_rate)
    if number == limit or short[0] != short[1]:
        return short
    for digits in range(fewest + 1, _MOST_DIGITS + 1):
        first, second = (_minus(f"{factor * term:.{digits}f}{unit}") for term in (number, limit))
        if first != second:
            return first, second
    return short


def _minus(text: str) -> str:
    """Write a real minus, and no sign before nothing."""
    if text.startswith(("-", "+")) and not re.search("[1-9]", text):
        text = text[1:]
    return text.replace("-", MINUS)


def probability(p_value: float) -> str:
    """Return `p = 0.012` or `p < 0.001`; near the level, decimals that say on which side of it."""
    if p_value < 0.001:
        return "p < 0.001"
    digits = 3
    while (round(p_value, digits) <= 0.05) != (p_value <= 0.05) and digits < _MOST_DIGITS:
        digits += 1
    return f"p = {p_value:.{digits}f}"


def difference(base: float, now: float, *, is_rate: bool) -> str:
    """Return the difference of two values as they are shown, rounded first: 11.2 − 2.5 is +8.7.

    Rates are shown times 100 with one decimal, scores with three.
    """
    factor, digits = (100.0, 1) if is_rate else (1.0, 3)
    step = round(factor * now, digits) - round(factor * base, digits)
    return signed(step / factor, is_rate=is_rate)


def concealed(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with every secret's value replaced, also where it is escaped or encoded.

    Call it before a text is shortened: half a secret would not be found any more. What a hostile
    program makes of a secret beyond the spellings below (reversed, in parts) stays unknown.
    """
    spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, CONCEALED)
    return text


def concealed_in_answer(text: str, secrets: Iterable[str]) -> str:
    """Return a system's answer with secrets replaced, except those that are ordinary text."""
    return concealed(text, (secret for secret in secrets if len(secret) >= _LEAST_IN_ANSWERS))


def _spellings(secret: str) -> Iterable[str]:
    """Yield a secret as it is, as Python and JSON write it inside a string, and as in a URL."""
    yield secret
    for written in (repr(secret), repr(f"'{secret}"), repr(f"'\"{secret}")):
        yield written[1:-1].removeprefix("\\'").removeprefix("'").removeprefix('"')
    yield json.dumps(secret)[1:-1]
    yield from (quote(secret), quote(secret, safe=""))


def duration(seconds: float) -> str:
    """Write a time as people say it: "40 s", "12 minutes", "1.5 hours"."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 3600:
        minutes = round(seconds / 60)
        return f"{minutes} minute{'s' * (minutes != 1)}"
    return f"{seconds / 3600:.1f} hours"
