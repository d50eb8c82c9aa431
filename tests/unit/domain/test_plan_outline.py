"""The outline of a plan answers what rules ask of all its units."""

from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.cases import TestPlan
from fairgate.domain.units import Arm, Unit
from fairgate.gate.rules import dimension_levels, rests_on_unproven

UNITS = st.lists(
    st.builds(
        lambda suite, arm, term, category, advisory, unproven: Unit(
            key="k",
            suite=suite,
            asks={},
            cluster="c",
            dimensions={"relation": "r", "category": category, "term": term},
            content="",
            arm=arm,
            advisory=advisory,
            is_unproven=unproven,
        ),
        st.sampled_from("ab"),
        st.sampled_from(Arm),
        st.sampled_from("tuv"),
        st.sampled_from("xy"),
        st.booleans(),
        st.booleans(),
    ),
    max_size=30,
)


class Whole(TestPlan):
    """A plan whose outline leaves nothing out."""

    @property
    def outline(self):
        return self.units


@given(units=UNITS, where=st.sampled_from([{}, {"category": "x"}, {"relation": "r"}]))
def test_rules_find_in_the_outline_what_they_find_in_all_units(units, where):
    units = [unit._replace(key=str(number)) for number, unit in enumerate(units)]
    brief, whole = TestPlan(cases=[], units=units), Whole(cases=[], units=units)
    for suite in "ab":
        assert dimension_levels(brief, suite, where) == dimension_levels(whole, suite, where)
        assert rests_on_unproven(brief, suite, where) == rests_on_unproven(whole, suite, where)
