"""With a root, no link leads out of it: not as a name, and not inside a folder that is named."""

import shutil

import pytest

from fairgate.cli import main
from fairgate.domain.errors import DataError
from fairgate.io.named_files import existing, find


@pytest.fixture
def root(tmp_path):
    """Return a root with a folder of data; beside it, a file and a folder that are not its own."""
    (tmp_path / "root" / "data" / "inner").mkdir(parents=True)
    (tmp_path / "root" / "data" / "inner" / "one.jsonl").write_text("{}")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.jsonl").write_text("{}")
    return tmp_path / "root"


def linked(root, link, target):
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(target)


OUT = {
    "a file": {"data/two.jsonl": "../../outside/secret.jsonl"},
    "deep": {"data/inner/two.jsonl": "../../../outside/secret.jsonl"},
    "absolute": {"data/two.jsonl": "/etc/hostname"},
    "a folder": {"data/more": "../../outside"},
    "hidden": {"data/.cache/two.jsonl": "../../../outside/secret.jsonl"},
    "by another link": {"data/two.jsonl": "../hop", "hop": "../outside/secret.jsonl"},
    "behind a linked folder": {"data/more": "../other", "other/two.jsonl": "/etc/hostname"},
    "nowhere": {"data/two.jsonl": "../../outside/not-yet.jsonl"},
    "in a circle": {"data/two.jsonl": "three.jsonl", "data/three.jsonl": "two.jsonl"},
}


@pytest.mark.parametrize("links", OUT)
def test_a_link_out_of_the_root_inside_a_folder_is_refused(root, links):
    for link, target in OUT[links].items():
        linked(root, link, target)
    with pytest.raises(DataError, match=r"holds the link '(data|other)/.*', which leads out of"):
        existing("data", root, confined=True)
    assert existing("data", root) == root / "data"  # the plain command reads what its user names


def test_links_inside_the_root_are_followed(root):
    linked(root, "data/two.jsonl", "inner/one.jsonl")
    linked(root, "data/again", "inner")
    linked(root, "data/inner/up", "..")
    assert existing("data", root, confined=True) == root / "data"


BBQ = """\
version: 1
name: linked
system: {{generator: {{model: {model}}}{embedder}}}
suites:
  - {{id: bias, kind: bbq, items: {items}, limit: 4, settings: [full], collections: [{collections}], top_k: 2}}
gates: [{{metric: accuracy/ambiguous, max: 0.99}}]
"""
PARTS = {
    "items": ("items", "demo-bbq", "demo-bbq.jsonl"),
    "collections": ("collections", "demo-stances", "demo-stances.jsonl"),
    "model": ("models", "demo-slm", "model.onnx"),
    "embedder": ("models", "minilm", "tokenizer.json"),
}


@pytest.mark.parametrize("part", PARTS)
def test_in_every_folder_that_a_policy_names(root, tmp_path, monkeypatch, capsys, part):
    kind, name, file = PARTS[part]
    source = find(kind, name, root)
    shutil.rmtree(root / "data")
    if source.is_dir():
        shutil.copytree(source, root / "data", ignore=shutil.ignore_patterns(file))
        source /= file
    shutil.copy(source, tmp_path / "outside" / file)
    linked(root, f"data/{file}", f"../../outside/{file}")
    chosen = {"items": "demo-bbq", "collections": "demo-stances", "model": "demo-slm", part: "data"}
    chosen["embedder"] = (
        ', embedder: {model: data, query_prompt: "", document_prompt: ""}'
        if part == "embedder"
        else ""
    )
    (root / "policy.yaml").write_text(BBQ.format(**chosen))
    monkeypatch.chdir(root)
    run = ["run", "policy.yaml", "--quiet", "--cache", str(tmp_path / "cache"), "--root", "."]
    assert main(run) in {2, 4}
    assert f"holds the link 'data/{file}', which leads out of" in capsys.readouterr().err


@pytest.mark.parametrize(
    "field",
    [
        "perturbations: [link.yaml]", "perturbations: [../outside/x.yaml]", "control: link.yaml",
        "task: link.yaml",
    ],
)  # fmt: skip
def test_single_files_are_refused_as_before(root, tmp_path, monkeypatch, capsys, field):
    (tmp_path / "outside" / "x.yaml").write_text("id: x\nterms: []\n")
    linked(root, "link.yaml", "../outside/x.yaml")
    given = {"task": "sentiment", "sources": "demo-reviews", "perturbations": "[race]"}
    name, _, value = field.partition(": ")
    suite = "".join(f"    {key}: {text}\n" for key, text in {**given, name: value}.items())
    (root / "policy.yaml").write_text(
        "version: 1\nname: linked\nsystem: {generator: {model: demo-slm}}\nsuites:\n  - id: one\n"
        f"{suite}gates:\n  - {{metric: asr/generation, max: 0.9}}\n"
    )
    monkeypatch.chdir(root)
    assert main(["check", "policy.yaml", "--root", "."]) == 2
    assert "leads out of" in capsys.readouterr().err
