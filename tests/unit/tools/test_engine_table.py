"""What the comparison with other engines prints, and that all of them are given one model."""

from __future__ import annotations

import importlib
import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.engine_models import gguf_name, in_pairs, read_safetensors
from benchmarks.engine_table import OWN, Measured, ratio, table
from benchmarks.engine_worker import ENGINES, in_batches


def measured(seconds, answers=("a", "b")):
    found = Measured(start=1.25)
    for took in seconds:
        found.add({"wall": took, "processor": 2 * took, "peak_mib": 90.4, "answers": [*answers]})
    return found


@pytest.fixture
def bench_engines(monkeypatch, request):
    folder = request.config.rootpath / "tools" / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module("bench_engines")


def test_ratios_are_those_of_rounds_so_that_a_slow_minute_of_the_machine_counts_on_both_sides():
    assert ratio([2.0, 20.0, 4.0], [1.0, 10.0, 1.0]) == "2.00 (2.00 to 4.00)"


def test_a_row_tells_seconds_ratios_answers_start_and_memory():
    engines = {
        "fairgate": measured([1.0, 2.0, 4.0]),
        "peer": measured([3.0, 5.0, 8.0], ("a", "x")),
    }
    assert table(engines).splitlines()[3] == (
        "| peer | 5.00 | 2.50 (2.00 to 3.00) | 2.50 (2.00 to 3.00) | 1 of 2 | 1.2 | 90 |"
    )


def test_an_engine_that_was_not_measured_has_a_row_with_the_reason():
    engines = {"fairgate": measured([1.0]), "peer": Measured(failure="there is no .venv-genai")}
    assert (
        table(engines)
        .splitlines()[3]
        .startswith("| peer | not measured: there is no .venv-genai |")
    )


def test_answers_that_are_missing_are_no_agreement():
    engines = {"fairgate": measured([1.0]), "peer": measured([1.0], ("a",))}
    with pytest.raises(ValueError, match="zip"):
        table(engines)


def test_a_missing_environment_has_a_name(bench_engines, monkeypatch, tmp_path):
    monkeypatch.setattr(bench_engines, "ROOT", tmp_path)
    for name in ENGINES:
        if name != OWN:
            with pytest.raises(bench_engines.NotMeasured, match=r"there is no \.venv-"):
                bench_engines.python_of(name)


def test_an_engine_that_ends_is_not_measured_and_its_last_words_say_why(bench_engines, tmp_path):
    log = tmp_path / "log"
    log.write_text("Traceback\nModuleNotFoundError: no module | 'xllamacpp'\n\n")
    ended = SimpleNamespace(stdout=io.StringIO(""))
    with pytest.raises(bench_engines.NotMeasured, match=r"no module / 'xllamacpp'$"):
        bench_engines.Worker(ended, log).reply()


def test_the_limit_counts_every_token_once_and_the_vocabulary_for_written_ones(
    bench_engines, tmp_path, monkeypatch
):
    (tmp_path / "hf").mkdir()
    config = {"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 3, "vocab_size": 10}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    found = SimpleNamespace(encode_batch=lambda texts: [SimpleNamespace(ids=[0] * 7)] * len(texts))
    monkeypatch.setattr(bench_engines, "tokenizer_of", lambda _: found)
    layer = 2 * 4 * 4 + 2 * 4 * 2 + 3 * 4 * 8
    tokens = 2 * 7 + 2 * (5 - 1)  # the last token that is written is not read
    expected = 2 * (3 * layer * tokens + 2 * 5 * 4 * 10)
    assert bench_engines.needed(tmp_path, ["p", "q"], 5) == expected


def test_rows_that_are_turned_together_stand_side_by_side():
    rows = np.arange(2 * 4)[:, None] * np.ones((1, 3))
    assert in_pairs(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_every_tensor_of_a_llama_has_its_name_in_llama_cpp():
    parts = ["self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"]
    parts += ["input_layernorm", "post_attention_layernorm"]
    assert [gguf_name(f"model.layers.12.{part}.weight") for part in parts] == [
        f"blk.12.{name}.weight"
        for name in ("attn_q", "attn_output", "ffn_gate", "ffn_down", "attn_norm", "ffn_norm")
    ]
    assert gguf_name("model.embed_tokens.weight") == "token_embd.weight"
    assert gguf_name("model.norm.weight") == "output_norm.weight"


@pytest.mark.parametrize(("kind", "is_read"), [("F32", True), ("BF16", False)])
def test_a_checkpoint_is_read_in_float32_only(tmp_path, kind, is_read):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    header = {"__metadata__": {"format": "pt"}}
    header["w"] = {"dtype": kind, "shape": [2, 3], "data_offsets": [0, 24]}
    told = json.dumps(header).encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(told).to_bytes(8, "little") + told + array.tobytes())
    if is_read:
        assert np.array_equal(read_safetensors(file)["w"], array)
    else:
        with pytest.raises(SystemExit, match="w is BF16, expected F32"):
            read_safetensors(file)


def test_prompts_run_together_by_length_and_each_once():
    assert in_batches(["ccc", "a", "bb", ""], 3) == [[3, 1, 2], [0]]
