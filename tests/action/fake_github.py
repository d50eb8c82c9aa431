"""A GitHub that keeps its limits: comment length, pages, read-only tokens, rate limits, outages.

It answers the endpoints that FairGate uses, over real HTTP, as GitHub documents them; faults are
queued by a test and answer the next matching request.
"""

import hashlib
import io
import re
import threading
import urllib.parse
import zipfile
from http.server import ThreadingHTTPServer

from fakes.serving import Answering

COMMENT_CHARACTERS = 65_536
TOKEN = "ghs_writesEverything0123456789"  # noqa: S105
READ_ONLY = "ghs_readsOnly0123456789abcdef"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
REPOSITORY = "octo/shop"
EVENTS = [
    "check_run", "create", "deployment", "dynamic", "issue_comment", "merge_group", "push",
    "release", "repository_dispatch", "schedule", "status", "workflow_call", "workflow_dispatch",
    "workflow_run", None, "", "PULL_REQUEST",
]  # fmt: skip
"""What GitHub starts runs for, other than pull requests."""


def _object(file):
    """Return what git calls a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(file) + file).hexdigest()  # noqa: S324


def _folders(path):
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def known_run(**more):
    """Return what GitHub says of a run of the gate's workflow for pull request 7."""
    return {
        "workflow_id": 77, "event": "pull_request", "head_sha": "a" * 40, "head_branch": "topic",
        "head_repository": {"id": 1296269, "full_name": REPOSITORY}, "run_attempt": 3,
        "pull_requests": [{"number": 7}], **more,
    }  # fmt: skip


MODES = {"symlink": "120000", "submodule": "160000"}


