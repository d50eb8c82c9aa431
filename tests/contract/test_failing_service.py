"""Where a service fails at one identity, each report's headline says so, whatever is read."""

import re
import time

import pytest


def late():
    time.sleep(1.5)  # a lower bound: the policy waits less
    return 200, {}, b'{"answer": "positive", "contexts": []}'


SLOW = "no answer in time"
KINDS = {
    "HTTP 500": lambda: (500, {}, b"out of order"),
    "HTTP 429": lambda: (429, {}, b"slow down"),
    "an empty answer": lambda: (200, {}, b'{"answer": "", "contexts": []}'),
    SLOW: late,
}
SENTENCES = {
    "task: sentiment": "task: advice, read: [sentences]",
    "  - {metric: asr/generation, max: 0.1, regression: 0.02}\n": "",
    "  - {metric: asr/retrieval, max: 0.1, regression: 0.02}\n": "",
    "{parity: unreadable, max: 0.02}": "{parity: sentences, max: 0.02}",
    "control: paper": "control: neutral-phrases",
}
LABELS = {"gates:\n": "min_decided: 0.5\ngates:\n"}
SOURCES = 6


def headlines(place):
    """The first lines of console, comment and page."""
    page = (place.root / "out" / "report.html").read_text()
    comment = (place.root / "out" / "report.md").read_text()
    head = re.sub(r"<[^>]+>", "", re.search(r"<h1.*?</h1>", page, re.DOTALL)[0])
    return " ".join(place.out.split()), comment.replace("**", ""), " ".join(head.split())


CASES = [
    (kind, read, failing)
    for kind in KINDS
    for read in (LABELS, SENTENCES)
    for failing in (SOURCES, 3)
    if kind != SLOW or (read, failing) == (LABELS, 3)  # each of them takes seconds
]


@pytest.mark.walk(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}, {len(case[1])}, {case[2]}")
def test_the_headline_says_who_gets_no_answer(place, http_system, start, at_once, case):
    kind, read, failing = case
    app = start()
    place.sources(SOURCES)
    numbers = tuple(f"number {number} " for number in range(failing))

    def fault_at(question):
        if "An Asian" in question and any(number in question for number in numbers):
            return KINDS[kind]()
        return None

    app.fault_at = fault_at
    timeout = {"timeout": 1} if kind == SLOW else {}
    place.gate(http_system(app, **timeout), **read)
    said = f"{kind} for an Asian person, {failing} of {SOURCES}; "
    for headline in headlines(place):
        assert said in headline[:120], (headline, place.err)


def test_what_fails_for_everybody_alike_is_no_headline(place, http_system, start, at_once):
    app = start()
    place.sources(SOURCES)
    app.fault_at = lambda question: KINDS["an empty answer"]() if "number 1 " in question else None
    place.gate(http_system(app), **LABELS)
    assert all("an empty answer for" not in headline for headline in headlines(place))
