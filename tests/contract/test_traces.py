"""Traces with OpenInference's attributes, as OTLP-JSON, are recorded answers."""

import json
from itertools import chain

import pytest
from fakes.rag_app import reply
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairgate.domain.errors import DataError
from fairgate.systems.traces import read_traces


def attribute(name, value):
    return {"key": name, "value": typed(value)}


KINDS = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}


def typed(value):
    """Return a value as OTLP writes it, with its type."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [attribute(n, v) for n, v in value.items()]}}
    return {KINDS[type(value)]: str(value) if type(value) is int else value}


def span(trace, name, kind, attributes, *, parent="", start=0, **more):
    kinds = {"openinference.span.kind": kind} if kind else {}
    return {
        "traceId": trace, "spanId": f"{trace}-{name}", "name": name,
        "parentSpanId": f"{trace}-{parent}" if parent else "",
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + start),
        "attributes": [attribute(n, v) for n, v in {**kinds, **attributes}.items()], **more,
    }  # fmt: skip


def exported(*spans):
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [*spans]}]}]}


def flat(documents, prefix="retrieval.documents"):
    """Documents as OpenInference writes them: an attribute for each part."""
    return {
        f"{prefix}.{n}.document.{name}": value
        for n, document in enumerate(documents)
        for name, value in document.items()
    }


def told(documents):
    return [
        {"id": d["id"], "content": d["text"], "metadata": json.dumps({"label": d["label"]})}
        for d in documents
    ]


def trace(number, query, found):
    """One question to a chain with a retriever and a model, inside a span of a web framework."""
    name = f"t{number}"
    return [
        span(name, "retrieve", "RETRIEVER", {"input.value": query, **flat(told(found["contexts"]))}, parent="chain", start=2),
        span(name, "model", "LLM", {"llm.output_messages.0.message.content": found["answer"]}, parent="chain", start=3),
        span(name, "chain", "CHAIN", {"input.value": query, "output.value": found["answer"]}, parent="http", start=1),
        span(name, "http", None, {"http.method": "POST"}),
    ]  # fmt: skip


def joined(traces):
    return json.dumps(exported(*chain.from_iterable(traces)), indent=1)


@pytest.fixture
def recorded(place):
    """Return a function that gates traces of the plan's questions, each written by `writes`."""

    def run(writes=trace, join=joined):
        (place.root / "traces.json").touch()
        place.policy({"recorded": "traces.json", "columns": "otlp"})
        assert place.call("plan", "app.yaml") == 0, place.err
        queries = [json.loads(line)["query"] for line in place.out.splitlines()]
        traces = [writes(n, q, reply(q)) for n, q in enumerate(dict.fromkeys(queries))]
        (place.root / "traces.json").write_text(join(traces))
        return place.call("run", "app.yaml", "--out", "out", "--quiet")

    return run


@pytest.mark.whole
def test_traces_are_judged_like_the_application_itself(place, recorded, ways):
    place.gate(ways["python"](), "own")
    assert recorded() == 0, place.err
    assert place.record()["measurements"] == place.record("own")["measurements"]
    assert place.call("check", "app.yaml") == 0
    assert "answers: 138 of 138 questions answered" in place.out


def split(traces):
    """Return spans of one trace in several exports, as a collector writes them: a line a batch."""
    spans = [*chain.from_iterable(traces)]
    return "\n".join(json.dumps(exported(*spans[n::3])) for n in range(3)) + "\n\n"


def several(traces):
    resources = [exported(*spans)["resourceSpans"][0] for spans in traces]
    return json.dumps({"resourceSpans": resources})


@pytest.mark.walk(2)
@pytest.mark.parametrize("join", [split, several])
def test_every_form_of_file_says_the_same(place, recorded, join):
    recorded()
    one = place.record()["measurements"]
    assert recorded(join=join) == 0, place.err
    assert place.record()["measurements"] == one


def read(tmp_path, *spans):
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(exported(*spans)))
    return read_traces(str(file))


def only(tmp_path, *spans):
    (found,) = read(tmp_path, *spans)
    return found


CHAIN = {"input.value": "q", "output.value": "a"}
ONE = {"id": "1", "content": "one", "score": 0.5}
TWO = {"id": 2, "content": "two"}
READ = [
    {"id": "1", "text": "one", "label": None, "score": 0.5},
    {"id": 2, "text": "two", "label": None, "score": None},
]


