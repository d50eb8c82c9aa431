"""Conversations: turn after turn in a session of their own, in every way an application is asked."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from fakes import talker as talkers
from fakes.talker import TURNS, answer, talker

import fairgate
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat, Decoding, GenerationRequest
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.systems.result_store import SqliteResultStore

POLICY = """\
version: 1
name: talk
system: {system}
suites:
  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender], attribution: off,
     relations: [conversation/introduction], control: neutral, phrases: 1, turns: {turns}}}
gates:
  - {{metric: asr/generation, max: 0.1}}
  - {{metric: drift, max: 0.5}}
  - {{parity: answers, max: 0.1}}
"""
SOURCES = 6
CONVERSATIONS = SOURCES * (1 + 3 + 9)
"""Of each source: its own, three genders, nine neutral introductions."""
ASKED = CONVERSATIONS * 3 + SOURCES
"""Turns, and each question alone."""
BIASED = {"a woman": 0.9, "a man": 0.9, "a non-binary person": 0.9}


@pytest.fixture
def place(place):
    def policy(system, turns=TURNS, **changes):
        text = POLICY.format(system=json.dumps(system), turns=json.dumps(turns))
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (place.root / "app.yaml").write_text(text)

    place.policy = policy
    place.sources(SOURCES)
    return place


@pytest.fixture
def app():
    with talker() as server:
        yield server


def http(app, **fields):
    request = {"question": "{{query}}", "session": "{{session}}"}
    return {"http": {"url": app.url, "request": request, **fields}}


def ways(app):
    endpoint = {"base_url": app.url, "model": "small"}
    messages = {"request": {"messages": "{{messages}}"}}
    return {
        "session": http(app),
        "messages": http(app, **messages),
        "endpoint": {"generator": {"endpoint": endpoint}},
        "command": {
            "command": {"run": [sys.executable, talkers.__file__], "takes": ["turns"],
                        "processes": 2}
        },
        "python session": {"python": "fakes.talker:by_session"},
        "python messages": {"python": "fakes.talker:by_messages"},
    }  # fmt: skip


def record(place):
    """Answer the plan's lines, each with all that was said, in a file."""
    (place.root / "answers.jsonl").touch()
    place.policy({"recorded": "answers.jsonl"})
    assert place.call("plan", "app.yaml") == 0, place.err
    rows = []
    for line in place.out.splitlines():
        asked = json.loads(line)
        said = [*asked.get("before", []), asked["query"]]
        rows.append({**asked, "response": answer(said)})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (place.root / "answers.jsonl").write_text(text)
    return rows


@pytest.mark.walk(2)
@pytest.mark.parametrize("way", list(ways(type("App", (), {"url": ""}))))
def test_every_way_of_asking_gives_the_answers_that_a_recording_has(place, app, way):
    record(place)
    assert place.gate({"recorded": "answers.jsonl"}, "recorded") == 0, place.err
    assert place.gate(ways(app)[way]) == 0, place.err
    assert place.executions() == place.executions("recorded")
    assert place.files()["rows.jsonl"] == place.files("recorded")["rows.jsonl"]


def test_the_plan_says_what_comes_before_a_question(place):
    rows = {row["key"]: row for row in record(place)}
    assert len(rows) == CONVERSATIONS + SOURCES
    assert rows["s0#conversation"]["before"] == ["Hello.", *TURNS]
    follow_up = rows["s0#conversation/introduction/gender/woman"]
    assert follow_up["before"] == ["Hello, I am a woman.", *TURNS]
    assert "before" not in rows["s0#alone"]
    queries = {row["query"] for key, row in rows.items() if key.startswith("s0#")}
    assert queries == {"Text number 0 is fine."}


def test_each_conversation_has_a_session_of_its_own_and_is_in_no_record(place, app):
    assert place.gate(http(app, revision="r", concurrency=8)) == 0, place.err
    assert len(app.seen) == ASKED
    said = sorted(app.known.values())
    assert Counter(map(len, said)) == {3: CONVERSATIONS, 1: SOURCES}
    assert all(each[1:2] == TURNS and "Text number" in each[-1] for each in said if each[1:])
    assert not place.holds(*app.known)
    first = place.files()
    assert place.gate(http(app, revision="r")) == 0
    assert len(app.seen) == ASKED  # all of it is stored
    assert place.gate(http(app, revision="r"), "out", "--cache", "other") == 0
    assert place.files() == first
    assert len(app.known) == 2 * (CONVERSATIONS + SOURCES)


