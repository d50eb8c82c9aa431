"""The graphs that are made of one model: exported, stored in fewer bits, built for onnxruntime-genai."""

import logging
import shutil
import warnings
from pathlib import Path

EXPORTED = ("fp32", "fp16", "int8", "int4", "dynamic int8")
BUILT = ("fp32", "int8", "int4")
KINDS = (*(f"optimum {one}" for one in EXPORTED), *(f"builder {one}" for one in BUILT))


def export(source: Path, target: Path) -> None:
    """Write the fp32 graph of a model with optimum, as `fairgate export` does before parity."""
    from optimum.exporters.onnx import main_export

    from fairgate.features.onnx_export.command import let_graphs_take_positions

    let_graphs_take_positions()
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(action="ignore"):
        main_export(
            str(source),
            output=target,
            task="text-generation-with-past",
            library_name="transformers",
            do_validation=False,
        )
    logging.disable(logging.NOTSET)


def store_as(fp32: Path, target: Path, kind: str) -> Path:
    """Copy an exported folder with its graph in another format."""
    shutil.copytree(fp32, target)
    graph = target / "model.onnx"
    if kind == "dynamic int8":
        from onnxruntime.quantization import quantize_dynamic

        logging.disable(logging.WARNING)
        quantize_dynamic(fp32 / "model.onnx", graph)
        logging.disable(logging.NOTSET)
    else:
        from fairgate.features.onnx_export.precision import change_precision

        change_precision(graph, kind)
    return target
