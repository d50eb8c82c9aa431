"""A search in a vector store: queries are embedded here, and the store finds the nearest documents.

A store says what it is asked, and where documents stand in its answer: PostgreSQL with pgvector
here, others in `http_store.py`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any, Protocol

from fairgate.domain.applications import Question, Reply
from fairgate.domain.errors import ApplicationError, UsageError
from fairgate.domain.executions import Document
from fairgate.domain.ports import Embedder, Vectors
from fairgate.domain.wording import concealed, harmless, quoted
from fairgate.io.http_messages import secret_in
from fairgate.io.replies import JsonPath, ReplyPaths, json_path, reply_of, without_secrets

OPERATORS = {"cosine": "<=>", "euclidean": "<->", "inner_product": "<#>"}
_WIDTHS = re.compile(r"different (?:halfvec |vector )?dimensions (\d+) and (\d+)")
_PATHS = ReplyPaths(answer=None, documents=json_path("$.documents"))


class VectorStore(Protocol):
    """Finds the documents whose vectors are nearest to a query's."""

    @property
    def name(self) -> str:
        """Return, for messages, which store and collection it is."""
        ...

    @property
    def revision(self) -> str | None:
        """Return what changes when the stored documents do; None where it is not known."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identify the collection, how it is asked, and its revision."""
        ...

    def search(
        self, vectors: Iterable[Vectors], width: int, queries: Sequence[str], top_k: int
    ) -> Generator[tuple[int, tuple[Document, ...]], None, None]:
        """Yield `(position, documents nearest first)` as they come; `queries` are for messages.

        Each of the `vectors` has `width` numbers and is taken when its query is asked.
        Raises ApplicationError, also where the collection's vectors have another length.
        """
        ...


class VectorSearch:
    """A port `Application` that finds documents and answers nothing."""

    def __init__(self, store: VectorStore, embedder: Callable[[], Embedder]) -> None:
        """Take the store and what embeds queries; nothing is loaded or asked yet."""
        self._store = store
        self._embedder = embedder

    @property
    def name(self) -> str:
        """Say which store it is."""
        return self._store.name

    @property
    def revision(self) -> str | None:
        """Return what the user names it."""
        return self._store.revision

    @property
    def fingerprint(self) -> str:
        """Identify store, revision and embedder."""
        parts = f"{self._store.fingerprint}\0{self._embedder().fingerprint}"
        return hashlib.sha256(parts.encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply], None, None]:
        """Yield `(position in questions, reply)`; all are asked for as many documents."""
        if not questions:
            return
        # By position: what is iterated counts as asked, and a budget may end that early.
        queries = [questions[place].query for place in range(len(questions))]
        vectors = self._embedder().embed(queries)
        asked = (vectors[place] for place, _ in enumerate(questions))
        top_k = questions[0].top_k
        for position, found in self._store.search(asked, vectors.shape[1], queries, top_k):
            yield position, Reply(answer="", documents=in_one_order(found))


def in_one_order(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents as they came, equally near ones by id: stores leave that order open."""
    return tuple(
        document
        for score, group in groupby(documents, key=lambda document: document.score)
        for document in (group if score is None else sorted(group, key=_id))
    )


def _id(document: Document) -> str:
    return document.id or ""


def require_width(name: str, expected: int, found: int) -> None:
    """Raise ApplicationError where a query's vector has another length than the stored ones."""
    if expected != found:
        raise other_width(name, expected, found)


def other_width(name: str, expected: int, found: int) -> ApplicationError:
    """Return what is wrong where stored vectors have `expected` numbers and a query's `found`."""
    return ApplicationError(
        f"{name} holds vectors of {expected:,} numbers, and the policy's embedder gives "
        f"{found:,}; name in `retriever.embedder` the model that the documents were embedded with"
    )


def path_of_key(base: str, key: str) -> JsonPath:
    """Return the path of a key below `base`; dots lead into nested objects."""
    return json_path(base + "".join(f"['{part}']" for part in key.split(".")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAt:
    """Which table is asked, or by which query."""

    dsn_env: str
    """NAME of the environment variable with the connection string."""
    table: str = ""
    """Also `schema.table`."""
    id: str = "id"
    text: str = "text"
    label: str | None = None
    embedding: str = "embedding"
    distance: str = "cosine"
    query: str | None = None
    """SQL of one's own with `%(embedding)s` and `%(top_k)s`; gives columns id, text, …"""
    revision: str | None = None
    seconds: float = 60.0
    """To connect, and for each query."""


class Pgvector:
    """A port `VectorStore` through psycopg 3: one connection at a time, read-only transactions."""

    def __init__(self, table: TableAt) -> None:
        """Take the table; nothing is asked and no variable is read yet."""
        self._table = table

    @property
    def name(self) -> str:
        """Say what is asked; the address is secret."""
        what = f"table {quoted(self._table.table)}" if self._table.table else "`query`"
        return f"PostgreSQL at the address in {self._table.dsn_env}, {what}"

    @property
    def revision(self) -> str | None:
        """Return what the user names it."""
        return self._table.revision

    @property
    def fingerprint(self) -> str:
        """Identify the query and its revision; never what the variable holds."""
        parts = json.dumps(["pgvector", asdict(self._table)], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()

    def search(
        self, vectors: Iterable[Vectors], width: int, queries: Sequence[str], top_k: int
    ) -> Generator[tuple[int, tuple[Document, ...]], None, None]:
        """Yield `(position, documents)`, one query after another."""
        driver = _driver()
        dsn = self._dsn
        secrets = [dsn, *_passwords(driver, dsn, self._table.dsn_env)]
        sql = self._table.query or _select(self._table)
        position = -1
        try:
            with closing(self._connected(driver, dsn)) as connection:
                for position, vector in enumerate(vectors):
                    asked = {"embedding": _written(vector.tolist()), "top_k": top_k}
                    cursor = connection.execute(sql, asked)
                    names = [column.name for column in cursor.description or ()]
                    found = [
                        _row(dict(zip(names, row, strict=True)), self._table.label)
                        for row in cursor.fetchall()
                    ]
                    reply = reply_of({"documents": found}, _PATHS)
                    yield position, without_secrets(reply, secrets).documents or ()
        except driver.Error as error:
            about = f"asked for {quoted(queries[position])}" if position >= 0 else "asked"
            raise self._explained(concealed(str(error), secrets), about, width) from None
        except ApplicationError as error:
            raise ApplicationError(f"{self.name}: {concealed(str(error), secrets)}") from None

    def _connected(self, driver: Any, dsn: str) -> Any:
        seconds = self._table.seconds
        connection = driver.connect(
            dsn,
            connect_timeout=max(2, round(seconds)),
            # A connection that is lost without a word is given up after the same time.
            tcp_user_timeout=round(seconds * 1000),
            application_name="fairgate",
        )
        connection.read_only = True
        connection.execute(
            "SELECT set_config('statement_timeout', %s, false)", [str(round(seconds * 1000))]
        )
        return connection

    def _explained(self, text: str, about: str, width: int) -> ApplicationError:
        """Return what PostgreSQL's words mean; that vectors differ in length has a remedy."""
        found = _WIDTHS.search(text)
        other = next((int(n) for n in found.groups() if int(n) != width), width) if found else width
        if other != width:
            return other_width(self.name, other, width)
        return ApplicationError(
            f"{self.name}, {about}: {harmless(' '.join(text.split())[:300])!r}; check the "
            "address, and the table's columns"
        )

    @property
    def _dsn(self) -> str:
        return secret_in(
            self._table.dsn_env,
            named_by="`dsn_env` names",
            is_a="connection string",
            remedy="set it to postgresql://user:password@host/database",
        )


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(
            "a retriever of kind `pgvector` needs psycopg, which cannot be imported "
            f"({quoted(str(error)[:100])}): pip install 'fairgate[pgvector]'"
        ) from error
    return psycopg


def _passwords(driver: Any, dsn: str, variable: str) -> list[str]:
    """Return the passwords in a connection string. Raises UsageError where it is none."""
    try:
        parts = driver.conninfo.conninfo_to_dict(dsn)
    except driver.Error:  # its text repeats parts of the string
        raise UsageError(
            f"the environment variable {quoted(variable)}, which `dsn_env` names, holds no "
            "connection string of PostgreSQL; expected postgresql://user:password@host/database"
        ) from None
    return [str(parts[name]) for name in ("password", "sslpassword") if parts.get(name)]


def _select(table: TableAt) -> str:
    """Return the query of a table: plain enough for pgvector's indexes."""
    nearness = f"{_name(table.embedding)} {OPERATORS[table.distance]} %(embedding)s::vector"
    label = "" if table.label is None else f", {_name(table.label)} AS label"
    return (
        f"SELECT {_name(table.id)} AS id, {_name(table.text)} AS text{label}, "  # noqa: S608
        f"-({nearness}) AS score FROM {'.'.join(map(_name, table.table.split('.')))} "
        f"ORDER BY {nearness} LIMIT %(top_k)s"
    )


def _name(name: str) -> str:
    """Return an identifier, quoted: nothing in it ends the name."""
    escaped = name.replace('"', '""').replace("%", "%%")
    return f'"{escaped}"'


def _written(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"


def _row(row: dict[str, Any], flag: str | None) -> dict[str, Any]:
    """Return a row as JSON values: identifiers may be UUIDs.

    A label that is true or false is named after its column, as in a corpus: `toxic`, `non-toxic`.
    """
    found = dict(row)
    for name in ("id", "label"):
        if found.get(name) is not None and not isinstance(found[name], bool):
            found[name] = str(found[name])
    if isinstance(found.get("label"), bool):
        column = flag or "label"
        found["label"] = column if found["label"] else f"non-{column}"
    if isinstance(found.get("score"), Decimal):
        found["score"] = float(found["score"])
    return found
