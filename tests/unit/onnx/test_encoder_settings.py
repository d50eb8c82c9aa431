"""What an encoder's files and the policy say about it, and what is refused because they do not."""

import json

import numpy as np
import onnx
import pytest
from fakes.encoders import MODULES, PROMPTS, TABLE, WORDS, encoder_graph, tokenizer, write_encoder

from fairgate.domain.errors import ModelError
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS, EmbedderChoice

E5 = EmbedderChoice(query_prompt="query: ", document_prompt="passage: ")


def states(*words):
    return np.array([TABLE[WORDS.index(word)] for word in words], dtype=np.float64)


def pooled(tmp_path, text, *, choice=None, **written):
    """Return the vector of a text, of the length that it has."""
    folder = write_encoder(tmp_path / "m", modules=MODULES[:2], **written)
    return OnnxEncoder(folder, unit=False, choice=choice or EmbedderChoice()).embed([text])[0]


def unit(vector):
    return vector / np.linalg.norm(vector)


def refusal(folder, **options):
    with pytest.raises(ModelError) as refused:
        OnnxEncoder(folder, **options).embed(["a b"])
    assert str(folder) in str(refused.value)
    return str(refused.value)


SUM = states("[CLS]", "a", "b", "[SEP]").sum(axis=0)
POOLED = {
    "mean": SUM / 4,
    "cls": states("[CLS]")[0],
    "max": states("[CLS]", "a", "b", "[SEP]").max(axis=0),
    "mean_sqrt_len_tokens": SUM / 2,
    "weightedmean": np.array([1, 2, 3, 4]) @ states("[CLS]", "a", "b", "[SEP]") / 10,
    "lasttoken": states("[SEP]")[0],
}


@pytest.mark.parametrize("pooling", POOLED)
@pytest.mark.parametrize("spelling", ["new", "old"])
def test_every_pooling_of_sentence_transformers_is_computed(tmp_path, pooling, spelling):
    key = {"cls": "cls_token", "lasttoken": "lasttoken"}.get(pooling, f"{pooling}_tokens")
    key = "mean_sqrt_len_tokens" if pooling == "mean_sqrt_len_tokens" else key
    modes = {f"pooling_mode_{key}": True, "pooling_mode_cls_token": pooling == "cls"}
    old = {"1_Pooling/config.json": modes}
    folder = write_encoder(tmp_path / "m", modules=MODULES[:2], pooling=pooling, files=old if spelling == "old" else None)  # fmt: skip
    found = OnnxEncoder(folder, unit=False, batch_size=3).embed(["a b c d", "a b", "c"])[1]
    assert found == pytest.approx(POOLED[pooling], abs=1e-6)


def test_several_poolings_stand_one_after_the_other(tmp_path):
    folder = write_encoder(tmp_path / "m", modules=MODULES[:2], pooling=["cls", "mean"])
    encoder = OnnxEncoder(folder, unit=False)
    assert encoder.dimensions == 12
    assert encoder.embed(["a b"])[0] == pytest.approx(np.concatenate([POOLED["cls"], POOLED["mean"]]), abs=1e-6)  # fmt: skip


def test_without_a_pooling_the_model_is_refused_and_the_policy_may_name_it(tmp_path):
    folder = write_encoder(tmp_path / "m", modules=None, pooling=None)
    said = refusal(folder)
    assert "nothing in" in said
    assert "`pooling` of the embedder" in said
    chosen = OnnxEncoder(folder, choice=EmbedderChoice(pooling="cls"))
    assert chosen.embed(["a b"])[0] == pytest.approx(unit(POOLED["cls"]), abs=1e-6)
    other = OnnxEncoder(folder, choice=EmbedderChoice(pooling="mean"))
    assert chosen.fingerprint != other.fingerprint


def test_the_pooling_is_read_where_the_modules_say(tmp_path):
    folder = write_encoder(tmp_path / "m", pooling="mean", files={"own/config.json": {"pooling_mode": "cls"}})  # fmt: skip
    listed = [{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "sentence_transformers.models.Pooling", "path": "own"}]  # fmt: skip
    write_encoder(folder, pooling="mean", files={"modules.json": listed, "own/config.json": {"pooling_mode": "cls"}})  # fmt: skip
    assert OnnxEncoder(folder).settings.poolings == ("cls",)
    listed[1]["path"] = "../own"
    write_encoder(folder, files={"modules.json": listed})
    assert "inside the model's own" in refusal(folder)


