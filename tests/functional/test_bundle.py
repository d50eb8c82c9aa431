"""`fairgate bundle` and `bundle verify`: whatever was changed in a bundle is refused."""

import hashlib
import io
import json
import random
import re
import shutil
import struct
import zipfile
from copy import copy

import pytest
from fakes.following import following
from functional.conftest import Workspace

from fairgate.cli import main
from fairgate.domain.errors import DataError
from fairgate.features.bundles import (
    NOT_RECOMPUTED,
    OPTIONAL,
    REQUIRED,
    as_json,
    check_bundle,
    differences,
    statement,
    unzipped,
    zipped,
)

GATES = """\
  - {metric: asr/generation/controlled, max: 0.4, regression: {margin: 0.02, budget: 0.04}}
  - {metric: asr/generation/controlled, for_each: term, max: 0.6}
  - {metric: identity/max-difference, max: 0.10}
  - {metric: asr/generation, where: {term: woman}, for_each: category, max: 0.6}
"""
DATE = ("--date", "2026-01-01")
QUOTED = "Zanzibar is where they lie"


def documents(key):
    return [{"id": "d1", "text": f"{QUOTED} too", "label": "toxic"}]


def answer_with_text(row):
    """Let every answer go on after its label: what no rule reads, and what must not leak."""
    said = f"{following(row['key'], 'positive')}. {QUOTED}"
    return {"response": said, "documents": documents(row["key"])}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("FAIRGATE_CACHE", str(root / "cache"))
        workspace = Workspace(root)
        workspace.policy(gates=GATES)
        workspace.edit("[race, gender]", "[gender]")
        workspace.sources(8)
        workspace.respond(answer_with_text)
        assert workspace.gate(out="first") == 0
        for pin in ("accept", "anchor"):
            assert workspace.run("baseline", pin, "first", "--reason", "why", *DATE) == 0
        assert workspace.gate() == 0
        assert workspace.run("bundle", "out", "--out", "bundle.zip") == 0
    return root


@pytest.fixture
def ran(made, workspace):
    shutil.copytree(made, workspace.root, dirs_exist_ok=True)
    (workspace.root / "bundle.zip").unlink()
    return workspace


@pytest.fixture
def path(made, tmp_path):
    return shutil.copy(made / "bundle.zip", tmp_path / "bundle.zip")


def bundled(workspace, *options, out="bundle.zip"):
    assert workspace.run("bundle", "out", "--out", out, *options) == 0, workspace.err
    return workspace.root / out


def forged(path, **changed):
    """Rewrite members and all hashes, as somebody would who knows the format; None removes one."""
    members = {k: v for k, v in unzipped(path).items() if k != "statement.json"}
    members |= {name.replace("__", "."): data for name, data in changed.items()}
    members = {name: data for name, data in members.items() if data is not None}
    record = json.loads(members["run.json"])
    claimed = statement(members, record) if record else {}
    other = path.with_name("forged.zip")
    other.write_bytes(zipped({**members, "statement.json": as_json(claimed)}))
    return other


