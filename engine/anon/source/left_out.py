"""Rows and individuals of a table that are not in its release, counted once, by reason: the terminal, the JSON, the
report, its page and `explain` all show these counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from anon.source.requirements import Aggregate, SqlTable


@dataclass(frozen=True)
class Reasons:
    """A count for each reason. A row without a quasi-identifier and without a sensitive value counts once, under
    quasi-identifiers."""

    null_quasi_identifiers: int = 0
    null_sensitive: int = 0
    suppressed: int = 0
    other_rows: int = 0  # of individuals of whom another row is used

    @property
    def all(self) -> int:
        return self.null_quasi_identifiers + self.null_sensitive + self.suppressed + self.other_rows

    @property
    def null(self) -> int:
        """The count of all that missing values leave out."""
        return self.null_quasi_identifiers + self.null_sensitive

    def to_dict(self) -> dict[str, int]:
        return {"all": self.all, **asdict(self)}


@dataclass(frozen=True)
class OtherRows:
    """The rows that are not used because another one of the same individual is: which one is used, by what column, how
    many rows are not, and how many individuals have several."""

    keep: str
    by: str
    rows: int
    individuals: int


@dataclass(frozen=True)
class LeftOut:
    """Rows that are not in the release, and individuals none of whose rows are."""

    rows: Reasons = Reasons()
    individuals: Reasons = Reasons()
    one_row_each: OtherRows | None = None  # where a config says which row of an individual is used

    def with_other_rows(self, other: OtherRows) -> LeftOut:
        """Return the same counts with those of rows that are not used."""
        return replace(self, rows=replace(self.rows, other_rows=other.rows), one_row_each=other)

    def with_suppressed(self, rows: int, individuals: int) -> LeftOut:
        """Return the same counts with those of suppressed cells."""
        without = replace(self.rows, suppressed=rows), replace(self.individuals, suppressed=individuals)
        return LeftOut(*without, self.one_row_each)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        one = {} if self.one_row_each is None else {"one_row_each": asdict(self.one_row_each)}
        return {"rows": self.rows.to_dict(), "individuals": self.individuals.to_dict(), **one}


def left_out_people(table: SqlTable, nulls: str) -> Reasons:
    """Count the individuals that null values leave out of a table; `nulls` is a relation of rows with `who` each is
    about, and whether it has no_quasi_identifier or no_sensitive value.

    An individual is left out if all of their rows are, under quasi-identifiers if any of these has none. Rows that name
    nobody count as rows only."""
    reasons = [Aggregate.counting("quasi_identifier", "q"), Aggregate.counting("sensitive", "NOT q")]
    people = (
        f"SELECT bool_or(no_quasi_identifier) AS q FROM {nulls} WHERE who IS NOT NULL "
        "GROUP BY who HAVING bool_and(no_quasi_identifier OR no_sensitive)"
    )
    answers = table.evaluate(reasons, f"({people}) AS people")
    return Reasons(*(int(answers[each.name]) for each in reasons))
