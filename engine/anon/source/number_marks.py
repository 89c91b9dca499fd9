"""Which marks the numbers of a file have before their decimals and between their thousands, as far as the shapes of the
cells show: 1.234 alone shows neither."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from anon.source.bad_cells import nearly
from anon.source.cell_shapes import NUMBER, ColumnShapes

OTHERS = "'\u2019 \u00a0\u202f"  # marks that no decimals follow
GROUPS = re.compile(r"-?9{1,3}([.,'\u2019 \u00a0\u202f])[09]{3}(?:\1[09]{3})*(?:(?!\1)([.,])[09]+)?")
DECIMALS = re.compile(r"-?[09]+([.,])[09]+")
UNCLEAR = "{count:,} numbers have a mark before three digits, and none shows whether thousands or decimals"


@dataclass
class Marks:
    """The marks of the numbers of a file, what shows them, and the columns that could be read in two ways."""

    decimal: str = "."
    thousands: str = ""
    decimal_evidence: str = ""
    thousands_evidence: str = ""
    unclear: dict[str, str] = field(default_factory=dict)


@dataclass
class _Counts:
    """How many cells show that a mark is that of decimals, or of thousands, and how many show neither."""

    decimal: Counter[str] = field(default_factory=Counter)
    thousands: Counter[str] = field(default_factory=Counter)
    either: Counter[str] = field(default_factory=Counter)

    def add(self, shape: str, count: int) -> None:
        mark, after = _groups(shape)
        if mark is None:
            if decimals := DECIMALS.fullmatch(shape):
                self.decimal[decimals[1]] += count
        elif after is not None or mark in OTHERS or shape.count(mark) > 1:
            self.thousands[mark] += count
            self.decimal[after or ""] += count if after else 0
        else:
            self.either[mark] += count


def _groups(shape: str) -> tuple[str | None, str | None]:
    """Return the mark between groups of three digits and that of the decimals after them; None where there is none.

    >>> _groups("9.999,99"), _groups("9.999,999"), _groups("9.999"), _groups("0.999"), _groups("99,9")
    (('.', ','), ('.', ','), ('.', None), (None, None), (None, None))
    """
    found = GROUPS.fullmatch(shape)
    return (found[1], found[2]) if found else (None, None)


def number_marks(columns: Sequence[ColumnShapes]) -> Marks:
    """Return the marks that the columns of numbers show."""
    numbers = [each for each in columns if nearly(each.matching(NUMBER), each.present) and not _spaced(each)]
    counts = {each.name: _Counts() for each in numbers}
    whole = _Counts()
    for each in numbers:
        for shape, count in each.shapes.items():
            counts[each.name].add(shape, count)
            whole.add(shape, count)
    return _decided(whole, counts)


def _spaced(column: ColumnShapes) -> bool:
    """Return whether all cells have spaces or the like between their digits: numbers of telephones and accounts do."""
    return all(any(mark in shape for mark in OTHERS) for shape in column.shapes)


def _decided(whole: _Counts, counts: dict[str, _Counts]) -> Marks:
    marks = Marks()
    clear = {mark: whole.decimal[mark] - whole.thousands[mark] for mark in ".,"}
    if clear[","] > max(clear["."], 0) or (whole.thousands["."] and not whole.decimal["."]):
        marks.decimal = ","
        marks.decimal_evidence = f"{whole.decimal[',']:,} numbers have decimals after a comma"
    other = "." if marks.decimal == "," else ","
    shown = clear[marks.decimal] > 0
    candidates = [other, *OTHERS] if shown or whole.thousands[other] else [*OTHERS]
    groups = {mark: whole.thousands[mark] + (whole.either[mark] if mark == other else 0) for mark in candidates}
    best = max(candidates, key=lambda mark: groups[mark])
    if groups[best]:
        marks.thousands = best
        marks.thousands_evidence = f"{groups[best]:,} numbers have it between groups of three digits"
    if not shown and not whole.thousands[other]:
        marks.unclear = {
            name: UNCLEAR.format(count=sum(own.either.values())) + ": set csv.decimal or csv.thousands"
            for name, own in counts.items()
            if own.either
        }
    return marks
