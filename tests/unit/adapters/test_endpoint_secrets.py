"""A key travels encrypted, or not at all."""

import pytest

from fairgate.adapters.embedding_endpoint import EndpointEmbedder
from fairgate.domain.errors import UsageError


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/v1",
        "http://example.org:443/v1",
        "http://10.0.0.1/v1",
        "http://0.0.0.0/v1",
        "http://localhost.example.org/v1",
        "http://[::ffff:8.8.8.8]/v1",
        "http://127.0.0.1.example.org/v1",
        "http://[bad/v1",
        "http:///v1",
    ],
)
def test_no_key_goes_over_an_open_line(url):
    with pytest.raises(UsageError, match="https://"):
        EndpointEmbedder(url, "m", api_key_env="KEY")
    EndpointEmbedder(url, "m")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/v1",
        "http://localhost:8080/v1",
        "http://LOCALHOST/v1",
        "http://127.0.0.1:9/v1",
        "http://127.8.8.8/v1",
        "http://[::1]:9/v1",
    ],
)
def test_https_and_this_machine_may_have_it(url):
    assert EndpointEmbedder(url, "m", api_key_env="KEY").fingerprint.startswith("endpoint/1:")
