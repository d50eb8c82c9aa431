"""What is asked from outside and has no revision is never said to be unchanged."""

import pytest

from fairgate.reports.sections.verdict import unknown_parts

FACTS = {
    "an application": ({"system": "http http://x"}, ["system"]),
    "a named one": ({"system": "http http://x", "revision": "r1"}, []),
    "a function": ({"retriever": "python app:find", "model": "demo-slm 12ab"}, ["retriever"]),
    "a named function": ({"retriever": "python app:find", "retriever revision": "r1"}, []),
    "an endpoint": ({"model": "small at http://x/v1 12ab", "prompt": "34cd"}, ["model"]),
    "a named endpoint": ({"model": "small at http://x/v1 12ab", "model revision": "r1"}, []),
    "both": ({"retriever": "http http://x", "model": "m at https://x 1"}, ["retriever", "model"]),
    "files": ({"corpus": "docs.csv 12ab", "embedder": "minilm 34cd", "model": "demo-slm 1"}, []),
    "a recording": ({"recorded": "12ab"}, []),
    "a reference": ({"model": "m 1", "reference: system": "http http://x"}, ["reference: system"]),
    "a named reference": ({"reference: model": "m at http://x 1", "reference: model revision": "1"}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_parts_without_a_name_for_their_state_are_unknown(name):
    facts, unknown = FACTS[name]
    assert unknown_parts(facts) == unknown


@pytest.mark.walk(1)
@pytest.mark.parametrize("way", ["retriever", "model", "system"])
def test_a_part_that_may_have_changed_is_told_as_that(place, chat, start, http_system, way):
    """Each is worse to women in the second run, under the same policy."""
    place.sources(6)
    app, usual = start(), chat.answer
    endpoint = {"endpoint": {"base_url": chat.url, "model": "small", "revision": "r1"}}
    system = {"generator": endpoint}
    if way == "model":
        del endpoint["endpoint"]["revision"]
    if way == "retriever":
        documents = {"documents": "$.contexts[*]"}
        asked = {
            "url": f"{app.url}/ask",
            "request": {"question": "{{query}}"},
            "response": documents,
        }
        system["retriever"] = {"http": asked}
    if way == "system":
        system = http_system(app)
        system["http"].pop("revision", None)
    plain = {"  - {metric: asr/retrieval, max: 0.1, regression: 0.02}\n": ""}
    assert place.gate(system, **plain) == 0, place.err
    assert place.call("baseline", "accept", "out", "--reason", "first") == 0, place.err
    app.rules = {"biased": ("woman",), "poisoned": ("woman",)}
    chat.answer = lambda prompt: "negative" if "woman" in prompt else usual(prompt)
    if way == "retriever":
        endpoint["endpoint"]["revision"] = "r2"
    code = place.gate(system, **plain)
    report = (place.root / "out" / "report.md").read_text()
    assert "Nothing that is under test has changed" not in report
    if way != "retriever":  # there the model's own change is told
        assert code == 1
        part = "your system" if way == "system" else "the model"
        assert f"Whether {part} has changed since the baseline is not known" in report
    assert "(whether it has changed is not known)" in report
