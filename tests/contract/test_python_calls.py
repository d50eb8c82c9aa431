"""A function of the user's: only where it is allowed, in the forms that teams have."""

import pytest
from contract.conftest import NO_RETRIEVAL

LABEL_OF = (
    "def LABEL(query):\n    return 'positive' if any(n in query for n in '13579') else 'negative'\n"
)
DOCUMENT = "class D:\n    def __init__(self, text, metadata=None):\n        self.page_content, self.metadata = text, metadata\n"
FORMS = {
    "plain": "def ask(query):\n    return {'answer': LABEL(query), 'documents': [{'id': 'a', 'text': 'x'}]}",
    "text": "def ask(query):\n    return LABEL(query)",
    "named": "def ask(query, *, instruction, prompt):\n    assert instruction in prompt and query in prompt\n    return {'answer': LABEL(query)}",
    "async": "import asyncio\nasync def ask(query):\n    await asyncio.sleep(0)\n    return {'answer': LABEL(query)}",
    "dataclass with a lock": "import threading\nfrom dataclasses import dataclass, field\n@dataclass\nclass R:\n    answer: str\n    lock: object = field(default_factory=threading.Lock)\ndef ask(query):\n    return R(LABEL(query))",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass R:\n    answer: str\ndef ask(query):\n    return R(LABEL(query))",
}  # fmt: skip
FAULTS = {
    "raises": ("def ask(query):\n    raise ValueError('no index')", 4, "raised ValueError: no index"),
    "returns nothing": ("def ask(query):\n    return None", 4, "nothing at `$.answer`, found nothing"),
    "a score that is no number": (DOCUMENT + "def ask(query):\n    return {'answer': 'x', 'documents': [D('x', {'score': 'high'})]}", 4, "`$.score` is 'high' (text); expected a finite number"),
    "a score beyond numbers": (DOCUMENT + "def ask(query):\n    return {'answer': 'x', 'documents': [{'id': 'a', 'score': 10**5000}]}", 4, "`$.score` is a whole number of 16,610 bits; expected a finite number"),
    "an id beyond numbers": ("def ask(query):\n    return {'answer': 'x', 'documents': [{'id': 10**5000}]}", 4, "`$.id` is a whole number of 16,610 bits; expected text"),
    "a document without anything": (DOCUMENT + "def ask(query):\n    return {'answer': 'x', 'documents': [D(None)]}", 4, "a document has neither `$.text` nor `$.id`"),
    "contains itself": ("def ask(query):\n    found = {}\n    found['answer'] = found\n    return found", 4, "what it returned ('dict') cannot be read: RecursionError"),
    "contains itself in a list": ("def ask(query):\n    found = []\n    found.append(found)\n    return found", 4, "what it returned ('list') cannot be read: RecursionError"),
    "a document that cannot be read": ("class D:\n    @property\n    def page_content(self):\n        raise RuntimeError('connection closed')\ndef ask(query):\n    return [D()]", 4, "what it returned ('list') cannot be read: RuntimeError: connection closed"),
    "an error without words": ("class E(Exception):\n    def __str__(self):\n        raise ValueError\ndef ask(query):\n    raise E", 4, "raised E: without a text"),
    "half a character": ("def ask(query):\n    return {'answer': [chr(0xd800)]}", 4, "`$.answer` is a list of 1 entry"),
    "too much": ("def ask(query):\n    return 'x' * 50_000_000", 4, "`$.answer` has 50,000,000 characters, at most 1,000,000"),
    "too many documents": ("def ask(query):\n    return {'answer': 'x', 'documents': ['x'] * 2000}", 4, "2,000 documents; expected at most 1,000"),
    "ends": ("def ask(query):\n    raise SystemExit(0)", 4, "raised SystemExit"),
    "is no function": ("ask = 3", 2, "is no function"),
    "is not there": ("other = 3", 4, "cannot be imported (AttributeError"),
    "ends on import": ("import sys\nsys.exit(0)", 4, "cannot be imported (SystemExit"),
    "does not import": ("import no_such_module_at_all", 4, "cannot be imported (ModuleNotFoundError"),
}  # fmt: skip


@pytest.fixture
def module(place, request, monkeypatch):
    name = f"app_{abs(hash(request.node.name))}"

    def write(body):
        (place.root / f"{name}.py").write_text(LABEL_OF + body + "\n")
        monkeypatch.syspath_prepend(str(place.root))
        return {"python": f"{name}:ask"}

    return write


@pytest.mark.walk(3)
@pytest.mark.parametrize("form", FORMS)
def test_functions_are_called_as_they_can_be(place, module, form):
    assert place.gate(module(FORMS[form]), **NO_RETRIEVAL) == 0, place.err
    row = place.executions()[0]
    assert row["response"] in {"positive", "negative"}
    assert ("documents" in row) == (form == "plain")


@pytest.mark.walk(5)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_never_green_and_always_explained(place, module, fault):
    body, code, words = FAULTS[fault]
    assert place.gate(module(body)) == code
    assert words in place.err
    assert "Traceback" not in place.err
    assert "internal error" not in place.err


@pytest.mark.walk(1)
@pytest.mark.parametrize("score", ["None", "0.5", "__import__('numpy').float32(0.5)"])
def test_a_framework_s_document_needs_neither_name_nor_score(place, module, score):
    body = f"{DOCUMENT}def ask(query):\n    return {{'answer': LABEL(query), 'documents': [D('x', {{'score': {score}}})]}}"
    assert place.gate(module(body), **NO_RETRIEVAL) == 0, place.err
    (document,) = place.executions()[0]["documents"]
    assert document["text"] == "x"
    assert document.get("score") == (None if score == "None" else 0.5)


def test_nothing_is_imported_because_a_policy_says_so(place, module):
    system = module("raise SystemExit('imported')")
    place.policy(system)
    assert place.call("run", "app.yaml", "--out", "out") == 2
    assert "add --allow-python if you trust it" in place.err
    assert place.call("check", "app.yaml") == 0
    assert place.call("plan", "app.yaml") == 0
