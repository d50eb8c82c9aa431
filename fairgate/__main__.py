"""`python -m fairgate`, and the console script: a signal never ends them with a traceback.

While modules are imported nothing is open, so Ctrl-C ends the process at once. While the command
runs it is a KeyboardInterrupt, which closes what is open. Both exit with 130. Once the command is
done it is ignored: the verdict is written, and the exit code is its own. A second one never waits.

The command runs in a process of its own, whose parent writes the exit status: the one that the
command has handed over at its end. Whatever else ends that process (a native library without
memory, as OpenBLAS with status 1, or `os._exit(0)` in code that is imported or called) has given no
verdict, and becomes 4.
"""

# No import here that takes long: before `main` Ctrl-C still is Python's.
from __future__ import annotations

import os
import sys

_LIBRARIES = os.path.dirname(os.__file__)  # noqa: PTH120 - nothing is imported yet
if _LIBRARIES in sys.path:
    # The current folder and PYTHONPATH come last: a file there takes no library's place.
    _at = sys.path.index(_LIBRARIES)
    sys.path[:] = [*sys.path[_at:], *sys.path[:_at]]

import atexit  # noqa: E402
import contextlib  # noqa: E402
import signal  # noqa: E402

_INTERRUPTED = 130
_EXECUTION = 4
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; as this process alone, in a child of it."""
    for standard in range(3):
        try:
            os.fstat(standard)
        except OSError:  # closed; the next file would take its place, and hold what libraries print
            os.open(os.devnull, os.O_RDWR)
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:  # else whoever starts us has ignored Ctrl-C
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    if arguments is not None:
        return _run(arguments, is_ours=is_ours)
    reading, writing = os.pipe()
    signals = {signal.SIGINT, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        return _say(f"no process can be started ({error.strerror}): allow more (`ulimit -u`)")
    if child:
        os.close(writing)
        return _code_of(child, reading, signals)
    _call_kernel(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(_EXECUTION)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(reading)
    code = _run(arguments, is_ours=is_ours)
    os.write(writing, bytes([code]))
    return code


def _code_of(child: int, reading: int, signals: set[signal.Signals]) -> int:
    """Wait for the child; return the exit code that it has handed over."""
    _call_kernel(_PR_SET_DUMPABLE, 0)  # what this process was started with is root's alone to read
    ended = 0
    while not ended:
        if _comes_from_a_process(signals):
            os.kill(child, signal.SIGINT)  # a terminal's reaches the child, too
        ended, status = os.waitpid(child, os.WNOHANG)
    os.set_blocking(reading, False)  # a process that the child has left may hold the other end
    with contextlib.suppress(BlockingIOError):
        if code := os.read(reading, 1):
            return code[0]
    status = os.waitstatus_to_exitcode(status)
    if status == _INTERRUPTED:
        return status
    by_signal = f" (signal {-status})" if status < 0 else ""
    return _say(
        f"the process ended before its command{by_signal}: code that it ran or a library ended it, "
        "most likely for lack of memory or threads; there is no verdict: allow more "
        "(`ulimit -v`, `ulimit -u`), or lower --batch-size or --threads"
    )


def _comes_from_a_process(signals: set[signal.Signals]) -> bool:
    """Wait for a signal; return whether it is Ctrl-C and was sent to this process alone."""
    if not hasattr(signal, "sigwaitinfo"):  # macOS, which does not tell
        signal.sigwait(signals)
        return False
    received = signal.sigwaitinfo(signals)
    return received.si_signo == signal.SIGINT and received.si_code <= 0


def _say(problem: str) -> int:
    os.write(2, f"fairgate: error: {problem}\n".encode())
    return _EXECUTION


def _call_kernel(option: int, value: int) -> None:
    """Set an attribute of this process; see prctl(2)."""
    import ctypes

    with contextlib.suppress(AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


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
