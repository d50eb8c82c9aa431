"""A folder with a tiny ONNX sequence classifier, and a classifier without a model."""

import json

import numpy as np
from fakes.encoders import TABLE, tokenizer
from onnx import TensorProto, helper, numpy_helper

from fairgate.domain.cases import Classified

LABELS = ("joy", "love", "anger", "fear", "sadness", "neutral")
MEANS = {
    "joy": "happy", "love": "happy", "anger": "angry", "fear": "fear", "sadness": "sad",
    "neutral": "neutral",
}  # fmt: skip


def write_classifier(folder, *, labels=LABELS, scores=6, outputs="logits", files=None):
    """Write a folder whose scores are the sum of the rows of a table for the text's own tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_graph(scores, outputs).SerializeToString())
    (folder / "tokenizer.json").write_text(tokenizer().to_str())
    config = {
        "model_type": "bert",
        "max_position_embeddings": 16,
        "id2label": {str(n): label for n, label in enumerate(labels)},
    }
    for name, content in ({"config.json": config} | (files or {})).items():
        (folder / name).write_text(json.dumps(content))
    return folder


def _graph(scores, output):
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["states"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["states", "wide"], ["own"]),
        helper.make_node("ReduceSum", ["own", "width"], [output], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [value(n, TensorProto.INT64, ["rows", "w"]) for n in ("input_ids", "attention_mask")],
        [value(output, TensorProto.FLOAT, ["rows", scores])],
        [
            numpy_helper.from_array(np.ascontiguousarray(TABLE[:, :scores]), "table"),
            numpy_helper.from_array(np.array([2], np.int64), "last"),
            numpy_helper.from_array(np.array([1], np.int64), "width"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class WordClassifier:
    """Gives the label of the first known word of a text, else `neutral`."""

    def __init__(self, words, margin=1.0, name="words"):
        self.words, self.margin, self.fingerprint = words, margin, f"words:{name}"
        self.asked = []

    def cuts(self, text):
        return len(text.split()) > 100

    def classify(self, texts):
        self.asked.append(list(texts))
        return [Classified(self._label(text), self.margin) for text in texts]

    def _label(self, text):
        return next((self.words[w] for w in text.lower().split() if w in self.words), "neutral")