def test_a_graph_that_computes_all_modules_is_read_at_its_end(tmp_path):
    outputs = ("token_embeddings", "sentence_embedding")
    further = write_encoder(tmp_path / "m", modules=["Transformer", "Pooling", "Dense", "Normalize"], outputs=outputs)  # fmt: skip
    assert OnnxEncoder(further).embed(["a b"])[0] == pytest.approx(unit(POOLED["cls"]), abs=1e-6)
    plain = write_encoder(tmp_path / "n", outputs=outputs)
    only = write_encoder(tmp_path / "o", modules=None, pooling=None, outputs=("sentence_embedding",))  # fmt: skip
    assert OnnxEncoder(only).embed(["a b"])[0] == pytest.approx(unit(POOLED["cls"]), abs=1e-6)
    assert "pools by itself" in refusal(only, choice=EmbedderChoice(pooling="cls"))
    assert OnnxEncoder(plain).embed(["a b"])[0] == pytest.approx(unit(POOLED["cls"]), abs=1e-6)
    silent = write_encoder(tmp_path / "q", modules=None, pooling=None, outputs=outputs)
    assert OnnxEncoder(silent).embed(["a b"])[0] == pytest.approx(unit(POOLED["cls"]), abs=1e-6)
    custom = write_encoder(tmp_path / "p", modules=["own.Transformer", "Pooling"], outputs=outputs)
    assert "own.Transformer" in refusal(custom)


def test_states_in_whole_numbers_are_refused(tmp_path):
    for kind in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT32):
        folder = write_encoder(tmp_path / str(kind), kind=kind)
        assert "expected floating point" in refusal(folder)
    for kind in (onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16):
        folder = write_encoder(tmp_path / str(kind), kind=kind)
        assert OnnxEncoder(folder).embed(["a b"])[0] == pytest.approx(unit(SUM), abs=1e-3)


def test_prompts_stand_before_queries_and_documents(tmp_path):
    prompts = {"query": "query: ", "document": "passage: ", "Clustering": "c "}
    files = {PROMPTS: {"prompts": prompts}}
    encoder = OnnxEncoder(write_encoder(tmp_path / "m", files=files))
    plain = OnnxEncoder(write_encoder(tmp_path / "n"))
    queries = encoder.for_queries()
    assert np.array_equal(encoder.embed(["a"]), plain.embed(["passage: a"]))
    assert np.array_equal(queries.embed(["a"]), plain.embed(["query: a"]))
    assert encoder.fingerprint != queries.fingerprint
    assert queries.for_queries().fingerprint == queries.fingerprint
    assert plain.for_queries().fingerprint == plain.fingerprint
    chosen = OnnxEncoder(tmp_path / "n", choice=E5)
    assert np.array_equal(chosen.embed(["a"]), encoder.embed(["a"]))
    assert np.array_equal(chosen.for_queries().embed(["a"]), queries.embed(["a"]))
    half = OnnxEncoder(tmp_path / "m", choice=EmbedderChoice(document_prompt=""))
    assert half.settings.query_prompt == "query: "
    assert half.settings.document_prompt == ""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"prompts": {"query": "q "}, "default_prompt_name": "query"}, "default prompt is 'query'"),
        ({"prompts": {"query": "q "}, "default_prompt_name": "gone"}, "default prompt is 'gone'"),
        ({"prompts": {"s2p": "q ", "s2s": "r "}}, "'s2p, s2s'"),
        ({"prompts": {"query": "", "document": "", "s2p": "q "}}, "'s2p'"),
        ({"prompts": {"query": "q ", "document": "", "passage": "p "}}, "'query, passage'"),
        ({"prompts": {"document": "d ", "question": "q "}}, "'document, question'"),
        ({"prompts": {}}, "its files list none"),
    ],
)
def test_prompts_that_are_not_certain_are_refused_until_the_policy_says_them(
    tmp_path, config, said
):
    folder = write_encoder(tmp_path / "m", files={PROMPTS: config})
    message = refusal(folder)
    assert said in message
    assert "`query_prompt` and `document_prompt`" in message
    assert OnnxEncoder(folder, choice=E5).embed(["a"]).shape == (1, 6)


