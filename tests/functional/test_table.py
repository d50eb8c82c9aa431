"""`fairgate table`: a verdict from nothing but a table, and what cannot be judged."""

import csv
import io
import json
import random
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import fairgate
from fairgate.cli import main
from fairgate.domain.errors import UsageError
from fairgate.gate.table import TableGate, judged_table
from fairgate.io.outcome_rows import OutcomeColumns, outcome_table, rows_of
from fairgate.policy.definition_files import named_controls

PEOPLE = [("gender", "women"), ("gender", "men"), ("age", "young"), ("age", "old")]
PEOPLE += [("race", f"group {n}") for n in range(8)] + [
    ("religion", f"belief {n}") for n in range(8)
]
HARMED = PEOPLE[0]
FOUND = OutcomeColumns()
"""Every column by its name."""


def scored(seed=1, effect=2.0, sources=30, controls=20, noise=2.0):
    """Rows of applicants scored 0 to 100, one identity lower."""
    draw = random.Random(seed)
    prompts = [*PEOPLE, *(("control", f"phrase {n}") for n in range(controls))]
    rows = []
    for source in range(sources):
        level = draw.gauss(60, 12)
        for category, who in prompts:
            score = level + draw.gauss(0, noise) - effect * ((category, who) == HARMED)
            rows.append({
                "source": f"a{source}", "category": category, "who": who, "score": round(score, 2)
            })  # fmt: skip
    return rows


def judged(rows, columns=FOUND, **gate):
    cells, names = rows_of(rows)
    return judged_table(
        outcome_table(cells, names, columns, "scores"), TableGate(**gate)
    ).run.result


def write(path, rows):
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return str(path)


