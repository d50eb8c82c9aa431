"""Encoders of real architectures, exported, against sentence-transformers: exact or refused.

Writes and compares their list in models.md.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from encoder_families import FAMILIES, publish

from fairgate.domain.errors import ModelError
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS

pytestmark = [
    pytest.mark.torch,
    pytest.mark.xdist_group("encoders"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning"),
]
torch = pytest.importorskip("torch")

PAGE = Path(__file__).parent / "models.md"
TEXTS = [
    "The soup was cold and nobody said sorry.",
    "What?",
    "",
    "  Spaces at both ENDS, and Ünïcödé 中文 🙂 ",
    "I would buy it again today; it works and it is quiet. " * 4,
    "The garden is quiet, the tram is late, and the bread of the corner shop is still warm. " * 12,
]
EXACT = 2e-4
BEGIN, END = "<!-- encoders: generated -->\n", "<!-- end of encoders -->"


GRAPHS: dict[str, Path] = {}
"""Exported graphs by what they were traced from: poolings, prompts and lengths are in other files."""


def compared(family, folder):
    """Return the largest difference of a component, or the refusal."""
    from sentence_transformers import SentenceTransformer

    from fairgate.features.onnx_export.command import ExportChoice, export_model

    published = publish(family, folder)
    traced = repr((family.config, family.sizes, {*family.modules} - {"Normalize"}))
    try:
        if traced in GRAPHS:
            shutil.copytree(published, folder / "onnx")
            shutil.copy(GRAPHS[traced], folder / "onnx")
        else:
            choice = ExportChoice(task="feature-extraction")
            export_model(str(published), folder / "onnx", choice)
            GRAPHS[traced] = folder / "onnx" / "model.onnx"
    except ModelError as error:
        return str(error).replace(str(folder), "")
    original = SentenceTransformer(str(published), device="cpu")
    worst = 0.0
    for side, encode in (("for_queries", original.encode_query), ("", original.encode_document)):
        expected = np.asarray(encode(TEXTS, batch_size=1), dtype=np.float64)
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        found = []
        for batch_size in (1, 16):
            encoder = OnnxEncoder(folder / "onnx", batch_size=batch_size)
            found.append((encoder.for_queries() if side else encoder).embed(TEXTS))
        assert np.array_equal(*found), "a vector depends on its batch"
        worst = max(worst, float(np.abs(found[0] - expected).max()))
    return worst


RESULTS: dict[tuple[str, str], str] = {}
REFUSED = {"Phi-3 (LongRoPE)": "rotary factors"}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.name} {f.kind}")
def test_a_family_is_exact_or_refused(family, tmp_path):
    result = compared(family, tmp_path)
    if family.name in REFUSED:
        assert REFUSED[family.name] in str(result)
        RESULTS[family.name, family.kind] = "refused: texts beyond its first rotary factors"
        return
    assert isinstance(result, float), result
    assert result <= EXACT
    RESULTS[family.name, family.kind] = "exact"


def test_the_list_in_the_docs_is_what_was_seen(request):
    if len(RESULTS) < len(FAMILIES):
        pytest.skip("only a part of the families was run")
    by_name: dict[str, dict[str, list[str]]] = {}
    for (name, kind), result in RESULTS.items():
        by_name.setdefault(result, {}).setdefault(name, []).append(kind)
    lines = [
        f"- {name}: {'; '.join(kinds)}{'' if result == 'exact' else f' ({result})'}\n"
        for result, names in by_name.items()
        for name, kinds in names.items()
    ]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    expected = f"{before}{BEGIN}{''.join(lines)}{END}{rest.partition(END)[2]}"
    if os.environ.get("UPDATE_TABLES"):
        PAGE.write_text(expected, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == expected, f"{PAGE} is stale"


@pytest.mark.filterwarnings("ignore")
def test_a_graph_with_modules_behind_its_pooling_is_read_at_its_end(tmp_path):
    """An export of optimum's own leaves modules.json out, and keeps the token states."""
    from optimum.exporters.onnx import main_export
    from sentence_transformers import SentenceTransformer

    family = next(family for family in FAMILIES if family.modules == ("Dense", "Normalize"))
    published = publish(family, tmp_path)
    folder = tmp_path / "onnx"
    main_export(
        str(published), output=folder, task="feature-extraction",
        library_name="sentence_transformers", do_validation=False,
    )  # fmt: skip
    assert not (folder / "modules.json").exists()
    expected = np.asarray(
        SentenceTransformer(str(published), device="cpu").encode(TEXTS, batch_size=1)
    )
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    found = OnnxEncoder(folder, choice=NO_PROMPTS).embed(TEXTS)
    assert np.abs(found - expected).max() <= EXACT
    with pytest.raises(ModelError, match=r"pools by itself.*Remove `pooling`"):
        OnnxEncoder(folder, choice=replace(NO_PROMPTS, pooling="mean")).embed(TEXTS)
