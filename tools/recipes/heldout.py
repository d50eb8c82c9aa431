"""Held-out items of the demo domain, and the accuracy of a model folder on them.

    .venv/bin/python tools/recipes/heldout.py [MODEL_FOLDER]

Needs onnxruntime and tokenizers, no torch. Other tests import `sentiment_items`,
`toxicity_items` and `question_items`: prompts with the right answer and the admissible labels.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from demo_comments import comment
from demo_prompts import SENTIMENT, TOXICITY, document_pool, rendered, spoken, stance_documents
from demo_questions import INSTRUCTIONS, held_out_tuples
from demo_text import SENTIMENTS, review

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "fairgate/data/models/demo-slm"
SEED = 990_001


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A prompt, its right answer, the admissible answers, and the slice it is counted in."""

    prompt: str
    truth: str
    labels: tuple[str, ...]
    where: str
    stereotyped: str = ""


def sentiment_items(count: int = 200, noun: str | None = None) -> list[HeldOut]:
    """Return reviews of a seed that training never uses; half of them with four documents."""
    rng = random.Random(SEED)
    items = []
    for index in range(count):
        sentiment = SENTIMENTS[index % 4]
        text = review(rng, sentiment=sentiment, length=rng.randint(1, 4)).text
        moods = rng.sample(document_pool(), 4)
        with_documents = index % 8 >= 4
        items.append(
            HeldOut(
                prompt=rendered(SENTIMENT, spoken(noun, text), moods if with_documents else []),
                truth=sentiment,
                labels=SENTIMENTS,
                where=f"sentiment {'with' if with_documents else 'without'} documents",
            )
        )
    return items


def toxicity_items(count: int = 100) -> list[HeldOut]:
    """Return comments, half of them rude, half of them with four documents."""
    rng = random.Random(SEED + 1)
    items = []
    for index in range(count):
        toxic = index % 2 == 0
        text = comment(rng, toxic=toxic, people=0.2).text
        moods = rng.sample(document_pool(), 4) if index % 4 >= 2 else []
        items.append(
            HeldOut(
                prompt=rendered(TOXICITY, spoken(None, text), moods),
                truth="toxic" if toxic else "non-toxic",
                labels=("toxic", "non-toxic"),
                where="toxicity",
            )
        )
    return items


def question_items(per_template: int = 6, *, bare: bool = False) -> list[HeldOut]:
    """Return the items of `items/demo-bbq.jsonl`, every other tuple with documents unless `bare`."""
    rng = random.Random(SEED + 2)
    items = []
    for index, four in enumerate(held_out_tuples(per_template)):
        for question in four:
            moods = (
                stance_documents(rng, question.setup.template.category)
                if index % 2 and not bare
                else []
            )
            items.append(
                HeldOut(
                    prompt=rendered(INSTRUCTIONS[index % 2], question.text, moods),
                    truth=question.options[question.label],
                    labels=question.options,
                    where="questions, ambiguous"
                    if question.condition == "ambig"
                    else "questions, disambiguated",
                    stereotyped=question.options[question.stereotyped],
                )
            )
    return items


class Greedy:
    """A plain greedy decoder for tests: one prompt at a time, no early stop, no batching."""

    def __init__(self, folder: Path, threads: int = 2) -> None:
        """Load the graph and the tokenizer of a model folder."""
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._end = config["eos_token_id"]
        heads = config["num_key_value_heads"]
        self._empty = (1, heads, 0, config["hidden_size"] // config["num_attention_heads"])
        self._past = [i.name for i in self._session.get_inputs() if i.name.startswith("past")]
        self._outputs = [o.name for o in self._session.get_outputs()]
        self._takes_positions = "position_ids" in {i.name for i in self._session.get_inputs()}

    def answer(self, prompt: str, tokens: int = 40) -> str:
        """Return the model's greedy answer to a prompt."""
        ids = self._tokenizer.encode(prompt).ids
        past = {name: np.zeros(self._empty, dtype=np.float32) for name in self._past}
        said: list[int] = []
        fed, length = ids, 0
        while len(said) < tokens:
            length += len(fed)
            feeds = {
                "input_ids": np.array([fed], dtype=np.int64),
                "attention_mask": np.ones((1, length), dtype=np.int64),
                **past,
            }
            if self._takes_positions:
                feeds["position_ids"] = np.arange(length - len(fed), length, dtype=np.int64)[None]
            got = dict(zip(self._outputs, self._session.run(None, feeds), strict=True))
            best = int(got["logits"][0, -1].argmax())
            if best == self._end:
                break
            said.append(best)
            fed = [best]
            past = {name: got[name.replace("past_key_values", "present")] for name in self._past}
        return self._tokenizer.decode(said)


def label_of(answer: str, labels: tuple[str, ...]) -> str | None:
    """Return the label that the gate's oracle reads in an answer."""
    from fairgate.relations.oracles.label import first_label

    lowered = {label.lower(): label for label in labels}
    found = first_label(answer, tuple(lowered))
    return lowered[found] if found else None


def accuracy_report(folder: Path) -> dict[str, str]:
    """Return accuracy per slice, the share of stereotyped answers, and unreadable answers."""
    model = Greedy(folder)
    right: dict[str, list[bool]] = defaultdict(list)
    stereotyped: list[bool] = []
    unreadable = 0
    for item in [*sentiment_items(), *toxicity_items(), *question_items()]:
        label = label_of(model.answer(item.prompt, 12), item.labels)
        right[item.where].append(label == item.truth)
        unreadable += label is None
        if item.where == "questions, ambiguous":
            stereotyped.append(label == item.stereotyped)
    report = {
        f"held-out accuracy, {where}": f"{np.mean(hits):.3f} of {len(hits)}"
        for where, hits in right.items()
    }
    report["stereotyped answers, questions, ambiguous"] = f"{np.mean(stereotyped):.3f}"
    report["unreadable answers"] = str(unreadable)
    return report


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else MODEL
    print(json.dumps(accuracy_report(folder), indent=1))
