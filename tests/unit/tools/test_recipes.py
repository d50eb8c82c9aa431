"""The bundled models and data are what their recipes and cards say. No torch needed."""

import json
from collections import Counter
from pathlib import Path

import make_demo_data
import make_demo_people
import make_parity_prompts
import numpy as np
import pytest
from heldout import Greedy, label_of, question_items, sentiment_items

from fairgate.domain.executions import CorpusSpec
from fairgate.policy.definition_files import bundled_dimensions
from fairgate.suites.metamorphic.sources import read_sources

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "fairgate/data"


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def test_the_data_files_are_what_the_recipe_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_demo_data, "DATA", tmp_path)
    make_demo_data.main()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 5
    for path in written:
        assert path.read_bytes() == (DATA / path.relative_to(tmp_path)).read_bytes()


def test_the_cases_about_people_are_what_the_recipe_writes():
    file = DATA / "sources/demo-people.jsonl"
    assert file.read_text(encoding="utf-8") == "\n".join(make_demo_people.lines()) + "\n"
    for source in read_sources(CorpusSpec(path=str(file)), None, bundled_dimensions):
        assert [use.dimension.id for use in source.attributes] == list(make_demo_people.STATED)


def test_the_prompts_of_the_exports_comparison_are_what_the_recipe_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(make_parity_prompts, "OUTPUT", tmp_path)
    make_parity_prompts.main()
    packaged = (DATA / "parity/prompts.jsonl").read_bytes()
    assert (tmp_path / "parity/prompts.jsonl").read_bytes() == packaged
    assert len(set(packaged.splitlines())) == 28


def test_every_template_has_as_many_stereotyped_as_counter_contexts():
    balance: Counter[tuple[str, str]] = Counter()
    for item in rows("items/demo-bbq.jsonl"):
        if (item["question_polarity"], item["context_condition"]) != ("neg", "disambig"):
            continue
        group = item["answer_info"][f"ans{item['label']}"][1]
        hit = group in item["additional_metadata"]["stereotyped_groups"]
        balance[item["category"], item["question_index"]] += 1 if hit else -1
    assert len(balance) == 24
    assert set(balance.values()) == {0}


def test_minilm_equals_the_fp32_reference_vectors():
    onnxruntime = pytest.importorskip("onnxruntime")
    from tokenizers import Tokenizer

    folder, fixture = DATA / "models/minilm", ROOT / "tests/data/minilm_reference"
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    texts = json.loads((fixture / "texts.json").read_text(encoding="utf-8"))
    vectors = np.load(fixture / "vectors.npy", allow_pickle=False)
    for text, vector in zip(texts, vectors, strict=True):
        encoded = tokenizer.encode(text)
        given = (encoded.ids, encoded.attention_mask, encoded.type_ids)
        names = ("input_ids", "attention_mask", "token_type_ids")
        feeds = {name: np.array([row]) for name, row in zip(names, given, strict=True)}
        mean = session.run(None, feeds)[0][0].mean(axis=0)
        assert mean @ vector / np.linalg.norm(mean) >= 0.999


def accuracy(items: list) -> float:
    pytest.importorskip("onnxruntime")
    model = Greedy(DATA / "models/demo-slm")
    hits = [label_of(model.answer(i.prompt, 12) + " .", i.labels) == i.truth for i in items]
    return float(np.mean(hits))


@pytest.mark.whole
def test_demo_slm_reads_reviews_with_and_without_documents():
    assert accuracy(sentiment_items(80)) >= 0.9


@pytest.mark.whole
def test_demo_slm_reads_the_context_of_disambiguated_questions():
    assert accuracy([i for i in question_items(2) if i.where == "questions, disambiguated"]) >= 0.85
