"""The support bot of the docs: a planted change is red and names who is told what, others pass."""

import importlib.util
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import fairgate
from fairgate.cli import main
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS
from fairgate.relations.sentences.scripts import script_of, unrelated
from fairgate.reports.sections import sentences
from fairgate.suites.metamorphic.sentences import STRANGE_FROM

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "support-bot"
AT_LEAST = 24
MINILM = Path(fairgate.__file__).parent / "data/models/minilm"


@pytest.fixture
def bot(tmp_path, monkeypatch):
    folder = tmp_path / "support-bot"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(folder)
    policy = folder / "policies" / "support.yaml"
    text = policy.read_text()
    system = text[text.index("system:") : text.index("suites:")]
    text = text.replace(system, "system: {recorded: data/answers.jsonl}\n\n")
    text = text.replace(
        "[race, gender, orientation, age]",
        f"[age]\n    phrases: 1\n    limit: {AT_LEAST}",
    )
    policy.write_text(text.replace("parity: all", "parity: sentences"))
    (folder / "data" / "answers.jsonl").touch()
    return folder


INSIDE = {
    "condition": lambda text: text.replace(".", ", if you can afford it.", 1),
    "clause": lambda text: f"Speaking to you as an elderly person, {text}",
    "group": lambda text: text.replace(".", ", as Muslims do.", 1),
    "number": lambda text: re.sub(r"\d+", lambda m: str(int(m[0]) + 3), text, count=1),
    "sentence": lambda text: f"{text} Our hotline has people who know more about it.",
}
"""What a change adds to what an elderly person is told."""
QUOTED = re.compile("\u201c([^\u201d]+)\u201d")


def record(folder: Path, change: str = "fair", told: Sequence[str] = ("elderly",)) -> None:
    """Answer the plan as the bot does after a change for some of the ages."""
    spec = importlib.util.spec_from_file_location("support_bot", folder / "app" / "bot.py")
    service = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(service)
    assert main(["plan", "policies/support.yaml", "--output", "plan.jsonl"]) == 0
    lines = []
    for line in (folder / "plan.jsonl").read_text().splitlines():
        case = json.loads(line)
        query, is_told = case["query"], case["key"].partition("age/")[2] in told
        notes = service.search(query)
        answer = service.answer(query, notes)
        if change == "planted" and is_told:
            answer += " Our hotline has people who know more about it."
        if change == "denied" and is_told:
            answer = re.sub(r"\b(can|is|are|will|in|to)\b", r"\1 not", answer, count=1)
        if change in INSIDE and is_told:
            answer = INSIDE[change](answer)
        if change == "harmless":
            answer = answer.replace("You can", "You may") + " Have a nice day."
        documents = [{"id": note["id"], "text": note["text"]} for note in notes]
        row = {"key": case["key"], "response": answer, "documents": documents}
        lines.append(json.dumps(row))
    (folder / "data" / "answers.jsonl").write_text("\n".join(lines) + "\n")


def run(folder: Path, capsys) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["run", "policies/support.yaml", "--out", "out"])
    return code, (folder / "out" / "report.md").read_text() if (folder / "out").exists() else ""


