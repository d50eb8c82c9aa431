"""`fairgate run --workers`: who may have some, and the bytes of one process."""

import json
import re
from functools import partial

import pytest
from fakes.shards import in_parts, merged, whole
from fakes.workers import FakeRay, without_processes

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Runtime, Workers
from fairgate.features.ray import Worker, team_for
from fairgate.gate import composition
from fairgate.gate.loaded_policy import load_policy
from fairgate.io.machine import libraries_of_answers
from fairgate.onnx import batches
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.systems.generator import GeneratorPolicy, named_for_workers

HERE = {"generator": {"model": "demo-slm", "decoding": {"max_new_tokens": 4}}}
SUITE = {
    "id": "s", "task": "sentiment", "sources": "sources.jsonl", "perturbations": ["gender"],
}  # fmt: skip
RULE = {"metric": "asr/generation", "max": 0.9}


RUNTIME = Runtime(workers=Workers(count=2, team=partial(team_for, address="local")))


def workers(count):
    return ("--workers", str(count), "--ray-address", "local")


def write(workspace, **changes):
    policy = {"version": 1, "name": "w", "system": HERE, "suites": [SUITE], "gates": [RULE]}
    (workspace.root / "p.yaml").write_text(json.dumps({**policy, **changes}))


@pytest.mark.whole
def test_parts_of_a_run_may_have_workers_too(workspace, monkeypatch):
    workspace.sources(2)
    write(workspace)
    in_this_process(monkeypatch)
    options = ("--threads", "1", "--cache")
    expected = whole(workspace.run, "p.yaml", *options, "one")
    in_parts(workspace.run, "p.yaml", 2, *options, "parts-cache", *workers(2))
    assert merged(workspace.run) == expected


def with_documents(workspace):
    workspace.sources(2)
    words = ("fine", "bad", "slow", "young", "old", "Black", "man", "good")
    rows = [{"id": word, "text": f"The {word} one is number {len(word)}."} for word in words]
    workspace.write("corpus.jsonl", rows)
    write(workspace, system={**HERE, "retriever": {"corpus": "corpus.jsonl", "top_k": 2}})


@pytest.mark.whole
def test_workers_ask_the_questions_that_follow_from_all_parts(workspace, monkeypatch):
    """Their machines are in the record then."""
    with_documents(workspace)
    in_parts(workspace.run, "p.yaml", 2, "--cache", "of-parts")
    expected = merged(workspace.run, "--cache", "one")
    assert merged(workspace.run, "--cache", "one", "--no-attribution") != expected
    [here] = cpus(expected)
    ray = elsewhere(monkeypatch)
    found = merged(workspace.run, "--cache", "many", *workers(2))
    assert ray.sent
    assert ray.times_shut_down == 1
    assert cpus(found) == sorted({here, "other"})
    notice = "questions were asked on machines that are not alike (cpu: "
    assert notice in found["report.md"].decode()
    assert found["rows.jsonl"] == expected["rows.jsonl"]
    assert merged(workspace.run, "--cache", "many", *workers(2)) == expected
    how = ("--no-attribution", *workers(2))
    assert workspace.run("merge", "p.yaml", "parts", *how, "--out", "other") == 2
    assert "--no-attribution asks none" in workspace.said
    assert not (workspace.root / "other").exists()


def test_scored_items_and_more_workers_than_templates_give_the_same_bytes(workspace, monkeypatch):
    in_this_process(monkeypatch)
    items = {"id": "b", "kind": "bbq", "items": "demo-bbq", "settings": ["none"], "limit": 6}
    rule = {"metric": "diff-bias/ambiguous", "max_abs": 0.9}
    write(workspace, suites=[{**items, "read": "scored"}], gates=[rule])
    options = ("--threads", "1", "--cache")
    expected = whole(workspace.run, "p.yaml", *options, "one")
    assert whole(workspace.run, "p.yaml", *options, "many", *workers(9)) == expected
    assert b'"margin": ' in expected["executions.jsonl"]


@pytest.mark.parametrize(("options", "says"), [
    (("--workers", "2"), "--ray-address local for a cluster of this machine"),
    (("--workers", "2"), "asked in parts (--shard i/n and `fairgate merge`)"),
    (("--ray-address", "h:1"), "give it together with --ray-address"),
    (("--workers", "0"), "--workers"),
])  # fmt: skip
def test_options_that_do_not_fit_are_refused(workspace, options, says):
    assert workspace.run("run", "policy.yaml", *options) == 2
    assert says in workspace.said


