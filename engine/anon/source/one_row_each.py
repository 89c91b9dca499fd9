"""One row per individual where a config says which of several is used (`columns.rows`). The rows that missing values do
not drop are ordered by one column, nulls first, and rows that agree on it by all published columns in the order of the
config: the choice is a function of the rows alone, whatever their order, the memory, the threads and the backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon.config import Columns, RowRule
from anon.core.database import Database, quote, translated
from anon.source.column_words import AGES, DATES, words
from anon.source.left_out import OtherRows
from anon.source.requirements import ROWS, Aggregate, DuckDBRows, SqlTable
from anon.source.types import TypedColumn, Unusable, UnusableText, type_column

CHOSEN = "chosen_rows"  # the rows that are used, where some are not
MOMENT = "moment"  # what orders the rows of an individual, in the views of a source
FIELD = "columns.rows.by"
ORDERED = ("integer", "number", "decimal", "date", "timestamp")
NAMED = 4  # columns that a message names


def typed_moment(rule: RowRule, types: Mapping[str, str]) -> TypedColumn | Unusable | None:
    """Return the column that orders the rows of an individual, or why it cannot; None where every row is used."""
    if rule.by is None:
        return None
    expected = "numbers, dates or times"
    try:
        column = type_column(FIELD, quote(rule.by), types[rule.by], "s")
    except Unusable as error:
        return Unusable(error.args[0], expected)
    if column.kind == "text":
        return UnusableText("type text, whose order is not that of dates or numbers", expected, column.sql)
    return column if column.kind in ORDERED else Unusable(f"type {column.kind}", expected)


def order(rule: RowRule, aliases: Sequence[str]) -> list[str]:
    """Return the SQL that orders the rows of an individual, the one that is used first; DuckDB and Spark understand it.

    >>> order(RowRule(keep="last", by="visited"), ["q0"])
    ['moment DESC NULLS LAST', 'q0 DESC NULLS LAST']
    """
    direction = "ASC NULLS FIRST" if rule.keep == "first" else "DESC NULLS LAST"
    return [f"{name} {direction}" for name in (MOMENT, *aliases)]


def chosen(rows: str, rule: RowRule, aliases: Sequence[str]) -> str:
    """Return SQL for the rows of a view that are used, with `who` each is about and the published columns."""
    place = f"row_number() OVER (PARTITION BY who ORDER BY {', '.join(order(rule, aliases))})"
    listed = ", ".join(("who", MOMENT, *aliases))
    return f"SELECT {listed} FROM (SELECT {listed}, {place} AS place FROM {rows}) AS numbered WHERE place = 1"


def choose(database: Database, rule: RowRule, aliases: Sequence[str]) -> OtherRows:
    """Create the table of the rows that are used; return the count of the others. It is made once: every pass over the
    source would otherwise sort all of its rows again."""
    with translated("choosing a row of every individual"):
        database.execute(f"CREATE TABLE {CHOSEN} AS {chosen('kept_rows', rule, aliases)}")
    return other_rows(DuckDBRows(database, "kept_rows"), rule)


def other_rows(kept: SqlTable, rule: RowRule) -> OtherRows:
    """Count the rows of a table that are not used, and the individuals who have several rows."""
    several = Aggregate.counting("individuals with several rows", "n > 1")
    more = Aggregate("other rows", "coalesce(sum(n - 1), 0)")
    people = f"(SELECT count(*) AS n FROM {kept.name} GROUP BY who) AS people"
    answers = kept.evaluate([ROWS, several, more], people)
    return OtherRows(rule.keep, str(rule.by), int(answers[more.name]), int(answers[several.name]))


def ways_on(columns: Columns, types: Mapping[str, str]) -> str:
    """Return what to do about individuals with several rows. Columns that can order the rows are named: those of dates
    and times by their types, and those that are not read, whose type is "", by their names."""
    known = [
        n for n, kind in types.items() if kind.startswith(("DATE", "TIMESTAMP")) or (not kind and words(n) & DATES)
    ]
    dates = [name for name in known if not words(name) & AGES and name != columns.individual]
    by = dates[0] if dates else "COLUMN"
    others = f" (columns of dates: {', '.join(dates[:NAMED])})" if len(dates) > 1 else ""
    return (
        f"set columns.rows: {{keep: last, by: {by}}} to use the newest row of each{others}; or columns.multiplicity: "
        "set or multiset, to publish all values of each in bucketized form; or one row each by a query in the source"
    )
