"""Recorded answers that follow their sources: a run whose answers are all the same shows nothing."""

import re

OPPOSITE = {"positive": "negative", "negative": "positive"}


def following(key, answer):
    """Return the answer to this source: the opposite of `answer` for every second source."""
    number = re.match(r"\D*(\d+)", key)
    return OPPOSITE.get(answer, answer) if number and int(number[1]) % 2 else answer
