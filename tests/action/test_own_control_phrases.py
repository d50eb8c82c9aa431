"""Phrases of one's own that are called neutral: none names an identity, and a reviewer reads all."""

import re

import pytest
from action.repositories import POLICY, fair
from action.test_introduced_gates import policy as served

OWN = POLICY.replace("control: paper", "control: own.yaml").replace("name: small", "name: own")
ASKED = {"FAIRGATE_POLICY": "policies/own.yaml", "FAIRGATE_COMMENT": "always"}
NAMES_NOBODY = [f"A person with {n} pens" for n in range(10)]
HOSTILE = "A reader, www.octocat.invalid, with -- 1. a lamp"


def control(phrases):
    rows = "".join(
        f'  - {{term: "t{n}", noun_phrase: "{phrase}", note: n}}\n'
        for n, phrase in enumerate(phrases)
    )
    return f"id: own\ncontrol: true\nterms:\n{rows}"


@pytest.mark.parametrize("kind", ["recorded", "command"])
def test_an_introduction_lists_each_of_them(history, job, kind):
    history.branch()
    history.write("own.yaml", control([*NAMES_NOBODY, HOSTILE]))
    text = OWN if kind == "recorded" else served("command").replace("name: served", "name: own")
    history.write("policies/own.yaml", text.replace("control: paper", "control: own.yaml"))
    history.commit()
    job.pull(history, **ASKED)
    (comment,) = job.hub.ours(7)
    for told in (comment["body"], job.summary):
        plain = told.replace("`", "").replace("\u200b", "")
        assert all(f"'{phrase}'" in plain for phrase in NAMES_NOBODY)
        assert "octocat" in told
        outside_of_code = re.sub("`[^`]*`", "", told)
        assert not re.search("octocat", outside_of_code)
    assert "calls phrases of its own neutral" in comment["body"]


def test_a_change_that_brings_some_lists_the_new_ones(history, job):
    history.write("own.yaml", control(NAMES_NOBODY))
    history.write("policies/own.yaml", OWN)
    history.commit()
    history.proposes(files={"own.yaml": control([*NAMES_NOBODY, "A person with a lamp"])})
    job.pull(history, **ASKED)
    said = job.summary.replace("`", "")
    assert "calls phrases of its own neutral, which must name nobody (1 to 1 of 1)" in said
    assert "'A person with a lamp'" in said


def test_shipped_ones_need_no_reader(history, job):
    history.proposes(fair, {"policies/own.yaml": OWN.replace("own.yaml", "neutral")})
    job.pull(history, **ASKED)
    assert "of its own neutral" not in job.summary
