"""`docs/verify.py` knows nothing of FairGate and comes to the same verdict."""

import ast
import importlib.util
import json
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate import __version__
from fairgate.domain.errors import DataError
from fairgate.domain.ports import SILENT
from fairgate.features.bundles import (
    STATEMENT,
    as_json,
    check_bundle,
    members_of,
    statement,
    zipped,
)
from fairgate.gate.gate import run_gate
from fairgate.policy.schema import WaiverPolicy
from fairgate.reports.formats import render_run_record

SCRIPT = Path(__file__).parents[2] / "docs" / "verify.py"
RUNS = 70
GENDER = ("A man", "A woman", "A non-binary person")
CONTROLLED = "asr/generation/controlled"
GATES = (
    {"metric": CONTROLLED, "max": 0.15, "regression": {"margin": 0.02}},
    {"metric": CONTROLLED, "for_each": "term", "max": 0.3},
    {"metric": "asr/generation/net", "regression": {"margin": 0.03}},
    {"metric": "asr/generation", "for_each": "category", "max": 0.9, "regression": {"margin": 0.1}},
    {"metric": "asr/retrieval", "max": 0.5},
    {"metric": "rrs/mean", "max": 1.0},
    {"metric": "retrieval/overlap", "min": 0.3},
    {"metric": CONTROLLED, "for_each": "term", "max": 0.25, "evidence": "significant"},
    {"metric": "unreadable/net", "for_each": "term", "max": 0.05, "evidence": "significant"},
    {"metric": "retrieval/overlap", "for_each": "term", "min": 0.5, "evidence": "significant"},
    {"metric": "asr/generation/net", "max": 0.03, "evidence": "significant"},
    {"metric": "asr/generation/net", "for_each": "term", "max": 0.1, "evidence": "significant"},
    {"metric": CONTROLLED, "max": 0.1, "evidence": "significant"},
    {"metric": "identity/max-difference", "max": 0.1},
    {"metric": "identity/retrieval/max-difference", "max": 0.25},
    {"metric": "identity/unreadable/max-difference", "max": 0.05},
    {"metric": "unreadable/net", "max": 0.05, "regression": {"margin": 0.02, "budget": 0.05}},
    {"metric": "asr/generation/net", "max_abs": 0.4, "advisory": True},
    {"metric": CONTROLLED, "where": {"term": "woman"}, "report": True},
)


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("verify_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verified(script, path):
    script.UNVERIFIED.clear()
    return script.main(str(path)), list(script.UNVERIFIED)


def bundle_of(given, run, *, redact=False):
    record = json.loads(render_run_record(run.result))
    record["fairgate"] = __version__
    own = {"policy.yaml": given.policy.model_dump_json(exclude_none=True).encode()}
    return members_of(run, own, [], record, redact=redact)


def written(path, members):
    path.write_bytes(zipped(members))
    return path


def forged(members, **changed):
    own = {k: v for k, v in members.items() if k != STATEMENT}
    own |= {name.replace("__", "."): data for name, data in changed.items()}
    return {**own, STATEMENT: as_json(statement(own, json.loads(own["run.json"])))}


def random_plant(rng):
    """Return a system: most treat all alike, others are biased, refuse or retrieve otherwise."""
    share = rng.choice([0.0, 0.0, 0.1, 0.3, 0.6])
    whom = {phrase: share for phrase in GENDER if rng.random() < 0.5}
    kind = rng.choice(["biased", "retrieval", "refusing", "fair", "fair"])
    return Plant(
        world=rng.randrange(2),
        sensitive=rng.choice([0.0, 0.2]),
        neutral_retrieval=rng.choice([0.0, 0.3]),
        noise=rng.choice([0.0, 0.0, 0.05]),
        run=rng.randrange(100),
        **({} if kind == "fair" else {kind: whom}),
    )


def random_run(rng):
    gates = rng.sample(GATES, rng.randint(1, 5))
    changed = {
        "gates": policy_of(gates).gates,
        "correction": rng.choice(["holm", "none"]),
        "min_decided": rng.choice([0.95, 0.999]),
    }
    # The plan does not depend on the gates, so that it is made once for each size.
    bench = Bench(
        policy=policy_of(), sources=rng.choice([5, 9, 14]), sets=("gender",),
        sampling=rng.random() < 0.3,
    )  # fmt: skip
    plant, given = random_plant(rng), bench.given()
    if rng.random() < 0.75:
        before = Plant(world=plant.world, sensitive=rng.choice([0.0, 0.2]))
        given = bench.given(bench.baseline(before))
    return bench, replace(given, policy=given.policy.model_copy(update=changed)), plant


def test_it_is_short_and_imports_the_standard_library_and_numpy_alone():
    text = SCRIPT.read_text()
    assert len(text.splitlines()) <= 250
    assert max(map(len, text.splitlines())) <= 120
    assert f'VERSION = "{__version__}"' in text
    names = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    known = {"base64", "hashlib", "io", "json", "math", "statistics", "sys", "zipfile", "numpy"}
    assert names == known


def test_it_comes_to_the_same_verdict_for_random_runs(script, tmp_path):
    rng, seen, unverified = random.Random(7), Counter(), 0
    for _ in range(RUNS):
        bench, given, plant = random_run(rng)
        run = run_gate(given, bench.system(plant), SILENT)
        members = bundle_of(given, run, redact=rng.random() < 0.3)
        differing, open_parts = verified(script, written(tmp_path / "b.zip", members))
        assert differing == [], (plant, given.policy.gates)
        unverified += bool(open_parts)
        seen[int(run.result.exit_code)] += 1
        seen.update(rule.outcome.value for rule in run.result.rules)
        seen["first run"] += given.references.baseline is None
    assert seen[0] > 10
    assert seen[1] > 7
    assert seen[5] > 0
    assert seen["first run"] > 10
    assert seen["inconclusive"] > 3
    assert unverified < 0.4 * RUNS


@pytest.fixture(scope="module")
def ordinary():
    bench = Bench(policy=policy_of(GATES), sources=12, sets=("gender",))
    given = bench.given(bench.baseline(Plant(neutral_retrieval=0.3)))
    run = run_gate(given, bench.system(Plant(neutral_retrieval=0.3)), SILENT)
    assert run.result.exit_code == 0
    return bundle_of(given, run)


def rows_of(members):
    return [json.loads(line) for line in members["rows.jsonl"].splitlines()]


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_an_altered_row_differs_though_all_hashes_are_made_again(script, ordinary, tmp_path):
    path = tmp_path / "b.zip"
    assert verified(script, written(path, ordinary))[0] == []
    rng = random.Random(3)
    for _ in range(10):
        rows = rows_of(ordinary)
        claims = rng.choice(rows)["claims"]
        claims["generation"] = 1.0 - claims["generation"]
        claims["controlled"] = 1.0 - claims["controlled"]
        assert verified(script, written(path, forged(ordinary, rows__jsonl=as_lines(rows))))[0]


@pytest.mark.parametrize(("member", "at", "value"), [
    ("run.json", ("rules", 0, "outcome"), "fail"), ("run.json", ("rules", 0, "value"), 0.001),
    ("run.json", ("exit_code",), 1), ("run.json", ("rules", slice(2, 3)), []),
    ("policy.json", ("gates", 1, "max"), -1.0), (STATEMENT, ("predicate", "result"), "FAILED"),
])  # fmt: skip
def test_another_record_differs_though_hashes_are_new(
    script, ordinary, tmp_path, member, at, value
):
    content = json.loads(ordinary[member])
    *path, last = at
    reduce(getitem, path, content)[last] = value
    changed = {**ordinary, member: as_json(content)}
    changed = changed if member == STATEMENT else forged(changed)
    assert verified(script, written(tmp_path / "b.zip", changed))[0]


def test_a_member_that_is_not_the_hashed_one_differs(script, ordinary, tmp_path):
    for name in ordinary:
        if name != STATEMENT:
            changed = {**ordinary, name: ordinary[name] + b"\n"}
            assert verified(script, written(tmp_path / "b.zip", changed))[0]
    assert verified(script, written(tmp_path / "b.zip", {**ordinary, "more.txt": b""}))[0]


@pytest.mark.parametrize("version", ["0.0.1", "9.9.9", "", None, 1])
def test_no_bundle_of_another_version_is_agreed_to(script, ordinary, tmp_path, version):
    record = json.loads(ordinary["run.json"]) | {"fairgate": version, "notices": []}
    record["rules"][0]["reasons"] = ["a false sentence"]
    path = written(tmp_path / "b.zip", forged(ordinary, run__json=as_json(record)))
    assert any("use the verify.py of that one" in one for one in verified(script, path)[1])


@pytest.mark.parametrize(("gate", "words"), [
    ({"metric": "rrs/band", "where": {"band": "low"}, "max": 0.9}, "rrs/band"),
    ({"metric": CONTROLLED, "max": 0.9, "evidence": "interval"}, "interval"),
    ({"metric": CONTROLLED, "regression": {"strict": True}}, "margin"),
    ({"metric": "rrs/mean", "regression": {}}, "scores"),
])  # fmt: skip
def test_what_it_cannot_recompute_is_named_and_never_agreed_to(script, tmp_path, gate, words):
    bench = Bench(policy=policy_of([gate]), sources=9, sets=("gender",))
    given = bench.given(bench.baseline(Plant()))
    run = run_gate(given, bench.system(Plant(neutral_retrieval=0.3)), SILENT)
    path = written(tmp_path / "b.zip", bundle_of(given, run))
    differing, unverified = verified(script, path)
    assert differing == []
    assert any(words in one for one in unverified)
    done = called(path)
    assert done.returncode == 3
    assert "not verified: " in done.stdout


def called(path):
    command = [sys.executable, "-I", SCRIPT, path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_its_exit_codes(ordinary, tmp_path):
    record = ordinary["run.json"].replace(b'"exit_code": 0', b'"exit_code": 1')
    other = forged(ordinary, run__json=record)
    for members, code, words in ((ordinary, 0, "follows from the rows"), (other, 1, "differs: ")):
        done = called(written(tmp_path / "b.zip", members))
        assert done.returncode == code, done.stdout
        assert words in done.stdout


@pytest.mark.parametrize("day", ["2026-07-01", "2026-07-02", "0", "!", "", "2025-06-01"])
@pytest.mark.parametrize("refusing", [{}, {"A woman": 0.8}], ids=["decided", "few decided"])
def test_a_waived_failure_is_agreed_to_on_days_that_can_be(script, tmp_path, day, refusing):
    gates = [
        {"metric": CONTROLLED, "for_each": "term", "max": 0.1},
        {"metric": "unreadable/net", "max": 0.9},
    ]
    bench = Bench(policy=policy_of(gates), sources=20, sets=("gender",))
    entry = WaiverPolicy(
        rule=CONTROLLED, where={"term": "woman"}, reason="r", owner="o", expires="2026-07-01"
    )
    given = bench.given()
    own = {"waivers": [entry], "min_decided": 0.3}
    given = replace(given, policy=given.policy.model_copy(update=own), day=day)
    plant = Plant(biased={"A woman": 0.9}, refusing=refusing)
    run = run_gate(given, bench.system(plant), SILENT)
    path = written(tmp_path / "b.zip", bundle_of(given, run))
    if day in ("0", "!", "2025-06-01"):  # no day on which this policy could have been run
        with pytest.raises(DataError, match="files are none of a run"):
            check_bundle(path)
        return
    assert run.result.exit_code == (0 if day == "2026-07-01" and not refusing else 1)
    assert check_bundle(path).result.exit_code == run.result.exit_code
    assert verified(script, path) == ([], [])
    record = json.loads(render_run_record(run.result)) | {"fairgate": __version__}
    record |= {"day": "2026-07-02", "exit_code": 0, "outcome": "pass"}
    members = forged(bundle_of(given, run), run__json=as_json(record))
    wrong, _ = verified(script, written(tmp_path / "forged.zip", members))
    assert wrong
