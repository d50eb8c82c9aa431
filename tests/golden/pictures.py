"""The README's picture: the page of a red run, by Chromium, in both colour schemes.

`make docs` calls this after the golden reports are written. docs/pictures/drawn.json has the hash
of what was drawn, which a test compares with the golden report.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "tests/golden/expected/regression/report.html"
PICTURES = ROOT / "docs/pictures"
_SCHEMES = {"dark": 0, "light": 1}


def drawn() -> dict[str, str]:
    """Return the hash of the golden report that is drawn."""
    return {REPORT.name: hashlib.sha256(REPORT.read_bytes()).hexdigest()}


def main() -> None:
    """Draw the picture."""
    sys.path.insert(0, str(ROOT / "tests"))
    from node.programs import chromium

    PICTURES.mkdir(exist_ok=True)
    for scheme, number in _SCHEMES.items():
        picture = PICTURES / f"report-{scheme}.png"
        command = [
            *(chromium(), "--headless", "--no-sandbox", "--disable-gpu"),
            *("--disable-background-networking", "--hide-scrollbars"),
            *(f"--blink-settings=preferredColorScheme={number}", f"--screenshot={picture}"),
            *("--window-size=1100,640", REPORT.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        if smaller := which("pngquant"):
            subprocess.run([smaller, "--force", "--ext", ".png", "64", picture], check=True)
    (PICTURES / "drawn.json").write_text(json.dumps(drawn(), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
