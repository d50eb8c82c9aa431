"""`python -m fairgate`, and the console script: a signal never ends them with a traceback.

While modules are imported nothing is open, so Ctrl-C ends the process at once. While the command
runs it is a KeyboardInterrupt, which closes what is open. Both exit with 130. Once the command is
done it is ignored: the verdict is written, and the exit code is its own. A second one never waits.

A native library that finds no memory may end the process itself, with the status of its choice, as
OpenBLAS does with 1: that is no verdict, and becomes 4.
"""

# No import here that takes long: before `main` Ctrl-C still is Python's.
from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys

_INTERRUPTED = 130
_EXECUTION = 4
_HELD: list[object] = []
"""What C code calls must not be forgotten."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, of this process alone, and return the exit code."""
    for standard in range(3):
        try:
            os.fstat(standard)
        except OSError:  # closed; the next file would take its place, and hold what libraries print
            os.open(os.devnull, os.O_RDWR)
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:  # else whoever starts us has ignored Ctrl-C
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    codes = _own_exit_codes() if arguments is None else []
    codes.append(_run(arguments, is_ours=is_ours))
    return codes[-1]


def _own_exit_codes() -> list[int]:
    """Let the process end with the last of these codes, and with 4 where a library ends it.

    The C library calls what was registered first when all others are done; Python has ended before,
    if it is Python that ends, so it leaves at its own end.
    """
    import ctypes

    codes = [_EXECUTION]

    def gave_up(_: object) -> None:
        os.write(
            2,
            b"fairgate: error: a library ended the process, most likely for lack of memory or "
            b"threads; there is no verdict: allow more (`ulimit -v`, `ulimit -u`), or lower "
            b"--batch-size or --threads\n",
        )
        os._exit(_EXECUTION)

    def leave() -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(codes[-1])

    called_by_c = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(gave_up)
    register = getattr(ctypes.CDLL(None), "__cxa_atexit", None)
    if register is not None and register(called_by_c, None, None) == 0:
        _HELD.append(called_by_c)
        atexit.register(leave)
    return codes


def _run(arguments: list[str] | None, *, is_ours: bool) -> int:
    """Run the command line and return the exit code, that of an interrupt where one came."""
    if not is_ours:
        from fairgate.cli import main as command_line

        return command_line(arguments)
    # The first to be registered is the last to be called: behind it only the interpreter ends.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    from fairgate.cli import main as command_line

    def once_ignored(*_: object) -> None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))

    code = _INTERRUPTED
    sys.unraisablehook = _unraisable
    try:
        signal.signal(signal.SIGINT, _interrupt)
        code = command_line(arguments)
        interrupted = signal.signal(signal.SIGINT, once_ignored) is not _interrupt
    except KeyboardInterrupt:
        interrupted = True
    if interrupted:  # whatever became of it on its way, as in a library that is being imported
        code = _INTERRUPTED
    return code


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    raise KeyboardInterrupt


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """End where an interrupt came while an object was deleted: Python would go on."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        os._exit(_INTERRUPTED)
    sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    sys.exit(main())
