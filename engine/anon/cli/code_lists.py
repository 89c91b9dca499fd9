"""`anon hierarchy build country|icd10|atc|isco|isced|postcode|auto`: hierarchy files from the values of a column."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from anon.cli.command import NO_PROGRESS, NO_WARNINGS, Command, CommonFlags, command
from anon.cli.failures import VALUES_SHOWN
from anon.cli.hierarchy import Out, Overwrite, print_levels
from anon.core.terminal import json_text, one_line, say_json

if TYPE_CHECKING:
    from anon.commands.hierarchies import BuiltHierarchy, CountedValues
    from anon.hierarchy.code_lists import CodeList

Table = Annotated[str, typer.Argument(metavar="TABLE", help="Parquet, CSV, a folder of either, or a glob.")]
From = Annotated[str, typer.Option("--from", metavar="COLUMN", help="The column of TABLE that the hierarchy is for.")]
Unknown = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="Put codes that the list does not have under this label; else they are exit 2."),
]
Pad = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=32,
        help="Codes regain their leading zeros up to this length; say `pad: N` in the config too.",
    ),
]
PRIVATE = "The file lists values of the column: keep it with the config, it is not for publication."


def _code_command(example: str, gives: str) -> Callable[[Callable[..., int]], Command]:
    values = "List the codes that the list does not have."
    epilog = f"Example: `anon hierarchy build {example}` gives {gives}. {PRIVATE}"
    return command(epilog, show_values=values, strict=NO_WARNINGS, log_json=NO_PROGRESS)


@_code_command("country people.csv --from nationality --out country.csv", "France the labels Western Europe, Europe, *")
def country(
    flags: CommonFlags,
    table: Table,
    column: From,
    unknown: Unknown = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Countries in the regions of the United Nations: country, part of the continent, continent.

    Values are codes of ISO 3166-1 (FR, FRA, 250) or names in English, German, French, Spanish, Italian, Dutch,
    Portuguese or Polish. Needs the extra `hierarchies`.
    """
    from anon.hierarchy.code_lists.countries import Countries

    return _coded(flags, table, column, Countries(), out, overwrite, unknown)


