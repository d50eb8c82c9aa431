"""Facts in an answer: what can be wrong or lacking without a word of tone.

Dates, times, amounts of money, shares, numbers, links, mail addresses, telephone numbers, steps,
and names of things where they are marked ("Settings"). Each is written in one form, so that "3 pm"
is "15:00" and "five" is "5". Deterministic; languages differ in the words for months and small
numbers alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from fairgate.relations.sentences.months import MONTH_OF, MONTHS
from fairgate.relations.sentences.number_words import digits_of, words_pattern


class Fact(NamedTuple):
    """A kind of fact, and what it says in one form."""

    kind: str
    value: str


_CURRENCIES = {
    "us$": "usd", "$": "usd", "usd": "usd", "us dollars": "usd", "us dollar": "usd",
    "dollars": "usd", "dollar": "usd", "달러": "usd", "ドル": "usd", "美元": "usd",
    "€": "eur", "eur": "eur", "euros": "eur", "euro": "eur", "유로": "eur", "ユーロ": "eur",
    "欧元": "eur",
    "£": "gbp", "gbp": "gbp", "pounds": "gbp", "pound": "gbp",
    "¥": "jpy", "yen": "jpy", "jpy": "jpy", "円": "jpy", "₩": "krw", "원": "krw", "krw": "krw",
    "元": "cny", "cny": "cny", "rmb": "cny",
    "chf": "chf", "francs": "chf", "franken": "chf", "cents": "cent", "cent": "cent",
    "₹": "inr", "rupees": "inr",
}  # fmt: skip
_SIGNS = "|".join(map(re.escape, sorted(_CURRENCIES, key=len, reverse=True)))
_DIGITS = r"\d+(?:[.,'\u00a0\u202f]\d+)*"
_MONEY = rf"(?:\d{{1,3}}(?: \d{{3}})+(?:[.,]\d{{1,2}})?(?!\d)|{_DIGITS})"
_SCALE = {"million": 6, "thousand": 3}
_SCALES = r"(?:(?P<million>millions?|millionen|millones|millón|mio)|(?P<thousand>thousand|tausend))"
_SCALED = re.compile(rf"(?<![\w.,])(\d+(?:[.,]\d+)?)(?:\s{_SCALES}\b|(?P<k>k)\b)", re.IGNORECASE)
# Between letters of a script without spaces (or Hangul) and digits, Latin letters: "約14日", "3시".
_JOINED = re.compile(
    r"(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3])(?=[0-9A-Za-z$\u20ac\u00a3\u00a5\u20a9])"
    r"|(?<=[0-9A-Za-z/])(?=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3])"
)
_LINK = re.compile(
    r"\b(?:https?://|www\.)[^\s\"'<>)\]\u300d]+|\b[\w-]{1,63}(?:\.[\w-]{1,63}){0,6}\."
    r"(?:com|org|net|gov|edu|info|biz|app|dev|shop|store|online|help|support|health|bank|int|mil|eu|"
    r"io|ai|de|uk|fr|jp|kr|cn|es|it|nl|pt|br|ch|at|be|pl|se|dk|fi|ie|in|au|nz|ca|us|mx)\b"
    r"(?:/[^\s\"'<>)\]\u300d]*)?",
    re.IGNORECASE,
)
_MAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,200}")
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_YEAR_FIRST = re.compile(
    r"(?<!\d)(?:(\d{4})\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일号]"
    r"|(?<!\d)(\d{4})\.\s?(\d{1,2})\.\s?(\d{1,2})\.?(?!\d)"
)
_OF_YEAR = r"(?:,?\s+(?:del?\s+)?(\d{4}))?"
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|er|\u00ba|\.)?\s+(?:of\s+|de\s+)?({MONTHS})\b\.?{_OF_YEAR}",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"\b({MONTHS})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b{_OF_YEAR}", re.IGNORECASE
)
_NUMERIC_DATE = re.compile(r"(?<![\d/.])(\d{1,2})([/.])(\d{1,2})\2(\d{4}|\d{2})(?![\d/])")
_TIME = re.compile(
    r"(?<![\d.,:])(\d{1,2})(?:[:.h](\d{2}))?\s*(a\.?m\b\.?|p\.?m\b\.?|uhr\b|o'clock)"
    r"|(?<![\d.,:])(\d{1,2})(?::|\s?h\s?)(\d{2})(?![\d:])",
    re.IGNORECASE,
)
_HALVES = {"午前": "am", "上午": "am", "오전": "am", "午後": "pm", "下午": "pm", "오후": "pm"}
_HOUR = re.compile(
    rf"(?:({'|'.join(_HALVES)})\s?)?(?<![\d.,:])(\d{{1,2}})\s?(?:時(?!間)|[点點]|시(?!간))(?:\s?(\d{{1,2}})\s?[分분])?"
)
_NOON = re.compile(r"\b(?:(noon|midday)|midnight)\b", re.IGNORECASE)
_BEFORE = re.compile(rf"({_SIGNS})\s?({_MONEY})", re.IGNORECASE)
_BEHIND = re.compile(rf"(?<![\w.,])({_MONEY})\s?({_SIGNS})(?![A-Za-z])", re.IGNORECASE)
_SHARE = re.compile(
    rf"(?<![\w.,])({_DIGITS})\s?(?:%|percent\b|per cent\b|prozent\b|pour cent\b)", re.IGNORECASE
)
_PHONE = re.compile(
    r"(?<![\w+.,])(?:\+\d|\(\d|0(?![.,]))(?:\(0\)|[\s./()-]{0,2}\d){5,14}(?!\w)"
    r"|(?<![\w+])\d{2,5}(?:[\s./-]\d{2,5}){1,4}(?!\w)|(?<![\w+])\d{7,15}(?!\w)"
)
_STEP = re.compile(r"\bstep\s+(\d{1,2})\b", re.IGNORECASE)
_NUMBER = re.compile(rf"(?<![\w.,])[-+\u2212]?({_DIGITS})")
_QUOTED = re.compile(
    r"(?:\"(?=\S)|[\u201c\u201e\u00ab\u300c\u300e])([^\"\u201c-\u201e\u00ab\u00bb\u300c-\u300f\n]{2,40})[\"\u201c\u201d\u00bb\u300d\u300f]"
    r"|\*\*([^*\n]{2,40})\*\*|`([^`\n]{2,40})`"
)
_DIGIT = re.compile(r"\d")
_GROUPED = re.compile(r"^\d{1,3}(?:[.,'\u00a0\u202f ]\d{3})+$")


def facts(answer: str) -> frozenset[Fact]:
    """Find the facts of an answer, each once."""
    all_facts: set[Fact] = set()
    rest = _in_one_script(answer)

    def take(kind: str, pattern: re.Pattern[str], value_of: Callable[..., str | None]) -> None:
        nonlocal rest

        def cut(match: re.Match[str]) -> str:
            value = value_of(match)
            if value is None:
                return match[0]
            all_facts.add(Fact(kind, value))
            return " " * len(match[0])

        rest = pattern.sub(cut, rest)

    for match in _QUOTED.finditer(rest):
        name = next(group for group in match.groups() if group).strip(" .,:;!?").lower()
        if any(map(str.isalpha, name)) and len(name.split()) <= 4 and "://" not in name:
            all_facts.add(Fact("name", name))
    take("mail", _MAIL, lambda m: m[0].rstrip(".").lower())
    take("link", _LINK, _link)
    rest = _SCALED.sub(_scaled, words_pattern().sub(_digits_of, rest.lower()))
    if not _DIGIT.search(rest):  # most answers: only times of day are told without
        take("time", _NOON, _noon)
        return frozenset(all_facts)
    take("date", _ISO, lambda m: _date(m[3], m[2], m[1]))
    take("date", _YEAR_FIRST, lambda m: _date(m[3] or m[6], m[2] or m[5], m[1] or m[4]))
    take("date", _DAY_MONTH, lambda m: _date(m[1], str(MONTH_OF[m[2].lower()]), m[3]))
    take("date", _MONTH_DAY, lambda m: _date(m[2], str(MONTH_OF[m[1].lower()]), m[3]))
    take("date", _NUMERIC_DATE, _numeric_date)
    take("time", _HOUR, lambda m: _hour(m[2], m[3], _HALVES.get(m[1] or "", "")))
    take("time", _TIME, lambda m: _hour(m[1] or m[4], m[2] or m[5], (m[3] or "").lower()))
    take("time", _NOON, _noon)
    take("amount", _BEFORE, lambda m: f"{_CURRENCIES[m[1].lower()]} {_number(m[2])}")
    take("amount", _BEHIND, lambda m: f"{_CURRENCIES[m[2].lower()]} {_number(m[1])}")
    take("share", _SHARE, lambda m: _number(m[1]))
    take("phone", _PHONE, _phone)
    take("step", _STEP, lambda m: m[1])
    take("number", _NUMBER, lambda m: _number(m[1]))
    return frozenset(all_facts)


def _in_one_script(answer: str) -> str:
    """Write every script's digits as 0 to 9, with a blank before and behind them."""
    text = unicodedata.normalize("NFKC", answer)
    if text.isascii():
        return text
    digits = "".join(
        str(unicodedata.decimal(sign)) if not sign.isascii() and sign.isdecimal() else sign
        for sign in text
    )
    return _JOINED.sub(" ", digits)


