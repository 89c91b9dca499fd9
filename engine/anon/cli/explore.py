"""`anon explore`, `anon disclose` and `anon attack`: what an adversary can do with a table that is already grouped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anon.cli.command import NO_WARNINGS, CommonFlags, command
from anon.cli.options import ConfigFile, GroupedTable, Memory, SensitiveColumn, Threads


@command("Example: `anon explore config.yaml --on release/release.parquet --value HIV --confidence 0.5`")
def explore(
    flags: CommonFlags,
    config: ConfigFile,
    on: GroupedTable,
    value: Annotated[list[str], typer.Option("--value", metavar="V", help="A sensitive value; may be repeated.")],
    confidence: Annotated[
        list[str],
        typer.Option(
            "--confidence",
            metavar="C",
            help="The confidence an adversary must not reach, e.g. 50% or 0.5; may be repeated.",
        ),
    ],
    sensitive: SensitiveColumn = None,
    memory: Memory = None,
    threads: Threads = None,
) -> int:
    """Compute knowledge skylines: how much an adversary may know before a table is no longer safe.

    For each value and confidence, lists all maximal safe amounts of knowledge (l, k, m), and an adversary who succeeds
    with one piece more (docs/risk.md). The table is read as by `check`; a value that it does not have is a warning.
    """
    from anon.commands import explore as commands
    from anon.runs.options import Options

    with flags.progress() as progress:
        options = Options.from_user(memory=memory, threads=threads, show_values=flags.show_values)
        result = commands.explore(config, on, value, confidence, sensitive, options, progress)
    flags.show(result.to_dict(), "terminal_risk.show_skylines")
    return flags.exit_code(result.facts, progress)


@command("Example: `anon disclose config.yaml --on release/release.parquet --max-k 3`", strict=NO_WARNINGS)
def disclose(
    flags: CommonFlags,
    config: ConfigFile,
    on: GroupedTable,
    max_k: Annotated[
        int, typer.Option("--max-k", min=0, metavar="K", help="The largest number of pieces of knowledge, up to 1,000.")
    ],
    sensitive: SensitiveColumn = None,
    memory: Memory = None,
    threads: Threads = None,
) -> int:
    """Compute the maximum disclosure given 0 to K pieces of knowledge, for implications and for negations.

    Also lists the pieces that reach each maximum (docs/risk.md). The table is read as by `check`.
    """
    from anon.commands import explore as commands
    from anon.runs.options import Options

    with flags.progress() as progress:
        options = Options.from_user(memory=memory, threads=threads, show_values=flags.show_values)
        result = commands.disclose(config, on, max_k, sensitive, options, progress)
    flags.show(result.to_dict(), "terminal_risk.show_disclosure")
    return 0


@command("Example: `anon attack config.yaml --on release/release.parquet --threshold 0.9`", strict=NO_WARNINGS)
def attack(
    flags: CommonFlags,
    config: ConfigFile,
    on: GroupedTable,
    threshold: Annotated[
        str, typer.Option(metavar="SHARE", help="A group is affected if one value has at least this share of it.")
    ] = "0.95",
    prior: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A prior file: what the adversary believes before the release."),
    ] = None,
    rho1: Annotated[
        str | None, typer.Option(metavar="R", help="A belief that rises from below rho1 to above rho2 is a breach.")
    ] = None,
    rho2: Annotated[
        str | None,
        typer.Option(metavar="R", help="See --rho1; a fall from above 1 - rho1 to below 1 - rho2 is a breach too."),
    ] = None,
    sensitive: SensitiveColumn = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="The run folder of the release: also carry out the attacks that need its recoding and people.",
        ),
    ] = None,
    held_with: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="EARLIER",
            help="With --run: the folder of an earlier release that somebody holds as well; may be repeated.",
        ),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
) -> int:
    """Find groups where nearly everybody has the same value, directly or after other values are ruled out.

    With a prior, also measures how far the table changes what an adversary believes (docs/risk.md). The table is
    read as by `check`. With --run, the source of that run is read again and its search repeated, and every attack is
    carried out (docs/attacks.md).
    """
    from anon.commands import explore as commands
    from anon.runs.options import Options

    with flags.progress() as progress:
        held = tuple(held_with or ())
        options = Options.from_user(memory=memory, threads=threads, show_values=flags.show_values, held_with=held)
        result = commands.attack(config, on, threshold, prior, rho1, rho2, sensitive, run, options, progress)
    flags.show(result.to_dict(), "terminal_risk.show_attack")
    return 0
