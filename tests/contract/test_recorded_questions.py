"""A recorded answer counts for the question that it answers, never for another of the same name."""

import itertools
import json
import unicodedata

import pytest
from contract.conftest import ASKED, SOURCES

from fairgate.domain.cases import Case
from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusDocument
from fairgate.systems.generator import prompt_alone
from fairgate.systems.recorded_answers import questions_hash, read_recorded

CASE = Case(
    key="s", query='"Fine."', suite="x", instruction="Positive or negative?", labels=("a",),
    cluster="s", item_text='"Fine." Say.', before=("Hello",), options=("a", "b"),
    changed=CorpusDocument(id="d", text="A document."),
)  # fmt: skip
OTHERS = {
    "query": CASE._replace(query='"Not fine."'),
    "text": CASE._replace(item_text='"Not fine." Say.'),
    "instruction": CASE._replace(instruction="Toxic or not?"),
    "before": CASE._replace(before=("Goodbye",)),
    "changed": CASE._replace(changed=CorpusDocument(id="d", text="Another document.")),
    "changed id": CASE._replace(changed=CorpusDocument(id="e", text="A document.")),
    "changed away": CASE._replace(changed=None),
}


def line(case, *told):
    said = {
        "query": case.query, "prompt": prompt_alone(case), "before": list(case.before),
        "changed": case.changed and {"id": "d", "text": case.changed.text},
        "instruction": case.instruction,
    }  # fmt: skip
    return {"key": case.key, "response": "positive", **{name: said[name] for name in told}}


def complaint(tmp_path, record, case):
    """Return what is said of a line for a case; empty where nothing is."""
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
    try:
        read_recorded(str(tmp_path / "a.jsonl")).require_same_questions([case])
    except DataError as error:
        return str(error)
    return ""


def is_same(tmp_path, record, case):
    said = complaint(tmp_path, record, case)
    return not ("1 line answers another question" in said and "'s' on line 1" in said)


TELLS = {"query": {"query"}, "prompt": {"text", "instruction"}, "before": {"before"},
         "changed": {"changed", "changed id", "changed away"}, "instruction": {"instruction"}}  # fmt: skip


def test_every_part_of_a_question_that_a_line_tells_counts(tmp_path):
    """Whatever parts a line tells, with the query or prompt or alone: those that differ are found."""
    wrong = []
    for number in range(1, len(TELLS) + 1):
        for told in itertools.combinations(TELLS, number):
            record = line(CASE, *told)
            if not is_same(tmp_path, record, CASE):
                wrong.append((told, "the same"))
            found = {name for name, case in OTHERS.items() if not is_same(tmp_path, record, case)}
            owed = set().union(*(TELLS[name] for name in told))
            if not owed <= found:
                wrong.append((told, owed - found))
    assert not wrong


WAYS = {
    "line ends": lambda text: f" {text}\r\n",
    "spaces that do not break": lambda text: text.replace(" ", "\u00a0"),
    "letters in parts": lambda text: unicodedata.normalize("NFD", text),
    "a byte-order mark": lambda text: f"\ufeff{text}",
    "an invisible space": lambda text: f"{text}\u200b",
    "two spaces": lambda text: text.replace(" ", "  "),
}


def test_what_is_no_other_question_is_none(tmp_path):
    case = CASE._replace(query='"Café, fine."', item_text='"Café, fine." Say.')
    told = line(case, *TELLS)
    alike = {
        "documents in the prompt": told
        | {"prompt": f"{case.instruction}\n\nDocuments:\n[1] x\n\n{case.text}\nAnswer:"},
        "nothing told": line(case),
        "null": dict.fromkeys(TELLS) | line(case),
    }
    for way, write in WAYS.items():
        alike |= {f"{name}: {way}": told | {name: write(told[name])}
                  for name in ("query", "prompt", "instruction")}  # fmt: skip
        alike[f"before: {way}"] = told | {"before": [*map(write, told["before"])]}
    assert not [name for name, record in alike.items() if not is_same(tmp_path, record, case)]


FRAMES = ("{i}\n\n{t}\nAnswer:", "{i}\n\n{t}", "{t}\n{i}", "{i} Text: {t} Answer:", "<s>{i} <t>{t}</t>",
          '{i}\n"{t}"', "Review: {t} {i}", "{i}\n\nDocuments:\n[1] x\n\n{t}\nAnswer:", "## {i}\n{t}")  # fmt: skip


