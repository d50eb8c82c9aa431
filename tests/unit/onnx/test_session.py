"""Sessions: no silent change of device, and advice that fits what ONNX Runtime said."""

import ctypes
import shutil
import types
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from fakes.decoders import DEMO, MODELS
from fakes.graphs import external_tensor, graph_of, model_of
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx import decoder_graph, session
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_graph import read_decoder_graph
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS
from fairgate.onnx.session import (
    is_of_memory,
    mapped_errors,
    memory_errors,
    open_session,
    refuse_batch_scaling,
)

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def saved(tmp_path, model):
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


class Placed:
    """A session of a CUDA build whose operators run where the test says."""

    def __init__(self, placed, **methods):
        self._placed = placed
        self.fallback = True
        self.__dict__.update(methods)

    def disable_fallback(self):
        self.fallback = False

    def get_providers(self):
        return [CUDA, CPU]

    def get_provider_graph_assignment_info(self):
        for place, ops in self._placed.items():
            nodes = [types.SimpleNamespace(op_type=op) for op in ops]
            yield types.SimpleNamespace(ep_name=place, get_nodes=lambda nodes=nodes: nodes)


@pytest.fixture
def on_cuda(monkeypatch, tmp_path):
    given = {}

    def opened(placed):
        session = placed if isinstance(placed, Placed) else Placed(placed)

        def start(_graph, options, providers, **rest):
            given.update(options=options, providers=providers, rest=rest)
            return session

        monkeypatch.setattr(onnxruntime, "InferenceSession", start)
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
        loud = lambda: print("Failed to load libcublasLt.so.13")  # noqa: E731
        monkeypatch.setattr(onnxruntime, "preload_dlls", loud, raising=False)
        return open_session(saved(tmp_path, model_of(graph_of())), device="cuda")

    opened.given = given
    return opened


def test_a_graph_on_the_gpu_may_handle_shapes_on_the_cpu(on_cuda):
    session = on_cuda({CUDA: ["MatMul"] * 30, CPU: ["Shape", "Gather", "Concat", "MatMul"]})
    assert session.fallback is False
    assert on_cuda.given["rest"] == {"enable_fallback": 0}


@pytest.mark.parametrize(
    ("placed", "said"),
    [
        ({CUDA: ["Cast"], CPU: ["MatMul"] * 3}, "MatMul"),
        ({CUDA: ["MatMul"] * 9, CPU: ["Softmax"]}, "Softmax"),
        ({CUDA: ["Add"], CPU: ["GroupQueryAttention", "MatMulNBits"]}, "GroupQueryAttention, MatMulNBits"),
    ],
)  # fmt: skip
def test_a_graph_that_computes_on_the_cpu_is_refused_as_a_gpu_model(on_cuda, placed, said):
    with pytest.raises(ModelError, match="on the CPU") as refused:
        on_cuda(placed)
    assert f"({said})" in str(refused.value)


def test_a_gpu_that_does_not_start_is_an_error_with_the_library_that_is_missing(
    on_cuda, monkeypatch, capfd
):
    # As onnxruntime-gpu 1.31 behaves without a driver: it prints, and goes on on the CPU.
    def fails(_path):
        raise OSError("libcuda.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(ctypes, "CDLL", fails)
    with pytest.raises(
        ModelError, match=r"runs all of .* on the CPU: libcuda\.so\.1: .*driver 580"
    ):
        on_cuda({CPU: ["Shape", "Cast"]})
    monkeypatch.setattr(ctypes, "CDLL", lambda _path: None)
    with pytest.raises(ModelError, match=r"its libraries are there.*`nvidia-smi` shows yours"):
        on_cuda({CPU: ["Shape", "Cast"]})
    assert capfd.readouterr() == ("", "")


def test_cuda_is_given_only_the_memory_that_is_asked_for(on_cuda):
    on_cuda({CUDA: ["MatMul"]})
    [(name, options), other] = on_cuda.given["providers"]
    assert (name, other) == (CUDA, CPU)
    assert options == {
        "use_tf32": "0",
        "arena_extend_strategy": "kSameAsRequested",
        "sdpa_kernel": "19",
    }


def test_a_runtime_that_cannot_tell_where_operators_run_is_refused(on_cuda):

    old = Placed({})
    old.__class__ = type("Old", (Placed,), {"get_provider_graph_assignment_info": None})
    with pytest.raises(ModelError, match=r"expected version 1\.24 or later"):
        on_cuda(old)


def computing(kind, op="MatMul", domain=""):
    weights = helper.make_tensor("w", kind, [4, 4], [1.0] * 16)
    node = helper.make_node(op, ["x", "w"], ["y"], domain=domain)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, ["n", 4])],
        [helper.make_tensor_value_info("y", kind, None)], [weights],
    )  # fmt: skip
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8
    )  # fmt: skip


