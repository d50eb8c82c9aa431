"""An OpenAI-compatible server that answers by rule; `faults` says what goes wrong, one a request."""

import contextlib
import http.server
import json
import threading

from fakes.rag_app import reply


class Chat(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.seen.append((self.path, self.headers.get("Authorization"), body))
            fault = server.faults.pop(0) if server.faults else None
        said = server.answer(body["messages"][-1]["content"])
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        whole = {"choices": [choice], "usage": server.usage}
        status, value = fault or (200, whole)
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def chat_server(port=0):
    """Serve until the block ends; `seen` holds path, authorisation and body of what came."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Chat) as server:
        server.daemon_threads = True
        server.seen, server.faults, server.lock = [], [], threading.Lock()
        server.usage = {"completion_tokens": 1}
        server.answer = lambda prompt: reply(prompt)["answer"]
        server.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
