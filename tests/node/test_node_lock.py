"""The lock of Node's packages: exact, whole, and silent about where packages come from."""

import json
import re

from node.programs import FOLDER

PACKAGE = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
LOCK = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]


def test_the_lock_holds_what_the_package_asks_for():
    for kind in ("devDependencies", "optionalDependencies"):
        assert LOCK[""][kind] == PACKAGE[kind]
        for name, version in PACKAGE[kind].items():
            assert re.fullmatch(r"\d+\.\d+\.\d+", version)
            assert LOCK[f"node_modules/{name}"]["version"] == version


def test_every_package_is_locked_by_its_hash_and_names_no_registry():
    for path, entry in LOCK.items():
        assert path == "" or entry["integrity"].startswith("sha512-")
        assert "resolved" not in entry
