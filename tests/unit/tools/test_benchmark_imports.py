"""Benchmarks, which no test runs, follow the code: what they import is there."""

import ast
import importlib
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[3] / "tools" / "benchmarks").glob("*.py"))


def is_there(module, name):
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path):
    names = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "fairgate"
        for alias in node.names
    ]
    assert [name for name in names if not is_there(*name)] == []
