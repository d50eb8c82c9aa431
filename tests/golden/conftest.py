"""Golden files: `pytest tests/golden --update-golden` rewrites them; review the diff."""

from __future__ import annotations

from pathlib import Path

import pytest

EXPECTED = Path(__file__).parent / "expected"


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write what the code produces instead of comparing with it",
    )


@pytest.fixture
def check_golden(request):
    """Return a function that compares a text with its golden file or a page, byte by byte."""
    update = request.config.getoption("--update-golden", default=False)

    def check(name, text):
        path = EXPECTED / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        assert path.exists(), f"no golden file {path}; run `make docs`"
        assert text == path.read_bytes().decode(), f"{path} differs; `make docs` if meant"

    return check
