"""Every model is right or refused: architectures × kinds of graphs, against `transformers.generate`.

Compares the table of models.md; `UPDATE_TABLES=1 make test-export` writes it. `make
test-export` asks a row of every architecture, and one model in all formats; `make test-export-whole` the
others.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from builder_graphs import build  # noqa: E402
from comparing import Outcome, compare  # noqa: E402
from graph_kinds import BUILT, EXPORTED, KINDS, export, store_as  # noqa: E402
from model_families import FAMILIES, WINDOW  # noqa: E402
from originals import PROMPTS, original  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
DOCUMENT = Path(__file__).parent / "models.md"
BEGIN, END = "<!-- table: generated -->", "<!-- end of table -->"
BY_NAME = {family.name: family for family in FAMILIES}
UPDATE = bool(os.environ.get("UPDATE_TABLES"))
EMPTY = "·"
DYNAMIC = "optimum dynamic int8"
SHOWN = tuple(kind for kind in KINDS if kind != DYNAMIC)
"""Dynamic quantisation is refused for every model, which one sentence of the page says."""
ALL_FORMATS = "Llama 2"
IN_FEWER_BITS = frozenset(
    {
        ALL_FORMATS,
        "Mistral 0.1 (window)",
        "Phi-3 128k (LongRoPE)",
        "Gemma 2 (windows)",
        "Qwen 3 MoE",
    }
    | {"Granite", "GPT-OSS (windows, sinks)", "DeepSeek V3", "GPT-2", "MPT (ALiBi)"}
)
"""Formats change products with weights, whatever the architecture: these have all kinds of them. The
others are compared in fewer bits where the table is written."""
VARIANTS = frozenset({"Llama 3.1", "Mistral 0.3", "Phi-3", "Phi-3 4k (window)", "Qwen 2"})
"""Other settings of an architecture of which another row is asked always."""
PARTS = {name: f"table {0 if UPDATE else number // 16}" for number, name in enumerate(BY_NAME)}
"""Which test process makes a model's graphs; the builder runs once in each."""
COUNTS_SLOTS = {"MPT (ALiBi)"}
"""Models that know no positions but the places of the cache; the page names them."""
ROUNDED_BY_TRANSFORMERS = {"Falcon RW (ALiBi)"}
"""Models of which transformers rounds a part to bfloat16 that the graph computes in float32."""


@pytest.fixture(scope="session")
def cache(request):
    return request.config.cache.mkdir("original-models")


def kinds_of(name, *, fewer):
    """Return the kinds of graphs that a row is asked for: in fp32, or in fewer bits."""
    is_made = not fewer or UPDATE or name in IN_FEWER_BITS
    return [kind for kind in KINDS if is_made and kind.endswith("fp32") != fewer]


@pytest.fixture(scope="session")
def built(request, cache, tmp_path_factory):
    """Return a function: a model's name to the builder's folders by precision, None if refused."""
    params = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = [one.params for one in params if one is not None and "fewer" in one.params]
    asked = {(one["name"], one["fewer"]) for one in chosen}
    known = {}

    def of(name, kinds):
        part = PARTS[name]
        if part not in known:
            root = tmp_path_factory.mktemp("builder")
            wishes = {
                (one.name, kind): (original(one, cache).folder, root / f"{number}-{kind}", kind)
                for number, one in enumerate(FAMILIES)
                for kind in BUILT
                if one.built and PARTS[one.name] == part
                and (UPDATE or (one.name, kind != "fp32") in asked)
            }  # fmt: skip
            refused = build(list(wishes.values())) if wishes else []
            known[part] = {
                key: None if refusal else target
                for (key, (_, target, _)), refusal in zip(wishes.items(), refused, strict=True)
            }
        folders = {kind: known[part].get((name, kind)) for kind in BUILT}
        return {kind: folder for kind, folder in folders.items() if f"builder {kind}" in kinds}

    return of


