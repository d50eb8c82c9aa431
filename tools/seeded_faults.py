"""Seed faults into modules, one at a time, and count which of them a choice of tests notices.

A fault is one node of the syntax tree: a comparison, `and`/`or`, arithmetic, a whole number or a
condition turned into its neighbour. Which nodes is a sample by seed, equal for equal files, so that
two choices of tests meet the same faults:

    .venv/bin/python tools/seeded_faults.py fairgate/stats/interval.py --faults 20 \
        --tests "tests/unit/stats" --tests "tests/functional -k interval"

prints for each fault and each choice whether a test failed, and the counts. The file is restored
after each fault. Methods such as `__str__` are left out. A choice of tests that takes twice its usual
time and a minute has noticed the fault, too.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult}


def neighbours(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node becomes as a fault; nothing for nodes that are left alone."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        swapped = _COMPARE[type(node.ops[0])]()
        yield ast.Compare(node.left, [swapped, *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare):
        yield ast.UnaryOp(ast.Not(), node.test)


def faults(path: Path) -> list[tuple[int, str]]:
    """Return every fault of a file: its line and the whole text with it."""
    text = path.read_text("utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw, found = text.encode(), []
    tree = ast.parse(text)
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(part, ast.AST)
        for inner in ast.walk(part)
    }
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    bodies = {
        id(n) for f in inside if not f.name.startswith("__") for b in f.body for n in ast.walk(b)
    }
    for node in ast.walk(tree):
        if id(node) in annotations or id(node) not in bodies:
            continue
        for fault in neighbours(node):
            place = node.test if isinstance(node, ast.If | ast.IfExp) else node
            begin = starts[place.lineno - 1] + place.col_offset
            end = starts[place.end_lineno - 1] + place.end_col_offset
            new = f"({ast.unparse(ast.fix_missing_locations(fault))})".encode()
            found.append((place.lineno, (raw[:begin] + new + raw[end:]).decode()))
    return found


def fails(tests: str, limit: float) -> bool:
    """Return whether a choice of tests fails or takes longer than its limit in seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *shlex.split(tests)],
            check=False,
            capture_output=True,
            timeout=limit,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return True
    if done.returncode in (4, 5):
        raise SystemExit(f"{tests}: no tests\n{done.stdout.decode()[-2000:]}")
    return done.returncode != 0


def main() -> None:
    """Seed, run, restore, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", type=Path, nargs="+")
    parser.add_argument("--tests", action="append", required=True, help="arguments of pytest")
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    limits = []
    for tests in asked.tests:
        began = time.monotonic()
        if fails(tests, 3600):
            raise SystemExit(f"{tests}: fails without a fault")
        limits.append(2 * (time.monotonic() - began) + 60)
    every = [(path, *fault) for path in asked.modules for fault in faults(path)]
    chosen = random.Random(asked.seed).sample(every, min(asked.faults, len(every)))
    noticed = [0] * len(asked.tests)
    for path, line, text in sorted(chosen, key=lambda one: (str(one[0]), one[1])):
        before = path.read_bytes()
        try:
            path.write_text(text, "utf-8")
            seen = [fails(tests, limit) for tests, limit in zip(asked.tests, limits, strict=True)]
        finally:
            path.write_bytes(before)
        noticed = [count + one for count, one in zip(noticed, seen, strict=True)]
        print(f"{path}:{line}", *("noticed" if one else "-" for one in seen), sep="\t", flush=True)
    for tests, count in zip(asked.tests, noticed, strict=True):
        print(f"{count} of {len(chosen)} faults noticed by {tests}")


if __name__ == "__main__":
    main()