def refusal(tmp_path, model):
    with pytest.raises(ModelError) as refused:
        open_session(saved(tmp_path, model), device="cpu")
    return str(refused.value)


def changed(model, **values):
    for name, value in values.items():
        setattr(model, name, value)
    return model


@pytest.mark.parametrize("op", ["MatMul", "Nope"])
def test_a_bfloat16_or_unknown_operator_is_not_called_truncated(tmp_path, op):
    kind = TensorProto.BFLOAT16 if op == "MatMul" else TensorProto.FLOAT
    for domain in ("", "com.microsoft") if op == "Nope" else ("",):
        said = refusal(tmp_path, computing(kind, op, domain))
        assert "cannot compute with an operator or a number format" in said
        assert "fairgate export" in said


def test_a_graph_of_the_future_asks_for_a_newer_runtime(tmp_path):
    assert "upgrade onnxruntime" in refusal(tmp_path, changed(model_of(graph_of()), ir_version=99))
    model = model_of(graph_of())
    model.opset_import[0].version = 99
    assert "upgrade onnxruntime" in refusal(tmp_path, model)


def test_missing_weights_and_a_cut_off_file_are_told_apart(tmp_path):
    assert "external data" in refusal(tmp_path, model_of(graph_of([helper.make_node("Add", ["x", "at w.bin"], ["z"])], [external_tensor("w.bin")])))  # fmt: skip
    (tmp_path / "model.onnx").write_bytes(computing(TensorProto.FLOAT).SerializeToString()[:-20])
    with pytest.raises(ModelError, match="only a part of one"):
        open_session(tmp_path / "model.onnx", device="cpu")


def run(graph_file, **feeds):
    session = open_session(graph_file, device="cpu")
    with mapped_errors("the encoder failed", "Export the model again."):
        session.run(None, feeds)


