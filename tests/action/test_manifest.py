"""Whatever a policy can name: the base's version decides, and what the head has else is listed."""

import hashlib
import json
import shutil
from functools import cache, partial
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from action.repositories import History
from fakes.policies import parse_policy
from pydantic import BaseModel

from fairgate.domain.errors import BaselineError, DataError, FairGateError, UsageError
from fairgate.domain.ports import SILENT, Runtime
from fairgate.domain.schema import Names, Role
from fairgate.gate.baseline import NO_ACCEPTED_RUNS
from fairgate.gate.composition import Composition
from fairgate.gate.loaded_policy import load_policy_text
from fairgate.gate.manifest import contents, named_by
from fairgate.github.base_commit import BaseCommit, BaseVersion, Clone
from fairgate.github.change import ChangeGate, evaluated
from fairgate.policy.assembled import policy_model
from fairgate.systems.catalogue import policy_parts
from fairgate.systems.generator import GeneratorPolicy
from fairgate.systems.models import local_folder
from fairgate.systems.resources import Resources

SUITES = """
  - id: s
    sources: SOURCES
    task: {id: t, instruction: x, tone: {model: tone}}
    attributes: [own/attribute.yaml]
    perturbations: [own/terms.yaml]
    control: own/control.yaml
  - {id: t, sources: {path: own/table.csv}, task: own/task.yaml}
  - id: b
    kind: bbq
    items: {path: own/items, metadata: own/items.csv}
    collections: [own/stances.jsonl]
    retrievers: [dense, bm25, "contriever:./own/contriever"]
  - {id: c, kind: bbq, items: own/items.jsonl, collections: [own/more.jsonl]}
"""
SYSTEMS = (
    "{recorded: answers.jsonl, embedder: encoder, labels: {file: l.csv, classifier: reader}}",
    "{http: {url: 'http://127.0.0.1:1', revision: {files: [own/app]}}, embedder: {model: ./own/e}}",
    "{command: [x], embedder: encoder, labels: {classifier: {model: own/reader}}}",
    "{python: 'm:f', embedder: encoder}",
    "{generator: {model: ./own/slm}, embedder: ./own/encoder}",
    "{generator: {model: slm}, retriever: {embedder: {model: ./own/encoder}, corpus: {path: CORPUS}}}",
    "{generator: {model: slm}, retriever: {corpus: corpus.csv, embedder: encoder}}",
    "{generator: {model: slm}, retriever: {command: [x], embedder: encoder, labels: {file: l.csv}}}",
)
JUDGE = (
    "judge: {id: j, record: own/record.json, generators: [{model: judge}, {model: ./own/judge}]}"
)
EMPTY = hashlib.sha256(b"{}").hexdigest()
TASK = "{id: own, instruction: x, tone: in-task}"
NAMES_NO_FILE = {
    "Policy": "name",
    "EmbedderPolicy": "revision file query_prompt document_prompt",
    "OwnRetrieverPolicy": "command python",
    "HttpSearch": "url request headers_env revision",
    "FoundPaths": "documents", "DocumentPaths": "text id label",
    "CommandSearch": "run env revision", "PythonSearch": "call revision",
    "ClassifierPolicy": "labels",
    "GeneratorPolicy": "prompt system revision file template_arguments",
    "EndpointGeneratorPolicy": "prompt system template_arguments",
    "EndpointPart": "base_url model api_key_env revision extra_body", "ServePart": "command ready_url env",
    "RowPaths": "answer documents question",
    "HttpPart": "url request headers_env revision",
    "ResponsePaths": "answer documents", "CommandPolicy": "command",
    "CommandPart": "run env revision", "OwnResponsePaths": "answer documents",
    "PythonPolicy": "python", "PythonPart": "call revision", "SuitePolicy": "id relations turns thinking forms",
    "TaskPolicy": "id instruction labels equivalent negated marker order",
    "ScorePolicy": "marker path", "ActionsPolicy": "tool arguments ignore",
    "ItemsPolicy": "columns", "WaiverPolicy": "rule who where suite reason owner expires",
    "Columns": "id text label", "BbqSuitePolicy": "id categories marker thinking",
    "EndpointPolicy": "endpoint model api_key_env",
    "InstructionPolicy": "id text", "JudgePolicy": "id",
    "GatePolicy": "metric suite where", "ParityPolicy": "parity suite where",
}  # fmt: skip
"""Model to its fields that hold words, texts, addresses, columns, programs, names of variables."""


