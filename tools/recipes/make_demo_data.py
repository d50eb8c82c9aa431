"""Write the embedded demonstration data: corpus, sources, question items and stance collection.

    python tools/recipes/make_demo_data.py

Seeded; the same bytes every time. Needs nothing but Python.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path

from demo_comments import comment
from demo_questions import Question, held_out_tuples
from demo_text import SENTIMENTS, review, sections
from demo_typing import informal
from question_templates import stances

DATA = Path(__file__).resolve().parents[2] / "fairgate/data"
DOCUMENTS = 900
TOXIC = 76
NOISE = 18
TUPLES_PER_TEMPLATE = 6


def untidy(rng: random.Random, text: str) -> str:
    """Return `text` with what preparation has to remove: mentions, links, odd white space."""
    draw = rng.random()
    if draw < 0.06:
        return f"@{rng.choice(['anna92', 'the_baker', 'old_oak', 'mods'])} {text}"
    if draw < 0.11:
        return f"{text} https://example.org/{rng.choice(['post', 'photo', 'map'])}/{rng.randrange(900)}"
    if draw < 0.15:
        return text.replace(". ", ".   ", 1) + "  "
    if draw < 0.17:
        return text.replace(". ", ".\n", 1)
    return text


def odd_lines(rng: random.Random) -> list[str]:
    """Return lines that preparation drops: far too short, far too long, or only a link."""
    short = ["ok", "+1", "lol", "same", "??", "thx!", "@mods", "https://example.org/x", "ty", "hm."]
    long = [
        " ".join(review(rng, sentiment=rng.choice(SENTIMENTS), length=4).text for _ in range(10))
        for _ in range(NOISE - len(short))
    ]
    return [*short, *long]


def documents() -> list[dict[str, str]]:
    """Return the corpus in a shuffled, fixed order."""
    rng = random.Random(2026)
    found: dict[str, bool] = {}
    while sum(found.values()) < TOXIC:
        found[comment(rng, toxic=True, people=0.4).text] = True
    while len(found) < DOCUMENTS - NOISE:
        if rng.random() < 0.5:
            sentiment = rng.choice(
                ("positive", "positive", "negative", "negative", "neutral", "mixed")
            )
            found.setdefault(review(rng, sentiment=sentiment, length=rng.randint(1, 5)).text, False)
        else:
            found.setdefault(comment(rng, toxic=False, people=0.45).text, False)
    rows = [(untidy(rng, informal(rng, text)), toxic) for text, toxic in found.items()]
    rows += [(text, False) for text in odd_lines(rng)]
    rng.shuffle(rows)
    return [
        {"id": f"doc-{index:04d}", "text": text, "label": "toxic" if toxic else "non-toxic"}
        for index, (text, toxic) in enumerate(rows, start=1)
    ]


def review_sources() -> list[dict[str, str]]:
    """Return 100 reviews: 50 written one by one, 50 from the grammar with a seed of their own."""
    rng = random.Random(100)
    texts = list(sections("hand_written.txt")["reviews"])
    while len(texts) < 100:
        sentiment = SENTIMENTS[len(texts) % 4]
        text = review(rng, sentiment=sentiment, length=rng.randint(2, 4)).text
        if len(text) > 40 and text not in texts:
            texts.append(text)
    return [{"id": f"rev-{index:03d}", "text": text} for index, text in enumerate(texts, start=1)]


def comment_sources() -> list[dict[str, str]]:
    """Return 60 comments, all written one by one; about a third are rude."""
    texts = sections("hand_written.txt")["comments"]
    return [{"id": f"com-{index:03d}", "text": text} for index, text in enumerate(texts, start=1)]


def bbq_rows() -> list[dict[str, object]]:
    """Return the question items in the published BBQ format, whole tuples in their order."""
    rows: list[dict[str, object]] = []
    numbers: dict[str, int] = {}
    for tuple_of_four in held_out_tuples(TUPLES_PER_TEMPLATE):
        for item in tuple_of_four:
            category = item.setup.template.category
            number = numbers.get(category, 0)
            numbers[category] = number + 1
            rows.append(bbq_row(item, number))
    return rows


def bbq_row(item: Question, number: int) -> dict[str, object]:
    """Return one item as a JSON object."""
    template = item.setup.template
    answers = {
        f"ans{index}": [text.removeprefix("The "), group]
        for index, (text, group) in enumerate(item.setup.options)
    }
    return {
        "example_id": number,
        "question_index": str(template.index),
        "question_polarity": item.polarity,
        "context_condition": item.condition,
        "category": template.category,
        "answer_info": answers,
        "additional_metadata": {
            "subcategory": "None",
            "stereotyped_groups": [template.stereo],
            "version": "demo",
            "source": "written for FairGate",
        },
        "context": item.context,
        "question": item.question,
        **{f"ans{index}": text for index, text in enumerate(item.options)},
        "label": item.label,
    }


def stance_rows() -> list[dict[str, str]]:
    """Return the stance collection; the two sides of a pair share their `pair_id`."""
    rows = []
    for index, (bias_type, stance, text) in enumerate(stances()):
        pair = "" if stance == "neutral" else f"pair-{index // 2 + 1:02d}"
        rows.append(
            {
                "id": f"stance-{index + 1:03d}",
                "pair_id": pair,
                "text": text,
                "stance": stance,
                "bias_type": bias_type,
            }
        )
    return rows


def write_jsonl(name: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as JSON lines under fairgate/data."""
    path = DATA / name
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(body, encoding="utf-8", newline="\n")


def main() -> None:
    """Write every file and print how many rows each one has."""
    path = DATA / "corpora/demo/documents.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, ["id", "text", "label"], lineterminator="\n")
    writer.writeheader()
    rows = documents()
    writer.writerows(rows)
    path.write_text(buffer.getvalue(), encoding="utf-8", newline="\n")
    counts = {"documents": len(rows), "toxic": sum(row["label"] == "toxic" for row in rows)}
    for name, content in (
        ("sources/demo-reviews.jsonl", review_sources()),
        ("sources/demo-comments.jsonl", comment_sources()),
        ("items/demo-bbq.jsonl", bbq_rows()),
        ("collections/demo-stances.jsonl", stance_rows()),
    ):
        write_jsonl(name, content)
        counts[name] = len(content)
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
