"""A GitLab that has merge requests, their notes and pipelines, and acts on what a note says."""

import http.server
import json
import re
import urllib.parse

from fakes.serving import Answering

TOKEN = "glpat-of-this-project"  # noqa: S105 (a fake)
NOTE_CHARACTERS = 1_000_000
PROJECT, REQUEST, PIPELINE = 7, 3, 900
BOT = 42


class GitLab(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.notes, self.pipelines, self.requests = {}, {PIPELINE}, []
        self.commands, self.refuses = [], 0
        self._number = 100

    def note(self, body, author=BOT):
        """Add a note; quick actions in it are done in its author's name."""
        self._number += 1
        made = {"id": self._number, "body": body, "author": {"id": author}, "system": False}
        self.notes[self._number] = made
        self.act_on(body)
        return made

    def act_on(self, body):
        """Do the quick actions of a text: a line that begins with a slash, wherever it stands.

        GitLab leaves out code and quotes; whoever relies on that is wrong once a fence is not
        closed.
        """
        self.commands += re.findall(r"^[\s>]*/([a-z_]+)", body, re.MULTILINE)

    def bodies(self):
        return [note["body"] for _, note in sorted(self.notes.items())]


class _Handler(Answering):
    def _answer(self):
        lab, address = self.server, urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lab.requests.append((self.command, address.path))
        if self.headers.get("PRIVATE-TOKEN") != TOKEN:
            return self.send(401, {"message": "401 Unauthorized"})
        if lab.refuses:
            return self.send(lab.refuses, {"message": f"{lab.refuses} Forbidden {TOKEN}"})
        body = json.loads(raw)["body"] if raw else ""
        if len(body) > NOTE_CHARACTERS:
            return self.send(400, {"message": "400 Bad request - Note is too long"})
        base = f"/api/v4/projects/{PROJECT}/merge_requests/{REQUEST}"
        one = re.fullmatch(rf"{base}/notes/(\d+)", address.path)
        if address.path == "/api/v4/user":
            return self.send(200, {"id": BOT, "username": "project_7_bot"})
        if address.path == f"{base}/pipelines":
            return self.send(200, self._page([{"id": n} for n in sorted(lab.pipelines)], query))
        if address.path == f"{base}/notes" and self.command == "POST":
            return self.send(201, lab.note(body))
        if address.path == f"{base}/notes":
            newest = [note for _, note in sorted(lab.notes.items(), reverse=True)]
            return self.send(200, self._page(newest, query))
        if one and int(one[1]) in lab.notes:
            if self.command == "PUT":
                lab.notes[int(one[1])]["body"] = body
                lab.act_on(body)
                return self.send(200, lab.notes[int(one[1])])
            if self.command == "DELETE":
                del lab.notes[int(one[1])]
                return self.send(204, b"")
        return self.send(404, {"message": "404 Not found"})

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 their names

    def _page(self, items, query):
        size, page = min(int(query.get("per_page", 20)), 100), int(query.get("page", 1))
        return items[(page - 1) * size : page * size]


def environment(lab, folder, **more):
    """Return the variables of a merge request's job; below `folder` is the token's file."""
    file = folder / "shop.tmp" / "FAIRGATE_GITLAB_TOKEN"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{TOKEN}\n")
    return {
        "GITLAB_CI": "true", "CI_API_V4_URL": f"{lab.url}/api/v4",
        "CI_MERGE_REQUEST_PROJECT_ID": str(PROJECT), "CI_MERGE_REQUEST_IID": str(REQUEST),
        "CI_PIPELINE_ID": str(PIPELINE), "CI_JOB_ID": "1", "CI_JOB_URL": f"{lab.url}/-/jobs/1",
        "CI_COMMIT_SHA": "a" * 40, "FAIRGATE_GITLAB_TOKEN": str(file), **more,
    }  # fmt: skip
