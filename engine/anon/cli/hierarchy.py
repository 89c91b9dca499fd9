"""`anon hierarchy`: build and test hierarchy files, which a config names by `hierarchy: FILE`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.cli.command import NO_PROGRESS, NO_WARNINGS, Command, CommonFlags, command
from anon.cli.failures import VALUES_SHOWN
from anon.cli.groups import Group
from anon.core.terminal import json_text, one_line, say_json
from anon.errors import ConfigError

if TYPE_CHECKING:
    from anon.hierarchy import Inspection, Row

hierarchy_app = typer.Typer(
    cls=Group,
    help="Build and test hierarchy files (leaf;level1;level2;..., as ARX reads and writes them).",
    no_args_is_help=True,
    epilog="A config uses such a file by `education: {hierarchy: education.csv}`.",
)
build_app = typer.Typer(cls=Group, help="Build a hierarchy file.", no_args_is_help=True)
hierarchy_app.add_typer(build_app, name="build")

Out = Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write; by default the rows go to stdout.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")]


def _build_command(epilog: str) -> Callable[[Callable[..., int]], Command]:
    no_values = "No effect: the results are the hierarchy itself, and error messages quote no values."
    return command(epilog, show_values=no_values, strict=NO_WARNINGS, log_json=NO_PROGRESS)


@_build_command(
    "Example: `anon hierarchy build intervals --from 0 --to 120 --width 5 --width 10 --top 85 --out age.csv` "
    "gives 23 the labels 20-24, 20-29, *."
)
def intervals(
    flags: CommonFlags,
    low: Annotated[int, typer.Option("--from", metavar="N", help="The lowest number.")],
    high: Annotated[int, typer.Option("--to", metavar="N", help="The highest number.")],
    width: Annotated[
        list[int],
        typer.Option(
            metavar="N", help="Width of the intervals of a level; repeat from narrow to wide. Each divides the next."
        ),
    ],
    origin: Annotated[int, typer.Option(metavar="N", help="A number at which an interval begins.")] = 0,
    top: Annotated[int | None, typer.Option(metavar="N", help="One open interval from here on, such as >=85.")] = None,
    bottom: Annotated[int | None, typer.Option(metavar="N", help="One open interval below this, such as <=17.")] = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Put whole numbers into intervals that become wider with every level."""
    from anon.hierarchy import interval_rows

    return _build(interval_rows(low, high, width, origin, top, bottom), out, overwrite, flags.as_json)


@_build_command("Example: `anon hierarchy build prefix zips.txt --out zip.csv`")
def prefix(
    flags: CommonFlags,
    values: Annotated[Path, typer.Argument(metavar="LIST", help="A text file with one value per line.")],
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Hide one more character of a code with every level: 02139, 0213*, 021**, ..., *."""
    from anon.hierarchy import prefix_rows

    return _build(prefix_rows(values), out, overwrite, flags.as_json)


@_build_command(
    "Example: `anon hierarchy build parents places.csv --out place.csv`, where places.csv has the lines "
    "Paris,France and Lyon,France and France,Europe."
)
def parents(
    flags: CommonFlags,
    pairs: Annotated[Path, typer.Argument(metavar="LIST", help="A CSV file of pairs value,parent without a header.")],
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Build a tree from the parent of every value; a value that is not the parent of another is a leaf."""
    from anon.hierarchy import parent_rows

    return _build(parent_rows(pairs), out, overwrite, flags.as_json)


@command(
    "Example: `anon hierarchy test education.csv --on extract.parquet --column education --show-values`",
    strict=NO_WARNINGS,
    log_json=NO_PROGRESS,
)
def test(
    flags: CommonFlags,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The hierarchy file.")],
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="TABLE", help="A table to compare with: Parquet, CSV, a folder of either, or a glob."
        ),
    ] = None,
    column: Annotated[str | None, typer.Option(metavar="C", help="The column of TABLE that the file is for.")] = None,
) -> int:
    """Test whether a file is a tree, and whether it has every value of a column.

    Exit 0 if so, 2 if it is not a tree or values are missing.
    """
    from anon.hierarchy import inspect

    if (on is None) != (column is None):
        option, other = ("--column", "--on") if column is None else ("--on", "--column")
        raise ConfigError.at(option, "nothing", f"{option} together with {other}")
    found = inspect(file, None if on is None or column is None else _rows_by_value(on, column))
    _show(file.name, found, column, flags.as_json, flags.show_values)
    return 2 if found.missing else 0


