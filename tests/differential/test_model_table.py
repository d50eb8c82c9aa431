"""Every model is right or refused: architectures × kinds of graphs, against `transformers.generate`.

Compares the table of the reference page; `UPDATE_TABLES=1 make test-export` writes it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from builder_graphs import build  # noqa: E402
from comparing import Outcome, compare  # noqa: E402
from graph_kinds import BUILT, EXPORTED, KINDS, export, store_as  # noqa: E402
from model_families import FAMILIES, WINDOW  # noqa: E402
from originals import PROMPTS, original  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "models.md"
BEGIN, END = "<!-- table: generated -->", "<!-- end of table -->"
BY_NAME = {family.name: family for family in FAMILIES}
UPDATE = bool(os.environ.get("UPDATE_TABLES"))
EMPTY = "·"
COUNTS_SLOTS = {"MPT (ALiBi)"}
"""Models that know no positions but the places of the cache; the page names them."""
ROUNDED_BY_TRANSFORMERS = {"Falcon RW (ALiBi)"}
"""Models of which transformers rounds a part to bfloat16 that the graph computes in float32."""


@pytest.fixture(scope="session")
def cache(request):
    return request.config.cache.mkdir("original-models")


@pytest.fixture(scope="session")
def built(cache, tmp_path_factory):
    """Return for each model and precision the builder's folder, or None, in one run of it."""
    root = tmp_path_factory.mktemp("builder")
    wishes = {
        (family.name, precision): (original(family, cache).folder, root / f"{number}-{precision}", precision)
        for number, family in enumerate(FAMILIES)
        for precision in BUILT
        if family.built
    }  # fmt: skip
    refused = build(list(wishes.values()))
    return {
        key: None if refusal else target
        for (key, (_, target, _)), refusal in zip(wishes.items(), refused, strict=True)
    }


@pytest.fixture(scope="session")
def rows(cache, built, tmp_path_factory):
    """Return a function that gives a model's outcomes by kind of graph, computed once."""
    known = {}

    def row(name):
        if name not in known:
            known[name] = outcomes(BY_NAME[name], cache, built, tmp_path_factory.mktemp("graphs"))
        return known[name]

    return row


def outcomes(family, cache, built, folder):
    truth = original(family, cache)
    found = {}
    if family.exported:
        fp32 = folder / "fp32"
        export(truth.folder, fp32)
        for kind in EXPORTED:
            found[f"optimum {kind}"] = stored(fp32, folder / kind, kind, truth)
    if family.soft_caps:
        truth = original(family, cache, "eager")
    for precision in BUILT:
        graph = built.get((family.name, precision))
        if graph is not None:
            found[f"builder {precision}"] = compare(graph, truth)
    return found


def stored(fp32, folder, kind, truth):
    return compare(fp32 if kind == "fp32" else store_as(fp32, folder, kind), truth)


def documented_rows():
    text = DOCUMENT.read_text(encoding="utf-8")
    lines = text.partition(BEGIN)[2].partition(END)[0].splitlines()
    parts = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("| ")
    ]
    return {cells[0]: dict(zip(KINDS, cells[1:], strict=True)) for cells in parts[1:]}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_model_is_right_or_refused_as_the_table_says(name, rows):
    found = rows(name)
    assert found, "no graph was made at all"
    for kind, outcome in found.items():
        if kind.endswith("fp32") and outcome.answered:
            near = name in ROUNDED_BY_TRANSFORMERS and outcome.equal_tokens and outcome.share < 0.02
            assert outcome.cell.startswith("exact") or near, f"{kind}: {outcome}"
        if kind == "optimum fp32" and outcome.answered:
            assert outcome.pads == (name not in COUNTS_SLOTS), f"{kind}: {outcome}"
        if kind.endswith("dynamic int8"):
            assert outcome.cell == "refused", f"{kind}: {outcome}"
    if UPDATE:
        return
    cells = documented_rows()[name]
    for kind in KINDS:
        cell = re.sub(r" \[\w+\]$", "", cells[kind])
        outcome = found.get(kind)
        assert cell == EMPTY if outcome is None else outcome.agrees(cell), (
            f"{kind}: {outcome}, documented {cell}"
        )


@pytest.mark.parametrize(
    ("without", "with_window"),
    [
        ("Mistral 0.3", "Mistral 0.1 (window)"),
        ("Phi-3", "Phi-3 4k (window)"),
        ("Qwen 2", "Qwen 2 (window)"),
    ],
)
def test_the_windows_of_the_table_matter(without, with_window, cache):
    all_tokens = original(BY_NAME[without], cache).tokens
    last_tokens = original(BY_NAME[with_window], cache).tokens
    differs = [one != other for one, other in zip(all_tokens, last_tokens, strict=True)]
    beyond = [len(prompt) + len(all_tokens[0]) > WINDOW for prompt in PROMPTS]
    assert differs == beyond


def test_the_table_covers_what_it_promises():
    assert len(FAMILIES) >= 25
    assert len(KINDS) >= 4
    assert max(len(prompt) for prompt in PROMPTS) == 1071
    assert len(PROMPTS) == 10


def test_the_documented_table_is_this_one(rows):
    if UPDATE:
        DOCUMENT.write_text(
            with_table(DOCUMENT.read_text(encoding="utf-8"), rows), encoding="utf-8"
        )
    assert list(documented_rows()) == list(BY_NAME)


def with_table(text, rows):
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    notes: dict[str, str] = {}
    lines = ["| Model | " + " | ".join(KINDS) + " |", "|" + "---|" * (len(KINDS) + 1)]
    for name in BY_NAME:
        found = rows(name)
        lines.append(
            f"| {name} | " + " | ".join(cell(found.get(kind), notes) for kind in KINDS) + " |"
        )
    told = [f"- [{letter}] {message}" for message, letter in notes.items()]
    return (
        f"{head}{BEGIN}\n"
        + "\n".join([*lines, "", "Refusals, word for word:", "", *told])
        + f"\n{END}{tail}"
    )


def cell(outcome: Outcome | None, notes):
    if outcome is None:
        return EMPTY
    if not outcome.refusal:
        return outcome.cell
    letter = notes.setdefault(outcome.refusal, "abcdefghijklmnopqrstuvwxyz"[len(notes)])
    return f"{outcome.cell} [{letter}]"