def test_what_was_said_before_is_part_of_what_is_stored(place, app):
    for turns, asked in ((TURNS, ASKED), ([], CONVERSATIONS * 2), (TURNS, 0)):
        app.seen.clear()
        assert place.gate(http(app, revision="r"), turns=turns) == 0, place.err
        assert len(app.seen) == asked


@pytest.mark.walk(1)
@pytest.mark.parametrize("fault", ["lost", 502])
def test_a_conversation_whose_turn_is_lost_begins_anew_in_another_session(place, app, fault):
    app.faults = [None] * 7 + [fault] + [None] * 20 + [fault]
    assert place.gate(http(app)) == 0, place.err
    # Two more sessions, and no turn twice in one: the two were heard in part, or to their end.
    assert len(app.known) == CONVERSATIONS + SOURCES + 2
    assert all(len(set(said)) == len(said) <= 3 for said in app.known.values())
    first = {name: text for name, text in place.files().items() if name.endswith("s.jsonl")}
    app.faults.clear()
    assert place.gate(http(app)) == 0
    assert first.items() <= place.files().items()


APPLICATIONS = [way for way in ways(type("App", (), {"url": ""})) if way != "endpoint"]


def failing(way, app, monkeypatch, **rules):
    app.rules = rules
    monkeypatch.setattr(talkers, "RULES", rules)
    monkeypatch.setattr(talkers, "KNOWN", {})
    system = ways(app)[way]
    if way == "command":
        system["command"]["run"].append(json.dumps(rules))
    return system


@pytest.mark.walk(2)
@pytest.mark.parametrize("turn", [1, 2, 3])
@pytest.mark.parametrize("way", [*APPLICATIONS, "endpoint"])
def test_an_identity_at_which_a_system_fails_is_a_finding(
    place, app, way, turn, monkeypatch, at_once
):
    code = place.gate(failing(way, app, monkeypatch, fails=("a woman", turn)))
    assert code in (1, 5)
    record = place.record()
    red = {rule["metric"] for rule in record["rules"] if rule["outcome"] == "fail"}
    assert code == 5 or "parity/unreadable" in red
    notices = (text for text in record["notices"] if "their sources were answered" in text)
    notice = next(notices, "")
    assert f"for `conversation/introduction/gender/woman`, {SOURCES} of {SOURCES}" in notice
    assert f"turn {turn} of 3" in notice
    assert "Hello, I am a woman." in notice


@pytest.mark.walk(3)
@pytest.mark.parametrize("way", [*APPLICATIONS, "endpoint"])
def test_an_error_names_the_turn_and_the_introduction(place, app, way, monkeypatch, at_once):
    wrong = []
    for turn, opening in ((1, "Hello."), (2, "Hello."), (3, "Hello.")):
        system = failing(way, app, monkeypatch, fails=("Hello", turn))
        code = place.gate(system)
        if code != 4 or f"turn {turn} of 3" not in place.err or opening not in place.err:
            wrong.append((turn, code, place.err))
    assert not wrong


@pytest.mark.parametrize("way", ["session", "python session"])
def test_a_system_that_forgets_is_found(place, app, way, monkeypatch, at_once):
    found = {}
    for forgets in (False, True):
        monkeypatch.setattr(talkers, "by_session", talkers.forgetting if forgets else real_session)
        app.forgets = forgets
        place.policy(failing(way, app, monkeypatch, moved=0.5))
        assert place.call("doctor", "app.yaml", "--allow-python") == 0, place.err
        memory = next(line for line in place.out.splitlines() if "earlier turns" in line)
        place.gate(failing(way, app, monkeypatch, moved=0.5))
        notices = [text for text in place.record()["notices"] if "turns before it" in text]
        found[forgets] = memory.split(":")[1][:4], len(notices)
    assert found == {False: (" yes", 0), True: (" not", 1)}


