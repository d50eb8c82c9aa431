"""A small lexicon for the documented examples of GenFair's relations."""

from __future__ import annotations

from fairgate.domain.attributes import (
    AttributeUse,
    AttributeValue,
    Dimension,
    Form,
    Manner,
    Wording,
)
from fairgate.domain.cases import Source
from fairgate.relations.frames import realise
from fairgate.relations.relation import Example


def _value(
    name: str, *, opposite: str = "", pronoun: str = "", noun: bool = False, head: str = ""
) -> AttributeValue:
    """Return a value; `head` is the noun of an adjective that has one beside."""
    article = "an" if name[0] in "aeiou" else "a"
    wording = f"works as {article} {name}" if noun else f"is {name}"
    many = f"work as {name}s" if noun else f"are {name}"
    denied = f"is not {article} {name}" if noun else f"is not {name}"
    plain = Wording(
        adjective="" if noun else name,
        noun=name if noun else head,
        noun_plural=f"{name}s" if noun else "",
        clause=wording,
        clause_plural=many,
    )
    return AttributeValue(
        id=name,
        partition=name,
        wordings=((Manner.PLAIN, plain), (Manner.NEGATED, Wording(clause=denied))),
        opposite=opposite,
        pronoun=pronoun,
    )


AGE = Dimension(
    id="age", values=(_value("young", opposite="elderly"), _value("elderly", opposite="young"))
)
GENDER = Dimension(
    id="gender",
    values=(
        _value("female", opposite="male", pronoun="she", head="woman"),
        _value("male", opposite="female", pronoun="he", head="man"),
    ),
)
OCCUPATION = Dimension(
    id="occupation", values=(_value("engineer", noun=True), _value("artist", noun=True))
)
YOUNG = AttributeUse(dimension=AGE, value=AGE.values[0], form=Form.ADJECTIVE)
FEMALE = AttributeUse(dimension=GENDER, value=GENDER.values[0], form=Form.ADJECTIVE)
ENGINEER = AttributeUse(dimension=OCCUPATION, value=OCCUPATION.values[0], form=Form.NOUN)
FRAME = "{A person} is praised for {their} work."


def example(*follow_ups: str, uses: tuple[AttributeUse, ...] = (YOUNG, FEMALE)) -> Example:
    """Return an example about a person with these attributes."""
    stated = source(*uses)
    return Example(
        text=stated.text,
        sets=(),
        source=stated.text,
        follow_ups=follow_ups,
        frame=stated.frame,
        attributes=stated.attributes,
    )


def source(*uses: AttributeUse, frame: str = FRAME) -> Source:
    """Return a source that states attributes in a frame which has room for them."""
    found = realise(frame, uses)
    assert not hasattr(found, "reason"), found  # noqa: S101 (an example of our own)
    return Source(id="s1", text=found.text, frame=frame, attributes=found.attributes)