@pytest.mark.parametrize(
    "config",
    [
        {"prompts": {"query": "", "document": ""}, "default_prompt_name": None},
        {"prompts": {"query": "", "document": ""}, "default_prompt_name": "query"},
    ],
)
def test_empty_prompts_are_an_answer(tmp_path, config):
    folder = write_encoder(tmp_path / "m", files={PROMPTS: config})
    assert OnnxEncoder(folder).settings.query_prompt == ""


@pytest.mark.parametrize(
    "config", [None, {}, {"prompts": None}, {"prompts": {}}, {"prompts": {"query": ""}}]
)
def test_files_without_prompts_say_nothing(tmp_path, config):
    folder = write_encoder(tmp_path / "m")
    (folder / PROMPTS).unlink()
    if config is not None:
        (folder / PROMPTS).write_text(json.dumps(config))
    assert '`""` where the card has none' in refusal(folder)
    assert OnnxEncoder(folder, choice=NO_PROMPTS).embed(["a"]).shape == (1, 6)
    assert OnnxEncoder(folder, choice=E5).embed(["a"]).shape == (1, 6)


def test_prompts_for_other_tasks_stand_beside_those_of_both_sides(tmp_path):
    prompts = {"query": "q ", "document": "d ", "Clustering": "c ", "Retrieval-query": "r "}
    folder = write_encoder(tmp_path / "m", files={PROMPTS: {"prompts": prompts}})
    settings = OnnxEncoder(folder).settings
    assert (settings.query_prompt, settings.document_prompt) == ("q ", "d ")


@pytest.mark.parametrize("pooling", ["mean", "weightedmean", "max", "cls", "lasttoken"])
def test_a_prompt_that_is_not_included_is_read_but_not_pooled(tmp_path, pooling):
    excluded = {"1_Pooling/config.json": {"pooling_mode": pooling, "include_prompt": False}}
    found = pooled(tmp_path, "a b", choice=E5, files=excluded)
    own = states("a", "b", "[SEP]")  # [CLS], "passage" and ":" stand before
    expected = {
        "mean": own.mean(axis=0),
        "weightedmean": np.array([4, 5, 6]) @ own / 15,
        "max": own.max(axis=0),
        "cls": own[0],
        "lasttoken": own[-1],
    }
    assert found == pytest.approx(expected[pooling], abs=1e-6)


def test_a_prompt_that_leaves_no_room_is_refused(tmp_path):
    files = {"1_Pooling/config.json": {"pooling_mode": "mean", "include_prompt": False}, "sentence_bert_config.json": {"max_seq_length": 5}}  # fmt: skip
    folder = write_encoder(tmp_path / "m", files=files)
    assert OnnxEncoder(folder, choice=E5).embed(["a"]).shape == (1, 6)
    long = EmbedderChoice(query_prompt="", document_prompt="a b c d a b c d soup ")
    with pytest.raises(ModelError, match="nothing of a text is left"):
        OnnxEncoder(folder, choice=long).embed(["a"])


def test_vectors_are_cut_to_the_dimensions_and_scaled_after(tmp_path):
    own = write_encoder(tmp_path / "m", files={PROMPTS: {"truncate_dim": 4}})
    assert OnnxEncoder(own).dimensions == 4
    assert OnnxEncoder(own).embed(["a b"])[0] == pytest.approx(unit(SUM[:4]), abs=1e-6)
    chosen = OnnxEncoder(own, choice=EmbedderChoice(dimensions=2))
    assert chosen.embed(["a b"])[0] == pytest.approx(unit(SUM[:2]), abs=1e-6)
    assert chosen.fingerprint != OnnxEncoder(own).fingerprint


def test_a_model_for_another_similarity_is_refused_where_lengths_are_lost(tmp_path):
    files = {PROMPTS: {"similarity_fn_name": "dot"}}
    folder = write_encoder(tmp_path / "m", modules=MODULES[:2], files=files)
    assert "'dot'" in refusal(folder)
    assert OnnxEncoder(folder, unit=False).embed(["a"]).shape == (1, 6)
    normalized = write_encoder(tmp_path / "n", files=files)
    assert OnnxEncoder(normalized).embed(["a"]).shape == (1, 6)


