"""The README's pictures: a red comment as GitHub shows it, and the page of the same run, by Chromium.

`make docs` calls this after the golden reports are written. docs/pictures/drawn.json has the hashes
of what was drawn, which a test compares with the golden reports.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/expected/regression"
PICTURES = ROOT / "docs/pictures"
_SIZES = {"comment.md": (900, 760), "report.html": (1100, 640)}
_SCHEMES = {"dark": 0, "light": 1}
_GITHUB = """<!doctype html><meta charset="utf-8"><style>
:root { color-scheme: light dark; --text: #1f2328; --back: #fff; --line: #d1d9e0; --soft: #f6f8fa; }
@media (prefers-color-scheme: dark) {
:root { --text: #f0f6fc; --back: #0d1117; --line: #3d444d; --soft: #151b23; } }
body { margin: 16px; padding: 16px 24px; background: var(--back); color: var(--text);
border: 1px solid var(--line); border-radius: 6px;
font: 15px/1.5 system-ui, "Noto Sans", sans-serif, "Noto Color Emoji"; }
h3 { margin: 0 0 12px; font-size: 19px; } code { background: var(--soft); padding: .15em .35em;
border-radius: 5px; font-size: 86%; } table { border-collapse: collapse; }
td, th { border: 1px solid var(--line); padding: 4px 12px; } details { margin-top: 8px; }
</style>"""


def drawn() -> dict[str, str]:
    """Return the hash of each golden report that has pictures."""
    return {name: hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() for name in _SIZES}


def main() -> None:
    """Draw all pictures; without the programs, say so."""
    sys.path.insert(0, str(ROOT / "tests"))
    from node.programs import chromium, github_html

    if not shutil.which("cmark-gfm"):
        sys.exit("docs/pictures are not drawn again: Chromium and cmark-gfm are needed")
    PICTURES.mkdir(exist_ok=True)
    for name, (width, height) in _SIZES.items():
        text = (GOLDEN / name).read_text("utf-8")
        page = _GITHUB + github_html(text) if name.endswith(".md") else text
        with TemporaryDirectory() as folder:
            shown = Path(folder) / "page.html"
            shown.write_text(page, "utf-8")
            for scheme, number in _SCHEMES.items():
                picture = PICTURES / f"{name.partition('.')[0]}-{scheme}.png"
                command = [
                    *(chromium(), "--headless", "--no-sandbox", "--disable-gpu"),
                    *("--disable-background-networking", "--hide-scrollbars"),
                    *(f"--blink-settings=preferredColorScheme={number}", f"--screenshot={picture}"),
                    *(f"--window-size={width},{height}", shown.as_uri()),
                ]
                subprocess.run(command, check=True, capture_output=True, timeout=120)
                if smaller := shutil.which("pngquant"):
                    subprocess.run([smaller, "--force", "--ext", ".png", "64", picture], check=True)
    (PICTURES / "drawn.json").write_text(json.dumps(drawn(), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
