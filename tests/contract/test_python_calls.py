"""A function of the user's: only where it is allowed, in the forms that teams have."""

import pytest

LABEL_OF = (
    "def LABEL(query):\n    return 'positive' if any(n in query for n in '13579') else 'negative'\n"
)
NO_RETRIEVAL = {"  - {metric: asr/retrieval, max: 0.1, regression: {margin: 0.02}}\n": ""}
FORMS = {
    "plain": "def ask(query):\n    return {'answer': LABEL(query), 'documents': [{'id': 'a', 'text': 'x'}]}",
    "text": "def ask(query):\n    return LABEL(query)",
    "named": "def ask(query, *, instruction, prompt):\n    assert instruction in prompt and query in prompt\n    return {'answer': LABEL(query)}",
    "async": "import asyncio\nasync def ask(query):\n    await asyncio.sleep(0)\n    return {'answer': LABEL(query)}",
    "promptfoo": "def ask(prompt, options, context):\n    assert context['vars']['query'] in prompt\n    return {'output': LABEL(prompt)}",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass R:\n    answer: str\ndef ask(query):\n    return R(LABEL(query))",
}  # fmt: skip
FAULTS = {
    "raises": ("def ask(query):\n    raise ValueError('no index')", 4, "raised ValueError: no index"),
    "returns nothing": ("def ask(query):\n    return None", 4, "nothing at `$.answer`, found nothing"),
    "promptfoo's error": ("def ask(prompt, options, context):\n    return {'error': 'quota'}", 4, "found an object with `error`"),
    "is no function": ("ask = 3", 2, "is no function"),
    "is not there": ("other = 3", 4, "cannot be imported (AttributeError"),
    "does not import": ("import no_such_module_at_all", 4, "cannot be imported (ModuleNotFoundError"),
}  # fmt: skip


@pytest.fixture
def module(place, request, monkeypatch):
    """Return a function that writes a module of a name of its own, and says how a policy calls it."""
    name = f"app_{abs(hash(request.node.name))}"

    def write(body):
        (place.root / f"{name}.py").write_text(LABEL_OF + body + "\n")
        monkeypatch.syspath_prepend(str(place.root))
        return {"python": f"{name}:ask"}

    return write


@pytest.mark.parametrize("form", FORMS)
def test_functions_are_called_as_they_can_be(place, module, form):
    assert place.gate(module(FORMS[form]), **NO_RETRIEVAL) == 0, place.err
    row = place.executions()[0]
    assert row["response"] in {"positive", "negative"}
    assert ("documents" in row) == (form == "plain")


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_never_green_and_always_explained(place, module, fault):
    body, code, words = FAULTS[fault]
    assert place.gate(module(body)) == code
    assert words in place.err
    assert "Traceback" not in place.err


def test_nothing_is_imported_because_a_policy_says_so(place, module):
    system = module("raise SystemExit('imported')")
    place.policy(system)
    assert place.call("run", "app.yaml", "--out", "out") == 2
    assert "add --allow-python if you trust it" in place.err
    assert place.call("check", "app.yaml") == 0
    assert place.call("plan", "app.yaml") == 0
