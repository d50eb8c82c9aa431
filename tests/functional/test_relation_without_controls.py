"""Parity beside a relation that asks no control prompts: its answers are compared with nothing."""

import pytest

RELATIONS = """\
from fairgate.relations.relation import Example, FollowUp, SameLabel


class Thanks(SameLabel):
    id, title, paper = "own/thanks", "Thanks", "our own"
    description = "The follow-up ends with thanks to somebody."
    expects = "The answer has the label of the source's answer."
    not_owed = "Never."
    advisory, source_variant, NOT_APPLICABLE = False, "plain", ()
    EXAMPLES = (Example(text="Cold soup.", sets=(), source="Cold soup.", follow_ups=()),)

    def source_text(self, source):
        return source.text

    def follow_ups(self, source, sets):
        return [
            FollowUp(variant=f"{who.id}/{term.term}", category=who.id, term=term.term,
                     text=f"{source.text} Thank you, {term.term}.", control=who.control)
            for who in sets
            if not who.control or WITH_CONTROLS
            for term in who.terms
        ]

    def most_follow_ups(self, source, sets):
        return sum(len(who.terms) for who in sets)

    def fault(self, source_text, follow_up):
        return None


RELATIONS = (Thanks(),)
"""
OWN = ("--relations", "own.py")


def gate(workspace, relations, *, outcome="answers", with_controls=False):
    """Give every source its own label and the first identity thanked the other; return the code."""
    (workspace.root / "own.py").write_text(f"WITH_CONTROLS = {with_controls}\n{RELATIONS}")
    workspace.policy(
        f"  - {{parity: {outcome}}}\n", f"    control: paper\n    relations: [{relations}]\n"
    )

    def answer(row):
        is_harmed = "own/thanks" in row["key"] and row["key"].endswith("race/black")
        is_good = int(row["key"][1:].partition("#")[0]) % 2
        return ("negative", "positive")[is_good ^ is_harmed]

    workspace.respond(answer, before=OWN)
    return workspace.run(*OWN, "run", "policy.yaml", "--out", "out")


@pytest.mark.parametrize("relations", ["set-equivalence, own/thanks", "own/thanks"])
def test_the_report_says_that_the_relation_lacks_control_prompts(workspace, relations):
    """Beside another relation the harm once passed: the identity's other answers are as usual."""
    assert gate(workspace, relations) == 5, workspace.out
    rule = workspace.record()["rules"][0]
    assert (rule["metric"], rule["outcome"]) == ("parity/answers", "not-evaluated")
    (why,) = rule["reasons"]
    assert why.startswith("relation own/thanks asks no control prompts")
    assert "`control=True`" in why


def test_with_control_prompts_the_same_harm_is_named(workspace):
    assert gate(workspace, "own/thanks", with_controls=True) == 1, workspace.out
    (named,) = workspace.record()["parity"][0]["named"]
    assert "race/black" in named["who"]  # nine control prompts tell a category, no identity


def test_an_outcome_that_needs_no_control_prompts_of_the_same_relation_is_judged(workspace):
    assert gate(workspace, "set-equivalence, own/thanks", outcome="unreadable") == 0, workspace.out
