"""A valid policy keeps its places; an invalid one tells all problems at once, in plain words."""

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError

GOOD = """\
version: 1
name: small
system:
  generator: {model: demo-slm, decoding: greedy}
suites:
  - id: sentiment
    task: sentiment
    sources: demo-reviews
gates:
  - {metric: asr/generation, max: 0.2}
  - metric: asr/retrieval
    regression: 0.02
"""

BAD = """\
version: '1'
nam: x
name: Bad Name
system:
  retriever: {corpus: {pth: x}, top_k: 4.5, embeder: minilm, text: body}
  generator: {model: 3, decoding: greddy, top_k: 5}
suites:
  - id: s
    task: {id: t, instruction: x, labels: [a]}
    sources: [a]
    relations: [set-equivalnce]
    perturbations: []
    bands: [1]
    repeats: 0
  - id: s
    sources: {path: x, text: 3}
    task: sentiment
    bands: [2, 1]
gates:
  - {metric: asr/generation, max: '0.1', regression: -1}
  - {metric: 3, suite: q, advisory: yes, where: {term: 3}}
  - {metric: a}
  - {metric: a, min: 2, max: 1}
  - {metric: b, max: .nan}
  - b
  - {metric: asr/retrieval, max: 15}
min_overlap: 2
min_decided: '::error::x'
"""

