"""The one HTTP client: what it bounds, what it never does, and what it keeps to itself."""

import asyncio
import gc
import http.server
import subprocess
import sys
import threading
import time
import warnings
from unittest import mock

import httpx2
import pytest
from fakes.raw_server import raw_server
from fakes.serving import Answering, served

from fairgate.io import http_client
from fairgate.io.event_loop import submitted
from fairgate.io.http_client import HttpClient, Pace
from fairgate.io.http_messages import HttpError, Limits, Request

SECRET = "sesame-open"  # noqa: S105  # of nothing


def at_once(_server):
    pass


def never(server):
    """Answer when the test is over, too late for it."""
    server.is_over.wait()


class Handler(Answering):
    def do_GET(self):  # noqa: N802 its name
        server = self.server
        with server.lock:
            server.seen.append(self.path)
            server.connections.add(self.client_address)
            server.now += 1
            server.most = max(server.most, server.now)
        status, headers, body, wait = server.answers.get(self.path, (200, {}, b"ok", at_once))
        if callable(body):
            body = body()
        wait(server)
        with server.lock:
            server.now -= 1
        self.send(status, body, headers)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64


@pytest.fixture
def server():
    with served(Server(("127.0.0.1", 0), Handler)) as found:
        found.lock = threading.Lock()
        found.answers, found.seen, found.connections = {}, [], set()
        found.now = found.most = 0
        found.is_over = threading.Event()
        yield found
        found.is_over.set()


def get(url, **fields):
    return Request(method="GET", url=url, **fields)


def asked(url, limits=None, waits=None, **fields):
    """Return what a client of its own is answered, or the error; `waits` takes its pauses."""
    sleep = (waits if waits is not None else []).append
    with HttpClient(limits or Limits(), sleep=sleep) as client:
        try:
            return client.ask(get(url, **fields))
        except HttpError as error:
            return error


def test_connections_are_kept_and_so_many_are_asked_at_once(server):
    four = threading.Barrier(4)  # nobody gets an answer before so many are asked
    bodies = {n: str(n).encode() for n in range(40)}
    server.answers = {f"/{n}": (200, {}, bodies[n], lambda _: four.wait()) for n in bodies}
    with HttpClient(Limits(concurrency=4)) as client:
        answers = dict(client.ask_all(get(f"{server.url}/{n}") for n in range(40)))
    assert {n: answer.body for n, answer in answers.items()} == bodies
    assert server.most == 4
    assert len(server.connections) == 4


def test_requests_are_taken_as_there_is_room(server):
    left = iter(range(50))
    with HttpClient(Limits(concurrency=3)) as client:
        next(client.ask_all(get(f"{server.url}/{n}") for n in left))
    assert len(list(left)) >= 46


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_headers_are_read_in_lower_case(server, status):
    headers = {"Location": f"{server.url}/other", "X-Odd": "caf\xe9"}
    server.answers = {"/": (status, headers, b"", at_once)}
    found = asked(f"{server.url}/")
    assert (found.status, found.headers["x-odd"]) == (status, "caf\xe9")
    assert server.seen == ["/"]


def test_a_busy_server_is_asked_again_after_growing_pauses_or_when_it_says(server):
    said = (429, {"Retry-After": "7"}, b"", at_once)
    server.answers = {"/": (503, {}, b"", at_once), "/said": said}
    waits = []
    for jitter, attempts in ((0.0, 5), (1.0, 3)):
        limits = Limits(attempts=attempts)
        with HttpClient(limits, sleep=waits.append, jitter=lambda jitter=jitter: jitter) as client:
            assert client.ask(get(f"{server.url}/")).status == 503
            assert client.ask(get(f"{server.url}/said")).status == 429
    assert waits == [1, 2, 4, 8, *[7.0] * 4, 0.75, 1.5, 7.0, 7.0]
    assert len(server.seen) == 16


@pytest.mark.parametrize("attempts", range(2, 11))
def test_a_rate_limit_that_gives_no_time_is_waited_for_a_whole_window(server, attempts):
    """Whatever the policy's attempts are, the last one comes after a minute without a request."""
    server.answers = {"/": (429, {}, b"", at_once)}
    for jitter in (0.0, 1.0):
        waits = []
        limits = Limits(attempts=attempts)
        with HttpClient(limits, sleep=waits.append, jitter=lambda jitter=jitter: jitter) as client:
            assert client.ask(get(f"{server.url}/")).status == 429
        assert len(waits) == attempts - 1
        assert waits[-1] >= 60.0


class Limited(Handler):
    """Allows so many requests in each window, as most hosted models do."""

    def do_GET(self):  # noqa: N802 its name
        server = self.server
        with server.lock:
            now = time.monotonic()  # it is asked to the end at any moment
            server.allowed = [then for then in server.allowed if now - then < server.window]
            is_allowed = len(server.allowed) < server.most
            server.allowed += [now] if is_allowed else []
            server.asked += 1
        self.send(200 if is_allowed else 429, b"")


