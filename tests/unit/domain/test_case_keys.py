"""Which cases a unit asks reads like a dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.units import CaseKeys

ASKED = st.dictionaries(st.sampled_from(["source", "follow-up", "first part"]), st.text())


def keys_of(asked):
    return CaseKeys({role: place for place, role in enumerate(asked)}, tuple(asked.values()))


@given(ASKED, ASKED)
def test_it_reads_like_a_dictionary(asked, other):
    keys = keys_of(asked)
    assert dict(keys) == asked
    assert list(keys.items()) == list(asked.items())
    assert list(keys.values()) == list(asked.values())
    assert list(keys) == list(asked)
    assert (keys == other) == (asked == other)
    assert (keys == keys_of(other)) == (asked == other)
    assert len(keys) == len(asked)
    assert all(role in keys for role in asked)
    assert "answer" not in keys
    with pytest.raises(KeyError, match="answer"):
        keys["answer"]
