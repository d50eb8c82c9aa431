"""What all tests share."""

import os
import socketserver

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine's load than about the code. Everybody's own
# runs look for new examples; in CI a change must not be held up by one that was drawn this time.
for profile, repeatable in (("default", False), ("ci", True)):
    settings.register_profile(
        profile,
        deadline=None,
        derandomize=repeatable,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Servers of the standard library send an answer's head and body apart. Held back until the client
# confirms the head, every body would come 40 ms later.
socketserver.StreamRequestHandler.disable_nagle_algorithm = True


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk():
    """Files need not outlive a power failure here; whether a flush is asked for has its own test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield
