"""How long a refused request waits: never less than a server says, in whatever words it says so."""

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
    "an old form of dates": (answer(429, retry_after="Friday, 27-Nov-26 09:00:30 GMT"), 30, 30),
    "a date as ISO has it": (answer(429, retry_after="2026-11-27T09:00:30Z"), 30, 30),
    "an epoch": (answer(429, retry_after="1795770030"), 30, 30),
    "an epoch in milliseconds": (answer(429, retry_after="1795770030000"), 30, 30),
    "an epoch in words": (answer(429, says("Rate limit reached.", reset_at=1795770030)), 30, 30),
    "a date in words": (answer(429, says("Too many requests, try again at 2026-11-27T09:00:30Z.")), 30, 30),
    "a date in a field": (answer(503, {"message": "Full", "retryAfter": "2026-11-27T09:00:30.000Z"}), 30, 30),
    "a reset in milliseconds": (answer(429, x_ratelimit_remaining="0", x_ratelimit_reset="1795770030000"), 30, 30),
    "a date long ago": (answer(429, says("Your key was reset 2020-01-01.")), 4, 4),
    "a unit": (answer(429, retry_after="20s"), 20, 20),
    "no number": (answer(429, retry_after="-1"), 4, 4),
    "no end": (answer(429, retry_after="inf"), 4, 4),
    "a date that is over": (answer(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 0, 0),
    "a second": (answer(503, retry_after="1"), 1, 1),
    "milliseconds": (answer(429, retry_after_ms="31500"), 31.5, 31.5),
    "few milliseconds": (answer(429, retry_after_ms="20"), 4, 4),
    "Azure's milliseconds": (answer(429, x_ms_retry_after_ms="8000"), 8, 8),
    "Azure's words": (answer(429, says("Requests … have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds. Please go here …")), 26, 26),
    "Azure's gateway": (answer(429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 52 seconds."}), 52, 52),
    "OpenAI's words": (answer(429, says("Rate limit reached for gpt-4o on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s. Visit …", code="rate_limit_exceeded")), 20, 20),
    "OpenAI's milliseconds": (answer(429, says("Rate limit reached … Please try again in 386ms.")), 4, 4),
    "OpenAI's minutes": (answer(429, says("Rate limit reached … Please try again in 1m4.2s.")), 64.2, 64.2),
    "Google's field": (answer(429, [says("You exceeded your current quota, please check your plan and billing details.", details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}])]), 38, 38),
    "a field": (answer(429, {"message": "You are being rate limited.", "retry_after": 12.5}), 12.5, 12.5),
    "a model that loads": (answer(503, {"error": "Model x is currently loading", "estimated_time": 20.0}), 20, 20),
    "OpenAI's reset": (answer(429, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="17s"), 17, 17),
    "that of tokens": (answer(429, x_ratelimit_remaining_requests="9", x_ratelimit_reset_requests="17s", x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="31.5s"), 31.5, 31.5),
    "that of a day": (answer(429, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="6h0m0s"), 60, 60),
    "of nothing used up": (answer(429, x_ratelimit_remaining_requests="9", x_ratelimit_reset_requests="17s"), 4, 4),
    "Anthropic's reset": (answer(429, anthropic_ratelimit_requests_remaining="0", anthropic_ratelimit_requests_reset="2026-11-27T09:00:40Z"), 40, 40),
    "GitHub's reset": (answer(429, x_ratelimit_remaining="0", x_ratelimit_reset="1795770030"), 30, 30),
    "the draft's reset": (answer(429, ratelimit_remaining="0", ratelimit_reset="12"), 12, 12),
    "the draft in one": (answer(429, ratelimit='"default";r=0;t=30'), 30, 30),
    "the older draft in one": (answer(429, ratelimit="limit=9, remaining=0, reset=30"), 30, 30),
    "the draft, with some left": (answer(429, ratelimit='"default";r=5;t=30'), 4, 4),
    "Mistral": (answer(429, {"message": "Requests rate limit exceeded"}), 4, 4),
    "a gateway": (answer(429, {"message": "Too many requests"}), 4, 4),
    "nginx": (answer(429, "<html><head><title>429 Too Many Requests</title></head></html>"), 4, 4),
    "nginx as it comes": (answer(503, "<title>503 Service Temporarily Unavailable</title>"), 1, 1),
    "Anthropic has no room": (answer(529, says("Overloaded", type="overloaded_error")), 1, 1),
    "words about a time long ago": (answer(429, says("Retried after 26 seconds in 2020.")), 4, 4),
    "words that name no time": (answer(429, says("Please try again in a while, after 5 tries.")), 4, 4),
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


def test_a_wait_that_is_told_in_words_is_told_where_it_is_too_long():
    service = HttpService(name="x", limits=Limits(), variables={}, remedy="")
    with pytest.raises(ApplicationError, match=r"asks to wait 360 s: lower `concurrency`"):
        service.usable(answer(429, says("Please try again in 6m0s.")))