def test_only_a_lack_of_memory_is_called_a_lack_of_memory(tmp_path):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Expand", ["x", "s"], ["y"])], "g",
        [value("x", TensorProto.FLOAT, [1]), value("s", TensorProto.INT64, [1])], [value("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    file = saved(tmp_path, model_of(graph))
    with pytest.raises(ModelError, match=r"Memory ran out: use a machine"):
        run(file, x=np.zeros(1, np.float32), s=np.array([1 << 45]))
    with pytest.raises(ModelError) as refused:
        run(saved(tmp_path, computing(TensorProto.FLOAT)), x=np.zeros((2, 5), np.float32))
    assert "emory" not in str(refused.value)
    assert "Export the model again." in str(refused.value)


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
@pytest.mark.parametrize("step", ["load_structure", "mask_windows", "join_attention"])
def test_a_decoder_that_memory_does_not_hold_is_no_damaged_one(monkeypatch, error, step):
    place = session if step == "load_structure" else decoder_graph
    monkeypatch.setattr(place, step, raising(error))
    with pytest.raises(OutOfMemoryError, match="Memory ran out: use a machine"):
        read_decoder_graph(GRAPH, attends_to_all=True, joins=True)


def test_a_decoder_that_only_the_runtime_reads_is_refused(monkeypatch):
    monkeypatch.setattr(session, "load_structure", raising(OTHER[0]))
    with pytest.raises(ModelError, match=r"cannot be read by the package 'onnx' \(Error parsing"):
        read_decoder_graph(GRAPH, attends_to_all=True)


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_what_is_something_else_passes(error):
    assert not is_of_memory(error)
    with pytest.raises(type(error)) as raised, memory_errors("the graph"):
        raise error
    assert raised.value is error


DYNAMIC = (
    "DynamicQuantizeLinear", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat",
    "ConvInteger", "DynamicQuantizeLSTM", "QAttention",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_a_dynamically_quantised_decoder_is_refused_and_the_alternative_named(tmp_path):
    from onnxruntime.quantization import quantize_dynamic

    folder = tmp_path / "decoder"
    shutil.copytree(MODELS / "demo-slm", folder)
    quantize_dynamic(MODELS / "demo-slm" / "model.onnx", folder / "model.onnx")
    engine = OnnxDecoder(folder, decoding=Decoding())
    with pytest.raises(ModelError, match=r"DynamicQuantizeLinear.*whole batch.*--precision int8"):
        list(engine.generate([GenerationRequest(prompt="Is it good?")]))


def test_a_dynamically_quantised_encoder_is_refused_and_the_alternative_named(tmp_path):
    folder = tmp_path / "encoder"
    shutil.copytree(MODELS / "minilm", folder)
    model = onnx.load(str(folder / "model.onnx"))
    [last] = [node for node in model.graph.node if "last_hidden_state" in node.output]
    last.output[0] = "exact"
    model.graph.node.extend(
        [
            helper.make_node("DynamicQuantizeLinear", ["exact"], ["codes", "scale", "zero"]),
            helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["last_hidden_state"]),
        ]
    )
    onnx.save(model, str(folder / "model.onnx"))
    with pytest.raises(ModelError, match=r"DynamicQuantizeLinear.*whole batch.*--precision int8"):
        OnnxEncoder(folder, choice=NO_PROMPTS).embed(["Is it good?"])


@pytest.mark.parametrize("operator", DYNAMIC)
def test_every_operator_of_dynamic_quantisation_is_found_in_branches_and_functions(operator):
    node = helper.make_node(operator, ["x"], ["z"], domain="com.microsoft")
    branch = helper.make_node("If", ["c"], ["y"], then_branch=graph_of(node=[node]))
    deeper = helper.make_node("If", ["c"], ["y"], else_branch=graph_of(node=[branch]))
    function = helper.make_function(
        "d", "f", ["x"], ["z"], [node], [helper.make_opsetid("com.microsoft", 1)]
    )
    with_function = model_of(graph_of())
    with_function.functions.append(function)
    for model in (
        model_of(graph_of(node=[node])),
        model_of(graph_of(node=[deeper])),
        with_function,
    ):
        with pytest.raises(ModelError, match=operator):
            refuse_batch_scaling(model, Path("model.onnx"))


SIGNATURE = (
    "/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:154 std::conditional_t<THRW, "
    "void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, "
    "SUCCTYPE, const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true] "
    "/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:147 std::conditional_t<THRW> "
)
NODE = (
    "Error in execution: Non-zero status code returned while running Gather node. "
    "Name:'/model/embed_tokens/Gather' Status Message: "
)
ARENA = (
    "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:360 void* "
    "onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) "
)
HOST = (
    " ; GPU=-1 ; hostname=build-7.internal ; file=cuda_call.cc ; line=31 ; expr=cudaSetDevice(0); "
)
SEEN_ON_A_CARD = {
    SIGNATURE + "CUDA failure 100: no CUDA-capable device is detected" + HOST: "No NVIDIA GPU",
    SIGNATURE + "CUDA failure 101: invalid device ordinal" + HOST: "No NVIDIA GPU",
    SIGNATURE + "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version"
    + HOST: "driver is older",
    SIGNATURE + "CUDA failure 209: no kernel image is available for execution on the device"
    + HOST: "no code for this GPU",
    "CUDA error cudaErrorNoKernelImageForDevice:no kernel image is available": "this GPU",
    SIGNATURE + "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED" + HOST: "Memory ran out",
    SIGNATURE + "CUDA failure 2: out of memory" + HOST: "Memory ran out",
    NODE + SIGNATURE + "CUDNN_FE failure 11: CUDNN_BACKEND_API_FAILED" + HOST: "CUDA failed",
    NODE + ARENA + "Available memory of 3073024 is smaller than requested bytes of 5767168":
        "Memory ran out",
    NODE + ARENA + "Failed to allocate memory for requested buffer of size 5767168":
        "Memory ran out",
}  # fmt: skip


def test_failures_of_a_card_are_told_without_source_code_and_host_and_with_their_next_step():
    wrong = []
    for message, advice in SEEN_ON_A_CARD.items():
        with pytest.raises(ModelError) as refused, mapped_errors("the decoder failed", "Export."):
            raise RuntimeError(message)
        told = str(refused.value)
        unwanted = [
            part
            for part in ("onnxruntime_src", "CudaCall", "conditional_t", "build-7", "Export.")
            if part in told
        ]
        lacks_memory = isinstance(refused.value, OutOfMemoryError) != (advice == "Memory ran out")
        if unwanted or advice not in told or lacks_memory or len(told) > 600:
            wrong.append((message[-120:], told))
    assert not wrong