BERT = "sentence_bert_config.json"
REFUSED = [
    ({"modules": ["Transformer", "Pooling", "Normalize", "Dense"]}, "Pooling, Normalize, Dense"),
    ({"modules": ["Transformer", "Normalize", "Pooling"]}, "Transformer, Normalize, Pooling"),
    ({"modules": ["custom_st.Transformer", "Pooling", "Normalize"]}, "custom_st.Transformer, Pooling"),
    ({"modules": ["Transformer", "Pooling", "Pooling"]}, "Transformer, Pooling, Pooling"),
    ({"modules": ["StaticEmbedding", "Normalize"]}, "StaticEmbedding, Normalize"),
    ({"pooling": "attention"}, "'attention'"),
    ({"pooling": None, "files": {"1_Pooling/config.json": {"pooling_mode_own": True}}}, "pooling_mode_own"),
    ({"outputs": ("pooler_output", "logits")}, "no token states"),
    ({"outputs": ("output_0",)}, "no token states"),
    ({"files": {PROMPTS: {"prompts": ["query: "]}}}, "no mapping of names to texts"),
    ({"files": {PROMPTS: {"prompts": {"query": 3}}}}, "no mapping of names to texts"),
    ({"files": {PROMPTS: {"model_type": "SparseEncoder"}}}, "'SparseEncoder'"),
    ({"files": {BERT: {"processing_kwargs": {"text": {"max_length": 4}}}}}, "processing_kwargs"),
    ({"files": {BERT: {"transformer_task": "fill-mask"}}}, "transformer_task"),
    ({"files": {BERT: {"modality_config": {"message": {"method": "forward"}}}}}, "modality_config"),
]  # fmt: skip
NO_PROMPT = {"1_Pooling/config.json": {"pooling_mode": "mean", "include_prompt": False}}
CHOSEN = [
    ({"pooling": "cls"}, "Remove `pooling`", {"choice": EmbedderChoice(pooling="mean")}),
    ({"outputs": ("sentence_embedding",), "files": NO_PROMPT}, "prompt included", {"choice": E5}),
]


@pytest.mark.parametrize(("written", "said", "chosen"), [*((*one, {}) for one in REFUSED), *CHOSEN])
def test_what_is_not_computed_is_refused_by_name(tmp_path, written, said, chosen):
    assert said in refusal(write_encoder(tmp_path / "m", **written), **chosen)


CONFIG = {"model_type": "bert", "max_position_embeddings": 9}


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, 16),
        ({"config.json": CONFIG, "tokenizer_config.json": {"model_max_length": 5}}, 5),
        ({"config.json": CONFIG, "tokenizer_config.json": {"model_max_length": int(1e30)}}, 9),
        ({"sentence_bert_config.json": {"max_seq_length": 7}, "tokenizer_config.json": {"model_max_length": 5}}, 7),
        ({"sentence_roberta_config.json": {"max_seq_length": 7}}, 7),
        ({"sentence_bert_config.json": {"max_seq_length": 99}}, 16),
        ({"config.json": CONFIG | {"model_type": "modernbert"}, "sentence_bert_config.json": {"max_seq_length": 99}}, 99),
        ({"config.json": CONFIG | {"model_type": "roberta", "pad_token_id": 1}}, 7),
        ({"config.json": CONFIG | {"model_type": "xlm-roberta"}}, 7),
        ({"config.json": {"model_type": "t5"}}, None),
    ],
)  # fmt: skip
def test_the_length_limit_is_that_of_sentence_transformers(tmp_path, files, limit):
    folder = write_encoder(tmp_path / "m", modules=MODULES[:2], files=files)
    encoder = OnnxEncoder(folder, unit=False)
    assert encoder.settings.max_tokens == limit
    kept = ["a"] * ((limit or 1002) - 2)
    found = encoder.embed([" ".join(["a"] * 1000)])[0]
    assert found == pytest.approx(states("[CLS]", *kept, "[SEP]").mean(axis=0), abs=1e-6)


