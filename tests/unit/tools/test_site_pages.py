"""The site: every page is in its navigation, and links lead to pages, or to the repository."""

import re
from pathlib import Path

import pytest
from site_pages import linked

ROOT = Path(__file__).parents[3]
REPOSITORY = "https://example.org/fairgate"


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "docs/how-to/reviewing.md#find-what-caused-it", "how-to/reviewing.md#find-what-caused-it"),
        ("index.md", "docs", f"{REPOSITORY}/tree/main/docs"),
        ("how-to/reviewing.md", "own-system.md", "own-system.md"),
        ("tutorial.md", "how-to/reviewing.md", "how-to/reviewing.md"),
        ("how-to/a.md", "../examples/review-service/README.md",
         f"{REPOSITORY}/blob/main/docs/examples/review-service/README.md"),
        ("how-to/a.md", "../../policies/rag-people.yaml",
         f"{REPOSITORY}/blob/main/policies/rag-people.yaml"),
        ("how-to/a.md", "https://onnx.ai", "https://onnx.ai"),
        ("how-to/a.md", "#here", "#here"),
    ],
)  # fmt: skip
def test_a_link_leads_where_it_leads_on_github(page, link, expected):
    assert linked(f"[a]({link})", page, REPOSITORY) == f"[a]({expected})"


def test_every_page_is_in_the_navigation_once():
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    expected = [page for page in pages if not page.startswith("examples/")]
    assert sorted(named) == sorted(["index.md", *expected])
