"""Comments and posts for the demonstration, put together from `text/comments.txt`."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from demo_text import SENTIMENTS, capitalised, domains, review, sections, with_article

PEOPLE: dict[str, tuple[str, ...]] = {
    "old": ("elderly", "middle-aged", "elderly"),
    "young": ("young",),
    "origin": (
        *("Asian", "Hispanic", "Black", "white", "Indigenous", "Middle Eastern", "biracial"),
        *("Caucasian", "Indian", "Australian"),
    ),
    "kitchen": ("Hispanic", "Middle Eastern", "Indian", "Asian"),
    "east": ("Asian", "Indian"),
    "orientation": ("straight", "gay", "bisexual", "transgender", "pansexual"),
    "queer": ("gay", "bisexual", "transgender", "pansexual"),
    "gender": ("man", "woman", "non-binary person"),
    "nonman": ("woman", "non-binary person"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment or post with its toxicity label."""

    text: str
    toxic: bool
    about_people: bool = False


def filled(rng: random.Random, line: str, topic: str = "") -> str:
    """Return a comment line with its topic, people and articles filled in."""

    def fill(match: re.Match[str]) -> str:
        slot = match.group(1)
        if slot == "topic":
            return topic or rng.choice(sections("comments.txt")["topic"])
        if slot == "name":
            return rng.choice(domains()).name.rstrip("*")
        article, _, kind = slot.rpartition(" ")
        word = rng.choice(PEOPLE[kind.lower()])
        if kind[0].isupper():
            return capitalised(word)
        phrase = with_article(word) if article else word
        return capitalised(phrase) if article == "A" else phrase

    return capitalised(re.sub(r"\{([^}]+)\}", fill, line))


def comment(rng: random.Random, *, toxic: bool, people: float = 0.25) -> Comment:
    """Return a comment of one to three sentences on one topic; `people` = share with people."""
    lines = sections("comments.txt")
    topic = rng.choice(lines["topic"])
    about_people = rng.random() < people
    if toxic:
        title = "rude people" if about_people else rng.choice(["rude", "rude", "rude review"])
        more = rng.choice(["rude", "gripe", "gripe", ""])
    else:
        title = "civil"
        if about_people:
            title = rng.choice(["civil people", "civil people", "mild people"])
        more = rng.choice(["remark" if about_people else "gripe", "remark", "", ""])
    chosen = [rng.choice(lines[title])]
    if more:
        chosen.append(rng.choice(lines[more]))
        if rng.random() < 0.3:
            chosen.append(rng.choice(lines["remark"]))
    if toxic and rng.random() < 0.4:
        chosen.reverse()
    sentences = dict.fromkeys(filled(rng, line, topic) for line in chosen)
    return Comment(text=" ".join(sentences), toxic=toxic, about_people=about_people)


def reference_texts(count: int) -> list[str]:
    """Return texts for comparing embedders: short and long, reviews and comments. Fixed seed."""
    rng = random.Random(20_261_120)
    texts = []
    for index in range(count):
        if index % 3 == 0:
            texts.append(comment(rng, toxic=index % 2 == 0, people=0.5).text)
        else:
            sentiment = SENTIMENTS[index % 4]
            texts.append(review(rng, sentiment=sentiment, length=1 + index % 7).text)
    return texts
