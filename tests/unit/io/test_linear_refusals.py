"""A server's refusal is read in time proportional to its length, whatever the server writes."""

import itertools
import json
import signal

from fairgate.io import waits
from fairgate.io.http_messages import HttpAnswer
from fairgate.io.inner_errors import inner_error


def _header(name):
    return lambda text: waits.window_left({name: text, name.replace("reset", "remaining"): "0"})


READERS = {
    "Retry-After": lambda text: waits.retry_after({"retry-after": text}),
    "milliseconds": lambda text: waits.told_wait({"retry-after-ms": text}, b""),
    "a body": lambda text: waits.told_wait({}, text.encode()),
    "a reset": _header("x-ratelimit-reset-requests"),
    "limits in one header": lambda text: waits.window_left({"ratelimit": text}),
    "an inner error": lambda text: inner_error({"message": text}),
    "a nested error": lambda text: inner_error({"response": json.dumps({"error": text})}),
    "what is used up": lambda text: (
        HttpAnswer(status=429, headers={}, body=text.encode()).is_unpaid
    ),
}
BEGINS = ("", "try again in ", "wait for ", '"retryDelay": "', "remaining=0, reset=")
PIECES = (
    "1", "1 ", "1.", "1.1", "1s", "1s ", "1m", "1 m", "ms", "s", " ", "try again in ", "wait for 1s ",
    '"retry_after": ', "too many ", "insufficient", "remaining=0", "a", "\n", "{", '{"error":',
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
