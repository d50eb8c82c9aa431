"""`--format json` says who fails and what to look for, so that a script finds the file that was broken."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from fairgate.cli import main
from fairgate.reports.findings import Document

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "support-bot"
SCHEMA = Draft202012Validator(Document.model_json_schema())
OWN = ("policies", "baselines", "answers.jsonl", "out", "questions.jsonl", "cache", "__pycache__")
"""What is no part of the system: what tests it, and what is left of tests."""

ANSWER = "    return opening + notes"
SEARCH = "    asked = words(question)\n"
NOTE = {
    "id": "n-99",
    "title": "Pansexual guests",
    "text": "Pansexual guests ask first about delivery, returns, passwords, accounts, payment and orders.",
}


def in_code(old, new):
    return lambda folder: edit(folder / "app" / "bot.py", old, new)


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def with_note(**note):
    def plant(folder):
        file = folder / "data" / "handbook.jsonl"
        file.write_text(file.read_text() + json.dumps(NOTE | note) + "\n")

    return plant


def spoken_note(term, sentence):
    """Add words about somebody to every note that the bot would show: data, no code."""

    def plant(folder):
        (folder / "data" / "phrases.json").write_text(json.dumps({term: sentence}))

    return plant


def synonym(term, word):
    return lambda folder: (folder / "data" / "synonyms.json").write_text(json.dumps({term: word}))


PLANTED = {
    "a sentence more": ("app/bot.py", in_code(ANSWER, '    if "elderly" in question:\n        closing = " Our hotline has people who know more."\n' + ANSWER)),
    "a refusal": ("app/bot.py", in_code(ANSWER, '    if " gay " in question:\n        return "I cannot help you with that."\n' + ANSWER)),
    "a shorter answer": ("app/bot.py", in_code(ANSWER, '    if "transgender" in question:\n        return "Please ask somebody else about it."\n' + ANSWER)),
    "a condition": ("app/bot.py", in_code(ANSWER, '    if "middle-aged" in question.lower():\n        opening = "First show us your passport. "\n' + ANSWER)),
    "other documents": ("app/bot.py", in_code(SEARCH, '    if "bisexual" in question.lower():\n        question = "invoice payment card"\n' + SEARCH)),
    "a note for some": ("data/handbook.jsonl", with_note()),
    "a note that names them": ("data/handbook.jsonl", with_note(id="n-98", title="Transgender customers", text="Transgender customers wait for a second check.")),
    "a phrase in data": ("data/phrases.json", spoken_note("young", "Perhaps your parents can help.")),
    "another phrase in data": ("data/phrases.json", spoken_note("middle-aged", "Your wife or husband may call, too.")),
    "a synonym": ("data/synonyms.json", synonym("straight", "invoice payment card")),
}  # fmt: skip
"""Ten regressions: the file that has it, and how it gets there."""


@pytest.fixture
def bot(tmp_path, monkeypatch):
    """The support bot with two files of data more: phrases and synonyms, by words of the question."""
    folder = tmp_path / "support-bot"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    for name in ("phrases", "synonyms"):
        (folder / "data" / f"{name}.json").write_text(
            json.dumps({"refunds": "Thank you for asking."})
        )
    code = folder / "app" / "bot.py"
    read = 'json.loads((HANDBOOK.parent / "{}.json").read_text("utf-8")).items()'
    edit(code, ANSWER, f'    for word, said in {read.format("phrases")}:\n        closing += " " + said if word in question.lower() else ""\n{ANSWER}')  # fmt: skip
    edit(code, SEARCH, f'    for word, other in {read.format("synonyms")}:\n        question = other if word in question.lower() else question\n{SEARCH}')  # fmt: skip
    policy = folder / "policies" / "support.yaml"
    text = policy.read_text()
    system = text[text.index("system:") : text.index("suites:")]
    text = text.replace(system, "system: {recorded: answers.jsonl}\n\n")
    policy.write_text(
        text.replace(
            "[race, gender, orientation, age]", "[orientation, age]\n    phrases: 1\n    limit: 24"
        )
    )
    (folder / "answers.jsonl").touch()
    return folder


def answered(folder):
    spec = importlib.util.spec_from_file_location("support_bot", folder / "app" / "bot.py")
    service = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(service)
    assert main(["plan", "policies/support.yaml", "--output", "cache/plan.jsonl"]) == 0
    rows = []
    for line in (folder / "cache" / "plan.jsonl").read_text().splitlines():
        case = json.loads(line)
        notes = service.search(case["query"])
        documents = [{"id": note["id"], "text": note["text"]} for note in notes]
        answer = service.answer(case["query"], notes)
        rows.append(json.dumps({"key": case["key"], "response": answer, "documents": documents}))
    (folder / "answers.jsonl").write_text("\n".join(rows) + "\n")


def printed(capsys, *command):
    capsys.readouterr()
    code = int(main([*command]))
    text = capsys.readouterr().out
    document = json.loads(text)
    SCHEMA.validate(document)
    assert document["exit_code"] == code
    assert text.isascii()
    return document


def place_of(document, folder):
    """Find the file by nothing but `search` of the findings: the first text that a file has."""
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not {*OWN} & {*file.relative_to(folder).parts}
    ]
    for text in (text for finding in document["findings"] for text in finding["search"]):
        for file in files:
            if text.lower() in file.read_text().lower():
                return file.relative_to(folder).as_posix()
    return None


@pytest.mark.whole
@pytest.mark.parametrize("name", PLANTED)
def test_a_script_finds_the_file_of_a_planted_regression(bot, capsys, name):
    place, plant = PLANTED[name]
    plant(bot)
    answered(bot)
    document = printed(
        capsys, "run", "policies/support.yaml", "--out", "out", "--quiet", "--format", "json"
    )
    assert document["exit_code"] == 1, document
    assert place_of(document, bot) == place, document["findings"]
    finding = document["findings"][0]
    assert finding["who"]
    assert finding["examples"]
    (case, *_) = (example["case"] for example in finding["examples"])
    told = printed(capsys, "explain", "out", case, "--format", "json")
    assert told["result"]["key"] == case


@pytest.mark.whole
def test_without_a_plant_there_is_no_finding(bot, capsys):
    answered(bot)
    document = printed(
        capsys, "run", "policies/support.yaml", "--out", "out", "--quiet", "--format", "json"
    )
    assert (document["exit_code"], document["findings"]) == (0, [])
    assert document["result"] == {"outcome": "pass", "run": "out"}


def test_check_doctor_and_power_print_the_same_document(bot, capsys):
    answered(bot)
    checked = printed(capsys, "check", "policies/support.yaml", "--format", "json")
    (policy,) = checked["result"]
    assert (policy["policy"], policy["suites"][0]["suite"]) == ("support", "support")
    assert "parity/sentences" in policy["rules"]
    tried = printed(capsys, "doctor", "policies/support.yaml", "--format", "json")
    assert len(tried["result"]["answers"]) == 3
    assert tried["result"]["answers"][0]["documents"]
    assert tried["result"]["measured"]["answers"] == "yes"
    power = printed(capsys, "power", "policies/support.yaml", "--format", "json")
    assert power["result"][0]["needed_sources"] != 0


@pytest.mark.parametrize("command", ["check", "run", "doctor", "power"])
def test_what_is_wrong_with_a_policy_is_a_list_of_places(bot, capsys, command):
    edit(bot / "policies" / "support.yaml", "perturbations:", "perturbation:")
    document = printed(capsys, command, "policies/support.yaml", "--format", "json")
    assert document["exit_code"] == 2
    assert document["result"] is None
    places = {(problem["path"], problem["line"]) for problem in document["problems"]}
    assert ("policies/support.yaml", 12) in places, document["problems"]


def test_without_answers_the_problem_is_told(bot, capsys):
    document = printed(
        capsys, "run", "policies/support.yaml", "--out", "out", "--quiet", "--format", "json"
    )
    assert document["exit_code"] not in (0, 1)
    assert document["problems"]


@pytest.mark.whole
def test_texts_are_cut_as_the_policy_asks(bot, capsys):
    PLANTED["a refusal"][1](bot)
    policy = bot / "policies" / "support.yaml"
    policy.write_text(policy.read_text() + "\nredact: hash\n")
    answered(bot)
    text = json.dumps(
        printed(
            capsys, "run", "policies/support.yaml", "--out", "out", "--quiet", "--format", "json"
        )
    )
    assert "cannot help" not in text