@_code_command("icd10 stays.parquet --from diagnosis --out icd10.csv", "E11.9 the labels E11, E10-E14 and chapter IV")
def icd10(
    flags: CommonFlags,
    table: Table,
    column: From,
    edition: Annotated[
        Literal["who", "cm"], typer.Option(help="Blocks and names of the WHO, or of ICD-10-CM (United States).")
    ] = "who",
    unknown: Unknown = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Diagnoses of ICD-10: code, category of three characters, block, chapter.

    Codes are taken with and without the dot; national subdivisions of a known category too. Needs the extra
    `hierarchies`.
    """
    from anon.hierarchy.code_lists.diagnoses import Diagnoses

    return _coded(flags, table, column, Diagnoses(edition), out, overwrite, unknown)


@_code_command(
    "atc claims.parquet --from medicine --out atc.csv",
    "A10BA02 the labels A10BA*, A10B*, A10*, A Alimentary tract and metabolism, *",
)
def atc(
    flags: CommonFlags,
    table: Table,
    column: From,
    unknown: Unknown = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Medicines of the ATC classification: the prefixes of 5, 4 and 3 characters, then the anatomical group by name."""
    from anon.hierarchy.code_lists.medicines import Medicines

    return _coded(flags, table, column, Medicines(), out, overwrite, unknown)


@_code_command(
    "isco staff.csv --from job --pad 4 --out isco.csv",
    "2212 the labels 221*, 22 Health professionals, 2 Professionals, *",
)
def isco(
    flags: CommonFlags,
    table: Table,
    column: From,
    pad: Pad = None,
    unknown: Unknown = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Occupations of ISCO-08, codes of four digits: minor group, sub-major group and major group, the last two by
    name."""
    from anon.hierarchy.code_lists.occupations import Occupations

    return _coded(flags, table, column, Occupations(), out, overwrite, unknown, pad)


@_code_command(
    "isced census.parquet --from education --out isced.csv", "344 the labels 3 Upper secondary, Medium (3-4), *"
)
def isced(
    flags: CommonFlags,
    table: Table,
    column: From,
    unknown: Unknown = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Education by ISCED 2011: the level by name, then low, medium or high. Values such as 3, ED3, ISCED 3 or 344."""
    from anon.hierarchy.code_lists.education import Education

    return _coded(flags, table, column, Education(), out, overwrite, unknown)


@_code_command(
    "postcode people.csv --from zip --country US --pad 5 --out zip.csv",
    "02139 the labels 02139, 021*, 0* and its states, *",
)
def postcode(
    flags: CommonFlags,
    table: Table,
    column: From,
    country: Annotated[str, typer.Option(metavar="CC", help="Country of the postcodes: US, DE, FR, GB, NL, ...")],
    pad: Pad = None,
    unknown: Unknown = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """Postcodes by the prefixes that mean an area in their country, with names where the country has them."""
    from anon.hierarchy.code_lists.postcodes import Postcodes

    return _coded(flags, table, column, Postcodes(country), out, overwrite, unknown, pad)


@command(
    f"Example: `anon hierarchy build auto people.csv --from city --out city.csv`. {PRIVATE}",
    show_values="No effect: the results are the hierarchy itself, and error messages quote no values.",
    strict=NO_WARNINGS,
    log_json=NO_PROGRESS,
)
def auto(
    flags: CommonFlags,
    table: Table,
    column: From,
    fan_out: Annotated[int, typer.Option(metavar="N", min=2, max=100, help="Children of a node, about.")] = 4,
    out: Out = None,
    overwrite: Overwrite = False,
) -> int:
    """A tree from the data alone: neighbours in the order of the values, in nodes of about the same number of rows.

    Labels are the first and the last value below a node: Aachen..Bonn. Use it where no classification exists.
    """
    from anon.commands.hierarchies import build_from_counts

    return _built(flags, table, column, out, lambda values, to: build_from_counts(values, to, overwrite, fan_out))


CODE_COMMANDS = (country, icd10, atc, isco, isced, postcode, auto)


def _coded(
    flags: CommonFlags,
    table: str,
    column: str,
    codes: CodeList,
    out: Path | None,
    overwrite: bool,
    unknown: str | None,
    pad: int | None = None,
) -> int:
    from anon.commands.hierarchies import build_from_codes

    return _built(
        flags, table, column, out, lambda values, to: build_from_codes(values, codes, to, overwrite, pad, unknown)
    )


def _built(
    flags: CommonFlags,
    table: str,
    column: str,
    out: Path | None,
    build: Callable[[CountedValues, Path], BuiltHierarchy],
) -> int:
    """Build a file, or print its lines; return the exit code."""
    from anon.commands.hierarchies import counted_values

    with counted_values(table, column, "--from") as values:
        to = values.folder / "hierarchy.csv" if out is None else out
        found = build(values, to)
        if flags.as_json:
            _say(found, out, to, flags.show_values)
        elif found.written and out is None:
            with to.open(encoding="utf-8", newline="") as file:
                sys.stdout.writelines(file)
        elif found.written:
            print_levels(one_line(f"{out} was written"), found.facts)
        if found.unknown and not flags.as_json:
            _print_gap(found, one_line(column), flags.show_values)
    return 0 if found.written else 2


def _say(found: BuiltHierarchy, out: Path | None, to: Path, show_values: bool) -> None:
    from anon.hierarchy.csv_files import read_records

    where: dict[str, Any] = {}
    if found.written:
        where = {"hierarchy": [row for _, row in read_records(to, "")]} if out is None else {"file": str(out)}
    if show_values:
        where["unknown"] = [{"value": value, "rows": rows} for value, rows in found.unknown.items()]
    say_json(found.facts | where)


def _print_gap(found: BuiltHierarchy, column: str, show_values: bool) -> None:
    """Print to stderr how many codes the list does not have, since stdout may be the file."""
    from rich.console import Console
    from rich.text import Text

    from anon.hierarchy.from_values import LISTED

    facts, console = found.facts, Console(stderr=True)
    gap = (
        f"{column}: {facts['unknown_values']:,} distinct values, in {facts['unknown_rows']:,} rows, are not in the list"
    )
    result = "" if found.written else "; nothing was written (--unknown LABEL puts them under a label of their own)"
    hint = "" if show_values else " (--show-values lists them)"
    console.print(Text(f"{gap}{hint}{result}", style="" if found.written else "red"), soft_wrap=True)
    if show_values:
        for value, rows in list(found.unknown.items())[:VALUES_SHOWN]:
            console.print(Text(f"  {json_text(value)}: {rows:,} rows"), soft_wrap=True)
        if (more := facts["unknown_values"] - VALUES_SHOWN) > 0:
            console.print(Text(f"  and {more:,} more; --json lists up to {LISTED:,}"), soft_wrap=True)