@pytest.mark.parametrize(
    ("file", "settings", "text", "read"),
    [
        ("tokenizer_config.json", {"model_max_length": 4, "truncation_side": "left"}, "a b c d",
         "[CLS] c d [SEP]"),
        (BERT, {"do_lower_case": True}, "A [SEP] B", "[CLS] a [UNK] [UNK] [UNK] b [SEP]"),
    ],
)  # fmt: skip
def test_texts_are_cut_and_lowered_as_files_say(tmp_path, file, settings, text, read):
    found = pooled(tmp_path, text, files={file: settings})
    assert found == pytest.approx(states(*read.split()).mean(axis=0), abs=1e-6)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"add_eos_token": True, "eos_token": "[SEP]"}, False),
        ({"add_eos_token": True, "eos_token": {"content": "[PAD]"}}, True),
        ({"add_eos_token": False, "eos_token": "[SEP]"}, True),
        ({"add_bos_token": False, "bos_token": "[CLS]"}, True),
        ({"add_bos_token": True, "bos_token": "[CLS]"}, False),
        ({"add_bos_token": True}, False),
        ({"do_lower_case": False}, False),
    ],
)
def test_tokenizer_files_that_contradict_each_other_are_refused(tmp_path, said, wrong):
    folder = write_encoder(tmp_path / "m", files={"tokenizer_config.json": said})
    if wrong:
        assert "is not certain" in refusal(folder)
    else:
        assert OnnxEncoder(folder).embed(["a"]).shape == (1, 6)


@pytest.mark.parametrize("key", ["do_lower_case", "tokenize_chinese_chars", "add_prefix_space"])
def test_what_the_two_tokenizer_files_see_differently_is_refused(tmp_path, key):
    from tokenizers import normalizers, pre_tokenizers

    folder = write_encoder(tmp_path / "m", files={"tokenizer_config.json": {key: True}})
    for value in (True, False):
        found = tokenizer()
        if key == "add_prefix_space":
            level = pre_tokenizers.ByteLevel(add_prefix_space=value)
            found.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), level])
        else:
            found.normalizer = normalizers.BertNormalizer(lowercase=value, strip_accents=value, handle_chinese_chars=value)  # fmt: skip
        (folder / "tokenizer.json").write_text(found.to_str())
        if value:
            assert OnnxEncoder(folder).embed(["a"]).shape == (1, 6)
        else:
            assert repr(key) in refusal(folder)


def test_a_graph_that_mixes_padding_into_a_row_gets_rows_of_one_length(tmp_path):
    folder = write_encoder(tmp_path / "m", inputs=("input_ids",), mixes=True)
    texts = ["a b", "a b c d soup a b c", "a", "c d a"]
    together = OnnxEncoder(folder, batch_size=8).embed(texts)
    alone = [OnnxEncoder(folder).embed([text])[0] for text in texts]
    assert np.array_equal(together, alone)
    own = states("[CLS]", "a", "b", "[SEP]")
    assert together[0] == pytest.approx(unit(own.mean(axis=0)), abs=1e-6)
    masked = write_encoder(tmp_path / "n", mixes=True)  # a mask that the graph does not heed
    assert np.array_equal(OnnxEncoder(masked, batch_size=8).embed(texts), alone)


def test_texts_beyond_the_place_where_rotary_factors_change_are_refused_with_counts(tmp_path):
    scaling = {"rope_type": "longrope", "original_max_position_embeddings": 6}
    config = {"model_type": "phi3", "max_position_embeddings": 64, "rope_scaling": scaling}
    folder = write_encoder(tmp_path / "m", files={"config.json": config})
    assert OnnxEncoder(folder).embed(["a b c d"]).shape == (1, 6)
    with pytest.raises(ModelError, match=r"1 of 2 texts are too long .* has 7 tokens, but after 6"):
        OnnxEncoder(folder).embed(["a b c d a", "a"])


def test_states_of_another_shape_than_one_a_token_are_not_pooled(tmp_path):
    folder = write_encoder(tmp_path / "m")
    model = encoder_graph()
    [mixed] = [node for node in model.graph.node if list(node.output) == ["mixed"]]
    mixed.output[0] = "all"
    slim = onnx.helper.make_node("Slice", ["all", "begin", "end", "axis"], ["mixed"])
    model.graph.node.insert(list(model.graph.node).index(mixed) + 1, slim)
    for name, number in (("begin", 0), ("end", 2), ("axis", 1)):
        model.graph.initializer.append(
            onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [1], [number])
        )
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    assert "expected one vector a token" in refusal(folder)
