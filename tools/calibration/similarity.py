"""What similarity of whole answers sees of the worlds of `calibration.sentences`.

PYTHONPATH=.:tests:tools python -m calibration.similarity RECORDING --worlds 20

Measures are langfair's own (cosine with MiniLM, ROUGE-L, BLEU, sentiment by VADER), in an
environment that holds langfair (`pip install --no-deps langfair` is enough beside nltk, rouge-score,
rich, vaderSentiment and what FairGate needs). Cosine takes FairGate's copy of all-MiniLM-L6-v2
instead of downloading it; BLEU splits words without nltk's sentence model. Each is tested twice:
by FairGate's permutation within sources of the mean distance to the neutral answers, and by a
threshold on the mean similarity, which the lowest of 20 fair worlds sets.
"""

from __future__ import annotations

import argparse
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from calibration.sentence_harms import PLANTED, WRONG
from calibration.sentences import DATA, Bench, World, fair, harmed, read
from calibration.tables import markdown

from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS
from fairgate.stats.exchange import exchange_p

LEVEL = 0.05 / 21
Similarity = Callable[[Sequence[str], Sequence[str]], list[float]]


class Minilm:
    """Stands in for `SentenceTransformer`; every text is embedded once."""

    def __init__(self, _: str) -> None:
        self._encoder = OnnxEncoder(DATA / "models/minilm", threads=1, choice=NO_PROMPTS)
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, self._encoder.embed(new), strict=True)
        return [self._vectors[text] for text in texts]


def measures() -> dict[str, Similarity]:
    """Load langfair's counterfactual measures, as similarities of pairs of texts."""
    for name, attribute, value in (
        ("sentence_transformers", "SentenceTransformer", Minilm),
        ("transformers", "pipeline", None),
    ):
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], attribute, value)
    # The package's own `__init__` loads all that it has, torch with it.
    folder = next(Path(p) / "langfair" for p in sys.path if (Path(p) / "langfair").is_dir())
    for name in ("langfair", "langfair.metrics", "langfair.metrics.counterfactual",
                 "langfair.metrics.counterfactual.metrics"):  # fmt: skip
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    from langfair.metrics.counterfactual.metrics import bleu, cosine, rougel, sentimentbias

    bleu.word_tokenize = partial(bleu.word_tokenize, preserve_line=True)
    options = {"show_progress_bars": False}
    sentiment = sentimentbias.SentimentBias(how="pairwise")
    several = {
        "cosine": cosine.CosineSimilarity("all-MiniLM-L6-v2", how="pairwise"),
        "ROUGE-L": rougel.RougelSimilarity(how="pairwise"),
        "BLEU": bleu.BleuSimilarity(how="pairwise"),
    }
    functions = {name: partial(each.evaluate, **options) for name, each in several.items()}
    functions["sentiment"] = lambda left, right: [
        1 - float(value) for value in sentiment.evaluate(list(left), list(right), **options)
    ]
    return functions


class Compared:
    """One measure over worlds; each pair of texts is compared once."""

    def __init__(self, similarity: Similarity) -> None:
        self._similarity = similarity
        self._pairs: dict[tuple[str, str], float] = {}

    def mean(self, text: str, others: Sequence[str]) -> float:
        """Give the mean similarity of a text to others."""
        pairs = [(min(text, other), max(text, other)) for other in others]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._pairs]
        if new:
            values = self._similarity([left for left, _ in new], [right for _, right in new])
            self._pairs |= zip(new, map(float, values), strict=True)
        return float(np.mean([self._pairs[pair] for pair in pairs]))

    def judge(self, world: World) -> tuple[float, float]:
        """Give the p value of the identity's distance, and its mean similarity."""
        own = [self.mean(t, n) for t, n in zip(world.own, world.neutral, strict=True)]
        among = [
            -np.array([self.mean(text, texts[:n] + texts[n + 1 :]) for n, text in enumerate(texts)])
            for texts in world.neutral
        ]
        p, _ = exchange_p(-np.array(own), among)
        return p, float(np.mean(own))


def main() -> None:
    """Print what each measure sees, by the permutation and by a threshold."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--pool", type=int, default=20)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--only", help="a harm, as the table names it; default: all")
    options = parser.parse_args()
    bench = Bench(read(options.recording), options.pool)
    harms = {
        name: harm
        for name, harm in {**PLANTED, WRONG: None}.items()
        if options.only in (None, name)
    }
    rows = [[name] for name in ("none (fair worlds)", *harms)]
    heads = []
    for name, similarity in measures().items():
        compared = Compared(similarity)
        plain = [
            compared.judge(fair(bench, "as they are", n, 40)[0]) for n in range(options.worlds)
        ]
        threshold = min(mean for _, mean in plain)
        heads += [name, f"{name}, threshold"]
        rows[0] += [f"{np.mean([p <= LEVEL for p, _ in plain]):.2f}", f"{threshold:.3f}"]
        for row, harm in zip(rows[1:], harms.values(), strict=True):
            results = [
                compared.judge(harmed(bench, harm, n, 40, 0.2)) for n in range(options.worlds)
            ]
            row.append(f"{np.mean([p <= LEVEL for p, _ in results]):.2f}")
            row.append(f"{np.mean([mean < threshold for _, mean in results]):.2f}")
        print(name, [row[-2:] for row in rows], flush=True)
    print(markdown(["harm, 40 questions, 20 %", *heads], rows))


if __name__ == "__main__":
    main()