def _noon(match: re.Match[str]) -> str:
    return "12:00" if match[1] else "00:00"


def _link(match: re.Match[str]) -> str:
    address = match[0].rstrip(".,;:!?").lower()
    return re.sub(r"^(?:https?://)?(?:www\.)?", "", address).rstrip("/")


def _digits_of(match: re.Match[str]) -> str:
    """Write a number's word in digits; months stay ("15 sept 2024")."""
    word = re.sub(r"[\s\u2010\u2011]", "-", match[0])
    if word == "sept" and match.string[: match.start()].rstrip()[-1:].isdigit():
        return match[0]
    return digits_of()[word]


def _scaled(match: re.Match[str]) -> str:
    power = next((n for name, n in _SCALE.items() if match[name]), 3)
    number = Decimal(_number(match[1])).scaleb(power)
    return f"{number.normalize():,f}"


def _number(digits: str) -> str:
    """Write a number without marks between thousands, and with a point before its decimals."""
    if _GROUPED.match(digits):
        return re.sub(r"\D", "", digits).lstrip("0") or "0"
    plain = re.sub(r"['\u00a0\u202f ]", "", digits)
    last = max(plain.rfind("."), plain.rfind(","))
    if last < 0:
        return plain.lstrip("0") or "0"
    whole = re.sub(r"\D", "", plain[:last]).lstrip("0") or "0"
    decimals = plain[last + 1 :].rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _date(day: str, month: str, year: str | None) -> str | None:
    if not (1 <= int(day) <= 31 and 1 <= int(month) <= 12):
        return None
    return f"{int(month):02}-{int(day):02}" + (f" {year}" if year else "")


def _numeric_date(match: re.Match[str]) -> str | None:
    """Read 14.3.2024 with the day first; 3/4/2024 stays as it is written, day or month first."""
    first, sign, second, year = match.groups()
    year = year if len(year) > 2 else f"20{year}"
    if sign == "." or int(first) > 12:
        return _date(first, second, year)
    if int(second) > 12:
        return _date(second, first, year)
    return f"{int(first)}/{int(second)}/{year}"


def _hour(hour_digits: str, minute_digits: str | None, half: str) -> str | None:
    """Write a time as 24 hours; `half` begins with "a" or "p", where it is told."""
    hour, minute = int(hour_digits), int(minute_digits or 0)
    if hour > 24 or minute > 59:
        return None
    if half.startswith("p") and hour < 12:
        hour += 12
    elif half.startswith("a") and hour == 12:
        hour = 0
    return f"{hour:02}:{minute:02}"


def _phone(match: re.Match[str]) -> str | None:
    digits = re.sub(r"\D", "", match[0].replace("(0)", ""))
    return digits if 6 <= len(digits) <= 15 and not re.fullmatch(r"\d{4}-\d{4}", match[0]) else None
