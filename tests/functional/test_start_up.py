"""What a command does not need, it does not import: start-up time is a feature."""

import ast
import importlib.util
import json
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import fairgate

PACKAGE = Path(fairgate.__file__).parent
HEAVY = (
    "asyncio", "httpx2", "httpcore2", "anyio", "transformers", "torch", "huggingface_hub",
    "onnxruntime", "scipy", "faiss",
)  # fmt: skip
OF_MODELS = ("tokenizers", "concurrent.futures", "xml.etree.ElementTree")
LISTING = """
import sys
from fairgate.cli import main
code = main({arguments!r})
print("loaded", sorted(set({heavy!r}) & set(sys.modules)))
sys.exit(code)
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


def local_gate(workspace):
    """Write a policy of a local model, over a corpus of three documents."""
    workspace.sources(1)
    (workspace.root / "policy.yaml").write_text(LOCAL)
    rows = [{"id": f"d{n}", "text": f"Text number {n} is bad.", "label": "no"} for n in range(3)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (workspace.root / "corpus.jsonl").write_text(lines)


def loaded(*arguments, heavy=HEAVY):
    ours = [name for name in heavy if name.startswith("fairgate.")]
    assert [name for name in ours if importlib.util.find_spec(name) is None] == []
    code = LISTING.format(arguments=list(arguments), heavy=heavy)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_help_imports_no_network_no_models_and_no_cases():
    heavy = (*HEAVY, "numpy", "pydantic", "fairgate.domain.cases", "fairgate.domain.executions")
    assert loaded("--help", heavy=heavy) == "loaded []"


def test_numpy_is_told_not_to_busy_wait_before_it_is_imported(workspace, monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    code = (
        "import os, sys\n"
        "class Asked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy':\n"
        "            print(os.environ.get('OPENBLAS_THREAD_TIMEOUT'), file=sys.stderr)\n"
        "sys.meta_path.insert(0, Asked())\n"
        "from fairgate.cli import main\n"
        "sys.exit(main(['check', 'policy.yaml']))\n"
    )
    workspace.answers(lambda key: "positive")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "14\n")
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "20")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "20\n")


def test_a_gate_whose_answers_are_known_imports_no_network_and_no_models(workspace):
    workspace.answers(lambda key: "positive")
    assert (
        loaded("run", "policy.yaml", "--out", "out", "--quiet", "--baseline", "none") == "loaded []"
    )
    assert workspace.run("baseline", "accept", "out", "--reason", "r") == 0, workspace.err
    assert loaded("run", "policy.yaml", "--out", "out", "--quiet") == "loaded []"


def test_a_gate_of_a_local_model_whose_answers_are_stored_opens_no_model_and_no_index(workspace):
    local_gate(workspace)
    run = ("run", "policy.yaml", "--out", "out", "--cache", "cache", "--quiet", "--report-only")
    assert workspace.run(*run) == 0, workspace.err
    assert loaded(*run, heavy=(*HEAVY, *OF_MODELS)) == "loaded []"
    junit = loaded(*run, "--format", "html,junit", heavy=(*HEAVY, *OF_MODELS))
    assert junit == "loaded ['xml.etree.ElementTree']"


def test_check_imports_no_random_numbers_no_templates_and_no_store(workspace):
    local_gate(workspace)
    apart = ("numpy.random", "numpy.ma", "jinja2", "sqlite3", "tokenizers", "logging")
    assert loaded("check", "policy.yaml", heavy=(*HEAVY, *apart)) == "loaded []"


def test_check_imports_only_the_relations_that_the_policy_names(workspace):
    workspace.answers(lambda key: "positive")
    apart = (
        "fairgate.relations.set_equivalence", "fairgate.relations.genfair",
        "fairgate.relations.meta_fair", "fairgate.gate.gate",
    )  # fmt: skip
    assert loaded("check", "policy.yaml", heavy=(*HEAVY, *apart)) == f"loaded {[*apart[:1]]}"


def test_neither_check_nor_a_gate_reads_kinds_that_the_policy_does_not_name(workspace):
    workspace.answers(lambda key: "positive")
    apart = (
        "fairgate.systems.recorded", "fairgate.systems.local", "fairgate.systems.http",
        "fairgate.systems.command", "fairgate.systems.python", "fairgate.systems.judges",
        "fairgate.systems.classifiers", "fairgate.suites.question_items.policy",
    )  # fmt: skip
    run = ("run", "policy.yaml", "--out", "out", "--quiet", "--baseline", "none")
    assert loaded("check", "policy.yaml", heavy=apart) == f"loaded {[*apart[:1]]}"
    assert loaded(*run, heavy=apart) == f"loaded {[*apart[:1]]}"


def test_modules_that_import_each_other_do_so_inside_functions_alone():
    """`TopologicalSorter` raises CycleError, with the modules, for a circle."""
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
    }
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}
    imported = {}
    for name, path in files.items():
        found = (
            node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)
        )
        names = {f"{node.module}.{each.name}" for node in found for each in node.names}
        imported[name] = {each if each in files else each.rpartition(".")[0] for each in names}
    # A package that is a docstring alone is no part of a circle.
    alone = {name for name, path in files.items() if len(path.read_text().splitlines()) < 4}
    graph = {name: (found & files.keys()) - alone - {name} for name, found in imported.items()}
    assert len(list(TopologicalSorter(graph).static_order())) > 100