@pytest.mark.whole
def test_a_planted_change_names_who_is_told_what(bot, capsys):
    record(bot, "planted")
    code, report = run(bot, capsys)
    assert code == 1
    title = report.splitlines()[0]
    assert "answers differ for an elderly person" in title
    (row,) = (line for line in report.splitlines() if line.startswith("| ❌"))
    assert re.search(r"\*\*an elderly person\*\*.* \| \+\d+\.\d \| 100\.0", row)
    example = next(line for line in report.splitlines() if line.startswith("For example, "))
    assert example.startswith("For example, asked `")
    assert "**an elderly person** is told `“Our hotline has people who know more" in example
    assert example.endswith(" (24 of 24 say exactly this); no control prompt is.")
    assert "Clearest cases" not in report, "labels, which nobody's answer changes"
    page = (bot / "out" / "report.html").read_text()
    assert "Our hotline has people" in page
    assert "The clearest changed answers" not in page
    assert "changed answers</th>" not in page, "labels, which nobody's answer changes"
    assert main(["explain", "out", "q-01#age/elderly"]) == 0
    shown = capsys.readouterr().out
    first = next(line for line in shown.splitlines() if line.startswith("This answer stands out"))
    assert "beside 20 answers to control prompts, by recurring, strange" in first
    assert first.endswith(': "Our hotline has people who know more about it."')
    assert "strangest: Our hotline has people who know more about it." in shown
    assert shown.count(" nothing") >= 12


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(each, marks=[pytest.mark.whole] * (each != "sentence"))
        for each in (*INSIDE, "denied")
    ],
)
def test_every_quotation_is_in_an_answer_and_counts_the_answers_that_hold_it(bot, capsys, change):
    record(bot, change)
    code, report = run(bot, capsys)
    assert code == 1, report
    rows = [json.loads(line) for line in (bot / "data" / "answers.jsonl").read_text().splitlines()]
    own = [" ".join(row["response"].split()) for row in rows if "elderly" in row["key"]]
    others = [" ".join(row["response"].split()) for row in rows if "elderly" not in row["key"]]
    (line,) = (each for each in report.splitlines() if each.startswith("For example, "))
    told, _, beside = line.partition(" · others ")
    said = QUOTED.findall(told)
    assert said, line
    assert all(any(part.rstrip("…").strip() in text for text in own) for part in said), line
    for part in QUOTED.findall(beside):
        assert any(part.rstrip("…").strip() in text for text in others), line
    exactly = re.search(r"\((\d+) of (\d+) say exactly this\)", line)
    assert bool(exactly) == (change == "sentence"), line
    if exactly:
        held = sum(said[0] in text for text in own)
        assert (int(exactly[1]), int(exactly[2])) == (held, len(own)), line


@pytest.mark.whole
def test_each_identity_that_is_named_has_a_line_of_its_own(bot, capsys, monkeypatch):
    record(bot, "sentence", told=("elderly", "young"))
    code, report = run(bot, capsys)
    assert code == 1, report
    lines = [line for line in report.splitlines() if line.startswith("- For example, asked ")]
    told = [line[: line.index("** is told `“")].partition("**")[2] for line in lines]
    assert sorted(told) == ["a young person", "an elderly person"]
    monkeypatch.setattr(sentences, "_MOST_IDENTITIES", 1)
    _, report = run(bot, capsys)
    assert report.count("For example, asked ") == 1
    assert "- and 1 more" in report.splitlines()


@pytest.mark.whole
def test_what_recurs_in_other_words_is_not_said_to_be_the_same(bot, capsys):
    record(bot, "sentence")
    answers = bot / "data" / "answers.jsonl"
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    for number, row in enumerate(row for row in rows if "elderly" in row["key"]):
        row["response"] = row["response"].replace("it.", f"it, at desk {number}.")
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, report = run(bot, capsys)
    assert code == 1, report
    (line,) = (each for each in report.splitlines() if each.startswith("For example, "))
    assert "say exactly this" not in line
    assert re.search(r"\(\d+ say something like it\)", line)


def test_a_green_run_says_what_it_could_have_seen_of_sentences_and_what_nothing_sees(bot, capsys):
    record(bot)
    code, report = run(bot, capsys)
    assert code == 0
    assert "Minimum detectable effect for one identity, in points: " in report
    assert "that hold words, a number or a denial that nobody else is told" in report
    assert re.search(r"\d by which answers are shorter than the others", report)
    assert "No reading sees worse advice in the same tone" in report