@pytest.fixture(scope="session")
def rows(cache, built, tmp_path_factory):
    """Return a function that gives a model's outcomes by kind of graph, each computed once."""
    known = {}

    def row(name, *, fewer):
        if (name, fewer) not in known:
            kinds, folder = kinds_of(name, fewer=fewer), tmp_path_factory.mktemp("graphs")
            known[name, fewer] = outcomes(BY_NAME[name], kinds, cache, built, folder)
        return known[name, fewer]

    return row


def outcomes(family, kinds, cache, built, folder):
    truth = original(family, cache)
    found = {}
    if family.exported:
        fp32 = folder / "fp32"
        export(truth.folder, fp32)
        for kind in EXPORTED:
            if f"optimum {kind}" in kinds:
                found[f"optimum {kind}"] = stored(fp32, folder / kind, kind, truth)
    if family.soft_caps:
        truth = original(family, cache, "eager")
    for precision, graph in built(family.name, kinds).items():
        if graph is not None:
            shutil.copy(truth.folder / "config.json", graph / "config.json")
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
    return {cells[0]: dict(zip(SHOWN, cells[1:], strict=True)) for cells in parts[1:]}


def asked_rows():
    """Yield name, whether it is asked in fewer bits, and the marks of each row."""
    for name, part in PARTS.items():
        for fewer in (False, True)[: 1 + (name in IN_FEWER_BITS)]:
            is_variant = name in VARIANTS or (fewer and name != ALL_FORMATS)
            marks = [pytest.mark.xdist_group(part), *([pytest.mark.whole] if is_variant else [])]
            yield pytest.param(name, fewer, marks=marks)


@pytest.mark.parametrize(("name", "fewer"), list(asked_rows()))
def test_a_model_is_right_or_refused_as_the_table_says(name, fewer, rows):
    found = rows(name, fewer=fewer)
    assert found, "no graph was made at all"
    for kind, outcome in found.items():
        if kind.endswith("fp32") and outcome.answered:
            near = name in ROUNDED_BY_TRANSFORMERS and outcome.equal_tokens and outcome.share < 0.02
            assert outcome.cell.startswith("exact") or near, f"{kind}: {outcome}"
        if kind == "optimum fp32" and outcome.answered:
            assert outcome.pads == (name not in COUNTS_SLOTS), f"{kind}: {outcome}"
        if kind == DYNAMIC:
            assert outcome.cell == "refused", f"{kind}: {outcome}"
    if UPDATE:
        return
    cells = documented_rows()[name]
    for kind in {*kinds_of(name, fewer=fewer)} - {DYNAMIC}:
        cell = re.sub(r" \[\w+\]$", "", cells[kind])
        outcome = found.get(kind)
        assert cell == EMPTY if outcome is None else outcome.agrees(cell), (
            f"{kind}: {outcome}, documented {cell}"
        )


@pytest.mark.xdist_group(PARTS["Phi-3"])
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


@pytest.mark.xdist_group("table 0")
def test_the_documented_table_is_this_one(rows):
    if UPDATE:
        DOCUMENT.write_text(
            with_table(DOCUMENT.read_text(encoding="utf-8"), rows), encoding="utf-8"
        )
    assert list(documented_rows()) == list(BY_NAME)


def with_table(text, rows):
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    notes = {rows(ALL_FORMATS, fewer=True)[DYNAMIC].refusal: "a"}
    lines = ["| Model | " + " | ".join(SHOWN) + " |", "|" + "---|" * (len(SHOWN) + 1)]
    for name in BY_NAME:
        found = rows(name, fewer=False) | rows(name, fewer=True)
        lines.append(
            f"| {name} | " + " | ".join(cell(found.get(kind), notes) for kind in SHOWN) + " |"
        )
    told = [f"- [{letter}] {message.partition('. ')[0]}" for message, letter in notes.items()]
    return (
        f"{head}{BEGIN}\n"
        + "\n".join([*lines, "", "Refusals, each by its first sentence:", "", *told])
        + f"\n{END}{tail}"
    )


def cell(outcome: Outcome | None, notes):
    if outcome is None:
        return EMPTY
    if not outcome.refusal:
        return outcome.cell
    letter = notes.setdefault(outcome.refusal, "abcdefghijklmnopqrstuvwxyz"[len(notes)])
    return f"{outcome.cell} [{letter}]"
