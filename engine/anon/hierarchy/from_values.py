"""Make the rows of a hierarchy from the values of a column: by a classification, or by how often values occur."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from anon.core.database import Database, interruptible
from anon.core.text import span, text
from anon.hierarchy.code_lists import CodeList
from anon.hierarchy.label_levels import ROOT, Row

BATCH = 10_000  # values that are read at a time
LISTED = 10_000  # unknown values that are kept, of a column that may have many more


@dataclass
class UnknownCodes:
    """The values that a classification does not have: their number, their rows, and the first of them with the rows of
    each, for a caller that may show values."""

    values: int = 0
    rows: int = 0
    listed: dict[str, int] = field(default_factory=dict, repr=False)


def unknown_codes(counts: Iterable[tuple[str, int]], codes: CodeList, pad: int | None = None) -> UnknownCodes:
    """Return the values that a classification does not have."""
    found = UnknownCodes()
    for value, rows in counts:
        if codes.labels(_padded(value, pad)) is None:
            found.values, found.rows = found.values + 1, found.rows + rows
            if len(found.listed) < LISTED:
                found.listed[value] = rows
    return found


def code_rows(
    values: Iterable[str], codes: CodeList, pad: int | None = None, unknown: str | None = None
) -> Iterator[Row]:
    """Yield a row for each value that a classification has, and under the label `unknown`, if it is given, for the
    others. `pad`: the length to which values regain leading zeros."""
    before: set[str] = set()
    for value in values:
        leaf = _padded(value, pad)
        labels = codes.labels(leaf) or (None if unknown is None else (unknown,) * codes.levels)
        if labels is not None and leaf not in before:
            yield leaf, *labels, ROOT
        if pad is not None:
            before.add(leaf)


def _padded(value: str, pad: int | None) -> str:
    return value.zfill(pad) if pad is not None and value.isascii() and value.isdigit() else value


def balanced_rows(database: Database, counted: str, kind: str, fan_out: int) -> Iterator[Row]:
    """Yield a row for each value `v` of a table with its number of rows `n`, in order of the values. Neighbours share
    nodes, so that the nodes of a level have about the same number of rows and each about `fan_out` children; a value
    that is frequent enough has nodes of its own.

    With x the share of the rows before the middle of a value, its node at the level of f^j nodes is floor(x * f^j).
    These are nested, since floor(x * f^(j-1)) = floor(floor(x * f^j) / f), and follow from counts alone.
    """
    levels = inner_levels(int(database.one(f"SELECT count(*) FROM {counted}")[0]), fan_out)
    ends = [f"min(v) OVER {name}, max(v) OVER {name}" for name in (f"level_{at}" for at in range(levels))]
    windows = [f"level_{at} AS (PARTITION BY node // {fan_out**at})" for at in range(levels)]
    shares = f"SELECT v, 2 * (sum(n) OVER (ORDER BY v)) - n AS middle, 2 * (sum(n) OVER ()) AS total FROM {counted}"
    nodes = f"SELECT v, CAST(middle AS HUGEINT) * {fan_out**levels} // CAST(total AS HUGEINT) AS node FROM ({shares})"
    window = f" WINDOW {', '.join(windows)}" if windows else ""
    rows = database.query(f"SELECT {', '.join(['v', *ends])} FROM ({nodes}){window} ORDER BY v").to_arrow_reader(BATCH)
    joined = span if kind in ("integer", "date") else _joined
    for batch in interruptible(rows, "reading the table"):
        for value, *bounds in zip(*(column.to_pylist() for column in batch.columns)):
            yield text(value), *_labels(bounds, joined), ROOT


def inner_levels(values: int, fan_out: int) -> int:
    """Return the number of levels between the values and the root: as few as give the root at most `fan_out` children
    where all values are equally frequent.

    >>> [inner_levels(values, 4) for values in (1, 4, 5, 16, 17)]
    [0, 0, 1, 1, 2]
    """
    levels = 0
    while fan_out ** (levels + 1) < values:
        levels += 1
    return levels


def _labels(bounds: list[Any], joined: Callable[[str, str], str]) -> Iterator[str]:
    for low, high in list(pairwise(bounds))[::2]:
        yield text(low) if low == high else joined(text(low), text(high))


def _joined(low: str, high: str) -> str:
    return f"{low}..{high}"
