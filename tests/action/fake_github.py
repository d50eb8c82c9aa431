"""A GitHub that keeps its limits: comment length, pages, read-only tokens, rate limits, outages.

It answers the endpoints that FairGate uses, over real HTTP, as GitHub documents them; faults are
queued by a test and answer the next matching request.
"""

import hashlib
import io
import json
import re
import threading
import urllib.parse
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMENT_CHARACTERS = 65_536
TOKEN = "ghs_writesEverything0123456789"  # noqa: S105
READ_ONLY = "ghs_readsOnly0123456789abcdef"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
REPOSITORY = "octo/shop"


def _object(file):
    """Return what git calls a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(file) + file).hexdigest()  # noqa: S324


def _folders(path):
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


MODES = {"symlink": "120000", "submodule": "160000"}


def zipped(content, member="run.json"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return stream.getvalue()


class FakeGitHub:
    """State of one repository and the server that serves it."""

    def __init__(self):
        self.lock = threading.RLock()
        self.comments = {}
        self.pulls = {}
        self.commits = {}
        self.faults = []
        self.requests = []
        self.artifacts = {}
        self.artifact_heads = {}
        self.runs = {}
        self.expired = set()
        self.histories = {}
        self.barriers = []
        self.blobs = {}
        self.hooks = []
        self._next = 1000
        handler = type("Handler", (_Handler,), {"github": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fail(self, method, pattern, status, *, headers=None, message="", times=1, after=False):
        """Answer the next requests that match with an error; `after`: once it has been done."""
        self.faults += [(method, pattern, status, headers or {}, message, after)] * times

    def comment(self, number, body, user=None):
        with self.lock:
            self._next += 1
            url = f"{self.url}/{REPOSITORY}/pull/{number}#issuecomment-{self._next}"
            self.comments[self._next] = {
                "id": self._next, "number": number, "body": body, "user": user or BOT,
                "html_url": url,
            }  # fmt: skip
            return self.comments[self._next]

    def upload(self, run, head, content, *, name="fairgate-report", member="run.json"):
        """Keep a file as `actions/upload-artifact` does; None instead of a member: raw bytes."""
        self._next += 1
        raw = zipped(content, member) if member else content
        self.artifacts.setdefault(run, {})[self._next] = (name, raw)
        self.artifact_heads[self._next] = head

    def of(self, number):
        return [c for c in self.comments.values() if c["number"] == number]

    def ours(self, number):
        return [c for c in self.of(number) if "fairgate:report" in c["body"] and c["user"] == BOT]

    def made(self, method, pattern=""):
        return [p for m, p in self.requests if m == method and re.search(pattern, p)]


class _Handler(BaseHTTPRequestHandler):
    github = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer("GET")

    def do_POST(self):
        self._answer("POST")

    def do_PATCH(self):
        self._answer("PATCH")

    def do_DELETE(self):
        self._answer("DELETE")

    def _answer(self, method):
        hub = self.github
        if self.path.startswith("/blob/"):
            assert "Authorization" not in self.headers, "the token went to the storage"
            self._send(200, hub.blobs[self.path.split("?")[0]])
            return
        address = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(address.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else None
        for meet in list(hub.barriers):
            meet(method, path)
        with hub.lock:
            hub.requests.append((method, self.path))
            fault = next(
                (f for f in hub.faults if f[0] == method and re.search(f[1], self.path)), None
            )
            if fault:
                hub.faults.remove(fault)
                if fault[5]:
                    self._route(method, path, query, body, silent=True)
                said = fault[4] if isinstance(fault[4], list) else {"message": fault[4] or "fault"}
                self._send(fault[2], said, fault[3])
                return
            for hook in list(hub.hooks):
                hook(method, path, body)
            self._route(method, path, query, body)

    def _token(self):
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def _route(self, method, path, query, body, *, silent=False):
        send = (lambda *_: None) if silent else self._send
        token = self._token()
        if token not in (TOKEN, READ_ONLY):
            return send(401, {"message": "Bad credentials"})
        if method != "GET" and path != "/graphql" and token == READ_ONLY:
            return send(403, {"message": "Resource not accessible by integration"})
        if path == "/graphql":
            return send(200, {"data": {"viewer": {"login": "github-actions[bot]"}}})
        inner = path.removeprefix(f"/repos/{REPOSITORY}")
        if inner == path:
            return send(404, {"message": "Not Found"})
        for pattern, serve in (
            (r"/issues/(\d+)/comments", self._comments),
            (r"/issues/comments/(\d+)", self._comment),
            (r"/actions/runs/(\d+)/artifacts", self._artifacts),
            (r"/actions/runs/(\d+)", self._run),
            (r"/actions/artifacts", self._all_artifacts),
            (r"/compare/([0-9a-f]+)\.\.\.([0-9a-f]+)", self._compare),
            (r"/actions/artifacts/(\d+)/zip", self._zip),
            (r"/pulls/(\d+)", self._pull),
            (r"/pulls", self._pulls),
            (r"/commits/([0-9a-f]+)/pulls", self._pulls_of),
            (r"/git/trees/([0-9a-f]+)", self._tree),
            (r"/git/blobs/([0-9a-f]+)", self._blob),
        ):
            match = re.fullmatch(pattern, inner)
            if match:
                return serve(method, match, query, body, send)
        return send(404, {"message": "Not Found"})

    def _comments(self, method, match, query, body, send):
        hub, number = self.github, int(match[1])
        if method == "POST":
            if not self._fits(body, send):
                return
            if number not in hub.pulls:
                send(404, {"message": "Not Found"})
                return
            send(201, hub.comment(number, body["body"]))
            return
        self._page(sorted(hub.of(number), key=lambda c: c["id"]), query, send)

    def _fits(self, body, send):
        if len(body["body"]) <= COMMENT_CHARACTERS:
            return True
        send(422, {"message": "Validation Failed: Body is too long (maximum is 65536 characters)"})
        return False

    def _page(self, items, query, send):
        size, page = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
        shown = items[(page - 1) * size : page * size]
        headers = {}
        if page * size < len(items):
            rest = urllib.parse.urlencode({**query, "page": page + 1})
            path = urllib.parse.urlsplit(self.path).path
            headers["Link"] = f'<{self.github.url}{path}?{rest}>; rel="next"'
        send(200, shown, headers)

    def _comment(self, method, match, query, body, send):
        hub, number = self.github, int(match[1])
        if number not in hub.comments:
            send(404, {"message": "Not Found"})
        elif method == "DELETE":
            del hub.comments[number]
            send(204, None)
        elif self._fits(body, send):
            hub.comments[number]["body"] = body["body"]
            send(200, hub.comments[number])

    def _pull(self, method, match, query, body, send):
        pull = self.github.pulls.get(int(match[1]))
        send(200, pull) if pull else send(404, {"message": "Not Found"})

    def _pulls(self, method, match, query, body, send):
        wanted = query.get("head", "")
        found = [
            pull for pull in self.github.pulls.values()
            if f"{pull['head']['repo']['owner']['login']}:{pull['head']['ref']}" == wanted
            and pull["state"] == query.get("state", "open")
        ]  # fmt: skip
        self._page(found, query, send)

    def _pulls_of(self, method, match, query, body, send):
        pulls = self.github.pulls.values()
        self._page([pull for pull in pulls if pull["head"]["sha"] == match[1]], query, send)

    def _artifacts(self, method, match, query, body, send):
        found = self.github.artifacts.get(int(match[1]), {})
        heads = self.github.artifact_heads
        rows = [
            {"id": number, "name": name, "expired": False, "size_in_bytes": len(raw),
             "workflow_run": {"id": int(match[1]), "head_sha": heads.get(number)}}
            for number, (name, raw) in found.items()
            if query.get("name") in (None, name)
        ]  # fmt: skip
        send(200, {"total_count": len(rows), "artifacts": rows})

    def _all_artifacts(self, method, match, query, body, send):
        heads = self.github.artifact_heads
        rows = [
            {"id": number, "name": name, "expired": run in self.github.expired,
             "workflow_run": {"id": run, "head_sha": heads[number], "repository_id": 1,
                              "head_repository_id": self.github.runs.get(run, {}).get("from", 1)}}
            for run, kept in self.github.artifacts.items()
            for number, (name, _) in kept.items()
            if query.get("name") in (None, name)
        ]  # fmt: skip
        send(200, {"total_count": len(rows), "artifacts": rows})

    def _run(self, method, match, query, body, send):
        run = self.github.runs.get(int(match[1]))
        send(200, {"id": int(match[1]), **run}) if run else send(404, {"message": "Not Found"})

    def _compare(self, method, match, query, body, send):
        head, base = match[1], match[2]
        known = self.github.histories.get(base, [base])
        status = "identical" if head == base else "ahead" if head in known else "diverged"
        send(200, {"status": status})

    def _zip(self, method, match, query, body, send):
        number = int(match[1])
        raw = next((f[number][1] for f in self.github.artifacts.values() if number in f), None)
        if raw is None:
            send(404, {"message": "Not Found"})
            return
        self.github.blobs[f"/blob/{number}"] = raw
        send(302, b"", {"Location": f"{self.github.url}/blob/{number}?sig=x"})

    def _tree(self, method, match, query, body, send):
        known = self.github.commits.get(match[1])
        rows = [
            {"path": path, "sha": _object(file), "mode": "100644"}
            if isinstance(file, bytes)
            else {"path": path, "sha": "0" * 40, "mode": MODES[file["type"]]}
            for path, file in (known or {}).items()
        ]
        folders = {folder for row in rows for folder in _folders(row["path"])}
        rows += [{"path": folder, "sha": "0" * 40, "mode": "040000"} for folder in folders]
        found = {"tree": rows, "truncated": False}
        send(404, {"message": "Not Found"}) if known is None else send(200, found)

    def _blob(self, method, match, query, body, send):
        files = [file for known in self.github.commits.values() for file in known.values()]
        whole = (file for file in files if isinstance(file, bytes))
        found = next((file for file in whole if _object(file) == match[1]), None)
        send(404, {"message": "Not Found"}) if found is None else send(200, found)

    def _send(self, status, value, headers=None):
        data = (
            b""
            if value is None
            else value
            if isinstance(value, bytes)
            else json.dumps(value).encode()
        )
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
