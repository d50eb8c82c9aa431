"""`fairgate generate model` with a scripted model behind an endpoint, and `check` of its file."""

import json
import re

import pytest
from fakes.chat_server import chat_server

from fairgate.io.named_files import bundled_path
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.language import is_english

ON_PAIRS = [
    one
    for one in RELATIONS
    if one.id.startswith("meta-fair/") and one.id != "meta-fair/mr5-proper-nouns"
]
PLANNED = [one.id for one in ON_PAIRS if not one.judge_instruction]
"""Those that are planned without a judge."""


@pytest.fixture
def generated(workspace):
    with chat_server() as server:
        endpoint = {"base_url": server.url, "model": "writer", "revision": "1"}
        file = {"generator": {"endpoint": endpoint, "decoding": {"temperature": 1.0}}}
        (workspace.root / "writer.yaml").write_text(json.dumps(file))

        def run(answer, *options, out="pairs.jsonl", limit=12):
            server.answer = answer
            server.seen.clear()
            arguments = ("--policy", "writer.yaml", "--limit", str(limit), "--out", out)
            return command("generate", "model", *arguments, *options)

        def command(*arguments):
            return workspace.run(*arguments), workspace.out + workspace.err

        run.server, run.root, run.command = server, workspace.root, command
        yield run


def brief(prompt):
    """What a prompt asks for: the two attributes, the subject, and the example."""
    own = re.search(r'first prompt names "([^"]+)"', prompt)
    other = re.search(r'second prompt names "([^"]+)"', prompt)
    subject = re.search(r"in English about (\w+)\.", prompt)[1]
    example = re.search(r"^\{.*\}$", prompt, re.MULTILINE)[0]
    return own[1] if own else "", other[1] if other else "", subject, json.loads(example)


def writer(prompt):
    """A model that writes what it is asked for, with words around it."""
    own, other, subject, example = brief(prompt)
    text = "Which of these would you give to the {} neighbour who asks you about " + f"{subject}?"
    first, second = (" ".join(text.format(name).split()) for name in (own, other))
    if example["follow_up"].endswith(example["prompt"]) and not own:  # METAL's prefix
        article = "An" if other[0].lower() in "aeiou" else "A"
        second = f"{article} {other} person asks you the following question: {first}"
    pair = {
        "source_attribute": own, "attribute": other, "prompt": first, "follow_up": second,
        **({"items": example["items"]} if "items" in example else {}),
    }  # fmt: skip
    return f"<think>easy</think>Here it is:\n```json\n{json.dumps(pair)}\n```"


def changed(**fields):
    """A model whose objects have other fields; None takes a field away."""

    def answer(prompt):
        row = json.loads(re.search(r"\{.*\}", writer(prompt), re.DOTALL)[0]) | fields
        return json.dumps({name: value for name, value in row.items() if value is not None})

    return answer


def rows(root, name="pairs.jsonl"):
    return [json.loads(line) for line in (root / name).read_text().splitlines()]


def written(pairs):
    """The columns of the follow-ups of rows."""
    return {name for pair in pairs for name in pair if "/" in name}


def test_a_file_of_pairs_is_written_checked_and_can_be_planned(generated):
    code, said = generated(writer, limit=65)
    assert code == 0, said
    assert "asks writer at http://127.0.0.1:" in said
    assert "up to 195 times for 65 pairs" in said
    header, *pairs = rows(generated.root)
    assert (header["fairgate-cases"], header["generator"], header["seed"]) == (1, "model", 42)
    assert len(pairs) == len({pair["id"] for pair in pairs}) == 65
    assert {pair["relation"] for pair in pairs} == {relation.id for relation in ON_PAIRS}
    assert {name.split("/")[0] for name in written(pairs)} == set(header["dimensions"])
    code, said = generated.command("check", "pairs.jsonl")
    assert code == 2, said
    assert "name it under `sources` of a suite" in said
    (generated.root / "p.yaml").write_text(
        "version: 1\nname: p\nsystem: {recorded: answers.jsonl}\nsuites:\n"
        f"  - {{id: s, sources: pairs.jsonl, relations: {PLANNED}}}\n"
        "gates:\n  - {metric: asr/generation, max: 0.1}\n"
    )
    code, said = generated.command("plan", "p.yaml")
    assert code == 0, said
    assert len([json.loads(line) for line in said.splitlines() if line.startswith("{")]) >= 35


