"""Every workflow that users are shown: what `fairgate init` writes and what the pages say."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from fairgate.features.init import found, workflow_file

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_HEAD = "name: shown\non: pull_request\npermissions: {}\nconcurrency: shown\njobs:\n"
_GATE = """\
gate:
  name: Gate
  runs-on: ubuntu-24.04
  timeout-minutes: 60
  steps: [{run: echo}]
"""
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown_workflows() -> Iterator[tuple[str, str]]:
    """Yield the file name and text of each; what is shown of a job stands in a workflow of ours."""
    service = ROOT / "docs" / "examples" / "review-service"
    for file, root in (("init.yml", ""), ("init-service.yml", "services/shop")):
        seen = found(service if root else Path("nowhere"))
        (text,) = workflow_file(name="rag-fairness", root=root, seen=seen).values()
        yield file, text
    for page in PAGES:
        for number, block in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")), 1):
            if "uses:" in block:
                yield f"{page.stem.lower()}-{number}.yml", _completed(textwrap.dedent(block))
    for path in sorted((ROOT / "docs" / "examples").glob("*/.github/workflows/*.yml")):
        yield f"example-{path.name}", path.read_text(encoding="utf-8")


def _completed(block: str) -> str:
    if re.search(r"^jobs:", block, re.MULTILINE):
        return block
    if re.search(r"^  runs-on:", block, re.MULTILINE):  # a job beside the one with the gate
        return _HEAD + textwrap.indent(f"{_GATE}{block}", "  ")
    steps = block if "steps:" in block else "steps:\n" + textwrap.indent(block, "  ")
    job = f"name: Shown\nruns-on: ubuntu-24.04\ntimeout-minutes: 60\n{steps}"
    return f"{_HEAD}  shown:\n" + textwrap.indent(job, "    ")