@pytest.fixture
def table(tmp_path, monkeypatch, capsys):
    """Calls `fairgate table` in an empty folder; returns the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["table", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    return call


def test_a_lower_score_is_red_and_said_in_its_unit(table, tmp_path):
    code, said = table(write(tmp_path / "scores.csv", scored(effect=3)), "--out", "out")
    assert code == 1
    assert re.search(r"scores are [\d.]+ lower for women, in scores", said)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    (named,) = [node for one in record["parity"] for node in one["named"]]
    assert named["who"] == ["gender/women"]
    assert 2 < named["estimate"] < 4
    assert {"report.md", "report.html", "run.json"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }


def test_machines_are_told_the_same(table, tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "scores.csv", scored(effect=3))
    assert main(["table", path, "--format", "json", "--quiet"]) == 1
    document = json.loads(capsys.readouterr().out)
    (finding,) = document["findings"]
    assert (document["command"], finding["rule"]) == ("table", "parity/score")
    assert main(["table", "gone.csv", "--format", "json"]) == 4
    assert "no such file" in json.loads(capsys.readouterr().out)["problems"][0]["message"]


def test_equal_scores_are_green(table, tmp_path):
    code, said = table(write(tmp_path / "scores.csv", scored(effect=0)))
    assert code == 0
    assert "nobody is treated differently" in said


def test_single_identities_that_cannot_be_judged_are_not_called_equal(table, tmp_path):
    code, said = table(write(tmp_path / "scores.csv", scored(effect=0, controls=8)))
    said = " ".join(said.split())
    assert code == 0
    assert "no category is treated differently; single identities are not judged" in said
    assert "8 control prompts where 12 are needed" in said


@pytest.mark.slow
def test_two_of_a_hundred_are_seen_and_nothing_else():
    """60 sources, SD 2: red in at least .8 of 40 seeds, fair in at most .05."""
    red = [judged(scored(seed, 2.0, sources=60)).exit_code for seed in range(40)]
    fair = [judged(scored(seed, 0.0, sources=60)).exit_code for seed in range(40)]
    assert red.count(1) >= 0.8 * 40
    assert fair.count(0) >= 0.95 * 40


def test_the_limit_is_in_the_unit_of_the_score():
    rows = scored(effect=3)
    assert judged(rows, limit=2.0).exit_code == 1
    assert judged(rows, limit=5.0).exit_code == 0


@pytest.mark.walk(2)
@pytest.mark.parametrize("limit", [50, 1e3, 1e308])
def test_no_limit_is_green_that_nobody_could_exceed(limit):
    assert judged(scored(effect=3), limit=limit).exit_code == 5
    slip = [{**row, "score": 1e9 if row["source"] == "a0" else row["score"]} for row in scored()]
    assert judged(slip, limit=limit).exit_code == 5


SHARES = ["label", "text", "document"]


@pytest.mark.parametrize("limit", [1, 1.5, 1e308])
@pytest.mark.parametrize("kind", SHARES)
def test_nor_is_one_of_shares(kind, limit):
    cells = {"label": "yes", "document": '["d"]', "text": "Please bring the form. "}
    rows = [
        {**row, "score": cells[kind] * (1 + n % 30)} for n, row in enumerate(scored(sources=12))
    ]
    with pytest.raises(UsageError, match=r"below 1|embedder"):
        judged(rows, limit=limit)


NAMES_SOMEBODY = [
    "women", "Women", "wo_men", "w0men", "wom\u0435n", "Black", "white_male_3", "Tyrone", "a gay person",
    "muslims", "race", "gender",
]  # fmt: skip
NAMES_NOBODY = [
    "control 3",
    "ctrl07",
    "phrase_12",
    "p12",
    "A tall person",
    "no name",
    "T\u30b7\u30e3\u30c4",
    "",
]


@pytest.mark.parametrize("name", NAMES_SOMEBODY)
def test_no_identity_is_a_control_prompt(table, tmp_path, name):
    """However its rows are said to be: by a value, by a column, by what they are called."""
    rows = [
        {**row, "category": "x", "who": name} if row["category"] == "control" else row
        for row in scored(sources=12, controls=1)
    ]
    rows.append({**rows[0], "category": "x"})
    flagged = [{**row, "control": str(row["who"] == name).lower()} for row in rows]
    for options in (["--control", name], ["--control", f"{name[:-1]}*"]):
        code, said = table(write(tmp_path / "scores.csv", rows), *options)
        assert code == 2, said
        assert "must name nobody" in said
    assert table(write(tmp_path / "scores.csv", flagged))[0] == 2


@pytest.mark.parametrize("name", NAMES_NOBODY)
def test_what_names_nobody_is_one(name):
    assert named_controls([name], ["belief"]) == []


def test_what_would_fill_the_memory_is_refused_before_it_is_read(table, tmp_path, monkeypatch):
    cells = pa.array(["y" * (1 << 20)] * 20)
    bomb = pa.table({"source": ["s"] * 20, "who": ["a", "b"] * 10, "score": cells})
    parquet.write_table(bomb, tmp_path / "bomb.parquet", compression="zstd", use_dictionary=False)
    assert (tmp_path / "bomb.parquet").stat().st_size < 1 << 17
    monkeypatch.setattr("fairgate.io.tables.MOST_BYTES", 1 << 24)
    code, said = table("bomb.parquet")
    assert code == 4
    assert "more than 100 times as many" in said
    with monkeypatch.context() as patch:
        patch.setattr("fairgate.io.outcome_rows._MOST_ANSWERS", 30)
        code, said = table(write(tmp_path / "long.csv", scored(sources=2)))
    assert code == 4
    assert "holds more than 30 answers" in said
    many = [{"source": s, "who": f"n{n}", "score": n} for s in range(2) for n in range(1001)]
    assert "1,001 identities beside" in refused(
        [*many, {"source": 1, "who": "control 1", "score": 1}]
    )


def refused(rows):
    with pytest.raises(UsageError) as caught:
        judged(rows)
    return str(caught.value)


def test_a_higher_score_may_be_the_worse_one():
    (named,) = judged(scored(effect=-3), is_better_lower=True).parity_results[0].named
    assert named.estimate > 2
    (favoured,) = judged(scored(effect=-3)).parity_results[0].named
    assert favoured.estimate < -2


def test_who_is_selected_is_reported_and_decides_nothing(table, tmp_path, capsys):
    rows = scored(effect=0)
    path = write(tmp_path / "scores.csv", rows)
    assert table(path, "--out", "out")[0] == 0
    code, _ = table(path, "--selected-from", 65, "--out", "selected")
    assert code == 0
    then, now = (
        json.loads((tmp_path / name / "run.json").read_text()) for name in ("out", "selected")
    )
    first = next(rate for rate in now.pop("selection") if rate["who"] == "gender/women")
    own = [row["score"] >= 65 for row in rows if row["who"] == "women"]
    assert first["rate"] == pytest.approx(sum(own) / len(own), abs=1e-6)
    assert then == now
    assert "a score of 65 or better" in (tmp_path / "selected" / "report.md").read_text()
    assert main(["record", "selected", "--out", "record.json", "--out", "record.html"]) == 0
    (run,) = json.loads((tmp_path / "record.json").read_text())["runs"]
    shared = ("rate", "interval", "ratio", "ratio_interval", "sources", "control")
    assert [run["selection"][0][name] for name in shared] == [first[name] for name in shared]
    assert run["selection"][0]["selected"] == sum(own)
    assert run["repeat"][-1].startswith("fairgate table ")
    assert run["texts"]["scores"]["name"] == str(path)
    page = (tmp_path / "record.html").read_text()
    assert "judged as it stands" in page
    assert page.count("come with the command, which no commit holds") == len(run["claims"])
    assert not re.search("Policy file|whether it is the file of that commit|<code></code>", page)
    labels = [{**row, "score": "no" if row["score"] < 60 else "yes"} for row in rows]
    code, said = table(write(tmp_path / "labels.csv", labels), "--selected-from", 65)
    assert code == 2
    assert "the outcome is labels, of which nobody is selected from 65 on" in said


def test_a_table_is_compared_with_an_earlier_one(table, tmp_path):
    before = write(tmp_path / "before.csv", scored(effect=0))
    after = write(tmp_path / "after.csv", scored(effect=3))
    code, said = table(after, "--baseline", before)
    assert code == 1
    assert "more than before" in said
    assert table(before, "--baseline", before)[0] == 0


def test_wide_long_shuffled_and_json_say_the_same(table, tmp_path):
    rows = scored(effect=3, sources=24)
    wide = {}
    for row in rows:
        cells = wide.setdefault(row["source"], {"source": row["source"]})
        cells["placebo " + row["who"] if row["category"] == "control" else row["who"]] = row[
            "score"
        ]
    long = [{**row, "category": "control" if row["category"] == "control" else "x"} for row in rows]
    several = {
        "long": write(tmp_path / "long.csv", long),
        "shuffled": write(tmp_path / "shuffled.csv", random.Random(3).sample(long, len(long))),
    }
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in long))
    several["lines"] = "lines.jsonl"
    columns = {name: [row[name] for row in long] for name in long[0]}
    for name, value in {
        "list": columns,
        "columns": {name: dict(enumerate(cells)) for name, cells in columns.items()},
        "split": {"columns": [*columns], "data": [[*row.values()] for row in long]},
    }.items():
        several[name] = f"{name}.json"
        (tmp_path / several[name]).write_text(json.dumps(value))
    named = {}
    for name, path in several.items():
        assert table(path, "--out", name)[0] == 1
        named[name] = json.loads((tmp_path / name / "run.json").read_text())["parity"][0]["named"]
    assert all(each == named["long"] for each in named.values())
    path = write(tmp_path / "wide.csv", list(wide.values()))
    assert table(path, "--out", "wide", "--control", "placebo*")[0] == 1
    of_wide = json.loads((tmp_path / "wide" / "run.json").read_text())["parity"][0]["named"]
    assert [(one["estimate"], one["p"]) for one in of_wide] == [
        (one["estimate"], one["p"]) for one in named["long"]
    ]


def test_without_control_prompts_many_identities_stand_beside_each_other():
    result = judged(scored(seed=2, effect=2, controls=0))
    assert result.exit_code == 1
    (named,) = result.parity_results[0].named
    assert named.name == "women"
    assert 1.5 < named.estimate < 2.5
    assert "identities are compared with each other" in result.gate_input.notices[0]
    assert judged(scored(seed=2, effect=0, controls=0)).exit_code == 0


@pytest.mark.slow
def test_of_very_many_identities_the_outermost_is_found():
    draw = random.Random(4)
    rows = []
    for source in range(12):
        level = draw.gauss(50, 5)
        for number in range(130):
            score = level + draw.gauss(0, 1) - 4 * (number == 77)
            rows.append({"source": source, "who": f"n{number}", "score": score})
    result = judged(rows)
    assert result.exit_code == 1
    assert [node.name for node in result.parity_results[0].named] == ["n77"]


def test_by_gives_one_verdict_each():
    rows = [{**row, "model": "fair"} for row in scored(seed=1, effect=0)]
    rows += [{**row, "model": "harsh"} for row in scored(seed=2, effect=4)]
    result = judged(rows, OutcomeColumns(by="model"))
    red = {rule.suite for rule in result.rules if rule.fails_gate}
    assert red == {"harsh"}
    assert {rule.suite for rule in result.rules} == {"fair", "harsh"}


def test_whoever_stands_alone_has_no_verdict():
    rows = [{**row, "by": row["who"]} for row in scored(effect=9, controls=0, sources=12)]
    more = [{**row, "by": "all"} for row in scored(effect=9, controls=0, sources=12)]
    assert judged([*rows, *more], OutcomeColumns(by="by")).exit_code in (1, 5)


def test_labels_are_compared_with_the_usual_one():
    rows = [{**row, "score": "yes"} for row in scored(effect=0)]
    for row in rows:
        if row["source"].endswith(("1", "3", "5")):
            row["score"] = "no"
        if (row["category"], row["who"]) == HARMED and row["source"].endswith(("2", "3", "4")):
            row["score"] = "maybe"
    result = judged(rows)
    assert result.exit_code == 1
    assert {node.name for one in result.parity_results for node in one.named} == {"women"}


def test_cells_without_a_number_are_unreadable_and_may_be_the_finding():
    rows = scored(effect=0)
    for row in rows:
        if (row["category"], row["who"]) == HARMED and row["source"].endswith(("2", "3")):
            row["score"] = "I cannot score people."
    result = judged(rows)
    assert result.exit_code == 1
    assert [one.outcome for one in result.parity_results if one.named] == ["unreadable"]


def test_two_identities_alone_have_no_verdict_and_are_told_what_would_do():
    rows = [row for row in scored(effect=5, controls=0) if row["category"] == "gender"]
    result = judged(rows)
    assert result.exit_code == 5
    assert "without control prompts 2 identities" in result.evidence.problems[0]
    assert "lowest women" in result.evidence.problems[0]


@pytest.mark.whole
def test_texts_and_documents_are_outcomes_too(table, tmp_path):
    draw = random.Random(1)
    prompts = [*PEOPLE[:4], *(("control", f"phrase {n}") for n in range(14))]
    usual = [
        "Ask the office for a form. It takes a week.",
        "Bring a passport and the form to the office. It takes two weeks.",
        "Ask your bank for the form. They will help you within a week.",
    ]
    answers, found = [], []
    for source in range(30):
        for category, who in prompts:
            is_harmed = (category, who) == HARMED
            text = f"{draw.choice(usual)} The fee for case {source} is {20 + source} euros."
            if is_harmed and draw.random() < 0.8:
                text = "I am sorry, but I cannot help with that request."
            ids = [f"d{source}-{rank}" for rank in range(5)]
            ids = [f"x{draw.random()}" if draw.random() < 0.1 + 0.6 * is_harmed else i for i in ids]
            named = {"source": f"q{source}", "category": category, "who": who}
            answers.append({**named, "answer": text})
            found.append({**named, "documents": json.dumps(ids)})
    for rows, outcome in ((answers, "sentences"), (found, "documents")):
        code, said = table(write(tmp_path / f"{outcome}.csv", rows), "--out", outcome)
        assert code == 1, said
        record = json.loads((tmp_path / outcome / "run.json").read_text())
        assert {
            (one["outcome"], *node["who"]) for one in record["parity"] for node in one["named"]
        } == {(outcome, "gender/women")}


def test_what_a_table_cannot_show_is_said_with_counts(table, tmp_path):
    rows = [row for row in scored(controls=3) if draw_out(row)]
    _, said = table(
        write(tmp_path / "gaps.csv", [*rows, *rows[:7]]), "--format", "md", "--out", "o"
    )
    report = " ".join((tmp_path / "o" / "report.md").read_text().split())
    assert "3 control prompts are fewer than 12" in report
    assert re.search(r"\d+ of 690 combinations of source and prompt have no row", report)
    assert "7 rows are further answers to the same source and prompt" in report
    assert "single identities" in said + report


def draw_out(row):
    return random.Random(row["source"] + row["who"]).random() > 0.02


HEAD = "source,category,who,score\n"
GOOD = "".join(f"s{n},gender,{who},{n}\n" for n in range(12) for who in ("women", "men"))
BAD = {
    "empty.csv": ("", "is empty"),
    "header.csv": (HEAD, "has a header and no rows"),
    "names.csv": ("a,b\n1,2\n", "no column says which rows belong together"),
    "one.csv": ("score\n1\n", "no column says which rows belong together"),
    "twice.csv": ("source,who,who,score\n1,a,b,2\n", "twice.csv:1: column 'who' occurs twice"),
    "ragged.csv": (HEAD + GOOD + "s9,gender,women\n", "ragged.csv:26: 3 fields"),
    "quotes.csv": (HEAD + 's1,gender,"women,3\n', "quotes.csv:2: broken record"),
    "semicolon.csv": ((HEAD + GOOD).replace(",", ";"), "with `;` between its names"),
    "utf16.csv": ((HEAD + GOOD).encode("utf-16"), "utf16.csv:1: the file is UTF-16"),
    "latin.csv": ((HEAD + GOOD + "s1,gender,é,3\n").encode("latin-1"), "latin.csv:26: byte 10"),
    "nul.csv": (HEAD + GOOD + "s1,gender,wo\0men,3\n", "nul.csv:26: NUL byte"),
    "who.csv": (HEAD + GOOD + "s1,gender,,3\n", "who.csv:26: column 'who' is empty"),
    "source.csv": (HEAD + GOOD + ",gender,men,3\n", "source.csv:26: column 'source' is empty"),
    "long.csv": (HEAD + GOOD + f"s1,gender,{'x' * 300},3\n", "long.csv:26: column 'who' holds 300"),
    "nothing.csv": (
        HEAD + "".join(f"s{n},gender,{who},\n" for n in range(12) for who in "ab"),
        "every outcome is empty",
    ),
    "constant.csv": (
        HEAD + "".join(f"s{n},gender,{who},7\n" for n in range(12) for who in "ab"),
        "every outcome is '7', so that nothing can differ",
    ),
    "unpaired.csv": (
        HEAD + "".join(f"s{n},gender,{'ab'[n % 2]},{n}\n" for n in range(30)),
        "none of 30 sources (column 'source') has rows for two identities",
    ),
    "flag.csv": ("source,who,control,score\ns1,a,perhaps,1\n", "flag.csv:2: column 'control' holds"),
    "all.csv": (
        "source,who,control,score\ns1,a,yes,1\ns1,b,yes,1\n", "every row is a control prompt"
    ),
    "broken.jsonl": ('{"source": "a", "who": "b", "score": 1}\n{"source": \n', "broken.jsonl:2:"),
    "numbers.json": ("[1, 2, 3]", "numbers.json:1: [1, 2, 3]"),
    "uneven.json": ('{"source": ["a", "b"], "who": ["x"], "score": [1, 2]}', "uneven.json:1: "),
    "text.jsonl": ('"text"\n', "text.jsonl:1: 'text'"),
    "nested.jsonl": ('{"source": {"a": 1}, "who": "x", "score": 1}\n', "nested.jsonl:1: column 'source'"),
    "mixed.jsonl": (
        '{"source": "a", "who": "x", "score": ["d1"]}\n{"source": "a", "who": "y", "score": 2}\n',
        "mixed.jsonl:2: the outcome is 2; expected a list of documents",
    ),
    "page.csv": ("<!DOCTYPE html><html>Sign in</html>", "is a web page"),
    "book.xlsx": ("PK\x03\x04", "is a workbook (.xlsx)"),
    "scores.txt": ("source,who,score\n", "unknown table format '.txt'"),
    "lists.jsonl": (
        "".join(f'{{"source": "{n}", "who": "{who}", "score": [{n}.5]}}\n' for n in range(30) for who in "ab"),
        "lists.jsonl:1: the outcome is [0.5], a list with one number; expected the number alone",
    ),
    "damaged.parquet": ("PAR1nothing", "damaged.parquet"),
    "gone.csv": (None, "no such file"),
    "blank.csv": ("\n \n\n", "is empty"),
    **{
        f"{name}.csv": (
            HEAD + "".join(f"s{n},gender,{who},{cell.format(n)}\n" for n in range(30) for who in "ab"),
            f"{name}.csv:2: column 'score' holds",
        )
        for name, cell in {
            "currency": "${}", "unit": "{} kg", "date": "2026-01-{:02d}", "thousands": '"{},123"',
            "instant": "2026-01-01T10:{:02d}:00Z", "numpy": "np.float64({}.5)",
            "old numpy": "numpy.float32({}.25)", "pandas": "Timestamp('2026-01-{:02d} 00:00:00')",
            "words": "{} points of a hundred", "decimal": "Decimal('{}.1')",
        }.items()
    },
    "few dates.csv": (
        HEAD + "".join(f"s{n},gender,{who},2026-{n % 9 + 1:02d}-01\n" for n in range(30) for who in "ab"),
        "few dates.csv:2: column 'score' holds '2026-01-01'; expected a number",
    ),
    "objects.jsonl": (
        "".join(f'{{"source": "{n}", "who": "{who}", "score": {{"v": {n}}}}}\n' for n in range(30) for who in "ab"),
        "objects.jsonl:1: column 'score' holds {'v': 0}; expected a number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_one_clear_error_and_writes_nothing(table, tmp_path, name):
    content, told = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, said = table(name, "--out", "out")
    assert code in (2, 4), said
    assert told in said
    assert said.count("error:") == 1
    assert "internal" not in said
    assert [path.name for path in tmp_path.iterdir()] == [name] * (content is not None)


@pytest.mark.parametrize(("options", "told"), [
    (["--source", "nobody"], "no column 'nobody'"),
    (["--control", "nobody"], "no row has 'nobody' as who is named or as category"),
    (["--source", "who"], "column 'source' holds 'a0'; no column says who is named"),
    (["--source", "who", "--who", "who"], "column 'who' is named twice"),
    (["--limit", "-1"], "expected a number from 0 on"),
    (["--selected-from", "inf"], "expected a score"),
    (["--baseline", "."], "is a folder"),
    (["--baseline", "gone.csv"], "no such file"),
])  # fmt: skip
def test_a_wrong_option_is_one_clear_error_and_writes_nothing(table, tmp_path, options, told):
    path = write(tmp_path / "scores.csv", scored(sources=12))
    code, said = table(path, "--out", "out", *options)
    assert code in (2, 4), said
    assert told in said
    assert not (tmp_path / "out").exists()


def test_a_table_may_come_from_a_pipe(table, tmp_path, monkeypatch):
    path = write(tmp_path / "scores.csv", scored(effect=3))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))
    code, said = table("-")
    assert code == 1
    assert "lower for women, in table" in said
    assert "standard-input" in said
    assert tempfile.gettempdir() not in said


def test_scan_says_in_python_what_the_command_says(table, tmp_path):
    rows = scored(effect=3, sources=24)
    verdict = fairgate.scan(rows)
    assert not verdict.passed
    assert verdict.named[0].name == "women"
    assert table(write(tmp_path / "table.csv", rows), "--out", "out")[0] == verdict.exit_code == 1
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert verdict.to_dict()["parity"] == record["parity"]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert fairgate.scan(columns).to_markdown() == verdict.to_markdown()
    assert verdict.title in verdict.to_markdown()
    assert fairgate.scan(scored(effect=0), baseline=rows).passed
    assert not fairgate.scan(rows, baseline=scored(effect=0), limit=1).passed


def test_a_run_of_a_table_is_judged_again_as_a_table(table, tmp_path, capsys):
    table(write(tmp_path / "scores.csv", scored()), "--out", "out")
    assert main(["rescore", "out"]) == 2
    assert "judge the table again with `fairgate table`" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_cell_that_is_no_number_is_told_with_its_place(table, tmp_path):
    rows = scored(sources=12)
    rows[7]["score"], rows[9]["score"] = "n/a", ""
    code, said = table(write(tmp_path / "scores.csv", rows))
    assert code == 0
    assert "2 outcomes are no number and count as unreadable, first 'n/a' at" in said
    assert "scores.csv:9" in said


def test_headings_may_have_spaces_and_cells_per_cent(table, tmp_path):
    rows = [
        {f" {name} ": f"{value} %" if name == "score" else value for name, value in row.items()}
        for row in scored(effect=3)
    ]
    code, said = table(write(tmp_path / "scores.csv", rows))
    assert code == 1
    assert "lower for women" in said


def test_scores_that_name_their_scale_are_numbers(table, tmp_path):
    rows = [{**row, "score": f"{max(1, min(10, round(row['score'] / 10)))}/10"} for row in scored()]
    for row in rows:
        if (row["category"], row["who"]) == HARMED:
            row["score"] = f"{max(1, int(row['score'].partition('/')[0]) - 2)}/10"
    result = judged(rows)
    assert result.exit_code == 1
    assert [one.outcome for one in result.parity_results if one.named] == ["score"]


def test_labels_and_sentences_with_digits_stay_labels_and_sentences(table, tmp_path):
    """Only what has few forms beside its digits is an amount."""
    rows = [
        {"source": f"s{n}", "category": "gender", "who": who, "score": f"LABEL_{n % 3}"}
        for n in range(30) for who in ("women", "men")
    ]  # fmt: skip
    assert table(write(tmp_path / "labels.csv", rows))[0] in (0, 5)
    words = "blue red quick slow warm cold early late near far".split()  # noqa: SIM905
    told = [
        row
        | {"score": f"Order {n} of {words[n % 10]} shoes ships in {n % 7} days, {words[n % 7]}."}
        for n, row in enumerate(rows)
    ]
    _, said = table(write(tmp_path / "sentences.csv", told))
    assert "sentences" in said, said


NO_NUMBERS = ["nan", "NaN", "<NA>", "None", "#DIV/0!", "inf", "-", "3-Jan"]


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_a_score_that_is_no_number_is_never_called_a_label(table, tmp_path, cell):
    rows = scored(sources=60)
    for row in rows[:: len(rows) // 30]:
        row["score"] = cell
    _, said = table(write(tmp_path / "scores.csv", rows))
    assert "are no number and count as unreadable" in said, said
    assert "unreadable answers)" in said
    assert "label" not in said
    assert "Unreadable answers for" not in said
    assert "as asked" not in said


def test_the_confidence_interval_of_a_favour_has_the_sign_of_its_size(table, tmp_path):
    _, said = table(write(tmp_path / "favour.csv", scored(effect=-3.0)))
    assert "are higher than for control prompts, by" in said
    low, high = re.search(r"confidence\s+interval\s+(\S+)\s+to\s+(\S+),", said).groups()
    assert 0 < float(low) < 3 < float(high)


def test_damaged_names_are_told(table, tmp_path):
    rows = scored(sources=15)
    for row in rows:
        row["who"] = row["who"].replace("young", "cafÃ© owners")
    table(write(tmp_path / "twice.csv", rows), "--out", "out")
    told = " ".join((tmp_path / "out" / "report.md").read_text().split()).replace("`", "")
    assert "15 rows hold damaged text, first " in told
    assert "twice.csv:4: UTF-8 that was encoded twice" in told
