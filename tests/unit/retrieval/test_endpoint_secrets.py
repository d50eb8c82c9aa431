"""A key travels encrypted, or not at all."""

import contextlib
import json
import traceback

import pytest
from fakes.raw_server import raw_server

from fairgate.domain.errors import ModelError, UsageError
from fairgate.retrieval.embedding_endpoint import EndpointEmbedder
from fairgate.systems.budget import Meter


def asking(server):
    return EndpointEmbedder(
        server.url, "m", Meter(), api_key_env="KEY", pause=lambda _: None, timeout=600
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/v1", "http://example.org:443/v1", "http://10.0.0.1/v1",
        "http://0.0.0.0/v1", "http://localhost.example.org/v1", "http://[::ffff:8.8.8.8]/v1",
        "http://127.0.0.1.example.org/v1", "http://[bad/v1", "http:///v1",
    ],
)  # fmt: skip
def test_no_key_goes_over_an_open_line_and_no_proxy_makes_it_a_safe_one(url, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match="https://"):
        EndpointEmbedder(url, "m", Meter(), api_key_env="KEY")
    EndpointEmbedder(url, "m", Meter())


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/v1", "http://localhost:8080/v1", "http://LOCALHOST/v1",
        "http://127.0.0.1:9/v1", "http://127.8.8.8/v1", "http://[::1]:9/v1",
    ],
)  # fmt: skip
def test_https_and_this_machine_may_have_it(url):
    assert EndpointEmbedder(url, "m", Meter(), api_key_env="KEY").fingerprint.startswith(
        "endpoint/1:"
    )


SECRET = 'sesame"open\\9'  # noqa: S105  # of no endpoint
ECHOES = {
    "status line": b"Bearer %s is refused\r\n\r\n",
    "status line, behind what a message shows": b"x" * 50 + b"%s\r\n\r\n",
    "header": b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
    "index": b'HTTP/1.0 200 OK\r\n\r\n{"data": [{"index": "%s", "embedding": [1]}]}',
    "value": b'HTTP/1.0 200 OK\r\n\r\n{"data": [{"index": 0, "embedding": ["Bearer %s"]}]}',
    "reason": b"HTTP/1.1 401 %s\r\nContent-Length: 0\r\n\r\n",
    "location": b"HTTP/1.1 302 Found\r\nLocation: https://%s/\r\nContent-Length: 0\r\n\r\n",
}


@pytest.fixture
def raw():
    """Return a function that starts a server which answers with given bytes."""
    with contextlib.ExitStack() as stack:
        yield lambda answer: stack.enter_context(raw_server(answer))


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_comes_back_is_in_no_text(raw, monkeypatch, echo):
    written = json.dumps(SECRET)[1:-1] if echo in {"index", "value"} else SECRET
    server = raw(ECHOES[echo].replace(b"%s", written.encode()))
    monkeypatch.setenv("KEY", SECRET)
    with pytest.raises(ModelError) as caught:
        asking(server).embed(["a"])
    assert any(SECRET in seen for seen in server.seen)
    told = "".join(traceback.format_exception(caught.value))
    for start in (SECRET, SECRET[:8], json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1]):
        assert start not in told


def test_a_key_that_is_none_is_not_shown(raw, monkeypatch):
    server = raw(b"HTTP/1.1 401 no\r\n\r\n")
    monkeypatch.setenv("KEY", "sesame\n")
    with pytest.raises(UsageError, match="holds no usable key") as caught:
        asking(server).embed(["a"])
    assert "sesame" not in str(caught.value)
    assert server.seen == []
