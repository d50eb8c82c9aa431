"""What a command does not need, it does not import: start-up time is a feature."""

import ast
import importlib.util
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fairgate

PACKAGE = Path(fairgate.__file__).parent
HEAVY = (
    "asyncio", "httpx2", "httpcore2", "anyio", "transformers", "torch", "huggingface_hub",
    "onnxruntime", "scipy", "faiss",
)  # fmt: skip
LISTING = """
import sys
from fairgate.cli import main
for arguments in {commands!r}:
    code = main(arguments)
    print("loaded", code, *sorted(set({heavy!r}) & set(sys.modules)))
"""
LOCAL = """\
version: 1
name: local
system:
  retriever: {corpus: corpus.jsonl, top_k: 2}
  generator: {model: demo-slm}
suites:
  - {id: sentiment, task: sentiment, sources: sources.jsonl, perturbations: [gender], control: neutral}
gates:
  - {metric: asr/generation, max: 0.9}
"""
CHECK = ["check", "policy.yaml"]
RUN = ["run", "policy.yaml", "--out", "out", "--quiet"]


def loaded(*commands, heavy=()):
    """Return what is imported, of what is heavy, after each of the commands, which share a process."""
    ours = [name for name in heavy if name.startswith("fairgate.")]
    assert [name for name in ours if importlib.util.find_spec(name) is None] == []
    code = LISTING.format(commands=commands, heavy=(*HEAVY, *heavy))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert [code for code, *_ in said] == ["0"] * len(commands), done.stderr
    return [names for _, *names in said]


def test_help_imports_no_network_no_models_and_no_cases():
    heavy = ("numpy", "pydantic", "fairgate.domain.cases", "fairgate.domain.executions")
    assert loaded(["--help"], heavy=heavy) == [[]]


@pytest.mark.walk(1)
@pytest.mark.parametrize(("given", "found"), [(None, "1\n"), ("4", "4\n")])
def test_numpy_is_told_to_use_one_thread_before_it_is_imported(
    workspace, monkeypatch, given, found
):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    code = (
        "import os, sys\n"
        "class Asked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy':\n"
        "            print(os.environ.get('OPENBLAS_NUM_THREADS'), file=sys.stderr)\n"
        "sys.meta_path.insert(0, Asked())\n"
        "from fairgate.cli import main\n"
        "sys.exit(main(['check', 'policy.yaml']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, found)


def test_check_and_gate_of_recorded_answers_import_only_what_the_policy_names(workspace):
    """No network, no models, no other relation; `check` not even the gate.

    A gate's statistics are scipy's special functions.
    """
    assert workspace.gate("positive") == 0
    workspace.accept()
    named = ["fairgate.relations.set_equivalence"]
    apart = (
        *named, "fairgate.relations.genfair", "fairgate.relations.meta_fair", "fairgate.gate.gate",
        "fairgate.systems.classifiers",
    )  # fmt: skip
    found = loaded(CHECK, [*RUN, "--baseline", "none"], RUN, heavy=apart)
    assert found == [named, *[["fairgate.gate.gate", *named, "scipy"]] * 2]


@pytest.mark.whole
def test_check_and_gate_of_a_local_model_whose_answers_are_stored_open_no_model_or_index(workspace):
    """`check` imports no random numbers, no templates and no store either.

    A rate's exact interval is scipy's, which brings `concurrent.futures`.
    """
    workspace.sources(1)
    (workspace.root / "policy.yaml").write_text(LOCAL)
    rows = [{"id": f"d{n}", "text": f"Text number {n} is bad.", "label": "no"} for n in range(3)]
    workspace.write("corpus.jsonl", rows)
    run = [*RUN, "--cache", "cache", "--report-only"]
    assert workspace.run(*run) == 0, workspace.err
    of_models = {"tokenizers", "concurrent.futures", "xml.etree.ElementTree"}
    apart = ("numpy.random", "numpy.ma", "jinja2", "sqlite3", "logging")
    statistics = {"scipy", "concurrent.futures"}
    heavy = (*apart, *of_models)
    check, gate, junit = loaded(CHECK, run, [*run, "--format", "html,junit"], heavy=heavy)
    assert set(check) - of_models == set()
    assert "tokenizers" not in check
    assert set(gate) - set(apart) == statistics
    assert set(junit) - set(apart) == {"xml.etree.ElementTree", *statistics}


def test_modules_that_import_each_other_do_so_inside_functions_alone():
    """`TopologicalSorter` raises CycleError, with the modules, for a circle."""
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
    }
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}
    imported = {}
    for name, path in files.items():
        found = (n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ImportFrom))
        names = {f"{node.module}.{each.name}" for node in found for each in node.names}
        imported[name] = {each if each in files else each.rpartition(".")[0] for each in names}
    # A package that is a docstring alone is no part of a circle.
    alone = {name for name, path in files.items() if len(path.read_text().splitlines()) < 4}
    graph = {name: (found & files.keys()) - alone - {name} for name, found in imported.items()}
    assert len(list(TopologicalSorter(graph).static_order())) > 100
