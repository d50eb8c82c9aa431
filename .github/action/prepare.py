"""Prepare the interpreter that runs the gate: an environment of its own, outside the checkout.

Runs under `python3 -I` with nothing but the standard library, so that no file of the checkout can
take part. Everything is installed from the lock beside this file, by hash; an index or mirror that
the machine's own pip configuration names can therefore serve nothing else.
"""

# ruff: noqa: INP001, T201, S603  (a script of its own that talks to the log)
from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
OLDEST_DRIVER = 580
"""NVIDIA's first for CUDA 13, for which the locked ONNX Runtime is built."""
HERE = Path(__file__).resolve().parent
EXECUTION, USAGE = 4, 2
DROPPED = ("PIP_", "PYTHON", "UV_", "VIRTUAL_ENV", "CONDA")
"""Prefixes of environment variables that could change what is installed, or run code."""


class PrepareError(Exception):
    """Nothing can be prepared; carries what to say and the exit code."""

    def __init__(self, message: str, code: int = EXECUTION) -> None:
        """Keep both."""
        super().__init__(message)
        self.code = code


def main() -> int:
    """Prepare, and name interpreter and device in the step's outputs."""
    try:
        require_posix()
        device = device_of(os.environ.get("FAIRGATE_DEVICE", ""))
        named = os.environ.get("FAIRGATE_PYTHON", "")
        python, is_hit = (given_python(named), False) if named else own_environment(device)
    except PrepareError as stop:
        message = " ".join(str(stop).split()).replace("%", "%25")
        print(f"::error title=FairGate%3A not prepared::{message}")
        outputs({"outcome": "error", "exit-code": str(stop.code)})
        return stop.code
    outputs({"python": str(python), "device": device, "cache-hit": str(is_hit).lower()})
    return 0


def require_posix() -> None:
    """Raise PrepareError on Windows, where the gate does not run."""
    if os.name == "nt":
        raise PrepareError("Windows runners cannot run the gate: use ubuntu-24.04", USAGE)


def device_of(asked: str) -> str:
    """Return `cpu` or `cuda`: a GPU that is wanted and there, else the CPU."""
    if asked not in ("auto", "cpu", "cuda"):
        raise PrepareError(f"device is {asked[:40]!r}, expected `auto`, `cpu` or `cuda`", USAGE)
    if asked == "cpu":
        return asked
    drivers = drivers_of_gpus()
    old = [one for one in drivers if int(one.split(".")[0]) < OLDEST_DRIVER]
    if drivers and not old:
        return "cuda"
    # The same workflow must work on any runner, but nobody should pay for a GPU unused.
    if old:
        print(
            f"::warning title=FairGate%3A old driver::The NVIDIA driver is {old[0]}, the locked "
            f"ONNX Runtime needs {OLDEST_DRIVER} or newer: the gate runs on the CPU. Update the "
            "runner's driver, or say `device: cpu`"
        )
    elif asked == "cuda":
        print(
            "::warning title=FairGate%3A no GPU::device is `cuda`, but nvidia-smi lists no GPU on "
            "this runner: the gate runs on the CPU. Fix the runner, or say `device: auto`"
        )
    return "cpu"


