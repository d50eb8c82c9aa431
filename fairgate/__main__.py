"""`python -m fairgate`, and the console script."""

from __future__ import annotations

import sys

from fairgate.cli import main

if __name__ == "__main__":
    sys.exit(main())