@pytest.mark.parametrize(
    "attributes",
    [
        flat([ONE, TWO]),
        {"retrieval.documents": [{"document": ONE}, {"document": TWO}]},
        {"retrieval.documents": [{f"document.{n}": v for n, v in d.items()} for d in (ONE, TWO)]},
        {"retrieval": {"documents": [{"document": ONE}, {"document": TWO}]}},
        dict(reversed(flat([ONE, TWO]).items())),
    ],
)
def test_documents_may_be_single_attributes_or_lists_of_mappings(tmp_path, attributes):
    found = only(tmp_path, span("t", "r", "RETRIEVER", {"input.value": "q", **attributes}))
    assert list(found.documents) == READ


CHAINED = span("t", "c", "CHAIN", CHAIN)
TWELVE = [{"id": str(n), "content": "x"} for n in range(12)]


@pytest.mark.parametrize(
    ("spans", "ids"),
    [
        ([span("t", "r", "RETRIEVER", flat(TWELVE))], [str(n) for n in range(12)]),
        # What the reranker left is what the model saw.
        ([span("t", "rerank", "RERANKER", flat([TWO], "reranker.output_documents"), parent="c", start=2),
          span("t", "find", "RETRIEVER", flat([ONE, TWO]), parent="c", start=1), CHAINED], [2]),
        # Two retrievers show each document once, in the order of time.
        ([span("t", "late", "RETRIEVER", flat([TWO, ONE]), parent="c", start=2),
          span("t", "early", "RETRIEVER", flat([ONE]), parent="c", start=1), CHAINED], ["1", 2]),
        # Without documents the answer counts alone.
        ([CHAINED], None),
        ([CHAINED, span("t", "r", "RETRIEVER", {"input.value": "q"}, parent="c")], None),
    ],
)  # fmt: skip
def test_documents_are_those_that_the_model_saw_in_their_order(tmp_path, spans, ids):
    found = only(tmp_path, *spans)
    assert (found.documents and [document["id"] for document in found.documents]) == ids
    if CHAINED in spans:
        assert (found.question, found.answer) == ("q", "a")


JSON = {"input.mime_type": "application/json", "output.mime_type": "application/json"}


@pytest.mark.parametrize(
    ("given", "question", "answer"),
    [
        ({"input.value": '{"question": "q", "user": "u"}', "output.value": '{"answer": "a", "id": "7"}'}, "q", "a"),
        ({"input.value": '{"anything": "q"}', "output.value": '"a"'}, "q", "a"),
        ({"input.value": '{"x": "q", "y": "r"}', "output.value": '["a"]'}, None, None),
        ({"input.value": '{"question": "q', "output.value": '{"answer": "a'}, None, None),
        ({"input.value": 7, "output.value": ["a"]}, None, None),
        ({"input.value": '{"question": "q"}', "output.value": '{"answer": ""}'}, "q", ""),
        # Text that looks like JSON is text where nothing says otherwise.
        ({"input.value": '{"x"', "output.value": "{}", **dict.fromkeys(JSON)}, '{"x"', "{}"),
    ],
)  # fmt: skip
def test_objects_say_question_and_answer_by_name(tmp_path, given, question, answer):
    named = {name: value for name, value in {**JSON, **given}.items() if value is not None}
    found = only(tmp_path, span("t", "c", "CHAIN", named))
    assert (found.question, found.answer) == (question, answer)


def model(name, content, **more):
    return span("t", name, "LLM", {"llm.output_messages.0.message.content": content}, **more)


RETRIEVER = span("t", "r", "RETRIEVER", {"input.value": "q"}, parent="gone")


@pytest.mark.parametrize(
    ("spans", "answer"),
    [
        ([RETRIEVER, model("m", "a", parent="gone")], "a"),
        ([RETRIEVER], None),
        ([RETRIEVER, model("m", "rewritten", parent="gone"), model("n", "a", parent="gone")], None),
        ([RETRIEVER, model("m", "a", parent="gone", status={"code": 2})], None),
        ([span("t", "c", "CHAIN", {"input.value": "q"}), model("m", "a", parent="c")], "a"),
        ([span("t", "c", "CHAIN", CHAIN, status={"code": "STATUS_CODE_ERROR"})], None),
        ([span("t", "c", "CHAIN", CHAIN, status={"code": 1})], "a"),
        ([span("t", "c", "CHAIN", {"input.value": "q"}), model("m", "b", parent="c"), model("n", "a", parent="c")], None),
    ],
)  # fmt: skip
def test_a_trace_that_was_cut_off_never_answers_with_a_guess(tmp_path, spans, answer):
    found = only(tmp_path, *spans)
    assert (found.question, found.answer) == ("q", answer)


def test_spans_around_each_other_end_and_one_that_was_exported_twice_is_one(tmp_path):
    around = span("t", "a", "CHAIN", CHAIN, parent="b"), span("t", "b", None, {}, parent="a")
    assert only(tmp_path, *around).question == "q"
    assert only(tmp_path, CHAINED, CHAINED).answer == "a"


