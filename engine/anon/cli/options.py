"""What all commands share: options, and how a failure becomes a message and an exit code. Results go to stdout,
messages to stderr."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from anon.core import interrupt
from anon.core.terminal import json_text, one_line, say, say_json
from anon.errors import AnonError, ConfigError, Interrupted, ResourceError, UnsafeError, as_resource_error

if TYPE_CHECKING:
    from anon.core.progress import Progress

# The class behind `typer.BadParameter`; versions of typer keep it in different places.
UsageError: Any = typer.BadParameter.__base__
VALUES_SHOWN = 20  # on a terminal; --json has all of them

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else there.")]
ShowValues = Annotated[bool, typer.Option("--show-values", help="Name data values in messages and results.")]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings count as failures (exit 3, nothing published).")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Progress as JSON events on stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Tracebacks.")]


class Group(TyperGroup):
    """Commands whose help does not say of a flag that it takes a value, which some versions of typer do."""

    def get_params(self, ctx: Any) -> Any:
        return _plain(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        _plain([] if command is None else command.get_params(ctx))
        return command


def _plain(options: list[Any]) -> list[Any]:
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


class Commands(Group):
    """Commands that answer what goes wrong before they begin, a mistake in usage or Ctrl-C, as they answer every
    failure: with --json by one JSON object on stdout."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        as_json = "--json" in args
        with _told(as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[__name__] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        with _told(ctx.meta[__name__]):
            return super().invoke(ctx)


@contextmanager
def _told(as_json: bool) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        if as_json:
            mistake = ConfigError.at("command line", error.format_message(), "what --help lists")
            say_json(mistake.to_dict())
        error.message = one_line(error.message)
        raise
    except KeyboardInterrupt:
        raise typer.Exit(_failed(Interrupted(interrupt.STOPPED), as_json, False, False)) from None


@contextmanager
def telling(as_json: bool, log_json: bool) -> Iterator[Progress]:
    """Progress on stderr: bars on a terminal, lines elsewhere, or JSON events."""
    from anon.core.progress import Bars, Events, Lines

    kind = Events if log_json else Bars if sys.stderr.isatty() and not as_json else Lines
    with closing(kind()) as progress:
        try:
            yield progress
        except (Exception, KeyboardInterrupt) as error:
            ours = _in_our_words(error)
            progress.failed(ours)
            if ours is error:
                raise
            raise ours from error


def guarded(work: Callable[[], int], as_json: bool, debug: bool, show_values: bool = False) -> None:
    """Runs a command and turns failures into messages and exit codes."""
    with interrupt.listening():
        raise typer.Exit(_exit_code(work, as_json, debug, show_values))


def _exit_code(work: Callable[[], int], as_json: bool, debug: bool, show_values: bool) -> int:
    try:
        return work()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nobody but --debug gets a traceback
        return _failed(_in_our_words(error), as_json, debug, show_values)


def _in_our_words(error: BaseException) -> AnonError:
    """A failure as one that has an exit code. What libraries say is not repeated: it may quote data."""
    if isinstance(error, AnonError):
        return error
    if isinstance(error, (KeyboardInterrupt, typer.Abort)) or _is_interrupt(error):
        return Interrupted(str(error) if isinstance(error, KeyboardInterrupt) and error.args else interrupt.STOPPED)
    if isinstance(error, MemoryError):
        return ResourceError(f"out of memory: raise limits.memory ({error})")
    if failure := as_resource_error(error):
        return failure
    return AnonError(f"unexpected {type(error).__name__}: a fault of anon; run with --debug and report it")


def _is_interrupt(error: BaseException) -> bool:
    """Whether a failure came of a request to stop: libraries turn KeyboardInterrupt into failures of their own, also
    while they are imported."""
    if interrupt.requested():
        return True
    from anon.core.database import is_interrupt

    return isinstance(error, Exception) and is_interrupt(error)


def _failed(error: AnonError, as_json: bool, debug: bool, show_values: bool) -> int:
    if debug:
        say(traceback.format_exc(), err=True)
    values = {name: listed for name, listed in error.values().items() if listed} if show_values else {}
    if not error.reported:
        several = isinstance(error, ConfigError | UnsafeError)  # each of their lines is one already
        said = str(error) if several else one_line(str(error))
        say("\n".join([f"error: {said}", *_listed(values)]), err=True)
    if as_json:
        say_json(error.to_dict() | values)
    return error.exit_code


def _listed(values: dict[str, list[str]]) -> Iterator[str]:
    for name, listed in values.items():
        yield from (f"  {name}: {json_text(value)}" for value in listed[:VALUES_SHOWN])
        if (more := len(listed) - VALUES_SHOWN) > 0:
            yield f"  and {more:,} more; --json lists all"
