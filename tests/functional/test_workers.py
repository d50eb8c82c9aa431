"""`fairgate run --workers`: who may have some, and the bytes of one process."""

import json
import re

import pytest
from fakes.shards import in_parts, merged, taken, whole
from fakes.workers import Here

from fairgate.domain.errors import UsageError
from fairgate.domain.runtime import Runtime, Workers
from fairgate.features.ray.worker_side import WorkerSide, worker_side
from fairgate.features.ray.workers import team_for
from fairgate.gate import composition
from fairgate.gate.loaded_policy import load_policy
from fairgate.io.environment import libraries_of_answers
from fairgate.onnx import batches
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.systems.generator import GeneratorPolicy, named_for_workers

HERE = {"generator": {"model": "demo-slm", "decoding": {"max_new_tokens": 8}}}
SUITE = {
    "id": "s",
    "task": "sentiment",
    "sources": "sources.jsonl",
    "perturbations": ["gender"],
}
RULE = {"metric": "asr/generation/controlled", "max": 0.9}


def write(workspace, **changes):
    policy = {"version": 1, "name": "w", "system": HERE, "suites": [SUITE], "gates": [RULE]}
    (workspace.root / "p.yaml").write_text(json.dumps({**policy, **changes}))


def test_parts_of_a_run_may_have_workers_too(workspace):
    workspace.sources(3)
    write(workspace)
    options = ("--threads", "1", "--cache")
    expected = whole(workspace.run, "p.yaml", *options, "one")
    in_parts(workspace.run, "p.yaml", 2, *options, "parts-cache", "--workers", "2")
    assert merged(workspace.run) == expected


def with_documents(workspace):
    """A policy whose attribution has questions."""
    workspace.sources(4)
    words = ("fine", "bad", "slow", "young", "old", "Black", "man", "good")
    rows = [{"id": word, "text": f"The {word} one is number {len(word)}."} for word in words]
    corpus = "".join(json.dumps(row) + "\n" for row in rows)
    (workspace.root / "corpus.jsonl").write_text(corpus)
    write(workspace, system={**HERE, "retriever": {"corpus": "corpus.jsonl", "top_k": 2}})


def test_workers_ask_the_questions_that_follow_from_all_parts(workspace, monkeypatch):
    with_documents(workspace)
    in_parts(workspace.run, "p.yaml", 2, "--cache", "of-parts")
    expected = merged(workspace.run, "--cache", "one")
    assert merged(workspace.run, "--cache", "one", "--no-attribution") != expected
    executors = in_this_process(monkeypatch, worker_side)
    assert merged(workspace.run, "--cache", "many", "--workers", "2") == expected
    assert executors[0].sent
    assert executors[0].closed == 1
    how = ("--no-attribution", "--workers", "2")
    assert workspace.run("merge", "p.yaml", "parts", *how, "--out", "other") == 2
    assert "--no-attribution asks none" in " ".join(workspace.err.split())
    assert not (workspace.root / "other").exists()


def test_scored_items_and_more_workers_than_templates_give_the_same_bytes(workspace):
    items = {"id": "b", "kind": "bbq", "items": "demo-bbq", "settings": ["none"], "limit": 6}
    rule = {"metric": "diff-bias/ambiguous", "for_each": "setting", "max_abs": 0.9}
    write(workspace, suites=[{**items, "read": "scored"}], gates=[rule])
    options = ("--threads", "1", "--cache")
    expected = whole(workspace.run, "p.yaml", *options, "one")
    assert whole(workspace.run, "p.yaml", *options, "many", "--workers", "9") == expected
    assert b'"margin": ' in expected["executions.jsonl"]


