"""Compare the typed bounds of a written release with its labels. Nothing of what wrote them is used: labels are read by
the grammar of verification (content/labels.py), levels of the calendar by DuckDB's own arithmetic of dates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon.core.database import Database, quote
from anon.verify.content.labels import HIGHEST, LOWEST, NULL, OrderedLabels, as_keys

WHOLE = ("integer", "date")  # kinds whose cells include their ends
DAY, MONTH, QUARTER = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{4}-[0-9]{2}", "[0-9]{4}-Q[1-4]"
DECADE, CENTURY = "[0-9]{3}0-[0-9]{3}9", "[0-9]{2}00-[0-9]{2}99"
# the level of the calendar that a label is of, the SQL of its first day, and its length
LEVELS = (
    (f"{DAY}(T.*)?", "CAST(left(w, 10) AS DATE)", "1 DAY"),
    (MONTH, "CAST(w || '-01' AS DATE)", "1 MONTH"),
    (QUARTER, "make_date(CAST(left(w, 4) AS INT), 3 * CAST(right(w, 1) AS INT) - 2, 1)", "3 MONTHS"),
    (CENTURY, "make_date(CAST(left(w, 4) AS INT), 1, 1)", "100 YEARS"),
    (DECADE, "make_date(CAST(left(w, 4) AS INT), 1, 1)", "10 YEARS"),
    ("[0-9]{4}", "make_date(CAST(w AS INT), 1, 1)", "1 YEAR"),
)


def difference_in_bounds(database: Database, view: str, bounds: dict[str, str]) -> str:
    """Return which bounds are not those of their labels, or ""; `bounds` has the kind of each column with bounds."""
    for column, kind in bounds.items():
        wrong = _wrong_days(database, view, column) if kind == "calendar" else _wrong(database, view, column, kind)
        if wrong:
            return f"has {wrong:,} labels of column {column!r} with other bounds than theirs"
    return ""


def _distinct(view: str, column: str) -> str:
    """Return SQL for the distinct labels of a column with their bounds: w, low and high; missing values aside."""
    word, low, high = (quote(name) for name in (column, f"{column}_low", f"{column}_high"))
    return f"SELECT DISTINCT regexp_replace({word}, '^null\\|', '') AS w, {low} AS low, {high} AS high FROM {view}"


def _wrong(database: Database, view: str, column: str, kind: str) -> int:
    """Return the number of labels whose bounds are not their ends."""
    table = database.query(_distinct(view, column)).to_arrow_table().combine_chunks()
    words, low, high = (_whole(table[name]) for name in ("w", "low", "high"))
    unlimited = np.asarray(pc.fill_null(pc.is_in(words, pa.array(["*", "not null"])), True))
    ranges = OrderedLabels(kind).ranges(words)
    first = np.where(unlimited | (ranges[:, 0] == LOWEST), NULL, ranges[:, 0])
    last = np.where(unlimited | (ranges[:, 1] == HIGHEST), NULL, ranges[:, 1])
    low_key, high_key = as_keys(kind, low), as_keys(kind, high)
    if kind not in WHOLE:  # the end of a range is not in it, a value by itself is
        high_key = np.where((high_key == NULL) | (low_key == high_key), high_key, high_key - 1)
    right: NDArray[np.bool_] = (first == low_key) & (last == high_key)
    return len(right) - int(right.sum())


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _wrong_days(database: Database, view: str, column: str) -> int:
    """Return the number of levels of the calendar whose bounds are not their first and last days; others have none."""
    first = " ".join(f"WHEN regexp_full_match(w, '{form}') THEN {sql}" for form, sql, _ in LEVELS)
    length = " ".join(f"WHEN regexp_full_match(w, '{form}') THEN INTERVAL {time}" for form, _, time in LEVELS)
    days = f"SELECT *, CASE {first} END AS begins, CASE {length} END AS lasts FROM ({_distinct(view, column)})"
    last = "CAST(begins + lasts AS DATE) - 1"
    wrong = f"low IS DISTINCT FROM begins OR high IS DISTINCT FROM {last}"
    return int(database.one(f"SELECT count_if({wrong}) FROM ({days})")[0])
