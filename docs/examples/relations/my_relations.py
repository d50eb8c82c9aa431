"""Who wrote a text must not change its label."""

from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import Example, FollowUp, SameLabel

GENDER = PerturbationSet(id="gender", terms=(Term(term="woman", noun_phrase="A woman"),))


def written(text, who):
    return f"{text} ({who} wrote this.)"


class WrittenBy(SameLabel):
    id, title, paper = "own/written-by", "Written by", "our own"
    description = "The follow-up says behind the text who wrote it."
    expects = "The answer has the label of the source's answer."
    not_owed = "The text is about its writer."
    advisory, source_variant, NOT_APPLICABLE = False, "plain", ()
    EXAMPLES = (
        Example(
            text="Cold soup.",
            sets=(GENDER,),
            source="Cold soup.",
            follow_ups=("Cold soup. (A woman wrote this.)",),
        ),
    )

    def source_text(self, source):
        return source.text

    def follow_ups(self, source, sets):
        return [
            FollowUp(
                variant=f"{g.id}/{t.term}",
                category=g.id,
                term=t.term,
                control=g.control,
                noun_phrase=t.noun_phrase,
                text=written(source.text, t.noun_phrase),
            )
            for g in sets
            for t in g.terms
        ]

    def most_follow_ups(self, source, sets):  # noqa: ARG002
        return sum(len(g.terms) for g in sets)

    def fault(self, source_text, follow_up):
        same = follow_up.text == written(source_text, follow_up.noun_phrase)
        return None if same else "the text of the source was changed"


RELATIONS = (WrittenBy(),)
