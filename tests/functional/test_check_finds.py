"""`fairgate check` finds what can be found without running, all at once."""

import json
import re
import shutil
from functools import partial
from itertools import combinations, product

import pytest

from fairgate.domain.cases import Case, TestPlan
from fairgate.domain.ports import Runtime
from fairgate.systems.recorded import RecordedPolicy

WHOLE = """\
version: 1
name: mine
system:
{system}
suites:
  - id: s
    sources: {sources}
    task: {task}
    perturbations: {sets}
    {suite}
{more}gates:
  - {{metric: {metric}, max: {bound}}}
  - {gate}
"""
MODELS = """\
  retriever: {{corpus: {corpus}, embedder: {embedder}, top_k: {top_k}}}
  generator: {generator}"""
RIGHT = {
    "system": MODELS, "corpus": "corpus.jsonl", "embedder": "minilm", "top_k": 2, "generator": "{model: demo-slm}",
    "sources": "sources.jsonl", "task": "sentiment", "sets": "[gender]", "suite": "limit: 2",
    "more": "", "metric": "asr/generation", "bound": 0.2,
    "gate": "{parity: unreadable, max: 0.02}",
}  # fmt: skip


@pytest.fixture
def place(workspace):
    workspace.sources(4)
    rows = [{"id": n, "text": f"A document {n}.", "label": "toxic"} for n in range(4)]
    workspace.write("corpus.jsonl", rows)
    return workspace


def policy_of(changes):
    slots = RIGHT | changes
    return WHOLE.format(**slots | {"system": slots["system"].format(**slots)})


def written(place, **changes):
    (place.root / "p.yaml").write_text(policy_of(changes))


def checked(place, **changes):
    written(place, **changes)
    return place.run("check", "p.yaml")


def model(place, name, *files):
    folder = place.root / name
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_text("{}")


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_folder_of_models_that_lacks_one_is_no_id_of_the_hub(place, command):
    model(place, "models/my-model", "model.onnx", "tokenizer.json")
    written(place, generator="{model: models/my-modle}")
    assert place.run(command, "p.yaml") == {"check": 2, "run": 4}[command]
    assert "there is no folder 'models/my-modle'; did you mean `./models/my-model`?" in place.err
    assert "fairgate export" in place.err


@pytest.mark.parametrize("label", [{"label": "toxic"}, {}])
def test_a_valid_policy_says_what_its_corpus_holds(place, label):
    place.write("corpus.jsonl", [{"id": n, "text": f"No. {n}."} | label for n in range(4)])
    assert checked(place) == 0
    assert f"4 documents, {'4' if label else 'none'} with a label" in place.out


def test_check_says_which_questions_a_recording_answers(workspace):
    workspace.sources(4)
    workspace.policy()
    keys = [case["key"] for case in workspace.plan()]
    answered = keys[:-7]
    rows = [{"key": key, "response": "positive"} for key in (*answered, "s0#gender/womn")]
    workspace.write("answers.jsonl", rows)
    assert workspace.run("check", "policy.yaml") == 0
    assert f"answers: {len(answered)} of {len(keys)} questions answered" in workspace.out
    assert f"first missing: '{keys[-7]}'" in workspace.out
    assert "1 line answers no question, first 's0#gender/womn' (did you mean" in workspace.out
    workspace.write("answers.jsonl", [])
    assert workspace.run("check", "policy.yaml") == 0
    assert f"answers: 0 of {len(keys)} questions answered" in workspace.out
    (workspace.root / "answers.jsonl").write_text("{")
    assert workspace.run("check", "policy.yaml") == 2
    assert "answers.jsonl:1" in workspace.err