def policy(system, suites=SUITES, more=JUDGE):
    text = f"version: 1\nname: p\nsystem: {system}\n{more}\nsuites:{suites}"
    text = text.replace("SOURCES", "own/sources.jsonl").replace("CORPUS", "own/corpus.csv")
    return parse_policy(text + "gates: [{metric: asr/generation, max: 0.9}]\n", "p.yaml").policy


def models_of(model, found=None):
    found = {} if found is None else found

    def inner(annotation):
        for one in get_args(annotation):
            inner(one)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            models_of(annotation, found)

    if model.__name__ not in found:
        found[model.__name__] = model
        for field in model.model_fields.values():
            inner(field.annotation)
    return found


def holds_text(annotation):
    if get_origin(annotation) is Literal:
        return False
    return annotation is str or any(holds_text(one) for one in get_args(annotation))


def marks(model):
    return {
        f"{model.__name__}.{name}": next((m for m in field.metadata if isinstance(m, Names)), None)
        for name, field in model.model_fields.items()
        if holds_text(field.annotation)
    }


def texts():
    models = models_of(policy_model(policy_parts())).values()
    return {place: mark for model in models for place, mark in marks(model).items()}


def test_every_text_of_a_policy_is_marked_as_a_name_or_known_as_none():
    """Whoever adds a key for a file, a folder or a model finds this test red until it is marked."""
    unmarked = {place for place, mark in texts().items() if mark is None}
    known = {f"{model}.{name}" for model, names in NAMES_NO_FILE.items() for name in names.split()}
    assert unmarked == known


def content(path):
    return path.read_bytes() if path.is_file() else b"".join(
        content(file) for file in sorted(path.rglob("*")) if file.is_file()
    )  # fmt: skip


class Change:
    """A repository with a base commit; what a test does after `base` is the head."""

    def __init__(self, root):
        self.history = History.started(root)
        self.root, self.write = root, self.history.write
        self.commit = ""

    def base(self):
        self.commit = self.history.commit("base")

    def base_at(self, place):
        return BaseCommit(Clone(self.root / place), self.commit, api=None, repository="")

    def judged(self, scratch, place="", *, allow):
        runtime = Runtime(root=self.root / place, cache=scratch / "cache", confined=True)
        asks = partial(evaluated, progress=SILENT)
        judge = ChangeGate("p.yaml", runtime, asks, scratch / "scratch")
        return judge.change(self.base_at(place), self.commit, allow=allow)

    def brought(self, chosen, place=""):
        """Return the base's version, and role and file of all that differs in the head."""
        self.history.commit("head")
        runtime = Runtime(root=self.root / place, confined=True)
        version = BaseVersion(self.base_at(place), runtime, self.root.parent / "scratch")
        found = version.bring(chosen)
        return version.runtime.root, {(one.role, one.file) for one in found}


@pytest.fixture
def change(tmp_path):
    return Change(tmp_path / "work")


@pytest.mark.walk(3)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_base_decides_by_whatever_a_policy_names(change, system):
    """Every name of a policy is edited in the head: each is listed, and none but the base's read."""
    chosen = policy(system)
    change.write("own/task.yaml", TASK)
    names = {(named.role, named.name) for named in named_by(chosen, Runtime(root=change.root))}
    assert (Role.CLASSIFIER, "in-task") in names
    for _, name in names - {(Role.TASK, "own/task.yaml")}:
        folder = "." not in Path(name).name
        change.write(f"{name}/model.onnx" if folder else name, f"base's {name}")
    change.base()
    for file in sorted(change.root.rglob("*")):
        if file.is_file() and ".git" not in file.parts and file.suffix != ".yml":
            file.write_text("instruction: head's" if file.name == "task.yaml" else "head's")
    folder, found = change.brought(chosen)
    assert {role for role, _ in found} == {role for role, _ in names}
    for role, name in names:
        changed = {file for one, file in found if one is role}
        path = name.removeprefix("./")
        assert {path, f"{path}/model.onnx"} & changed, name
        is_there = (folder / name).resolve().exists()
        assert is_there != role.is_under_test, name
        if is_there:
            assert b"head's" not in content((folder / name).resolve())


