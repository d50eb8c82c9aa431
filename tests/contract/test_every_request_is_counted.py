"""Whatever leaves this machine for an answer is counted by one meter, and ends with its budget."""

import ast
import http.server
import json
from pathlib import Path

import pytest
from fakes.serving import Answering, served

import fairgate
from fairgate.domain.errors import BudgetError
from fairgate.retrieval.embedding_cache import CachedEmbedder
from fairgate.retrieval.embedding_endpoint import AT_ONCE, EndpointEmbedder
from fairgate.systems.budget import BudgetPart, Meter
from fairgate.systems.revisions import NoStore

PACKAGE = Path(fairgate.__file__).parent
ASKED_BY = {
    "systems/http.py": "test_budget_of_a_run.py",
    "systems/generator.py": "test_budget_of_a_run.py",
    "retrieval/embedding_endpoint.py": "test_every_request_is_counted.py",
}
"""Who asks a service, and which test holds it to a budget."""
NO_QUESTIONS = {"systems/serving.py", "github/api.py"}
"""Asks whether the policy's own server runs; tells a forge of a verdict."""


def test_whoever_opens_a_connection_is_held_to_a_budget():
    opened = {"HttpService": set(), "HttpClient": set()}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in opened:
                opened[name].add(path.relative_to(PACKAGE).as_posix())
    assert opened["HttpService"] == ASKED_BY.keys()
    assert opened["HttpClient"] == NO_QUESTIONS | {"io/http_service.py"}
    for test in ASKED_BY.values():
        assert '"budget"' in Path(__file__).with_name(test).read_text()


class _Vectors(Answering):
    def do_POST(self):  # noqa: N802 its name
        texts = self.body()["input"]
        self.server.seen.append(texts)
        rows = [{"index": n, "embedding": [len(t), t.count("a"), 1]} for n, t in enumerate(texts)]
        self.send(200, {"data": rows, "usage": self.server.usage})


@pytest.fixture
def vectors():
    with served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Vectors)) as server:
        server.seen, server.usage = [], {"prompt_tokens": 7, "total_tokens": 7}
        yield server


def test_requests_for_vectors_end_with_the_budget_and_lose_none(vectors):
    class Store(NoStore):
        def __init__(self):
            self.vectors = {}

        def get_vectors(self, keys):
            return {key: self.vectors[key] for key in keys if key in self.vectors}

        def put_vectors(self, items):
            self.vectors |= items

    store, texts = Store(), [f"text {number}" for number in range(5 * AT_ONCE)]
    whole = EndpointEmbedder(vectors.url, "m", Meter()).embed(texts)
    vectors.seen.clear()

    def embedded():
        meter = Meter(BudgetPart(requests=2))
        embedder = EndpointEmbedder(vectors.url, "m", meter)
        return meter, CachedEmbedder(embedder, store, AT_ONCE).embed

    for left in (3 * AT_ONCE, AT_ONCE):
        meter, embed = embedded()
        with pytest.raises(BudgetError, match="the vectors are stored: run again") as raised:
            embed(texts)
        assert (raised.value.left, meter.requests, meter.tokens) == (left, 2, 14)
    parts = embedded()[1](texts)
    assert len(vectors.seen) == 5
    assert (parts == whole).all()


ITEMS = [
    {
        "id": f"i{number}", "category": "age", "template": f"t{number % 3}",
        "condition": "ambiguous" if number % 2 else "disambiguated",
        "context": f"Context {number}.", "question": "Who?",
        "options": ["The old man", "The young man", "Unknown"],
        "stereotype": 0, "unknown": 2, "correct": 2 if number % 2 else 0,
    }
    for number in range(8)
]  # fmt: skip
STANCES = [{"id": f"d{n}", "text": f"Document {n}.", "stance": ("stereo", "anti")[n % 2]}
           for n in range(4)]  # fmt: skip


def test_what_a_suite_embeds_counts_in_the_budget_and_the_tokens_of_a_run(place, chat, vectors):
    for name, rows in {"items": ITEMS, "stances": STANCES}.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (place.root / f"{name}.jsonl").write_text(lines)
    chat.answer = lambda prompt: "Unknown" if "5" not in prompt else "The old man"
    chat.usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}

    def gate(cache, **budget):
        endpoint = {"base_url": chat.url, "model": "m", "revision": "1"}
        system = {"generator": {"endpoint": endpoint}, "budget": budget}
        (place.root / "app.yaml").write_text(
            f"version: 1\nname: items\nsystem: {json.dumps(system)}\nsuites:\n"
            "  - {id: bbq, kind: bbq, items: items.jsonl, collections: [stances.jsonl],\n"
            "     settings: [none, full], top_k: [2], instructions: [{id: plain, text: A}],\n"
            f"     retrievers: [{{endpoint: '{vectors.url}', model: m}}]}}\n"
            "gates: [{metric: accuracy/ambiguous, where: {setting: none}, min: 0.1}]\nmin_decided: 0\n"
        )
        options = ("--out", "out", "--cache", cache)
        code = place.call("run", "app.yaml", *options)
        requests = len(vectors.seen) + len(chat.seen)
        tokens = 7 * len(vectors.seen) + 4 * len(chat.seen)
        vectors.seen.clear()
        chat.seen.clear()
        return code, requests, tokens

    code, needed, tokens = gate("whole", requests=1000)
    assert code == 0, place.err
    assert gate("enough", tokens=tokens)[:2] == (0, needed), place.err
    assert gate("spent", requests=1)[:2] == (5, 1)
    assert "the budget of 1 requests is spent. Asked in this run: 1 question" in place.err
    assert gate("just", requests=needed)[:2] == (0, needed), place.err
    assert gate("one less", requests=needed - 1)[:2] == (5, needed - 1)
    assert gate("tokens", tokens=8)[:2] == (5, 2)
    vectors.usage = None
    assert gate("untold", tokens=10_000)[0] == 2
    assert "no `total_tokens` under `usage`" in place.err
