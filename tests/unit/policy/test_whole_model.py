"""What is wrong with a policy is told with all kinds of systems and suites in mind."""

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError

POLICY = """\
version: 1
name: p
system: {recorded: a.jsonl}
suites: [{id: s, task: sentiment, sources: demo-reviews}]
gates: [{metric: asr/generation, max: 0.5}]
"""


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("recorded: a.jsonl", "recorded: a.jsonl, http: {url: 'http://a.b'}", "has keys of 2 kinds of systems"),
        ("recorded: a.jsonl", "recorder: a.jsonl", "for `recorder`, did you mean `recorded`?"),
        ("recorded: a.jsonl", "recorded: a.jsonl, document_characters: 5", "it belongs in `generator`"),
        ("system: {recorded: a.jsonl}", "system: [1]", "expected a mapping"),
        ("task: sentiment,", "kind: bqb,", "found 'bqb' (text), expected `metamorphic` or `bbq`"),
        ("task: sentiment,", "kind: [bbq],", "found a list of 1 entry, expected `metamorphic` or `bbq`"),
        ("{id: s, task: sentiment, sources: demo-reviews}", "7", "suites[0]: found 7"),
        ("[{id: s, task: sentiment, sources: demo-reviews}]", "{}", "suites: found an empty mapping"),
        ("task: sentiment,", "task: sentiment, collections: [a],", "it is one of kind `bbq`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_all_parts_in_mind(was, now, said):
    with pytest.raises(PolicyError) as found:
        parse_policy(POLICY.replace(was, now), "p")
    assert said in str(found.value)
