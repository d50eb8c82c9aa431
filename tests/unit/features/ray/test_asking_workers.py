"""Several workers: whatever the order and the losses, each question has its one answer."""

import json
from collections import Counter

import pytest
from fakes.workers import (
    FINGERPRINT,
    Here,
    answer_to,
    questions,
    scores_of,
    scripted_side,
    side_of_a_broken_machine,
    spread,
)
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import ModelError, UsageError, WorkerError
from fairgate.domain.executions import GenerationRequest, Stop
from fairgate.features.ray.worker_side import WorkerSide
from fairgate.features.ray.workers import Asks, Way, reply_from, task_from, task_to


def first(busy):
    return busy[0], False


@given(
    st.lists(st.integers(1, 40), max_size=12),
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=60),
)
def test_every_question_is_answered_once_whatever_the_order_and_the_losses(sizes, most, choices):
    """Two losses at most: a third over one source ends the run."""
    coming, lost = iter(choices), Counter()

    def choose(busy):
        place, chance = next(coming, (0, 1))
        is_lost = chance == 0 and lost["all"] < 2
        lost["all"] += is_lost
        return busy[place % len(busy)], is_lost

    executor = Here(most, choose)
    generator, team = spread(executor)
    requests = questions(sizes)
    found = list(generator.generate(requests))
    assert sorted(position for position, _ in found) == list(range(len(requests)))
    assert all(answer == answer_to(requests[position]) for position, answer in found)
    assert executor.started <= min(most, len(sizes)) + lost["all"]
    assert len(team.notices) <= lost["all"]


def test_scores_come_back_in_the_order_of_the_requests():
    generator, _ = spread(Here(3, lambda busy: (busy[-1], False)))
    requests = questions([3, 1, 9], options=("one", "other one"))
    assert generator.score_options(requests) == [scores_of(request) for request in requests]
    assert generator.score_options([]) == []


def test_a_source_is_given_whole_and_no_more_workers_start_than_there_are_sources():
    executor = Here(5, first)
    generator, _ = spread(executor)
    requests = questions([30, 2, 2])
    assert len(list(generator.generate(requests))) == 34
    given_together = [
        {row["source"] for row in json.loads(task)["requests"]} for task in executor.sent
    ]
    assert sorted(map(len, given_together)) == [1, 1, 1]
    assert executor.started == 3


def test_workers_stay_for_the_next_questions():
    executor = Here(2, first)
    generator, _ = spread(executor)
    for _ in range(3):
        list(generator.generate(questions([1, 1, 1])))
    assert executor.started == 2
    assert not executor.closed


def test_what_a_lost_worker_had_answered_is_not_asked_again(tmp_path):
    """The first worker is lost after five answers of its first share."""
    events = iter([False] * 6 + [True])
    log = tmp_path / "log"
    generator, team = spread(Here(1, lambda busy: (busy[0], next(events, False))), log=str(log))
    requests = questions([4, 4, 4])
    assert len(list(generator.generate(requests))) == 12
    asked = Counter(log.read_text().split())
    assert asked.total() == 12
    assert set(asked.values()) == {1}
    assert "1 source" in team.notices[0] or "2 sources" in team.notices[0]


def test_a_source_that_ends_every_worker_ends_the_run_with_its_name(tmp_path):
    executor = Here(2, first)
    script = {"crash": "s1", "times": 99, "mark": str(tmp_path)}
    generator, team = spread(executor, **script)
    found = []
    with pytest.raises(WorkerError) as error:
        found.extend(generator.generate(questions([2, 2, 2, 2])))
    said = str(error.value)
    assert "source 's1' was lost 3 times" in said
    assert "ValueError" in said
    assert "in _asked" in said
    assert "\x1b" not in said
    assert "::error::" not in said
    assert str(tmp_path) not in said
    assert len(list(tmp_path.iterdir())) == 3
    assert len(team.notices) == 2


