"""What the comparison of engines writes for llama.cpp: the same weights, and no end where none is wanted."""

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("exports")]
gguf = pytest.importorskip("gguf")


def dequantised(reader):
    return {one.name: gguf.quants.dequantize(one.data, one.tensor_type) for one in reader.tensors}


def test_q8_0_of_a_gguf_file_has_its_fields_and_nearly_its_weights(tmp_path):
    from benchmarks.engine_models import FILE_TYPE, write_q8_0
    from fakes.llama_cpp import demo_gguf

    source, target = demo_gguf(tmp_path / "demo.gguf"), tmp_path / "q8_0.gguf"
    write_q8_0(source, target)
    before, after = gguf.GGUFReader(source), gguf.GGUFReader(target)
    assert after.fields.keys() == before.fields.keys()
    for name in before.fields.keys() - {FILE_TYPE, "GGUF.tensor_count", "GGUF.kv_count"}:
        assert after.fields[name].contents() == before.fields[name].contents()
    near, weights = dequantised(after), dequantised(before)
    assert near.keys() == weights.keys()
    for name, array in weights.items():
        assert abs(near[name] - array).max() <= abs(array).max() / 127


def test_of_a_file_without_an_end_no_control_token_has_a_name_that_is_known_as_one(tmp_path):
    from benchmarks.engine_models import take_end_away_from_gguf
    from fakes.llama_cpp import demo_gguf

    file = demo_gguf(tmp_path / "demo.gguf")
    before = gguf.GGUFReader(file).fields["tokenizer.ggml.tokens"].contents()
    take_end_away_from_gguf(file)
    fields = gguf.GGUFReader(file).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    assert fields["tokenizer.ggml.eos_token_id"].contents() == len(tokens) - 1
    assert (before[:3], tokens[:3]) == (["<s>", "</s>", "<pad>"], ["_s>", "_/s>", "_pad>"])
    assert tokens[3:] == before[3:]