def test_check_says_that_sources_have_changed_since_a_recording(workspace):
    """Where one that is asked has no line and a line's is asked no more, whoever names them."""
    texts = [f"Text number {number} is fine." for number in range(4)]
    first = [{"text": text} for text in texts]
    workspace.policy()
    workspace.write("sources.jsonl", first)
    rows = [{"key": case["key"], "response": "positive"} for case in workspace.plan()]
    workspace.write("answers.jsonl", rows)
    cases = {
        "the same": (first, False),
        "edited": ([{"text": "Another text."}, *first[1:]], True),
        "all edited": ([{"text": f"{text} Really."} for text in texts], True),
        "ids given": ([{"id": f"n{n}", **row} for n, row in enumerate(first)], True),
        "one more": ([*first, {"text": "Another text."}], False),
        "one less": (first[1:], False),
    }
    wrong = []
    for what, (sources, expected) in cases.items():
        workspace.write("sources.jsonl", sources)
        assert workspace.run("check", "policy.yaml") == 0, what
        told = "sources have changed since" in " ".join(workspace.out.split())
        wrong += [what] if told != expected else []
    assert not wrong
    workspace.write("sources.jsonl", cases["edited"][0])
    workspace.run("run", "policy.yaml")
    assert "sources have changed since" in " ".join((workspace.out + workspace.err).split())


def test_a_question_about_an_answer_counts_once_there_is_the_answer(tmp_path):
    case = partial(Case, suite="s", query="q", instruction="", labels=(), cluster="c")
    cases = [case(key="a"), case(key="b"), case(key="b#again", embeds="b")]
    plan = TestPlan(cases=cases, units=())
    path = tmp_path / "answers.jsonl"
    for answered, said in (("a", "1 of 2"), ("ab", "2 of 3")):
        rows = [{"key": key, "response": "yes"} for key in answered]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found, *_ = RecordedPolicy(recorded=str(path)).examined(plan, Runtime())
        assert f"answers: {said} questions answered" in found.sentence


ITEMS = "  - {id: q, kind: bbq, items: demo-bbq, limit: 4, "
FILES = {
    "twice.jsonl": '{"id": 1, "text": "One."}\n{"id": 1, "text": "Two."}\n',
    "broken.jsonl": "{\n", "empty.jsonl": "", "bytes.jsonl": "\x00", "other.csv": "a,b\n1,2\n",
    "models/none/README": "", "models/no-tokenizer/model.onnx": "{}",
    "models/no-pooling/model.onnx": "{}", "models/no-pooling/tokenizer.json": "{}",
    "task.yaml": "labels: [a]\n", "set.yaml": "id: set\n", "record.json": "{}",
    "attribute.yaml": "id: x\n",
}  # fmt: skip
REFUSED = {
    **{f"corpus {name}": {"corpus": name} for name in (
        "none.jsonl", "twice.jsonl", "broken.jsonl", "empty.jsonl", "bytes.jsonl", "other.csv"
    )},
    **{f"sources {name}": {"sources": name} for name in (
        "none.jsonl", "twice.jsonl", "broken.jsonl", "empty.jsonl", "bytes.jsonl", "other.csv"
    )},
    **{f"embedder {name}": {"embedder": f"models/{name}"} for name in (
        "none", "no-tokenizer", "no-pooling", "nowhere"
    )},
    **{f"generator {name}": {"generator": f"{{model: models/{name}}}"} for name in (
        "none", "no-tokenizer", "nowhere"
    )},
    "too few documents": {"top_k": 9},
    "no such column": {"corpus": "{path: corpus.jsonl, text: body}"},
    "revision of an embedder's folder": {"embedder": "{model: minilm, revision: abc}"},
    "revision of a generator's folder": {"generator": "{model: demo-slm, revision: abc}"},
    "task file": {"task": "none.yaml"}, "wrong task file": {"task": "task.yaml"},
    "perturbations": {"sets": "[gendr]"}, "wrong perturbations": {"sets": "[set.yaml]"},
    "attributes": {"suite": "attributes: [attribute.yaml]"},
    "judge needed": {"suite": "relations: [meta-fair/mr1-single-attribute]"},
    "judge record": {"more": "judge: {id: j, generators: [{model: demo-slm}], record: none.json}\n"},
    "wrong record": {"more": "judge: {id: j, generators: [{model: demo-slm}], record: record.json}\n"},
    "judge's model": {"more": "judge: {id: j, generators: [{model: models/nowhere}]}\n",
                      "suite": "relations: [meta-fair/mr1-single-attribute]", "sets": "[]",
                      "sources": "meta-fair", "task": "none"},
    "judge's revision": {"more": "judge: {id: j, generators: [{model: demo-slm, revision: a}]}\n",
                         "suite": "relations: [meta-fair/mr1-single-attribute]", "sets": "[]",
                         "sources": "meta-fair", "task": "none"},
    "items": {"more": "  - {id: q, kind: bbq, items: none.jsonl, settings: [none]}\n"},
    "collections": {"more": f"{ITEMS}settings: [full], collections: [none.jsonl]}}\n"},
    "suite's retriever": {
        "more": f"{ITEMS}settings: [full], top_k: 2, collections: [demo-stances], "
        "retrievers: ['contriever:models/nowhere']}\n"
    },
    "metric": {"metric": "asr/genaration"},
    "nothing to judge": {"gate": "{parity: unreadable, where: {term: woma}, max: 0.1}"},
    "no dimension": {"gate": "{metric: asr/generation, where: {k: x}, max: 0.1}"},
    "program": {"system": "  command: [nowhere-program]"},
    "program in a folder": {"system": "  command: {{run: [./nowhere.py], processes: 2}}"},
    "retriever's program": {
        "system": "  retriever: {{command: [nowhere], top_k: 2}}\n  generator: {generator}"
    },
    "recorded": {"system": "  recorded: none.jsonl"},
    "broken answers": {"system": "  recorded: broken.jsonl"},
    "baseline": {"baselines/mine.json": "{"},
    "another's baseline": {"baselines/mine.json": "other"},
    "anchor": {
        "baselines/mine.anchor.json": "{",
        "gate": "{metric: asr/generation, regression: 0.02, budget: 0.05}",
    },
}  # fmt: skip