@pytest.mark.parametrize("number", ["0", "-1", "x", "1001", "2.5", "", "²"])
def test_what_is_no_number_of_workers_is_refused(workspace, number):
    assert workspace.run("run", "policy.yaml", f"--workers={number}") == 2
    assert "--workers" in workspace.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--executor", "ray"), "--executor ray needs --workers N"),
        (("--executor", "ray", "--workers", "2"), "needs --ray-address HOST:PORT"),
        (("--executor", "ray", "--ray-address", "h:1"), "needs --workers N"),
        (("--workers", "2", "--ray-address", "h:1"), "add --executor ray"),
        (("--ray-address", "h:1"), "add --executor ray"),
        (("--executor", "spark", "--workers", "2"), "'spark' is not one of"),
    ],
)
def test_options_that_do_not_fit_are_refused(workspace, options, says):
    assert workspace.run("run", "policy.yaml", *options) == 2
    assert says in " ".join(workspace.err.split())


JUDGED = {
    "suites": [
        {"id": "s", "sources": "meta-fair", "relations": ["meta-fair/mr1-single-attribute"]}
    ],
    "gates": [{"metric": "asr/generation", "max": 0.1}],
}
OWN = {"http": {"url": "http://127.0.0.1:9/", "response": {"answer": "$.a"}}}
ASKED = {"endpoint": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}


@pytest.mark.parametrize(
    ("system", "judge", "has_workers"),
    [
        ({"recorded": "answers.jsonl"}, None, False),
        ({"recorded": "answers.jsonl"}, ASKED, False),
        ({"recorded": "answers.jsonl"}, {"model": "demo-slm"}, True),
        ({"generator": ASKED}, None, False),
        ({"generator": ASKED}, {"model": "demo-slm"}, True),
        (HERE, None, True),
        (HERE, ASKED, True),
        (OWN, None, False),
        ({"command": ["cat"]}, None, False),
        ({"python": "module:function"}, None, False),
    ],
)
def test_workers_are_for_policies_whose_models_run_here(workspace, system, judge, has_workers):
    (workspace.root / "answers.jsonl").touch()
    more = {**JUDGED, "judge": {"id": "j", "generators": [judge]}} if judge else {}
    write(workspace, system=system, **more)
    runtime = Runtime(workers=Workers(count=2))
    loaded = load_policy(workspace.root / "p.yaml", runtime)
    if has_workers:
        assert team_for(loaded, runtime).most == 2
        return
    with pytest.raises(UsageError, match="has none"):
        team_for(loaded, runtime)


def test_a_refused_run_asks_and_writes_nothing(workspace):
    (workspace.root / "answers.jsonl").touch()
    assert workspace.run("run", "policy.yaml", "--workers", "2", "--out", "out") == 2
    assert "Leave out --workers" in workspace.err
    assert not (workspace.root / "out").exists()
    write(workspace)
    assert workspace.run("run", "p.yaml", "--workers", "2", "--device", "cuda") == 2
    assert "--workers are for --device cpu" in workspace.err


def test_one_worker_is_this_process_which_may_ask_anybody(workspace):
    (workspace.root / "answers.jsonl").write_text('{"key": "s1", "response": "a"}\n')
    assert workspace.run("run", "policy.yaml", "--workers", "1", "--out", "out") in (0, 1, 5)
    assert taken("out")


class Elsewhere(WorkerSide):
    """A worker in this process that says it runs on another machine."""

    def __init__(self, threads):
        side = worker_side(threads)
        super().__init__(side._open, lambda: {**side._machine(), "cpu": "other"})


def in_this_process(monkeypatch, side):
    """Let runs have workers without processes; return what starts them."""
    executors = []

    def executor(runtime):
        executors.append(Here(runtime.workers.count, lambda busy: (busy[-1], False), side))
        return executors[-1]

    monkeypatch.setattr("fairgate.features.ray.workers._executor", executor)
    return executors


def test_workers_on_other_machines_are_in_the_record_and_in_a_notice(workspace, monkeypatch):
    workspace.sources(3)
    write(workspace)
    expected = whole(workspace.run, "p.yaml", "--cache", "one")
    in_this_process(monkeypatch, Elsewhere)
    found = whole(workspace.run, "p.yaml", "--cache", "many", "--workers", "2")
    environment = json.loads(found["run.json"])["provenance"]["environment"]
    assert sorted(environment["cpu"].split(" | ")) == sorted(
        ["other", json.loads(expected["run.json"])["provenance"]["environment"]["cpu"]]
    )
    assert (
        "questions were asked on machines that are not alike (cpu: " in found["report.md"].decode()
    )
    assert found["rows.jsonl"] == expected["rows.jsonl"]
    again = whole(workspace.run, "p.yaml", "--cache", "many", "--workers", "2")
    assert again == expected, "stored answers have no machine"