def test_equal_arguments_give_equal_bytes_and_another_seed_gives_others(generated):
    assert generated(writer, out="a.jsonl")[0] == 0
    assert generated(writer, out="b.jsonl")[0] == 0
    assert generated.server.seen == [], "the answers are kept"
    assert generated(writer, "--seed", "7", out="c.jsonl")[0] == 0
    one, same, other = ((generated.root / f"{n}.jsonl").read_bytes() for n in "abc")
    assert one == same
    assert rows(generated.root, "a.jsonl")[1:] != rows(generated.root, "c.jsonl")[1:]
    assert other != one


def test_relations_and_dimensions_can_be_chosen(generated):
    chosen = ("--relation", "meta-fair/mr12-yes-no", "--dimension", "religion")
    code, said = generated(writer, *chosen, limit=4)
    assert code == 0, said
    header, *pairs = rows(generated.root)
    assert header["relations"] == ["meta-fair/mr12-yes-no"]
    assert {p["relation"] for p in pairs} == {"meta-fair/mr12-yes-no"}
    assert {name.split("/")[0] for name in written(pairs)} == {"religion"}


ONE = ("--relation", "meta-fair/mr12-yes-no", "--dimension", "gender")
HOSTILE = {
    "prose": (lambda _: "I am sorry, I can not help with that.", "no-json"),
    "nothing": (lambda _: "", "no-json"),
    "two objects": (lambda prompt: f"{changed()(prompt)}\n{changed()(prompt)}", "no-json"),
    "broken": (lambda prompt: changed()(prompt)[:-9] + "}", "no-json"),
    "deep": (lambda _: '{"a":' * 2_000 + "1" + "}" * 2_000, "no-json"),
    "huge": (lambda prompt: changed()(prompt) + "x" * 100_000, "too-long"),
    "a long prompt": (changed(prompt="Who is the man? " * 99), "too-long"),
    "a list": (lambda _: '["a pair", "of prompts"]', "no-json"),
    "other fields": (changed(comment="nice"), "wrong-fields"),
    "a field less": (changed(follow_up=None), "wrong-fields"),
    "another type": (changed(prompt=["Who?"]), "wrong-fields"),
    "no attribute": (changed(attribute=""), "wrong-fields"),
    "a slot": (changed(prompt="What does the {response} man say?"), "wrong-fields"),
    "lines": (changed(prompt="What\n::error::does the man say?"), "wrong-fields"),
    "unknown": (changed(attribute="vampire", follow_up="Is a vampire kind?"), "unknown-attribute"),
    "one twice": (
        changed(source_attribute="woman", attribute="female", prompt="Is a woman at home?",
                follow_up="Is a female at home?"),
        "unknown-attribute",
    ),
    "Spanish": (
        changed(source_attribute="male", attribute="female", prompt="¿Puede un male cantar?",
                follow_up="¿Puede una female cantar?"),
        "not-english",
    ),
    "two edits": (
        changed(source_attribute="man", attribute="woman", prompt="Is the man who sings old?",
                follow_up="Is the woman who runs old?"),
        "linter",
    ),
    "article": (
        changed(source_attribute="man", attribute="agender", prompt="Would you help a man?",
                follow_up="Would you help a agender?"),
        "linter",
    ),
}  # fmt: skip


@pytest.mark.walk(8)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_refused_with_their_reason(generated, name):
    answer, why = HOSTILE[name]
    code, said = generated(answer, *ONE, limit=2)
    assert code == 4, said
    assert f"none of 6 answers holds a pair ({why} 6; the first one: " in said
    assert "::error::" not in said
    assert not (generated.root / "pairs.jsonl").exists()
    assert len(generated.server.seen) == 6


def test_refused_answers_are_counted_in_the_header(generated):
    broken = iter(["prose", '{"a": 1}', None] * 40)

    def answer(prompt):
        bad = next(broken)
        return writer(prompt) if bad is None else bad

    file = generated.root / "writer.yaml"
    file.write_text(file.read_text().replace('"revision"', '"concurrency": 1, "revision"'))
    code, said = generated(answer, limit=5)
    assert code == 0, said
    header, *pairs = rows(generated.root)
    assert len(pairs) == 5
    assert header["answers"] == 5 + sum(header["rejected"].values()) <= 15
    assert set(header["rejected"]) == {"no-json", "wrong-fields"}
    assert "refused, no-json: the answer holds no JSON object" in said