def planted(place, changes):
    slots = {name: value for name, value in changes.items() if name in RIGHT}
    files = FILES | {name: text for name, text in changes.items() if name not in RIGHT}
    for name, text in (files | {"policies/p.yaml": policy_of(slots)}).items():
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return "policies/p.yaml"


def sentences(text):
    lines = (line.removeprefix("fairgate: error: ") for line in text.splitlines())
    return {re.sub(r"^policies/p.yaml:[0-9]+:[0-9]+: ", "", line) for line in lines if line}


@pytest.mark.walk(10)
@pytest.mark.parametrize("name", REFUSED)
def test_what_a_run_refuses_before_it_asks_check_says_in_the_same_words(place, name):
    """A run ends with 2, 3 or 4, by who has to act; `check` asks nobody and ends with 2."""
    policy = planted(place, REFUSED[name])
    code = place.run("run", policy, "--out", "out", "--quiet")
    refused = place.err
    assert (code == 3) == (name in ("baseline", "another's baseline", "anchor")), place.out
    assert code in (2, 3, 4), place.out
    assert place.run("check", policy) == 2, place.out
    assert refused == place.err
    assert sentences(refused)


def test_what_is_right_is_refused_by_neither(place):
    policy = planted(place, {})
    assert place.run("check", policy) == 0, place.err
    assert place.run("run", policy, "--out", "out", "--quiet", "--limit", "1") in (0, 1, 5), (
        place.err
    )


MISTAKES = {
    "yaml": ({"suite": "limit: 2\n    limit: 2"}, "'limit'"),
    "unknown key": ({"suite": "limt: 2"}, "limt"), "value": ({"bound": "much"}, "'much'"),
    "metric": ({"metric": "asr/genaration"}, "unknown metric"),
    "system's value": ({"generator": "{model: demo-slm, document_characters: none}"}, "'none'"),
    "judge": ({"more": "judge: {id: j, record: r.json}\n"}, "generators"),
    "contradiction": ({"gate": "{parity: unreadable, suite: t, max: 0.02}"}, "'t'"),
    "nothing to judge": ({"gate": "{parity: unreadable, where: {term: woma}, max: 0.1}"}, "'woma'"),
    "no suite's": ({"gate": "{metric: asr/generation, where: {k: x}, max: 0.1}"}, "`k`|'k'"),
    "sources": ({"sources": "none.jsonl"}, "none.jsonl"),
    "data": ({"sources": "twice.jsonl"}, "was used on line 1 already"),
    "corpus": ({"corpus": "nowhere.jsonl"}, "nowhere.jsonl"),
    "depth": ({"top_k": 9}, "top_k is 9"),
    "model": ({"embedder": "models/nowhere"}, "models/nowhere"),
    "perturbations": ({"sets": "[gendr]"}, "gendr"),
    "CSV column": ({"sources": "{path: other.csv, text: body}"}, "other.csv.*'body'"),
    "attributes": ({"suite": "attributes: [attribute.yaml]"}, "attribute.yaml:1"),
    "judge's record": (
        {"more": "judge: {id: j, generators: [{model: demo-slm}], record: none.json}\n"}, "none.json"
    ),
    "program": ({"system": "  command: [nowhere-program]"}, "nowhere-program"),
    "answers": ({"system": "  recorded: broken.jsonl"}, "broken.jsonl:2"),
    "baseline": ({"baselines/mine.json": "{"}, "baselines/mine.json"),
}  # fmt: skip
UNLOADED = ("sources", "data", "CSV column", "perturbations")
DEPENDENT = {
    # The first is about what the second leaves open: the dimensions and keys of a suite that cannot
    # be loaded, how many documents a corpus has that cannot be read.
    *map(frozenset, product(("nothing to judge", "no suite's"), UNLOADED)),
    frozenset(("depth", "corpus")),
}  # fmt: skip
OF_MODELS = {"corpus", "embedder", "top_k", "generator"}


