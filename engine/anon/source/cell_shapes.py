"""The shapes of the cells of a CSV file: digits as 9, a leading zero as 0, marks as they are. A few counts stand for
all cells of a column, and show its numbers, dates and codes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from anon.core.database import Database, literal, translated
from anon.source.bad_cells import nearly
from anon.source.csv_files import TextCopy
from anon.source.many_columns import stacked

# digits with marks of numbers, dates and times; nothing longer is one of these
SHAPED = "[-+]?[0-9][-0-9.,:/'\u2019 \u00a0\u202fTZ+]{0,31}"
NUMBER = re.compile(r"-?[09]+([.,'\u2019 \u00a0\u202f][09]{3})*([.,][09]+)?")
DATE = re.compile(r"[09]{1,4}[./-][09]{1,2}[./-][09]{1,4}([ T][09]{1,2}:[09]{2}(:[09]{2})?)?")
TOGETHER = 50  # columns of a query


@dataclass
class ColumnShapes:
    """The cells of a column: how many have each shape, how many are each marker for no value, and how many are text."""

    name: str
    shapes: dict[str, int] = field(default_factory=dict)
    markers: dict[str, int] = field(default_factory=dict)
    words: int = 0
    empty: int = 0  # in quotes

    @property
    def present(self) -> int:
        """The cells with a value."""
        return sum(self.shapes.values()) + sum(self.markers.values()) + self.words

    def matching(self, pattern: re.Pattern[str]) -> int:
        """Return the number of cells of a shape."""
        return sum(count for shape, count in self.shapes.items() if pattern.fullmatch(shape))

    @property
    def valued(self) -> bool:
        """Whether the cells are numbers or dates, but for markers and a few others."""
        rest = self.present - sum(self.markers.values())
        return any(nearly(self.matching(pattern), rest) for pattern in (NUMBER, DATE))

    @property
    def codes(self) -> int:
        """The cells that are numbers with a leading zero, if all cells are digits but for a few."""
        digits = sum(count for shape, count in self.shapes.items() if shape.isdigit())
        zeros = sum(count for shape, count in self.shapes.items() if shape.isdigit() and re.fullmatch("09+", shape))
        return zeros if nearly(digits, self.present) else 0

    def take_out(self, markers: Collection[str]) -> None:
        """Count some markers as no value, and all others as text."""
        self.words += sum(count for marker, count in self.markers.items() if marker not in markers)
        self.markers = {}


def column_shapes(database: Database, copied: TextCopy, markers: Sequence[str]) -> list[ColumnShapes]:
    """Return the shapes of the cells of every column, in a pass for every 50 columns."""
    found = [ColumnShapes(column.name) for column in copied.columns]
    for start in range(0, len(found), TOGETHER):
        part = copied.columns[start : start + TOGETHER]
        for nth, kind, shape, count in _counted(database, copied, [column.text for column in part], markers):
            _add(found[start + nth], kind, shape, count)
    return found


def _counted(
    database: Database, copied: TextCopy, texts: list[str], markers: Sequence[str]
) -> Iterator[tuple[int, str, str, int]]:
    listed = ", ".join(map(literal, markers))
    nines = "translate(v, '012345678', '999999999')"
    shape = f"CASE WHEN regexp_matches(v, '^[-+]?0') THEN regexp_replace({nines}, '^([-+]?)9', '\\10') ELSE {nines} END"
    kind = (
        f"CASE WHEN v = '' THEN 'empty' WHEN v IN ({listed}) THEN 'marker' "
        f"WHEN regexp_full_match(v, {literal(SHAPED)}) THEN 'shape' ELSE 'words' END"
    )
    cells = f"SELECT nth, v, {kind} AS kind FROM {stacked(copied.base, texts)} WHERE v IS NOT NULL"
    said = f"CASE kind WHEN 'marker' THEN v WHEN 'shape' THEN {shape} ELSE '' END"
    with translated("reading the source"):
        sql = f"SELECT nth, kind, {said} AS said, count(*) FROM ({cells}) GROUP BY ALL ORDER BY ALL"
        yield from database.query(sql).fetchall()


def _add(column: ColumnShapes, kind: str, said: str, count: int) -> None:
    if kind == "shape":
        column.shapes[said] = count
    elif kind == "marker":
        column.markers[said] = count
    elif kind == "empty":
        column.empty += count
    else:
        column.words += count