def test_a_text_that_was_cut_is_another_one_in_whatever_prompt(tmp_path):
    """Where a line tells its prompt alone, what is left of a text is not taken for it."""
    case = CASE._replace(item_text=None, query="The food is good.", before=(), changed=None)
    wrong = []
    for frame in FRAMES:
        for said in (
            "{}",
            "I doubt that. {}",
            "Nobody says that {}",
            "{} Not at all.",
            "{} And cheap.",
        ):
            record = line(case) | {
                "prompt": frame.format(i=case.instruction, t=said.format(case.text))
            }
            if is_same(tmp_path, record, case) != (said == "{}"):
                wrong.append((frame, said))
    assert not wrong


@pytest.mark.parametrize(("field", "value"), [
    ("query", 3), ("query", ["a"]), ("prompt", [{"role": "user", "content": "a"}]), ("instruction", 1),
    ("before", "Hello"), ("before", [1]), ("changed", "d"),
])  # fmt: skip
def test_what_a_line_tells_in_another_type_is_refused_with_its_line(tmp_path, field, value):
    (tmp_path / "a.jsonl").write_text(json.dumps(line(CASE) | {field: value}) + "\n")
    with pytest.raises(DataError, match=rf"a\.jsonl:1: .*{field}.*expected"):
        read_recorded(str(tmp_path / "a.jsonl"))


def test_a_line_without_the_turns_or_document_of_its_case_ties_nothing(tmp_path):
    """Which of two follow-ups it answers is told by them alone: the query is the same."""
    turns, document = CASE._replace(changed=None), CASE._replace(before=())
    wrong = []
    for case, part in ((turns, "before"), (document, "changed"), (CASE, "both")):
        for told in ({"query"}, {"query", "before"}, {"query", "changed"}, {*TELLS}, {"before"}):
            known = CASE._replace(before=("Hello",), changed=CASE.changed)
            (tmp_path / "a.jsonl").write_text(json.dumps(line(known, *told)) + "\n")
            sentence = read_recorded(str(tmp_path / "a.jsonl")).untied("", [case])
            needed = {"query", *({part} if part != "both" else {"before", "changed"})}
            if bool(sentence) == (needed <= told):
                wrong.append((part, told, sentence))
    assert not wrong


def test_a_line_without_a_suite_answers_no_second_instruction(tmp_path):
    """And with one, or where the suites ask alike, it answers all that it is for."""
    other = CASE._replace(suite="y", instruction="Toxic or not?")
    alike, repeated = CASE._replace(suite="y"), CASE._replace(key="t", instruction="Else?")
    both = [line(CASE, "query") | {"suite": "x"}, line(other, "query") | {"suite": "y"}]
    wrong = []
    for lines, cases, is_refused in (
        ([line(CASE, "query")], [CASE, other], True),
        ([line(CASE)], [CASE, other], True),
        ([line(CASE), both[1]], [CASE, other], False),
        (both, [CASE, other], False),
        ([line(CASE, "query")], [CASE, alike], False),
        ([line(CASE), {"key": "t", "response": ""}], [CASE, repeated], False),
    ):
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        try:
            read_recorded(str(tmp_path / "a.jsonl")).require_same_questions(cases)
            refused = ""
        except DataError as error:
            refused = str(error)
        if ("does not say which of them it answers" in refused) != is_refused:
            wrong.append((lines, refused))
    assert not wrong


def test_the_hash_of_questions_is_of_what_is_asked_alone():
    assert {questions_hash([case]) for case in OTHERS.values()} & {questions_hash([CASE])} == set()
    more = CASE._replace(key="t")
    assert questions_hash([CASE, more]) == questions_hash([more, CASE])
    other = CASE._replace(suite="y", labels=(), oracle="z", top_k=3, cluster="u")
    assert questions_hash([other]) == questions_hash([CASE])