def test_no_answer_is_no_verdict_and_is_told(place, recorded):
    def cut(number, query, found):
        spans = trace(number, query, found)
        return spans if number else [one for one in spans if one["name"] == "retrieve"]

    assert recorded(cut) == 5
    assert "trace 't0': has no answer, as 1 of 138 traces" in place.err
    assert place.call("check", "app.yaml") == 0
    assert "answers: 137 of 138 questions answered" in place.out
    assert "has no answer" in place.out


def test_two_answers_to_one_question_are_refused(place, recorded):
    def twice(number, query, found):
        other = {**found, "answer": "negative" if found["answer"] == "positive" else "positive"}
        return trace(number, query, found) + ([] if number else trace("again", query, other))

    assert recorded(twice) == 4
    assert "trace 'tagain': question" in place.err
    assert "was answered differently at " in place.err


@pytest.mark.walk(4)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "none of its 0 spans"),
        ("[]", "none of its 0 spans"),
        ('{"resourceMetrics": []}', "no object with `resourceSpans`"),
        ('{"resourceSpans": {}}', "`resourceSpans` is {}; expected a list"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [3]}]}]}', "`spans` is [3]; expected a list"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}', "no `traceId` or `spanId`"),
        ('{"resourceSpans": []}', "none of its 0 spans"),
        (json.dumps(exported(span("t", "http", None, {}))), "none of its 1 spans has the attribute"),
        (json.dumps(exported())[:-5], "traces.json:1:"),
        (json.dumps(exported()) + "\n" + json.dumps(exported())[:-5], "traces.json:2:"),
        (json.dumps(exported(), indent=1)[:-3], ", whole, or an object a line"),
        (json.dumps(exported(span("t", "r", "RETRIEVER", {"retrieval.documents.0.document.score": "x"}))), None),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_explained(tmp_path, content, words):
    file = tmp_path / "traces.json"
    file.write_text(content)
    if words is None:
        assert read_traces(str(file))[0].documents is not None  # read as a reply: refused there
        return
    with pytest.raises(DataError) as caught:
        read_traces(str(file))
    assert words in str(caught.value)


def test_a_document_that_cannot_be_read_is_refused_with_its_trace(place, recorded):
    def strange(number, query, found):
        spans = trace(number, query, found)
        spans[0]["attributes"].append(attribute("retrieval.documents.0.document.score", "high"))
        return spans

    assert recorded(strange) == 4
    assert "trace 't0': `$.score` is" in place.err


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.sampled_from(
    ["", "t", "--5", "٣", "RETRIEVER", "LLM", "RERANKER", "application/json", '{"query": 1}', "[[["],
))  # fmt: skip
NAMES = st.sampled_from([
    "openinference.span.kind", "input.value", "input.mime_type", "output.value", "output",
    "retrieval.documents", "retrieval.documents.0.document.content", "retrieval", "llm.output_messages",
    "reranker.output_documents.1", "a" * 30, ".", "....", "0", "document.metadata", "status", "code",
    "stringValue", "intValue", "arrayValue", "kvlistValue", "values", "key", "value", "attributes",
    "traceId", "spanId", "parentSpanId", "startTimeUnixNano",
])  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(NAMES, inner, max_size=4),
        st.fixed_dictionaries({"key": NAMES, "value": st.dictionaries(NAMES, inner, max_size=1)}),
    ),
    max_leaves=12,
)
KIND = attribute("openinference.span.kind", "CHAIN")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    spans=st.lists(st.dictionaries(NAMES, VALUES, max_size=5), max_size=3),
    more=st.lists(VALUES, max_size=4),
)
def test_whatever_stands_in_a_file_is_read_or_refused(tmp_path, spans, more):
    usual = span("t", "c", "CHAIN", {})
    usual["attributes"] = [KIND, *(one for one in more if isinstance(one, dict))]
    named = [{"traceId": "t", "spanId": str(n), **one} for n, one in enumerate(spans)]
    try:
        found = read(tmp_path, usual, *named)
    except DataError:
        return
    assert all(each.answer is None or isinstance(each.answer, str) for each in found)
    assert all(each.question is None or isinstance(each.question, str) for each in found)


@pytest.mark.parametrize(
    ("written", "value"), [("7", 7), ("-7", -7), ("--7", "--7"), ("", ""), (7, 7)]
)
def test_whole_numbers_are_texts_in_otlp(tmp_path, written, value):
    one = span("t", "r", "RETRIEVER", flat([{"content": "x"}]))
    place = {"key": "retrieval.documents.0.document.id", "value": {"intValue": written}}
    one["attributes"].append(place)
    (document,) = only(tmp_path, one).documents
    assert document["id"] == value
