"""CSV, TSV, JSONL and Parquet as one stream of rows."""

import csv
import json
import sys

import pytest

from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.executions import CorpusSpec
from fairgate.io.tables import choose_column, read_rows, table_columns
from fairgate.retrieval.corpus import CorpusFile


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read_whole(path):
    return table_columns(path), [dict(row.values) for row in read_rows(path)]


ROWS = [{"id": "a", "text": 'She said "no"\nand left '}, {"id": "b", "text": "ünï,\tcode"}]


def table(path, rows):
    """Write rows in the format of the path's suffix; JSONL leaves out what is None."""
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        kept = ({k: v for k, v in row.items() if v is not None} for row in rows)
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    return str(path)


FORMATS = [".csv", ".tsv", ".jsonl", ".parquet"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_rows(tmp_path, suffix):
    path = table(tmp_path / f"t{suffix}", ROWS)
    assert read_whole(path) == (("id", "text"), ROWS)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("first", [1, 2, 100, 101, 150, 5000])
def test_a_column_is_seen_wherever_it_begins(tmp_path, suffix, first):
    """Only JSONL says its columns row by row; what begins late was dropped without a word."""
    rows = [
        {"id": str(n), "text": f"t{n}", "label": "toxic" if n >= first else None}
        for n in range(1, first + 2)
    ]
    path = table(tmp_path / f"t{suffix}", rows)
    assert table_columns(path) == ("id", "text", "label")
    *_, last = CorpusFile(CorpusSpec(path=path)).documents()
    assert last.label == "toxic"


def test_line_numbers_are_those_of_an_editor_and_a_byte_order_mark_is_no_character(tmp_path):
    path = written(tmp_path, "t.csv", 'text\n"one\ntwo"\n\nthree\n')
    assert [(row.number, row.line) for row in read_rows(path)] == [(1, 2), (2, 5)]
    path = written(tmp_path, "t.jsonl", '{"text": 1}\n\n{"text": 2}\n')
    assert [(row.number, row.line) for row in read_rows(path)] == [(1, 1), (2, 3)]
    assert table_columns(written(tmp_path, "t.csv", b"\xef\xbb\xbftext\nx\n")) == ("text",)


def test_reading_is_lazy_and_leaves_the_field_limit_of_the_process_alone(tmp_path):
    path = written(tmp_path, "t.csv", "text\n" + "x" * 500_000 + "\ny\n")
    before = csv.field_size_limit()
    rows = read_rows(path)
    assert len(next(rows).values["text"]) == 500_000
    assert csv.field_size_limit() == before
    rows.close()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", r"t\.csv: is empty"),
        ("t.jsonl", "\n\n", r"t\.jsonl: is empty"),
        ("t.csv", "a,a\n1,2\n", r"t\.csv:1: column 'a' occurs twice"),
        ("t.json", '{"columns": ["a", "a"], "data": [[1, 2]]}', "column 'a' occurs twice"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", r"t\.csv:3: 3 fields.*expected 2"),
        ("t.csv", 'a\n"open\nnever closed\n', r"t\.csv:2: broken record .*up to line 3"),
        ("t.csv", 'a\n"x"y\n', r"t\.csv:2: broken record"),
        ("t.csv", "a\rb\rc\r", r"t\.csv:1: broken record"),
        ("t.jsonl", '{"a": 1}\n{"a": oops}\n', r"t\.jsonl:2:7: broken JSON .*oops"),
        ("t.jsonl", "[1]\n", r"t\.jsonl:1: \[1\]; expected a JSON object"),
        ("t.jsonl", "[" * 100_000 + "\n", r"t\.jsonl:1: nested deeper than 40"),
        ("t.jsonl", '{"a": ' + "9" * 5000 + "}\n", r"t\.jsonl:1: a number of 5000 digits"),
        ("t.jsonl", b'{"a": "\xe9t\xe9"}\n', r"t\.jsonl:1: byte 7 .*0xe9.* not UTF-8"),
        ("t.csv", b"a\nfine\n\xff\n", r"t\.csv:3: byte 0"),
        ("t.csv", "a\nx\x00y\n", r"t\.csv:2: NUL byte at byte 1"),
        ("t.csv", "a\nx\n".encode("utf-16"), r"t\.csv:1: the file is UTF-16"),
        ("t.jsonl", b'{"a": "' + b"x" * (8 * 2**20) + b'"}\n', r"t\.jsonl:1: the line is longer"),
        ("t.csv", 'a\n"' + ("x" * 1023 + "\n") * 9000 + '"\n', r"t\.csv:2: broken record \(field"),
    ],
)
def test_broken_files_say_where_and_what(tmp_path, name, content, message):
    path = written(tmp_path, name, content)
    with pytest.raises(DataError, match=message):
        read_whole(path)


