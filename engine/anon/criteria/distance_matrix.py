"""Read the CSV file of a `matrix` distance. Its first line names the values after an empty corner, each other line is a
value and its distances to all of them:

    ;flu;asthma
    flu;0;0.4
    asthma;0.4;0

It is refused, with the lines and fields at fault, unless it is complete and symmetric with zeros on the diagonal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from anon.config import LARGEST_EXPONENT
from anon.errors import ConfigError, Problem
from anon.hierarchy.csv_files import Record, read_records, refuse


@dataclass(frozen=True)
class Sheet:
    """The records of a matrix file; `where` is the config field that names it."""

    file: str
    where: str
    names: list[str]
    records: list[Record]

    def problem(self, line: int, found: str, expected: str) -> Problem:
        return Problem(self.where, f"{self.file} line {line}: {found}", expected)


def read_matrix(path: Path, where: str) -> dict[str, dict[str, Fraction]]:
    """Return the distance of each value to each value."""
    records = list(read_records(path, where))
    if not records:
        raise ConfigError.at(where, f"{path.name} without a line", "a line of values, then a line for each of them")
    sheet = Sheet(path.name, where, records[0][1][1:], records[1:])
    refuse(list(_misnamed(sheet, records[0][0])))
    refuse(list(_no_distances(sheet)))
    table = {name: dict(zip(sheet.names, map(_distance, fields))) for _, (name, *fields) in sheet.records}
    refuse(list(_lopsided(sheet, table)))
    return table  # type: ignore[return-value]


def _misnamed(sheet: Sheet, header: int) -> Iterator[Problem]:
    width, known, seen = len(sheet.names), set(sheet.names), set[str]()
    if len(known) < width:
        yield sheet.problem(header, f"{width - len(known)} values named twice", "every value once")
    for line, (name, *fields) in sheet.records:
        if name not in known:
            yield sheet.problem(line, "a value that the first line does not name", "the values of the first line")
        elif name in seen:
            yield sheet.problem(line, "a value that an earlier line begins with", "one line for each value")
        elif len(fields) != width:
            yield sheet.problem(line, f"{len(fields)} distances", f"{width}, one for each value of the first line")
        seen.add(name)
    if known - seen:
        yield Problem(sheet.where, f"{sheet.file}: {len(known - seen)} values without a line", "a line for each value")


def _distance(field: str) -> Fraction | None:
    """Return a decimal that is not negative and as long as those of a config, or None."""
    try:
        number = Decimal(field.strip())
    except InvalidOperation:
        return None
    usable = number.is_finite() and number >= 0 and abs(number.adjusted()) <= LARGEST_EXPONENT
    return Fraction(number) if usable else None


def _no_distances(sheet: Sheet) -> Iterator[Problem]:
    for line, (_, *fields) in sheet.records:
        for place, field in enumerate(fields, 2):
            if _distance(field) is None:
                found = "nothing" if not field.strip() else "no decimal number of 0 or more"
                expected = f"a distance of 0 or more, with an exponent of at most {LARGEST_EXPONENT}"
                yield sheet.problem(line, f"field {place}: {found}", expected)


def _lopsided(sheet: Sheet, table: dict[str, dict[str, Fraction | None]]) -> Iterator[Problem]:
    line_of = {fields[0]: line for line, fields in sheet.records}
    for place, name in enumerate(sheet.names, 2):
        if table[name][name] != 0:
            yield sheet.problem(line_of[name], f"field {place}: not 0", "no distance from a value to itself")
        for other_place, other in enumerate(sheet.names[: place - 2], 2):
            if table[name][other] != table[other][name]:
                found = f"field {other_place}: another distance than line {line_of[other]}, field {place}"
                yield sheet.problem(line_of[name], found, "the same distance both ways")
