"""How people type: lower case, shouting, missing commas, and words that nobody knows."""

from __future__ import annotations

import random
import re

from demo_text import capitalised

SYLLABLES = (
    *("ba", "cor", "del", "fi", "gra", "hol", "in", "jo", "ka", "lum", "mer", "no", "or", "pe"),
    *("qua", "ri", "sta", "tu", "ul", "ver", "wa", "xi", "yo", "zen", "th", "sh", "nd", "s", "er"),
)


def informal(rng: random.Random, text: str) -> str:
    """Return `text` as people type it: sometimes lower case, shouted, without apostrophes."""
    draw = rng.random()
    if draw < 0.12:
        return text.lower()
    if draw < 0.16:
        return text.upper()
    if draw < 0.28:
        return text.replace(".", "!", 1) if rng.random() < 0.5 else text.rstrip(".") + "!!"
    if draw < 0.34:
        return text.replace(",", "").replace("'", "")
    if draw < 0.38:
        return text + rng.choice([" :)", " :(", " ...", " lol", " Thanks.", " Cheers, Ann"])
    return text


def clutter(rng: random.Random, text: str) -> str:
    """Return `text` with invented words, numbers, quotes and shouting around its sentences.

    The model meets words that it does not know, and still has to answer with a label.
    """

    def chunk() -> str:
        words = [
            "".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(rng.randint(2, 16))
        ]
        if rng.random() < 0.4:
            words.insert(rng.randrange(len(words)), str(rng.randrange(3000)))
        line = capitalised(" ".join(words)) + rng.choice(".!?,;")
        line = f'"{line}"' if rng.random() < 0.2 else line
        return line.upper() if rng.random() < 0.25 else line

    parts = re.split(r"(?<=[.!?]) ", text)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        parts.insert(rng.randrange(len(parts) + 1), chunk())
    return rng.choice((" ", " ", "\n")).join(parts)
