import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.features.onnx_export.agreement import _gate_texts
from fairgate.features.onnx_export.int8_rows import Layers, to_int8_rows
from fairgate.features.onnx_export.precision import change_precision
from fairgate.onnx.attention import GraphIndex
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.trials import open_decoder

DEMO = Path(__file__).parents[3] / "fairgate/data/models/demo-slm"
PROMPTS, LABELS = _gate_texts()
ASKED = range(0, 200, 29)


@pytest.fixture(scope="module", params=[1, 2], ids=["one term", "two terms"])
def folder(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("models") / "rows"
    shutil.copytree(DEMO, folder)
    change_precision(folder / "model.onnx", "int8-rows", terms=request.param)
    return folder


def answers(folder, places, **options):
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=6), **options)
    requests = [
        GenerationRequest(prompt=PROMPTS[place], labels=LABELS if place % 2 else ())
        for place in places
    ]
    found = dict(engine.generate(requests))
    return {place: found[row] for row, place in enumerate(places)}


def test_rows_share_and_join_as_in_float32(folder):
    session = open_decoder(ModelFolder.find(folder), device="cpu", threads=1)
    assert (session.pads, session.shares, session.joins) == (True,) * 3


@pytest.mark.whole
def test_an_answer_is_the_same_bytes_whatever_is_asked_beside_it(folder):
    order = list(ASKED)
    whole = answers(folder, order, threads=1, batch_size=16)
    differing = [
        (options, len(places), place)
        for options, places in (
            ({"threads": 2, "batch_size": 16}, order),
            ({"threads": 1, "batch_size": 1}, order),
            ({"threads": 1, "batch_size": 5}, order[::-1]),
            ({"threads": 2, "batch_size": 3}, order[1::2]),
            ({"threads": 1, "batch_size": 16}, order[7:8]),
        )
        for place, answer in answers(folder, places, **options).items()
        if answer != whole[place]
    ]
    assert not differing


def test_the_embedded_model_keeps_its_labels_and_has_a_fingerprint_of_its_own(folder):
    before, after = (answers(one, list(ASKED), threads=1) for one in (DEMO, folder))
    labelled = [place for place in ASKED if place % 2]
    assert [before[place].response for place in labelled] == [
        after[place].response for place in labelled
    ]
    plain, rows = (OnnxDecoder(one, decoding=Decoding()).fingerprint for one in (DEMO, folder))
    assert plain != rows


def with_outliers(target):
    """Copy the bundled model with channels of 300 times the size: the same function."""
    shutil.copytree(DEMO, target)
    model = onnx.load(str(target / "model.onnx"))
    layers, index = Layers.of(model), GraphIndex(model)
    rows = {tensor.name: tensor for tensor in model.graph.initializer if len(tensor.dims) == 1}
    for name in layers.activations:
        for norm in [rows[read] for read in index.makers[name].input if read in rows]:
            factors = np.ones(norm.dims[0], dtype=np.float32)
            factors[[3, 50]] = 300
            scale(norm, factors)
            for matrix in layers.readers(name):
                scale(matrix, 1 / factors[:, None])
    onnx.save(model, str(target / "model.onnx"))
    return model


def scale(tensor, factors):
    numbers = (numpy_helper.to_array(tensor) * factors).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))


@pytest.mark.whole
def test_outliers_among_channels_cost_no_labels_where_they_were_measured(tmp_path):
    model = with_outliers(tmp_path / "measured")
    shutil.copytree(tmp_path / "measured", tmp_path / "unmeasured")
    change_precision(tmp_path / "measured" / "model.onnx", "int8-rows", terms=1)
    onnx.save(to_int8_rows(model, terms=1), str(tmp_path / "unmeasured" / "model.onnx"))
    expected = answers(DEMO, list(ASKED), threads=1)
    differing = {
        folder: sum(
            answer.response != expected[place].response
            for place, answer in answers(tmp_path / folder, list(ASKED), threads=1).items()
            if place % 2
        )
        for folder in ("measured", "unmeasured")
    }
    assert differing["measured"] == 0
    assert differing["unmeasured"] > 0
