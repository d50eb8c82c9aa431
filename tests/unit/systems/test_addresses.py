"""Each address of a policy is one that a client can ask; `check` says so before a run does."""

import pytest
from pydantic import TypeAdapter, ValidationError

from fairgate.domain.schema import Address
from fairgate.systems.generator import EndpointPart

READS = TypeAdapter(Address)
NONE = (
    "http://127.0.0.1:8000MODEL", "http://127.0.0.1:80000/ask", "http://127.0.0.1:port/ask",
    "http:///ask", "http://:8000/ask", "http://[::1/ask", "http://<host>:8000/ask",
    "http://${HOST}:8000/ask", "https://h/ask?q={{query}}", "http://127.0.0.1:0/", "http://.:1/",
    "http://127.0.0.1:-1/", "http://a,b/ask",
)  # fmt: skip
GOOD = (
    "http://127.0.0.1:8000/ask", "https://api.example.org/v1/chat?x=1#y", "http://[::1]:8000/ask",
    "http://rag-app_1:80", "http://localhost", "https://bücher.example/ask",
)  # fmt: skip


@pytest.mark.parametrize("text", NONE)
def test_what_no_client_can_ask_is_refused(text):
    with pytest.raises(ValidationError, match=r"no address|filled into"):
        READS.validate_python(text)


@pytest.mark.parametrize("text", GOOD)
def test_addresses_are_kept_as_they_are(text):
    assert READS.validate_python(text) == text


def test_what_is_appended_to_an_endpoints_address_is_no_part_of_it():
    with pytest.raises(ValidationError, match="which is appended"):
        EndpointPart(base_url="http://127.0.0.1:8000/v1/chat/completions", model="m")
    assert EndpointPart(base_url="http://127.0.0.1:8000/v1/", model="m")
