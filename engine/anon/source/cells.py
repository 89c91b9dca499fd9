"""The types of cells of text: which texts are numbers, dates or booleans, and the SQL for their values, as the options
of `source.csv` say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from anon.config.text_files import Csv, format_pattern, has_time
from anon.core.database import literal

# A column of text has the first type that all its values are written like; a leading zero or a stray word keeps it text
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = _DAY + r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
ANY_DATE = "[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}"  # also 9.3.2024 and 03/09/24
CSV_TYPES = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?",
    "DATE": _DAY,
    "TIMESTAMP": _MOMENT,
    "TIMESTAMPTZ": _MOMENT + "(Z|[-+][0-9]{2}(:?[0-9]{2})?)",
    "BOOLEAN": "true|false|True|False|TRUE|FALSE",
}
# what no column is called: a number, a date, a phone number, an address of mail
_VALUE = re.compile("|".join([*CSV_TYPES.values(), ANY_DATE, r"[+(]?[0-9][0-9 ()/.-]{4,}", r"[^@\s]+@[^@\s]+[.]\w+"]))
CODE = "0[0-9]+"  # a number with a leading zero, which makes a column one of codes
# what texts of each type meet, which is faster to see than the pattern
GUARDS = {
    "BIGINT": "{v} < ':'",  # a digit or a minus sign comes first
    "DOUBLE": "{v} < ':'",
    "DATE": "strlen({v}) = 10",
    "TIMESTAMP": "strlen({v}) >= 16",
    "TIMESTAMPTZ": "strlen({v}) >= 17",
    "BOOLEAN": "strlen({v}) BETWEEN 4 AND 5",
}
PLURALS = {
    "BIGINT": "integers",
    "DOUBLE": "numbers",
    "DATE": "dates",
    "TIMESTAMP": "timestamps",
    "TIMESTAMPTZ": "timestamps",
    "BOOLEAN": "booleans",
}
KINDS = {
    "integer": ("BIGINT",),
    "number": ("DOUBLE",),
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP", "TIMESTAMPTZ"),
    "boolean": ("BOOLEAN",),
}


def like_value(name: str) -> bool:
    """Return whether the name of a column looks like data.

    >>> [like_value(name) for name in ("age", "44", "9.3.2024", "ann@example.org")]
    [False, True, True, True]
    """
    return _VALUE.fullmatch(name) is not None


@dataclass(frozen=True)
class CellType:
    """A type that a cell may have: its name in DuckDB, the pattern of its texts, and what SQL makes its value of the
    text `{v}`: without an error, null where there is none."""

    type: str
    pattern: str
    converted: str
    format: str = ""  # of dates

    def fits(self, sql: str) -> str:
        """Return SQL that holds for the texts that are of this type. DuckDB stops at the first condition that does not
        hold only inside a CASE."""
        guard = ("{v} < ':'" if self.format else GUARDS[self.type]).replace("{v}", sql)
        like = f"{guard} AND regexp_full_match({sql}, {literal(self.pattern)}) AND {self.value(sql)} IS NOT NULL"
        return f"(CASE WHEN {like} THEN true ELSE false END)"

    def value(self, sql: str) -> str:
        """Return the SQL for the value of a text."""
        return self.converted.replace("{v}", sql)

    @property
    def plural(self) -> str:
        """What values of this type are called, with their format if it is not the usual one."""
        return PLURALS[self.type] + (f" like {self.format}" if self.format else "")


class CellTypes:
    """The types that the cells of a file may have, by its options."""

    def __init__(self, csv: Csv) -> None:
        self.csv = csv
        self._usual = {name: _usual(name, csv) for name in CSV_TYPES}

    def of_column(self, column: str) -> tuple[list[CellType], bool]:
        """Return the types that a column may have, in the order in which they are tried, and whether it must have one
        of them."""
        if column in self.csv.formats:
            return [dated(self.csv.formats[column])], True
        kind = self.csv.types.get(column)
        if kind == "text":
            return [], False
        if kind is not None:
            return [each for each in self._all() if each.type in KINDS[kind]], True
        return list(self._all()), False

    def _all(self) -> Iterator[CellType]:
        if self.csv.format is not None:
            yield dated(self.csv.format)
        yield from self._usual.values()


def dated(written: str) -> CellType:
    """Return dates of a format. DuckDB reads 24 as the year 24 where %Y is wanted, so the pattern says how long parts
    are."""
    kind = "TIMESTAMP" if has_time(written) else "DATE"
    return CellType(kind, format_pattern(written), f"CAST(try_strptime({{v}}, {literal(written)}) AS {kind})", written)


def _usual(name: str, csv: Csv) -> CellType:
    plain = csv.decimal == "." and not csv.thousands
    if plain or name not in ("BIGINT", "DOUBLE"):
        return CellType(name, CSV_TYPES[name], f"TRY_CAST({{v}} AS {name})")
    text = f"replace({{v}}, {literal(csv.thousands)}, '')" if csv.thousands else "{v}"
    if name == "DOUBLE" and csv.decimal == ",":
        text = f"replace({text}, ',', '.')"
    return CellType(name, _number_pattern(name, csv), f"TRY_CAST({text} AS {name})")


def _number_pattern(name: str, csv: Csv) -> str:
    """Return the pattern of numbers with groups of three digits and a decimal comma.

    >>> re.fullmatch(_number_pattern("DOUBLE", Csv(decimal=",", thousands=".")), "1.234,5") is not None
    True
    """
    whole = "[1-9][0-9]{0,17}" if name == "BIGINT" else "[1-9][0-9]{0,14}"
    if csv.thousands:
        whole += f"|[1-9][0-9]{{0,2}}({re.escape(csv.thousands)}[0-9]{{3}}){{1,4}}"
    fraction = "" if name == "BIGINT" else f"({re.escape(csv.decimal)}[0-9]+)?([eE][-+]?[0-9]{{1,2}})?"
    return f"-?(0|{whole}){fraction}"
