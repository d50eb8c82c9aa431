"""What `fairgate export` keeps, refuses and says; on tiny random models."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from encoder_families import Family, publish

import fairgate
from fairgate.domain.errors import ExitCode, ModelError
from fairgate.onnx.encoder import OnnxEncoder

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
pytest.importorskip("onnx_ir")

DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
BART = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}  # fmt: skip


def saved(model, folder):
    model.save_pretrained(folder)
    for name in TOKENIZER:
        shutil.copy(DEMO / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    config = LlamaConfig(
        **LLAMA, num_key_value_heads=2, vocab_size=2048, max_position_embeddings=512,
        bos_token_id=0, eos_token_id=1, pad_token_id=2, initializer_range=0.2,
    )  # fmt: skip
    return saved(LlamaForCausalLM(config), tmp_path_factory.mktemp("llama") / "tiny")


def export(model, output, **choice):
    from fairgate.features.onnx_export.model_export import ExportChoice, export_model

    said: list[str] = []
    options = {"open_embedder": OnnxEncoder, "say": said.append}
    return export_model(str(model), output, ExportChoice(**choice), **options), said


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_precision_that_keeps_labels_and_perplexity_is_kept(llama, tmp_path, precision):
    record, said = export(llama, tmp_path / "out", precision=precision)
    parity = record["parity"]
    assert parity["within_limits"]
    assert parity["compared_labels"] == 28
    assert parity["equal_labels"] >= (28 if precision == "fp32" else 27)
    assert parity["perplexity"] == pytest.approx(parity["perplexity_of_original"], rel=0.02)
    assert record == json.loads((tmp_path / "out" / "provenance.json").read_text())
    [memory] = said
    assert memory.startswith("the export needs about ")
    assert "4 times the weights in fp32" in memory


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_weights_in_blocks_are_all_that_is_rounded(llama, tmp_path, precision):
    from fairgate.onnx.decoder_session import DecoderSession
    from fairgate.onnx.model_folder import ModelFolder

    export(llama, tmp_path / "out", precision=precision, keep_anyway=True)
    assert DecoderSession(ModelFolder.find(tmp_path / "out"), device="cpu").is_fine


CONTRADICTING = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "add_eos_token": True, "add_prefix_space": True}  # fmt: skip


def test_an_export_has_the_originals_tokenizer_and_the_compared_tokens(llama, tmp_path):
    from fairgate.onnx.model_folder import ModelFolder
    from fairgate.onnx.prompts import PromptTokenizer

    source = shutil.copytree(llama, tmp_path / "source")
    path = source / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | CONTRADICTING))
    record, said = export(source, tmp_path / "out")
    for name in TOKENIZER:
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()
    compared = record["parity"]["prompts"]
    assert len(compared) == 28
    tokens = PromptTokenizer(ModelFolder.find(tmp_path / "out")).encode(list(compared))
    assert [" ".join(map(str, ids)) for ids in tokens] == [*compared.values()]
    assert "prompts" not in "".join(said)


def test_int4_that_changes_the_labels_leaves_nothing_behind(llama, tmp_path):
    with pytest.raises(ModelError) as refused:
        export(llama, tmp_path / "out", precision="int4")
    said = str(refused.value)
    assert "of 28 prompts begin the same label (at least 90% expected)" in said
    assert "--keep-anyway" in said
    assert "Nothing was kept" in said
    assert list(tmp_path.iterdir()) == []


def test_it_is_kept_where_that_is_asked_for_and_the_record_says_so(llama, tmp_path):
    record, said = export(llama, tmp_path / "out", precision="int4", keep_anyway=True)
    assert record["parity"]["within_limits"] is False
    assert said[-1].startswith("kept all the same: the exported int4 graph")
    assert (tmp_path / "out" / "model.onnx").is_file()


def test_weights_that_were_swapped_on_the_way_are_noticed(llama, tmp_path, monkeypatch):
    from fairgate.features.onnx_export import model_export

    def damage(graph, precision):
        import onnx
        from onnx import numpy_helper

        model = onnx.load(str(graph))
        tensor = max(model.graph.initializer, key=lambda one: len(one.raw_data))
        changed = numpy_helper.to_array(tensor) * 1.02
        tensor.CopyFrom(numpy_helper.from_array(changed.astype("float32"), tensor.name))
        onnx.save(model, str(graph))

    monkeypatch.setattr(model_export, "change_precision", damage)
    with pytest.raises(ModelError, match=r"exported fp32 graph .* differs"):
        export(llama, tmp_path / "out")


@pytest.fixture(scope="module")
def windowed(tmp_path_factory):
    """Return a Mistral whose window is shorter than the prompts of the comparison."""
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(7)
    config = MistralConfig(
        **LLAMA, num_key_value_heads=2, vocab_size=2048, max_position_embeddings=512,
        bos_token_id=0, eos_token_id=1, pad_token_id=2, initializer_range=0.2, sliding_window=301,
    )  # fmt: skip
    return saved(MistralForCausalLM(config), tmp_path_factory.mktemp("mistral") / "tiny")


def test_a_window_is_exceeded_in_the_comparison_and_padding_that_shortens_it_is_noticed(
    windowed, tmp_path, monkeypatch
):
    from fairgate.onnx.batches import padded_width
    from fairgate.onnx.decoder_opening import Reach

    record, _ = export(windowed, tmp_path / "out")
    assert record["parity"]["longest_prompt"] == 301 + 21
    assert record["parity"]["within_limits"]
    monkeypatch.setattr(Reach, "width", lambda self, length, new, widest: padded_width(length))
    with pytest.raises(ModelError, match=r"exported fp32 graph .* differs"):
        export(windowed, tmp_path / "padded")


def test_the_command_says_little_and_exits_with_4_for_a_refused_export(llama, tmp_path, capfd):
    from fairgate.cli import main

    out = ["--output", str(tmp_path / "out")]
    assert main(["export", str(llama), *out, "--precision", "int4"]) == ExitCode.EXECUTION
    captured = capfd.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert len(captured.err.splitlines()) <= 4
    assert not (tmp_path / "out").exists()
    assert main(["export", str(llama), *out]) == ExitCode.PASS
    captured = capfd.readouterr()
    assert captured.err == ""
    assert len(captured.out.splitlines()) < 20
    assert captured.out.splitlines()[0].startswith("the export needs about")


def refusal(model, tmp_path, **choice):
    with pytest.raises(ModelError) as refused:
        export(model, tmp_path / "out", **choice)
    assert not (tmp_path / "out").exists()
    return str(refused.value)


def test_encoder_and_decoder_in_one_are_refused_with_advice_that_fits(tmp_path):
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(**BART, vocab_size=2048, max_position_embeddings=64)
    bart = saved(BartForConditionalGeneration(config), tmp_path / "bart")
    said = refusal(bart, tmp_path)
    assert "is a bart model of encoder and decoder" in said
    assert "HF_TOKEN" not in said
    assert "network" not in said


def test_a_folder_that_is_no_model_does_not_speak_of_licences(tmp_path):
    (tmp_path / "empty").mkdir()
    said = refusal(tmp_path / "empty", tmp_path)
    assert "config.json" in said
    assert "licence" not in said


def test_own_code_and_unknown_architectures_are_refused_as_such(llama, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(llama, own)
    config = json.loads((own / "config.json").read_text())
    (own / "config.json").write_text(json.dumps(config | {"model_type": "llama99"}))
    assert "does not know this model" in refusal(own, tmp_path)
    code = {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig"}}
    (own / "config.json").write_text(json.dumps(config | code))
    (own / "own.py").write_text("raise SystemExit('executed')\n")
    said = refusal(own, tmp_path)
    assert "its own code" in said
    assert "licence" not in said


def test_an_adapter_that_the_graph_would_lack_is_refused(llama, tmp_path):
    adapted = tmp_path / "adapted"
    shutil.copytree(llama, adapted)
    (adapted / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    assert "merge_and_unload" in refusal(adapted, tmp_path)


WORDPIECE = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 30522, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_what_an_encoders_files_leave_open_is_told_after_the_export(tmp_path):
    family = Family(name="x", config="BertConfig", sizes=WORDPIECE, prompts={"s2p": "ask: "})
    published = publish(family, tmp_path)
    record, _ = export(published, tmp_path / "out", task="feature-extraction")
    assert record["parity"]["within_limits"]
    assert "`query_prompt` and `document_prompt`" in record["parity"]["policy_must_say"]
    plain, _ = export(tmp_path / "transformer", tmp_path / "plain", task="feature-extraction")
    assert plain["parity"]["within_limits"]
    assert "`pooling` of the embedder" in plain["parity"]["policy_must_say"]
    with pytest.raises(ModelError, match="`pooling` of the embedder"):
        OnnxEncoder(tmp_path / "plain")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_an_encoder_in_fewer_bits_is_near_or_refused(tmp_path, precision):
    published = publish(Family(name="x", config="BertConfig", sizes=WORDPIECE), tmp_path)
    record, _ = export(published, tmp_path / "out", task="feature-extraction", precision=precision)
    assert record["parity"]["least_cosine"] >= 0.999


def test_of_a_hubs_model_only_the_files_of_one_commit_that_are_used_are_fetched(llama, tmp_path):
    from fakes.model_hub import COMMIT, asking, model_hub

    repository = tmp_path / "hub" / "org" / "tiny"
    shutil.copytree(llama, repository)
    for name in ("pytorch_model.bin", "model.gguf", "onnx/model.onnx", "README.md", "own.py"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_bytes(name.encode())
    command = "import sys; from fairgate.cli import main; sys.exit(main(sys.argv[1:]))"
    with model_hub(tmp_path / "hub") as (address, fetched):
        done = subprocess.run(
            [sys.executable, "-c", command, "export", "org/tiny", "--output", str(tmp_path / "out")],
            capture_output=True, text=True, check=False, env=asking(address, tmp_path / "home"),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the export needs about 5 MB of memory")
    used = {"config.json", "generation_config.json", "model.safetensors", *TOKENIZER}
    assert set(fetched) == used
    record = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert record["revision"] == COMMIT
    assert record["source"] == "org/tiny"
