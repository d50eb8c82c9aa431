"""What lets a change pass stands first, however much that changes nothing stands beside it."""

import re

import pytest
from action import payloads
from action.repositories import POLICY, fair, worse
from action.test_self_approval import ALLOW

from fairgate.domain.outcomes import Outcome, RuleResult
from fairgate.github.loosenings import Loosening, worst_first

VACUOUS = {
    "rules that are only reported": lambda text: text.replace("max: 0.99, advisory: false", "report: true"),
    "another seed": lambda text: text.replace("version: 1", "version: 1\nseed: 7"),
    "less evidence": lambda text: text.replace("version: 1", "version: 1\nmin_decided: 0.1"),
}  # fmt: skip
EACH = "".join(
    f"  - {{metric: asr/generation, where: {{category: gender, term: {term}}}, LIMIT}}\n"
    for term in ("man", "woman", "non-binary")
).replace("LIMIT", "max: 0.99, advisory: false")


def entries(text):
    """The entries of the list of what is less strict."""
    listed = re.search(
        r"Less strict than before \(([\d,]+), the worst first\):\n\n((?:- .*\n)+)", text
    )
    return int(listed[1]), [line[2:] for line in listed[2].splitlines()]


@pytest.mark.parametrize("mode", [{}, ALLOW])
def test_what_lets_a_change_pass_stands_first(job, history, mode):
    base = POLICY + EACH
    history.write("policies/small.yaml", base)
    history.commit()
    text = base.replace("max: 0.2, regression: 0.02", "max: 0.99, regression: 0.99")
    for loosen in VACUOUS.values():
        text = loosen(text)
    history.proposes(worse, {"policies/small.yaml": text})
    assert job.pull(history, **mode) == (0 if mode else 1), job.err + job.summary
    count, listed = entries(job.summary)
    assert count == len(listed) >= 8
    assert "more, in" not in job.summary
    assert listed[0].startswith("parity/answers/baseline (suite=sentiment): regression raised")
    (comment,) = job.hub.ours(7)
    body = comment["body"].replace("\\", "")
    _, (first, more) = entries(body)
    assert first == listed[0].replace("\\", "")
    assert more.startswith(f"and {count - 1} more, in report.md of this run")


NEVER_FAILS = "  - {metric: asr/generation, where: {category: gender}, max: 0.99}\n"
ANOTHER = "{recorded: another.jsonl}"


@pytest.mark.parametrize(("mode", "system"), [({}, "the base's"), (ALLOW, "another")])
def test_a_limit_that_lets_the_head_s_own_system_pass_stands_before_a_rule_that_never_fails(
    job, history, mode, system
):
    """The base's rules would stop the head's answers, and its own system passes by them."""
    base = POLICY + EACH + NEVER_FAILS
    history.write("policies/small.yaml", base)
    history.commit()
    text = base.replace("max: 0.2, regression: 0.02", "max: 0.99, regression: 0.99")
    text = text.replace(NEVER_FAILS, "")
    for loosen in VACUOUS.values():
        text = loosen(text)
    history.branch()
    history.answers(worse)
    if system == "another":
        answers = (history.root / "answers.jsonl").read_text()
        history.git("checkout", "-q", "-f", "main")
        text = text.replace("{recorded: answers.jsonl}", ANOTHER)
        history.proposes(files={"another.jsonl": answers, "policies/small.yaml": text})
    else:
        history.proposes(worse, {"policies/small.yaml": text})
    job.pull(history, **mode)
    _, listed = entries(job.summary)
    assert any("rule removed" in line for line in listed)
    assert any("parity/answers" in line and "raised from" in line for line in listed[:2]), listed


def result(metric="asr/generation", suite="s", outcome=Outcome.PASS, **more):
    return RuleResult(
        metric=metric, suite=suite, where={}, position=0, outcome=outcome, reasons=[], **more
    )


class Judged:
    """What is looked at of a side's result."""

    def __init__(self, *rules, problems=(), incompatible=()):
        self.rules, self.incompatible = rules, incompatible
        self.evidence = self
        self.problems = problems


FAILS = result(outcome=Outcome.FAIL)
OPEN = result(outcome=Outcome.INCONCLUSIVE)
MISSING = result(outcome=Outcome.NOT_EVALUATED)
SMALL = Loosening(
    size=0.01, sentence="counts", slices=frozenset({("asr/generation", "s", frozenset())})
)
OF_SUITE = Loosening(size=0.5, sentence="suite", suite="s")
OF_ALL = Loosening(size=1.0, sentence="all")
OF_EVIDENCE = Loosening(size=0.01, sentence="evidence", of_evidence=True)
OTHER = Loosening(size=2.0, sentence="other", slices=frozenset({("rrs/mean", "s", frozenset())}))
ELSEWHERE = Loosening(size=2.0, sentence="elsewhere", suite="t")
EVERYTHING = [OTHER, ELSEWHERE, OF_ALL, OF_SUITE, SMALL, OF_EVIDENCE]


