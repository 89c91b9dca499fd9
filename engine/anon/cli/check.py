"""`anon check` and `anon utility`: judge a table that is already grouped, and compare a release with its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anon.cli.command import NO_WARNINGS, VALUES_IN_ERRORS, CommonFlags, command
from anon.cli.options import ConfigFile, GroupedTable, Memory, Threads
from anon.errors import UnsafeError


@command("Example: `anon check config.yaml --on release/release.parquet`")
def check(
    flags: CommonFlags,
    config: ConfigFile,
    on: GroupedTable,
    prior: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A prior file that replaces the priors of r_robustness.")
    ] = None,
    save_priors: Annotated[
        Path | None,
        typer.Option(help="A folder to save estimated priors in: prior-N.csv, which --prior reads.", metavar="DIR"),
    ] = None,
    held_with: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="EARLIER",
            help="The folder of an earlier release that somebody holds as well, with its run folder beside it; may be "
            "given several times.",
        ),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
) -> int:
    """Check the config's criteria on a table that is already grouped, made by any tool.

    Groups are the distinct tuples of its quasi-identifier columns as they are, or the `group` column of a bucketized
    folder (qi.parquet and sensitive.parquet, or .csv). Exit 3 if the table is not safe. The config's source is not
    read.

    With --with, TABLE and EARLIER are folders of releases of the same people whose run folders are beside them: it also
    reports what anyone holding all of them learns (`together`), and exits 3 if a belief passes what the criteria
    allow. The source is read only if the releases were not made at one place.
    """
    from anon.commands import check as commands
    from anon.runs.options import Options

    with flags.progress() as progress:
        options = Options.from_user(
            memory=memory,
            threads=threads,
            show_values=flags.show_values,
            prior=prior,
            save_priors=save_priors,
            held_with=tuple(held_with or ()),
        )
        result = commands.check(config, on, options, progress)
    flags.show(result.to_dict(), "terminal.show", result.report, result.places)
    return flags.exit_code(result.facts, progress) if result.safe else UnsafeError.exit_code


@command(
    "Example: `anon utility config.yaml --on release/release.parquet`",
    show_values=VALUES_IN_ERRORS,
    strict=NO_WARNINGS,
)
def utility(
    flags: CommonFlags,
    config: ConfigFile,
    on: Annotated[
        str, typer.Option("--on", metavar="TABLE", help="The release: Parquet, CSV, a folder of either, or a glob.")
    ],
    predict: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A sensitive or kept column: also measure how well classifiers that are trained on the release "
            "predict it for rows of the source that they have not seen. Needs pip install 'anon-engine[predict]'.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The run folder of the release: add the prediction to its report, too."),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
) -> int:
    """Measure how much of the config's source a release of it keeps.

    Reports the loss per column, the error of COUNT queries that see only the release, and the metrics of the literature
    (docs/utility.md). Both the source and the release are read. The release may be generalized or bucketized (qi and
    sensitive), with the labels of the config.
    """
    from anon.commands import utility as commands
    from anon.runs.options import Options

    with flags.progress() as progress:
        options = Options.from_user(memory=memory, threads=threads)
        result = commands.utility(config, on, options, progress, predict, run)
    flags.show(result.to_dict(), "terminal.show_utility")
    return 0
