"""Files of question items, format by format."""

import csv
import json
from pathlib import Path

import pytest

from fairgate.domain.cases import Alignment, Condition
from fairgate.domain.errors import DataError
from fairgate.io.named_files import find
from fairgate.policy.definition_files import unknown_wordings
from fairgate.suites.question_items.item_files import read_items


def read(path, **options):
    return read_items(str(path), unknown_wordings(), **options)


def info(first, second, third=("Unknown", "unknown")):
    """Return BBQ's text and group of each answer."""
    return {"answer_info": {"ans0": list(first), "ans1": list(second), "ans2": list(third)}}


def bbq_row(number, **changes):
    """Return row `number` of BBQ's schema; four in a row make a 4-tuple about one old person."""
    ambiguous, negative = number % 2 == 0, number % 4 < 2
    return {
        "example_id": number, "question_index": "7", "category": "Age",
        "question_polarity": "neg" if negative else "nonneg",
        "context_condition": "ambig" if ambiguous else "disambig",
        **info(("Ada", "old"), ("Bo", "nonOld")),
        "additional_metadata": {"stereotyped_groups": ["old"]},
        "context": "Ada, 80, and Bo, 20, met.",
        "question": "Who forgot it?" if negative else "Who remembered it?",
        "ans0": "Ada", "ans1": "Bo", "ans2": "Unknown",
        "label": 2 if ambiguous else (0 if negative else 1),
        **changes,
    }  # fmt: skip


def written(path, rows):
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def bbq(tmp_path, rows=None, name="items.jsonl"):
    return written(tmp_path / name, rows if rows is not None else [bbq_row(n) for n in range(4)])


def test_bbq_as_published(tmp_path):
    found = read(bbq(tmp_path))
    assert [item.key for item in found.items] == ["Age/0", "Age/1", "Age/2", "Age/3"]
    roles = [(item.stereotype, item.counter, item.unknown) for item in found.items]
    assert roles == [(0, 1, 2)] * 2 + [(1, 0, 2)] * 2
    assert [item.correct for item in found.items] == [2, 0, 2, 1]
    assert [item.condition for item in found.items] == [*Condition] * 2
    assert [item.alignment for item in found.items] == [None, Alignment.STEREOTYPE] * 2
    assert {item.group for item in found.items} == {"0"}
    assert {item.cluster for item in found.items} == {"Age/7"}


@pytest.mark.parametrize(
    ("groups", "stereotyped", "target"),
    [
        (("man", "F"), ["F"], 1),
        (("boy", "woman"), ["M"], 0),
        (("trans", "nonTrans"), ["Transgender women", "trans"], 0),
        (("Catholic", "Muslim"), ["Muslim", "Mormon"], 1),
        (("Europe", "Asia"), ["Elbonia"], 1),  # a nationality is found by its text
        (("highSES", "lowSES"), ["low SES"], 1),
        (("low SES", "high SES"), ["LowSES"], 0),
        (("MiddleEastern", "White"), ["Middle Eastern"], 0),
        (("F-Black", "F-White"), ["F Black"], 0),
        (("non_old", "Old "), ["old"], 1),
    ],
)
def test_the_target_is_the_answer_of_a_stereotyped_group(tmp_path, groups, stereotyped, target):
    changes = info(("Ruritania", groups[0]), ("Elbonia", groups[1]))
    changes["additional_metadata"] = {"stereotyped_groups": stereotyped}
    found = read(bbq(tmp_path, [bbq_row(n, **changes) for n in range(4)]))
    assert found.items[0].stereotype == target
    assert found.items[2].stereotype == 1 - target


def test_a_folder_is_read_file_by_file_beside_what_holds_no_items(tmp_path):
    bbq(tmp_path, name="Age.jsonl")
    bbq(tmp_path, [bbq_row(n, category="Religion") for n in range(4)], name="Religion.jsonl")
    (tmp_path / "vocabulary.csv").write_text("Name,Gender\nAda,f\n")
    assert [item.category for item in read(tmp_path).items] == ["Age"] * 4 + ["Religion"] * 4
    assert len(read(tmp_path, categories=["Religion"]).items) == 4


def test_jbbq_has_the_same_schema_without_groups_of_four(tmp_path):
    rows = [bbq_row(n, is_additional=0, category="gender") for n in (0, 1, 6)]
    found = read(written(tmp_path / "jbbq.jsonl", rows))
    assert [item.group for item in found.items] == ["0", "1", "6"]


KOBBQ = "sample_id\tlabel_annotation\tcontext\tquestion\tchoices\tbiased_answer\tanswer\tbbq_id\tbbq_category\tprediction\n"


def test_kobbq_names_the_biased_answer_itself(tmp_path):
    rows = [
        f"age-001b-002-{condition}-{bias}\tST\t맥락\t질문?\t['손자', '할머니', '알 수 없음']\t{biased}\t"
        f"{'알 수 없음' if condition == 'amb' else biased}\t1.0\tAge\t\n"
        for condition in ("amb", "dis")
        for bias, biased in (("bsd", "할머니"), ("cnt", "손자"))
    ]
    (tmp_path / "ko.tsv").write_text(KOBBQ + "".join(rows), encoding="utf-8")
    items = read(tmp_path / "ko.tsv").items
    found = [(item.stereotype, item.counter, item.unknown) for item in items]
    assert found == [(1, 0, 2), (0, 1, 2)] * 2
    assert [item.alignment for item in items[2:]] == [Alignment.STEREOTYPE] * 2
    assert {item.cluster for item in items} == {"age/001"}


