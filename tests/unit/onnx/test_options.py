"""What options share is read once, and each is read whole, in a context of its own choice."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fairgate.onnx.options import OptionTokens

TOKENS = st.lists(st.integers(0, 3), max_size=5)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.lists(TOKENS, max_size=7))
def test_every_option_is_read_whole_and_no_context_twice(prompt, tails):
    whole = [[*prompt, *tail] for tail in tails]
    options = OptionTokens.of(prompt, *whole)
    for tokens, own, place in zip(whole, options.tokens, options.context_indices, strict=True):
        if not own:  # it adds nothing to the prompt
            continue
        context = options.contexts[place]
        start = context.start
        assert 1 <= start <= len(prompt)
        assert tuple(tokens[start:]) == own
        # All but its last token is read, and each of its tokens is looked up where it stands.
        assert context.tokens[: len(tokens) - 1] == tokens[:-1]
        assert len(context.following) == len(context.tokens) - start + 1
        assert all(token in context.following[n] for n, token in enumerate(own))
    for one, other in itertools.permutations(options.contexts, 2):
        assert one.tokens != other.tokens[: len(one.tokens)]


def test_labels_of_one_token_cost_the_prompt_alone():
    options = OptionTokens.of([1, 2], [1, 2, 5], [1, 2, 6], [1, 2, 7])
    assert [context.tokens for context in options.contexts] == [[1, 2]]
    assert options.summed([[{5: -0.5, 6: -1.0, 7: -2.0}]]) == [-0.5, -1.0, -2.0]


def test_the_order_of_options_changes_nothing_but_their_order():
    whole = [[1, 5], [1, 8, 5], [1, 8, 6], [1, 8, 9, 4], [1, 6]]
    first = OptionTokens.of([1], *whole)
    for order in itertools.permutations(range(len(whole))):
        again = OptionTokens.of([1], *[whole[place] for place in order])
        assert again.contexts == first.contexts
        assert again.context_indices == tuple(first.context_indices[place] for place in order)
