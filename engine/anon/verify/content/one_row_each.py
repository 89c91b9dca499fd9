"""Check that the rows of a release are those that `columns.rows` of the config says, without the ordering by which the
source stage chose them: every row of an individual is compared with the chosen one, column by column."""

from __future__ import annotations

from collections.abc import Sequence

from anon.config import Config
from anon.core.phrases import counted
from anon.source import Source
from anon.source.one_row_each import CHOSEN, MOMENT
from anon.source.requirements import ROWS, Aggregate, DuckDBRows, SqlTable
from anon.verify.content.applied import wrong


def check_choice(source: Source, config: Config) -> None:
    """Raise VerificationError if a row of an individual was chosen that is not the first or last one, as the config
    says; none was, or several."""
    if config.columns.rows.chooses:
        check_chosen(DuckDBRows(source.database, "kept_rows"), CHOSEN, source, config)


def check_chosen(every: SqlTable, chosen: str, source: Source, config: Config) -> None:
    """Do as `check_choice` with a table of all rows and the name of one of those that were chosen."""
    aliases = [column.alias for column in (*source.quasi_identifiers, *source.sensitive, *source.keep)]
    later, earlier = ("e", "c") if config.columns.rows.keep == "last" else ("c", "e")
    better = f"bool_or({_after([MOMENT, *aliases], later, earlier)})"
    there = f"bool_or({' AND '.join(_same(name) for name in (MOMENT, *aliases))})"
    people = (
        f"SELECT coalesce({better}, true) AS better, coalesce({there}, false) AS there "
        f"FROM {every.name} AS e LEFT JOIN {chosen} AS c ON e.who = c.who GROUP BY e.who"
    )
    mistaken = Aggregate.counting("mistaken", "better OR NOT there")
    found = every.evaluate([ROWS, mistaken], f"({people}) AS people")
    rows = int(every.evaluate([ROWS], chosen)[ROWS.name])
    if mistakes := int(found[mistaken.name]) or abs(rows - int(found[ROWS.name])):
        raise wrong(f"does not hold the {config.columns.rows.keep} row of {counted(mistakes)}")


def _same(name: str) -> str:
    return f"e.{name} IS NOT DISTINCT FROM c.{name}"


def _after(names: Sequence[str], later: str, earlier: str) -> str:
    """Return SQL for whether a row of one table comes after one of another: by the first column that differs, where
    null comes before every value.

    >>> _after(["a", "b"], "x", "y").count("IS NOT DISTINCT FROM")
    1
    """
    *before, last = names
    sql = _greater(last, later, earlier)
    for name in reversed(before):
        sql = f"({_greater(name, later, earlier)} OR ({_same(name)} AND {sql}))"
    return sql


def _greater(name: str, later: str, earlier: str) -> str:
    return f"({later}.{name} IS NOT NULL AND ({earlier}.{name} IS NULL OR {later}.{name} > {earlier}.{name}))"
