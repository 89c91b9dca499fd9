"""What all commands share: options, and how a failure becomes a message and an exit code. Results go to stdout,
messages to stderr."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer

from anon import interrupt
from anon.errors import AnonError, ConfigError, Interrupted

STOPPED = "interrupted; nothing was published"
VALUES_SHOWN = 20  # on a terminal; --json has all of them

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else there.")]
ShowValues = Annotated[bool, typer.Option("--show-values", help="Name data values in messages and results.")]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings count as failures (exit 3, nothing published).")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Progress as JSON events on stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Tracebacks.")]


def guarded(work: Callable[[], int], as_json: bool, debug: bool, show_values: bool = False) -> None:
    """Runs a command and turns failures into messages and exit codes."""
    interrupt.listen()
    try:
        code = work()
    except KeyboardInterrupt:
        code = _failed(Interrupted(STOPPED), as_json, debug, show_values)
    except AnonError as error:
        code = _failed(error, as_json, debug, show_values)
    except MemoryError as error:
        from anon.errors import ResourceError

        full = ResourceError(f"out of memory: raise limits.memory ({error})")
        code = _failed(full, as_json, debug, show_values)
    except Exception as error:
        from anon.database import is_interrupt

        found: AnonError = Interrupted(STOPPED)
        if not is_interrupt(error):
            found = AnonError(f"unexpected {type(error).__name__}: a fault of anon; run with --debug and report it")
        code = _failed(found, as_json, debug, show_values)
    raise typer.Exit(code)


def _failed(error: AnonError, as_json: bool, debug: bool, show_values: bool) -> int:
    if debug:
        traceback.print_exc()
    missing = _missing(error) if show_values else []
    print("\n".join([f"error: {error}", *_listed(missing)]), file=sys.stderr)
    if as_json:
        problems = [vars(problem) for problem in error.problems] if isinstance(error, ConfigError) else []
        told: dict[str, Any] = {"error": str(error), "problems": problems, "exit_code": error.exit_code}
        print(json.dumps(told | ({"missing": missing} if missing else {})))
    return error.exit_code


def _missing(error: AnonError) -> list[str]:
    """The values that a hierarchy lacks, where that is what went wrong."""
    from anon.hierarchy import HierarchyGap

    return error.missing if isinstance(error, HierarchyGap) else []


def _listed(values: list[str]) -> list[str]:
    lines = [f"  missing: {json.dumps(value, ensure_ascii=False)}" for value in values[:VALUES_SHOWN]]
    more = len(values) - VALUES_SHOWN
    return [*lines, f"  and {more:,} more; --json lists all"] if more > 0 else lines
