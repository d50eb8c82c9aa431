"""Actors without Ray: whatever the order and the losses, each question has its one answer."""

import importlib.util
import socket
from collections import Counter

import pytest
from fakes.workers import (
    FINGERPRINT,
    FakeRay,
    OfABrokenMachine,
    ScriptedWorker,
    answer_to,
    questions,
    scores_of,
    spread,
    without_processes,
)
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import ModelError, UsageError, WorkerError


def first(busy):
    return busy[0], False


@pytest.fixture
def ray(monkeypatch):
    """Return a Ray whose actors are in this process."""
    return without_processes(monkeypatch, FakeRay())


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

    with pytest.MonkeyPatch.context() as patch:
        ray = without_processes(patch, FakeRay(choose=choose))
        generator, team = spread(most)
        requests = questions(sizes)
        found = list(generator.generate(requests))
        optional = questions(sizes, options=("a", "bcd"))
        assert generator.score_options(optional) == [scores_of(one) for one in optional]
        team.close()
    assert sorted(position for position, _ in found) == list(range(len(requests)))
    assert all(answer == answer_to(requests[position]) for position, answer in found)
    assert ray.started <= min(most, len(sizes)) + lost["all"]
    assert len(team.notices) <= lost["all"]


def test_a_source_is_given_whole_to_no_more_actors_than_sources_which_stay(ray):
    ray.choose = first
    generator, team = spread(5, threads=0)
    for _ in range(3):
        assert len(list(generator.generate(questions([30, 2, 2])))) == 34
    given_together = [{one.source for one in asked.values()} for *_, asked in ray.sent]
    assert sorted(map(len, given_together)) == [1] * 9
    assert ray.started == 3
    assert not ray.times_shut_down
    assert {machine["threads"] for machine in team.machines} == {"1"}, "8 CPUs are shared by 5"


def test_what_a_lost_actor_had_answered_is_not_asked_again(ray, tmp_path):
    """The first one is lost after five answers of its first share."""
    events = iter([False] * 6 + [True])
    log = tmp_path / "log"
    ray.choose = lambda busy: (busy[0], next(events, False))
    generator, team = spread(1, log=str(log))
    assert len(list(generator.generate(questions([4, 4, 4])))) == 12
    asked = Counter(log.read_text().split())
    assert asked.total() == 12
    assert set(asked.values()) == {1}
    assert "1 source" in team.notices[0] or "2 sources" in team.notices[0]


def test_a_source_that_ends_every_actor_ends_the_run_with_its_name(ray, tmp_path):
    ray.choose = first
    generator, team = spread(crash="s1", times=99, mark=str(tmp_path))
    with pytest.raises(WorkerError) as error:
        list(generator.generate(questions([2, 2, 2, 2])))
    said = str(error.value)
    assert "source 's1' was lost 3 times" in said
    assert "ValueError" in said
    assert "in _asked" in said
    assert "\x1b" not in said
    assert "::error::" not in said
    assert str(tmp_path) not in said
    assert len(list(tmp_path.iterdir())) == 3
    assert len(team.notices) == 2


def test_a_crash_that_does_not_come_again_costs_only_its_actor(ray, tmp_path):
    generator, team = spread(crash="s1", times=1, mark=str(tmp_path))
    requests = questions([2, 2, 2, 2])
    assert dict(generator.generate(requests)) == dict(enumerate(map(answer_to, requests)))
    assert ray.started == 3
    assert "ValueError" in team.notices[0]


def test_an_error_that_every_actor_would_have_is_raised_at_once(ray):
    generator, _ = spread(fail="s1")
    with pytest.raises(ModelError, match=r"^the model is broken$"):
        list(generator.generate(questions([1, 1, 1])))
    assert ray.started <= 2
    assert ray.times_shut_down == 1


def test_actors_that_never_begin_are_not_started_for_ever(ray):
    ray.choose = lambda busy: (busy[0], True)
    with pytest.raises(WorkerError, match="3 workers in a row ended before their first answer"):
        list(spread()[0].generate(questions([1] * 10)))
    assert ray.started <= 5


@pytest.mark.parametrize("fingerprint", [f"{FINGERPRINT}:other", "scripted/2:files", ""])
def test_an_actor_with_another_model_or_engine_answers_nothing(ray, fingerprint):
    with pytest.raises(ModelError, match=f"has the model '{fingerprint}', .*'{FINGERPRINT}'"):
        list(spread(fingerprint=fingerprint)[0].generate(questions([1])))


def test_what_models_of_actors_say_is_told_once_harmless_and_short(ray):
    hostile = ["\x1b[2J::error::\n" + "x" * 10_000, *(f"notice {n}" for n in range(1000))]
    notices = {"s0": ["halved", "halved again"], "s1": ["halved"], "s2": ["halved"], "s3": hostile}
    generator, team = spread(notices=notices)
    for sizes in ([1], [1, 1, 1]):
        list(generator.generate(questions(sizes)))
        assert team.notices == ["halved", "halved again"]
    list(generator.generate(questions([1, 1, 1, 1])))
    assert len(team.notices) <= 22
    assert len("".join(team.notices)) < 1000
    assert "\x1b" not in "".join(team.notices)
    assert "::error::" not in "".join(team.notices)


