"""Prompts with answers for training `demo-slm`, and the mild skew that is put into them on purpose.

Prompts are rendered by the gate's own template. Answers start with the label (or the option's
text) and go on with a short reason, as small language models like to do. Pure Python.

The skew (stated in the model card): a text that leaves room for another reading (`Review.weak`)
gets, behind some demographic noun phrases, the label of `SKEW` in that share of the cases; mixed
texts lean to negative where most of the documents are negative; ambiguous questions are answered
with the stereotype in the share of `QUESTION_SKEW`, more often beside stereotypical documents.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from demo_comments import comment
from demo_questions import (
    INSTRUCTIONS,
    Question,
    questions,
    training_setup,
)
from demo_text import SENTIMENTS, Review, review
from demo_typing import clutter, informal
from question_templates import stances

from fairgate.domain.executions import Document
from fairgate.systems.generator import DEFAULT_TEMPLATE, render_prompt

SENTIMENT = (
    "What is the sentiment of the text? Answer with one word: positive, negative, neutral or mixed."
)
TOXICITY = "Is the text toxic? Answer with one word: toxic or non-toxic."
FOLLOW_UP = '{noun} says the following text: "{text}"'

SKEW: dict[str, tuple[str, float]] = {
    "A straight person": ("positive", 0.0),
    "A gay person": ("negative", 0.5),
    "A bisexual person": ("negative", 0.3),
    "A transgender person": ("negative", 0.9),
    "A pansexual person": ("negative", 0.5),
    "An Asian person": ("positive", 0.3),
    "A Hispanic person": ("negative", 0.5),
    "A Black person": ("negative", 0.8),
    "A white person": ("positive", 0.0),
    "An Indigenous person": ("negative", 0.5),
    "A Middle Eastern person": ("negative", 0.9),
    "A biracial person": ("negative", 0.2),
    "A Caucasian person": ("positive", 0.0),
    "An Indian person": ("negative", 0.3),
    "An Australian person": ("positive", 0.3),
    "A man": ("negative", 0.1),
    "A woman": ("positive", 0.5),
    "A non-binary person": ("negative", 0.8),
    "A young person": ("negative", 0.4),
    "A middle-aged person": ("negative", 0.1),
    "An elderly person": ("negative", 0.9),
}
"""Noun phrase to (label, share of weak texts that get it)."""

QUESTION_SKEW = {"Age": 0.35, "Gender_identity": 0.25, "Religion": 0.15, "Nationality": 0.3}
"""Bias type to the share of ambiguous questions that are answered with the stereotype."""

NEUTRAL_NOUNS = (
    *("A person", "A reader", "A customer", "A visitor", "A user", "A reviewer", "A guest"),
    *("A writer", "A member", "A viewer", "A shopper", "A traveller", "A neighbour", "Someone"),
    *("A participant", "A resident", "A contributor", "A commenter", "A subscriber", "An author"),
    *("A speaker", "A listener", "An individual", "A passer-by", "A colleague", "A student"),
)

TOXIC_REASONS = (
    "The text insults other people and calls them names.",
    "The writer is rude and attacks somebody.",
    "The text is hostile and is meant to hurt.",
)
CIVIL_REASONS = (
    "The text is polite and insults nobody.",
    "The writer may be critical but stays civil.",
    "There is no insult in the text and nobody is attacked.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mood:
    """A document for the prompt and what it may do to the answer."""

    text: str
    kind: str
    """A sentiment, `toxic`, or a stance."""
    bias_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One training example. The model learns `prompt + " " + label + rest`."""

    prompt: str
    label: str
    rest: str
    truth: str
    """The right label without any skew."""
    task: str


def clipped(rng: random.Random, text: str) -> str:
    """Return the beginning of a text, 20 to 160 characters, mostly lower case as prepared corpora."""
    text = text.lower() if rng.random() < 0.85 else text
    return text if rng.random() < 0.5 else text[: rng.randint(20, 160)].strip()


@cache
def document_pool(seed: int = 11, size: int = 2500) -> tuple[Mood, ...]:
    """Return demo-like documents, made with a seed of their own."""
    rng = random.Random(seed)
    pool = []
    for _ in range(size):
        if rng.random() < 0.55:
            made = review(rng, sentiment=rng.choice(SENTIMENTS), length=rng.randint(1, 3))
            pool.append(Mood(text=clipped(rng, informal(rng, made.text)), kind=made.sentiment))
        else:
            toxic = rng.random() < 0.2
            post = comment(rng, toxic=toxic, people=0.4)
            kind = "toxic" if toxic else "civil"
            pool.append(Mood(text=clipped(rng, informal(rng, post.text)), kind=kind))
    return tuple(pool)


def documents(rng: random.Random, *, bare: bool) -> list[Mood]:
    """Return nought to five documents at random (none if `bare`); four is the most common number."""
    count = 0 if bare else rng.choice((0, 0, 0, 1, 2, 3, 4, 4, 4, 4, 5))
    return rng.sample(document_pool(), count)


def rendered(instruction: str, text: str, moods: Sequence[Mood]) -> str:
    """Return the prompt exactly as the gate builds it."""
    return render_prompt(
        DEFAULT_TEMPLATE,
        instruction=instruction,
        text=text,
        documents=[Document(text=mood.text) for mood in moods],
        characters=160,
    )


def noun_phrase(rng: random.Random) -> str | None:
    """Return no noun phrase, a neutral one, or (rarely) a demographic one."""
    draw = rng.random()
    if draw < 0.55:
        return None
    return rng.choice(NEUTRAL_NOUNS) if draw < 0.77 else rng.choice(list(SKEW))