def test_every_marked_key_is_tried_above():
    tried = {id(mark) for system in SYSTEMS for mark in reached(policy(system))}
    task = policy("{recorded: a}", suites=SUITES.replace("SOURCES", "s.jsonl"))
    tried |= {id(mark) for mark in reached(task)}
    assert [place for place, mark in texts().items() if mark and id(mark) not in tried] == []


def reached(part):
    """Return the marks of the fields that hold a name, in a policy and the parts of it."""
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, BaseModel):
                yield from reached(one)
            if one is not None:
                yield from (mark for mark in field.metadata if isinstance(mark, Names))


SMALL = """\
version: 1
name: p
system: SYSTEM
suites: [{id: s, task: sentiment, sources: demo-reviews, limit: 6, control: paper, attribution: "off"}]
gates: [{metric: asr/generation, max: 0.9}]
"""
OUTSIDE = ("http: {url: 'http://127.0.0.1:1'}", "command: [x]", "python: 'm:f'")
SOURCES = """
  - {id: s, sources: NAME, task: sentiment}
"""


def sources(name):
    return policy("{recorded: answers.jsonl}", SOURCES.replace("NAME", name), more="")


def asked(change, name, place=""):
    """Return what the base's policy would read as its sources, and what is listed."""
    folder, found = change.brought(sources(name), place)
    files = {file for role, file in found if role is Role.SOURCES}
    return content((folder / name).resolve()) if (folder / name).resolve().exists() else None, files


LINKS = {"real/s.jsonl": "base", "s.jsonl": "-> real/s.jsonl", "data": "-> real"}
TURNED = {"evil/s.jsonl": "head", "s.jsonl": "-> evil/s.jsonl", "d": "-> evil"}
CASED = {"Data/s.jsonl": "head", "data/S.jsonl": "head"}
MOVED = {"d/gone.jsonl": None, "d/deep/new.jsonl": "new"}
SWAPPED = {"d": "head", "f/s.jsonl": "head"}


def put(change, files):
    """Write files; `-> target` is a link, None removes."""
    gone = [name for name in files if (change.root / name).exists()]
    for name in gone:
        change.history.git("rm", "-rq", "--cached", name)
        path = change.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in files.items():
        if text and text.startswith("-> "):
            (change.root / name).symlink_to(text[3:])
        elif text:
            change.write(name, text)


@pytest.mark.parametrize(
    ("base", "head", "name", "read", "listed"),
    [
        *(({"s.jsonl": "base"}, {"s.jsonl": "head"}, name, "base", {"s.jsonl"})
          for name in ("s.jsonl", "./s.jsonl", "a/../s.jsonl", "./a/.././s.jsonl")),
        # A link of the base is followed in the base; one in the place of a file is not.
        (LINKS, {"real/s.jsonl": "head"}, "s.jsonl", "base", {"s.jsonl"}),
        (LINKS, {"real/s.jsonl": "head"}, "data/s.jsonl", "base", {"data/s.jsonl"}),
        (LINKS, {"real/s.jsonl": "head"}, "data", "base", {"data/s.jsonl"}),
        ({"s.jsonl": "base", "d/s.jsonl": "base"}, TURNED, "s.jsonl", "base", {"s.jsonl"}),
        ({"s.jsonl": "base", "d/s.jsonl": "base"}, TURNED, "d/s.jsonl", "base", {"d/s.jsonl"}),
        # Another case is another file.
        ({"data/s.jsonl": "base"}, CASED, "data/s.jsonl", "base", set()),
        ({"data/s.jsonl": "base"}, CASED, "data", "base", {"data/S.jsonl"}),
        ({"d/gone.jsonl": "gone", "d/kept.jsonl": "kept"}, MOVED, "d", "gonekept", set(MOVED)),
        # A folder in the place of a file, and the reverse.
        ({"d/s.jsonl": "base", "f": "base"}, {"d": None, "f": None, **SWAPPED}, "d", "base",
         {"d", "d/s.jsonl"}),
        ({"d/s.jsonl": "base", "f": "base"}, {"d": None, "f": None, **SWAPPED}, "f", "base",
         {"f", "f/s.jsonl"}),
        # Whatever changes a fingerprint is listed, ends of lines too.
        *(({"s.jsonl": then}, {"s.jsonl": now}, "s.jsonl", then, {"s.jsonl"})
          for then, now in (("a\nb\n", "a\r\nb\r\n"), ("a\r\nb\n", "a\nb\n"),
                            ("a\n", "a\n\r\n"), ("a\n", "\ufeffa\n"), ("a\n", "a"))),
    ],
)  # fmt: skip
def test_the_bases_version_is_read_and_the_heads_listed(change, base, head, name, read, listed):
    put(change, base)
    change.base()
    put(change, head)
    assert asked(change, name) == (read.encode(), listed)


