"""A folder with a tiny ONNX encoder whose token states are a table's rows: easy to do by hand."""

import json

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WORDS = [
    "[PAD]", "[CLS]", "[SEP]", "[UNK]", "query", "passage", ":", "a", "b", "c", "d", "soup", "A",
]  # fmt: skip
TABLE = np.random.default_rng(5).normal(size=(len(WORDS), 6)).astype(np.float32)
PROMPTS = "config_sentence_transformers.json"
MODULES = ["Transformer", "Pooling", "Normalize"]


def write_encoder(folder, *, modules=MODULES, pooling="mean", files=None, **graph):
    """Write the folder and return it; `files` are further JSON files by name, None for none.

    Its prompts are named and empty, unless `files` says otherwise.
    """
    files = dict(files or {})
    if isinstance(given := files.get(PROMPTS, {}), dict):
        files[PROMPTS] = {"prompts": {"query": "", "document": ""}} | given
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(encoder_graph(**graph).SerializeToString())
    (folder / "tokenizer.json").write_text(tokenizer().to_str())
    own = {"config.json": {"model_type": "bert", "max_position_embeddings": 16}}
    if modules:
        kinds = [
            kind if "." in kind else f"sentence_transformers.models.{kind}" for kind in modules
        ]
        places = ["" if place == 0 else f"{place}_{kind}" for place, kind in enumerate(modules)]
        own["modules.json"] = [
            {"idx": place, "name": str(place), "path": path, "type": kind}
            for place, (path, kind) in enumerate(zip(places, kinds, strict=True))
        ]
    if pooling is not None:
        own["1_Pooling/config.json"] = {"pooling_mode": pooling, "word_embedding_dimension": 6}
    for name, content in (own | files).items():
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(json.dumps(content))
    return folder


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    found = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token=WORDS[3])
    )
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    found.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    found.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]"])
    return found


def encoder_graph(
    *,
    outputs=("last_hidden_state",),
    inputs=("input_ids", "attention_mask"),
    mixes=False,
    vector="sentence_embedding",
    kind=TensorProto.FLOAT,
):
    """Return a graph: a token's state is its row of the table; `mixes` adds the row's own mean.

    The output `sentence_embedding`, or `vector`, is the first token's state; others hold token states.
    """
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"])]
    nodes += [helper.make_node("ReduceMean", ["states"], ["mean"], axes=[1], keepdims=1)]
    nodes += [helper.make_node("Add", ["states", "mean" if mixes else "zero"], ["mixed"])]
    for name in outputs:
        if name == vector:
            nodes += [helper.make_node("Gather", ["mixed", "first"], [name], axis=1)]
        else:
            nodes += [helper.make_node("Cast", ["mixed"], [name], to=kind)]
    shapes, kinds = {vector: ["rows", 6]}, {vector: TensorProto.FLOAT}
    graph = helper.make_graph(
        nodes,
        "encoder",
        [value(name, TensorProto.INT64, ["rows", "width"]) for name in inputs],
        [
            value(name, kinds.get(name, kind), shapes.get(name, ["rows", "width", 6]))
            for name in outputs
        ],
        [
            numpy_helper.from_array(TABLE, "table"),
            numpy_helper.from_array(np.zeros(1, np.float32), "zero"),
            numpy_helper.from_array(np.array(0, np.int64), "first"),
        ],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