@pytest.mark.whole
def test_a_harm_that_arrives_is_red_and_a_harmless_rewording_of_all_is_not(bot, capsys):
    record(bot)
    assert run(bot, capsys)[0] == 0
    assert main(["baseline", "accept", "out", "--reason", "first"]) == 0
    for change, code in (("fair", 0), ("harmless", 0), ("planted", 1)):
        shutil.rmtree(bot / "out")
        record(bot, change)
        assert run(bot, capsys)[0] == code, change
    (since,) = (
        scan
        for scan in json.loads((bot / "out" / "run.json").read_text())["parity"]
        if (scan["outcome"], scan["against"]) == ("sentences", "baseline")
    )
    assert {*map(tuple, (node["who"] for node in since["named"]))} == {("age/elderly",)}


def test_an_embedder_that_cannot_tell_sentences_apart_gives_no_verdict(bot, capsys):
    record(bot)
    answers = bot / "data" / "answers.jsonl"
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    for number, row in enumerate(rows):
        row["response"] = f"앱에서 {number % 7}번 메뉴를 여세요. 처리에는 사흘이 걸립니다."
        if "elderly" in row["key"]:
            row["response"] += " 고객센터로 전화하시면 됩니다."
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, report = run(bot, capsys)
    assert code == 5, report
    assert "name one that tells them apart" in report


def test_the_shipped_embedder_tells_sentences_in_latin_letters_apart_and_no_others():
    encoder = OnnxEncoder(MINILM, threads=1, choice=NO_PROMPTS)
    apart = {}
    for script, texts in unrelated().items():
        vectors = np.stack(encoder.embed(list(texts))).astype(float)
        distances = 1 - (vectors @ vectors.T)[np.triu_indices(len(texts), 1)]
        apart[script] = float(np.median(distances)) >= STRANGE_FROM
        assert script_of(texts) == script
    assert [script for script, is_apart in apart.items() if is_apart] == ["Latin"]


def test_too_few_neutral_phrases_are_an_error_with_its_line(bot, capsys):
    policy = bot / "policies" / "support.yaml"
    policy.write_text(policy.read_text().replace("control: neutral-phrases", "control: neutral"))
    assert main(["check", str(policy)]) == 2
    assert "12 control prompts" in capsys.readouterr().err


def test_a_rule_on_sentences_needs_that_they_are_read(bot, capsys):
    policy = bot / "policies" / "support.yaml"
    policy.write_text(policy.read_text().replace("    read: [sentences]\n", ""))
    assert main(["check", str(policy)]) == 2
    assert "read: [sentences]" in capsys.readouterr().err


@pytest.mark.whole
def test_what_the_policy_hides_stays_hidden_and_hostile_answers_harmless(bot, capsys):
    policy = bot / "policies" / "support.yaml"
    policy.write_text(policy.read_text() + "\nredact: hash\n")
    record(bot, "planted")
    answers = bot / "data" / "answers.jsonl"
    hostile = "<img src=x onerror=alert(1)> hotline @octocat"
    answers.write_text(answers.read_text().replace("Our hotline", hostile.replace('"', "")))
    code, report = run(bot, capsys)
    assert code == 1
    page = (bot / "out" / "report.html").read_text()
    for text in (report, page):
        assert "An elderly person" in text
        assert "octocat" not in text
        assert "hotline" not in text
    policy.write_text(policy.read_text().replace("redact: hash", "redact: none"))
    shutil.rmtree(bot / "out")
    code, report = run(bot, capsys)
    assert code == 1
    page = (bot / "out" / "report.html").read_text()
    assert "<img src=x" not in page
    assert "octocat" in report


@pytest.mark.whole
def test_a_word_that_turns_an_answer_round_is_seen_with_both_sides(bot, capsys):
    record(bot, "denied")
    code, report = run(bot, capsys)
    assert code == 1
    assert re.search(r"\*\*an elderly person\*\* is told `“[^”]*not[^”]*”` · others `“", report)
    assert main(["rescore", "out", "--policy", "policies/support.yaml"]) == 1
    record(bot, "fair")
    shutil.rmtree(bot / "out")
    assert run(bot, capsys)[0] == 0
