"""Files of Ragas and deepeval as a recorded system: found by the question, judged like any other."""

import json
import re
from pathlib import Path

import pytest
from contract.conftest import ASKED, NO_RETRIEVAL, SOURCES
from contract.test_recorded_questions import WAYS
from fakes.rag_app import reply
from ruamel.yaml import YAML

FORMS = {
    "ragas": lambda q, answer, texts, _: {
        "user_input": q, "retrieved_contexts": texts, "response": answer, "reference": "unused",
    },
    "deepeval": lambda q, answer, texts, _: {
        "input": q, "actual_output": answer, "retrieval_context": texts, "expected_output": None,
    },
    "own": lambda q, answer, _, hits: {"q": q, "said": {"text": answer}, "hits": hits},
}  # fmt: skip
OWN = {"question": "$.q", "answer": "$.said.text", "documents": "$.hits[*]"}
TEXTS = {"asr/retrieval, max: 0.1": "retrieval/mean-distance, max: 1.0"}


@pytest.fixture
def rows(place):
    def write(form, asked="query", **rules):
        (place.root / "rows.jsonl").touch()
        system = {"recorded": "rows.jsonl", "columns": OWN if form == "own" else form}
        place.policy(system, **TEXTS)
        assert place.call("plan", "app.yaml") == 0, place.err
        found = []
        for row in map(json.loads, place.out.splitlines()):
            given = reply(row["query"], **rules)
            texts = [document["text"] for document in given["contexts"]]
            found.append(FORMS[form](row[asked], given["answer"], texts, given["contexts"]))
        put(place, found)
        return system, found

    return write


def put(place, found):
    (place.root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))


@pytest.mark.walk(1)
@pytest.mark.parametrize(("form", "asked"), [("ragas", "query"), ("deepeval", "prompt"), ("own", "query")])  # fmt: skip
def test_a_file_of_another_tool_has_the_verdict_of_the_same_answers(place, rows, form, asked):
    system, _ = rows(form, asked)
    assert place.gate(system, **TEXTS) == 0, place.err
    assert len(place.executions()) == ASKED
    figures = {m["metric"]: m["value"] for m in place.record()["measurements"] if not m["where"]}
    assert figures["retrieval/mean-distance"] is not None
    system, _ = rows(form, asked, biased=["An Asian", "A Black"])
    assert place.gate(system, **TEXTS) == 1
    failed = {rule["metric"] for rule in place.record()["rules"] if rule["outcome"] == "fail"}
    assert failed == {"asr/generation"}


