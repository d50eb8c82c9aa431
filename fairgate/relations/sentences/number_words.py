"""Words for the numbers 2 to 99, in the languages whose phrasings list them.

Words that are something else, too, are left out: "one", "ein", "once".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from fairgate.relations.sentences.phrasings import numbers


@lru_cache(maxsize=1)
def digits_of() -> Mapping[str, str]:
    """Return the digits of each word, which has hyphens between its parts."""
    return {
        word: str(number)
        for words in numbers()
        for number, word in enumerate(words, 2)
        if word != "_"
    }


@lru_cache(maxsize=1)
def words_pattern() -> re.Pattern[str]:
    """Return the pattern that finds every such word in lower case, the longest first."""
    # "twenty five" is written with a blank, too.
    words = (
        re.escape(word).replace(r"\-", r"[\s\u2010\u2011-]")
        for word in sorted(digits_of(), key=len, reverse=True)
    )
    return re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])")
