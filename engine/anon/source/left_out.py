"""Rows and individuals of a table that are not in its release, counted once, by reason: the terminal, the JSON, the
report, its page and `explain` all show these counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from anon.source.requirements import Aggregate, SqlTable


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
