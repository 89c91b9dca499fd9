"""What can go wrong, one class per exit code. A message names the field, what was found and what would be right;
it does not quote data values unless the user asked for them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from anon.core.terminal import one_line

# failures of a machine that has run out of something or is broken; others are of a place that cannot be used
EXHAUSTED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}


class AnonError(Exception):
    """Base of all failures that are answered with a message instead of a traceback."""

    exit_code = 1
    told = False  # whether it was told already, as an event

    def reword(self, change: Callable[[str], str]) -> None:
        """Changes what is said, where it is known only later what may be said."""
        self.args = tuple(change(said) if isinstance(said, str) else said for said in self.args)

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"error": str(self), "problems": [], "exit_code": self.exit_code}

    def values(self) -> dict[str, list[str]]:
        """Return what the message only counts, by what it is: data, for a caller that may show values."""
        return {}


@dataclass(frozen=True)
class Problem:
    """One mistake in the input: the dotted path of the field, what was found there, what would be right."""

    path: str
    found: str
    expected: str
    hint: str = ""

    def __str__(self) -> str:
        path, found, expected, hint = one_line([self.path, self.found, self.expected, self.hint])
        text = f"{path}: found {found}; expected {expected}" if found else f"{path}: {expected}"
        return f"{text} ({hint})" if hint else text


@dataclass
class ConfigError(AnonError):
    """The command line, the config or what it says about the data is wrong (exit 2)."""

    problems: list[Problem] = field(default_factory=list)
    exit_code = 2

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    def reword(self, change: Callable[[str], str]) -> None:
        self.problems = [Problem(*map(change, vars(problem).values())) for problem in self.problems]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"problems": [vars(problem) for problem in self.problems]}

    @classmethod
    def at(cls, path: str, found: str, expected: str, hint: str = "") -> ConfigError:
        return cls([Problem(path, found, expected, hint)])


@dataclass
class UnknownColumns(ConfigError):
    """Columns that a table does not have. `there` are those that it has, which are data where a file has no header."""

    there: list[str] = field(default_factory=list, repr=False)

    def values(self) -> dict[str, list[str]]:
        return {"columns": self.there}


class UnsafeError(AnonError):
    """No safe release was found, or the checked table is not safe (exit 3)."""

    exit_code = 3


class Blocked(UnsafeError):
    """The same because of one sensitive value. `words` have a place `{value}` for what it may be called, which those
    who raise this do not know; until they are told it is `a value`."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words.format(value="a value"))
        self.words, self.code = words, code

    def naming(self, name: str) -> str:
        return self.words.format(value=name)


class VerificationError(AnonError):
    """The written release failed its verification; nothing was published (exit 4)."""

    exit_code = 4


class SourceError(AnonError):
    """The source or the backend could not be used (exit 5)."""

    exit_code = 5


class Lost(SourceError):
    """The cluster that a run worked on is gone; what its search came to is kept for `--resume`."""


class ResourceError(AnonError):
    """Out of memory or disk (exit 6)."""

    exit_code = 6


def of_the_machine(error: BaseException) -> ResourceError | None:
    """Return our exception for a disk or a system that failed wherever it was used; None for any other failure.

    >>> str(of_the_machine(OSError(errno.EIO, "Input/output error", "out")))
    'out: Input/output error'
    """
    if not isinstance(error, OSError) or error.errno not in EXHAUSTED:
        return None
    return ResourceError(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))


class Interrupted(AnonError):
    """Stopped by the user (exit 130)."""

    exit_code = 130
