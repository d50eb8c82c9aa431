"""What has a property becomes smaller until nothing can be left out: against brute force."""

from hypothesis import given
from hypothesis import strategies as st

from fairgate.gate.delta_debugging import smaller_and_smaller


@given(size=st.integers(1, 9), data=st.data())
def test_the_last_one_fails_and_no_smaller_step_of_it_does(size, data):
    """Whatever fails, monotone or not."""
    failing = data.draw(st.sets(st.integers(1, 2**size - 1)))
    whole = list(range(size))

    def fails(kept):
        return len(kept) == size or sum(1 << each for each in kept) in failing

    found = [whole, *smaller_and_smaller(whole, fails)]
    assert all(fails(each) for each in found)
    assert [len(each) for each in found] == sorted({len(each) for each in found}, reverse=True)
    last = found[-1]
    for left_out in last if len(last) > 1 else ():
        assert not fails([each for each in last if each != left_out])