def drivers_of_gpus() -> list[str]:
    """Return the version of the driver for each GPU that it lists; empty without any."""
    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(ask, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode("ascii", errors="replace").split()
    versions = [line for line in lines if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", line)]
    return versions if done.returncode == 0 else []


def given_python(named: str) -> Path:
    """Return the interpreter that the workflow names; it must have FairGate's dependencies."""
    # A name with a slash is a path from the workspace; this process runs elsewhere.
    place = Path(os.environ.get("GITHUB_WORKSPACE", ""), named) if "/" in named else named
    found = shutil.which(str(place))
    if found is None:
        raise PrepareError(
            f"python is {named[:200]!r}, which is no program; give a path or leave it out", USAGE
        )
    python = Path.cwd() / found
    if in_checkout(python):
        raise PrepareError(
            f"python is {named[:200]!r}, which lies in the checkout, where a pull request can put "
            "another program; make the environment elsewhere, in $RUNNER_TEMP for instance",
            USAGE,
        )
    return python


def own_environment(device: str) -> tuple[Path, bool]:
    """Return the interpreter of the environment for this lock, making it where it is missing.

    The second value says whether nothing had to be fetched.
    """
    base = base_python()
    lock = HERE / f"requirements-{device}.txt"
    target = home() / key(base, lock)
    python = target / "bin" / "python"
    if (target / "complete").is_file() and python.exists():
        print(f"fairgate: environment {target.name} is there")
        return python, True
    print(f"fairgate: making environment {target.name} from {lock.name}", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    try:
        is_hit = install(base, draft, lock, package_cache())
        (draft / "complete").touch()
        adopt(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return python, is_hit


def adopt(draft: Path, target: Path) -> None:
    """Put a finished environment in its place, unless another job was quicker."""
    if target.exists() and not (target / "complete").is_file():
        shutil.rmtree(target, ignore_errors=True)
    try:
        draft.rename(target)
    except OSError:
        if not (target / "complete").is_file():
            raise PrepareError(f"the environment cannot be put into {target.parent}") from None


def base_python() -> str:
    """Return a Python that is new enough: this one, or a newer one on the PATH."""
    if sys.version_info[:2] >= OLDEST:
        return sys.executable
    for minor in (13, 12, 11):
        found = shutil.which(f"python3.{minor}")
        if found:
            return found
    raise PrepareError(
        f"python3 is {platform.python_version()}, FairGate needs 3.11 or newer; put "
        "`actions/setup-python` before this step, or name an interpreter with `python:`"
    )


def home() -> Path:
    """Return where environments live: kept on a machine of one's own, else for this job."""
    kept = os.environ.get("RUNNER_TOOL_CACHE", "")
    if os.environ.get("RUNNER_ENVIRONMENT") == "self-hosted" and kept:
        folder = Path(kept) / "fairgate"
    else:
        temporary = os.environ.get("RUNNER_TEMP", "")
        if not temporary:
            raise PrepareError("RUNNER_TEMP is not set; this is a step of a GitHub workflow")
        folder = Path(temporary) / "fairgate" / "environments"
    if in_checkout(folder):
        raise PrepareError(f"{folder} lies in the checkout, which a pull request can write")
    return folder.absolute()


def in_checkout(path: Path) -> bool:
    """Return whether a path, or a part of the way to it, is inside the workspace."""
    workspace = os.environ.get("GITHUB_WORKSPACE", "")
    if not workspace:
        return False
    top = Path(workspace).resolve()
    named = Path(os.path.normpath(Path.cwd() / path))
    return any(part.resolve().is_relative_to(top) for part in (named, *named.parents))


def key(base: str, lock: Path) -> str:
    """Return a name that changes with the lock, the Python and the machine's kind."""
    said = run([base, "-I", "-c", "import sys; print(sys.version, sys.base_prefix)"], "ask Python")
    digest = hashlib.sha256()
    for part in (lock.read_bytes(), said.encode(), platform.platform().encode()):
        digest.update(hashlib.sha256(part).digest())
    return f"{lock.stem.rpartition('-')[2]}-{digest.hexdigest()[:16]}"


def package_cache() -> Path | None:
    """Return the folder of packages that earlier jobs fetched; None where none is named."""
    named = os.environ.get("FAIRGATE_PACKAGE_CACHE", "")
    if not named:
        return None
    folder = Path(os.environ.get("GITHUB_WORKSPACE", ""), named)
    if in_checkout(folder):
        raise PrepareError(
            f"package-cache is {named[:200]!r}, which lies in the checkout, where a pull request "
            "can put links; name a folder in `${{ runner.temp }}`",
            USAGE,
        )
    return folder


def install(base: str, folder: Path, lock: Path, cache: Path | None = None) -> bool:
    """Make a virtual environment with exactly what the lock lists; say whether `cache` had it all.

    The cache holds packages as they were published and nothing else, so the lock's hashes are those
    of its files: what a pull request's job has put there instead is fetched anew. pip's own cache
    would not do: it accepts wheels by notes that stand in the cache itself.
    """
    run([base, "-I", "-m", "venv", str(folder)], "make a virtual environment")
    pip = [str(folder / "bin" / "python"), "-I", "-m", "pip", "--isolated", "--no-input"]
    quiet = ["--disable-pip-version-check", "--quiet", "--no-cache-dir"]
    strict = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", str(lock)]
    if cache is None:
        run([*pip, "install", *quiet, *strict], f"install {lock.name}")
        return False
    cache.mkdir(parents=True, exist_ok=True)
    offline = [*pip, "install", *quiet, "--no-index", "--find-links", str(cache), *strict]
    try:
        run(offline, f"install {lock.name}")
    except PrepareError:
        print(f"fairgate: {cache} lacks packages of {lock.name}, or has others", flush=True)
    else:
        return True
    run([*pip, "download", *quiet, "--dest", str(cache), *strict], f"fetch {lock.name}")
    run(offline, f"install {lock.name}")
    return False


def run(command: list[str], what: str) -> str:
    """Run a command away from the checkout, with nothing in its environment that steers it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    clean["PYTHONUTF8"] = "1"
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean, cwd="/")
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise PrepareError(f"could not {what} (exit code {done.returncode}): {tail}")
    return done.stdout


def outputs(values: dict[str, str]) -> None:
    """Append to the runner's file of outputs; a value with a line end would be two."""
    path = os.environ.get("GITHUB_OUTPUT")
    if not path:
        return
    with Path(path).open("a", encoding="utf-8") as file:
        for name, value in values.items():
            if "\n" in value or "\r" in value:
                raise PrepareError(f"output {name} has a line end")
            file.write(f"{name}={value}\n")


if __name__ == "__main__":
    sys.exit(main())
