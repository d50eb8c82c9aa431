"""A service that says what a review sounds like, with the support notes that are closest to it.

FastAPI, a vector store, a prompt, a language model behind any OpenAI-compatible server. Nothing in
it knows of FairGate. Started with `uvicorn --factory service:create_app --app-dir app`; the
environment variable MODEL_URL holds the model's address, with its version.

    POST /ask {"question": …, "documents"?: […], "changed"?: {id, text}}
          -> {"answer": …, "contexts": [{id, text, label}]}
    POST /act {"question": …} -> {"calls": [{name, arguments}]}: what support does about the review

`documents` are shown instead of what is found; `changed` is another text for one of the notes.
"""

from __future__ import annotations

import json
import math
import os
import re
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from fastapi import FastAPI
from pydantic import BaseModel
from qdrant_client import QdrantClient, models

HERE = Path(__file__).parent
NOTES = HERE.parent / "data" / "notes.jsonl"
PROMPT = HERE / "prompt.txt"
CLOSEST = 1


def words(text):
    return re.findall(r"[a-z]{4,}", text.lower())


class Notes:
    """The notes in a vector store, as weighted counts of the words that they use."""

    def __init__(self, path):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        self._notes = [json.loads(line) for line in lines]
        used = [set(words(note["text"])) for note in self._notes]
        vocabulary = sorted(set().union(*used))
        self._places = {word: place for place, word in enumerate(vocabulary)}
        self._weights = [math.log(len(used) / sum(w in u for u in used)) for w in vocabulary]
        self._store = QdrantClient(":memory:")
        size = models.VectorParams(size=len(vocabulary), distance=models.Distance.DOT)
        self._store.create_collection("notes", vectors_config=size)
        points = [
            models.PointStruct(id=number, vector=self._vector(note["text"]), payload=note)
            for number, note in enumerate(self._notes)
        ]
        self._store.upsert("notes", points)

    def closest(self, question, changed=None):
        vector = self._vector(question)
        found = self._store.query_points("notes", query=vector, limit=CLOSEST + 1).points
        scored = [(point.score, point.payload) for point in found]
        if changed is not None:
            (note,) = [note for note in self._notes if note["id"] == changed.id]
            score = sum(a * b for a, b in zip(vector, self._vector(changed.text), strict=True))
            scored = [one for one in scored if one[1]["id"] != changed.id]
            scored.append((score, {**note, "text": changed.text}))
        return [note for _, note in sorted(scored, key=lambda one: -one[0])[:CLOSEST]]

    def _vector(self, text):
        vector = [0.0] * len(self._places)
        for word in set(words(text)) & self._places.keys():
            vector[self._places[word]] = self._weights[self._places[word]]
        length = math.sqrt(sum(value * value for value in vector)) or 1.0
        return [value / length for value in vector]


class Note(BaseModel):
    id: str
    text: str
    label: str


class Changed(BaseModel):
    id: str
    text: str


class Question(BaseModel):
    question: str
    documents: list[Note] | None = None
    changed: Changed | None = None


class Answer(BaseModel):
    answer: str
    contexts: list[Note]


class Call(BaseModel):
    name: str
    arguments: dict[str, int | str]


class Service:
    def __init__(self, model: httpx.AsyncClient):
        self._notes = Notes(NOTES)
        self._prompt = PROMPT.read_text(encoding="utf-8")
        self._model = model

    async def act(self, asked: Question) -> list[Call]:
        answer = words((await self.ask(asked)).answer)
        if "negative" in answer:
            amount = 5 + len(words(asked.question.partition('"')[2])) // 2
            return [Call(name="refund", arguments={"amount": amount, "note": asked.question[:40]})]
        return [Call(name="thank", arguments={})] if "positive" in answer else []

    async def ask(self, asked: Question) -> Answer:
        found = asked.documents
        if found is None:
            closest = self._notes.closest(asked.question, asked.changed)
            found = [Note(**note) for note in closest]
        answer = await self._complete(self._filled(asked.question, found))
        return Answer(answer=answer, contexts=found)

    def _filled(self, question, found):
        _writer, _, quoted = question.partition('"')
        notes = [note.text for note in found]
        review = quoted.removesuffix('"') or question
        return self._prompt.format(review=review, notes=" ".join(notes))

    async def _complete(self, prompt):
        body = {
            "model": "demo-slm",
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": 4,
        }
        response = await self._model.post("chat/completions", json=body)
        response.raise_for_status()
        return response.json()["choices"][0]["message"]["content"]


def create_app() -> FastAPI:
    @asynccontextmanager
    async def lifespan(app):
        async with httpx.AsyncClient(base_url=os.environ["MODEL_URL"], timeout=120) as model:
            app.state.service = Service(model)
            yield

    app = FastAPI(title="Reviews", lifespan=lifespan)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/ask")
    async def ask(asked: Question) -> Answer:
        return await app.state.service.ask(asked)

    @app.post("/act")
    async def act(asked: Question) -> dict[str, list[Call]]:
        return {"calls": await app.state.service.act(asked)}

    return app