def test_a_missing_file_a_folder_and_an_unknown_format(tmp_path):
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "t.xlsx").write_text("a")
    for name, said in (("gone.csv", "no such file"), ("d.csv", "is a folder")):
        with pytest.raises(DataError, match=f"{name}: {said}"):
            list(read_rows(str(tmp_path / name)))
    with pytest.raises(UsageError, match=r"'\.xlsx'; expected \.csv, \.tsv, \.jsonl, "):
        read_rows(str(tmp_path / "t.xlsx"))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'fairgate\[parquet\]'"):
        table_columns(written(tmp_path, "t.parquet", b"PAR1"))


def test_a_damaged_parquet_file_is_no_traceback(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="no readable Parquet file"):
        table_columns(written(tmp_path, "t.parquet", b"PAR1 nothing PAR1"))
    path = tmp_path / "u.parquet"
    table(path, [{"text": f"text {i}" * 20} for i in range(5000)])
    raw = bytearray(path.read_bytes())
    raw[2000:40000] = b"\xff" * 38000
    path.write_bytes(bytes(raw))
    with pytest.raises(DataError, match="damaged after row"):
        list(read_rows(str(path)))


@pytest.mark.parametrize(("kind", "number"), [
    ("timestamp[s]", 2**40), ("timestamp[us]", 2**62), ("timestamp[ns]", 2**62 + 1),
    ("date32[day]", 2**30), ("time64[ns]", 1), ("duration[ns]", 1),
])  # fmt: skip
def test_a_value_that_python_cannot_hold_is_no_traceback(tmp_path, kind, number):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    column = pa.array([number]).cast(pa.int32() if "32" in kind else pa.int64())
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"a": column.view(kind)}), path)
    with pytest.raises(DataError, match="damaged after row 0"):
        list(read_rows(str(path)))


def test_no_column_of_a_parquet_file_hides_another(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    two = pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], ["a", "a"])
    pytest.importorskip("pyarrow.parquet").write_table(two, path)
    for read in (table_columns, lambda path: list(read_rows(path))):
        with pytest.raises(DataError, match="column 'a' occurs twice"):
            read(str(path))


def test_parquet_reads_only_the_columns_that_are_asked_for(tmp_path):
    path = table(tmp_path / "t.parquet", [{"text": "x", "other": 1}])
    assert [dict(row.values) for row in read_rows(path, ["text"])] == [{"text": "x"}]


def test_a_column_is_found_by_name_or_offered():
    columns = ["_id", "Text", "comment_text"]
    assert choose_column("t", columns, None, ("text", "comment_text")) == "comment_text"
    assert choose_column("t", columns, None, ("label",)) is None
    with pytest.raises(DataError, match=r"no column 'txt'; did you mean `Text`.*`comment_text`"):
        choose_column("t", columns, "txt", ())


def test_messages_carry_no_workflow_command(tmp_path):
    path = written(tmp_path, "t.jsonl", '{"a": ::error::x\n')
    with pytest.raises(DataError) as caught:
        list(read_rows(path))
    assert "::" not in str(caught.value).removeprefix(path)
