"""What all tests share."""

import os
import signal
import socketserver
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine's load than about the code. Everybody's own
# runs look for new examples; in CI a change must not be held up by one that was drawn this time.
for profile, examples in (("default", 20), ("whole", 100)):
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("default")

# A shell lets what it starts in the background ignore interrupts, and so would the commands that
# the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Servers of the standard library send an answer's head and body apart. Held back until the client
# confirms the head, every body would come 40 ms later.
socketserver.StreamRequestHandler.disable_nagle_algorithm = True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave a fixed sample of each walk through a class to `make test`, evenly spread."""
    walks = defaultdict(list)
    for item in items:
        if item.get_closest_marker("walk"):
            walks[item.parent, item.originalname].append(item)
    for walked in walks.values():
        most = walked[0].get_closest_marker("walk").args[0]
        kept = {position * len(walked) // most for position in range(most)}
        for position, item in enumerate(sorted(walked, key=lambda one: one.nodeid)):
            if position not in kept:
                item.add_marker("whole")


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk():
    """Files need not outlive a power failure here; whether a flush is asked for has its own test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield
