"""`python -m fairgate`, and the console script: a signal never ends them with a traceback.

While modules are imported nothing is open, so Ctrl-C ends the process at once. While the command
runs it is a KeyboardInterrupt, which closes what is open. Both exit with 130. Once the command is
done it is ignored: the verdict is written, and the exit code is its own. A second one never waits.
"""

# No import here that takes long: before `main` Ctrl-C still is Python's.
from __future__ import annotations

import atexit
import os
import signal
import sys

_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, of this process alone, and return the exit code."""
    for standard in range(3):
        try:
            os.fstat(standard)
        except OSError:  # closed; the next file would take its place, and hold what libraries print
            os.open(os.devnull, os.O_RDWR)
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        from fairgate.cli import main as command_line  # whoever starts us has ignored Ctrl-C

        return command_line(arguments)
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
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
