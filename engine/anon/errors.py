"""The exceptions of the engine, one class per exit code. A message names the field, what was found and what is
expected; it does not quote data values unless the user asked for them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from anon.core.terminal import one_line

# errors of a machine that is out of a resource or broken; any other error means that a path cannot be used
EXHAUSTED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}


class AnonError(Exception):
    """The base of all failures that the command reports with a message instead of a traceback."""

    exit_code = 1
    reported = False  # whether it was reported already, as an event

    def reword(self, change: Callable[[str], str]) -> None:
        """Apply `change` to the texts of the message, for callers that know only later what it may contain."""
        self.args = tuple(change(text) if isinstance(text, str) else text for text in self.args)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {"error": str(self), "problems": [], "exit_code": self.exit_code}

    def values(self) -> dict[str, list[str]]:
        """Return the data values that the message only counts, by kind, for a caller that may show values."""
        return {}


@dataclass(frozen=True)
class Problem:
    """One mistake in the input: the dotted path of the field, what was found there and what is expected. `excerpt` has
    the lines of a file that show it."""

    path: str
    found: str
    expected: str
    hint: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        path, found, expected, hint = one_line([self.path, self.found, self.expected, self.hint])
        text = f"{path}: found {found}; expected {expected}" if found else f"{path}: {expected}"
        lines = [f"  {one_line(line)}" for line in self.excerpt.split("\n") if self.excerpt]
        return "\n".join([f"{text} ({hint})" if hint else text, *lines])

    def to_dict(self) -> dict[str, str]:
        """Return the fields; the excerpt only where there is one."""
        return {name: value for name, value in vars(self).items() if value or name != "excerpt"}


@dataclass
class ConfigError(AnonError):
    """A mistake in the command line, in the config or in what it states about the data (exit 2)."""

    problems: list[Problem] = field(default_factory=list)
    exit_code = 2

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    def reword(self, change: Callable[[str], str]) -> None:
        self.problems = [Problem(*map(change, vars(problem).values())) for problem in self.problems]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"problems": [problem.to_dict() for problem in self.problems]}

    @classmethod
    def at(cls, path: str, found: str, expected: str, hint: str = "") -> ConfigError:
        """Return the error with one problem."""
        return cls([Problem(path, found, expected, hint)])


@dataclass
class UnknownColumns(ConfigError):
    """Columns that a table does not have. `available` are the columns that it has; where a file has no header, their
    names are data."""

    available: list[str] = field(default_factory=list, repr=False)

    def values(self) -> dict[str, list[str]]:
        return {"columns": self.available}


class UnsafeError(AnonError):
    """The search found no safe release, or the checked table is not safe (exit 3)."""

    exit_code = 3


class BlockedByValue(UnsafeError):
    """No safe release because of one sensitive value. `template` has a placeholder `{value}` for its name, which the
    code that raises this does not know; until a caller supplies it, the message says `a value`."""

    def __init__(self, template: str, code: int) -> None:
        super().__init__(template.format(value="a value"))
        self.template, self.code = template, code

    def message_naming(self, name: str) -> str:
        """Return the message with the name of the value."""
        return self.template.format(value=name)


class VerificationError(AnonError):
    """The written release failed verification; nothing was published (exit 4)."""

    exit_code = 4


class SourceError(AnonError):
    """The source or the backend could not be used (exit 5)."""

    exit_code = 5


class ClusterLost(SourceError):
    """The cluster of a run is gone; the result of its search is kept for `--resume`."""


class ResourceError(AnonError):
    """Out of memory or disk (exit 6)."""

    exit_code = 6


def as_resource_error(error: BaseException) -> ResourceError | None:
    """Return a ResourceError if a disk or the system failed, wherever it was used; None for any other failure.

    >>> str(as_resource_error(OSError(errno.EIO, "Input/output error", "out")))
    'out: Input/output error'
    """
    if not isinstance(error, OSError) or error.errno not in EXHAUSTED:
        return None
    return ResourceError(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))


class Interrupted(AnonError):
    """Stopped by the user (exit 130)."""

    exit_code = 130