def test_paths_start_where_the_gate_does_and_what_leads_out_is_not_brought(change):
    (change.root.parent / "out.jsonl").write_text("out")
    change.write("shop/s.jsonl", "base")
    change.base()
    change.write("shop/s.jsonl", "head")
    assert asked(change, "s.jsonl", "shop") == (b"base", {"s.jsonl"})
    for name in ("../out.jsonl", "/etc/hostname"):
        folder, found = change.brought(sources(name))
        assert found == set()
        assert [path.name for path in folder.iterdir()] in ([], ["s.jsonl"])


@pytest.mark.parametrize("target", ["../../secret", "s.jsonl"])
def test_a_link_of_the_base_that_leads_out_or_round_is_refused(change, target):
    (change.root / "s.jsonl").symlink_to(target)
    change.base()
    with pytest.raises(BaselineError, match="is a link"):
        change.brought(sources("s.jsonl"))


@pytest.mark.parametrize("target", ["../evil", ".", "../../out"])
def test_a_linked_folder_below_a_named_one_is_listed(change, target):
    """Models are read through such links: a pooling or a template behind one is another model."""
    change.write("d/s.jsonl", "base")
    change.write("real/x.jsonl", "linked")
    (change.root / "d" / "old").symlink_to("../real")
    (change.root.parent / "out").mkdir()
    change.base()
    assert asked(change, "d") == (b"linkedbase", set())
    change.write("evil/x.jsonl", "head")
    (change.root / "d" / "deep").symlink_to(target)
    listed = "d/deep/x.jsonl" if target == "../evil" else "d/deep"
    assert asked(change, "d") == (b"linkedbase", {listed})


def test_what_measures_is_known_with_links_and_without(tmp_path):
    """A baseline is accepted in a checkout; what is brought out of the base has no links."""
    (tmp_path / "pooling").mkdir()
    (tmp_path / "linked" / "e").mkdir(parents=True)
    (tmp_path / "linked" / "e" / "1_Pooling").symlink_to("../../pooling")
    (tmp_path / "plain" / "e" / "1_Pooling").mkdir(parents=True)
    chosen = policy("{recorded: a.jsonl, embedder: ./e}", SUITES, "")
    for name in ("linked", "plain"):
        (tmp_path / name / "e" / "1_Pooling" / "config.json").write_text("{}")
        (found,) = contents(chosen, Runtime(root=tmp_path / name), Role.EMBEDDER).values()
        known = repr([("1_Pooling/config.json", EMPTY)]).encode()
        assert found == hashlib.sha256(known).hexdigest()


def test_what_no_commit_has_is_the_runners(change):
    """A step before the gate may put data and weights beside what is committed, not the change."""
    change.write(".gitignore", "made/\nm/weights.onnx\nevil/\n")
    change.write("m/config.json", "base")
    change.base()
    change.write("made/s.jsonl", "runner's")
    change.write("m/weights.onnx", "runner's")
    change.write("evil/s.jsonl", "runner's other")
    assert asked(change, "made/s.jsonl") == (b"runner's", set())
    assert asked(change, "m") == (b"baserunner's", set())
    (change.root / "made" / "s.jsonl").unlink()
    (change.root / "made").rmdir()
    (change.root / "made").symlink_to("evil")
    change.history.git("add", "--force", "made")
    assert asked(change, "made/s.jsonl") == (None, {"made/s.jsonl"})