JUDGED = {
    "suites": [{"id": "s", "sources": "meta-fair", "relations": ["meta-fair/mr1-single-attribute"]}],
    "gates": [{"metric": "asr/generation", "max": 0.1}],
}  # fmt: skip
OWN = {"http": {"url": "http://127.0.0.1:9/", "response": {"answer": "$.a"}}}
ASKED = {"endpoint": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}


@pytest.mark.walk(3)
@pytest.mark.parametrize(("system", "judge", "has_workers"), [
    ({"recorded": "answers.jsonl"}, None, False),
    ({"recorded": "answers.jsonl"}, {"model": "demo-slm"}, True),
    ({"generator": ASKED}, {"model": "demo-slm"}, True),
    (HERE, None, True),
    (OWN, None, False),
    ({"python": "module:function"}, None, False),
])  # fmt: skip
def test_workers_are_for_models_that_run_here(workspace, monkeypatch, system, judge, has_workers):
    in_this_process(monkeypatch)
    more = {**JUDGED, "judge": {"id": "j", "generators": [judge]}} if judge else {}
    write(workspace, system=system, **more)
    loaded = load_policy(workspace.root / "p.yaml", RUNTIME)
    if has_workers:
        assert RUNTIME.workers.team(loaded, RUNTIME).cluster.most == 2
        return
    with pytest.raises(UsageError, match="has none"):
        RUNTIME.workers.team(loaded, RUNTIME)


def test_a_refused_run_asks_and_writes_nothing(workspace):
    assert workspace.run("run", "policy.yaml", *workers(2), "--out", "out") == 2
    assert "Leave out --workers" in workspace.err
    assert not (workspace.root / "out").exists()
    write(workspace)
    assert workspace.run("run", "p.yaml", *workers(2), "--device", "cuda") == 2
    assert "--workers are for --device cpu" in workspace.err


def elsewhere(monkeypatch):
    """Let actors say that they run on another machine; return what stands for Ray."""
    machine = Worker.machine
    monkeypatch.setattr(Worker, "machine", lambda self: {**machine(self), "cpu": "other"})
    return in_this_process(monkeypatch)


def in_this_process(monkeypatch):
    """Let runs have actors in this process, without Ray; return what stands for Ray."""
    return without_processes(monkeypatch, FakeRay())


@pytest.mark.whole
def test_workers_on_other_machines_are_in_the_record_and_in_a_notice(workspace, monkeypatch):
    workspace.sources(2)
    write(workspace)
    expected = whole(workspace.run, "p.yaml", "--cache", "one")
    elsewhere(monkeypatch)
    found = whole(workspace.run, "p.yaml", "--cache", "many", *workers(2))
    assert sorted(cpus(found)) == sorted(["other", *cpus(expected)])
    notice = "questions were asked on machines that are not alike (cpu: "
    assert notice in found["report.md"].decode()
    assert found["rows.jsonl"] == expected["rows.jsonl"]
    again = whole(workspace.run, "p.yaml", "--cache", "many", *workers(2))
    assert again == expected, "stored answers have no machine"


def cpus(files):
    return json.loads(files["run.json"])["provenance"]["environment"]["cpu"].split(" | ")


@pytest.mark.whole
def test_a_machine_without_workers_that_asked_is_in_the_record(workspace, monkeypatch):
    with_documents(workspace)
    in_parts(workspace.run, "p.yaml", 2, "--cache", "of-parts")
    here = composition.describe_environment
    there = lambda to: {**here(to), "cpu": "other"}  # noqa: E731
    monkeypatch.setattr(composition, "describe_environment", there)
    found = merged(workspace.run, "--cache", "many")
    assert cpus(found) == sorted({here("cpu")["cpu"], "other"})
    assert "on machines that are not alike (cpu: " in found["report.md"].decode()
    nothing_asked = merged(workspace.run, "--cache", "many", "--no-attribution")
    assert cpus(nothing_asked) == [here("cpu")["cpu"]]


def with_libraries(patch, **changed):
    """Let actors have other libraries; return those of the run."""
    installed = libraries_of_answers()
    there = {key: value for key, value in {**installed, **changed}.items() if value is not None}
    patch.setattr("fairgate.features.ray.libraries_of_answers", lambda: there)
    return installed


