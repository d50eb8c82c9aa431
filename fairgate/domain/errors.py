"""Every exception that FairGate raises on purpose, and the exit code each one ends with.

Third-party exceptions are mapped to these at the boundary (adapters); only the command line
catches them. A message says what, where, the offending value, what was expected and the next step.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """The process's exit status."""

    PASS = 0
    GATE_FAILED = 1
    USAGE = 2
    BASELINE = 3
    EXECUTION = 4
    NO_VERDICT = 5
    INTERRUPTED = 130


class FairGateError(Exception):
    """Base of all deliberate errors; `exit_code` is what the command line exits with."""

    exit_code: ExitCode = ExitCode.EXECUTION


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a user's file: where it is, what was found, what would be right."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """Return `path:line:column: message`, which editors and CI logs turn into a link."""
        return f"{self.path}:{self.line}:{self.column}: {self.message}"


class PolicyError(FairGateError):
    """The policy (or a file it names) cannot be used; carries all problems, not the first."""

    def __init__(self, problems: list[Problem], exit_code: ExitCode = ExitCode.USAGE) -> None:
        """Keep the problems in the order of the file.

        `exit_code` is another one where a run fails by what a valid policy names.
        """
        self.problems = sorted(problems)
        self.exit_code = exit_code
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UsageError(FairGateError):
    """The command was called in a way that cannot work."""

    exit_code = ExitCode.USAGE


class DataError(FairGateError):
    """A corpus, sources, items or recorded file is unreadable or inconsistent."""


class ModelError(FairGateError):
    """A model folder, graph or tokenizer cannot be used, or the model crashed."""


class OutOfMemoryError(ModelError):
    """A model had no room for its rows; fewer at once may fit."""

    def __init__(self, failure: str, next_step: str) -> None:
        """Take what failed, and what to do where nothing is tried again."""
        super().__init__(f"{failure}. {next_step}")
        self.failure = failure


class ApplicationError(FairGateError):
    """The system under test cannot be asked, or what it answers cannot be used."""


class FailedQuestionError(ApplicationError):
    """The system under test fails at one question; it may answer others."""

    def __init__(self, message: str, question: Any, reason: str = "no usable answer") -> None:
        """Take the sentence, the question, and in a few words what came instead of an answer."""
        self.question: Any = question
        self.reason = reason
        super().__init__(message)


class FailedRequestError(FailedQuestionError, ModelError):
    """A generator fails at one prompt; it may answer others."""


class BudgetError(FairGateError):
    """The budget is spent before everything was asked: there is no verdict, the state is kept."""

    exit_code = ExitCode.NO_VERDICT

    def __init__(self, spent: str, *, left: int, next_step: str) -> None:
        """Take which limit is reached and what was asked, and how many questions are left."""
        self.spent, self.left, self.next_step = spent, left, next_step
        questions = "question" if left == 1 else "questions"
        super().__init__(
            f"no verdict: {spent}; left: {left:,} {questions}, and those that follow from the "
            f"answers; {next_step}"
        )

    def with_left(self, more: int) -> BudgetError:
        """Return the error with `more` further questions that were not asked."""
        return BudgetError(self.spent, left=self.left + more, next_step=self.next_step)


class RetrievalError(FairGateError):
    """The retrieval index cannot be built or read."""


class PartlyRetrievedError(FairGateError):
    """A retriever failed in the middle; its rankings before that are not lost."""

    def __init__(self, error: FairGateError, rankings: Mapping[int, Any]) -> None:
        """Keep the failure, and by position of the query its ranking of documents."""
        self.error = error
        self.rankings = rankings
        super().__init__(str(error))


class StoreError(FairGateError):
    """The result store or another file of ours cannot be read or written."""

    @classmethod
    def of_os_error(cls, error: OSError, *, path: object, option: str) -> StoreError:
        """Return why `path` cannot be written and which `option` names another folder or file."""
        if error.errno == errno.EFBIG:
            return cls(
                f"{path}: cannot be written, the file would be larger than this process may write "
                "(`ulimit -f`) or its disk can hold; what was there before is unchanged: raise the "
                f"limit, or name another place with {option}"
            )
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return cls(
                f"{path}: cannot be written, the disk is full; what was there before is "
                f"unchanged: free some space, or name another place with {option}"
            )
        reason = error.strerror or type(error).__name__
        return cls(
            f"{path}: cannot be written ({reason}); what was there before is unchanged: make the "
            f"folder writable, or name another place with {option}"
        )


class BaselineError(FairGateError):
    """The baseline is missing, damaged, incomplete or made under other conditions."""

    exit_code = ExitCode.BASELINE


class ApiError(FairGateError):
    """GitHub refused a request or could not be reached; never a reason to change a verdict."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        """Keep the HTTP status, 0 where there was no answer."""
        self.status = status
        super().__init__(message)
