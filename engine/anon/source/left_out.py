"""Rows and individuals of a table that are not in its release, counted once, by reason: the terminal, the JSON, the
report, its page and `explain` all show these counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from anon.source.tables import one

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Reasons:
    """A count for each reason. A row without a quasi-identifier and without a sensitive value counts once, under
    quasi-identifiers."""

    null_quasi_identifiers: int = 0
    null_sensitive: int = 0
    suppressed: int = 0

    @property
    def all(self) -> int:
        return self.null_quasi_identifiers + self.null_sensitive + self.suppressed

    def to_dict(self) -> dict[str, int]:
        return {"all": self.all, **asdict(self)}


@dataclass(frozen=True)
class LeftOut:
    """Rows that are not in the release, and individuals none of whose rows are."""

    rows: Reasons = Reasons()
    individuals: Reasons = Reasons()

    def with_suppressed(self, rows: int, individuals: int) -> LeftOut:
        """Return the same counts with those of suppressed cells."""
        return LeftOut(replace(self.rows, suppressed=rows), replace(self.individuals, suppressed=individuals))

    def to_dict(self) -> dict[str, dict[str, int]]:
        return {"rows": self.rows.to_dict(), "individuals": self.individuals.to_dict()}


def null_values_sql(table: str, who: str, quasi_identifiers: list[str], sensitive: list[str]) -> str:
    """SQL: for each row `who` it is about and whether it has a null, by role, among some SQL expressions."""
    roles = {"no_quasi_identifier": quasi_identifiers, "no_sensitive": sensitive}
    tests = (f"{_any_null(cells)} AS {alias}" for alias, cells in roles.items())
    return f"SELECT {who} AS who, {', '.join(tests)} FROM {table}"


def _any_null(cells: list[str]) -> str:
    return f"({' OR '.join(f'{cell} IS NULL' for cell in cells)})" if cells else "false"


def count_left_out(con: duckdb.DuckDBPyConnection, table: str, by_person: bool) -> LeftOut:
    """Count what null values leave out of a table made by `null_values_sql`, in SQL that Spark understands too.

    An individual is left out if all of their rows are, under quasi-identifiers if any of these has none. Rows that name
    nobody count as rows only."""
    reasons = "count(*) FILTER (WHERE q), count(*) FILTER (WHERE NOT q AND s)"
    rows = f"SELECT no_quasi_identifier AS q, no_sensitive AS s FROM {table}"
    counted = _reasons(con, f"SELECT {reasons} FROM ({rows}) AS t")
    if not by_person:
        return LeftOut(counted, counted)
    people = (
        f"SELECT bool_or(no_quasi_identifier) AS q, true AS s FROM {table} WHERE who IS NOT NULL "
        "GROUP BY who HAVING bool_and(no_quasi_identifier OR no_sensitive)"
    )
    return LeftOut(counted, _reasons(con, f"SELECT {reasons} FROM ({people}) AS t"))


def _reasons(con: duckdb.DuckDBPyConnection, sql: str) -> Reasons:
    return Reasons(*map(int, one(con, sql)))