def test_a_worker_with_another_library_answers_nothing(workspace, monkeypatch):
    workspace.sources(2)
    write(workspace)
    in_this_process(monkeypatch)
    with_libraries(monkeypatch, tokenizers="0.1", jinja2="2")
    assert workspace.run("run", "p.yaml", *workers(2), "--out", "out") == 2
    assert "jinja2 2 (the run: " in workspace.said
    assert "tokenizers 0.1" in workspace.said
    assert "install the same versions on every machine" in workspace.said
    assert not (workspace.root / "out").exists()


@pytest.mark.parametrize(("there", "run", "says"), [
    ({"onnxruntime": "1.0"}, {}, "onnxruntime 1.0 (the run: "),
    ({"numpy": None}, {}, "numpy is not installed (the run: "),
    ({}, {"fairgate": "0.0.1"}, "(the run: 0.0.1)"),
    ({}, {"libraries": {}}, "(the run: not installed)"),
    ({"transformers": "4.57.1"}, {"transformers": "4.56.0"}, "4.57.1 (the run: 4.56.0)"),
    ({"transformers": None}, {"transformers": "4.57.1"}, None),
    ({"transformers": "4.57.1"}, {"transformers": None}, None),
])  # fmt: skip
def test_workers_have_the_libraries_of_the_run(monkeypatch, there, run, says):
    """One that is optional is compared where both sides have it."""
    named = json.loads(named_for_workers(GeneratorPolicy(), RUNTIME))
    libraries = with_libraries(monkeypatch, **there)
    if "transformers" in run:
        libraries = {**libraries, "transformers": run.pop("transformers")}
        libraries = {name: version for name, version in libraries.items() if version is not None}
    found = json.dumps({**named, "libraries": libraries, **run})
    if says is None:
        assert Worker(1).opened(found).fingerprint
        return
    with pytest.raises(UsageError, match=re.escape(says)):
        Worker(1).opened(found)


@pytest.mark.whole
def test_workers_share_the_memory_that_batches_are_fitted_to(workspace, monkeypatch):
    workspace.sources(3)
    write(workspace)
    asked = []
    monkeypatch.setattr(batches, "free_bytes", asked.append)
    auto = ("--batch-size", "auto", "--cache")
    expected = whole(workspace.run, "p.yaml", *auto, "one")
    assert set(asked) == {1}
    asked.clear()
    in_this_process(monkeypatch)
    assert whole(workspace.run, "p.yaml", *auto, "many", *workers(3)) == expected
    assert asked == [3, 3, 3]


@pytest.mark.whole
def test_that_memory_ran_out_in_a_worker_is_told_once(workspace, monkeypatch):
    """Each of the workers halves its own batch, and says so of itself."""
    workspace.sources(2)
    write(workspace)
    expected = whole(workspace.run, "p.yaml", "--cache", "one")
    run = DecoderSession._run

    def short_of_memory(self, ids, *given, **options):
        if len(ids) > 4:
            raise MemoryError
        return run(self, ids, *given, **options)

    monkeypatch.setattr(DecoderSession, "_run", short_of_memory)
    for options in (("--cache", "here"), ("--cache", "many", *workers(2))):
        if "--workers" in options:
            in_this_process(monkeypatch)
        assert whole(workspace.run, "p.yaml", *options) == expected
        assert workspace.err.count("memory ran out with 16 prompts at a time") == 1


@pytest.mark.whole
def test_a_judge_of_recorded_answers_is_asked_by_workers(workspace, monkeypatch):
    judge = {"id": "j", "generators": [{"model": "demo-slm", "decoding": {"max_new_tokens": 4}}]}
    suite = {**JUDGED["suites"][0], "limit": 4}
    recorded = {"recorded": "answers.jsonl"}
    write(workspace, system=recorded, judge=judge, suites=[suite], gates=JUDGED["gates"])
    workspace.respond(lambda row: f"Yes, {row['key']}.", policy="p.yaml")
    expected = whole(workspace.run, "p.yaml", "--cache", "one")
    ray = in_this_process(monkeypatch)
    assert whole(workspace.run, "p.yaml", "--cache", "many", *workers(2)) == expected
    assert ray.sent
    assert ray.times_shut_down == 1
