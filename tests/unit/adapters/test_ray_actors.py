"""What is wrong with a Ray cluster is said before Ray is imported: it would try for minutes."""

import importlib.util
import socket

import pytest
from fakes.workers import scripted_side

from fairgate.adapters.ray_actors import RayActors
from fairgate.domain.errors import UsageError, WorkerError


def installed(monkeypatch, *, is_there):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: (object() if is_there else None) if name == "ray" else find(name),
    )


def test_without_ray_the_message_says_what_to_install(monkeypatch):
    installed(monkeypatch, is_there=False)
    with pytest.raises(UsageError, match=r"pip install 'fairgate\[ray\]'"):
        RayActors(2, 1, scripted_side, "local")


ADDRESSES = [
    "",
    "head",
    "ray://head:10001",
    "head:0",
    "head:65536",
    "head:x",
    ":6379",
    "auto",
    "a/b:1",
]


@pytest.mark.parametrize("address", [*ADDRESSES, "head:\u0663", "h:1\x1b[2J", "x" * 10_000])
def test_what_is_no_address_is_refused(monkeypatch, address):
    installed(monkeypatch, is_there=True)
    with pytest.raises(UsageError, match="expected HOST:PORT of the cluster's head") as error:
        RayActors(2, 1, scripted_side, address)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 400


def test_an_address_where_nothing_listens_is_refused_at_once(monkeypatch):
    installed(monkeypatch, is_there=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    executor = RayActors(2, 1, scripted_side, f"127.0.0.1:{port}")
    with pytest.raises(WorkerError, match=r"nothing can be reached there \(Connection refused\)"):
        executor.start()
    executor.close()


@pytest.mark.parametrize("host", ["nowhere.invalid", "[::1]", "a..b", "\u00fc" * 70])
def test_a_name_that_is_none_is_refused(monkeypatch, host):
    installed(monkeypatch, is_there=True)
    executor = RayActors(2, 1, scripted_side, f"{host}:1")
    with pytest.raises(WorkerError, match="nothing can be reached there"):
        executor.start()