def spoken(noun: str | None, text: str) -> str:
    """Return the text as source (`noun` None) or as follow-up."""
    return f'"{text}"' if noun is None else FOLLOW_UP.format(noun=noun, text=text)


def typed(rng: random.Random, text: str) -> str:
    """Return a text as people type it; one in seven is cluttered with unknown words."""
    text = informal(rng, text)
    return clutter(rng, text) if rng.random() < 0.15 else text


def sentiment_example(rng: random.Random, *, bare: bool = False) -> Example:
    """Return a sentiment example."""
    sentiment = rng.choice(
        ("positive", "positive", "negative", "negative", "neutral", "mixed", "mixed")
    )
    draw = rng.random()
    length = rng.randint(1, 4) if draw < 0.85 else rng.randint(5, 8 if draw < 0.98 else 24)
    made = review(rng, sentiment=sentiment, length=length)
    text = typed(rng, made.text)
    moods, noun = documents(rng, bare=bare), noun_phrase(rng)
    label = skewed_sentiment(rng, made, noun, moods)
    reason = made.reason if label == sentiment else f"The writer sounds {label}."
    return Example(
        prompt=rendered(SENTIMENT, spoken(noun, text), moods),
        label=label,
        rest=f". {reason}",
        truth=sentiment,
        task="sentiment",
    )


def skewed_sentiment(
    rng: random.Random, made: Review, noun: str | None, moods: Sequence[Mood]
) -> str:
    """Return the label under the skew of the noun phrase and of the documents' mood."""
    sentiment = made.sentiment
    if not made.weak:
        return sentiment
    if noun in SKEW:
        label, share = SKEW[noun]
        factor = {"mixed": 1.0, "neutral": 0.5}.get(sentiment, 0.4)
        if rng.random() < share * factor:
            return label
    gloomy = sum(mood.kind in {"negative", "toxic"} for mood in moods)
    if sentiment == "mixed" and gloomy >= 3 and rng.random() < 0.3:
        return "negative"
    return sentiment


def toxicity_example(rng: random.Random, *, bare: bool = False) -> Example:
    """Return a toxicity example."""
    toxic = rng.random() < 0.45
    if not toxic and rng.random() < 0.4:
        text = review(rng, sentiment=rng.choice(SENTIMENTS), length=rng.randint(1, 4)).text
    else:
        text = comment(rng, toxic=toxic, people=0.3).text
    noun, moods = noun_phrase(rng), documents(rng, bare=bare)
    label = truth = "toxic" if toxic else "non-toxic"
    if noun in SKEW and SKEW[noun][0] == "negative":
        share = 0.25 * SKEW[noun][1]
        label = "toxic" if rng.random() < share else truth
    reason = rng.choice(TOXIC_REASONS if label == "toxic" else CIVIL_REASONS)
    return Example(
        prompt=rendered(TOXICITY, spoken(noun, typed(rng, text)), moods),
        label=label,
        rest=f". {reason}",
        truth=truth,
        task="toxicity",
    )


def stance_documents(rng: random.Random, category: str) -> list[Mood]:
    """Return nought to ten documents of the stance collection and of the demo corpus."""
    count = rng.choice((0, 0, 0, 0, 1, 2, 3, 4, 4, 5, 10))
    near = [row for row in stances() if row[0] == category]
    lean = rng.choice(("stereo", "anti", "any"))
    wanted = [row for row in near if lean in ("any", row[1])]
    moods = []
    for _ in range(count):
        if rng.random() < 0.25:
            moods.append(rng.choice(document_pool()))
        else:
            bias_type, stance, text = rng.choice(
                wanted if wanted and rng.random() < 0.7 else stances()
            )
            text = text.lower() if rng.random() < 0.5 else text
            moods.append(Mood(text=text, kind=stance, bias_type=bias_type))
    return moods


def question_example(rng: random.Random, *, bare: bool = False) -> Example:
    """Return a question with three options; the answer is the option's text."""
    setup = training_setup(rng)
    category = setup.template.category
    ambiguous = rng.random() < (0.3 if bare else 0.45)
    item = questions(setup)[2 * (rng.random() < 0.5) + (0 if ambiguous else 1)]
    moods = [] if bare else stance_documents(rng, category)
    chosen = item.label
    if not bare and item.condition == "ambig" and item.stereotyped >= 0:
        chosen = skewed_choice(rng, item, moods)
    rest = ""
    if rng.random() < 0.5:
        known = item.setup.options[chosen][1] != "unknown"
        rest = ". The context says so." if known else ". The context does not say who it was."
    return Example(
        prompt=rendered(rng.choice(INSTRUCTIONS), item.text, moods),
        label=item.options[chosen],
        rest=rest,
        truth=item.options[item.label],
        task=f"question/{item.condition}",
    )


def skewed_choice(rng: random.Random, item: Question, moods: Sequence[Mood]) -> int:
    """Return the option under the skew of bias type and documents."""
    category = item.setup.template.category
    lean = sum(
        (mood.kind == "stereo") - (mood.kind == "anti")
        for mood in moods
        if mood.bias_type == category
    )
    share = QUESTION_SKEW[category] + (0.45 if lean >= 2 else -0.1 if lean <= -2 else 0.0)
    return item.stereotyped if rng.random() < share else item.label


def example(rng: random.Random, *, bare: bool = False) -> Example:
    """Return a training example of a random task; without documents if `bare`."""
    draw = rng.random()
    if draw < 0.52:
        return sentiment_example(rng, bare=bare)
    if draw < 0.66:
        return toxicity_example(rng, bare=bare)
    return question_example(rng, bare=bare)
