"""Run the FairGate that stands beside this file, and no other, in the prepared environment.

The action's own folder is on the path only while the package itself is found: afterwards nothing
beside the environment's packages can be imported from it, nor anything from the checkout.
"""

# ruff: noqa: INP001, T201  (a script of its own that talks to the log)
from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])


def main() -> int:
    """Run the command that the action's step names."""
    if not sys.flags.isolated:
        print("::error title=FairGate::start this file with `python -I`")
        return 2
    sys.path.insert(0, ROOT)
    try:
        import fairgate
    finally:
        sys.path.remove(ROOT)
    print(f"fairgate {fairgate.__version__}, Python {sys.version.split()[0]}", flush=True)
    from fairgate.__main__ import main as command_line

    sys.argv[1:1] = ["github"]
    return command_line()


if __name__ == "__main__":
    sys.exit(main())
