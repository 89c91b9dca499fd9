"""The commands that make and test hierarchy files, beside the way of the data (config -> source -> cube -> search ->
release -> verify -> report): what they write is named in a config by `hierarchy: FILE`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.cli.options import VALUES_SHOWN, Debug, Group, Json, LogJson, ShowValues, Strict, guarded
from anon.core.terminal import json_text, one_line, say_json
from anon.errors import ConfigError, UnknownColumns

if TYPE_CHECKING:
    from anon.hierarchy import Inspection, Row

hierarchy_app = typer.Typer(
    cls=Group,
    help="Make and test hierarchy files (leaf;level1;level2;..., as ARX reads and writes them).",
    no_args_is_help=True,
    epilog="A config uses one by `education: {hierarchy: education.csv}`.",
)
build_app = typer.Typer(cls=Group, help="Make a hierarchy file.", no_args_is_help=True)
hierarchy_app.add_typer(build_app, name="build")

Out = Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write; without it the rows go to stdout.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")]


@build_app.command(
    epilog="Example: `anon hierarchy build intervals --from 0 --to 120 --width 5 --width 10 --top 85 --out age.csv` "
    "gives 23 the labels 20-24, 20-29, *."
)
def intervals(
    low: Annotated[int, typer.Option("--from", metavar="N", help="The lowest number.")],
    high: Annotated[int, typer.Option("--to", metavar="N", help="The highest number.")],
    width: Annotated[
        list[int], typer.Option(metavar="N", help="One per level, from narrow to wide; each divides the next.")
    ],
    origin: Annotated[int, typer.Option(metavar="N", help="Where an interval begins.")] = 0,
    top: Annotated[int | None, typer.Option(metavar="N", help="From here on one open interval, such as >=85.")] = None,
    bottom: Annotated[int | None, typer.Option(metavar="N", help="Below this one open interval, such as <=17.")] = None,
    out: Out = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Whole numbers in intervals that grow wider with every level."""

    def rows() -> list[Row]:
        from anon.hierarchy import interval_rows

        return interval_rows(low, high, width, origin, top, bottom)

    guarded(lambda: _build(rows, out, overwrite, as_json), as_json, debug, show_values)


@build_app.command(epilog="Example: `anon hierarchy build prefix zips.txt --out zip.csv`")
def prefix(
    values: Annotated[Path, typer.Argument(metavar="LIST", help="A text file with one value per line.")],
    out: Out = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Codes that lose one more character with every level: 02139, 0213*, 021**, ..., *."""

    def rows() -> list[Row]:
        from anon.hierarchy import prefix_rows

        return prefix_rows(values)

    guarded(lambda: _build(rows, out, overwrite, as_json), as_json, debug, show_values)


@build_app.command(
    epilog="Example: `anon hierarchy build parents places.csv --out place.csv`, where places.csv has the lines "
    "Paris,France and Lyon,France and France,Europe."
)
def parents(
    pairs: Annotated[Path, typer.Argument(metavar="LIST", help="A CSV file of pairs value,parent without a header.")],
    out: Out = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """A tree given by the parent of every value; a value that is nobody's parent is a leaf."""

    def rows() -> list[Row]:
        from anon.hierarchy import parent_rows

        return parent_rows(pairs)

    guarded(lambda: _build(rows, out, overwrite, as_json), as_json, debug)


@hierarchy_app.command(
    epilog="Example: `anon hierarchy test education.csv --on extract.parquet --column education --show-values`"
)
def test(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The hierarchy file.")],
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="TABLE", help="A table to compare with: Parquet, CSV, a folder of either, or a glob."
        ),
    ] = None,
    column: Annotated[str | None, typer.Option(metavar="C", help="The column of TABLE that the file is for.")] = None,
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Is the file a tree, and does it have every value of a column?

    Exit 0 when it is fine, 2 when it is not a tree or values are missing.
    """

    def work() -> int:
        from anon.hierarchy import inspect

        if (on is None) != (column is None):
            option, other = ("--column", "--on") if column is None else ("--on", "--column")
            raise ConfigError.at(option, "nothing", f"{option} together with {other}")
        found = inspect(file, None if on is None or column is None else _rows_by_value(on, column))
        _show(file.name, found, column, as_json, show_values)
        return 2 if found.missing else 0

    guarded(work, as_json, debug, show_values)


def _build(make: Callable[[], list[Row]], out: Path | None, overwrite: bool, as_json: bool) -> int:
    from anon.hierarchy import as_csv, shape, write_rows

    rows = make()
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
    """The rows of each distinct value of a column, the values as hierarchies compare them; null needs no leaf."""
    from anon.config import Limits
    from anon.core.database import connect, translated
    from anon.core.progress import Progress
    from anon.core.text import text
    from anon.runs.scratch import spill_folder
    from anon.source import Unusable, canonical, describe, resolve
    from anon.source.checks import like_values, missing_columns
    from anon.source.tables import registered_files

    limits = Limits()
    with spill_folder(Progress().alert) as folder:
        con = connect(limits.memory, limits.threads, folder)
        registered = registered_files(con, "tested_table", resolve(path), folder)
        types = describe(con, "tested_table")
        if column not in types:
            quotable, names = not like_values(con, registered, types), list(types)
            raise UnknownColumns(missing_columns([("--column", column)], names, quotable), names)
        try:
            _, sql = canonical(con, "tested_table", column, types[column], "q")
        except Unusable as error:
            raise ConfigError.at("--column", error.args[0], error.args[1]) from None
        with translated(f"reading {path}"):
            counted = f"SELECT {sql} AS v, count(*) AS n FROM tested_table GROUP BY v"
            rows = con.sql(f"SELECT * FROM ({counted}) WHERE v IS NOT NULL ORDER BY n DESC, v").fetchall()
    return {text(value): count for value, count in rows}


def _show(name: str, found: Inspection, column: str | None, as_json: bool, show_values: bool) -> None:
    if as_json:
        missing = [{"value": value, "rows": rows} for value, rows in found.missing.items()]
        told = found.facts | ({"missing": missing} if show_values and column is not None else {})
        say_json(told)
        return
    _print(*_levels(one_line(f"{name} is a tree"), found.facts))
    if column is not None:
        _print(*_coverage(found, one_line(column), show_values))


def _levels(headline: str, facts: dict[str, Any]) -> list[Any]:
    from rich.table import Column, Table
    from rich.text import Text

    words = f"{headline}: {facts['leaves']:,} leaves, {facts['levels']:,} levels above them"
    table = Table("level", Column("nodes", justify="right"))
    for level, nodes in enumerate(facts["nodes_per_level"]):
        place = " (the values)" if level == 0 else " (*)" if level == facts["levels"] else ""
        table.add_row(f"{level}{place}", f"{nodes:,}")
    return [Text(words), table]


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


def _print(*parts: Any) -> None:
    from rich.console import Console

    console = Console()
    for part in parts:
        console.print(part, soft_wrap=True)