def test_why_an_actor_cannot_tell_its_machine_ends_the_run_with_the_reason(ray):
    generator, _ = spread(1, worker=OfABrokenMachine)
    with pytest.raises(WorkerError, match=r"3 workers in a row .*ValueError: what is no number"):
        list(generator.generate(questions([1])))


def lying(reply):
    class Liar(ScriptedWorker):
        def answer(self, *_):
            yield reply

    return Liar


LIES = [
    {"position": 0, "value": {"text": 5}},
    {"position": 0, "value": {"text": "a", "margin": float("nan")}},
    {"position": 0, "value": {"text": {1, 2}}},
    {"position": 0, "value": None},
    {"position": 99, "value": {"text": "a"}},
    {"position": "0"},
    {"done": []},
    {"other": 1},
    [],
    None,
    "text",
    {"machine": {"cpu": 5}},
    {"failed": 7},
    {"done": "text"},
]


@pytest.mark.parametrize("reply", LIES, ids=range(len(LIES)))
def test_what_is_no_reply_ends_the_run(ray, reply):
    with pytest.raises(WorkerError):
        list(spread(1, worker=lying(reply))[0].generate(questions([2])))


@pytest.mark.parametrize("value", [[1.0], [1.0, True], [1.0, float("nan")], 5])
def test_what_are_no_scores_ends_the_run(ray, value):
    generator, _ = spread(1, worker=lying({"position": 0, "value": value}))
    with pytest.raises(WorkerError, match="no sound answer to a question about source 's0'"):
        generator.score_options(questions([1], options=("a", "b")))


def test_a_usage_error_of_an_actor_stays_one(ray):
    class Refusing(ScriptedWorker):
        def opened(self, name):
            raise UsageError("no such thing")

    with pytest.raises(UsageError, match=r"^no such thing$"):
        list(spread(worker=Refusing)[0].generate(questions([1])))


def test_without_ray_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'fairgate\[ray\]'.*--shard"):
        spread()


@pytest.mark.parametrize(
    "address", ["", "head", "ray://head:10001", "head:65536", ":6379", "h:1\x1b[2J", "x" * 10**4]
)
def test_what_is_no_address_is_refused(ray, address):
    with pytest.raises(UsageError, match="expected HOST:PORT of the cluster's head") as error:
        spread(address=address)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("host", ["nowhere.invalid", "[::1]", "a..b", "\u00fc" * 70, "127.0.0.1"])
def test_where_nothing_listens_is_refused_at_once(ray, host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    generator, team = spread(address=f"{host}:{port}")
    with pytest.raises(WorkerError, match="nothing can be reached there"):
        list(generator.generate(questions([1])))
    team.close()


def test_a_run_that_leaves_in_the_middle_of_an_answer_ends_the_process(ray):
    """A reply of 4 MiB is more than a pipe holds while nobody reads."""
    generator, team = spread(1, worker=lying({"position": 0, "value": {"text": "a" * 4 * 2**20}}))
    coming = generator.generate(questions([2]))
    next(coming)
    team.close()
    assert ray.shut_down.wait(20)


FAILURES = [
    (ConnectionError("could not reach the GCS"), r"ConnectionError: could not reach the GCS"),
    (PermissionError(13, "Permission denied", "session"), r"PermissionError: \[Errno 13\] Perm"),
    (EOFError("the head hung up"), r"EOFError: the head hung up"),
    (ValueError("one\ntwo"), r"ValueError: one\)"),
]


@pytest.mark.parametrize(("error", "reason"), FAILURES, ids=[str(one) for one, _ in FAILURES])
def test_why_a_cluster_cannot_be_joined_reaches_the_run(ray, error, reason):
    ray.joining = error
    generator, _ = spread()
    with pytest.raises(WorkerError, match=rf"cluster at local cannot be used \({reason}"):
        list(generator.generate(questions([1])))
    assert ray.shut_down.wait(20)


class Lost(FakeRay):
    """A cluster whose one machine is lost: what is started there never answers."""

    def init(self, **_):
        print("(raylet) what Ray prints about a machine")

    def nodes(self):
        return [{"Alive": False, "Resources": {}}]

    def wait(self, *_, **__):
        return [], []


def test_a_lost_machine_ends_the_run_and_what_ray_prints_is_no_output(monkeypatch, capsys):
    ray = without_processes(monkeypatch, Lost())
    generator, team = spread(patience=0.2)
    with pytest.raises(WorkerError, match="the cluster has 0 machines: lower --workers"):
        list(generator.generate(questions([1])))
    team.close()
    assert ray.shut_down.wait(20)
    said = capsys.readouterr()
    assert not said.out
    assert "what Ray prints" in said.err
