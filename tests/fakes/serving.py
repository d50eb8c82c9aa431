"""What servers of the tests share: whole answers with their length, no log, and an end."""

import contextlib
import http.server
import json
import threading


class Answering(http.server.BaseHTTPRequestHandler):
    """A handler that sends bytes as they are and everything else as JSON."""

    protocol_version = "HTTP/1.1"

    def body(self):
        """Return what was sent, as JSON."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def send(self, status, value, headers=None):
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        with contextlib.suppress(OSError):  # of a client that has gone
            self.wfile.write(raw)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(server):
    """Serve until the block ends; `url` says where."""
    with server:
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
