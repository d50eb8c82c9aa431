"""How long a refused request waits: what `Retry-After` says, else pauses that grow to a minute."""

import json

import pytest

from fairgate.domain.errors import ApplicationError
from fairgate.io.http_messages import HttpAnswer, Limits, Request, busy_pause
from fairgate.io.http_service import HttpService

DATE = "Fri, 27 Nov 2026 09:00:00 GMT"


def answer(status, body="", **headers):
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status=status, headers={"date": DATE, **named}, body=text.encode())


def says(message, **more):
    return {"error": {"message": message, **more}}


# The answer, and the least and the most seconds before the second of four attempts.
TOLD = {
    "seconds": (answer(429, retry_after="7"), 7, 7),
    "parts of a second": (answer(429, retry_after=" 7.5 "), 7.5, 7.5),
    "a date": (answer(429, retry_after="Fri, 27 Nov 2026 09:00:30 GMT"), 30, 30),
    "a time in its words": (answer(429, says("Please try again in 386ms.")), 4, 4),
    "no number": (answer(429, retry_after="-1"), 4, 4),
    "no end": (answer(429, retry_after="inf"), 4, 4),
    "a date that is over": (answer(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 0, 0),
    "a second": (answer(503, retry_after="1"), 1, 1),
    "Mistral": (answer(429, {"message": "Requests rate limit exceeded"}), 4, 4),
    "a gateway": (answer(429, {"message": "Too many requests"}), 4, 4),
    "nginx": (answer(429, "<html><head><title>429 Too Many Requests</title></head></html>"), 4, 4),
    "nginx as it comes": (answer(503, "<title>503 Service Temporarily Unavailable</title>"), 1, 1),
    "Anthropic has no room": (answer(529, says("Overloaded", type="overloaded_error")), 1, 1),
}  # fmt: skip
SPENT = {
    "OpenAI": answer(429, says("You exceeded your current quota, please check your plan and billing details.", type="insufficient_quota")),
    "Anthropic": answer(400, says("Your credit balance is too low to access the API.")),
    "DeepSeek": answer(402, says("Insufficient Balance")),
    "OpenAI's limit": answer(429, says("Billing hard limit has been reached", code="billing_hard_limit_reached")),
    "OpenRouter": answer(402, says("Insufficient credits. Add more using …")),
}  # fmt: skip
REQUEST = Request(method="POST", url="http://x")


def test_no_pause_is_shorter_than_a_server_says():
    wrong = []
    for name, (refused, least, most) in TOLD.items():
        pause = busy_pause(REQUEST, refused, 1, 4)
        if pause is None or not least - 1e-9 <= pause <= most + 1e-9:
            wrong.append((name, pause, least))
        last = busy_pause(REQUEST, refused, 3, 4)
        if refused.status == 429 and "retry-after" not in refused.headers and last < 60:
            wrong.append((name, "at last", last))
    assert not wrong


def test_what_is_used_up_for_good_is_asked_for_once_and_told():
    service = HttpService(name="x", limits=Limits(), variables={}, remedy="", hints={400: "other"})
    wrong = []
    for name, refused in SPENT.items():
        with pytest.raises(ApplicationError) as raised:
            service.usable(refused)
        told = "look at its plan and credit" in str(raised.value)
        if busy_pause(REQUEST, refused, 1, 4) is not None or not told:
            wrong.append((name, str(raised.value)))
    assert not wrong


def test_a_wait_that_is_too_long_is_told():
    service = HttpService(name="x", limits=Limits(), variables={}, remedy="")
    with pytest.raises(ApplicationError, match=r"asks to wait 360 s: lower `concurrency`"):
        service.usable(answer(429, says("No."), retry_after="360"))
