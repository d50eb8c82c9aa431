"""Memory that runs out while a graph is read or changed: named as that, and nothing else is."""

import sys

import pytest
from fakes.decoders import DEMO
from google.protobuf.message import DecodeError

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx import decoder_graph
from fairgate.onnx.decoder_graph import DecoderGraph, read_decoder_graph
from fairgate.onnx.fused_layers import runs_fused_attention
from fairgate.onnx.runtime_errors import is_of_memory, memory_errors

GRAPH = DEMO / "model.onnx"
SHORT = [
    DecodeError("Error parsing message with type 'onnx.AttributeProto': Arena alloc failed"),
    MemoryError(),
    OSError(12, "Cannot allocate memory"),
]
OTHER = [
    DecodeError("Error parsing message with type 'onnx.ModelProto'"),
    ImportError("libgomp.so.1: cannot allocate memory in static TLS block"),
    FileNotFoundError(2, "No such file", "/models/out of memory/model.onnx"),
    ValueError("x"),
]


def raising(error):
    def fail(*_given, **_options):
        raise error

    return fail


@pytest.mark.parametrize("error", SHORT, ids=repr)
@pytest.mark.parametrize("step", ["load_structure", "_facts", "cut_to_positions", "join_attention"])
def test_a_decoder_that_memory_does_not_hold_is_no_damaged_one(monkeypatch, error, step):
    monkeypatch.setattr(decoder_graph, step, raising(error))
    with pytest.raises(OutOfMemoryError, match="Memory ran out: use a machine"):
        read_decoder_graph(GRAPH, attends_to_all=True, joins=True)


def test_a_decoder_that_is_damaged_is_left_to_its_session(monkeypatch):
    monkeypatch.setattr(decoder_graph, "load_structure", raising(OTHER[0]))
    assert read_decoder_graph(GRAPH, attends_to_all=True) == DecoderGraph()


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_what_is_something_else_passes(error):
    assert not is_of_memory(error)
    with pytest.raises(type(error)) as raised, memory_errors("the graph"):
        raise error
    assert raised.value is error


def test_trials_without_onnx_runtime_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match=r"Install `fairgate\[cpu\]`"):
        runs_fused_attention.__wrapped__()
