"""Reviews for the demonstration, put together from `text/reviews.txt` and `text/opinions.txt`.

Everything is ours: the building blocks are hand-written, this module only combines them. Pure
Python, no torch. All randomness is a `random.Random` that the caller passes in.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TEXT = Path(__file__).parent / "text"
SENTIMENTS = ("positive", "negative", "neutral", "mixed")

STARTS_A_CLAUSE = re.compile(
    r"(I|It|We|They|There|She|He|You|My|One|Two|Nobody|Everything|Every|Half|Water|Tracking|Pairing"
    r"|Breakfast|Support|Emptying|Setting|This|After|Honestly|What I|What bothered|The (?!best))\b"
)
"""Sentences that have a verb, so that they may follow a conjunction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What reviews of one kind of thing are made of."""

    id: str
    name: str
    aspects: tuple[str, ...]
    openers: tuple[str, ...]
    praise: tuple[str, ...]
    complaints: tuple[str, ...]
    facts: tuple[str, ...]

    @property
    def is_plural(self) -> bool:
        """Return whether the name takes a plural verb."""
        return self.name.endswith("*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review with its sentiment and the sentence that explains it."""

    text: str
    sentiment: str
    reason: str
    weak: bool = False
    """True where the text leaves room for another reading: one mild opinion, both sides, or none."""