@pytest.mark.parametrize(("most", "concurrency"), [(5, 1), (5, 4), (9, 16)])
def test_a_server_with_windows_is_asked_to_the_end(monkeypatch, most, concurrency):
    """And at a rate of its own: few requests are refused."""
    window = 0.3
    monkeypatch.setattr("fairgate.io.http_messages.WINDOW", window)
    with served(Server(("127.0.0.1", 0), Limited)) as server:
        server.lock, server.allowed, server.asked = threading.Lock(), [], 0
        server.most, server.window = most, window
        with HttpClient(Limits(concurrency=concurrency)) as client:
            found = [answer for _, answer in client.ask_all([get(server.url)] * 30)]
    assert [answer.status for answer in found] == [200] * 30
    assert server.asked < 60


def test_a_rate_is_lowered_once_for_each_pause_and_rises_again():
    pace = Pace()
    assert [pace.turn(now / 10) for now in range(3)] == [0.0, 0.0, 0.0]
    for now in (0.3, 0.31, 0.32):  # three that were under way are refused
        pace.refused(now, 4.0)
    waits = [pace.turn(0.33) for _ in range(3)]
    assert waits == pytest.approx([3.97, 4.17, 4.37])
    for _ in range(100):
        pace.answered()
    assert pace.turn(9.0) == 0.0
    assert pace.turn(9.0) == pytest.approx(0.1)
    for _ in range(1000):
        pace.answered()
    assert [pace.turn(50.0) for _ in range(2)] == pytest.approx([0.0, 0.0], abs=0.001)


def test_nothing_is_kept_that_a_server_sets(server):
    with raw_server(b"HTTP/1.0 200 OK\r\nSet-Cookie: a=b\r\n\r\n") as raw:
        with HttpClient(Limits()) as client:
            client.ask(get(raw.url))
            client.ask(get(raw.url))
        assert not any("cookie" in head.lower() for head in raw.seen)


@pytest.mark.parametrize(
    ("limits", "body", "wait", "text", "attempts"),
    [
        ({"most_bytes": 9}, b"0123456789", at_once, "larger than 9 bytes", 1),
        ({"seconds": 0.1, "attempts": 2}, b"ok", never, "no complete answer within 0.1 s", 2),
        ({"idle_seconds": 0.1, "attempts": 1}, b"ok", never, "ReadTimeout", 1),
    ],
)
def test_size_and_time_are_bounded(server, limits, body, wait, text, attempts):
    server.answers = {"/": (200, {}, body, wait)}
    error = asked(f"{server.url}/", Limits(**limits))
    assert text in str(error)
    assert error.attempts == attempts
    assert len(server.seen) <= attempts


def test_an_answer_that_drips_ends():
    """Every byte comes in time, the last one never."""
    drip = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x"
    with raw_server(drip, keep_open=3600.0) as raw:
        assert "no complete answer" in str(asked(raw.url, Limits(seconds=0.3, attempts=1)))


def test_what_is_wrong_with_a_certificate_is_said(server):
    found = asked(server.url.replace("http:", "https:"), Limits(attempts=1))
    assert "SSL" in str(found)


@pytest.mark.parametrize(
    ("raw", "text", "times"),
    [
        (b"", "disconnected", 4),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "received", 4),
        (b"nonsense\r\n\r\n", "illegal", 4),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nab", "compressed", 1),
    ],
)
def test_broken_answers_are_no_answers_and_what_may_have_happened_is_asked_once(raw, text, times):
    with raw_server(raw) as server:
        assert text in str(asked(server.url))
        assert len(server.seen) == times
        assert isinstance(asked(server.url, is_repeatable=False), HttpError)
        assert len(server.seen) == times + 1


