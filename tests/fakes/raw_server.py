"""Servers that answer every request with the same bytes, however wrong, and keep what was asked."""

import contextlib
import socketserver
import threading

from fakes.serving import served


class _Request(socketserver.StreamRequestHandler):
    def handle(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        self.server.seen.append(head.decode())
        self.wfile.write(self.server.answer)
        self.server.closing.wait(self.server.keep_open)

    def finish(self):
        with contextlib.suppress(OSError):
            super().finish()


@contextlib.contextmanager
def raw_server(answer, keep_open=0.0):
    """Serve `answer` on this machine; `url` says where, `seen` holds the heads of the requests.

    Connections stay open for `keep_open` seconds after the answer.
    """
    with served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Request)) as server:
        server.answer, server.seen = answer, []
        server.keep_open, server.closing = keep_open, threading.Event()
        server.handle_error = lambda *_: None
        try:
            yield server
        finally:
            server.closing.set()
