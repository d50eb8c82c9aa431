"""A published résumé audit, judged again: the figures of its page."""

import re
from pathlib import Path

import pytest
from published import hiring_bias

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
SCORES = DATA / "hiring-bias" / "scores.csv.gz"
NAMES = {
    "first name": "firstName",
    "career gap": "careerGap",
    "company locations": "companyLocations",
    "company names": "companyNames",
    "graduation year": "graduationYear",
    "country of the address": "addressCountry",
    "school": "school",
    "*irrelevant edits*": "*irrelevant*",
}
"""Axes as the page calls them, and as the scores do."""


def cells(lines):
    """The cells of each row of a table of Markdown."""
    return [[each.strip() for each in line.strip("|").split("|")] for line in lines if "|" in line]


@pytest.mark.whole
@pytest.mark.skipif(not SCORES.is_file(), reason=f"{SCORES} is not there")
def test_the_page_of_the_audit_says_what_the_scores_say():
    made = cells(hiring_bias.lines(hiring_bias.read(str(SCORES))))
    page = (ROOT / "docs" / "validation" / "hiring-bias.md").read_text("utf-8")
    shown = [row for row in cells(page.splitlines()) if row[0] in NAMES]
    together = {row[1]: row[2:] for row in made if row[0] == hiring_bias.ALL}
    assert len(shown) == len(NAMES) == len(together) - 1
    for name, size, beside, named in shown:
        own, difference, who = (re.sub(r"\b0\.", ".", each) for each in together[NAMES[name]])
        assert (size, beside.replace("−", "-"), named) == (own, difference, who)
    missed = {
        row[0]: row[3].partition("category 0")[2] or row[3][-4:]
        for row in made
        if "missed" in row[1]
    }
    assert f"less than {missed.pop(hiring_bias.ALL)} would have been" in " ".join(page.split())
    ends = [min(missed.values(), key=float), max(missed.values(), key=float)]
    assert f"less than {' to '.join(ends)}." in page
    of_models = [row[4] for row in made[2:] if row[0] != hiring_bias.ALL and "*" not in row[1]]
    assert len(of_models) == 49
    assert set(of_models) == {"nobody"}, "the page says so of every model"


def rows(change):
    """Scores of two models, thirty jobs and edits, of which one may differ."""
    edits = ["baseline", *(f"placebo_{n}" for n in range(14)), "firstName_a", "firstName_b"]
    return [
        {
            "variant": edit, "model": model, "jd": f"job{job}", "run": str(run), "who": edit,
            "axis": edit.partition("_")[0], "source": f"{model} job{job}",
            "score": str(5 + (7 * job + 5 * n * n + job * n + run) % 3 - change * edit.startswith("firstName")),
        }
        for model in "mn"
        for job in range(30)
        for n, edit in enumerate(edits)
        for run in range(2)
    ]  # fmt: skip


@pytest.mark.parametrize(("change", "named"), [(0, "nobody"), (2, "everybody -2.0")])
def test_an_axis_that_differs_is_named(change, named):
    shown = cells(hiring_bias.lines(rows(change)))
    (first,) = (row for row in shown if row[:2] == [hiring_bias.ALL, "firstName"])
    assert named in first[4]
