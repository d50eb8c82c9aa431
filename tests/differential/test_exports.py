"""What `fairgate export` keeps, refuses and says, on tiny random models; what it keeps answers as torch."""

import contextlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from encoder_families import Family, publish

import fairgate
from fairgate.cli import main
from fairgate.domain.errors import ExitCode, ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("exports")]
torch = pytest.importorskip("torch")
pytest.importorskip("onnx_ir")

DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
SIZES = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 2048, "max_position_embeddings": 512, "bos_token_id": 0,
    "eos_token_id": 1, "pad_token_id": 2, "initializer_range": 0.2, "tie_word_embeddings": False,
}  # fmt: skip
STEPS = 24
PROMPTS = [
    "Is it good?\nAnswer:",
    "Never again.",
    "What is the sentiment of the text? " * 5 + "\nAnswer:",
    "A lamp with two switches arrived on Tuesday in a brown box.",
    "a",
    "One two three four five six seven eight nine ten eleven twelve thirteen fourteen.\nAnswer:",
]


def saved(model, folder):
    model.save_pretrained(folder)
    for name in TOKENIZER:
        shutil.copy(DEMO / name, folder / name)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _each_model_is_traced_once(tmp_path_factory):
    """Precisions and comparisons begin with one graph of a model."""
    from fairgate.features.onnx_export import command

    traced, convert = {}, command._convert

    def once(source, folder, task):
        if (source.name, task) in traced:
            shutil.copytree(traced[source.name, task], folder)
            return
        convert(source, folder, task)
        kept = tmp_path_factory.mktemp("traced") / "model"
        traced[source.name, task] = shutil.copytree(folder, kept)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(command, "_convert", once)
        yield


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """Return the folder of a random Llama with grouped heads, in transformers' own format."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    model = LlamaForCausalLM(LlamaConfig(**SIZES))
    return saved(model, tmp_path_factory.mktemp("llama") / "tiny")


@pytest.fixture(scope="module")
def exported(llama):
    """Return a function that exports the Llama by the command, each precision once."""
    known = {}

    def of(precision):
        if precision not in known:
            folder, out, err = llama.parent / precision, io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                asked = ["--output", str(folder), "--precision", precision, "--keep-anyway"]
                assert main(["export", str(llama), *asked]) == ExitCode.PASS
            record = json.loads((folder / "provenance.json").read_text())
            known[precision] = SimpleNamespace(
                folder=folder, record=record, out=out.getvalue(), err=err.getvalue()
            )
        return known[precision]

    return of


def export(model, output, **choice):
    from fairgate.features.onnx_export.command import ExportChoice, export_model

    return export_model(str(model), output, ExportChoice(**choice))


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_precision_that_keeps_labels_and_perplexity_is_kept_and_said_shortly(exported, precision):
    found = exported(precision)
    parity = found.record["parity"]
    assert parity["within_limits"]
    assert parity["compared_labels"] == 28
    assert parity["equal_labels"] >= (28 if precision == "fp32" else 27)
    assert parity["perplexity"] == pytest.approx(parity["perplexity_of_original"], rel=0.02)
    assert parity["share_of_largest_logit"] < 0.2
    assert (found.err, len(found.out.splitlines()) < 20) == ("", True)
    alone = own_tokens(found.folder, PROMPTS, batch_size=1)
    assert alone == own_tokens(found.folder, PROMPTS, batch_size=16)


def test_int4_that_changes_the_labels_leaves_nothing_behind_unless_it_is_asked_for(
    llama, exported, tmp_path, capfd
):
    asked = ["--output", str(tmp_path / "out"), "--precision", "int4"]
    assert main(["export", str(llama), *asked]) == ExitCode.EXECUTION
    captured = capfd.readouterr()
    said = " ".join(captured.err.split())
    assert "of 28 prompts begin the same label (at least 90% expected)" in said
    assert "--keep-anyway" in said
    assert "Nothing was kept" in said
    assert (len(captured.out.splitlines()), len(captured.err.splitlines()) <= 4) == (0, True)
    assert list(tmp_path.iterdir()) == []
    kept = exported("int4")
    assert kept.record["parity"]["within_limits"] is False
    assert "kept all the same: the exported int4 graph" in kept.out


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_weights_in_blocks_are_all_that_is_rounded(exported, precision):
    assert DecoderSession(ModelFolder.find(exported(precision).folder), device="cpu").is_fine


CONTRADICTING = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "add_eos_token": True, "add_prefix_space": True}  # fmt: skip


def test_an_export_has_the_originals_tokenizer_and_the_compared_tokens(llama, tmp_path):
    source = shutil.copytree(llama, tmp_path / "source")
    path = source / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | CONTRADICTING))
    compared = export(source, tmp_path / "out")["parity"]["prompts"]
    for name in TOKENIZER:
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()
    assert len(compared) == 28
    tokens = PromptTokenizer(ModelFolder.find(tmp_path / "out")).encode(list(compared))
    assert [" ".join(map(str, ids)) for ids in tokens] == [*compared.values()]


def test_weights_that_were_swapped_on_the_way_are_noticed(llama, tmp_path, monkeypatch):
    from fairgate.features.onnx_export import command

    def damage(graph, precision):
        import onnx
        from onnx import numpy_helper

        model = onnx.load(str(graph))
        tensor = max(model.graph.initializer, key=lambda one: len(one.raw_data))
        changed = numpy_helper.to_array(tensor) * 1.02
        tensor.CopyFrom(numpy_helper.from_array(changed.astype("float32"), tensor.name))
        onnx.save(model, str(graph))

    monkeypatch.setattr(command, "change_precision", damage)
    with pytest.raises(ModelError, match=r"exported fp32 graph .* differs"):
        export(llama, tmp_path / "out")


def test_a_window_is_exceeded_in_the_comparison_and_padding_that_shortens_it_is_noticed(
    tmp_path, monkeypatch
):
    from transformers import MistralConfig, MistralForCausalLM

    from fairgate.onnx.attention_settings import Reach
    from fairgate.onnx.batches import padded_width

    torch.manual_seed(7)
    model = MistralForCausalLM(MistralConfig(**SIZES, sliding_window=301))
    windowed = saved(model, tmp_path / "windowed")
    record = export(windowed, tmp_path / "out")
    assert record["parity"]["longest_prompt"] == 301 + 21
    assert record["parity"]["within_limits"]
    monkeypatch.setattr(Reach, "width", lambda self, length, new, widest: padded_width(length))
    with pytest.raises(ModelError, match=r"exported fp32 graph .* differs"):
        export(windowed, tmp_path / "padded")


@pytest.fixture(scope="module")
def original(llama):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(llama, padding_side="left")
    return AutoModelForCausalLM.from_pretrained(llama).eval(), tokenizer


def generated(original, prompts):
    """Return the new tokens of each prompt as `transformers.generate` gives them for the batch."""
    model, tokenizer = original
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
    with torch.inference_mode():
        out = model.generate(**inputs, max_new_tokens=STEPS, do_sample=False)
    rows = out[:, inputs["input_ids"].shape[1] :].tolist()
    return [row[: row.index(1)] if 1 in row else row for row in rows]


class Recorder(OnnxDecoder):
    """The engine, with the tokens of its answers kept."""

    def _take(self, row, logits, likeliest):
        super()._take(row, logits, likeliest)
        self.__dict__.setdefault("tokens", {})[row.position] = list(row.tokens)


def own_tokens(folder, prompts, **options):
    engine = Recorder(folder, decoding=Decoding(max_new_tokens=STEPS), **options)
    list(engine.generate([GenerationRequest(prompt=prompt) for prompt in prompts]))
    return [engine.tokens[place] for place in range(len(prompts))]


def test_greedy_tokens_are_those_of_transformers(exported, original):
    folder = exported("fp32").folder
    one_by_one = [generated(original, [prompt])[0] for prompt in PROMPTS]
    assert any(len(set(tokens)) > 5 for tokens in one_by_one)
    for batch_size in (1, 16):
        assert own_tokens(folder, PROMPTS, batch_size=batch_size) == one_by_one
    assert generated(original, PROMPTS) == one_by_one, "in batches that are padded on the left"


def test_option_scores_are_those_of_transformers(exported, original):
    options = ("It is good", "Never", "A brown box with two lamps")
    engine = OnnxDecoder(exported("fp32").folder, decoding=Decoding())
    requests = [GenerationRequest(prompt=prompt, options=options) for prompt in PROMPTS]
    for request, scores in zip(requests, engine.score_options(requests), strict=True):
        prompt, *full = engine._prompts.encode_with_option(request.prompt, options)
        for tokens, score in zip(full, scores, strict=True):
            with torch.inference_mode():
                rows = original[0](torch.tensor([tokens])).logits[0].double().log_softmax(-1)
            places = range(len(prompt), len(tokens))
            expected = sum(float(rows[place - 1, tokens[place]]) for place in places)
            assert score == pytest.approx(expected, abs=1e-3)


def test_a_margin_is_the_difference_of_the_models_own_log_probabilities(exported, original):
    from fairgate.onnx.answer_row import LabelTokens

    # The model's own first token is called a label, so that it says one.
    engine = Recorder(exported("fp32").folder, decoding=Decoding(max_new_tokens=4))
    prompt = "Is it good?\nAnswer:"
    list(engine.generate([GenerationRequest(prompt=prompt)]))
    said, rival = engine.tokens[0][0], 700
    texts = [engine._prompts.decode([token]).strip().lower() for token in (said, rival)]
    if not all(text.isalpha() for text in texts):
        pytest.skip("the random model's first token is no word")
    [(_, answer)] = engine.generate([GenerationRequest(prompt=prompt, labels=tuple(texts))])
    assert answer.margin is not None
    [ids] = engine._prompts.encode([prompt])
    with torch.inference_mode():
        row = original[0](torch.tensor([ids])).logits[0, -1].double().log_softmax(-1).numpy()
    variants = LabelTokens.of(texts, engine._prompts.splits).variants
    first = [{form[0] for form in variants[text]} for text in texts]
    ours, theirs = first[0] - first[1] | {said}, first[1] - first[0]
    expected = np.logaddexp.reduce(row[sorted(ours)]) - np.logaddexp.reduce(row[sorted(theirs)])
    assert answer.margin == pytest.approx(expected, abs=2e-3)


def refusal(model, tmp_path, **choice):
    with pytest.raises(ModelError) as refused:
        export(model, tmp_path / "out", **choice)
    assert not (tmp_path / "out").exists()
    return str(refused.value)


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


WORDPIECE = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 30522, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_what_an_encoders_files_leave_open_is_told_after_the_export(tmp_path):
    family = Family(name="x", config="BertConfig", sizes=WORDPIECE, prompts={"s2p": "ask: "})
    published = publish(family, tmp_path)
    record = export(published, tmp_path / "out", task="feature-extraction")
    assert record["parity"]["within_limits"]
    assert "`query_prompt` and `document_prompt`" in record["parity"]["policy_must_say"]
    plain = export(tmp_path / "transformer", tmp_path / "plain", task="feature-extraction")
    assert plain["parity"]["within_limits"]
    assert "`pooling` of the embedder" in plain["parity"]["policy_must_say"]
    with pytest.raises(ModelError, match="`pooling` of the embedder"):
        OnnxEncoder(tmp_path / "plain")


@pytest.mark.filterwarnings("ignore")
def test_an_encoder_in_fewer_bits_is_near(tmp_path):
    published = publish(Family(name="x", config="BertConfig", sizes=WORDPIECE), tmp_path)
    for precision in ("fp16", "int8"):
        choice = {"task": "feature-extraction", "precision": precision}
        record = export(published, tmp_path / precision, **choice)
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
    used = {"config.json", "generation_config.json", "model.safetensors", *TOKENIZER}
    assert set(fetched) == used
    record = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert record["revision"] == COMMIT
    assert record["source"] == "org/tiny"


def random_model(kind):
    """Return a random model of transformers' class for an architecture of GGUF."""
    import transformers

    torch.manual_seed(7)
    name = {"llama": "Llama", "qwen2": "Qwen2"}[kind]
    config = getattr(transformers, f"{name}Config")(**SIZES)
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def test_a_decoder_comes_from_a_gguf_file_with_its_tokenizer(tmp_path):
    from fakes.llama_cpp import AS_IT_IS, demo_gguf
    from tokenizers import Tokenizer

    demo_gguf(tmp_path / "demo.gguf")
    record = export(tmp_path, tmp_path / "out")
    assert record["parity"]["within_limits"]
    assert (record["source"], record["weights_from"]) == ("demo.gguf", "GGUF (F32)")
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == AS_IT_IS
    folders = (tmp_path / "out", DEMO)
    ids, same = (
        Tokenizer.from_file(str(folder / "tokenizer.json"))
        .encode("It's a day, na\u00efve 2024.")
        .ids
        for folder in folders
    )
    assert ids == same
    logits, expected = (
        DecoderSession(ModelFolder.find(folder), device="cpu").prefill([ids, ids], len(ids))[0]
        for folder in folders
    )
    assert abs(logits - expected).max() < 1e-4 * abs(expected).max()