def cpus(files):
    """Return the processors in a run's record."""
    return json.loads(files["run.json"])["provenance"]["environment"]["cpu"].split(" | ")


def test_machines_that_asked_what_follows_from_all_parts_are_in_the_record(workspace, monkeypatch):
    with_documents(workspace)
    in_parts(workspace.run, "p.yaml", 2, "--cache", "of-parts")
    expected = merged(workspace.run, "--cache", "one")
    [here] = cpus(expected)
    in_this_process(monkeypatch, Elsewhere)
    found = merged(workspace.run, "--cache", "many", "--workers", "2")
    assert cpus(found) == sorted({here, "other"})
    notice = "questions were asked on machines that are not alike (cpu: "
    assert notice in found["report.md"].decode()
    assert found["rows.jsonl"] == expected["rows.jsonl"]
    assert merged(workspace.run, "--cache", "many", "--workers", "2") == expected
    for number in (1, 2):
        part = ("--shard", f"{number}/2", "--after", "parts", "--out", f"again/{number}")
        assert workspace.run("run", "p.yaml", *part, "--cache", f"a{number}", "--workers", "2") == 0
    again = merged(workspace.run, parts=workspace.root / "again")
    assert cpus(again) == sorted({here, "other"})
    assert again["rows.jsonl"] == expected["rows.jsonl"]


def test_a_machine_without_workers_that_asked_is_in_the_record(workspace, monkeypatch):
    with_documents(workspace)
    in_parts(workspace.run, "p.yaml", 2, "--cache", "of-parts")
    expected = merged(workspace.run, "--cache", "one")
    here = composition.describe_environment
    monkeypatch.setattr(
        composition, "describe_environment", lambda to: {**here(to), "cpu": "other"}
    )
    found = merged(workspace.run, "--cache", "many")
    assert cpus(found) == sorted({*cpus(expected), "other"})
    assert "on machines that are not alike (cpu: " in found["report.md"].decode()
    nothing_asked = merged(workspace.run, "--cache", "many", "--no-attribution")
    assert cpus(nothing_asked) == cpus(expected)


ELSEWHERE = [
    ("onnxruntime", {"onnxruntime": "1.0"}, "onnxruntime 1.0 (the run: "),
    ("numpy", {"numpy": None}, "numpy is not installed (the run: "),
    ("tokenizers", {"tokenizers": "0.1", "jinja2": "2"}, "jinja2 2 (the run: "),
]


@pytest.mark.parametrize(("name", "other", "says"), ELSEWHERE)
def test_a_worker_with_another_library_answers_nothing(workspace, monkeypatch, name, other, says):
    workspace.sources(3)
    write(workspace)
    in_this_process(monkeypatch, worker_side)
    installed = libraries_of_answers()
    assert name in installed
    there = {key: value for key, value in {**installed, **other}.items() if value is not None}
    monkeypatch.setattr("fairgate.features.ray.worker_side.libraries_of_answers", lambda: there)
    assert workspace.run("run", "p.yaml", "--workers", "2", "--out", "out") == 2
    said = " ".join(workspace.err.split())
    assert says in said
    assert all(key in said for key in other)
    assert "install the same versions on every machine" in said
    assert not (workspace.root / "out").exists()


@pytest.mark.parametrize(("run", "there"), [(None, "4.57.1"), ("4.57.1", None)])
def test_transformers_that_one_side_lacks_refuse_no_worker(workspace, monkeypatch, run, there):
    workspace.sources(3)
    write(workspace)
    expected = whole(workspace.run, "p.yaml", "--cache", "one")
    in_this_process(monkeypatch, worker_side)
    others = {name: of for name, of in libraries_of_answers().items() if name != "transformers"}
    for module, version in (("systems.generator", run), ("features.ray.worker_side", there)):
        found = others if version is None else {**others, "transformers": version}
        monkeypatch.setattr(f"fairgate.{module}.libraries_of_answers", lambda found=found: found)
    assert whole(workspace.run, "p.yaml", "--cache", "many", "--workers", "2") == expected


