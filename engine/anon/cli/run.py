"""`anon run`, and `anon plan`, which shows what a run would do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anon.cli.command import CommonFlags, command
from anon.cli.options import ConfigFile, Memory, Threads
from anon.errors import UnsafeError


@command(
    "Example: `anon run config.yaml --memory 1GB --out release`",
    strict="Treat warnings as failures: exit 3, and nothing is published.",
)
def run(
    flags: CommonFlags,
    config: ConfigFile,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write; overrides release.path, and release.run by DIR-run."),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume a stopped run of the same config and source.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the release of an earlier run, in one step.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Make the release again even if it is up to date, and replace it. One of another config or source is "
            "replaced with --overwrite.",
        ),
    ] = False,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Make a trial on this share of the individuals, e.g. 1% or 0.01, in a folder beside the release. "
            "A trial is not for publication.",
        ),
    ] = None,
) -> int:
    """Make a verified release of the config's source.

    Reads the source, searches for a recoding that satisfies every criterion, writes the release and verifies the
    written files. Nothing appears at release.path before they have passed. If the release that is there was made from
    the same source by the same config, nothing is done.

    A run that is stopped leaves a checkpoint: with --resume the search continues from it and ends with the same bytes,
    without it the search starts anew. Only the method partition keeps a checkpoint; others repeat their search.
    """
    from anon import pipeline
    from anon.runs.options import Options

    with flags.progress() as progress:
        options = Options.from_user(
            out=out, memory=memory, threads=threads, resume=resume, overwrite=overwrite, force=force, sample=sample,
            show_values=flags.show_values, strict=flags.strict,
        )  # fmt: skip
        result = pipeline.run(config, None, options, progress)
    flags.show(result.to_dict(), "terminal.show", result.report, result.places)
    return 0


@command("Example: `anon plan config.yaml --sql`")
def plan(
    flags: CommonFlags,
    config: ConfigFile,
    sql: Annotated[
        bool, typer.Option("--sql", help="List the queries that a run sends to DuckDB, in order, up to its search.")
    ] = False,
    memory: Memory = None,
    threads: Threads = None,
) -> int:
    """Show what a run of the config would do, without searching or writing: sizes, memory, disk, obstacles.

    Executes the first stages of a run, so mistakes fail as they would there (exit 2; a gap in a hierarchy is one).
    Exit 3 if the whole table as one group already fails a criterion that splitting only makes worse: no release exists.
    The method reuse has no search: its recoding is applied and the result verified, and exit 3 means it is not safe.
    """
    from anon.commands import plan as commands
    from anon.runs.options import Options

    with flags.progress() as progress:
        options = Options.from_user(memory=memory, threads=threads, show_values=flags.show_values)
        result = commands.plan(config, None, options, progress)
    facts = result.to_dict() | ({"sql": result.report["sql"]} if sql else {})
    flags.show(facts, "terminal.show_plan")
    return flags.exit_code(facts, progress) if facts["feasible"] else UnsafeError.exit_code