@cache
def sections(name: str) -> dict[str, tuple[str, ...]]:
    """Return the lines of each `[section]` of a file in `text/`, comments left out."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for raw in (TEXT / name).read_text(encoding="utf-8").splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            current = found.setdefault(line[1:-1], [])
        else:
            current.append(line)
    return {title: tuple(lines) for title, lines in found.items()}


@cache
def domains() -> tuple[Domain, ...]:
    """Return the domains of `text/reviews.txt` in their order."""

    def starting(lines: Sequence[str], sign: str) -> tuple[str, ...]:
        return tuple(line[len(sign) :].strip() for line in lines if line.startswith(sign))

    return tuple(
        Domain(
            id=title,
            name=starting(lines, "name:")[0],
            aspects=tuple(part.strip() for part in starting(lines, "aspects:")[0].split(",")),
            openers=starting(lines, "?"),
            praise=starting(lines, "+"),
            complaints=starting(lines, "-"),
            facts=starting(lines, "="),
        )
        for title, lines in sections("reviews.txt").items()
    )


def with_article(phrase: str) -> str:
    """Return `phrase` with a or an before it."""
    return (
        "an " if phrase[0].lower() in "aeiou" and not phrase.startswith("uni") else "a "
    ) + phrase


def capitalised(text: str) -> str:
    """Return `text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def bare(aspect: str) -> str:
    """Return an aspect without its marks."""
    return aspect.rstrip("*!")


def was(aspect: str) -> str:
    """Return the past form of to be that agrees with `aspect`."""
    return "were" if "*" in aspect else "was"


def aspect_opinion(rng: random.Random, aspect: str, sign: str) -> str:
    """Return a sentence with a good (+), bad (-) or plain (=) opinion of an aspect."""
    noun, verb = bare(aspect), was(aspect)
    kind = "people" if "!" in aspect else "adjective"
    adjective = rng.choice(sections("opinions.txt")[f"{kind}{sign}"])
    if sign == "=":
        return f"The {noun} {verb} {adjective}."
    liked = sign == "+"
    shapes = [
        f"The {noun} {verb} {adjective}.",
        f"The {noun} {verb} {adjective}.",
        f"I found the {noun} {adjective}.",
        f"Honestly, the {noun} {verb} {adjective}.",
        f"I really {'liked' if liked else 'disliked'} the {noun}.",
        f"I was {'very happy' if liked else 'not happy'} with the {noun}.",
        f"The {noun} could not have been {'better' if liked else 'worse'}.",
        f"The {noun} {verb} {'really good' if liked else 'not good at all'}.",
        f"{'Great' if liked else 'Terrible'} {noun}!",
        f"The {noun} {'made me smile' if liked else 'made me angry'}.",
        f"I {'loved' if liked else 'hated'} the {noun}.",
        f"What {'I liked most' if liked else 'bothered me most'} {verb} the {noun}.",
    ]
    return rng.choice(shapes)


def closing(rng: random.Random, domain: Domain, sign: str) -> str:
    """Return a closing sentence of the given sign."""
    line = rng.choice(sections("opinions.txt")[f"close{sign}"])
    return line.format(it="them" if domain.is_plural else "it")


def opinions(rng: random.Random, domain: Domain, sign: str, count: int) -> list[str]:
    """Return `count` different opinion sentences of one sign."""
    pool = list(domain.praise if sign == "+" else domain.complaints)
    rng.shuffle(pool)
    aspects = list(domain.aspects)
    rng.shuffle(aspects)
    found: dict[str, str] = {}
    for index in range(count):
        ready = rng.random() < 0.5
        sentence = (
            pool[index % len(pool)]
            if ready
            else aspect_opinion(rng, aspects[index % len(aspects)], sign)
        )
        found.setdefault(sentence[:9], sentence)
    return list(found.values())


def joined_by_turn(rng: random.Random, first: str, second: str) -> str:
    """Return two opposite sentences, joined or side by side."""
    turn = rng.choice(sections("opinions.txt")["turn"])
    second = capitalised(second.removeprefix("Honestly, "))
    tail = second if re.match(r"I\b", second) else second[:1].lower() + second[1:]
    if not STARTS_A_CLAUSE.match(second):
        return f"{first} Then again: {tail}"
    if turn in {"but", "yet"}:
        return f"{first.rstrip('.!')}, {turn} {tail}"
    if turn == "although":
        return f"{first.rstrip('.!')}, although {tail}"
    return f"{first} {capitalised(turn)} {tail}"


def plain(rng: random.Random, domain: Domain, count: int) -> list[str]:
    """Return `count` sentences without an opinion."""
    pool = [*domain.facts, *(aspect_opinion(rng, aspect, "=") for aspect in domain.aspects[:2])]
    rng.shuffle(pool)
    return pool[:count]


def reason_for(rng: random.Random, domain: Domain, sentiment: str, aspect: str) -> str:
    """Return the sentence by which the demo model explains its label."""
    name, noun = domain.name.rstrip("*"), bare(aspect)
    return rng.choice(
        {
            "positive": (
                f"The writer is pleased with {name} and would use {'them' if domain.is_plural else 'it'} again.",
                f"The text praises {name} and speaks well of the {noun}.",
                f"The writer likes {name} and has good things to say about the {noun}.",
            ),
            "negative": (
                f"The writer is unhappy with {name} and would not recommend it to others.",
                f"The text complains about {name} and finds fault with the {noun}.",
                f"The writer dislikes {name} and is annoyed about what happened.",
            ),
            "neutral": (
                f"The text only states facts about {name} and gives no opinion.",
                f"The writer describes {name} without praise or complaint.",
                f"The text gives information about {name} and takes no side.",
            ),
            "mixed": (
                f"The writer likes some things about {name} but not others.",
                f"The text has both praise and complaints about {name}.",
                f"The writer sees good and bad sides and is torn about the {noun}.",
            ),
        }[sentiment]
    )


def review(
    rng: random.Random, *, sentiment: str, length: int = 3, domain: Domain | None = None
) -> Review:
    """Return a review of about `length` sentences."""
    domain = domain or rng.choice(domains())
    aspect = rng.choice(domain.aspects)
    sentences = [rng.choice(domain.openers)] if rng.random() < 0.45 else []
    weak = sentiment in {"neutral", "mixed"}
    if sentiment == "neutral":
        sentences += plain(rng, domain, max(1, length - len(sentences)))
        if rng.random() < 0.25:
            sentences.append(closing(rng, domain, "="))
    elif sentiment == "mixed":
        first, second = rng.sample("+-", 2)
        good, bad = (opinions(rng, domain, sign, max(1, length // 3)) for sign in (first, second))
        sentences += [*good[:-1], joined_by_turn(rng, good[-1], bad[0]), *bad[1:]]
    else:
        sign = "+" if sentiment == "positive" else "-"
        count = max(1, length - len(sentences))
        body = opinions(rng, domain, sign, count)
        weak = len(body) == 1
        if rng.random() < 0.3:
            body[-1:] = (
                [*body[-1:], closing(rng, domain, sign)] if weak else [closing(rng, domain, sign)]
            )
        if rng.random() < 0.3:
            body.insert(rng.randrange(len(body) + 1), rng.choice(domain.facts))
        sentences += body
    return Review(
        text=" ".join(sentences),
        sentiment=sentiment,
        reason=reason_for(rng, domain, sentiment, aspect),
        weak=weak,
    )