def test_a_crash_that_does_not_come_again_costs_only_its_worker(tmp_path):
    executor = Here(2, first)
    generator, team = spread(executor, crash="s1", times=1, mark=str(tmp_path))
    requests = questions([2, 2, 2, 2])
    assert dict(generator.generate(requests)) == dict(enumerate(map(answer_to, requests)))
    assert executor.started == 3
    assert "ValueError" in team.notices[0]


def test_an_error_that_every_worker_would_have_is_raised_at_once():
    executor = Here(2, first)
    generator, _ = spread(executor, fail="s1")
    with pytest.raises(ModelError, match=r"^the model is broken$"):
        list(generator.generate(questions([1, 1, 1])))
    assert executor.started <= 2
    assert executor.closed


def test_workers_that_never_begin_are_not_started_for_ever():
    executor = Here(2, lambda busy: (busy[0], True))
    generator, _ = spread(executor)
    with pytest.raises(WorkerError, match="3 workers in a row ended before their first answer"):
        list(generator.generate(questions([1] * 10)))
    assert executor.started <= 5


@pytest.mark.parametrize(
    ("fingerprint", "says"),
    [
        (f"{FINGERPRINT}:other", "has other files of the model than this run has"),
        ("scripted/2:files", r"has the engine 'scripted/2', this run has 'scripted/1'; .* build"),
        ("", f"has the engine '', this run has '{FINGERPRINT}'"),
    ],
)
def test_a_worker_with_another_model_or_engine_answers_nothing(fingerprint, says):
    generator, _ = spread(Here(1, first), fingerprint=fingerprint)
    with pytest.raises(ModelError, match=says):
        list(generator.generate(questions([1])))


@pytest.mark.parametrize(
    "changed",
    [
        lambda task: task.pop("fingerprint"),
        lambda task: task.update(way="translate"),
        lambda task: task["requests"][0].update(tomorrow=1),
        lambda task: task.update(positions=[]),
        lambda task: task.update(requests=7),
        lambda task: task["requests"][0].update(stop={"phrases": ["a"], "tomorrow": 1}),
    ],
)
def test_a_task_of_another_version_is_refused_and_kills_no_worker(changed):
    asks = Asks(model="{}", fingerprint=FINGERPRINT, way=Way.GENERATE)
    task = json.loads(task_to(asks, dict(enumerate(questions([1])))))
    changed(task)
    *_, reply = map(reply_from, scripted_side(1).answer(json.dumps(task)))
    assert reply.is_usage
    assert "cannot read what this run asks" in reply.failed
    assert "install it on every machine" in reply.failed


def test_answers_that_nobody_waits_for_end_their_workers():
    executor = Here(2, first)
    generator, _ = spread(executor)
    coming = generator.generate(questions([5, 5]))
    next(coming)
    coming.close()
    assert executor.closed == 1
    assert len(list(generator.generate(questions([2])))) == 2


def test_what_models_of_workers_say_of_how_they_ran_is_told_once():
    notices = {"s0": ["halved", "halved again"], "s1": ["halved"], "s2": ["halved"]}
    executor = Here(2, first)
    generator, team = spread(executor, notices=notices)
    for _ in range(3):
        list(generator.generate(questions([1, 1, 1])))
    assert executor.started == 2
    assert sorted(team.notices) == ["halved", "halved again"]


def test_a_worker_sends_each_notice_with_the_task_that_it_is_of():
    side = scripted_side(1)
    model = json.dumps({"notices": {"s0": ["one"], "s1": ["two", "three"]}})
    told = []
    for source in ("s0", "s1", "s5"):
        asks = Asks(model=model, fingerprint="scripted/1", way=Way.GENERATE)
        task = task_to(asks, {0: GenerationRequest(prompt="p", source=source)})
        told.append([reply_from(text).notices for text in side.answer(task)][-1])
    assert told == [["one"], ["two", "three"], []]


def test_what_a_worker_says_is_harmless_and_short():
    hostile = ["\x1b[2J::error::\n" + "x" * 10_000, *(f"notice {n}" for n in range(1000))]
    generator, team = spread(Here(1, first), notices={"s0": hostile})
    list(generator.generate(questions([1])))
    assert len(team.notices) <= 20
    assert len("".join(team.notices)) < 1000
    assert "\x1b" not in team.notices[0]
    assert "::error::" not in team.notices[0]


