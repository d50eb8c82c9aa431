"""Vector stores that answer as Qdrant, Chroma and psycopg do; tests/systems asks the real ones."""

import http.server
import json
import re
import types

from fakes.serving import Answering, served


def nearest(rows, vector, count):
    """Rows by cosine, the greatest first, with it."""
    scored = [(sum(a * b for a, b in zip(row["vector"], vector, strict=True)), row) for row in rows]
    return sorted(scored, key=lambda pair: -pair[0])[:count]


class Stores(http.server.ThreadingHTTPServer):
    """Qdrant and Chroma at one address: collection `docs`. `seen` holds what came."""

    request_queue_size = 64

    def __init__(self, rows):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rows, self.seen, self.keys, self.always = rows, [], [], None
        self.named = self.hidden = False

    def searches(self):
        return [path for path, _ in self.seen if path.endswith("query")]


class _Handler(Answering):
    def do_GET(self):  # noqa: N802 its name
        self._answer(None)

    def do_POST(self):  # noqa: N802 its name
        self._answer(self.body())

    def _answer(self, body):
        store = self.server
        store.seen.append((self.path, body))
        store.keys.append({n: self.headers.get(n) for n in ("api-key", "x-chroma-token")})
        self.send(*(store.always or self._found(body)))

    def _found(self, body):
        store = self.server
        width = len(store.rows[0]["vector"])
        if re.fullmatch("/collections/docs", self.path):
            size = {"size": width, "distance": "Cosine"}
            vectors = {"dense": size, "other": {"size": 3}} if store.named else size
            return 200, {"result": {"config": {"params": {"vectors": vectors}}}, "status": "ok"}
        if self.path == "/collections/docs/points/query":
            points = [
                {"id": row["number"], "version": 0, "score": score, "payload": self._about(row)}
                for score, row in nearest(store.rows, body["query"], body["limit"])
            ]
            return 200, {"result": {"points": points}, "status": "ok"}
        collections = "/api/v2/tenants/default_tenant/databases/default_database/collections"
        if self.path == f"{collections}/docs":
            return 200, {"id": "0-1", "name": "docs", "dimension": width}
        if self.path == f"{collections}/0-1/query":
            (vector,) = body["query_embeddings"]
            found = nearest(store.rows, vector, body["n_results"])
            return 200, {
                "ids": [[row["id"] for _, row in found]],
                "documents": [[None if store.hidden else row["text"] for _, row in found]],
                "metadatas": [[self._about(row) for _, row in found]],
                "distances": [[1 - score for score, _ in found]],
            }
        return 404, {"status": {"error": "Not found: Collection `nope` doesn't exist!"}}

    def _about(self, row):
        about = {"name": row["id"], "text": row["text"], "meta": {"label": row["label"]}}
        if self.server.hidden:
            del about["text"]
        return {**about, "label": row["label"]}


def stores(rows):
    """Serve both stores until the block ends."""
    return served(Stores(rows))


class Postgres(types.ModuleType):
    """The module `psycopg` with a table `docs` behind it; `seen` holds what came."""

    class Error(Exception):
        sqlstate = None

    def __init__(self, rows):
        super().__init__("psycopg")
        self.rows, self.seen, self.connected, self.fails = rows, [], [], None
        self.conninfo = types.SimpleNamespace(conninfo_to_dict=self._parts)

    def _parts(self, dsn):
        match = re.fullmatch(r"postgresql://\w+:(?P<password>\w+)@\S+", dsn)
        if match is None:
            raise self.Error(f"missing = after {dsn}")
        return match.groupdict()

    def connect(self, dsn, **limits):
        self.connected.append((dsn, limits))
        return _Connection(self)


class _Connection:
    read_only = False

    def __init__(self, server):
        self._server = server
        self._found = []
        self.description = []

    def execute(self, sql, values):
        server = self._server
        if "set_config" in sql:
            return self
        assert self.read_only
        server.seen.append((sql, values))
        if server.fails is not None:
            raise server.Error(server.fails)
        vector = json.loads(values["embedding"])
        width = len(server.rows[0]["vector"])
        if len(vector) != width:
            raise server.Error(f"different vector dimensions {width} and {len(vector)}")
        named = ["id", "text", *(["label"] if "AS label" in sql else []), "score"]
        found = nearest(server.rows, vector, values["top_k"])
        rows = [{**row, "score": score - 1} for score, row in found]
        self.description = [types.SimpleNamespace(name=name) for name in named]
        self._found = [tuple(row[name] for name in named) for row in rows]
        return self

    def fetchall(self):
        return self._found

    def close(self):
        self._server.seen.append("closed")
