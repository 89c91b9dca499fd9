"""Measure what rounding (`round` of sensitive columns and of `columns.aggregate`) loses of the source's numbers."""

from __future__ import annotations

from anon.source import Column, Source

DIGITS = 9  # of figures that do not depend on the order in which a database adds


def lost_by_rounding(source: Source) -> dict[str, dict[str, float]]:
    """Return for each column that is published rounded the squared changes of its values as a share of their variance,
    and the mean absolute change, over all rows of the source that have a value."""
    columns = [column for column in (*source.sensitive, *source.keep) if column.stored is not None]
    return {column.name: _lost(source, column) for column in columns}


def _lost(source: Source, column: Column) -> dict[str, float]:
    _, exact = column.as_stored
    pairs = f"SELECT CAST({exact} AS DOUBLE) AS x, CAST({column.sql} AS DOUBLE) AS y FROM raw_rows"
    sums = "sum((x - y) ** 2), var_pop(x) * count(x), avg(abs(x - y))"
    squares, spread, change = (each[0].as_py() or 0.0 for each in source.query(f"SELECT {sums} FROM ({pairs})"))
    return {"variance_lost": _digits(squares / spread if spread else 0.0), "mean_change": _digits(change)}


def _digits(figure: float) -> float:
    return float(f"{figure:.{DIGITS}g}")