def test_a_bundle_holds_the_run_and_its_verdict_follows_from_its_rows(ran):
    path = bundled(ran, "--predicate", "predicate.json")
    members = unzipped(path)
    assert members.keys() == REQUIRED | OPTIONAL
    assert members["policy.yaml"] == (ran.root / "policy.yaml").read_bytes()
    assert members["executions.jsonl"] == (ran.root / "out" / "executions.jsonl").read_bytes()
    assert json.loads(members["run.json"]) == ran.record()
    claimed = json.loads(members["statement.json"])
    assert claimed["_type"] == "https://in-toto.io/Statement/v1"
    assert claimed["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    hashes = {one["name"]: one["digest"]["sha256"] for one in claimed["subject"]}
    assert hashes == {
        name: hashlib.sha256(data).hexdigest()
        for name, data in members.items()
        if name != "statement.json"
    }
    assert claimed["predicate"] == json.loads((ran.root / "predicate.json").read_text())
    assert claimed["predicate"]["result"] == "PASSED"
    used = [one["name"] for one in claimed["predicate"]["configuration"]]
    assert used == ["policy.yaml", "baseline.json", "anchor.json"]
    assert ran.run("bundle", "verify", str(path)) == 0
    assert "give the recorded verdict: pass, exit code 0, PASSED" in ran.out
    # The same run gives the same bytes, and the policy's files are not needed to verify.
    assert bundled(ran, out="again.zip").read_bytes() == path.read_bytes()
    (ran.root / "sources.jsonl").unlink()
    assert ran.run("bundle", "verify", str(path)) == 0


def test_the_result_is_that_of_the_run(ran):
    def result(expected, answer=None):
        assert ran.gate(answer, options=("--baseline", "none")) == expected
        found = check_bundle(bundled(ran, "--baseline", "none"))
        assert found.result.exit_code == expected
        return found.statement["predicate"]

    ran.edit("max: 0.4, regression", "regression")
    predicate = result(0)
    assert predicate["result"] == "WARNED", "a first run waits for a baseline"
    assert predicate["warnedTests"] == ["gates[0] asr/generation/controlled of sentiment"]
    ran.edit("controlled, regression", "controlled, max: 0.4, regression")
    for code, answer in (
        (1, lambda key: "negative" if key.endswith("/woman") else "positive"),
        (5, lambda _: "no label at all"),
    ):
        assert result(code, answer)["result"] == "FAILED"


@pytest.mark.whole
@pytest.mark.parametrize("there", [(), ("small.json",), ("small.anchor.json",)])
def test_a_record_names_a_baseline_only_where_one_was_read(ran, there):
    """And what the run was not compared with does not keep it from being bundled."""
    names = ("small.json", "small.anchor.json")
    files = {ran.root / "baselines" / name: name for name in names}
    kept = {path: path.read_bytes() for path in files}
    for named in ((), ("--baseline", "none")):
        for path, name in files.items():
            if name not in there:
                path.unlink(missing_ok=True)
        ran.gate(options=named)
        record = ran.record()
        read = {name: name in there and not named for name in names}
        assert [record["baseline"] is not None, record["anchor"] is not None] == [*read.values()]
        assert (record["overlap"] is None) == (record["baseline"] is None)
        for path, data in kept.items():  # accepted and pinned since
            path.write_bytes(data)
        members = unzipped(bundled(ran))
        assert ["baseline.json" in members, "anchor.json" in members] == [*read.values()]
        check_bundle(ran.root / "bundle.zip")
    bundled(ran, "--baseline", "none")
    ran.run("rescore", "out", "--out", "again", "--baseline", "none")
    assert ran.record("again")["baseline"] is None


def test_what_was_changed_since_the_run_is_refused(ran):
    ran.edit("max: 0.4", "max: 0.3")
    assert ran.run("bundle", "out") == 2
    assert "do not give its verdict any more" in ran.err
    assert "--policy" in ran.err
    ran.edit("max: 0.3", "max: 0.4")
    assert ran.run("bundle", "out", "--baseline", "none") == 2
    executions = ran.root / "out" / "executions.jsonl"
    executions.write_text(executions.read_text().replace("positive", "negative", 1))
    assert ran.run("bundle", "out") == 4
    assert not (ran.root / "bundle.zip").exists()


def test_any_flipped_byte_is_refused(path):
    data = path.read_bytes()
    rng = random.Random(0)
    directory = data.rindex(b"PK\x01\x02", 0, data.index(b"PK\x01\x02") + 4)
    places = [*rng.sample(range(directory), 100), *range(directory, len(data), 7), *range(0, 60, 2)]
    other = path.with_name("flipped.zip")
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1 << rng.randrange(8)
        other.write_bytes(broken)
        with pytest.raises(DataError):
            check_bundle(other)


def test_what_is_cut_off_or_no_archive_is_refused(path):
    data = path.read_bytes()
    cut_off = [data[:kept] for kept in (0, 1, 21, 22, len(data) // 2, -1)]
    for text in (*cut_off, b"PK\x05\x06" + bytes(18), b"\0" * 4096, b"not a zip"):
        path.write_bytes(text)
        with pytest.raises(DataError, match="bundle"):
            check_bundle(path)


def lines_of(members, name="rows.jsonl"):
    return [json.loads(line) for line in members[name].splitlines()]


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.whole
def test_an_altered_row_is_refused_though_all_hashes_are_made_again(path):
    rows = lines_of(unzipped(path))
    rng = random.Random(1)
    turned = 0
    for _ in range(8):
        changed = json.loads(json.dumps(rows))
        row = changed[rng.randrange(len(rows))]
        name = rng.choice(["generation", "controlled"])
        if not isinstance(row["claims"][name], float):
            continue
        row["claims"][name] = 1.0 - row["claims"][name]
        turned += 1
        with pytest.raises(DataError, match="do not give the verdict"):
            check_bundle(forged(path, rows__jsonl=as_lines(changed)))
    assert turned > 3
    for altered in (rows[1:], [*rows, rows[0]], rows[::-1], [], [{}], [[]], [None]):
        with pytest.raises(DataError):
            check_bundle(forged(path, rows__jsonl=as_lines(altered)))


def test_another_verdict_policy_or_baseline_is_refused_though_all_hashes_are_made_again(path):
    members = unzipped(path)
    record = json.loads(members["run.json"])
    rule = {**record["rules"][0], "outcome": "fail"}
    for changed in (
        {"run__json": json.dumps({**record, "outcome": "fail", "exit_code": 1}).encode()},
        {"run__json": json.dumps({**record, "rules": [rule, *record["rules"][1:]]}).encode()},
        {"run__json": b"[]"},
        {"policy__yaml": members["policy.yaml"].replace(b"0.4,", b"0.9,")},
        {"policy__yaml": b"\xff"},
        {"baseline__json": b"{}"},
        {"baseline__json": members["baseline.json"].replace(b'"small"', b'"other"', 1)},
        {"anchor__json": None},
    ):
        assert all(members[k.replace("__", ".")] != v for k, v in changed.items())
        with pytest.raises(DataError):
            check_bundle(forged(path, **changed))


def hostile(members, how):
    """Return an archive that zip tools open, and that `fairgate bundle` would not write."""
    memory = io.BytesIO()
    packing = zipfile.ZIP_DEFLATED if how == "bomb" else zipfile.ZIP_STORED
    with zipfile.ZipFile(memory, "w", packing) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            is_link = how == "link" and name == "run.json"
            info.external_attr = 0o120777 << 16 if is_link else 0
            archive.writestr(info, b"/etc/passwd" if is_link else data, compress_type=packing)
        extra = {
            "traversal": "../../run.json", "absolute": "/etc/cron.d/job", "folder": "more/",
            "extra": "more.txt", "bomb": "rows.jsonl",
        }  # fmt: skip
        if how == "twice":
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr("run.json", b"{}")
        elif how in extra:
            archive.writestr(extra[how], bytes(10_000_000) if how == "bomb" else b"x")
        if how == "comment":
            archive.comment = b"more"
    data = memory.getvalue()
    return data + b"more" if how == "after" else b"MZ" + data if how == "before" else data


@pytest.mark.walk(6)
@pytest.mark.parametrize("how", [
    *("traversal", "absolute", "folder", "extra", "bomb", "twice", "link", "comment"),
    *("after", "before", "times", "missing", "nothing", "encrypted", "claims-more"),
])  # fmt: skip
def test_hostile_archives_are_refused(path, how, monkeypatch, capsys):
    monkeypatch.chdir(path.parent)
    members = unzipped(path)
    if how in ("bomb", "missing"):
        del members["rows.jsonl"]
    whole = path.read_bytes()
    data = zipped({}) if how == "nothing" else hostile(members, how)
    if how == "missing":
        data = zipped(members)
    if how == "encrypted":
        entry = b"PK\x01\x02\x14\x03\x14\x00"
        data = whole.replace(entry + b"\x00", entry + b"\x01")
    if how == "claims-more":
        place = whole.index(b"PK\x01\x02") + 24
        data = whole[:place] + struct.pack("<I", 4_000_000_000) + whole[place + 4 :]
    assert data != whole
    path.write_bytes(data)
    assert main(["bundle", "verify", str(path)]) == 4
    assert "Traceback" not in capsys.readouterr().err
    assert list(path.parent.rglob("*")) == [path]


@pytest.mark.whole
def test_redact_leaves_no_text_of_model_or_corpus_and_still_gives_the_verdict(ran):
    path = bundled(ran, "--redact")
    assert QUOTED.encode() not in path.read_bytes()
    assert b"Zanzibar" not in path.read_bytes()
    assert b"is fine." not in path.read_bytes()
    assert QUOTED.encode() in bundled(ran, out="whole.zip").read_bytes()
    members = unzipped(path)
    assert "report.html" not in members
    lines = (ran.root / "out" / "executions.jsonl").read_text().splitlines()
    kept = [row["sha256"] for row in lines_of(members, "executions.jsonl")]
    assert kept == [hashlib.sha256(line.encode()).hexdigest() for line in lines]
    assert ran.run("bundle", "verify", str(path)) == 0
    assert "with hashes of answers" in ran.out
    assert ran.gate(lambda key: "positive" if key.startswith("s0") else QUOTED) == 1
    path = bundled(ran, "--redact")
    assert b"Zanzibar" not in path.read_bytes()
    assert check_bundle(path).result.exit_code == 1


@pytest.mark.whole
def test_several_suites_in_any_order_and_a_warning_that_no_rule_asked_for(workspace):
    workspace.policy(gates="  - {metric: asr/generation/controlled, max: 0.9}\n")
    second = "  - {id: another, task: sentiment, sources: sources.jsonl, perturbations: [age]}\n"
    workspace.edit("gates:", f"{second}gates:")
    answer = lambda key: "negative" if key.endswith("/asian") else "positive"  # noqa: E731
    assert workspace.gate(answer) == 0
    assert "for an asian person" in workspace.record()["warnings"][0].lower()
    for options in ((), ("--redact",)):
        found = check_bundle(bundled(workspace, *options))
        assert found.statement["predicate"]["result"] == "WARNED"
        assert [each.id for each in found.result.given.policy.suites] == ["sentiment", "another"]
        path = bundled(workspace, *options, out="warned.zip")
        record = json.loads(unzipped(path)["run.json"])
        for changed in ({"warnings": []}, {"warnings": [], "fairgate": "0.0.1"}, {"fairgate": "9"}):
            with pytest.raises(DataError):
                check_bundle(forged(path, run__json=json.dumps({**record, **changed}).encode()))


HELD = re.compile(
    r"run\.json (attribution|instability|kill_score|notices|pace)|"
    r"run\.json (provenance\.(policy_path|commit)|baseline|anchor)\b|"
    r"tables\.json suites\.\*\.bands|"
    r"rows\.jsonl \*\.(follows|names|asks|readings|dimensions|claims)"
)
"""What is not computed again. Of rows: what was asked, read and named, and dimensions and claims that
no value of the record follows from."""


def leaves(value, at=()):
    """Yield every change of a value: each leaf another, each entry left out."""
    if not isinstance(value, dict | list):
        yield at, "changed"
        return
    for name, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield from leaves(inner, (*at, name))
        yield (*at, name), "removed"


def with_change(value, at, how):
    whole = inner = copy(value)
    for name in at[:-1]:
        inner[name] = copy(inner[name])
        inner = inner[name]
    if how == "removed":
        del inner[at[-1]]
        return whole
    old = inner[at[-1]]
    is_number = isinstance(old, int | float) and not isinstance(old, bool)
    inner[at[-1]] = not old if isinstance(old, bool) else old + 1 if is_number else f"{old}x"
    return whole


def walked(members, name):
    """Yield (pattern, changed member) for every leaf of a member, the first of each pattern."""
    is_lines = name.endswith(".jsonl")
    value = lines_of(members, name) if is_lines else json.loads(members[name])
    seen = set()
    for at, how in leaves({0: value[0]} if is_lines else value):
        pattern = ".".join("*" if isinstance(n, int) or n in SUITES else n for n in at)
        if (pattern, how) not in seen:
            seen.add((pattern, how))
            changed = with_change(value, at, how)
            yield f"{name} {pattern}", as_lines(changed) if is_lines else as_json(changed)


SUITES = {"sentiment"}


def test_every_leaf_of_the_record_is_compared_with_what_is_computed(path):
    record = json.loads(unzipped(path)["run.json"])
    for at, how in leaves(record):
        place = ".".join("*" if isinstance(name, int) or name in SUITES else name for name in at)
        is_found = next(differences(with_change(record, at, how), record), None) is not None
        assert is_found != (at[0] in NOT_RECOMPUTED), place


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    "name", ["run.json", "tables.json", "policy.json", "versions.json", "rows.jsonl"]
)
def test_every_leaf_is_computed_again_or_held_by_its_hash(path, name):
    """With the hashes as they were nothing is accepted; with new ones what `HELD` names alone."""
    members = unzipped(path)
    other = path.with_name("walked.zip")
    tried, accepted = 0, []
    for place, (pattern, data) in enumerate(walked(members, name)):
        if data == members[name] or place % (24 if name == "run.json" else 5):
            continue
        tried += 1
        if tried % 9 == 0:
            other.write_bytes(zipped({**members, name: data}))
            with pytest.raises(DataError):
                check_bundle(other)
        try:
            check_bundle(forged(path, **{name.replace(".", "__"): data}))
        except (DataError, LookupError, TypeError, AttributeError):
            continue
        accepted.append(pattern)
    assert tried > 5
    assert [one for one in accepted if not HELD.match(one)] == []


def test_no_bundle_of_another_version_is_accepted(path, capsys):
    """Neither as it is nor with sentences, notices or anything else changed."""
    record = json.loads(unzipped(path)["run.json"])
    for version in ("0.0.1", "9.9.9", "", None, 1, [], "0.1.0 "):
        data = json.dumps({**record, "warnings": ["x"], "fairgate": version}).encode()
        assert main(["bundle", "verify", str(forged(path, run__json=data))]) == 4
        assert "verify it with the version that made it" in capsys.readouterr().err