@pytest.mark.whole
def test_two_mistakes_of_any_two_kinds_are_told_in_one_pass(place):
    """By `check` and by `run`; where one hides the other, and only there, the pair is dependent."""
    missed, pairs = [], 0
    for one, other in combinations(MISTAKES, 2):
        (first, said), (second, also) = MISTAKES[one], MISTAKES[other]
        slots = [*first, *second]
        is_one_place = len({*slots}) < len(slots) or ("system" in slots and OF_MODELS & {*slots})
        if is_one_place:
            continue
        shutil.rmtree(place.root / "baselines", ignore_errors=True)
        policy = planted(place, {**first, **second})
        pairs += 1
        for command in (("check",), ("run", "--quiet", "--out", "out")):
            assert place.run(*command, policy) == 2
            are_told = bool(re.search(said, place.err) and re.search(also, place.err))
            if are_told is (frozenset((one, other)) in DEPENDENT):
                missed.append((one, other, *command, place.err))
    assert not missed, f"{len(missed)} of {pairs}: {[each[:3] for each in missed]} {missed[0]}"
    assert pairs >= 130


@pytest.mark.parametrize("system", ["command: [cat]", "recorded: empty.jsonl"])
def test_the_model_that_measures_is_looked_at_before_anything_is_asked(place, system):
    """A run needs it once documents came back, which may have cost money."""
    mistake = {"system": f"  {system}\n  embedder: {{{{model: minilm, revision: abc}}}}"}
    assert place.run("check", planted(place, mistake)) == 2
    assert "p.yaml:5:3: `revision` 'abc' belongs to" in place.err


def test_what_depends_on_a_mistake_is_not_told(place):
    """A suite that cannot be loaded may have the term, a judge that cannot be read may be named."""
    for changes, untold in (
        ({"sources": "none.jsonl", "gate": "{parity: unreadable, where: {term: woma}, max: 0.1}"},
         "woma"),
        ({"more": "judge: {id: j}\n", "suite": "relations: [meta-fair/mr1-single-attribute]"},
         "name them with `judge`"),
        ({"top_k": "many"}, "the corpus holds"),
        ({"task": "5", "sources": "sources.jsonl"}, "needs a `task`"),
    ):  # fmt: skip
        assert place.run("check", planted(place, changes)) == 2
        assert untold not in place.err


def test_equal_labels_and_repeated_texts_are_named(workspace):
    rows = [{"id": f"s{i}", "text": "Twice." if i in (3, 8) else f"Text {i}."} for i in range(10)]
    for own, repeated in ((rows, ["'s8' is 's3' again, word for word"]), (rows[:8], [])):
        workspace.write("sources.jsonl", own)
        assert workspace.run("check", "policy.yaml") == 0
        assert "counted as the same answer: neutral, mixed" in workspace.out
        assert re.findall(r"'s\d' is 's\d' again, word for word", workspace.out) == repeated


def test_texts_that_do_not_go_behind_a_speaker_are_named(workspace):
    """Double quotes inside those of the relation, and a text that speaks of an identity itself."""
    texts = ["It was fine.", 'He said "no" to us.', "As a woman I liked it.", "A black coat."]
    for own, quotes, spoken in ((texts, 1, 1), (texts[:1] + texts[3:], 0, 0)):
        workspace.write("sources.jsonl", [{"id": f"s{n}", "text": t} for n, t in enumerate(own)])
        assert workspace.run("check", "policy.yaml") == 0
        assert workspace.out.count("1 of 4 texts hold double quotes inside") == quotes
        assert workspace.out.count("1 of 4 texts speak of an identity themselves ('s2'") == spoken