def test_a_name_that_a_commit_has_in_other_characters_is_no_runners(change):
    """Some file systems open one by the other: both stand here as such a one would show them."""
    for number, (tracked, name) in enumerate(ALIKE):
        assert tracked != name
        change.write(f"{number}/{tracked}", "head")
    change.history.commit("head")
    change.base()
    for number, (_, name) in enumerate(ALIKE):
        change.write(f"{number}/{name}", "shown by another name")
        runtime = Runtime(root=change.root, confined=True)
        version = BaseVersion(change.base_at(""), runtime, change.root.parent / "scratch")
        found = version.bring(sources(json.dumps(f"{number}/{name}")))
        assert [one.file for one in found] == [f"{number}/{name}"], name


ALIKE = [
    ("e\u0301.jsonl", "\xe9.jsonl"), ("\xe9.jsonl", "e\u0301.jsonl"), ("S.jsonl", "s.jsonl"),
    ("\xc9.jsonl", "e\u0301.jsonl"), ("s\u200c.jsonl", "s.jsonl"), ("\u212b.jsonl", "\xe5.jsonl"),
    ("stra\xdfe.jsonl", "STRASSE.jsonl"), ("d\xf6/s.jsonl", "do\u0308/s.jsonl"),
    ("\u1e69.jsonl", "s\u0307\u0323.jsonl"),
]  # fmt: skip
"""As a commit has a name, and as a policy may write it for the same file."""


def test_a_pointer_of_lfs_stands_for_what_it_names(change):
    digest = hashlib.sha256(b"base").hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 4\n"
    change.write("s.jsonl", pointer)
    change.base()
    assert asked(change, "s.jsonl") == (pointer.encode(), set())  # the checkout left it out
    change.write("s.jsonl", "base")
    assert asked(change, "s.jsonl") == (b"base", set())
    change.write("s.jsonl", "head")
    with pytest.raises(BaselineError, match=r"is in Git LFS, and its content is not here"):
        asked(change, "s.jsonl")
    change.write(f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}", "base")
    assert asked(change, "s.jsonl") == (b"base", {"s.jsonl"})


@pytest.fixture
def submodule(change, tmp_path):
    inner = History.started(tmp_path / "inner")
    inner.write("s.jsonl", "base")
    inner.commit()
    allow = ("-c", "protocol.file.allow=always")
    change.history.git(*allow, "submodule", "--quiet", "add", str(inner.root), "sub")
    change.base()
    return History(change.root / "sub")


def test_a_submodule_is_read_at_the_bases_commit_and_no_folder_takes_its_place(change, submodule):
    submodule.write("s.jsonl", "head")
    submodule.commit()
    assert asked(change, "sub/s.jsonl") == (b"base", {"sub/s.jsonl"})
    read, found = asked(change, "sub")
    assert b"base" in read
    assert b"head" not in read
    assert found == {"sub/s.jsonl"}
    change.history.git("rm", "-rqf", "sub")
    change.write("sub/s.jsonl", "head")
    with pytest.raises(BaselineError, match="cannot be read"):
        asked(change, "sub/s.jsonl")


@pytest.mark.parametrize("role", [role for role in Role if role.is_model])
def test_a_folder_takes_no_hub_models_place(tmp_path, role):
    (tmp_path / "acme" / "enc").mkdir(parents=True)
    runtime = Runtime(root=tmp_path, confined=True)
    both = r"'acme/enc' is .*here and could be a .* of the Hugging Face hub too.*'\./acme/enc'"
    with pytest.raises(DataError, match=both):
        local_folder("acme/enc", None, runtime)
    assert local_folder("./acme/enc", None, runtime) == tmp_path / "acme" / "enc"
    assert local_folder("acme/enc", "0" * 40, runtime) is None
    with pytest.raises(UsageError, match="belongs to a model"):
        local_folder("./acme/enc", "0" * 40, runtime)