@pytest.mark.parametrize(
    ("form", "change", "words"),
    [
        ("ragas", lambda rows: [*rows[:3], {"question": "x", "response": "y"}],
         ["rows.jsonl:4: no text at `$.user_input`", "'question', 'response'"]),
        ("ragas", lambda rows: [*rows[:3], {**rows[3], "response": 7}],
         ["rows.jsonl:4: `$.response` is 7; expected text"]),
        ("ragas", lambda rows: [*rows, {**rows[0], "response": "mixed"}],
         [f"rows.jsonl:{ASKED + 1}: question", "answered differently at ",
          "rows.jsonl:1; expected one answer"]),
        ("ragas", lambda rows: [{**rows[0], "retrieved_contexts": "one text"}],
         ["rows.jsonl:1: the answer has no list at `$.retrieved_contexts`"]),
        ("own", lambda rows: [{k: v for k, v in rows[0].items() if k != "hits"}],
         ["rows.jsonl:1: the answer has no list at `$.hits[*]`"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_row_is_said_with_its_line(place, rows, form, change, words):
    system, found = rows(form)
    put(place, change(found))
    assert place.gate(system, **TEXTS) == 4
    assert not [each for each in words if each not in place.err]


def without_documents(row, missing):
    name = "retrieved_contexts" if "retrieved_contexts" in row else "retrieval_context"
    return {k: v for k, v in row.items() if k != name} if missing else {**row, name: None}


@pytest.mark.walk(1)
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("form", ["ragas", "deepeval"])
def test_rows_without_documents_are_judged_by_their_answers(place, rows, form, missing):
    """And a rule on documents has no verdict then, also where a part of the rows has some."""
    system, found = rows(form)
    bare = [without_documents(row, missing) for row in found]
    put(place, bare)
    assert place.gate(system, **TEXTS) == 5, place.err
    assert not any("documents" in row for row in place.executions())
    assert place.gate(system, **NO_RETRIEVAL) == 0, place.err
    put(place, [*bare[:200], *found[200:]])
    assert place.gate(system, **TEXTS) == 5, place.err
    biased = rows(form, biased=["An Asian", "A Black"])[1]
    put(place, [without_documents(row, missing) for row in biased])
    assert place.gate(system, **NO_RETRIEVAL) == 1, place.err


def test_a_question_that_no_row_asks_is_no_verdict_and_check_counts(place, rows):
    system, found = rows("deepeval")
    put(place, [*found[1:], found[1]])
    assert place.gate(system, **TEXTS) == 5
    assert place.call("check", "app.yaml") == 0, place.err
    assert f"{ASKED - 1} of {ASKED} questions answered; first missing: 's0'" in place.out


def test_a_question_is_found_in_whatever_way_it_was_written(place, rows):
    (place.root / "sources.jsonl").write_text(
        "".join(f'{{"id": "s{n}", "text": "Café number {n} is fine."}}\n' for n in range(SOURCES)),
        encoding="utf-8",
    )
    system, found = rows("ragas")
    for way, write in WAYS.items():
        put(place, [{**row, "user_input": write(row["user_input"])} for row in found])
        assert place.gate(system, **TEXTS) == 0, (way, place.err)


def test_a_row_answers_no_second_instruction(place, rows):
    """Two suites put the same texts with other instructions: a row that tells the text is neither."""
    system, found = rows("ragas")
    suite = (
        "  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [race, gender], phrases: 1,\n"
        "     control: paper}\n"
    )
    both = {
        **TEXTS,
        suite: suite + suite.replace("id: s", "id: t").replace("sentiment", "toxicity"),
    }
    assert place.gate(system, **both) == 4
    words = "is asked with the instructions 'What is the sentiment"
    assert words in place.err
    assert place.call("check", "app.yaml") == 2
    assert words in place.err
    assert place.call("plan", "app.yaml") == 0, place.err
    asked = [*map(json.loads, place.out.splitlines())]
    put(place, [{**found[0], "user_input": row["prompt"],
                 "response": "positive" if row["suite"] == "s" else "not toxic"}
                for row in asked])  # fmt: skip
    assert place.gate(system, **both) in (0, 5), place.err
    assert len(place.executions()) == 2 * ASKED


@pytest.mark.parametrize("form", FORMS)
def test_check_tells_that_sources_have_changed_since_rows_were_recorded(place, rows, form):
    rows(form)
    path = place.root / "sources.jsonl"
    whole = path.read_text()
    first, *others = map(json.loads, whole.splitlines())
    edited = [{**first, "text": f"New. {first['text']}"}, *others]
    path.write_text("".join(json.dumps(row) + "\n" for row in edited))
    assert place.call("check", "app.yaml") == 0, place.err
    assert "sources have changed since the answers were recorded" in place.out
    assert "answer no question, first" in place.out
    path.write_text(whole)
    assert place.call("check", "app.yaml") == 0, place.err
    assert "sources have changed" not in place.out
    path.write_text("".join(whole.splitlines(keepends=True)[1:]))  # a suite may ask less
    assert place.call("check", "app.yaml") == 0, place.err
    assert "sources have changed" not in place.out


def test_an_unknown_tool_and_an_unknown_path_are_errors_of_the_policy(place):
    (place.root / "rows.jsonl").touch()
    place.policy({"recorded": "rows.jsonl", "columns": "trulens"})
    assert place.call("check", "app.yaml") == 2
    place.policy({"recorded": "rows.jsonl", "columns": {"question": "$.a[*]"}})
    assert place.call("check", "app.yaml") == 2
    assert "names several parts" in place.err


def test_the_forms_on_the_page_are_these(place):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "own-system.md"
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    named = [YAML(typ="safe").load(block)["system"] for block in blocks]
    forms = [system for system in named if "columns" in system]
    assert len(forms) == 2
    for system in forms:
        (place.root / "data").mkdir(exist_ok=True)
        (place.root / system["recorded"]).touch()
        place.policy(system)
        assert place.call("check", "app.yaml") == 0, place.err
