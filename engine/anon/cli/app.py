"""The command line: all commands. Results go to stdout, messages and progress to stderr."""

from __future__ import annotations

from typing import Annotated

import typer

from anon.cli.check import check, utility
from anon.cli.code_lists import CODE_COMMANDS
from anon.cli.explore import attack, disclose, explore
from anon.cli.groups import RootGroup
from anon.cli.hierarchy import build_app, hierarchy_app
from anon.cli.init import init
from anon.cli.report import explain, report
from anon.cli.run import plan, run
from anon.cli.schema import schema
from anon.cli.series import series_app
from anon.core.terminal import say

app = typer.Typer(
    cls=RootGroup,
    help="Anonymize tables about people: write a release that a stated adversary cannot break, and verify it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done or safe, 2 usage or config, 3 not safe, 4 verification failed, 5 source or backend, "
    "6 memory or disk, 130 interrupted.",
)
for command in (init, plan, run, check, explore, disclose, attack, utility, report, explain, schema):
    command.add_to(app)
for command in CODE_COMMANDS:
    command.add_to(build_app)
app.add_typer(hierarchy_app, name="hierarchy")
app.add_typer(series_app, name="series")


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        say(f"anon {version('anon-engine')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