CBBQ = "example_id,question_index,question_polarity,context_condition,category,subcategory,bias_targeted_groups,source,context,question,ans0,ans1,ans2,label\n"


def test_cbbq_finds_the_target_by_its_text_else_in_the_metadata(tmp_path):
    (tmp_path / "amb.csv").write_text(
        CBBQ + "1,1,neg,ambiguous,age,x,老龄人,y,两人见面。,谁,年轻人,老龄人,不确定,2\n"
        "2,1,neg,ambiguous,age,x,老龄人,y,两人见面。,谁,20岁的人,40岁的人,不确定,2\n",
        encoding="utf-8",
    )
    found = read(tmp_path / "amb.csv")
    assert [(item.key, item.stereotype) for item in found.items] == [("age/ambiguous-neg-1", 1)]
    assert "no single target" in found.excluded[0].reason
    rows = "category,example_id,stereotype_ans\nage,ambiguous-neg-2,1\n"
    (tmp_path / "metadata.csv").write_text(rows)
    found = read(tmp_path / "amb.csv", metadata=str(tmp_path / "metadata.csv"))
    assert [item.stereotype for item in found.items] == [1, 1]


def test_a_target_that_is_not_found_is_told_in_both_spellings(tmp_path):
    changes = info(("Ada", "poor"), ("Bo", "rich"))
    changes["additional_metadata"] = {"stereotyped_groups": ["low SES"]}
    with pytest.raises(DataError, match="are `poor` and `rich`, stereotyped are `low SES`"):
        read(bbq(tmp_path, [bbq_row(n, **changes) for n in range(4)]))


NAMES = {
    "bbq": {"question": "q", "ans0": "a", "answer_info": "groups", "example_id": "no"},
    "neutral": {"options": "answers", "id": "name", "context": "story", "stereotype": "biased"},
}  # fmt: skip


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_columns_may_have_other_names(tmp_path, ending):
    """And nested values of a CSV may be written by JSON or by Python."""
    own = NAMES["bbq"]
    rows = [
        {own.get(name, name): value for name, value in bbq_row(number).items()}
        for number in range(4)
    ]
    file = tmp_path / f"items{ending}"
    if ending == ".jsonl":
        written(file, rows)
    else:
        with file.open("w", newline="") as out:
            table = csv.DictWriter(out, rows[0])
            table.writeheader()
            for number, row in enumerate(rows):
                write = json.dumps if number % 2 else repr
                table.writerow({n: write(v) if isinstance(v, dict) else v for n, v in row.items()})
    with pytest.raises(DataError, match="say with `columns` what they are called here"):
        read(file)
    found = read(file, columns=own)
    assert found.items == read(bbq(tmp_path, name="other.jsonl")).items
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / file.name).write_bytes(file.read_bytes())
    assert read(folder, columns=own).items == found.items
    with pytest.raises(DataError, match="no column 'nowhere'"):
        read(file, columns={**own, "question": "nowhere"})


def test_esbbq_has_its_groups_in_the_row_and_other_names(tmp_path):
    rows = []
    for number in range(4):
        row = bbq_row(number)
        row["stereotyped_groups"] = row.pop("additional_metadata")["stereotyped_groups"]
        rows.append(
            row | {"instance_id": row.pop("example_id"), "template_id": row.pop("question_index")}
        )
    columns = {"example_id": "instance_id", "question_index": "template_id"}
    found = read(written(tmp_path / "es.jsonl", rows), columns=columns)
    assert found.items == read(bbq(tmp_path)).items


@pytest.mark.parametrize("number", [float, lambda n: f"{n}.0", lambda n: f" {n} "])
def test_numbers_and_words_as_tables_spell_them(tmp_path, number):
    words = {"neg": "negative", "nonneg": "Non-negative"}
    rows = [
        row | {
            "example_id": number(row["example_id"]),
            "question_polarity": words[row["question_polarity"]],
        }
        for row in map(bbq_row, range(4))
    ]  # fmt: skip
    assert read(bbq(tmp_path, rows)).items == read(bbq(tmp_path, name="b.jsonl")).items


def test_the_neutral_format(tmp_path):
    row = {
        "id": "a1", "category": "age", "template": "t1", "condition": "disambiguated",
        "context": "Ada, 80, taught Bo, 20.", "question": "Who learned?",
        "options": ["Ada", "Bo", "Unknown"], "stereotype": 0, "unknown": 2, "correct": 1,
    }  # fmt: skip
    rows = [row, row | {"id": "a2", "condition": "ambiguous", "correct": 2, "group": "g"}]
    found = read(written(tmp_path / "own.jsonl", rows))
    own = [(item.key, item.group, item.alignment) for item in found.items]
    assert own == [("age/a1", "a1", Alignment.COUNTER), ("age/a2", "g", None)]


