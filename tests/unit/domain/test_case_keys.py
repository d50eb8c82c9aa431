"""Which cases a unit asks reads like a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.units import CaseKeys

ASKED = st.dictionaries(st.sampled_from(["source", "follow-up", "first part"]), st.text())


@given(ASKED, ASKED)
def test_it_reads_like_a_dictionary(asked, other):
    keys = CaseKeys(tuple(asked), tuple(asked.values()))
    assert dict(keys) == asked
    assert list(keys.items()) == list(asked.items())
    assert (keys == other) == (asked == other)
    assert len(keys) == len(asked)
    assert ("answer" in keys) is False
    with pytest.raises(KeyError, match="answer"):
        keys["answer"]