def test_a_file_takes_no_hub_data_sets_place(change):
    change.base()
    change.write("org/data", "head")
    with pytest.raises(UsageError, match="would take the place of 'org/data' on the Hugging Face"):
        change.brought(policy("{generator: {}, retriever: {corpus: org/data}}", SUITES, ""))
    assert asked(change, "org/data") == (None, {"org/data"})


def test_contents_are_hashes_of_all_that_is_named(tmp_path):
    chosen = policy("{recorded: a.jsonl, embedder: {model: org/e, revision: abc}}", SUITES, "")
    runtime = Runtime(root=tmp_path)
    before = contents(chosen, runtime)
    assert before["measuring embedder org/e"] == "abc"
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "terms.yaml").write_text("x")
    after = contents(chosen, runtime)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"perturbation set own/terms.yaml"}


@pytest.mark.parametrize("system", ["recorded: a.jsonl", *OUTSIDE])
def test_the_model_that_measures_must_match(tmp_path, system):
    """Another folder measures another distance: such runs are not compared."""
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "encoder").mkdir()
    runtime = Runtime(root=tmp_path, cache=tmp_path / "cache", allow_python=True)

    def fields(embedder, weights):
        (tmp_path / "encoder" / "model.onnx").write_text(weights)
        text = SMALL.replace("SYSTEM", f"{{{system}{embedder}}}")
        loaded = load_policy_text(text, "p.yaml", runtime)
        given = Composition(loaded, runtime, SILENT).gate_input(NO_ACCEPTED_RUNS, under_test={})
        return given.must_match["s"]

    assert "measures" not in fields("", "")
    then, now = (fields(", embedder: encoder", weights) for weights in ("then", "now"))
    assert then["measures"] != now["measures"]


def test_models_are_read_where_their_role_says(tmp_path):
    runtime = Runtime(root=tmp_path / "base", tested=tmp_path / "head", cache=tmp_path / "cache")
    for place in (runtime.root, runtime.tested):
        (place / "m").mkdir(parents=True)
    resources = Resources(runtime, SILENT)
    for role in Role:
        place = runtime.tested if role.is_under_test else runtime.root
        assert resources.model_path(GeneratorPolicy(model="m"), role) == place / "m"


PROGRAM = """
import json, sys
for line in sys.stdin:
    with open(COUNT, "a") as file:
        file.write("x")
    print(json.dumps({"id": json.loads(line)["id"], "answer": "positive"}), flush=True)
"""


@pytest.mark.parametrize("allow", [False, True])
def test_both_sides_of_a_change_keep_one_budget(change, tmp_path, monkeypatch, allow):
    """The limit is that of the side that decides; the other one asks what is left of it."""
    monkeypatch.chdir(change.root)
    count = tmp_path / "count"
    change.write("program.py", PROGRAM.replace("COUNT", repr(str(count))))
    system = "{command: [python3, program.py], budget: {requests: LIMIT}}"
    text = SMALL.replace("SYSTEM", system.replace("LIMIT", "200"))
    change.write("p.yaml", text)
    change.base()
    loose = text.replace("200", "1000000").replace("0.9", "0.8")
    change.write("p.yaml", text.replace("0.9", "0.8") if allow else loose)
    change.history.commit("head")
    judged = change.judged(tmp_path, allow=allow)
    assert judged.other is None
    assert judged.is_refused
    assert any("200 requests" in remark for remark in judged.remarks)
    assert count.stat().st_size == 200