def test_why_a_worker_cannot_tell_its_machine_ends_the_run_with_the_reason():
    generator, _ = spread(Here(1, first, side_of_a_broken_machine))
    with pytest.raises(WorkerError, match=r"3 workers in a row .*ValueError: what is no number"):
        list(generator.generate(questions([1])))


LIES = [
    '{"position": 0, "value": {"text": 5}}',
    '{"position": 0, "value": {"text": "a", "margin": NaN}}',
    '{"position": 0, "value": null}',
    '{"position": 99, "value": {"text": "a"}}',
    '{"position": true, "value": {"text": "a"}}',
    '{"position": "0"}',
    '{"is_done": true}',
    '{"other": 1}',
    "[]",
    "not JSON",
    '{"machine": {"cpu": 5}}',
    '{"failed": 7}',
    '{"is_done": true, "notices": "text"}',
    '{"is_done": true, "notices": [5]}',
    '{"is_done": true, "notices": null}',
    "{}",
    "[" * 5000,
]


@pytest.mark.parametrize("text", LIES, ids=range(len(LIES)))
def test_what_is_no_reply_ends_the_run(text):
    class Liar:
        def answer(self, task):
            yield text

    generator, _ = spread(Here(1, first, lambda threads: Liar()))
    with pytest.raises(WorkerError):
        list(generator.generate(questions([2])))


@pytest.mark.parametrize(
    "value",
    [
        "[1.0]",
        '[1.0, "a"]',
        "[1.0, true]",
        "[1.0, NaN]",
        "[-Infinity, 1.0]",
        "[1.0, 1e999]",
        "5",
        '{"0": 1.0}',
    ],
    ids=range(8),
)
def test_what_are_no_scores_ends_the_run(value):
    class Liar:
        def answer(self, task):
            yield f'{{"position": 0, "value": {value}}}'

    generator, _ = spread(Here(1, first, lambda threads: Liar()))
    with pytest.raises(WorkerError, match="no sound answer to a question about source 's0'"):
        generator.score_options(questions([1], options=("a", "b")))


texts = st.text(st.characters(codec="utf-16"), max_size=20)


@given(
    st.builds(
        GenerationRequest,
        prompt=texts,
        labels=st.lists(texts).map(tuple),
        stop=st.none() | st.builds(Stop, phrases=st.lists(texts).map(tuple), marker=texts),
        seed=st.integers(0, 2**60),
        options=st.lists(texts).map(tuple),
        source=texts,
    )
)
def test_a_question_arrives_as_it_was_sent(request):
    asks = Asks(model="m", fingerprint="f", way=Way.SCORE)
    found, requests = task_from(task_to(asks, {7: request}))
    assert found == asks
    assert requests == {7: request}
    assert requests[7].source == request.source


def test_a_half_surrogate_in_a_prompt_arrives():
    request = GenerationRequest(prompt="\ud800 a")
    asks = Asks(model="m", fingerprint="f", way=Way.GENERATE)
    assert task_from(task_to(asks, {0: request}))[1] == {0: request}


def test_a_worker_opens_each_model_once_and_greets_once():
    opened = []

    def opening(name):
        opened.append(name)
        return scripted_side(1)._open(name)

    side = WorkerSide(opening, lambda: {"node": "n"})
    task = task_to(Asks(model="{}", fingerprint="scripted/1", way=Way.GENERATE), {})
    replies = [reply_from(text) for _ in range(3) for text in side.answer(task)]
    assert opened == ["{}"]
    assert [reply.machine for reply in replies] == [{"node": "n"}, None, None, None]
    assert sum(reply.is_done for reply in replies) == 3


def test_a_usage_error_of_a_worker_stays_one():
    def opening(name):
        raise UsageError("no such thing")

    generator, _ = spread(Here(1, first, lambda threads: WorkerSide(opening, dict)))
    with pytest.raises(UsageError, match=r"^no such thing$"):
        list(generator.generate(questions([1])))
