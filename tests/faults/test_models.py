"""Broken, foreign and hostile model folders: a clear ModelError each, with a next step."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fairgate
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS

MODELS = Path(fairgate.__file__).parent / "data" / "models"
REQUEST = GenerationRequest(prompt="Is it good?\nAnswer:")
NEXT_STEPS = re.compile(
    r"[Ee]xport it|fairgate export|[Ff]etch|Copy|Choose|Use|Install|install `fairgate\[|Keep|expected one of"
)


@pytest.fixture
def slm(tmp_path):
    shutil.copytree(MODELS / "demo-slm", tmp_path / "slm")
    return tmp_path / "slm"


@pytest.fixture
def encoder(tmp_path):
    shutil.copytree(MODELS / "minilm", tmp_path / "encoder")
    return tmp_path / "encoder"


def refusal_of_decoder(folder, **options):
    with pytest.raises(ModelError) as refused:
        list(OnnxDecoder(folder, decoding=Decoding(), **options).generate([REQUEST]))
    return checked(str(refused.value), folder)


def refusal_of_encoder(folder, **options):
    with pytest.raises(ModelError) as refused:
        OnnxEncoder(folder, **options, choice=NO_PROMPTS).embed(["x"])
    return checked(str(refused.value), folder)


def checked(message, folder):
    assert str(folder) in message or "device" in message
    assert NEXT_STEPS.search(message), message
    assert len(message) < 1500
    return message


@pytest.mark.parametrize("refusal", [refusal_of_decoder, refusal_of_encoder])
def test_a_folder_that_is_not_there_or_without_a_graph(refusal, tmp_path):
    assert "does not exist" in refusal(tmp_path / "nowhere")
    assert "no *.onnx file" in refusal(tmp_path)


def test_a_damaged_tokenizer_or_none(slm, encoder):
    for folder, refusal, damaged in (
        (slm, refusal_of_decoder, "tokenizer"),
        (encoder, refusal_of_encoder, "no readable tokenizer"),
    ):
        (folder / "tokenizer.json").write_text('{"model": 3}')
        assert damaged in refusal(folder)
        (folder / "tokenizer.json").unlink()
        assert "no tokenizer.json" in refusal(folder)


def test_a_tokenizer_that_brings_its_own_code_is_not_run(slm):
    (slm / "own.py").write_text("raise SystemExit('executed')\n")
    settings = json.loads((slm / "tokenizer_config.json").read_text())
    settings |= {
        "tokenizer_class": "OwnTokenizer",
        "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", "own.OwnTokenizer"]},
    }
    (slm / "tokenizer_config.json").write_text(json.dumps(settings))
    refused = ""
    try:
        answers = list(OnnxDecoder(slm, decoding=Decoding(max_new_tokens=1)).generate([REQUEST]))
    except ModelError as error:
        refused = str(error)
    # Refused, or read as the plain tokenizer.json it also is; its own code ran in neither case.
    assert "tokenizer" in refused or len(answers) == 1


@pytest.mark.parametrize("size", [0, 100, 100_000, -1])
def test_a_truncated_graph(slm, encoder, size):
    for folder, refusal in ((slm, refusal_of_decoder), (encoder, refusal_of_encoder)):
        (folder / "model.onnx").write_bytes((folder / "model.onnx").read_bytes()[:size])
        refusal(folder)


def test_a_file_that_is_no_decoder_graph(slm):
    (slm / "model.onnx").write_text("<html>Not found</html>")
    assert "cannot be loaded" in refusal_of_decoder(slm)
    shutil.copy(MODELS / "minilm" / "model.onnx", slm / "model.onnx")
    assert "no decoder with a key-value cache" in refusal_of_decoder(slm)
    write_graph(slm, {"input_ids": TensorProto.INT64}, {"logits": TensorProto.FLOAT})
    assert "past_key_values" in refusal_of_decoder(slm)


def with_data_apart(folder):
    model = onnx.load(str(folder / "model.onnx"))
    (folder / "model.onnx").unlink()
    data = folder / "model.onnx_data"
    onnx.save(model, str(folder / "model.onnx"), save_as_external_data=True, location=data.name)
    return data


@pytest.mark.walk(1)
@pytest.mark.parametrize("place", ["beside", "gone", "short"])
def test_external_data_that_is_missing_or_short(slm, place):
    data = with_data_apart(slm)
    if place == "beside":
        [(_, answer)] = OnnxDecoder(slm, decoding=Decoding(max_new_tokens=3)).generate([REQUEST])
        assert answer.tokens > 0
        return
    if place == "gone":
        data.unlink()
    else:
        data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    assert "external data" in refusal_of_decoder(slm)


def test_external_data_outside_the_folder_is_not_read(slm, tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 4_000_000)
    with_data_apart(slm)
    model = onnx.load(str(slm / "model.onnx"), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../secret.bin"
    (slm / "model.onnx").write_bytes(model.SerializeToString())
    refusal_of_decoder(slm)


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        ({"pixel_values": TensorProto.FLOAT}, {}, "does not know: pixel_values"),
        ({"past_key_values.0.key": TensorProto.BFLOAT16}, {}, "a type this engine does not"),
        ({}, {"present.0.key": None}, "lacks the cache outputs: present.0.key"),
    ],
)
def test_a_decoder_this_engine_cannot_feed(slm, inputs, outputs, said):
    inputs = {
        "input_ids": TensorProto.INT64, "past_key_values.0.key": TensorProto.FLOAT,
        "past_key_values.0.value": TensorProto.FLOAT, **inputs,
    }  # fmt: skip
    outputs = {
        "logits": TensorProto.FLOAT, "present.0.key": TensorProto.FLOAT,
        "present.0.value": TensorProto.FLOAT, **outputs,
    }  # fmt: skip
    write_graph(slm, inputs, {name: kind for name, kind in outputs.items() if kind})
    assert said in refusal_of_decoder(slm)


def write_graph(folder, inputs, outputs):
    """Write a graph with these inputs and outputs that does nothing sensible."""

    def describe(name, kind):
        shape = ["rows", 2, "past", 4] if "key" in name or "value" in name else ["rows", "tokens"]
        return helper.make_tensor_value_info(name, kind, shape)

    zero = numpy_helper.from_array(np.zeros((1, 2, 1, 4), dtype=np.float32), "zero")
    nodes = [helper.make_node("Identity", ["zero"], [name]) for name in outputs]
    graph = helper.make_graph(
        nodes,
        "odd",
        [describe(*one) for one in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [zero],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))


def test_an_unknown_device(slm, encoder):
    assert "'tpu' is not known" in refusal_of_decoder(slm, device="tpu")
    assert "'tpu' is not known" in refusal_of_encoder(encoder, device="tpu")


def test_a_cuda_device_that_is_not_there(slm, encoder):
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this machine has CUDA")
    assert "no CUDA support" in refusal_of_decoder(slm, device="cuda")
    assert "no CUDA support" in refusal_of_encoder(encoder, device="cuda")


@pytest.mark.whole
def test_weights_that_are_not_numbers(slm, encoder):
    for folder, refusal in ((slm, refusal_of_decoder), (encoder, refusal_of_encoder)):
        model = onnx.load(str(folder / "model.onnx"))
        for tensor in model.graph.initializer:
            array = numpy_helper.to_array(tensor)
            if array.dtype in (np.float32, np.float16) and array.ndim == 1 and array.size > 8:
                tensor.CopyFrom(numpy_helper.from_array(np.full_like(array, np.nan), tensor.name))
        onnx.save(model, str(folder / "model.onnx"))
        assert re.search("nan|not finite", refusal(folder))
