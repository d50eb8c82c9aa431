"""Files as repositories and spreadsheets really hold them: read, or refused by their name."""

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from fakes.rag_app import reply

from fairgate.domain.errors import DataError, FairGateError
from fairgate.domain.executions import CorpusSpec
from fairgate.features.judges.evaluation import read_labelled_pairs
from fairgate.io.named_files import bundled_path
from fairgate.io.tables import read_json_object, read_json_objects, read_rows, table_columns
from fairgate.onnx.model_folder import ModelFolder
from fairgate.policy.yaml_text import read_yaml_file
from fairgate.retrieval.corpus import CorpusFile, read_document_labels
from fairgate.suites.metamorphic.sources import read_sources
from fairgate.suites.question_items.item_files import read_items, stance_documents
from fairgate.systems.recorded_answers import read_recorded

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def workbook(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")


STAND_INS = {
    "a pointer of Git LFS": lambda path: path.write_bytes(POINTER),
    "a pointer of Git LFS with a mark": lambda path: path.write_bytes(b"\xef\xbb\xbf" + POINTER),
    "a web page": lambda path: path.write_bytes(b"<!DOCTYPE html>\n<html><body>Sign in"),
    "a web page saved with a comment": lambda path: path.write_bytes(b"<!-- saved -->\n<html>"),
    "a web page without its beginning": lambda path: path.write_bytes(b"<head><title>302"),
    "an XML document": lambda path: path.write_bytes(b'<?xml version="1.0"?>\n<Error><Code>'),
    "gzip": lambda path: path.write_bytes(gzip.compress(b"id,text\n1,x\n")),
    "a workbook": workbook,
}
WORDS = {
    "a web page saved with a comment": "is a web page",
    "a web page without its beginning": "is a web page",
    "a workbook": "is a workbook",
    "gzip": "gzip",
    "a web page": "a web page",
}


def spec(path):
    return CorpusSpec(path=path)


READERS = {
    "a corpus": lambda path: list(CorpusFile(spec(path)).documents()),
    "sources": lambda path: read_sources(spec(path)),
    "columns": table_columns,
    "items": lambda path: read_items(path, ("unknown",)),
    "stances": lambda path: list(stance_documents([path])),
    "labels": read_document_labels,
    "labelled pairs": lambda path: read_labelled_pairs(Path(path)),
}
TEXT_READERS = {
    "a recording": read_recorded,
    "ragas": lambda path: read_recorded(path, "ragas"),
    "deepeval": lambda path: read_recorded(path, "deepeval"),
    "objects": lambda path: list(read_json_objects(path)),
    "a record": lambda path: read_json_object(Path(path)),
    "YAML": lambda path: read_yaml_file(Path(path)),
}


def test_what_stands_in_a_file_s_place_is_named_by_every_reader(tmp_path):
    wrong = []
    for name, write in STAND_INS.items():
        cases = [(reader, ending) for reader in READERS for ending in ("csv", "tsv", "jsonl", "json", "parquet")]  # fmt: skip
        cases += [(reader, "jsonl") for reader in TEXT_READERS]
        for reader, ending in cases:
            path = tmp_path / f"file.{ending}"
            write(path)
            word = WORDS.get(name, name.removesuffix(" with a mark"))
            try:
                (READERS | TEXT_READERS)[reader](str(path))
                said = "nothing"
            except FairGateError as error:
                said = str(error)
            if word not in said or path.name not in said:
                wrong.append((name, reader, ending, said))
    assert not wrong


def test_a_pointer_in_the_place_of_any_file_of_a_model_is_named(tmp_path):
    folder = bundled_path("models", "demo-slm")
    files = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    wrong = []
    for file in files:
        copy = tmp_path / "model"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        (copy / file).write_bytes(POINTER)
        try:
            ModelFolder.find(copy)
            said = ""
        except FairGateError as error:
            said = str(error)
        is_opened = file.suffix in (".onnx", ".json", ".jinja") and file.name != "provenance.json"
        if is_opened != ("is a pointer of Git LFS" in said):
            wrong.append((file, said))
    assert len(files) > 3
    assert not wrong


ROWS = [("1", "One, two.", "a"), ("2", "Three.", "b"), ("3", "Four.", "a")]
HEADER = ("id", "text", "label")


def table(sign, *, first="", empty="", end="\n", more=""):
    def cell(text):
        return f'"{text}"' if sign in text or "," in text else text

    rows = [sign.join(map(cell, row)) + more for row in (HEADER, *ROWS)]
    return first + end.join([*rows[:2], *([empty] if empty else []), *rows[2:], *([empty] * 3 if empty else [])]) + end  # fmt: skip


TABLES = {
    "plain": ("csv", table(",")),
    "tabs": ("tsv", table("\t")),
    "sep": ("csv", table(",", first="sep=,\n")),
    "sep quoted": ("csv", table(",", first='"sep=,"\r\n', end="\r\n")),
    "sep of another sign": ("csv", table(";", first="sep=;\n")),
    "sep and a mark": ("csv", "\ufeff" + table(";", first="sep=;\r\n", end="\r\n")),
    "sep in tabs": ("tsv", table("\t", first="sep=\t\n")),
    "empty rows": ("csv", table(",", empty=",,")),
    "empty rows with blanks": ("csv", table(",", empty=" , ,")),
    "longer empty rows": ("csv", table(",", empty=",,,,,,")),
    "empty rows before": ("csv", ",,\n" + table(",")),
    "empty columns": ("csv", table(",", empty=",,,,", more=",,")),
    "empty rows in tabs": ("tsv", table("\t", empty="\t\t")),
    "an array": ("json", json.dumps([dict(zip(HEADER, row, strict=True)) for row in ROWS])),
    "an array in lines": ("jsonl", json.dumps([dict(zip(HEADER, r, strict=True)) for r in ROWS], indent=2)),
    "an array in an object": ("json", json.dumps({"name": "x", "rows": [dict(zip(HEADER, r, strict=True)) for r in ROWS]}, indent=1)),
    "lines in JSON": ("json", "".join(json.dumps(dict(zip(HEADER, r, strict=True))) + "\n" for r in ROWS)),
}  # fmt: skip


def test_tables_as_they_are_exported_are_read_alike_by_every_reader(tmp_path):
    wrong = []
    for name, (ending, text) in TABLES.items():
        path = tmp_path / f"table.{ending}"
        path.write_bytes(text.encode())
        documents = [(d.id, d.text, d.label) for d in CorpusFile(spec(str(path))).documents()]
        sources = [(source.id, source.text) for source in read_sources(spec(str(path)))]
        labels = read_document_labels(str(path))
        if documents != ROWS or sources != [row[:2] for row in ROWS]:
            wrong.append((name, documents, sources))
        if labels != {row[0]: row[2] for row in ROWS}:
            wrong.append((name, labels))
        if set(HEADER) - set(table_columns(str(path))):
            wrong.append((name, table_columns(str(path))))
    assert not wrong


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"id": 1, "text": "x"},\n {"id": 2}]', "table.json:2: no field 'text'"),
        ('[\n{"id": 1, "text": "x"},\n\n\n7]', "table.json:5: 7 in the array"),
        ('[{"id": 1, "text": "x"},\n', "table.json:2:1: broken JSON"),
        ('{\n"text": {"0": "x"}, "id": 1}', "is one object with ['text', 'id']; expected an array"),
        ("[]", "is empty"),
        ("{\n}", "is one object with []"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_array_is_named_with_its_line(tmp_path, text, words):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(FairGateError) as raised:
        list(CorpusFile(spec(str(path))).documents())
    assert words in str(raised.value)


def test_lines_of_a_table_are_the_file_s(tmp_path):
    """Also below `sep=` and among empty rows."""
    path = tmp_path / "table.csv"
    path.write_text("sep=;\n\nid;text\n;\n1;x\n;;;\n2;y\n")
    assert [(row.number, row.line) for row in read_rows(str(path))] == [(1, 5), (2, 7)]


NAMES = {
    "ragas": ("user_input", "response", "retrieved_contexts"),
    "deepeval": ("input", "actual_output", "retrieval_context"),
}


def cell(form, texts):
    return {"python": repr(texts), "json": json.dumps(texts), "bars": "|".join(texts)}[form]


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


FILES = {
    ("lines", "jsonl"): lambda names, rows: "".join(json.dumps(dict(zip(names, r, strict=True))) + "\n" for r in rows),
    ("array", "json"): lambda names, rows: json.dumps([dict(zip(names, r, strict=True)) for r in rows]),
    ("array", "jsonl"): lambda names, rows: json.dumps([dict(zip(names, r, strict=True)) for r in rows], indent=2),
    ("object", "json"): lambda names, rows: json.dumps({"version": "1", "test_cases": [dict(zip(names, r, strict=True)) for r in rows]}),
    **{(form, "csv"): lambda names, rows, form=form: "".join(
        ",".join(map(quoted, line)) + "\n"
        for line in (names, *((q, a, cell(form, texts)) for q, a, texts in rows))
    ) for form in ("python", "json", "bars")},
}  # fmt: skip


def test_files_of_ragas_and_deepeval_are_read_in_every_form(place):
    """A recording in any of them has the documents and answers of the one in lines."""
    place.policy({"recorded": "rows.jsonl", "columns": "ragas"})
    (place.root / "rows.jsonl").touch()
    assert place.call("plan", "app.yaml") == 0, place.err
    rows = []
    for row in map(json.loads, place.out.splitlines()):
        found = reply(row["query"])
        rows.append((row["query"], found["answer"], [d["text"] for d in found["contexts"]]))
    wrong = []
    for tool, names in NAMES.items():
        expected = None
        for (form, ending), write in FILES.items():
            path = place.root / f"rows.{ending}"
            path.write_text(write(names, rows))
            if (tool, form) == ("ragas", "bars"):  # it writes none: a text with `|` is a text
                with pytest.raises(DataError, match=r"rows.csv:2: .* no list at"):
                    read_recorded(str(path), tool)
                continue
            found = read_recorded(str(path), tool).answers
            expected = found if expected is None else expected
            if found != expected or len(found) != len(rows):
                wrong.append((tool, form, ending))
    assert not wrong


def test_an_array_of_our_own_lines_is_a_recording(tmp_path):
    rows = [{"key": "a", "response": "x"}, {"key": "b", "response": "y", "query": "q"}]
    found = []
    for name, text in {
        "lines.jsonl": "\n".join(map(json.dumps, rows)), "array.jsonl": json.dumps(rows),
        "pretty.json": json.dumps(rows, indent=1),
        "table.csv": "key,response,query,documents\na,x,,\nb,y,q,\n",
    }.items():  # fmt: skip
        path = tmp_path / name
        path.write_text(text)
        found.append(read_recorded(str(path)).answers)
    assert found == found[:1] * 4