@pytest.mark.parametrize(
    "url", ["ftp://x/", "http://[bad/", "nothing", "http:///v1", "http://127.0.0.1:99999/"]
)
def test_an_address_that_is_none_is_asked_once_or_never(url):
    waits = []
    assert isinstance(asked(url, waits=waits), HttpError)
    assert waits == []


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NAMED = {"user-agent": "mine", "Content-Length": "1", "Host": "other.example"}


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"method": "POST", "path": "/ask?a=b c#d", "headers": {"accept": "x/y"}, "body": b"{}"},
         ["POST /ask?a=b%20c HTTP/1.1", "accept: x/y", "content-length: 2"]),
        ({"headers": {"X-Key": "k"}}, ["GET / HTTP/1.1", "x-key: k", "accept-encoding: identity"]),
        ({"method": "POST", "path": "/\u00fc?q=\u00fc"}, ["POST /%C3%BC?q=%C3%BC HTTP/1.1"]),
        ({"before": "us%40er:p%3Aw@"}, ["authorization: Basic dXNAZXI6cDp3"]),
        ({"method": "PUT", "headers": NAMED, "body": b"longer"},
         ["user-agent: mine", "content-length: 6", "host: other.example"]),
    ],
)  # fmt: skip
def test_what_is_sent(fields, sent):
    with raw_server(ANSWER) as server, HttpClient(Limits()) as client:
        address = server.url.removeprefix("http://")
        url = f"http://{fields.pop('before', '')}{address}{fields.pop('path', '')}"
        for _ in range(2):
            assert client.ask(Request(**{"method": "GET", "url": url} | fields)).status == 200
    for head in server.seen:
        first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        pairs = (line.split(": ") for line in lines)
        assert set(sent) <= {first, *(f"{name.lower()}: {value}" for name, value in pairs)}
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("url", "proxy", "read"),
    [
        ("{}", "", []),
        ("HTTP:{}", "", []),
        ("https:{}", "", [False]),  # to this machine; the environment's certificates do not count
        ("https://models.invalid:1", "", [True]),
        ("https://models.invalid:1", "http://127.0.0.1:9", [True]),
        ("http://models.invalid:1", "http://127.0.0.1:9", [True]),  # the proxy may lead anywhere
    ],
)
def test_certificates_are_read_where_tls_may_be_spoken(server, monkeypatch, url, proxy, read):
    made = mock.Mock(side_effect=httpx2.create_ssl_context)
    monkeypatch.setattr(httpx2, "create_ssl_context", made)
    monkeypatch.setattr(http_client, "getproxies", lambda: {"http": proxy, "https": proxy})
    address = url.format(server.url if url == "{}" else server.url.partition(":")[2])
    asked(address, Limits(attempts=1, seconds=5.0))
    assert [call.kwargs["trust_env"] for call in made.call_args_list] == read


@pytest.mark.parametrize("where", ["headers", "url"])
def test_a_secret_goes_nowhere_unencrypted(monkeypatch, where):
    with raw_server(b"HTTP/1.0 200 OK\r\n\r\n") as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        fields = {"headers": {"X": f"Bearer {SECRET}"}} if where == "headers" else {}
        url = "http://models.invalid/" + (SECRET if where == "url" else "")
        with HttpClient(Limits(), secrets=[SECRET]) as client:
            with pytest.raises(HttpError, match="unencrypted"):
                client.ask(get(url, **fields))
            assert client.ask(get("http://models.invalid/")).status == 200
        assert len(proxy.seen) == 1
        assert SECRET not in "".join(proxy.seen)


def test_a_proxy_s_password_is_in_no_text(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks9://user:swordfish@127.0.0.1:1")
    error = asked("https://models.invalid/")
    assert isinstance(error, HttpError)
    assert "swordfish" not in str(error)


def test_an_interrupt_leaves_nothing_under_way(server):
    server.answers = {"/": (200, {}, b"late", never), "/quick": (200, {}, b"now", at_once)}
    client = HttpClient(Limits(concurrency=4))
    urls = [f"{server.url}/quick", *[f"{server.url}/"] * 3]
    answers = client.ask_all(get(url) for url in urls)
    assert next(answers)[1].body == b"now"
    with pytest.raises(KeyboardInterrupt):
        answers.throw(KeyboardInterrupt)
    assert not client._group._tasks
    client.close()


def test_an_interrupt_at_any_step_leaves_no_connection_open():
    async def steps(number):
        for _ in range(number):
            await asyncio.sleep(0)

    def interrupted(after):
        yield get(f"{server.url}/")
        submitted(steps(after)).result()
        raise KeyboardInterrupt

    closing = raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", keep_open=0.02)
    with closing as server, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ResourceWarning)
        for after in range(30):
            client = HttpClient(Limits(concurrency=4))
            # Four connections that the server has closed: the next request closes them here.
            assert len(list(client.ask_all([get(f"{server.url}/")] * 4))) == 4
            time.sleep(0.03)  # what is asserted holds at any moment
            with pytest.raises(KeyboardInterrupt):
                list(client.ask_all(interrupted(after)))
            client.close()
        gc.collect()
    assert not [str(one.message) for one in found]


def test_a_client_that_is_left_alone_is_closed(server):
    client = HttpClient(Limits())
    client.ask(get(server.url))
    opened = client._connections
    del client
    gc.collect()
    submitted(asyncio.sleep(0)).result()  # what was submitted before it has begun
    assert opened.end() is None


def test_a_process_ends_with_a_client_open(server):
    code = (
        "from fairgate.io.http_client import HttpClient\n"
        "from fairgate.io.http_messages import Limits, Request\n"
        "client = HttpClient(Limits())\n"
        f"print(client.ask(Request(method='GET', url={server.url!r})).status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "200\n")
    assert "Warning" not in done.stderr
