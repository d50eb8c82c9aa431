"""A file that is twice as wide takes about twice as long: nobody's file makes a gate hang."""

import json
import time

import pytest

from fairgate.domain.errors import FairGateError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.io.tables import choose_column, read_rows, table_columns
from fairgate.policy.checks import label_problems

FEW = 4_000
TIMES = 8
"""A linear reader takes 8 times as long for 8 times as much, a quadratic one 64 times."""


def names(count, *, twice=False):
    return [f"column{n}" for n in range(count - twice)] + ["column0"] * twice


def table(sign, suffix, *, twice=False):
    def written(count, path):
        file = path / f"wide{suffix}"
        file.write_text(f"{sign.join(names(count, twice=twice))}\n{sign.join(['x'] * count)}\n")
        return str(file)

    return written


def json_line(count, path):
    file = path / "wide.jsonl"
    file.write_text(json.dumps(dict.fromkeys(names(count), "x")) + "\n")
    return str(file)


def object_with_a_key_twice(count, path):
    del path
    return "{" + ", ".join(f'"{name}": 1' for name in names(count, twice=True)) + "}"


def all_rows(path):
    return list(read_rows(path))


def unknown_column(path):
    return choose_column(path, table_columns(path), "colunm", ())


def labels(count, path):
    del path
    return {"labels": names(count, twice=True)}


READERS = {
    "csv": (table(",", ".csv"), all_rows),
    "csv, a column twice": (table(",", ".csv", twice=True), all_rows),
    "tsv": (table("\t", ".tsv"), all_rows),
    "jsonl": (json_line, all_rows),
    "columns of csv": (table(",", ".csv"), unknown_column),
    "columns of jsonl": (json_line, unknown_column),
    "json, a key twice": (object_with_a_key_twice, read_json),
    "labels": (labels, lambda task: list(label_problems(task))),
}


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", READERS)
def test_the_width_of_a_file_costs_its_size(name, tmp_path):
    write, read = READERS[name]

    def seconds(count):
        source = write(count, tmp_path)
        begin = time.process_time()
        try:
            read(source)
        except (FairGateError, JsonError) as error:
            assert len(str(error)) < 4000  # noqa: PT017 - readers that refuse are among those walked
        return time.process_time() - begin

    seconds(10)
    few = min(seconds(FEW) for _ in range(3))
    many = min(seconds(FEW * TIMES) for _ in range(2))
    assert many < 3 * TIMES * few + 0.5, (few, many)


def test_a_message_about_columns_is_short_whatever_they_are_called(tmp_path):
    file = tmp_path / "long.csv"
    file.write_text(f"{','.join(f'{n}' + 'x' * 10_000 for n in range(30))}\n")
    with pytest.raises(FairGateError) as error:
        unknown_column(str(file))
    assert len(str(error.value)) < 4000
    file.write_text(f"{'x' * 10_000},{'x' * 10_000}\n")
    with pytest.raises(FairGateError) as error:
        all_rows(str(file))
    assert len(str(error.value)) < 400
