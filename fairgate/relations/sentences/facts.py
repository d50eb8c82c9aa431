"""Facts in an answer: what can be wrong or lacking without a word of tone.

Dates, times, amounts of money, shares, numbers, links, mail addresses, telephone numbers, steps,
and names of things where they are marked ("Settings"). Each is written in one form, so that "3 pm"
is "15:00" and "five" is "5". Deterministic; languages differ in the words for months and small
numbers alone.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

KINDS = ("link", "mail", "date", "time", "amount", "share", "phone", "number", "step", "name")


class Fact(NamedTuple):
    """A kind of fact, and what it says in one form."""

    kind: str
    value: str


_MONTHS = (
    "jan|january|januar|janvier|enero|gennaio|januari|janeiro",
    "feb|february|februar|février|febrero|febbraio|februari|fevereiro",
    "mar|march|märz|mars|marzo|maart|março",
    "apr|april|avril|abril|aprile",
    "may|mai|mayo|maggio|mei|maio",
    "jun|june|juni|juin|junio|giugno|junho",
    "jul|july|juli|juillet|julio|luglio|julho",
    "aug|august|août|agosto|augustus",
    "sep|sept|september|septembre|septiembre|settembre|setembro",
    "oct|october|oktober|octobre|octubre|ottobre|outubro",
    "nov|november|novembre|noviembre|novembro",
    "dec|december|dezember|décembre|diciembre|dicembre|dezembro",
)
_MONTH_OF = {name: n for n, names in enumerate(_MONTHS, 1) for name in names.split("|")}
_MONTH = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze",
    "cero _ dos tres cuatro cinco seis siete ocho nueve diez once doce",
)
_NUMBERS = {
    name: str(n)
    for line in _COUNTED
    for n, name in enumerate(line.split())
    if n > 1 and name not in ("_", "once")
}
_CURRENCIES = {
    "$": "usd", "usd": "usd", "dollars": "usd", "dollar": "usd", "€": "eur", "eur": "eur",
    "euros": "eur", "euro": "eur", "£": "gbp", "gbp": "gbp", "pounds": "gbp", "pound": "gbp",
    "¥": "jpy", "yen": "jpy", "chf": "chf", "francs": "chf", "cents": "cent", "₹": "inr",
    "rupees": "inr",
}  # fmt: skip
_SIGNS = "|".join(map(re.escape, sorted(_CURRENCIES, key=len, reverse=True)))
_DIGITS = r"\d+(?:[.,'\u00a0\u202f]\d+)*"
_LINK = re.compile(
    r"\b(?:https?://|www\.)[^\s\"'<>)\]]+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|gov|edu|io|de|uk|fr|eu)(?:/[^\s\"'<>)\]]*)?",
    re.IGNORECASE,
)
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+")
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?({_MONTH})\b\.?(?:,?\s+(\d{{4}}))?",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}}))?", re.IGNORECASE
)
_NUMERIC_DATE = re.compile(r"(?<![\d/.])(\d{1,2})([/.])(\d{1,2})\2(\d{2,4})(?![\d/])")
_TIME = re.compile(
    r"(?<![\d.,:])(\d{1,2})(?:[:.h](\d{2}))?\s*(a\.?m\b\.?|p\.?m\b\.?|uhr\b|o'clock)|(?<![\d.,:])(\d{1,2}):(\d{2})(?![\d:])",
    re.IGNORECASE,
)
_BEFORE = re.compile(rf"({_SIGNS})\s?({_DIGITS})", re.IGNORECASE)
_BEHIND = re.compile(rf"(?<![\w.,])({_DIGITS})\s?({_SIGNS})(?!\w)", re.IGNORECASE)
_SHARE = re.compile(
    rf"(?<![\w.,])({_DIGITS})\s?(?:%|percent\b|per cent\b|prozent\b|pour cent\b)", re.IGNORECASE
)
_PHONE = re.compile(
    r"(?<![\w+])(?:\+\d{1,3}[\s./-]?)?(?:\(\d{1,5}\)[\s./-]?)?\d{2,5}(?:[\s./-]\d{2,5}){1,4}(?!\w)|(?<![\w+])\+?\d{7,15}(?!\w)"
)
_STEP = re.compile(
    r"\bstep\s+(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE
)
_NUMBER = re.compile(rf"(?<![\w.,])[-+\u2212]?({_DIGITS})")
_QUOTED = re.compile(
    r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb\n]{2,40})[\"\u201d\u00bb]|\*\*([^*\n]{2,40})\*\*|`([^`\n]{2,40})`"
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_GROUPED = re.compile(r"^\d{1,3}(?:[.,'\u00a0\u202f]\d{3})+$")


def facts(answer: str) -> frozenset[Fact]:
    """Find the facts of an answer, each once."""
    all_facts: set[Fact] = set()
    rest = unicodedata.normalize("NFKC", answer)

    def take(kind: str, pattern: re.Pattern[str], value_of: object) -> None:
        nonlocal rest
        assert callable(value_of)  # noqa: S101 (every caller gives a function)

        def cut(match: re.Match[str]) -> str:
            value = value_of(match)
            if value is None:
                return match[0]
            all_facts.add(Fact(kind, value))
            return " " * len(match[0])

        rest = pattern.sub(cut, rest)

    for match in _QUOTED.finditer(rest):
        name = next(group for group in match.groups() if group)
        if not name.strip().isdigit() and len(name.split()) <= 4:
            all_facts.add(Fact("name", name.strip(" .,:;!?").lower()))
    take("mail", _MAIL, lambda m: m[0].rstrip(".").lower())
    take(
        "link",
        _LINK,
        lambda m: (
            m[0]
            .rstrip(".,;:!?")
            .lower()
            .removeprefix("https://")
            .removeprefix("http://")
            .removeprefix("www.")
            .rstrip("/")
        ),
    )
    take("date", _ISO, lambda m: _date(m[3], m[2], m[1]))
    take("date", _DAY_MONTH, lambda m: _date(m[1], str(_MONTH_OF[m[2].lower()]), m[3]))
    take("date", _MONTH_DAY, lambda m: _date(m[2], str(_MONTH_OF[m[1].lower()]), m[3]))
    take("date", _NUMERIC_DATE, lambda m: f"{m[1]}{m[2]}{m[3]}{m[2]}{m[4]}")
    take("time", _TIME, _time)
    take("amount", _BEFORE, lambda m: f"{_CURRENCIES[m[1].lower()]} {_number(m[2])}")
    take("amount", _BEHIND, lambda m: f"{_CURRENCIES[m[2].lower()]} {_number(m[1])}")
    take("share", _SHARE, lambda m: _number(m[1]))
    take("phone", _PHONE, _phone)
    take("step", _STEP, lambda m: _NUMBERS.get(m[1].lower(), m[1].lower().replace("one", "1")))
    take("number", _NUMBER, lambda m: _number(m[1]))
    all_facts |= {Fact("number", _NUMBERS[w]) for w in _WORD.findall(rest.lower()) if w in _NUMBERS}
    return frozenset(all_facts)


def _number(digits: str) -> str:
    """Write a number without marks between thousands, and with a point before its decimals."""
    if _GROUPED.match(digits):
        return re.sub(r"\D", "", digits)
    plain = re.sub(r"['\u00a0\u202f]", "", digits)
    head, mark, decimals = plain.rpartition("." if "." in plain else ",")
    if not mark:
        return plain.lstrip("0") or "0"
    whole, decimals = re.sub(r"\D", "", head).lstrip("0") or "0", decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _date(day: str, month: str, year: str | None) -> str | None:
    if not (1 <= int(day) <= 31 and 1 <= int(month) <= 12):
        return None
    return f"{int(month):02}-{int(day):02}" + (f" {year}" if year else "")


def _time(match: re.Match[str]) -> str | None:
    hour, minute = int(match[1] or match[4]), int(match[2] or match[5] or 0)
    half = (match[3] or "").lower()[:1]
    if hour > 24 or minute > 59:
        return None
    if half == "p" and hour < 12:
        hour += 12
    elif half == "a" and hour == 12:
        hour = 0
    return f"{hour:02}:{minute:02}"


def _phone(match: re.Match[str]) -> str | None:
    digits = re.sub(r"\D", "", match[0])
    return digits if 6 <= len(digits) <= 15 and not re.fullmatch(r"\d{4}-\d{4}", match[0]) else None
