"""`anon series`: the ledger of a series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anon.cli.command import NO_WARNINGS, VALUES_IN_ERRORS, CommonFlags, command
from anon.cli.groups import Group
from anon.cli.options import ConfigFile

series_app = typer.Typer(
    cls=Group,
    help="Show and change the ledger of a series (`release: {series: append}`).",
    no_args_is_help=True,
    epilog="`anon run` adds a part to a series.",
)


@command("Example: `anon series status config.yaml`", show_values=VALUES_IN_ERRORS, strict=NO_WARNINGS)
def status(flags: CommonFlags, config: ConfigFile) -> int:
    """Show the parts of a series, and how many individuals were released, wait, or were withdrawn.

    The ledger is compared with the published parts first: exit 4 if a part is not the one that was published.
    """
    from anon.commands import series as commands

    with flags.progress() as progress:
        result = commands.status(config, progress=progress)
    flags.show(result.to_dict(), "terminal_series.show_status")
    return 0


@command(
    "Example: `anon series withdraw config.yaml --individuals erased.txt --yes`",
    show_values=VALUES_IN_ERRORS,
    strict=NO_WARNINGS,
)
def withdraw(
    flags: CommonFlags,
    config: ConfigFile,
    individuals: Annotated[
        Path, typer.Option(metavar="FILE", help="A text file with the id of one individual per line.")
    ],
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; otherwise only what would go is counted. It cannot be undone.")
    ] = False,
) -> int:
    """Take individuals out of a series, with the whole groups that they are in.

    The rest of a group would show by subtraction what was taken out, so the group goes, and its other members are not
    released again. Individuals who wait, or who are not known yet, are not released later.
    """
    from anon.commands import series as commands

    with flags.progress() as progress:
        result = commands.withdraw(config, individuals, yes, progress=progress)
    flags.show(result.to_dict(), "terminal_series.show_withdrawal")
    return 0


@command("Example: `anon series rebuild config.yaml`", show_values=VALUES_IN_ERRORS, strict=NO_WARNINGS)
def rebuild(flags: CommonFlags, config: ConfigFile) -> int:
    """Make the ledger of a series again, if it is lost or damaged, from the published parts and the source.

    The source must hold everybody who was released, with the values of then (exit 5 otherwise). The parts do not say
    who is in them, so everybody who fits a published row counts as released: nobody is released twice, and some may
    never be released. Those who waited are new again; withdrawals have to be repeated."""
    from anon.commands import series as commands

    with flags.progress() as progress:
        result = commands.rebuild(config, progress=progress)
    flags.show(result.to_dict(), "terminal_series.show_rebuilding")
    return 0


for each in (status, withdraw, rebuild):
    each.add_to(series_app)
