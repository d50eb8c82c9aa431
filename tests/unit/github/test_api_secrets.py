"""The token goes to GitHub, encrypted, and is in no text that comes back."""

import traceback

import pytest
from fakes.raw_server import raw_server

from fairgate.domain.errors import ApiError
from fairgate.github.api import GitHubApi

TOKEN = "ghs_sesame"  # noqa: S105  # of no account
ECHOES = {
    "status line": b"Bearer ghs_sesame\r\n\r\n",
    "message": b'HTTP/1.0 403 no\r\n\r\n{"message": "Bearer ghs_sesame has no right"}',
    "cut message": b'HTTP/1.0 403 no\r\n\r\n{"message": "' + b"x" * 195 + b'ghs_sesame"}',
    "reason": b"HTTP/1.0 404 ghs_sesame\r\n\r\n",
    "length": b"HTTP/1.0 200 OK\r\nContent-Length: ghs_sesame\r\n\r\n[",
    "location": b"HTTP/1.0 302 no\r\nLocation: http://ghs_sesame.invalid/\r\n\r\n",
}


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("ask", ["get", "download"])
def test_a_token_that_comes_back_is_in_no_text(echo, ask):
    with raw_server(ECHOES[echo]) as server:
        api = GitHubApi(server.url, TOKEN, sleep=lambda _: None)
        with pytest.raises(ApiError) as caught:
            api.get("/x") if ask == "get" else api.download("/x", 100)
    assert TOKEN in server.seen[0]
    assert "sesame" not in "".join(traceback.format_exception(caught.value))
    assert "ghs_s" not in str(caught.value)


def test_what_stays_on_this_machine_meets_no_proxy(monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    with raw_server(b"") as proxy, raw_server(b"HTTP/1.0 200 OK\r\n\r\n{}") as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert GitHubApi(server.url, TOKEN).get("/x") == {}
        assert proxy.seen == []


def test_every_attempt_goes_to_the_same_place_through_a_proxy(monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    with raw_server(b"HTTP/1.0 502 no\r\n\r\n") as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        with pytest.raises(ApiError):
            GitHubApi("https://api.invalid", TOKEN, sleep=lambda _: None).get("/x")
    assert [seen.split()[:2] for seen in proxy.seen] == [["CONNECT", "api.invalid:443"]] * 4
    assert "sesame" not in "".join(proxy.seen)