for each in (intervals, prefix, parents):
    each.add_to(build_app)
test.add_to(hierarchy_app)


def _build(rows: list[Row], out: Path | None, overwrite: bool, as_json: bool) -> int:
    """Write or print the rows of a hierarchy; return the exit code."""
    from anon.hierarchy import as_csv, shape, write_rows

    facts = shape([len(set(labels)) for labels in zip(*rows)])
    if out is not None:
        write_rows(rows, out, overwrite)
    if as_json:
        where: dict[str, Any] = {"hierarchy": rows} if out is None else {"file": str(out)}
        say_json(facts | where)
    elif out is None:
        sys.stdout.writelines(as_csv(rows))
    else:
        _print(*_levels(one_line(f"{out} was written"), facts))
    return 0


def _rows_by_value(path: str, column: str) -> dict[str, int]:
    """Return the number of rows of each distinct value of a column, the most frequent first."""
    from anon.commands.hierarchies import counted_values

    with counted_values(path, column, "--column") as values:
        return dict(values.pairs("n DESC, v"))


def _show(name: str, found: Inspection, column: str | None, as_json: bool, show_values: bool) -> None:
    if as_json:
        missing = [{"value": value, "rows": rows} for value, rows in found.missing.items()]
        say_json(found.facts | ({"missing": missing} if show_values and column is not None else {}))
        return
    _print(*_levels(one_line(f"{name} is a tree"), found.facts))
    if column is not None:
        _print(*_coverage(found, one_line(column), show_values))


def _levels(headline: str, facts: dict[str, Any]) -> list[Any]:
    from rich.table import Column, Table
    from rich.text import Text

    title = f"{headline}: {facts['leaves']:,} leaves, {facts['levels']:,} levels above them"
    table = Table("level", Column("nodes", justify="right"))
    for level, nodes in enumerate(facts["nodes_per_level"]):
        place = " (the values)" if level == 0 else " (*)" if level == facts["levels"] else ""
        table.add_row(f"{level}{place}", f"{nodes:,}")
    return [Text(title), table]


def _coverage(found: Inspection, column: str, show_values: bool) -> list[Any]:
    from rich.table import Column, Table
    from rich.text import Text

    facts = found.facts
    values, rows = f"{facts['values']:,} distinct values", f"{facts['rows']:,} rows with a value"
    unused = Text(f"{facts['unused_leaves']:,} leaves do not occur in the column")
    if not found.missing:
        return [Text(f"{column}: all {values} in {rows} are leaves", style="green"), unused]
    gap = f"{column}: {facts['missing_values']:,} of {values}, in {facts['missing_rows']:,} of {rows}, are not leaves"
    if not show_values:
        return [Text(f"{gap} (--show-values lists them)", style="red"), unused]
    table = Table("missing value", Column("rows", justify="right"))
    for value, count in list(found.missing.items())[:VALUES_SHOWN]:
        table.add_row(Text(json_text(value)), f"{count:,}")
    more = len(found.missing) - VALUES_SHOWN
    rest = [Text(f"and {more:,} more; --json lists all")] if more > 0 else []
    return [Text(gap, style="red"), table, *rest, unused]


def print_levels(headline: str, facts: dict[str, Any]) -> None:
    """Print the shape of a hierarchy."""
    _print(*_levels(headline, facts))


def _print(*parts: Any) -> None:
    from rich.console import Console

    console = Console()
    for part in parts:
        console.print(part, soft_wrap=True)
