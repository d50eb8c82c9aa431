"""An application that is a program: a JSON line a question on its input, one a reply on its output.

The program is started once, or a few times side by side, and each is asked one question at a time;
it may be written in any language. A reply repeats the question's `id`, so that a line too many is
never taken for the next answer. The program has the variables that the policy names and what every
program needs, nothing else. Its messages belong on stderr, whose end is shown where it fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import shlex
import signal
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag

from fairgate.domain.errors import ApplicationError, FailedQuestionError
from fairgate.domain.executions import Execution, Question, usage_of
from fairgate.domain.schema import Access, ByShape, Strict, Text, way_of
from fairgate.domain.wording import concealed, quoted
from fairgate.io.machine import last_words, program_environment
from fairgate.io.replies import ReplyPaths, parsed_json, reply_of, without_secrets
from fairgate.policy.checks import NOT_STARTED
from fairgate.systems.application import ApplicationKind, EmbedderOfReplies
from fairgate.systems.budget import BudgetField, Meter
from fairgate.systems.labelling import LabelsField
from fairgate.systems.resources import Resources
from fairgate.systems.revisions import RevisionField, resolved, revision_text
from fairgate.systems.service_fields import MOST_BYTES, TAKES, OwnResponsePaths, Seconds, Variable

if TYPE_CHECKING:
    import asyncio

_VERSION = "command-1"
"""Part of the fingerprint: raise it when the same answers would be read otherwise."""
_SECONDS_TO_END = 2.0
Arguments = Annotated[list[Text], Field(min_length=1)]


class CommandAsked(Strict):
    """How a program is started and asked."""

    run: Arguments = Field(description="Program and arguments; run without a shell.")
    env: list[Variable] = Field(
        default_factory=list,
        description="NAMES of the environment variables that it is given.",
    )
    revision: RevisionField = None
    timeout: Seconds = 120.0
    processes: Annotated[int, Field(ge=1, le=64)] = Field(
        default=1, description="How many processes of the program run in parallel."
    )

    @property
    def accesses(self) -> list[Access]:
        """Return the program, with each variable that it is given."""
        variables: list[str | None] = [*self.env] or [None]
        way = way_of(self, named=["env"])
        return [Access("starts", self.line, variable, way) for variable in variables]

    @property
    def line(self) -> str:
        """Return program and arguments as a shell would be given them."""
        return shlex.join(self.run)

    @property
    def shown(self) -> str:
        """Return program and arguments."""
        return f"command {self.line}"

    def opened(self, paths: ReplyPaths, resources: Resources, meter: Meter) -> LineApplication:
        """Return an application that is asked line by line; the program is not started yet."""
        runtime = resources.runtime.under_test
        return LineApplication(resolved(self, runtime), paths, runtime.root, meter)


class CommandPart(CommandAsked):
    """An application that is a program."""

    response: OwnResponsePaths = Field(
        default_factory=OwnResponsePaths, description="The places of answer and documents."
    )
    takes: list[Literal["documents", "changed", "turns"]] = Field(
        default_factory=list,
        description=TAKES,
    )

    @property
    def takes_turns(self) -> bool:
        """Return whether it holds conversations."""
        return "turns" in self.takes


class CommandPolicy(ApplicationKind):
    """An application that is a program, with JSON lines on its input and output."""

    id: ClassVar[str] = "command"
    keys: ClassVar[tuple[str, ...]] = ("command",)

    command: Annotated[
        Annotated[Arguments, Tag("<list>")] | Annotated[CommandPart, Tag("<mapping>")], ByShape
    ] = Field(description="Program and arguments, or a mapping.")
    embedder: EmbedderOfReplies = None
    budget: BudgetField = None
    labels: LabelsField = None

    @property
    def part(self) -> CommandPart:
        """Return the mapping that arguments alone stand for."""
        return CommandPart(run=self.command) if isinstance(self.command, list) else self.command


Done = queue.SimpleQueue[tuple[int, Execution] | BaseException | None]
"""Replies, failures, and None for each process that has ended."""


class LineApplication:
    """A port `Application`: a line in, a line out."""

    def __init__(
        self, program: CommandAsked, paths: ReplyPaths, folder: Path, meter: Meter
    ) -> None:
        """Take the program, and the folder that it is started in; nothing is started yet."""
        self.name = f"the program {quoted(program.line)}"
        self.revision = revision_text(program.revision)
        self._program = program
        self._paths = paths
        self._folder = folder
        self._meter = meter
        self._secrets: list[str] = []

    @property
    def fingerprint(self) -> str:
        """Identify command, mapping and revision."""
        program = self._program
        parts = (_VERSION, program.run, sorted(program.env), repr(self._paths))
        return hashlib.sha256(json.dumps([*parts, self.revision]).encode()).hexdigest()

    def ask(self, questions: Sequence[Question]) -> Generator[tuple[int, Execution], None, None]:
        """Yield `(position in questions, reply)` as they come.

        Raises ApplicationError where the program ends, is silent too long, or says what is no
        reply, UsageError where a variable is not set. When this returns, the program has ended.
        """
        from fairgate.io.event_loop import Group

        environment = program_environment(self._program.env)
        self._secrets = [value for name in self._program.env if (value := environment[name])]
        todo = iter(enumerate(questions))
        done: Done = queue.SimpleQueue()
        group = Group()
        try:
            running = min(self._program.processes, len(questions))
            for _ in range(running):
                work = group.submit(self._work(todo, done, environment))
                # Also where it failed: the caller would wait for ever otherwise.
                work.add_done_callback(
                    lambda ended: done.put(None if ended.cancelled() else ended.exception())
                )
            while running:
                event = done.get()
                if isinstance(event, BaseException):
                    raise event
                if event is None:
                    running -= 1
                else:
                    yield event
            group.finish()
        finally:
            group.end()

    async def _work(
        self, todo: Iterator[tuple[int, Question]], done: Done, environment: Mapping[str, str]
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
            except FailedQuestionError as error:
                words = last_words(messages, self._secrets)
                end = f"; the end of its stderr: {words}" if words else ""
                done.put(FailedQuestionError(f"{error}{end}", error.question, error.reason))
            finally:
                await _ended(process)

    async def _started(
        self, environment: Mapping[str, str], messages: IO[bytes]
    ) -> asyncio.subprocess.Process:
        import asyncio

        try:
            return await asyncio.create_subprocess_exec(
                *self._program.run,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=messages,
                cwd=self._folder,
                env=dict(environment),
                start_new_session=True,
                limit=MOST_BYTES,
            )
        except (OSError, ValueError) as error:
            raise ApplicationError(NOT_STARTED.format(self.name, error)) from error

    async def _reply(
        self, process: asyncio.subprocess.Process, position: int, question: Question
    ) -> Execution:
        import asyncio

        replies: list[Execution] = []
        try:
            for turn in question.turns(replies):
                number = f"{position}.{len(replies) + 1}" if question.before else position
                line = {"id": number, **(turn if question.before else question).as_dict()}
                async with asyncio.timeout(self._program.timeout):
                    value = await self._exchanged(process, line)
                self._meter.add(usage_of(value))
                replies.append(without_secrets(reply_of(value, self._paths), self._secrets))
            return replies[-1]
        except TimeoutError:
            reason, text = "no answer in time", f"no reply within {self._program.timeout:g} s"
        except (ConnectionError, EOFError):
            reason = f"exit code {await process.wait()}"
            text = f"it ended with {reason} instead of a reply"
        except ApplicationError as error:
            reason, text = "no usable answer", f"{error}; only replies belong on stdout"
        about = f"{self.name}, asked {question.named(replies)}"
        message = f"{about}: {concealed(text, self._secrets)}"
        raise FailedQuestionError(message, question, reason) from None

    async def _exchanged(self, process: asyncio.subprocess.Process, message: dict[str, Any]) -> Any:
        """Write a line and return the value of the next one, which repeats its `id`."""
        writer, reader = process.stdin, process.stdout
        if writer is None or reader is None:
            raise AssertionError  # both are pipes
        writer.write(json.dumps(message).encode() + b"\n")
        await writer.drain()
        try:
            line = await reader.readline()
        except ValueError:
            raise ApplicationError(f"a line of more than {MOST_BYTES:,} bytes") from None
        if not line.endswith(b"\n"):
            raise EOFError
        value = parsed_json(line)
        if not isinstance(value, dict) or value.get("id") != message["id"]:
            raise ApplicationError(
                f"the line is no reply to it; expected an object with `id` {message['id']}, which "
                "repeats the question's: one line for each question, in their order"
            )
        return value


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End the program and what it started in its session: by the end of its input, then by force.

    Cancelled, it does not wait: the program is killed at once.
    """
    import asyncio

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
