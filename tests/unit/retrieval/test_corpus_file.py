"""A table as the corpus, and a table as sources."""

import json

import pytest

from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusDocument, CorpusSpec
from fairgate.retrieval.corpus import CorpusFile, LabelReader
from fairgate.suites.metamorphic.sources import read_sources


def table(tmp_path, content, name="corpus.jsonl"):
    path = tmp_path / name
    if isinstance(content, list):
        content = "".join(json.dumps(record) + "\n" for record in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def documents(path, **columns):
    return list(CorpusFile(CorpusSpec(path=path, **columns)).documents())


FLAGGED = [
    {"_id": 7, "comment_text": " x ", "toxic": True},
    {"_id": "b", "comment_text": "y", "toxic": False},
]
OTHERS = [{"text": "no", "body": "yes", "label": "a", "class": "b", "id": 1, "key": "k"}]
NAMED = {"text": "body", "label": "class", "id": "key"}


@pytest.mark.parametrize(
    ("content", "columns", "found"),
    [
        (FLAGGED, {}, [("7", " x ", "toxic"), ("b", "y", "non-toxic")]),
        ("text,label\nx,good\ny,\n", {}, [("1", "x", "good"), ("2", "y", None)]),
        (OTHERS, NAMED, [("k", "yes", "b")]),
    ],
)
def test_columns_are_named_or_found_and_rows_counted_without_ids(tmp_path, content, columns, found):
    path = table(tmp_path, content, "c.csv" if isinstance(content, str) else "c.jsonl")
    expected = [CorpusDocument(id=id_, text=text, label=label) for id_, text, label in found]
    assert documents(path, **columns) == expected


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ([{"a": "x"}], {}, r"no column for the text; expected one of text, .*`a`"),
        ([{"text": "x"}], {"label": "labell"}, "no column 'labell'"),
        ([{"text": "x", "id": "1"}, {"text": "y", "id": 1}], {}, r":2: id '1' was used on line 1"),
        ([{"text": "x"}, {"txt": "y"}], {}, r":2: no field 'text'.*\['txt'\]"),
        ([{"text": 5}], {}, r":1: 'text' holds 5 \(int\); expected text"),
        ([{"text": "x" * (2**20 + 1)}], {}, r":1: 'text' holds 1,048,577 characters"),
        ([{"text": "x" * 2**20}, {"text": 5}], {}, ":2: 'text' holds 5"),
        ([{"text": "a\x00b"}], {}, r":1: 'text' holds a NUL character"),
        ([{"text": "a\ud800b"}], {}, r":1: .*half a surrogate pair at character 1"),
        ([{"text": "x", "id": None}], {}, r":1: column 'id' holds None as an id"),
        ([{"text": "x", "id": "a\nb"}], {}, r":1: column 'id' holds 'a\\nb' as an id"),
        ([{"text": " "}, {"text": None}, {"text": ""}], {}, "holds no document with text"),
        ("text\n", {}, "holds no document with text"),
        ([{"text": "x", "toxic": 0.31}], {}, r":1: column 'toxic' holds 0.31, which is no label"),
        ([{"text": "x", "label": ["a"]}], {}, r":1: column 'label' holds \['a'\], which is no l"),
    ],
)
def test_bad_corpora_are_refused_with_place_value_and_expectation(
    tmp_path, content, columns, message
):
    path = table(tmp_path, content, "c.csv" if isinstance(content, str) else "c.jsonl")
    with pytest.raises(DataError, match=message):
        documents(path, **columns)


def test_rows_without_text_are_left_out_and_said(tmp_path):
    path = table(tmp_path, [{"text": "x"}, {"text": "  "}, {"text": None}])
    corpus = CorpusFile(CorpusSpec(path=path))
    assert [d.id for d in corpus.documents()] == ["1"]
    list(corpus.documents())
    assert corpus.notices == [
        f"{path}: 2 of 3 rows have no text and were excluded (the first is line 2)"
    ]


def test_the_fingerprint_follows_content_and_columns_alone(tmp_path):
    one = table(tmp_path, [{"text": "x", "body": "y"}], "one.jsonl")
    two = table(tmp_path, [{"text": "x", "body": "y"}], "two.jsonl")
    other = table(tmp_path, [{"text": "x", "body": "z"}], "three.jsonl")

    def fingerprint(path, **columns):
        return CorpusFile(CorpusSpec(path=path, **columns)).fingerprint

    assert fingerprint(one) == fingerprint(two)
    before = fingerprint(one)
    assert len({before, fingerprint(other), fingerprint(one, text="body")}) == 3
    table(tmp_path, [{"text": "longer", "body": "y"}], "one.jsonl")
    assert fingerprint(one) != before


@pytest.mark.parametrize(
    ("column", "values", "labels"),
    [
        ("toxic", [True, False, None], ["toxic", "non-toxic", None]),
        ("toxic", ["1", "0", ""], ["toxic", "non-toxic", None]),
        ("toxic", [1.0, 0.0, float("nan")], ["toxic", "non-toxic", None]),
        ("toxic", ["True", "false"], ["toxic", "non-toxic"]),
        ("toxicity", ["hate", " none "], ["hate", "none"]),
        ("label", [True, "1", 2, 3.0, "0.5"], ["true", "1", "2", "3", "0.5"]),
    ],
)
def test_labels(column, values, labels):
    reader = LabelReader(column)
    assert [reader.read(value, "t:1") for value in values] == labels


@pytest.mark.parametrize("values", [["1", "maybe"], ["maybe", True]])
def test_flags_and_names_do_not_mix(values):
    reader = LabelReader("toxic")
    reader.read(values[0], "t:1")
    with pytest.raises(DataError, match="t:2: column 'toxic' mixes"):
        reader.read(values[1], "t:2")


def test_a_column_of_texts_is_no_label_column():
    reader = LabelReader("label")
    for i in range(100):
        reader.read(f"text {i}", "t:1")
    with pytest.raises(DataError, match="more than 100 different values, the last 'text 100'"):
        reader.read("text 100", "t:101")


def test_sources_keep_quotes_line_ends_and_trailing_blanks(tmp_path):
    path = table(tmp_path, 'inputID,input,task\nfsa1,"He said ""no""\nand left ",sa\n', "s.csv")
    (source,) = read_sources(CorpusSpec(path=path))
    assert (source.id, source.text) == ("fsa1", 'He said "no"\nand left ')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,text\n", "holds no sources"),
        ("id,text\n1,x\n2,y\n1,z\n", r":4: source id '1' was used on line 2 already"),
        ("id,text\n1,  \n", r":2: source '1' has no text"),
        ("id,txt\n1,x\n", "no column for the text; .*did you mean|no column for the text"),
    ],
)
def test_bad_sources_are_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_sources(CorpusSpec(path=table(tmp_path, content, "s.csv")))
