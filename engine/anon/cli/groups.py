"""Groups of commands for typer: mistakes in usage are answered as every other failure is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from anon.cli.failures import report_failure
from anon.core import interrupt
from anon.core.terminal import one_line, say_json
from anon.errors import ConfigError, Interrupted

# The class behind `typer.BadParameter`; versions of typer keep it in different places.
UsageError: Any = typer.BadParameter.__base__


class Group(TyperGroup):
    """A group whose help does not say that a flag takes a value, as it does with some versions of typer."""

    def get_params(self, ctx: Any) -> Any:
        return _without_metavars(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        _without_metavars([] if command is None else command.get_params(ctx))
        return command


def _without_metavars(options: list[Any]) -> list[Any]:
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


class RootGroup(Group):
    """The group of all commands. What fails before a command starts, a mistake in usage or Ctrl-C, is also one JSON
    object on stdout with --json."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        as_json = "--json" in args
        with _usage_errors_reported(as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[__name__] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        with _usage_errors_reported(ctx.meta[__name__]):
            return super().invoke(ctx)


@contextmanager
def _usage_errors_reported(as_json: bool) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        if as_json:
            mistake = ConfigError.at("command line", error.format_message(), "what --help lists")
            say_json(mistake.to_dict())
        error.message = one_line(error.message)
        raise
    except KeyboardInterrupt:
        raise typer.Exit(report_failure(Interrupted(interrupt.STOPPED), as_json)) from None