@pytest.mark.parametrize(
    ("base", "proposed", "expected"),
    [
        *((Judged(rule), Judged(result()), "counts all") for rule in (FAILS, OPEN, MISSING)),
        (Judged(FAILS), Judged(), "counts all"),  # the rule is gone
        (Judged(FAILS), None, "counts all"),  # what the change's own files say is not known
        (Judged(FAILS), Judged(result(outcome=Outcome.FAIL, advisory=True)), "counts all"),
        (Judged(FAILS), Judged(FAILS), "other elsewhere"),  # it stops the build either way
        (Judged(result()), Judged(result()), "other elsewhere"),
        (None, Judged(result()), "other elsewhere"),
        (Judged(result(outcome=Outcome.FAIL, advisory=True)), Judged(), "other elsewhere"),
        (Judged(result(), problems=["few"]), Judged(result()), "evidence elsewhere"),
        (Judged(incompatible=["x"]), Judged(result()), "evidence elsewhere"),
        (Judged(result(), problems=["few"]), Judged(problems=["few"]), "other elsewhere"),
        (Judged(result("rrs/mean", outcome=Outcome.FAIL)), Judged(), "other all"),
        (Judged(result("x", "t", Outcome.FAIL)), Judged(), "elsewhere all"),
    ],
)
def test_what_may_explain_the_outcome_comes_first(base, proposed, expected):
    for loosened in (EVERYTHING, EVERYTHING[::-1]):
        listed = [one.sentence for one in worst_first(loosened, base, proposed)]
        assert sorted(listed) == sorted(one.sentence for one in EVERYTHING)
        first, *_ = expected.split()
        if "counts" in expected or "evidence" in expected:
            assert listed[0] == first
        assert listed[0] in expected.split()


def test_of_a_rule_s_loosenings_the_one_about_the_failed_check_comes_first():
    about = {"slices": SMALL.slices}
    bound = Loosening(size=0.1, sentence="bound", checks=frozenset({"bound"}), **about)
    change = Loosening(size=2.0, sentence="change", checks=frozenset({"regression"}), **about)
    for failed, expected in (("bound", "bound"), ("regression", "change"), ("", "change")):
        base = Judged(result(outcome=Outcome.FAIL, failed=[failed] if failed else []))
        for loosened in ([bound, change], [change, bound]):
            assert worst_first(loosened, base, Judged())[0].sentence == expected


def test_of_two_lines_about_one_slice_the_one_that_fails_comes_first():
    about = {"slices": SMALL.slices}
    idle = Loosening(size=2.0, sentence="never fails", position=1, **about)
    failing = Loosening(size=0.1, sentence="fails", position=0, **about)
    base = Judged(FAILS, result(outcome=Outcome.PASS))
    for loosened in ([idle, failing], [failing, idle]):
        assert worst_first(loosened, base, Judged())[0].sentence == "fails"


def test_the_change_s_own_run_by_the_base_s_rules_is_what_a_rule_stops():
    passes = Judged(result())
    assert worst_first([OTHER, SMALL], passes, Judged())[0].sentence == "other"
    assert worst_first([OTHER, SMALL], passes, Judged(), Judged(FAILS))[0].sentence == "counts"


def written(comment):
    """Return the gate's own text: below the marker, and the line that says commit and run."""
    return comment["body"].split("\n", 2)[2].lstrip()


@pytest.mark.parametrize(("base", "says"), [("main", False), ("release/1.x", True), ("Main", True)])
def test_a_change_of_another_branch_says_so_at_the_top(job, history, base, says):
    commit = history.git("rev-parse", "main")
    history.proposes(fair)
    head = history.merge()
    event = payloads.on_pull_request(7, head, commit)
    event["pull_request"]["base"]["ref"] = base
    inputs = {"FAIRGATE_COMMENT": "always", "GITHUB_WORKFLOW_SHA": commit}
    assert job.run("pull_request", event, **inputs) == 0, job.err
    (comment,) = job.hub.ours(7)
    line = (
        f"**Not against the default branch** `main`: compared with policy and baseline of `{base}`."
    )
    for text in (job.summary, written(comment)):
        assert text.startswith(line) == says, text[:200]
