"""Define commands: `@command(...)` adds to a function the flags that every command takes, and the handling of
failures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from anon.cli.failures import exit_code_of_warnings, exit_with, reporting_progress
from anon.core.terminal import one_line, say_json

if TYPE_CHECKING:
    from anon.core.progress import Progress

# The flags that every command takes, by field of CommonFlags, with the help that a command may replace.
FLAGS = {
    "as_json": ("--json", "Print one JSON object on stdout, and nothing else there."),
    "show_values": ("--show-values", "Show data values in results and error messages."),
    "strict": ("--strict", "Treat warnings as failures (exit 3)."),
    "log_json": ("--log-json", "Report progress on stderr as JSON events, one per line."),
    "debug": ("--debug", "Show a traceback if the command fails."),
}
NO_WARNINGS = "No effect: this command gives no warnings."
NO_PROGRESS = "No effect: this command reports no progress."
VALUES_IN_ERRORS = "Show data values in error messages; the results have none."


@dataclass(frozen=True)
class CommonFlags:
    """The flags that every command takes, and the output that depends on them."""

    as_json: bool
    show_values: bool
    strict: bool
    log_json: bool
    debug: bool

    def progress(self) -> AbstractContextManager[Progress]:
        """Return a context that reports progress and the failure that ends it."""
        return reporting_progress(self.as_json, self.log_json)

    def show(self, facts: dict[str, Any], printer: str, *more: Any) -> None:
        """Print facts as one JSON object, or by a function of `anon.report` (`module.function`), which may take more
        arguments. It is imported only if it is needed."""
        if self.as_json:
            say_json(facts)
            return
        from rich.console import Console

        module, function = printer.split(".")
        getattr(import_module(f"anon.report.{module}"), function)(Console(), *one_line([facts, *more]))

    def exit_code(self, facts: dict[str, Any], progress: Progress) -> int:
        """Return the exit code of a safe result: with --strict its warnings are reported as failures."""
        return exit_code_of_warnings(facts, progress) if self.strict else 0


@dataclass(frozen=True)
class Command:
    """A command of the command line."""

    callback: Callable[..., None]
    epilog: str

    def add_to(self, group: typer.Typer) -> None:
        group.command(epilog=self.epilog)(self.callback)


def command(epilog: str, **helps: str) -> Callable[[Callable[..., int]], Command]:
    """Make a command of a function that takes CommonFlags and its own arguments and returns the exit code. Its
    docstring is the help of the command. `helps` replace the help of common flags where a flag means something else."""

    def decorate(work: Callable[..., int]) -> Command:
        def callback(**given: Any) -> None:
            flags = CommonFlags(**{name: given.pop(name) for name in FLAGS})
            exit_with(lambda: work(flags, **given), flags.as_json, flags.debug, flags.show_values)

        callback.__name__, callback.__doc__ = work.__name__, work.__doc__
        parameters = [*_own_parameters(work), *_flag_parameters(helps)]
        callback.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        callback.__annotations__ = {each.name: each.annotation for each in parameters}
        return Command(callback, epilog)

    return decorate


def _own_parameters(work: Callable[..., int]) -> list[Parameter]:
    """Return the parameters of a command but the first, which takes the flags."""
    hints = get_type_hints(work, include_extras=True)
    own = list(signature(work).parameters.values())[1:]
    return [each.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[each.name]) for each in own]


def _flag_parameters(helps: dict[str, str]) -> list[Parameter]:
    kinds = {name: Annotated[bool, typer.Option(flag, help=helps.get(name, text))]
             for name, (flag, text) in FLAGS.items()}  # fmt: skip
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in kinds.items()
    ]