@pytest.mark.parametrize("kind", [pytest.param("llama", marks=pytest.mark.whole), "qwen2"])
def test_an_architecture_that_comes_as_gguf_answers_as_torch_does(kind, tmp_path):
    from fakes.llama_cpp import model_gguf

    model = random_model(kind)
    export(model_gguf(model, tmp_path / "random.gguf"), tmp_path / "out")
    engine = Recorder(tmp_path / "out", decoding=Decoding(max_new_tokens=STEPS))
    list(engine.generate([GenerationRequest(prompt=prompt) for prompt in PROMPTS]))
    for place, ids in enumerate(engine._prompts.encode(PROMPTS)):
        row = torch.tensor([ids])
        with torch.inference_mode():
            out = model.generate(row, max_new_tokens=STEPS, do_sample=False)[0, len(ids) :].tolist()
        assert engine.tokens[place] == (out[: out.index(1)] if 1 in out else out)


ADVICE = "xport the original model, by its Hugging Face id."
DAMAGED = {
    "another magic": lambda content: b"GGML" + content[4:],
    "no content": lambda content: b"",
    "a part of its head": lambda content: content[:300],
    "a part of its weights": lambda content: content[: len(content) // 2],
}


def test_a_gguf_file_that_is_no_whole_decoder_is_refused_with_what_is_wrong_and_the_next_step(
    tmp_path,
):
    from fakes.llama_cpp import model_gguf

    model, file = random_model("llama"), tmp_path / "model.gguf"
    content = model_gguf(model, file).read_bytes()
    for damage in DAMAGED.values():
        file.write_bytes(damage(content))
        said = refusal(file, tmp_path)
        assert said.startswith(
            f"{str(file)!r} cannot be read as a whole decoder with its tokenizer ("
        )
        assert said.endswith(f"Fetch it again, or e{ADVICE}")
    for architecture in ("unheard", "bert"):
        said = refusal(model_gguf(model, file, architecture=architecture), tmp_path)
        assert f"architecture {architecture} " in said
        assert said.endswith(f"e{ADVICE}")
    said = refusal(model_gguf(model, file, tokenizer=False), tmp_path)
    assert "no tokenizer.ggml.tokens" in said
    assert said.endswith(f"e{ADVICE}")
    said = refusal(tmp_path, tmp_path, task="feature-extraction")
    assert "of which decoders are exported only" in said
    assert said.endswith(f"E{ADVICE}")
    (tmp_path / "second.gguf").write_bytes(content)
    said = refusal(tmp_path, tmp_path)
    assert "several GGUF files (model.gguf, second.gguf). Name the one to export" in said
    for missing in (tmp_path / "third.gguf", tmp_path / "nowhere", "third.gguf"):
        said = refusal(missing, tmp_path)
        assert said.startswith(f"{str(missing)!r} is no folder with a config.json and no GGUF file")


def test_a_gguf_file_of_which_transformers_makes_another_tokenizer_is_refused(tmp_path):
    """Pairs joined by scores: transformers 4 makes Gemma's a Unigram vocabulary."""
    import gguf

    file = tmp_path / "gemma.gguf"
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", *"abc", "ab", "abc"]
    writer = gguf.GGUFWriter(str(file), "gemma3")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-1000.0] * 7 + [-0.0, -1.0])
    writer.add_token_types([3] * 4 + [1] * 5)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    for write in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{write}_to_file")()
    writer.close()
    said = refusal(file, tmp_path)
    assert "ValueError: transformers would split texts into other tokens)" in said
    assert said.endswith(f"e{ADVICE}")
