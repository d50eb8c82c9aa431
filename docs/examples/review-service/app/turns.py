"""The service in turns: the notes closest to the last message stand before the conversation.

Started with `uvicorn --factory turns:create_app --app-dir app`.

    POST /chat {"messages": [{role, content}]} -> {"answer": …, "contexts": [{id, text, label}]}
"""

from __future__ import annotations

import os

import httpx
from fastapi import FastAPI
from pydantic import BaseModel
from service import NOTES, Answer, Note, Notes


class Message(BaseModel):
    role: str
    content: str


class Talk(BaseModel):
    messages: list[Message]


def create_app() -> FastAPI:
    app, notes = FastAPI(title="Reviews in turns"), Notes(NOTES)
    model = httpx.AsyncClient(base_url=os.environ["MODEL_URL"], timeout=120)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/chat")
    async def chat(talk: Talk) -> Answer:
        found = [Note(**note) for note in notes.closest(talk.messages[-1].content)]
        about = {"role": "system", "content": " ".join(note.text for note in found)}
        messages = [about, *(message.model_dump() for message in talk.messages)]
        body = {"model": "demo-slm", "messages": messages, "temperature": 0, "max_tokens": 4}
        response = await model.post("chat/completions", json=body)
        response.raise_for_status()
        answer = response.json()["choices"][0]["message"]["content"]
        return Answer(answer=answer, contexts=found)

    return app
