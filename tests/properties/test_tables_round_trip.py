"""Whatever a table holds comes back, whatever its format."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.executions import CorpusSpec
from fairgate.io.tables import read_rows
from fairgate.retrieval.corpus import CorpusFile
from fairgate.retrieval.preparation import clean_text
from fairgate.suites.metamorphic.sources import read_sources

TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60
).filter(lambda text: text.strip())


@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_texts_survive_csv_and_jsonl(texts):
    with tempfile.TemporaryDirectory() as folder:
        table, lines = Path(folder, "t.csv"), Path(folder, "t.jsonl")
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(["id", "text"])
            writer.writerows((f"s{i}", text) for i, text in enumerate(texts))
        with lines.open("w", encoding="utf-8") as file:
            file.writelines(
                json.dumps({"id": f"s{i}", "text": text}) + "\n" for i, text in enumerate(texts)
            )
        for path in (table, lines):
            spec = CorpusSpec(path=str(path))
            assert [source.text for source in read_sources(spec)] == texts
            assert [document.text for document in CorpusFile(spec).documents()] == texts


@given(st.binary(max_size=200), st.sampled_from([".csv", ".tsv", ".jsonl"]))
def test_no_bytes_end_in_anything_but_rows_or_a_message(content, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t{suffix}")
        path.write_bytes(content)
        try:
            list(read_rows(str(path)))
            list(CorpusFile(CorpusSpec(path=str(path))).documents())
        except (DataError, UsageError) as error:
            assert str(path) in str(error)  # noqa: PT017 - both outcomes are right


@given(TEXTS)
def test_a_cleaned_text_is_lower_case_with_single_blanks(text):
    cleaned = clean_text(text)
    assert cleaned == " ".join(cleaned.lower().split())


@given(st.text("ab @.:/wtphs", max_size=40))
def test_no_mention_and_no_url_is_left(text):
    words = clean_text(text).split()
    assert not any(word.startswith(("www.", "http://")) and word[-1] not in "./" for word in words)
    assert not any(re.match(r"@\w", word) for word in words)
