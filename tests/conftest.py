"""What all tests share."""

import gc
import os
import signal
import socketserver
import sys
from collections import defaultdict
from functools import cached_property
from pathlib import Path

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


def pytest_collection_finish():
    """What was imported and collected stays: looking for garbage in it is a tenth of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk():
    """Files need not outlive a power failure here; whether a flush is asked for has its own test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _models_of_the_package_are_opened_once():
    """Nobody edits them while tests run: what was read of their files serves the next test too."""
    from fairgate.onnx import decoder_session, encoder, model_folder

    ours = Path(model_folder.__file__).parents[1] / "data" / "models"

    def once(read, parts=lambda *given: given):
        kept = {}

        def reading(*given, **options):
            folder, *others = parts(*given)
            key = (folder, *others, *options.items())
            # Tests about opening, and those that take the library away.
            opens = "unit/onnx/" in os.environ.get("PYTEST_CURRENT_TEST", "")
            opens = opens or sys.modules.get("onnxruntime", True) is None
            if opens or not folder.path.is_relative_to(ours):
                return read(*given, **options)
            if key not in kept:
                kept[key] = read(*given, **options)
            return kept[key]

        return reading

    tokens, session = encoder.EncoderTokens, encoder.EncoderSession
    tokenizer = once(tokens._tokenizer.func, lambda one: (one._folder, one._settings))
    opened = once(session._session.func, lambda one: (one._folder, one._device))
    fingerprint = once(model_folder.ModelFolder.fingerprint)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, read in (
            (tokens, "_tokenizer", tokenizer), (session, "_session", opened),
        ):  # fmt: skip
            attribute = cached_property(read)
            attribute.__set_name__(owner, name)
            patch.setattr(owner, name, attribute)
        patch.setattr(model_folder.ModelFolder, "fingerprint", fingerprint)
        patch.setattr(decoder_session, "_opened", once(decoder_session._opened))
        yield
