"""What is asked of the rows of a table, as data: a backend evaluates all of it in one pass and answers by name. An
answer that is missing is an error, so that no check passes because nothing evaluated it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from anon.core.database import Database, translated
from anon.core.phrases import counted
from anon.errors import Problem, SourceError
from anon.source.many_columns import MOST

COUNT, COUNTED_ROWS = "{count}", "{rows}"  # in a message, how many rows do not meet a requirement


class Unanswered(SourceError):
    """A backend did not answer everything it was asked about the rows."""


@dataclass(frozen=True)
class Aggregate:
    """A number about the rows of a table: its name, and SQL that aggregates rows."""

    name: str
    sql: str

    @classmethod
    def counting(cls, name: str, condition: str) -> Aggregate:
        """Return the number of rows that meet a condition."""
        return cls(name, f"count(*) FILTER (WHERE {condition})")


@dataclass(frozen=True)
class Requirement:
    """A condition in SQL that no row may meet, and the message if rows do; `{count}` in what was found stands for the
    number of these rows, `{rows}` for the number with its noun."""

    name: str
    sql: str
    message: Problem

    @property
    def aggregate(self) -> Aggregate:
        return Aggregate.counting(self.name, self.sql)

    def problem(self, count: int) -> Problem:
        found = self.message.found.replace(COUNT, f"{count:,}").replace(COUNTED_ROWS, counted(count, "row"))
        return replace(self.message, found=found)


ROWS = Aggregate("rows", "count(*)")


class RowAnswers:
    """The answers of a backend by the names of aggregates and requirements."""

    def __init__(self, by_name: Mapping[str, Any]) -> None:
        self._by_name = by_name

    def __getitem__(self, name: str) -> Any:
        if (answer := self._by_name.get(name)) is None:
            raise Unanswered(f"no answer about the rows to {name!r}: a check that was not made counts as failed")
        return answer

    def problems(self, requirements: Sequence[Requirement]) -> list[Problem]:
        """Return a problem for each requirement that some rows do not meet."""
        return [each.problem(count) for each in requirements if (count := int(self[each.name]))]


Question = Aggregate | Requirement
Asked = tuple[str, Sequence[Question]]  # a relation in SQL, and what is asked of it


def aggregates(questions: Sequence[Question]) -> list[Aggregate]:
    """Return the aggregates of questions, which must have different names."""
    listed = [each.aggregate if isinstance(each, Requirement) else each for each in questions]
    assert len({each.name for each in listed}) == len(listed), "two questions of one name"
    return listed


class Rows(ABC):
    """The rows of a source, asked in the SQL of DuckDB. On a cluster every batch of rows answers by itself and the
    answers are added up, so an aggregate of a table must be the sum of those of its parts."""

    @abstractmethod
    def evaluate(self, questions: Sequence[Question]) -> RowAnswers:
        """Evaluate all questions in one pass over the rows."""

    @abstractmethod
    def evaluate_distinct(self, sql: str, questions: Sequence[Question]) -> RowAnswers:
        """Evaluate questions over the distinct values `v` of an expression, without null."""

    @abstractmethod
    def distinct(self, sql: str, most: int) -> pa.ChunkedArray:
        """Return the distinct values of an expression in order, without null, and no more than `most` of them."""


class SqlTable(ABC):
    """A table asked in SQL that DuckDB and Spark both understand. `name` is what that SQL calls it."""

    name: str

    @abstractmethod
    def evaluate(self, questions: Sequence[Question], relation: str = "") -> RowAnswers:
        """Evaluate questions over the table, or over a relation made of it, in one query."""

    def evaluate_all(self, asked: Sequence[Asked]) -> list[RowAnswers]:
        """Evaluate questions over several relations made of the table, in as few queries as the engine needs."""
        return [self.evaluate(questions, relation) for relation, questions in asked]


@dataclass(frozen=True)
class DuckDBRows(Rows, SqlTable):
    """A table of DuckDB on this machine."""

    database: Database
    name: str

    def evaluate(self, questions: Sequence[Question], relation: str = "") -> RowAnswers:
        """Evaluate all questions in one pass, or in one for every 250 of them: the time of many aggregates in a query
        grows by their square."""
        answers: dict[str, Any] = {}
        asked = aggregates(questions)
        for start in range(0, len(asked), MOST):
            part = asked[start : start + MOST]
            sql = f"SELECT {', '.join(each.sql for each in part)} FROM {relation or self.name}"
            with translated("reading the source"):
                row = self.database.one(sql)
            answers |= {each.name: answer for each, answer in zip(part, row, strict=True)}
        return RowAnswers(answers)

    def evaluate_distinct(self, sql: str, questions: Sequence[Question]) -> RowAnswers:
        return self.evaluate(questions, f"({self._distinct(sql)}) AS t")

    def distinct(self, sql: str, most: int) -> pa.ChunkedArray:
        with translated("reading the source"):
            return self.database.query(
                f"SELECT v FROM ({self._distinct(sql)} LIMIT {most}) ORDER BY v"
            ).to_arrow_table()["v"]

    def _distinct(self, sql: str) -> str:
        return f"SELECT DISTINCT {sql} AS v FROM {self.name} WHERE {sql} IS NOT NULL"
