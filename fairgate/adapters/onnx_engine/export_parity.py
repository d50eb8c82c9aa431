"""Compares an exported graph with the model it was made from, in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.adapters.onnx_engine.decoder_session import DecoderSession
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.precision import Precision
from fairgate.adapters.onnx_engine.prompts import PromptTokenizer
from fairgate.domain.errors import ModelError
from fairgate.engine.ports import Embedder

PROMPTS = (
    (
        "What is the sentiment of the text? Answer with one word.\n\n"
        '"The soup was cold and nobody said sorry."\nAnswer:'
    ),
    (
        "Answer the question with one of the three options.\n\nContext: A nurse and a mechanic met "
        "at the station.\nQuestion: Who was late?\nA: The nurse\nB: The mechanic\nC: Unknown\n"
        "Answer:"
    ),
    "Hello!",
)
TEXTS = (
    "The soup was cold and nobody said sorry.",
    "I would buy it again today; it works and it is quiet.",
    "Please stop writing on my talk page.",
    "What?",
    (
        "It arrived on Tuesday in a brown box, with a manual in four languages and one screw less "
        "than the drawing on its third page asked for, which took us the evening to find out."
    ),
)
_STEPS = 8
_LOGIT_TOLERANCE: dict[Precision, float] = {"fp32": 1e-3, "fp16": 5e-2}
"""Largest difference allowed, as a share of the largest logit; int8 and int4 are reported."""
_LEAST_COSINE: dict[Precision, float] = {
    "fp32": 0.99999,
    "fp16": 0.999,
    "int8": 0.999,
    "int4": 0.97,
}


def compare_decoder(model: str, folder: ModelFolder, precision: Precision) -> dict[str, Any]:
    """Return logit differences and equal greedy tokens over three prompts and eight steps.

    Both sides see the tokens that the original chooses. Raises ModelError where the difference
    is larger than the precision explains.
    """
    prompts = PromptTokenizer(folder).encode(PROMPTS)
    session = DecoderSession(folder, device="cpu")
    reference = _TorchDecoder(model)
    worst, largest, equal, steps = 0.0, 1.0, 0, 0
    for prompt in prompts:
        expected = reference.logits(prompt)
        first, cache = session.prefill([prompt, prompt], len(prompt))
        found = first[0, 0]
        for row, token in expected:
            worst = max(worst, float(np.abs(row - found.astype(np.float64)).max()))
            largest = max(largest, float(np.abs(row).max()))
            equal += int(found.argmax()) == token
            steps += 1
            found = session.step(cache, [token, token])[0]
    share = worst / largest
    tolerance = _LOGIT_TOLERANCE.get(precision)
    if not np.isfinite(worst) or (tolerance is not None and share > tolerance):
        raise ModelError(
            f"the exported {precision} graph of {model!r} differs from the original: largest logit "
            f"difference {worst:.4g} of {largest:.4g}, allowed {tolerance}. Export it in fp32, or "
            "report the architecture: its graph is not one this engine runs correctly."
        )
    return {
        "checked": True,
        "largest_logit_difference": float(f"{worst:.4g}"),
        "share_of_largest_logit": float(f"{share:.4g}"),
        "equal_greedy_tokens": equal,
        "compared_tokens": steps,
        "right_padding_exact": session.pads,
        "graph_cut": session.cut,
    }


def compare_embedder(model: str, embedder: Embedder, precision: Precision) -> dict[str, Any]:
    """Return the least cosine to sentence-transformers over five texts. Raises ModelError."""
    from sentence_transformers import SentenceTransformer

    original = SentenceTransformer(model, device="cpu", trust_remote_code=False)
    expected = np.asarray(original.encode(list(TEXTS), convert_to_numpy=True), dtype=np.float64)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    least = float((embedder.embed(TEXTS) * expected).sum(axis=1).min())
    if not least >= _LEAST_COSINE[precision]:
        raise ModelError(
            f"the exported {precision} encoder of {model!r} differs from sentence-transformers: "
            f"least cosine {least:.6f}, expected {_LEAST_COSINE[precision]}. Export it in fp32, or "
            "use the sentence-transformers embedding engine."
        )
    return {"checked": True, "least_cosine": round(least, 6), "texts": len(TEXTS)}


class _TorchDecoder:
    """The original model, asked greedily and without a cache: slow and plain."""

    def __init__(self, model: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self._torch = torch
        self._model = AutoModelForCausalLM.from_pretrained(
            model, trust_remote_code=False, dtype=torch.float32
        ).eval()

    def logits(self, prompt: Sequence[int]) -> list[tuple[npt.NDArray[np.float64], int]]:
        """Return for each step the logits and the token chosen from them."""
        tokens, rows = list(prompt), []
        with self._torch.inference_mode():
            for _ in range(_STEPS):
                out = self._model(self._torch.tensor([tokens]))
                row = out.logits[0, -1].double().numpy()
                tokens.append(int(row.argmax()))
                rows.append((row, tokens[-1]))
        return rows
