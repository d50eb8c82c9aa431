"""An OpenAI-compatible server that answers by rule; `faults` says what goes wrong, one a request."""

import contextlib
import http.server
import threading

from fakes.rag_app import reply
from fakes.serving import Answering, served


def counted(usage, body):
    """As servers do that read a prompt whole: it has the more tokens, the longer it is."""
    if "prompt_tokens" not in usage:
        return usage
    return usage | {"prompt_tokens": usage["prompt_tokens"] + len(str(body["messages"]))}


class Chat(Answering):
    def do_POST(self):  # noqa: N802 its name
        server = self.server
        body = self.body()
        with server.lock:
            server.seen.append((self.path, self.headers.get("Authorization"), body))
            fault = server.faults.pop(0) if server.faults else None
        said = server.answer(body["messages"][-1]["content"])
        if isinstance(said, tuple):  # status, value and headers
            self.send(*said)
            return
        if isinstance(said, dict):  # a whole answer
            self.send(200, said)
            return
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        whole = {"choices": [choice], "usage": counted(server.usage, body)}
        self.send(*(fault or (200, whole)))


@contextlib.contextmanager
def chat_server(port=0):
    """Serve until the block ends; `seen` holds path, authorisation and body of what came."""
    with served(http.server.ThreadingHTTPServer(("127.0.0.1", port), Chat)) as server:
        server.seen, server.faults, server.lock = [], [], threading.Lock()
        server.usage = {"completion_tokens": 1}
        server.answer = lambda prompt: reply(prompt)["answer"]
        server.url += "/v1"
        yield server