TERMS = {
    "de": ("Eine Krankenschwester", "Ein Arzt"), "fr": ("Une infirmière", "Le médecin"),
    "es": ("Una enfermera", "El médico"), "pt": ("Uma enfermeira", "O médico", "Um juiz"),
    "it": ("Un'infermiera", "Il medico", "Lo zio"), "ru": ("Медсестра", "Врач"),
    "zh": ("一位护士", "一位医生"), "ar": ("ممرضة", "طبيب"), "tr": ("Bir hemşire", "Bir doktor"),
}  # fmt: skip


@pytest.mark.parametrize("control", ["", "de", "zh"])
@pytest.mark.parametrize("language", [*TERMS, "en"])
def test_terms_and_control_prompts_of_different_languages(workspace, language, control):
    """Else every identity is red, for the language of its prompt."""

    def written(name, phrases, more=""):
        lines = [f"  - {{term: t{n}, noun_phrase: {json.dumps(p)}}}" for n, p in enumerate(phrases)]
        (workspace.root / f"{name}.yaml").write_text(
            f"id: {name}\n{more}terms:\n" + "\n".join(lines)
        )

    workspace.sources(4)
    written("own", TERMS.get(language, ("A nurse", "An engineer", "Somebody of Rome")))
    if control:
        written("plain", {"de": ["Ein Gast"], "zh": ["一位客人"]}[control], "control: true\n")
    named = ", control: plain.yaml" if control else ""
    (workspace.root / "p.yaml").write_text(
        "version: 1\nname: p\nsystem: {http: {url: 'http://127.0.0.1:1/'}}\nsuites:\n"
        f"  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [own.yaml]{named}}}\n"
    )
    kinds = {"zh": "script", "ru": "script", "ar": "script", "en": "English", "": "English"}
    differ = kinds.get(language, "other") != kinds.get(control, "other")
    assert workspace.run("check", "p.yaml") == (2 if differ else 0), workspace.err
    assert ("is in another language than `own`" in workspace.err) == differ


ADDRESSES = {
    "http: {url: 'http://127.0.0.1:8000MODEL'}": "is no address",
    "http: {url: '${BOT_URL}'}": "found '${BOT_URL}' (text), expected an address",
    "http: {url: 'localhost:8000'}": "expected an address, `http://HOST:PORT/PATH`",
    "generator: {endpoint: {base_url: 'https://h/v1', model: m, api_key_env: sk-abc123}}": (
        "found what is no name, expected the NAME of an environment"
    ),
}


@pytest.mark.parametrize("system", ADDRESSES)
def test_what_is_expected_of_addresses_and_names_of_variables_is_said(place, system):
    (place.root / "p.yaml").write_text(
        f"version: 1\nname: p\nsystem: {{{system}}}\nsuites:\n"
        "  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender]}\n"
    )
    assert place.run("check", "p.yaml") == 2
    assert ADDRESSES[system] in place.err
    assert "p.yaml:3" in place.err
    assert "sk-abc123" not in place.err


RULES = ("parity: documents", "asr/retrieval", "rrs/mean", "retrieval/mean-distance")


@pytest.mark.parametrize("rule", [*RULES, "parity: all", "asr/generation"])
def test_a_rule_that_the_system_gives_no_value_is_told_before_a_run(workspace, rule):
    gate = f"{{{rule}}}" if ":" in rule else f"{{metric: {rule}, max: 0.5}}"
    system = "{http: {url: 'http://127.0.0.1:1/', response: {answer: $.a%s}}}"
    for more, is_told in (("", rule in RULES), (", documents: '$.d[*]'", False)):
        workspace.sources(12)
        (workspace.root / "p.yaml").write_text(
            f"version: 1\nname: p\nsystem: {system % more}\nsuites:\n"
            "  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender]}\n"
            f"gates: [{gate}]\n"
        )
        assert workspace.run("check", "p.yaml") == 0, workspace.err
        assert (f"`{rule}`: a run would have no verdict" in workspace.out) == is_told
