"""Everything that is meant to be posted goes through one step, in which nothing stays that acts."""

import ast
import json
import re
from pathlib import Path

import pytest
from golden import hostile_texts

import fairgate
from fairgate.cli import main
from fairgate.github.comments import COMMENT, Marker, StickyComment
from fairgate.io.durable import write_parts

LINK = "https://ci.example.org/runs/1"
TEXTS = (
    *hostile_texts.HOSTILE, "a **FAIL** for <details><summary>`x`</summary>\n\ntext\n\n</details>",
    "[run](https://evil.invalid) ![x](//evil)", f"[run]({LINK}/../evil)", f"[run]({LINK})",
)  # fmt: skip
PAGE = "\n\n***\n\n".join(TEXTS).encode("utf-8", "replace").decode()
LIVE = re.compile(
    r"@(?=\w)|<(?!/?(?:details|summary|sub|code)>|w?br>|\u200b)|\](?=[(\[:])|!(?=\[)|(?<!&)#(?=\d)|www\.|:/"
)
MARKER = Marker(key="k", head="a" * 40, run=(1, 1))


class Api:
    """Takes what GitHub's client sends."""

    def __init__(self):
        self.bodies = []

    def pages(self, path):
        return []

    def query(self, *_):
        return {}

    def get(self, *_):
        return {"id": 1}

    def send(self, _method, _path, body=None):
        self.bodies.append(body["body"])
        self.pages = lambda path: [
            {"id": 7, "body": body["body"], "user": {"login": "github-actions[bot]"}}
        ]
        return {"id": 7}


def on_github(text, link, folder, capsys):
    api = Api()
    sticky = StickyComment(api, repository="o/r", number=7, graphql="")
    sticky.put(MARKER, text, create=True, link=link)
    return api.bodies[0].partition("\n")[2]


def printed(text, link, folder, capsys):
    comment = {"version": 1, "create": True, "text": text or "x"}
    write_parts(folder / "run", {COMMENT: [json.dumps(comment)]})
    assert main(["comment", str(folder / "run")]) == 0
    return capsys.readouterr().out


WAYS = (on_github, printed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("link", ["", LINK])
def test_nothing_acts_in_what_is_posted(way, link, tmp_path, capsys):
    link = "" if way is printed else link
    posted = way(PAGE, link, tmp_path, capsys)
    assert "octocat" in posted
    own = f"]({link})"
    assert (own in posted) == bool(link)
    assert LIVE.findall(posted.replace(own, "") if link else posted) == []


def test_no_text_is_posted_by_another_way():
    """Who sends a body sends it from a `put`, and that disarms it."""
    root = Path(fairgate.__file__).parent
    senders = {}
    for file in root.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                bodies = [
                    node for node in ast.walk(function) if isinstance(node, ast.Dict)
                    if any(isinstance(key, ast.Constant) and key.value == "body" for key in node.keys)
                ]  # fmt: skip
                if bodies:
                    senders[f"{file.relative_to(root)}:{function.name}"] = ast.unparse(function)
    assert sorted(senders) == ["github/comments.py:put"]
    assert all("disarmed_markdown(text, link)" in text for text in senders.values())
