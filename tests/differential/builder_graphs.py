"""Makes graphs with the onnxruntime-genai builder, in an environment of its own (`.venv-genai`).

As a program: reads a JSON list of `[source, target, precision]` and prints a JSON list with null
or the builder's refusal for each. As a module: starts that program.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".venv-genai" / "bin" / "python"
Wish = tuple[Path, Path, str]


def build(wishes: Sequence[Wish]) -> list[str | None]:
    """Build `(source, target, precision)` each; return None or why the builder made no graph."""
    if not PYTHON.is_file():
        raise RuntimeError(f"{PYTHON} is not there: run `make test-export`, which builds it")
    asked = json.dumps([[str(part) for part in wish] for wish in wishes])
    done = subprocess.run(
        [str(PYTHON), __file__],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""},
    )
    if done.returncode:
        raise RuntimeError(f"the builder's environment failed: {done.stderr[-2000:]}")
    found: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def _build_here(wishes: Sequence[Sequence[str]]) -> list[str | None]:
    import onnxruntime_genai

    sys.path.insert(0, str(Path(onnxruntime_genai.__file__).parent / "models"))
    import builder

    results: list[str | None] = []
    for source, target, precision in wishes:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                cache = f"{target}.cache"
                options = builder.parse_extra_options(
                    "", source, target, precision, "cpu", cache, []
                )
                builder.create_model("", source, target, precision, "cpu", cache, **options)
            results.append(None)
        except Exception as error:  # noqa: BLE001 told in the table
            shutil.rmtree(target, ignore_errors=True)
            results.append(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return results


if __name__ == "__main__":
    print(json.dumps(_build_here(json.load(sys.stdin))))