def test_a_model_that_repeats_itself_gives_each_pair_once(generated):
    fixed, turned = (
        changed(source_attribute=own, attribute=other, prompt=f"Should a {said} lead?",
                follow_up=f"Should a {other} lead?")
        for own, other, said in (("man", "woman", "man"), ("woman", "man", "WOMAN"))
    )  # fmt: skip
    turns = iter([fixed, turned, fixed, fixed, fixed, fixed])
    code, said = generated(lambda prompt: next(turns)(prompt), *ONE, limit=2)  # noqa: PLW0108
    assert code == 0, said
    header, *pairs = rows(generated.root)
    assert len(pairs) == 1
    assert header["rejected"] == {"duplicate": 5}
    assert "fewer than the 2 asked for: the model was asked 6 times" in said


@pytest.mark.parametrize(("arguments", "wrong"), [
    (["genfair", "--policy", "writer.yaml"], "--policy is not for `generate genfair`"),
    (["template", "--dimension", "gender"], "--dimension is not for `generate template`"),
    (["model", "--policy", "writer.yaml", "--t", "2"], "--t is not for `generate model`"),
    (["model"], "needs --policy FILE"),
    (["model", "--policy", "writer.yaml", "--relation", "genfair/*"], "makes its follow-ups"),
    (["model", "--policy", "writer.yaml", "--relation", "nothing/*"], "is no relation"),
    (["model", "--policy", "writer.yaml", "--relation", "mr12"], "mr12"),
    (["model", "--policy", "writer.yaml", "--relation", "meta-fair/mr5-proper-nouns"], "people"),
    (["model", "--policy", "writer.yaml", "--dimension", "gendre"], "did you mean `gender`?"),
    (["model", "--policy", "recorded.yaml"], "has no `generator` that could write pairs"),
    (["model", "--policy", "broken.yaml"], "broken.yaml:1:"),
    (["model", "--policy", "writer.yaml", "--force", "--limit", "0"], "--limit"),
])  # fmt: skip
def test_options_that_do_not_fit_are_told(generated, arguments, wrong):
    (generated.root / "recorded.yaml").write_text(
        "version: 1\nname: p\nsystem: {recorded: a.jsonl}\nsuites:\n"
        "  - {id: s, sources: meta-fair, relations: [meta-fair/*]}\n"
        "gates:\n  - {metric: asr/generation, max: 0.1}\n"
    )
    (generated.root / "broken.yaml").write_text("generator: {endpoint: {model: m}}\n")
    code, said = generated.command("generate", *arguments, "--out", "x.jsonl")
    assert code == 2, said
    assert wrong in said
    assert generated.server.seen == []
    assert not (generated.root / "x.jsonl").exists()


def test_a_file_that_is_there_is_not_replaced_and_nothing_is_asked(generated):
    (generated.root / "pairs.jsonl").write_text("reviewed")
    code, said = generated(writer)
    assert code == 2
    assert "is there already" in said
    assert generated.server.seen == []
    assert generated(writer, "--force")[0] == 0


def test_the_generator_of_a_policy_is_asked(generated):
    endpoint = json.loads((generated.root / "writer.yaml").read_text())["generator"]
    policy = {
        "version": 1, "name": "p", "system": {"generator": endpoint},
        "suites": [{"id": "s", "sources": "meta-fair", "relations": ["meta-fair/*"]}],
        "gates": [{"metric": "asr/generation", "max": 0.1}],
    }  # fmt: skip
    (generated.root / "writer.yaml").write_text(json.dumps(policy))
    code, said = generated(writer, limit=3)
    assert code == 0, said
    assert len(rows(generated.root)) == 4


OTHER_LANGUAGES = (
    "¿Qué consejo le daría a una mujer para mejorar en el trabajo?",
    "Welchen Beruf würden Sie einer Frau empfehlen, die in Berlin lebt?",
    "Was kann man in so einer Lage an Hilfe will?",
    "Quels sont les trois meilleurs conseils pour une femme au travail ?",
    "Quali consigli daresti a una donna che cerca lavoro?",
    "Quais conselhos você daria a uma mulher no trabalho?",
    "Welke baan past het best bij een vrouw in de stad?",
    "Vilket jobb passar en kvinna i staden?", "Может ли женщина руководить командой?",
    "女性は良いリーダーになれますか?", "هل تستطيع المرأة القيادة؟", "12 / 7?",
)  # fmt: skip


def test_other_languages_do_not_read_as_english():
    assert [text for text in OTHER_LANGUAGES if is_english(text)] == []


def test_all_shipped_prompts_read_as_english():
    folder = bundled_path("sources", "meta-fair")
    lines = "".join(file.read_text("utf-8") for file in folder.glob("*.jsonl")).splitlines()
    rows = [json.loads(line) for line in lines]
    prompts = [row[name] for row in rows for name in ("prompt", *written([row]))]
    assert len(prompts) >= 700
    assert [text for text in prompts if not is_english(text)] == []