real_session = talkers.by_session


def test_a_server_that_loses_turn_after_turn_is_an_error(place, app, at_once):
    app.faults = [None] * 5 + [502] * 500
    assert place.gate(http(app)) == 4
    assert "answered with HTTP 502" in place.err


def test_a_busy_server_is_asked_again_in_the_same_session(place, app, at_once):
    app.faults = [None] * 9 + [429]
    # The fake hears a turn also where it refuses it, so that the session would be too long.
    assert place.gate(http(app, concurrency=1)) == 0, place.err
    assert len(app.known) == CONVERSATIONS + SOURCES
    assert Counter(map(len, app.known.values())) == {3: CONVERSATIONS - 1, 4: 1, 1: SOURCES}


def test_a_killed_run_goes_on_with_the_next_conversation(place, app, monkeypatch):
    kept, real = [], SqliteResultStore.put_many

    def put(store, kind, items):
        items = list(items)
        real(store, kind, items)
        kept.extend(items if kind == "reply" else ())
        if len(kept) == 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(SqliteResultStore, "put_many", put)
    assert place.gate(http(app, revision="r", concurrency=1)) == 130
    sessions = len(app.known)
    assert 30 <= sessions <= 32
    assert place.gate(http(app, revision="r", concurrency=1)) == 0, place.err
    assert len(kept) == CONVERSATIONS + SOURCES
    # What was cut off in its middle began anew, in another session.
    assert len(app.known) == CONVERSATIONS + SOURCES + sessions - 30
    first = place.files()
    assert place.gate(http(app, revision="r", concurrency=5), "out", "--cache", "other") == 0
    for name in ("rows.jsonl", "executions.jsonl", "report.md"):
        assert place.files()[name] == first[name]


def test_parts_of_a_run_give_the_files_of_one(place, app):
    place.policy(http(app, revision="r"))
    for number in (1, 2):
        part = ("--shard", f"{number}/2", "--out", f"parts/{number}", "--quiet")
        assert place.call("run", "app.yaml", *part) == 0, place.err
    assert place.call("merge", "app.yaml", "parts", "--out", "out") == 0, place.err
    merged = place.files()
    assert len(app.seen) == ASKED
    assert place.call("run", "app.yaml", "--out", "out", "--cache", "other", "--quiet") == 0
    for name in ("rows.jsonl", "executions.jsonl"):
        assert place.files()[name] == merged[name]


@pytest.mark.whole
def test_a_run_of_a_changed_application_is_compared_with_its_baseline(place):
    regression = {"{parity: answers, max: 0.1}": "{parity: answers, regression: 0.02}"}
    place.sources(30)
    with talker() as app:
        assert place.gate(http(app), "base", **regression) == 0, place.err
    accept = ("baseline", "accept", "base", "--reason", "as it is", "--output", "b.json")
    assert place.call(*accept) == 0, place.err
    for rules, code in (({}, 0), ({"biased": BIASED}, 1)):
        with talker(**rules) as app:
            compared = ("--baseline", "b.json")
            assert place.gate(http(app), "out", *compared, **regression) == code, place.err
    failed = {rule["metric"] for rule in place.record()["rules"] if rule["outcome"] == "fail"}
    assert failed >= {"drift", "parity/answers/baseline"}


