"""What all tests share."""

import gc
import importlib.metadata
import os
import resource
import signal
import socketserver
import sys
import time
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


SECONDS = 2.0
"""Most processor time of a test of `make test`, its child processes included."""
ALLOWED = 1.25
"""Times as much before a test fails: the same work costs more beside a busy neighbour."""
ELSEWHERE = {"whole", "slow", "torch", "benchmark", "systems", "node", "browser", "gfm"}
"""Marks of what `make test` leaves to other targets."""
WORK_SECONDS = 0.075
"""Processor time of `_fixed_work` where `SECONDS` was measured."""


def _processor_seconds():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _fixed_work():
    began = time.process_time()
    sorted(str(number * 7919 % 100_003) for number in range(150_000))
    return time.process_time() - began


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test that takes more processor time than it may; a slower machine's take more."""
    began = _processor_seconds()
    result = yield
    seconds = _processor_seconds() - began
    is_of_make_test = ELSEWHERE.isdisjoint(mark.name for mark in item.iter_markers())
    is_of_make_test &= item.config.getoption("--hypothesis-profile") != "whole"
    if is_of_make_test and seconds > SECONDS * ALLOWED:
        slower = max(1.0, *(_fixed_work() / WORK_SECONDS for _ in range(3)))
        if seconds > SECONDS * ALLOWED * slower:
            pytest.fail(
                f"this test took {seconds:.1f} s of processor time, {seconds / slower:.1f} s at the usual "
                f"speed; a test of `make test` may take {SECONDS:g} s. Make it smaller, share what "
                "it makes, or mark it `whole`",
                pytrace=False,
            )
    return result


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk():
    """Files need not outlive a power failure here; whether a flush is asked for has its own test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _equal_texts_are_parsed_once():
    """Most runs read the policies of others; versions of libraries are the same for all."""
    from fairgate.policy.yaml_text import Builder

    read, version, documents, versions = Builder.read, importlib.metadata.version, {}, {}

    def reading(builder, text):
        key = (builder.path, text)
        if key not in documents:
            complete = read(builder, text)
            if len(text) > 10_000:
                return complete
            documents[key] = (complete, builder.root, builder.problems)
        complete, builder.root, builder.problems = documents[key]
        return complete

    def known_version(name):
        key = (name, *sys.path)
        if key not in versions:
            versions[key] = version(name)
        return versions[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Builder, "read", reading)
        patch.setattr(importlib.metadata, "version", known_version)
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