def test_the_embedded_items_are_whole_and_have_four_categories():
    found = read(find("items", "demo-bbq", Path()))
    assert len({item.category for item in found.items}) >= 4
    assert not found.excluded


def refused(path, **options):
    with pytest.raises(DataError) as caught:
        read(path, **options)
    return str(caught.value)


def test_a_group_of_four_with_a_missing_member_is_left_out_and_said(tmp_path):
    rows = [bbq_row(n) for n in range(8) if n != 5]
    found = read(bbq(tmp_path, rows))
    assert [item.key for item in found.items] == ["Age/0", "Age/1", "Age/2", "Age/3"]
    assert [item.key for item in found.excluded] == ["Age/4", "Age/6", "Age/7"]
    assert "not whole: 3 items" in found.excluded[0].reason


TWO = {"additional_metadata": {"stereotyped_groups": ["old", "nonOld"]}}
NO_TARGET = "no single target: not exactly one group hits"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (info(("Ada", "old"), ("Bo", "unknown")), "2 options mean unknown"),
        (info(("Ada", "old"), ("Bo", "nonOld"), ("Unknown", "nonOld")), "no option means unknown"),
        (info(("Ada", "old"), ("Bo", "old"), ("Unknown", "nonOld")), "no option means unknown"),
        (TWO, NO_TARGET),
    ],
)
def test_items_without_one_unknown_or_one_target_are_left_out_and_said(tmp_path, changes, reason):
    rows = [bbq_row(n) for n in range(4)] + [bbq_row(n, **changes) for n in range(4, 8)]
    found = read(bbq(tmp_path, rows))
    assert len(found.items) == 4
    assert all(reason in item.reason for item in found.excluded)
    assert len(found.excluded) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": 3}, "'label' is 3; expected 0, 1 or 2"),
        ({"label": None}, "'label' is None"),
        ({"label": True}, "'label' is True"),
        ({"label": 0}, "the context is ambiguous, but the correct answer is 'Ada'"),
        ({"ans1": "Ada."}, "the same text"),
        ({"ans1": ""}, "'ans1' is missing or empty"),
        ({"context": 5.5, "question_polarity": "maybe"}, "expected `neg` or `nonneg`"),
        ({"context_condition": "?"}, "expected `ambig` or `disambig`"),
        ({"category": "a@b"}, "without `@`"),
        ({"answer_info": {"ans0": ["Ada", "old"]}}, "`answer_info` has None for ans1"),
        ({"additional_metadata": {}}, "stereotyped_groups"),
        ({"example_id": "x"}, "`example_id` is 'x'"),
        ({"context": "a\x00b"}, "NUL"),
        ({"example_id": 0}, "is at"),
    ],
)
def test_a_row_that_contradicts_itself_is_an_error_with_its_line(tmp_path, changes, message):
    rows = [bbq_row(n) for n in range(8)]
    rows[4] |= changes
    said = refused(bbq(tmp_path, rows))
    assert message in said
    assert "items.jsonl:5" in said


def test_a_disambiguated_item_whose_answer_is_unknown_is_an_error(tmp_path):
    rows = [bbq_row(0), bbq_row(1, label=2), bbq_row(2), bbq_row(3)]
    assert "expected one of the two groups" in refused(bbq(tmp_path, rows))


def test_metadata_that_contradicts_the_item_is_an_error(tmp_path):
    rows = "category,example_id,target_loc\nAge,0,0\nAge,1,1\nAge,2,NA\n"
    (tmp_path / "metadata.csv").write_text(rows)
    said = refused(bbq(tmp_path), metadata=str(tmp_path / "metadata.csv"))
    assert "items.jsonl:2" in said
    assert "stereotyped answer 0 by its own fields, 1 by" in said


def test_no_known_format_no_usable_item_and_an_empty_category_are_errors(tmp_path):
    assert "did you mean `Age`?" in refused(bbq(tmp_path), categories=["age"])
    assert "no format of question items" in refused(written(tmp_path / "x.jsonl", [{"a": 1}]))
    said = refused(bbq(tmp_path, [bbq_row(0)], "one.jsonl"))
    assert "holds no usable item, 1 have the defect" in said
    (tmp_path / "inside").mkdir()
    assert "holds no" in refused(tmp_path / "inside")
    (tmp_path / "inside" / "a.jsonl").write_text("{")
    assert "broken JSON" in refused(tmp_path / "inside")


def test_a_cell_that_numpy_printed_is_shown(tmp_path):
    value = "{'ans0': array(['Ada', 'old'], dtype=object)}"
    told = refused(bbq(tmp_path, [bbq_row(0, answer_info=value)]))
    assert value in told.replace("\\", "")


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a": 1, "a": 2}', "9" * 5000, '{"a": '])
def test_a_nested_value_that_is_no_json_is_told(tmp_path, value):
    row = bbq_row(0, answer_info=value)
    path = tmp_path / "items.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(row)
        writer.writerow(map(str, row.values()))
    with pytest.raises(DataError, match=r"items\.csv:2"):
        read(path)
