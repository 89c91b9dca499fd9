"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[Path, typer.Argument(help="The config, a YAML file (see `anon schema`).", metavar="CONFIG")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of an earlier `anon run`.")]
GroupedTable = Annotated[
    str, typer.Option("--on", metavar="TABLE", help="The table: Parquet, CSV, a folder of either, or a glob.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit of the whole process, e.g. 1GB; overrides limits.memory. At least 400MB is required.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1_024, metavar="N", help="The number of threads; overrides limits.threads."),
]
SensitiveColumn = Annotated[
    str | None,
    typer.Option("--sensitive", help="The sensitive column to examine, if the config has several.", metavar="COLUMN"),
]
