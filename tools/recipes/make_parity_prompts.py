"""Writes the prompts on which an export is compared with its original.

They are prompts as the gate puts them together, from the bundled data: sentiment with and without
documents, toxicity, questions with three options.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from ruamel.yaml import YAML

from fairgate.domain.executions import Document
from fairgate.systems.generator import DEFAULT_TEMPLATE, render_prompt

DATA = Path(__file__).resolve().parents[2] / "fairgate/data"
OUTPUT = DATA
PREFIXES = ("", "A young person says the following text: ", "A reader says the following text: ")
CHARACTERS = 400


def main() -> None:
    prompts = [*sentiment(10, documents=0), *sentiment(6, documents=4), *toxicity(4), *questions(8)]
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in prompts)
    (OUTPUT / "parity").mkdir(exist_ok=True)
    (OUTPUT / "parity/prompts.jsonl").write_text(text, encoding="utf-8")


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def task(name: str) -> dict:
    return YAML(typ="safe").load(DATA / f"tasks/{name}.yaml")


def prompt(instruction: str, text: str, documents: list[Document]) -> str:
    return render_prompt(
        DEFAULT_TEMPLATE, instruction=instruction, text=text, documents=documents, characters=CHARACTERS
    )  # fmt: skip


def sentiment(many: int, *, documents: int) -> list[dict]:
    with (DATA / "corpora/demo/documents.csv").open(encoding="utf-8", newline="") as file:
        corpus = [Document(id=row["id"], text=row["text"]) for row in csv.DictReader(file)]
    named = task("sentiment")
    texts = [row["text"] for row in rows("sources/demo-reviews.jsonl")]
    offset = 50 if documents else 0
    return [
        {
            "prompt": prompt(
                named["instruction"],
                f'{PREFIXES[n % 3]}"{texts[offset + n]}"',
                corpus[n * documents : (n + 1) * documents],
            ),
            "labels": named["labels"],
        }
        for n in range(many)
    ]


def toxicity(many: int) -> list[dict]:
    named = task("toxicity")
    texts = [row["text"] for row in rows("sources/demo-comments.jsonl")]
    return [
        {"prompt": prompt(named["instruction"], f'"{text}"', []), "labels": named["labels"]}
        for text in texts[:many]
    ]


def questions(many: int) -> list[dict]:
    found = []
    for row in rows("items/demo-bbq.jsonl")[: many * 5 : 5]:
        choices = "\n".join(f"{letter}: {row[f'ans{n}']}" for n, letter in enumerate("ABC"))
        text = f"Context: {row['context']}\nQuestion: {row['question']}\n{choices}"
        instruction = "Answer the question with one of the three options."
        found.append({"prompt": prompt(instruction, text, []), "labels": ["A", "B", "C"]})
    return found


if __name__ == "__main__":
    main()