def zipped(content, member="run.json"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return stream.getvalue()


class FakeGitHub(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.RLock()
        self.faults, self.requests, self.hooks = [], [], []
        self.comments, self.pulls, self.commits = {}, {}, {}
        self.histories, self.sides, self.moves = {}, {}, []
        self.login = BOT["login"]
        self.artifacts, self.artifact_heads, self.runs, self.blobs = {}, {}, {}, {}
        self.expired, self.tips, self.deleted_runs = set(), {}, 0
        self._next = 1000

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


MISSING = (404, {"message": "Not Found"})


def _found(value):
    return MISSING if value is None else (200, value)


class _Handler(Answering):
    def _answer(self):
        hub, method = self.server, self.command
        if self.path.startswith("/blob/"):
            assert "Authorization" not in self.headers, "the token went to the storage"
            self.send(200, hub.blobs[self.path.split("?")[0]])
            return
        address = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(address.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        body = self.body() if int(self.headers.get("Content-Length") or 0) else None
        with hub.lock:
            hub.requests.append((method, self.path))
            matching = (f for f in hub.faults if f[0] == method and re.search(f[1], self.path))
            if fault := next(matching, None):
                hub.faults.remove(fault)
                _, _, status, headers, said, after = fault
                if after:
                    self._routed(path, query, body)
                said = said if isinstance(said, list) else {"message": said or "fault"}
                self.send(status, said, headers)
                return
            for hook in list(hub.hooks):
                hook(method, path, body)
            self.send(*self._routed(path, query, body))

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 their names

    def _routed(self, path, query, body):
        """Do what is asked; return status, answer and perhaps headers."""
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token not in (TOKEN, READ_ONLY):
            return 401, {"message": "Bad credentials"}
        if self.command != "GET" and path != "/graphql" and token == READ_ONLY:
            return 403, {"message": "Resource not accessible by integration"}
        if path == "/graphql":
            return 200, {"data": {"viewer": {"login": self.server.login}}}
        inner = path.removeprefix(f"/repos/{REPOSITORY}")
        if not inner:
            return 200, {"full_name": REPOSITORY, "default_branch": "main"}
        for pattern, serve in (
            (r"/issues/(\d+)/comments", self._comments),
            (r"/issues/comments/(\d+)", self._comment),
            (r"/actions/workflows/([^/]+)/runs", self._runs),
            (r"/git/ref/heads/(.+)", self._ref),
            (r"/actions/runs/(\d+)/artifacts", self._artifacts),
            (r"/actions/runs/(\d+)", self._run),
            (r"/actions/artifacts", self._artifacts),
            (r"/activity", self._activity),
            (r"/compare/([0-9a-f]+)\.\.\.([0-9a-f]+)", self._compare),
            (r"/actions/artifacts/(\d+)/zip", self._zip),
            (r"/pulls/(\d+)", self._pull),
            (r"/pulls", self._pulls),
            (r"/commits/([0-9a-f]+)/pulls", self._pulls_of),
            (r"/git/trees/([0-9a-f]+)", self._tree),
            (r"/git/blobs/([0-9a-f]+)", self._blob),
        ):
            match = re.fullmatch(pattern, inner)
            if match and inner != path:
                return serve(match, query, body)
        return MISSING

    def _comments(self, match, query, body):
        hub, number = self.server, int(match[1])
        if self.command == "POST":
            known = self._fits(body) or (None if number in hub.pulls else MISSING)
            return known or (201, hub.comment(number, body["body"], {**BOT, "login": hub.login}))
        return self._page(sorted(hub.of(number), key=lambda c: c["id"]), query)

    def _fits(self, body):
        if len(body["body"]) > COMMENT_CHARACTERS:
            why = "Body is too long (maximum is 65536 characters)"
            return 422, {"message": f"Validation Failed: {why}"}
        return None

    def _page(self, items, query):
        size, page = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
        headers = {}
        if page * size < len(items):
            rest = urllib.parse.urlencode({**query, "page": page + 1})
            path = urllib.parse.urlsplit(self.path).path
            headers["Link"] = f'<{self.server.url}{path}?{rest}>; rel="next"'
        return 200, items[(page - 1) * size : page * size], headers

    def _comment(self, match, query, body):
        comments, number = self.server.comments, int(match[1])
        if number not in comments:
            return MISSING
        if self.command == "GET":
            return 200, comments[number]
        if self.command == "DELETE":
            del comments[number]
            return 204, b""
        if refused := self._fits(body):
            return refused
        comments[number]["body"] = body["body"]
        return 200, comments[number]

    def _runs(self, match, query, body):
        wanted = {name: query[name] for name in ("head_sha", "event") if name in query}
        found = [
            {"id": number, **run} for number, run in self.server.runs.items()
            if str(run.get("path")).partition("@")[0].endswith(f"/{match[1]}")
            and run.get("head_branch") == query.get("branch", run.get("head_branch"))
            and all(run[name] == value for name, value in wanted.items())
        ]  # fmt: skip
        lost = self.server.deleted_runs
        if not wanted and "branch" not in query:
            found.append({"id": 10**6, "run_number": len(found) + 1 + lost})  # the one that asks
        size = int(query.get("per_page", 30))
        return 200, {"total_count": len(found), "workflow_runs": found[::-1][:size]}

    def _ref(self, match, query, body):
        pulls = self.server.pulls.values()
        heads = [one["head"]["sha"] for one in pulls if one["head"]["ref"] == match[1]]
        tip = self.server.tips.get(match[1], next(iter(heads), None))
        return _found(tip and {"object": {"sha": tip}})

    def _pull(self, match, query, body):
        return _found(self.server.pulls.get(int(match[1])))

    def _pulls(self, match, query, body):
        wanted = query.get("head", "")
        found = [
            pull for pull in self.server.pulls.values()
            if f"{pull['head']['repo']['owner']['login']}:{pull['head']['ref']}" == wanted
            and pull["state"] == query.get("state", "open")
        ]  # fmt: skip
        return self._page(found, query)

    def _pulls_of(self, match, query, body):
        pulls = self.server.pulls.values()
        return self._page([pull for pull in pulls if pull["head"]["sha"] == match[1]], query)

    def _artifacts(self, match, query, body):
        hub = self.server
        rows = [
            {"id": number, "name": name, "expired": run in hub.expired, "size_in_bytes": len(raw),
             "workflow_run": {"id": run, "head_sha": hub.artifact_heads.get(number),
                              "repository_id": 1,
                              "head_repository_id": hub.runs.get(run, {}).get("from", 1)}}
            for run, kept in hub.artifacts.items()
            for number, (name, raw) in kept.items()
            if query.get("name") in (None, name) and (not match.groups() or run == int(match[1]))
        ]  # fmt: skip
        return 200, {"total_count": len(rows), "artifacts": rows}

    def _run(self, match, query, body):
        run = self.server.runs.get(int(match[1]))
        return _found(run and {"id": int(match[1]), **run})

    def _compare(self, match, query, body):
        head, base = match[1], match[2]
        line, sides = self.server.histories.get(base, [base]), self.server.sides.get(base, [])
        is_known = head in line or head in sides
        status = "identical" if head == base else "ahead" if is_known else "diverged"
        # Of a merge the side is the second parent of the commit that merged it.
        after = line[line.index(head) + 1 :] if head in line else line[1:]
        commits = [
            {
                "sha": one,
                "parents": [{"sha": line[line.index(one) - 1]}, *({"sha": s} for s in sides)],
            }
            for one in after
        ] + [{"sha": side, "parents": [{"sha": line[0]}]} for side in sides if side != head]
        size, page = int(query.get("per_page", 250)), int(query.get("page", 1))
        return 200, {
            "status": status, "merge_base_commit": {"sha": head},
            "commits": commits[(page - 1) * size : page * size], "total_commits": len(commits),
        }  # fmt: skip

    def _activity(self, match, query, body):
        return self._page([m for m in self.server.moves if m["ref"] == query["ref"]], query)

    def _zip(self, match, query, body):
        hub, number = self.server, int(match[1])
        raw = next((f[number][1] for f in hub.artifacts.values() if number in f), None)
        if raw is None:
            return MISSING
        hub.blobs[f"/blob/{number}"] = raw
        return 302, b"", {"Location": f"{hub.url}/blob/{number}?sig=x"}

    def _tree(self, match, query, body):
        known = self.server.commits.get(match[1])
        rows = [
            {"path": path, "sha": _object(file), "mode": "100644"}
            if isinstance(file, bytes)
            else {"path": path, "sha": "0" * 40, "mode": MODES[file["type"]]}
            for path, file in (known or {}).items()
        ]
        folders = {folder for row in rows for folder in _folders(row["path"])}
        rows += [{"path": folder, "sha": "0" * 40, "mode": "040000"} for folder in folders]
        return MISSING if known is None else (200, {"tree": rows, "truncated": False})

    def _blob(self, match, query, body):
        files = (file for known in self.server.commits.values() for file in known.values())
        same = (file for file in files if isinstance(file, bytes) and _object(file) == match[1])
        return _found(next(same, None))