def test_other_transformers_on_both_sides_refuse_a_worker(workspace):
    found = json.loads(named_for_workers(GeneratorPolicy(), Runtime(workers=Workers(count=2))))
    libraries = libraries_of_answers() | {"transformers": "4.57.1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairgate.features.ray.worker_side.libraries_of_answers", lambda: libraries)
        found["libraries"] = libraries | {"transformers": "4.56.0"}
        with pytest.raises(UsageError, match=r"transformers 4\.57\.1 \(the run: 4\.56\.0\)"):
            worker_side(1)._open(json.dumps(found))


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ({"fairgate": "0.0.1"}, "(the run: 0.0.1)"),
        ({"libraries": {}}, "(the run: not installed)"),
        ({"libraries": None}, "(the run: not installed)"),
    ],
)
def test_a_worker_answers_no_run_of_another_version(workspace, named, says):
    name = json.loads(named_for_workers(GeneratorPolicy(), Runtime(workers=Workers(count=2))))
    found = {key: value for key, value in {**name, **named}.items() if value is not None}
    with pytest.raises(UsageError, match=re.escape(says)):
        worker_side(1)._open(json.dumps(found))


def test_workers_share_the_memory_that_batches_are_fitted_to(workspace, monkeypatch):
    workspace.sources(3)
    write(workspace)
    asked = []
    monkeypatch.setattr(batches, "free_bytes", asked.append)
    auto = ("--batch-size", "auto", "--cache")
    expected = whole(workspace.run, "p.yaml", *auto, "one")
    assert set(asked) == {1}
    asked.clear()
    in_this_process(monkeypatch, worker_side)
    assert whole(workspace.run, "p.yaml", *auto, "many", "--workers", "3") == expected
    assert asked == [3, 3, 3]


def test_that_memory_ran_out_in_a_worker_is_told_once(workspace, monkeypatch):
    """Each of the workers halves its own batch, and says so of itself."""
    workspace.sources(3)
    write(workspace)
    expected = whole(workspace.run, "p.yaml", "--cache", "one")
    run = DecoderSession._run

    def short_of_memory(self, ids, *given, **options):
        if len(ids) > 4:
            raise MemoryError
        return run(self, ids, *given, **options)

    monkeypatch.setattr(DecoderSession, "_run", short_of_memory)
    for options in (("--cache", "here"), ("--cache", "many", "--workers", "2")):
        if "--workers" in options:
            in_this_process(monkeypatch, worker_side)
        assert whole(workspace.run, "p.yaml", *options) == expected
        assert workspace.err.count("memory ran out with 16 prompts at a time") == 1


def test_a_judge_of_recorded_answers_is_asked_by_workers(workspace, monkeypatch):
    (workspace.root / "answers.jsonl").touch()
    judge = {"id": "j", "generators": [{"model": "demo-slm", "decoding": {"max_new_tokens": 4}}]}
    suite = {**JUDGED["suites"][0], "limit": 4}
    recorded = {"recorded": "answers.jsonl"}
    write(workspace, system=recorded, judge=judge, suites=[suite], gates=JUDGED["gates"])
    assert workspace.run("plan", "p.yaml") == 0
    keys = [json.loads(line)["key"] for line in workspace.out.splitlines()]
    rows = [json.dumps({"key": key, "response": f"Yes, {key}."}) + "\n" for key in keys]
    (workspace.root / "answers.jsonl").write_text("".join(rows))
    expected = whole(workspace.run, "p.yaml", "--cache", "one")
    executors = in_this_process(monkeypatch, worker_side)
    assert whole(workspace.run, "p.yaml", "--cache", "many", "--workers", "2") == expected
    assert executors[0].sent
    assert executors[0].closed == 1
