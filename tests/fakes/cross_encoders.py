"""A folder with a tiny ONNX cross-encoder: a text entails each whose words it has."""

import json
import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LABELS = ("contradiction", "entailment", "neutral")
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")


def write_cross_encoder(folder, texts, *, labels=LABELS, most_tokens=512, factor=1.0):
    """Write a folder whose vocabulary is the words of `texts`, with scores in the labels' order."""
    folder.mkdir(parents=True, exist_ok=True)
    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]+", text)})
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *words))}
    (folder / "tokenizer.json").write_text(_tokenizer(vocabulary).to_str())
    graph = _graph(len(vocabulary), labels, factor)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    config = {
        "model_type": "bert",
        "max_position_embeddings": most_tokens,
        "id2label": {str(number): label for number, label in enumerate(labels)},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def _tokenizer(vocabulary):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def _graph(words, labels, factor):
    """Score `entailment` by the words of the second text that the first lacks."""
    value, node = helper.make_tensor_value_info, helper.make_node
    nodes = [
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        node("Mul", ["mask", "types"], ["of_second"]),
        node("Sub", ["mask", "of_second"], ["of_first"]),
        node("OneHot", ["input_ids", "words", "switch"], ["which"]),
    ]
    for text in ("first", "second"):
        nodes += [
            node("Unsqueeze", [f"of_{text}", "last"], [f"wide_{text}"]),
            node("Mul", ["which", f"wide_{text}"], [f"own_{text}"]),
            node("ReduceMax", [f"own_{text}"], [text], axes=[1], keepdims=0),
        ]
    nodes += [
        node("Sub", ["second", "first"], ["more"]),
        node("Relu", ["more"], ["lacking"]),
        node("ReduceSum", ["lacking", "width"], ["count"], keepdims=1),
        node("Mul", ["count", "slope"], ["sloped"]),
        node("Add", ["sloped", "offset"], ["logits"]),
    ]
    slope = {"entailment": -1.0, "neutral": 1.0, "contradiction": 0.0}
    offset = {"entailment": 0.5, "neutral": -0.5, "contradiction": -9.0}
    constant = numpy_helper.from_array
    graph = helper.make_graph(
        nodes,
        "cross-encoder",
        [
            value(name, TensorProto.INT64, ["rows", "w"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [value("logits", TensorProto.FLOAT, ["rows", len(labels)])],
        [
            constant(np.array([words], np.int64), "words"),
            constant(np.array([0, 1], np.float32), "switch"),
            constant(np.array([2], np.int64), "last"),
            constant(np.array([1], np.int64), "width"),
            *(
                constant(np.array([by.get(n, 0.0) for n in labels], np.float32) * factor, name)
                for name, by in (("slope", slope), ("offset", offset))
            ),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
