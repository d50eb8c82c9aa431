"""No cache is keyed by `id()`: a later object can have the id of one that is gone."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "fairgate"


def calls_of_id(text):
    """Return where the built-in function is named; a variable or an argument may be called so."""
    if not re.search(r"\bid\b", text):
        return []
    tree = ast.parse(text)
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "id"]
    if "id" in own or not all(isinstance(node.ctx, ast.Load) for node in names):
        return []
    return sorted(node.lineno for node in names)


def test_the_walk_finds_calls_and_functions_that_are_handed_on():
    assert calls_of_id("known[id(x)] = 1\nnames = map(id, parts)\nx.id\ndef f(): return id_") == [
        1,
        2,
    ]


def test_nothing_is_looked_up_by_the_id_of_an_object():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 200
    found = {str(path): calls_of_id(path.read_text("utf-8")) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}