GOLDEN = """\
p.yaml:1:1: version: found '1' (text), expected `1`; write it without quotes
p.yaml:2:1: unknown key `nam`; did you mean `name`?
p.yaml:3:1: name: found 'Bad Name' (text), expected a name of at most 64 lower-case letters, digits, `.`, `_` and `-`
p.yaml:5:24: unknown key `pth` in `system.retriever.corpus`; did you mean `path`?
p.yaml:5:33: system.retriever.top_k: found 4.5, expected a whole number between 1 and 100
p.yaml:5:45: unknown key `embeder` in `system.retriever`; did you mean `embedder`?
p.yaml:5:62: unknown key `text` in `system.retriever`; it belongs in `document`, `corpus` or `sources`
p.yaml:6:15: system.generator.model: found 3, expected text; put it in quotes
p.yaml:6:25: system.generator.decoding: found 'greddy' (text), expected `greedy`, `paper-text` or `paper-code`; did you mean `greedy`?
p.yaml:6:43: unknown key `top_k` in `system.generator`; it belongs in `decoding` or `retriever`
p.yaml:9:35: suites[0].task.labels: found a list of 1 entry, expected a list of texts with at least 2 entries
p.yaml:10:5: suites[0].sources: found a list of 1 entry, expected text or a mapping
p.yaml:11:17: no relation is called 'set-equivalnce'; did you mean `set-equivalence`?
p.yaml:12:5: suites[0].perturbations: found an empty list, expected a list of texts with at least 1 entry
p.yaml:13:5: suites[0].bands: found a list of 1 entry, expected a list of 2 values, each a number above 0 and at most 3
p.yaml:14:5: suites[0].repeats: found 0, expected a whole number between 1 and 20
p.yaml:15:5: the id 's' is already used by `suites[0]`
p.yaml:16:24: suites[1].sources.text: found 3, expected text; put it in quotes
p.yaml:18:5: suites[1].bands: needs two rising numbers, such as [0.63, 1.31]
p.yaml:20:30: gates[0].max: found '0.1' (text), expected a number; write it without quotes
p.yaml:20:42: gates[0].regression: found -1, expected a number between 0 and 3
p.yaml:21:6: gates[1].metric: found 3, expected text; put it in quotes
p.yaml:21:17: no suite has the id 'q'; known: `s`
p.yaml:21:27: gates[1].advisory: found 'yes' (text), expected `true` or `false`; write `true`
p.yaml:21:50: gates[1].where.term: found 3, expected text; put it in quotes
p.yaml:22:5: gates[2]: has no limit: give `max`, `min`, `max_abs` or `regression`, or set `report: true` to print the value without judging it
p.yaml:23:5: gates[3]: `min` 2 is above `max` 1
p.yaml:24:17: gates[4].max: found nan, expected a number
p.yaml:25:5: gates[5]: found 'b' (text), expected a mapping
p.yaml:26:29: asr/retrieval never exceeds 1, so a bound of 15 cannot fail; rates are fractions, so 15 % is 0.15
p.yaml:27:1: min_overlap: found 2, expected a number between 0 and 1
p.yaml:28:1: min_decided: found ': :error: :x' (text), expected a number between 0 and 1"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "p.yaml")
    return [str(found) for found in caught.value.problems]


def test_all_problems_at_once_in_plain_words():
    assert "\n".join(problems_of(BAD)) == GOLDEN


@pytest.mark.parametrize(
    ("where", "mark"),
    [
        (("name",), (2, 1)), (("system", "generator", "decoding"), (4, 32)),
        (("suites", 0), (6, 5)), (("suites", 0, "sources"), (8, 5)),
        (("gates", 0, "max"), (10, 30)), (("gates", 1, "metric"), (11, 5)),
        (("gates", 1, "regression"), (12, 5)), (("gates", 0, "where", "term"), (10, 5)),
        (("nowhere", "at", "all"), (1, 1)), ((), (1, 1)),
    ],
)  # fmt: skip
def test_places_are_found_or_their_nearest_ancestor(where, mark):
    assert parse_policy(GOOD, "p.yaml").document.located(where) == mark


def test_an_alias_is_located_where_it_is_used_and_its_content_where_it_is_written():
    alias = "max: 0.2, where: &w {term: a}}\n  - {metric: m, max: 1, where: *w}"
    text = GOOD.replace("max: 0.2}", alias)
    parsed = parse_policy(text, "p.yaml")
    assert parsed.policy.gates[1].where == {"term": "a"}
    assert parsed.document.located(("gates", 1, "where")) == (11, 25)
    assert parsed.document.located(("gates", 1, "where", "term")) == (10, 51)


@pytest.mark.walk(20)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version: 1", "version: 2", "1:1: version: found 2, expected `1`; write 1, this FairGate reads no other"),
        ("version: 1\n", "", "1:1: `version` is missing; add it: `version: 1`"),
        ("name: small", "name: ''", "2:1: name: found '' (text), expected a name of at most 64 lower-case letters, digits, `.`, `_` and `-`; it must not be blank"),
        ("demo-reviews", "' '", "8:5: suites[0].sources: found ' ' (text), expected text; it must not be blank"),
        ("task: sentiment", "task:", "7:5: suites[0].task: found nothing, expected text or a mapping with `id`, `instruction`, `labels`, `equivalent`, `order`, `negated`, `marker` or `reading`"),
        ("task: sentiment", "task: sentiment\n    relations: set-equivalence", "8:5: suites[0].relations: found 'set-equivalence' (text), expected a list of texts with at least 1 entry; write it in brackets: `[…]`"),
        ("task: sentiment", "task: sentiment\n    matching: hungarin", "8:5: suites[0].matching: found 'hungarin' (text), expected `hungarian` or `greedy`; did you mean `hungarian`?"),
        ("task: sentiment", "task: sentiment\n    unstable_margin: .inf", "8:5: suites[0].unstable_margin: found inf, expected a number of at least 0"),
        ("max: 0.2", "max: 15%", "10:30: gates[0].max: found '15%' (text), expected a number; rates are fractions: write 0.15"),
        ("max: 0.2", "max: '12,5 %'", "10:30: gates[0].max: found '12,5 %' (text), expected a number; rates are fractions: write 0.125"),
        ("max: 0.2", "max: 0,10", "10:37: a key must be text; found 10, put it in quotes; if a comma separates decimals, write a point"),
        ("gates:", "gate:", "9:1: unknown key `gate`; did you mean `gates`?"),
        ("max: 0.2", "max: on", "10:30: gates[0].max: found 'on' (text), expected a number"),
        ("max: 0.2", "maximum: 0.2", "10:30: unknown key `maximum` in `gates[0]`; did you mean `max`?"),
        ("max: 0.2", "max: 0.2, suite: sentimant", "10:40: no suite has the id 'sentimant'; did you mean `sentiment`?"),
        ("model: demo-slm", "seed: 1, model: demo-slm", "4:15: unknown key `seed` in `system.generator`; it belongs in `decoding`"),
        ("decoding: greedy", "decoding: {temperature: 9}", "4:43: system.generator.decoding.temperature: found 9, expected a number between 0 and 5"),
        ("decoding: greedy", "decoding: [greedy]", "4:32: system.generator.decoding: found a list of 1 entry, expected `greedy`, `paper-text` or `paper-code` or a mapping"),
        ("  generator: {model: demo-slm, decoding: greedy}", "  {}", "3:1: system: does not say what is under test; add `retriever`, `generator`, `recorded`, `http`, `command` or `python`"),
        ("  generator: {model", "  generater: {model", "3:1: system: does not say what is under test; add `retriever`, `generator`, `recorded`, `http`, `command` or `python`; for `generater`, did you mean `generator`?"),
        ("system:\n  generator: {model: demo-slm, decoding: greedy}", "system: 4", "3:1: system: found 4, expected a mapping"),
        ("decoding: greedy}", "decoding: greedy}\n  recorded: a.jsonl", "3:1: system: has keys of 2 kinds of systems, `generator` and of another `recorded`; keep one kind"),
        ("decoding: greedy", "prompt: 'Say {instruction}'", "4:32: the template lacks `{text}`, the place of the test case"),
        ("decoding: greedy", "system: ' '", "4:32: system.generator.system: found ' ' (text), expected text; it must not be blank"),
        ("decoding: greedy", "template_arguments: {messages: 1}", "4:53: 'messages' is set by FairGate itself; remove it"),
        ("decoding: greedy", "template_arguments: {a b: 1}", "4:53: 'a b' is no name that a template can ask for"),
        ("decoding: greedy", "template_arguments: {a: [1]}", "4:53: system.generator.template_arguments.a: needs true, false, a number or a text"),
        ("task: sentiment", "task: sentiment\n    perturbations: [race, race]", "8:27: 'race' is listed twice; remove one"),
        ("task: sentiment", "task: sentiment\n    perturbations: [race, neutral]", "8:27: 'neutral' is the control set of this suite; remove it from the list"),
        ("task: sentiment", "task: {id: t, instruction: i, labels: [Yes, yes]}", "7:49: the label 'yes' is listed twice (case is ignored)"),
        ("task: sentiment", "task: {id: t, instruction: i, labels: [fine, \uff26ine]}", "7:50: the label '\uff46ine' is listed twice (case is ignored)"),
        ("task: sentiment", 'task: {id: t, instruction: i, labels: [yes, no], marker: "\u00ad"}', "7:54: a marker must have a character that can be seen"),
        ("task: sentiment", "task: {id: t, instruction: i, labels: [yes, no], negated: {yse: no}}", "7:64: 'yse' is not among `labels`; did you mean `yes`?"),
        ("task: sentiment", "task: {id: t, instruction: i, labels: [yes, no], negated: {yes: yes}}", "7:64: 'yes' cannot be its own opposite"),
        ("task: sentiment", "task: {id: t, instruction: i, labels: [good, bad], equivalent: [[goodd, bad]]}", "7:70: 'goodd' is not among `labels`; did you mean `good`?"),
        ("  - metric: asr/retrieval\n    regression: 0.02\n", "  - {max: 0.2, metric: asr/generation}\n", "11:5: repeats `gates[0]` word for word; remove one"),
    ],
)  # fmt: skip
def test_one_slip_gives_one_problem(old, new, message):
    assert old in GOOD
    assert problems_of(GOOD.replace(old, new, 1)) == [f"p.yaml:{message}"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("- a\n", "found a list of 1 entry"),
        ("just text", "found 'just text' (text)"),
    ],
)
def test_a_file_that_is_no_policy_at_all(text, found):
    keys = "`version`, `name`, `system`, `suites`"
    assert problems_of(text) == [f"p.yaml:1:1: {found}, expected a mapping with {keys}"]


def test_empty_suites_and_gates():
    text = "version: 1\nname: n\nsystem: {generator: {}}\nsuites: []\ngates:\n"
    assert problems_of(text) == [
        "p.yaml:4:1: suites: found an empty list, expected a list with at least 1 entry",
        "p.yaml:5:1: gates: found nothing, expected a list",
    ]
