"""A server's refusal is read in time proportional to its length, whatever the server writes."""

import itertools
import signal

from fairgate.io.http_messages import HttpAnswer, retry_after
from fairgate.io.inner_errors import inner_error

READERS = {
    "Retry-After": lambda text: retry_after(
        HttpAnswer(status=429, headers={"retry-after": text}, body=b"")
    ),
    "an inner error": lambda text: inner_error({"message": text}),
    "what is used up": lambda text: (
        HttpAnswer(status=429, headers={}, body=text.encode()).is_unpaid
    ),
}
BEGINS = ("", "try again in ")
PIECES = (
    "1", "1 ", "1.", "1.1", "1s ", " ", "try again in ", "too many ", "insufficient", "a", "\n",
    "tokens ", "exceeds ", "{", '{"error":',
)  # fmt: skip
ENDS = ("", "x", ".")
SIZE = 4_000


def _stop(*_):
    raise TimeoutError


def test_no_refusal_takes_long_to_read():
    slow = []
    before = signal.signal(signal.SIGVTALRM, _stop)
    try:
        for name, reader in READERS.items():
            for begin, piece, end in itertools.product(BEGINS, PIECES, ENDS):
                text = begin + piece * (SIZE // len(piece)) + end
                # Of the process's own time; a pattern that backtracks takes hours.
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.5)
                try:
                    reader(text)
                except TimeoutError:
                    slow.append((name, text[:40], end))
                finally:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert not slow
