"""Turn failures of a command into messages on stderr, JSON on stdout and exit codes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import typer

from anon.core import interrupt
from anon.core.terminal import json_text, one_line, say, say_json
from anon.errors import AnonError, ConfigError, Interrupted, ResourceError, UnsafeError, as_resource_error

if TYPE_CHECKING:
    from anon.core.progress import Progress

VALUES_SHOWN = 20  # on a terminal; --json has all of them


@contextmanager
def reporting_progress(as_json: bool, log_json: bool) -> Iterator[Progress]:
    """Report progress on stderr: as bars on a terminal, as lines elsewhere, or as JSON events."""
    from anon.core.progress import Bars, Events, Lines

    kind = Events if log_json else Bars if sys.stderr.isatty() and not as_json else Lines
    with closing(kind()) as progress:
        try:
            yield progress
        except (Exception, KeyboardInterrupt) as error:
            ours = _as_anon_error(error)
            progress.failed(ours)
            if ours is error:
                raise
            raise ours from error


def exit_with(work: Callable[[], int], as_json: bool, debug: bool, show_values: bool) -> None:
    """Run a command and exit with its exit code, or report its failure and exit with that of the failure."""
    with interrupt.listening():
        raise typer.Exit(_exit_code(work, as_json, debug, show_values))


def _exit_code(work: Callable[[], int], as_json: bool, debug: bool, show_values: bool) -> int:
    try:
        return work()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - only --debug shows a traceback
        return report_failure(_as_anon_error(error), as_json, debug, show_values)


def _as_anon_error(error: BaseException) -> AnonError:
    """Return a failure as one that has an exit code. The messages of libraries are not repeated: they may quote
    data."""
    if isinstance(error, AnonError):
        return error
    if isinstance(error, (KeyboardInterrupt, typer.Abort)) or _is_interrupt(error):
        return Interrupted(str(error) if isinstance(error, KeyboardInterrupt) and error.args else interrupt.STOPPED)
    if isinstance(error, MemoryError):
        return ResourceError(f"out of memory: raise limits.memory ({error})")
    if failure := as_resource_error(error):
        return failure
    return AnonError(f"unexpected {type(error).__name__}: this is a bug in anon; run with --debug and report it")


def _is_interrupt(error: BaseException) -> bool:
    """Return whether a failure came from a request to stop: libraries turn KeyboardInterrupt into exceptions of their
    own, also while they are imported."""
    if interrupt.requested():
        return True
    from anon.core.database import is_interrupt

    return isinstance(error, Exception) and is_interrupt(error)


def report_failure(error: AnonError, as_json: bool, debug: bool = False, show_values: bool = False) -> int:
    """Report a failure on stderr, and with --json on stdout; return the exit code."""
    if debug:
        say(traceback.format_exc(), err=True)
    values = {name: listed for name, listed in error.values().items() if listed} if show_values else {}
    if not error.reported:
        has_lines = isinstance(error, ConfigError | UnsafeError)  # each of their lines is already printable
        message = str(error) if has_lines else one_line(str(error))
        say("\n".join([f"error: {message}", *_value_lines(values)]), err=True)
    if as_json:
        say_json(error.to_dict() | values)
    return error.exit_code


def _value_lines(values: dict[str, list[str]]) -> Iterator[str]:
    for name, listed in values.items():
        yield from (f"  {name}: {json_text(value)}" for value in listed[:VALUES_SHOWN])
        if (more := len(listed) - VALUES_SHOWN) > 0:
            yield f"  and {more:,} more; --json lists all"


def exit_code_of_warnings(summary: dict[str, Any], progress: Progress) -> int:
    """Report the warnings of a result as a failure (--strict); return the exit code, 0 if there are none."""
    from anon.runs.result import refuse_warnings

    try:
        refuse_warnings(summary)
    except UnsafeError as error:
        progress.failed(error)
        return report_failure(error, as_json=False)
    return 0
