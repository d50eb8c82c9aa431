"""An application that is a program: a JSON line a question on its input, one a reply on its output.

The program is started once, or a few times side by side, and each is asked one question at a time;
it may be written in any language. A reply repeats the question's `id`, so that a line too many is
never taken for the next answer. The program has the variables that the policy names and what every
program needs, nothing else. Its messages belong on stderr, whose end is shown where it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import shlex
import signal
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from fairgate.domain.applications import Question, Reply, Used, not_counted, usage_of
from fairgate.domain.errors import ApplicationError
from fairgate.domain.wording import concealed, quoted
from fairgate.io.event_loop import Group
from fairgate.io.processes import last_words, program_environment
from fairgate.io.replies import ReplyPaths, parsed_json, reply_of, without_secrets

_VERSION = "command-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
_MOST_BYTES = 16 << 20
_SECONDS_TO_END = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is started, and how it is asked."""

    command: tuple[str, ...]
    folder: Path
    env: tuple[str, ...] = ()
    """NAMES of the variables that it is given besides those of every program."""
    paths: ReplyPaths
    timeout: float
    """Seconds for one reply; for the first one the start of the program is part of it."""
    processes: int = 1
    revision: str | None = None


class LineApplication:
    """A port `Application`: a line in, a line out."""

    def __init__(self, program: Program, *, used: Used = not_counted) -> None:
        """Take the program; nothing is started yet."""
        self._program = program
        self._used = used

    @property
    def name(self) -> str:
        """Say what is started."""
        return f"the program {quoted(shlex.join(self._program.command))}"

    @property
    def revision(self) -> str | None:
        """Return what the user changes when the program changes."""
        return self._program.revision

    @property
    def fingerprint(self) -> str:
        """Identify command, mapping and revision."""
        program = self._program
        parts = (_VERSION, program.command, sorted(program.env), repr(program.paths))
        return hashlib.sha256(json.dumps([*parts, program.revision]).encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply], None, None]:
        """Yield `(position in questions, reply)` as they come.

        Raises ApplicationError where the program ends, is silent too long, or says what is no
        reply, UsageError where a variable is not set. When this returns, the program has ended.
        """
        environment = program_environment(self._program.env)
        secrets = [value for name, value in environment.items() if name in self._program.env]
        todo = iter(enumerate(questions))
        done: Done = queue.SimpleQueue()
        group = Group()
        try:
            running = min(self._program.processes, len(questions))
            for _ in range(running):
                run = _Run(self.name, self._program, secrets, self._used)
                work = group.submit(run.work(todo, done, environment))
                work.add_done_callback(lambda ended: _pass_on(ended, done))
            while running:
                found = done.get()
                if isinstance(found, BaseException):
                    raise found
                if found is None:
                    running -= 1
                else:
                    yield found
            group.finish()
        finally:
            group.end()


Done = queue.SimpleQueue[tuple[int, Reply] | BaseException | None]
"""Replies, failures, and None for each process that has ended."""


def _pass_on(ended: Future[None], done: Done) -> None:
    """Tell the caller that a process ended, or its error: it would wait for ever otherwise."""
    done.put(None if ended.cancelled() else ended.exception())


class _Run:
    """One process of the program, on the event loop."""

    def __init__(self, name: str, program: Program, secrets: Sequence[str], used: Used) -> None:
        self._name = name
        self._used = used
        self._program = program
        self._secrets = [secret for secret in secrets if secret]

    async def work(
        self,
        todo: Iterator[tuple[int, Question]],
        done: Done,
        environment: Mapping[str, str],
    ) -> None:
        """Answer questions, shared with other processes, until there are none, or one fails."""
        with tempfile.TemporaryFile() as messages:
            try:
                process = await self._started(environment, messages)
            except ApplicationError as error:
                done.put(error)
                return
            try:
                for position, question in todo:
                    done.put((position, await self._reply(process, position, question)))
            except ApplicationError as error:
                reason = f"{error}{self._last_words(messages)}"
                done.put(ApplicationError(reason))
            finally:
                await _ended(process)

    async def _started(
        self, environment: Mapping[str, str], messages: IO[bytes]
    ) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self._program.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=messages,
                cwd=self._program.folder,
                env=dict(environment),
                start_new_session=True,
                limit=_MOST_BYTES,
            )
        except (OSError, ValueError) as error:
            raise ApplicationError(
                f"{self._name} cannot be started ({error}); check `command`: an executable file, "
                "found from the folder that relative paths start at"
            ) from error

    async def _reply(
        self, process: asyncio.subprocess.Process, position: int, question: Question
    ) -> Reply:
        about = f"{self._name}, asked the question {quoted(question.query)}"
        try:
            async with asyncio.timeout(self._program.timeout):
                value = await self._exchanged(process, {"id": position, **asdict(question)})
            _require_reply(value, position)
            self._used(usage_of(value))
            return without_secrets(reply_of(value, self._program.paths), self._secrets)
        except TimeoutError:
            text = f"no reply within {self._program.timeout:g} s"
        except (ConnectionError, EOFError):
            text = f"it ended with exit code {await process.wait()} instead of a reply"
        except ApplicationError as error:
            text = f"{error}; only replies belong on stdout"
        raise ApplicationError(f"{about}: {concealed(text, self._secrets)}") from None

    async def _exchanged(self, process: asyncio.subprocess.Process, asked: object) -> Any:
        """Write a line and return the value of the next one."""
        writer, reader = process.stdin, process.stdout
        if writer is None or reader is None:
            raise AssertionError  # both are pipes
        writer.write(json.dumps(asked).encode() + b"\n")
        await writer.drain()
        try:
            line = await reader.readline()
        except ValueError:
            raise ApplicationError(f"a line of more than {_MOST_BYTES:,} bytes") from None
        if not line.endswith(b"\n"):
            raise EOFError
        return parsed_json(line)

    def _last_words(self, messages: IO[bytes]) -> str:
        """Return the end of what the program wrote to stderr, as a part of a sentence."""
        message = last_words(messages, self._secrets)
        return f"; the end of its stderr: {message}" if message else ""


def _require_reply(value: Any, position: int) -> None:
    if not isinstance(value, dict) or value.get("id") != position:
        raise ApplicationError(
            f"the line is no reply to it; expected an object with `id` {position}, which repeats "
            "the question's: one line for each question, in their order"
        )


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End the program and what it started in its session: by the end of its input, then by force.

    Cancelled, it does not wait: the program is killed at once.
    """
    try:
        if process.stdin is not None:
            process.stdin.close()
        for sent in (None, signal.SIGTERM):
            _signal_all(process, sent)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SECONDS_TO_END):
                    await process.wait()
                    return
    finally:
        _signal_all(process, signal.SIGKILL)
        await process.wait()


def _signal_all(process: asyncio.subprocess.Process, sent: signal.Signals | None) -> None:
    if sent is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sent)