@pytest.fixture
def recorded(place):
    """Return a function that answers the plan, with so much of each line as is named."""

    def answer(*kept, count=SOURCES):
        place.sources(count)
        (place.root / "answers.jsonl").touch()
        place.policy({"recorded": "answers.jsonl"}, **{"metric: asr/retrieval, max: 0.1, regression: 0.02": "parity: unreadable, max: 0.1"})  # fmt: skip
        assert place.call("plan", "app.yaml") == 0, place.err
        rows = [json.loads(text) for text in place.out.splitlines()]
        assert [sum("plan" in row for row in rows), "plan" in rows[0]] == [1, True]
        lines = [
            {name: row[name] for name in ("key", *kept) if name in row} | {"response": "positive"}
            for row in rows
        ]
        put(place, lines)
        return lines

    return answer


def put(place, lines):
    (place.root / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))


def edited(place, number):
    file = place.root / "sources.jsonl"
    file.write_text(file.read_text().replace(f"Text number {number} is", f"Text no. {number} is"))


def judged(place):
    """Return the codes of a run and of `check`, and all that they say."""
    run = place.call("run", "app.yaml", "--out", "out", "--quiet")
    said = place.out + place.err
    check = place.call("check", "app.yaml")
    return run, check, said, place.out + place.err


@pytest.mark.parametrize("kept", [("query",), ("prompt",), ("query", "prompt"), ("plan",)])
def test_answers_to_sources_that_were_edited_are_refused(place, recorded, kept):
    """The constant answer has no verdict by itself; it is no error."""
    recorded(*kept)
    run, check, said, _ = judged(place)
    assert (run, check) == (5, 0)
    assert "nothing ties" not in said
    edited(place, 3)
    run, check, said, checked = judged(place)
    assert (run, check) == (4, 2)
    for text in (said, checked):
        assert "other questions than the plan's" in text or (
            "23 lines answer another question than the plan asks" in text and "'s3' on line" in text
        )


def test_what_ties_nothing_is_told_in_the_report(place, recorded):
    recorded()
    _, check, _, checked = judged(place)
    assert (
        f"nothing ties {ASKED} of {ASKED} lines" in (place.root / "out" / "report.md").read_text()
    )
    assert check == 0
    assert f"nothing ties {ASKED} of {ASKED} lines" in checked
    lines = recorded("query")
    put(place, [{"key": row["key"], "response": row["response"]} if n < 9 else row for n, row in enumerate(lines)])  # fmt: skip
    judged(place)
    assert f"nothing ties 9 of {ASKED} lines" in (place.root / "out" / "report.md").read_text()


def test_a_first_look_at_a_recording_is_no_other_plan(place, recorded):
    recorded("plan")
    code = place.call("run", "app.yaml", "--limit", "2", "--quiet", "--out", "look")
    assert code in (0, 5), place.err


def test_answers_of_a_run_are_a_recording_and_are_judged_again_for_their_own_texts(place, recorded):
    recorded("query")
    place.call("run", "app.yaml", "--out", "out", "--quiet")
    (place.root / "answers.jsonl").write_text((place.root / "out/executions.jsonl").read_text())
    run, check, said, _ = judged(place)
    assert (run, check) == (5, 0), said
    assert "nothing ties" not in said
    assert place.call("rescore", "out") == 5, place.err
    edited(place, 2)
    assert place.call("rescore", "out") == 2
    assert "was asked other questions than it asks now" in place.err
    assert judged(place)[:2] == (4, 2)


def test_sources_without_ids_are_found_by_what_they_say(place, recorded):
    """A row that moves keeps its answers; one that is new or edited has none."""
    recorded("key")
    texts = [f"Text number {n} is fine." for n in range(SOURCES)]

    def write(listed):
        rows = "".join(json.dumps({"text": text}) + "\n" for text in listed)
        (place.root / "sources.jsonl").write_text(rows)
        assert place.call("plan", "app.yaml") == 0, place.err
        return {row["key"]: row["query"] for row in map(json.loads, place.out.splitlines())}

    first = write(texts)
    assert write(texts[::-1]) == first
    shorter, edited_, twice = (
        write(texts[1:]),
        write(["New.", *texts[1:]]),
        write([*texts, texts[0]]),
    )
    assert shorter.items() <= first.items()
    assert shorter.items() <= edited_.items()
    assert not (edited_.keys() - shorter.keys()) & first.keys()
    assert first.items() <= twice.items()
    assert len(twice) == (SOURCES + 1) * 23
