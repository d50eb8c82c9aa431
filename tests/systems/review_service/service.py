"""A service that says what a review sounds like, with the support notes that are closest to it.

Written as a small team would: FastAPI, a vector store, a prompt, a language model behind llama.cpp's
server. Nothing in it knows of FairGate. `uvicorn --factory service:create_app`; settings are
environment variables:

    NOTES        JSONL file of the notes: id, text, label
    MODEL_URL    address of the model, with its version
    PROMPT       `text` (the review alone) or `whole` (who wrote it, too)

    POST /ask {"question": …, "documents"?: […]} -> {"answer": …, "contexts": [{id, text, label}]}
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

INSTRUCTION = (
    "What is the sentiment of the text? Answer with one word: positive, negative, neutral or mixed."
)
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

    def closest(self, question):
        found = self._store.query_points("notes", query=self._vector(question), limit=CLOSEST)
        return [point.payload for point in found.points]

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


class Question(BaseModel):
    question: str
    documents: list[Note] | None = None


class Answer(BaseModel):
    answer: str
    contexts: list[Note]


class Service:
    def __init__(self, notes: Path, model: httpx.AsyncClient, prompt: str = "text"):
        self._notes = Notes(notes)
        self._model = model
        self._prompt = prompt

    async def ask(self, asked: Question) -> Answer:
        found = asked.documents
        if found is None:
            found = [Note(**note) for note in self._notes.closest(asked.question)]
        answer = await self._complete(self._filled(asked.question, found))
        return Answer(answer=answer, contexts=found)

    def _filled(self, question, found):
        speaker, _, quoted = question.partition('"')
        notes = " ".join(note.text for note in found)
        shown = f"{quoted.removesuffix(chr(34))} {notes}"
        if self._prompt == "whole" and speaker:
            shown += f" Typical of {speaker.partition(' says ')[0].lower()}."
        return f'{INSTRUCTION}\n\n"{shown}"\nAnswer:'

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


def create_app(kind: type[Service] = Service) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app):
        async with httpx.AsyncClient(base_url=os.environ["MODEL_URL"], timeout=120) as model:
            prompt = os.environ.get("PROMPT", "text")
            app.state.service = kind(Path(os.environ["NOTES"]), model, prompt)
            yield

    app = FastAPI(title="Reviews", lifespan=lifespan)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/ask")
    async def ask(asked: Question) -> Answer:
        return await app.state.service.ask(asked)

    return app