@pytest.mark.walk(2)
@pytest.mark.parametrize("allow", [False, True])
@pytest.mark.parametrize("edit", [
    ("max: 0.9", "max: 0.8", True), ("limit: 6", "limit: 5", True),
    ("limit: 6", "limit: 60", False), ("limit: 6", "limit: 6, repeats: 20", False),
    ("limit: 6", "limit: 7", False),
], ids=lambda edit: edit[1])  # fmt: skip
def test_what_does_not_decide_asks_no_more_than_what_decides(
    change, tmp_path, monkeypatch, edit, allow
):
    old, new, is_judged = edit
    monkeypatch.chdir(change.root)
    count = tmp_path / "count"
    change.write("program.py", PROGRAM.replace("COUNT", repr(str(count))))
    text = SMALL.replace("SYSTEM", "{command: [python3, program.py]}")
    base, head = text, text.replace(old, new)
    if allow:  # then the head decides
        base, head = head, base
    change.write("p.yaml", base)
    change.base()
    change.write("p.yaml", head)
    change.history.commit("head")
    judged = change.judged(tmp_path, allow=allow)
    run = judged.decides.run
    asked = len(run.gate_input.plan.cases) + len(run.added)
    assert asked <= count.stat().st_size <= 2 * asked
    assert (judged.other is not None) is is_judged
    assert judged.is_refused is not is_judged
    told = any("as many again as" in remark for remark in judged.remarks)
    assert told is not is_judged, judged.remarks


SUITE = "suites: [{id: s, task: sentiment, sources: demo-reviews, limit: 6, control: paper}]"
BROKEN = {
    "policy": ("p.yaml", "", ""),
    "baseline": ("baselines/p.json", "", ""),
    "anchor": ("baselines/p.anchor.json", "max: 0.9",
               "max: 0.9, regression: 0.1, budget: 0.2"),
    "sources": ("own/s.jsonl", "demo-reviews", "own/s.jsonl"),
    "table": ("own/s.csv", "demo-reviews", "{path: own/s.csv}"),
    "task": ("own/task.yaml", "sentiment", "own/task.yaml"),
    "terms": ("own/terms.yaml", "limit: 6", "perturbations: [own/terms.yaml]"),
    "control": ("own/control.yaml", "control: paper", "control: own/control.yaml"),
    "attribute": ("own/attribute.yaml", "limit: 6", "attributes: [own/attribute.yaml]"),
    "items": ("own/i.jsonl", SUITE,
              "suites: [{id: s, kind: bbq, settings: [none], items: own/i.jsonl}]"),
    "labels": ("own/l.csv", "answers.jsonl", "answers.jsonl, labels: {file: own/l.csv}"),
    "classifier": ("own/reader/model.onnx", "answers.jsonl",
                   "answers.jsonl, labels: {classifier: {model: ./own/reader}}"),
    "embedder": ("own/e/model.onnx", "answers.jsonl", "answers.jsonl, embedder: {model: ./own/e}"),
    "record": ("own/record.json", "\ngates",
               "\njudge: {id: j, record: own/record.json, generators: [{model: demo-slm}]}\ngates"),
}  # fmt: skip


@cache
def planned():
    """The cases of the policy, whose answers are recorded."""
    text = SMALL.replace("SYSTEM", "{http: {url: 'http://127.0.0.1:1'}}")
    return load_policy_text(text, "p.yaml", Runtime(root=Path.cwd())).plan.cases


@pytest.mark.walk(7)
@pytest.mark.parametrize("place", ["", "shop/"])
@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_wrong_in_the_base_is_named_as_the_user_knows_it(
    change, tmp_path, monkeypatch, kind, place
):
    file, old, new = BROKEN[kind]
    text = SMALL.replace("SYSTEM", "{recorded: answers.jsonl}").replace(', attribution: "off"', "")
    assert old in text
    text = text.replace(old, new, 1)
    rows = [
        {"key": case.key, "response": "positive", "documents": [{"id": case.key, "text": case.key}]}
        for case in planned()
    ]
    change.write(f"{place}answers.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    change.write(f"{place}p.yaml", text)
    change.write(f"{place}{file}", "id: [\n{")
    change.base()
    change.write(f"{place}p.yaml", SMALL.replace("SYSTEM", "{recorded: answers.jsonl}"))
    if kind != "policy":
        (change.root / place / file).unlink()
    change.history.commit("head")
    root = change.root / place
    monkeypatch.chdir(root)
    with pytest.raises(FairGateError) as caught:
        change.judged(tmp_path, place, allow=False)
    said = str(caught.value)
    assert str(tmp_path) not in said
    assert (file if "model" not in file else file.rpartition("/")[0]) in said
    assert f"in the base commit {change.commit[:12]}" in said