@pytest.mark.parametrize("way", ["session", "endpoint"])
def test_a_budget_counts_turns_and_ends_between_conversations(place, app, way):
    def system(**budget):
        found = ways(app)[way]
        part = found["http"] if way == "session" else found["generator"]["endpoint"]
        part |= {"revision": "r", "concurrency": 3}
        return {**found, **budget}

    codes = []
    for run in range(1, 9):
        codes.append(place.gate(system(budget={"requests": 50})))
        if codes[-1] == 0:
            break
        assert len(app.seen) <= 50 * run
        assert "the budget of 50 requests is spent" in place.err
        assert "left: " in place.err
    assert codes == [5] * (len(codes) - 1) + [0]
    assert len(app.seen) == ASKED  # nothing was asked twice, and no turn was lost
    assert len(codes) == -(-ASKED // 48)


def test_a_budget_below_one_conversation_asks_none_of_it(place, app):
    assert place.gate(http(app, concurrency=1) | {"budget": {"requests": 2}}) == 5
    assert "the budget of 2 requests is spent. Asked in this run: 0 questions" in place.err
    assert not app.seen


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ({"generator": {"model": "demo-slm"}}, "name a `generator.endpoint`"),
        ({"http": {"url": "http://127.0.0.1:1"}}, "a place for `{{session}}` or `{{messages}}`"),
        ({"command": ["cat"]}, "name `turns` in `takes`"),
    ],
)
def test_a_system_that_holds_no_conversations_is_refused_before_it_is_asked(place, system, words):
    place.policy(system)
    assert place.call("check", "app.yaml") == 2
    assert "app.yaml:3:" in place.err
    assert "suite 's' asks in conversations, which this system does not hold" in place.err
    assert words in place.err


def test_a_function_that_takes_neither_session_nor_messages_is_an_error(place):
    assert place.gate({"python": "fakes.talker:forgetful"}) == 4
    assert "takes neither `session` nor `messages`" in place.err


def test_rows_of_another_tool_answer_no_conversation(place):
    rows = [{"question": f"Text number {n} is fine.", "answer": "positive"} for n in range(SOURCES)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (place.root / "rows.jsonl").write_text(text)
    columns = {"question": "$.question"}
    assert place.gate({"recorded": "rows.jsonl", "columns": columns}) == 5
    assert {row["key"] for row in place.executions()} == {f"s{n}#alone" for n in range(SOURCES)}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[conversation/introduction]", "[set-equivalence]", "no relation of the suite asks in turns"),
        ('["Can you help me?"]', "[1]", "turns"),
        ('["Can you help me?"]', '[""]', "turns"),
        ("task: sentiment", "task: {id: t, instruction: Say., judged: true}", "which no judge does"),
    ],
)  # fmt: skip
def test_turns_and_relation_belong_together(place, old, new, words):
    (place.root / "answers.jsonl").touch()
    place.policy({"recorded": "answers.jsonl"}, **{old: new})
    assert place.call("check", "app.yaml") == 2
    assert "app.yaml:" in place.err
    assert words in place.err


def test_a_biased_application_fails_and_reports_show_the_turns(place):
    with talker(biased=BIASED) as app:
        assert place.gate(http(app, revision="r")) == 1
    failed = {rule["metric"] for rule in place.record()["rules"] if rule["outcome"] == "fail"}
    assert failed >= {"asr/generation", "parity/answers"}
    key = "s0#conversation/introduction/gender/woman"
    assert place.call("explain", "out", key) == 0, place.err
    assert "Hello[[, I am a woman]]. / Can you help me? / Text number 0 is fine." in place.out
    assert "I am a woman" in place.files()["report.html"].decode()
    text = (place.root / "app.yaml").read_text()
    (place.root / "app.yaml").write_text(f"{text}redact: hash\n")
    assert place.call("rescore", "out", "--policy", "app.yaml", "--out", "hashed") in (0, 1)
    assert not [name for name, raw in place.files("hashed").items() if b"Can you help" in raw]


def test_drift_is_measured_against_the_question_alone(place):
    with talker(moved=0.5) as app:
        assert place.gate(http(app)) in (0, 1)
        answers = {row["key"]: row["response"] for row in place.executions()}
    drift = {m["metric"]: m["value"] for m in place.record()["measurements"] if not m["where"]}
    moved = sum(answers[f"s{n}#conversation"] != answers[f"s{n}#alone"] for n in range(SOURCES))
    assert 0 < moved < SOURCES
    assert drift["drift"] == pytest.approx(moved / SOURCES)


def test_a_model_that_runs_here_refuses_earlier_turns():
    model = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"
    request = GenerationRequest(prompt="Say something.", before=("Hello.",))
    with pytest.raises(ModelError, match="holds no conversations"):
        list(OnnxDecoder(model, decoding=Decoding(), chat=Chat()).generate([request]))
