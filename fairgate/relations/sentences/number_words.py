"""Words for the numbers 2 to 99 in English, German, French and Spanish.

Words that are something else, too, are left out: "one", "ein", "once".
"""

from __future__ import annotations

import re
from functools import cache

_SMALL = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "fr": "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
    "seize dix-sept dix-huit dix-neuf",
    "es": "cero _ dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve",
}
_TENS = (
    (
        "one two three four five six seven eight nine",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "{ten}-{unit}",
    ),
    (
        "ein zwei drei vier fünf sechs sieben acht neun",
        "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
        "{unit}und{ten}",
    ),
    (
        "et-un deux trois quatre cinq six sept huit neuf",
        "vingt trente quarante cinquante soixante",
        "{ten}-{unit}",
    ),
    (
        "uno dos tres cuatro cinco seis siete ocho nueve",
        "_ treinta cuarenta cincuenta sesenta setenta ochenta noventa",
        "{ten}-y-{unit}",
    ),
)
_IRREGULAR = {
    20: "veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve",
    70: "soixante-dix soixante-et-onze soixante-douze soixante-treize soixante-quatorze "
    "soixante-quinze soixante-seize soixante-dix-sept soixante-dix-huit soixante-dix-neuf "
    "quatre-vingts quatre-vingt-un quatre-vingt-deux quatre-vingt-trois quatre-vingt-quatre "
    "quatre-vingt-cinq quatre-vingt-six quatre-vingt-sept quatre-vingt-huit quatre-vingt-neuf "
    "quatre-vingt-dix quatre-vingt-onze quatre-vingt-douze quatre-vingt-treize "
    "quatre-vingt-quatorze quatre-vingt-quinze quatre-vingt-seize quatre-vingt-dix-sept "
    "quatre-vingt-dix-huit quatre-vingt-dix-neuf",
}


def _counted() -> dict[str, str]:
    numbers: dict[str, int] = {}
    for words in _SMALL.values():
        numbers |= {word: n for n, word in enumerate(words.split())}
    for units, tens, joined in _TENS:
        for n, ten in enumerate(tens.split(), 2):
            numbers[ten] = 10 * n
            numbers |= {
                joined.format(unit=unit, ten=ten): 10 * n + digit
                for digit, unit in enumerate(units.split(), 1)
            }
    for start, words in _IRREGULAR.items():
        numbers |= {word: start + n for n, word in enumerate(words.split())}
    return {word: str(n) for word, n in numbers.items() if n > 1 and word not in ("_", "once")}


DIGITS_OF = _counted()
"""Word, with hyphens between its parts, to digits."""


@cache
def words_pattern() -> re.Pattern[str]:
    """Return what finds every such word, the longest first."""
    words = "|".join(
        # "twenty five" is written with a blank, too.
        re.escape(word).replace(r"\-", r"[\s\u2010\u2011-]")
        for word in sorted(DIGITS_OF, key=len, reverse=True)
    )
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)
