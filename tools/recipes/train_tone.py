"""Train the embedded classifiers `minilm-tone` and `minilm-sentiment`, and write their card.

    .venv/bin/python tools/recipes/train_tone.py

A multinomial logistic head over the embedded MiniLM's vectors: no network is trained, so it takes
seconds. The strength of the L2 penalty is chosen on the training blocks alone, leaving one block
out at a time; the held-out blocks decide nothing, they are measured for the card.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fairgate.domain.cases import SENTIMENTS, TONES  # noqa: E402
from fairgate.onnx.encoder import OnnxEncoder  # noqa: E402 (the checkout's own package)
from fairgate.onnx.encoder_settings import NO_PROMPTS  # noqa: E402

TEXT = ROOT / "tools/recipes/text/tones.txt"
TARGET = ROOT / "fairgate/data/classifiers"
EMBEDDER = "minilm"
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
HEADS = {"minilm-tone": TONES, "minilm-sentiment": SENTIMENTS}
DECIMALS = 3


@dataclass(frozen=True)
class Line:
    """One sentence with what it is."""

    text: str
    block: str
    held_out: bool
    tone: str
    sentiment: str

    def truth(self, labels):
        """Return the tone or the sentiment, whichever `labels` are."""
        return self.tone if labels == TONES else self.sentiment


def lines(path=TEXT):
    """Return all sentences of the file, in its order."""
    found, block, tone, sentiment = [], "", "", ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            block = line[3:]
        elif line.startswith("= "):
            _, tone, sentiment = line.split()
        elif line and not line.startswith("#"):
            held_out = block.endswith("(held out)")
            found.append(Line(line, block, held_out, tone, sentiment))
    return found


def fitted(vectors, truths, n_labels, penalty):
    """Return weights `[labels, dimensions]` and bias that minimise the penalised log loss."""
    rows, width = vectors.shape
    wanted = np.eye(n_labels)[truths]

    def loss(flat):
        weights = flat.reshape(width + 1, n_labels)
        scores = vectors @ weights[:-1] + weights[-1]
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        totals = shares.sum(axis=1, keepdims=True)
        value = -(wanted * (scores - np.log(totals))).sum()
        slope = shares / totals - wanted
        gradient = np.vstack([vectors.T @ slope + penalty * weights[:-1], slope.sum(axis=0)])
        return value + penalty / 2 * (weights[:-1] ** 2).sum(), gradient.ravel()

    start = np.zeros((width + 1) * n_labels)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    assert found.success, (rows, found.message)
    weights = found.x.reshape(width + 1, n_labels)
    return np.round(weights[:-1].T, DECIMALS) + 0.0, np.round(weights[-1], DECIMALS) + 0.0


def hits(vectors, truths, weights, bias):
    """Return which texts get their own label."""
    return (vectors @ weights.T + bias).argmax(axis=1) == truths


def chosen_penalty(vectors, truths, blocks, n_labels):
    """Return the penalty with the best accuracy on left-out blocks, and that accuracy."""
    scores = {}
    for penalty in PENALTIES:
        right = np.concatenate(
            [
                hits(
                    vectors[blocks == block],
                    truths[blocks == block],
                    *fitted(vectors[blocks != block], truths[blocks != block], n_labels, penalty),
                )
                for block in dict.fromkeys(blocks.tolist())
            ]
        )
        scores[penalty] = right.mean()
    best = max(scores, key=scores.get)
    return best, scores[best]


def main():
    """Train both heads and write them with their card."""
    found = lines()
    vectors = OnnxEncoder(ROOT / "fairgate/data/models" / EMBEDDER, choice=NO_PROMPTS).embed(
        [x.text for x in found]
    )
    vectors = vectors.astype(np.float64)
    held_out = np.array([line.held_out for line in found])
    blocks = np.array([line.block for line in found])
    figures = {}
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, labels in HEADS.items():
        truths = np.array([labels.index(line.truth(labels)) for line in found])
        given = vectors[~held_out], truths[~held_out]
        penalty, left_out = chosen_penalty(*given, blocks[~held_out], len(labels))
        weights, bias = fitted(*given, len(labels), penalty)
        figures[name] = (penalty, left_out, hits(vectors, truths, weights, bias)[held_out])
        head = {"embedder": EMBEDDER, "labels": labels, "bias": bias.tolist()}
        body = json.dumps(head)[:-1] + ', "weights": [\n'
        body += ",\n".join(json.dumps(row) for row in weights.tolist()) + "\n]}\n"
        (TARGET / f"{name}.json").write_text(body, encoding="utf-8")
    tested = [line for line in found if line.held_out]
    (TARGET / "MODEL_CARD.md").write_text(card(found, tested, figures), encoding="utf-8")


def card(found, tested, figures):
    """Return the card: what was trained on what, and the accuracy on held-out blocks."""
    tones = [line.tone for line in tested]
    n_blocks = len({line.block for line in found}) - len({line.block for line in tested})
    table = ["| figure | `minilm-tone` | `minilm-sentiment` |", "|---|---:|---:|"]
    per_head = [figures[name] for name in HEADS]

    def row(name, values):
        table.append(f"| {name} | {' | '.join(values)} |")

    row("accuracy, held-out blocks", [f"{right.mean():.3f}" for _, _, right in per_head])
    for block in dict.fromkeys(line.block for line in tested):
        mask = [line.block == block for line in tested]
        row(
            f"– {block.removesuffix(' (held out)')}",
            [f"{r[mask].mean():.3f}" for _, _, r in per_head],
        )
    for tone in TONES:
        mask = [each == tone for each in tones]
        row(f"– {tone} texts", [f"{right[mask].mean():.3f}" for _, _, right in per_head])
    row("accuracy, training blocks left out in turn", [f"{left:.3f}" for _, left, _ in per_head])
    row("L2 penalty", [f"{penalty:g}" for penalty, _, _ in per_head])
    counts = ", ".join(f"{n} {tone}" for tone, n in sorted(Counter(tones).items()))
    return CARD.format(
        sentences=len(found) - len(tested),
        blocks=n_blocks,
        tested=len(tested),
        counts=counts,
        table="\n".join(table),
    )


CARD = """# minilm-tone, minilm-sentiment

Two multinomial logistic heads over the vectors of the bundled `minilm`: the tone of an English text (happy, sad,
angry, fear, surprise, neutral) and its sentiment (positive, negative, neutral). They let FairGate's tone oracle be tried
and tested offline; for a gate that matters name a larger classifier in the policy (`tone: {{model: FOLDER, labels: …}}`).

**Licence** Apache-2.0 · **Made by** `tools/recipes/train_tone.py` · **Training text** `tools/recipes/text/tones.txt`:
{sentences} short sentences in {blocks} blocks, each block another kind of writing, written for this project; no text of
anybody else. A text of surprise says whether the surprise is good, bad or neither; sad, angry and fearful texts count as
negative.

## Measured

On {tested} sentences in blocks that training never sees ({counts}):

{table}

**Read these figures with care.** The sentences are short, their tone is plain, and one project wrote all of them, so they
are easier than what models say: long, mixed and polite answers were not measured, nor were other languages. Texts
longer than 256 tokens are cut. The classifier can itself be biased: words that name a group may pull its tone. FairGate's
control arm and the comparison of several texts of one source lessen that, they do not remove it.
"""

if __name__ == "__main__":
    main()
