"""Build hierarchy files from the values of a column, which DuckDB counts; and count them for the test of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon.config import Limits
from anon.core.database import Database, connect, interruptible, quote, translated
from anon.core.progress import Progress
from anon.core.text import text
from anon.errors import ConfigError, UnknownColumns
from anon.hierarchy import Row, inspect, write_rows
from anon.hierarchy.code_lists import CodeList
from anon.hierarchy.from_values import BATCH, balanced_rows, code_rows, unknown_codes
from anon.runs.scratch import spill_folder
from anon.source import describe, resolve
from anon.source.checks import like_values, missing_columns
from anon.source.files import detected_files
from anon.source.requirements import DuckDBRows
from anon.source.types import Unusable, type_column

TABLE, COUNTED = "tested_table", "counted_values"


@dataclass(frozen=True)
class CountedValues:
    """The distinct values of a column without null, which needs no leaf, with their rows: a table of DuckDB."""

    database: Database
    kind: str
    folder: Path  # for files that are removed at the end

    def pairs(self, order: str = "v") -> Iterator[tuple[str, int]]:
        """Yield the values, as text as hierarchies compare them, and their rows."""
        with translated("reading the table"):
            reader = self.database.query(f"SELECT v, n FROM {COUNTED} ORDER BY {order}").to_arrow_reader(BATCH)
        for batch in interruptible(reader, "reading the table"):
            values, rows = (column.to_pylist() for column in batch.columns)
            yield from zip(map(text, values), rows)


@contextmanager
def counted_values(path: str, column: str, option: str) -> Iterator[CountedValues]:
    """Count the values of a column of a table on files. `option` names the column on the command line."""
    limits = Limits()
    with spill_folder(Progress().alert) as folder:
        database = connect(limits.memory, limits.threads, folder)
        registered, _ = detected_files(database, TABLE, resolve(path), folder, show_values=False)
        types = describe(database, TABLE)
        if column not in types:
            quotable, names = not like_values(database, registered, types), list(types)
            raise UnknownColumns(missing_columns([(option, column)], names, quotable), names)
        kind = _count(database, column, types[column], option, path)
        yield CountedValues(database, kind, folder)


def _count(database: Database, column: str, type_name: str, option: str, path: str) -> str:
    """Create the table of values and rows; return the kind of the values."""
    try:
        typed = type_column(option, quote(column), type_name, "q")
    except Unusable as error:
        raise ConfigError([error.problem(option)]) from None
    if problems := DuckDBRows(database, TABLE).evaluate(typed.requirements).problems(typed.requirements):
        raise ConfigError(problems[:1])
    with translated(f"reading {path}"):
        counted = f"SELECT {typed.sql} AS v, count(*) AS n FROM {TABLE} GROUP BY v"
        database.execute(f"CREATE TABLE {COUNTED} AS SELECT * FROM ({counted}) WHERE v IS NOT NULL")
    return typed.kind


@dataclass(frozen=True)
class BuiltHierarchy:
    """A hierarchy file that was built: its shape and values that the classification did not have, with their rows.
    Without `written`, it has unknown values and there is no file."""

    facts: dict[str, Any]
    unknown: dict[str, int]
    written: bool = True


def build_from_codes(
    values: CountedValues, codes: CodeList, out: Path, overwrite: bool, pad: int | None, unknown: str | None
) -> BuiltHierarchy:
    """Write the hierarchy of a column by a classification. Unknown values are refused, unless a label for them is
    given."""
    gap = unknown_codes(values.pairs(), codes, pad)
    coverage = {"unknown_values": gap.values, "unknown_rows": gap.rows}
    if gap.values and unknown is None:
        distinct, rows = values.database.one(f"SELECT count(*), sum(n) FROM {COUNTED}")
        return BuiltHierarchy({"values": distinct, "rows": int(rows)} | coverage, gap.listed, written=False)
    shape = _write(lambda: code_rows((value for value, _ in values.pairs()), codes, pad, unknown), out, overwrite)
    return BuiltHierarchy(shape | coverage, gap.listed)


def build_from_counts(values: CountedValues, out: Path, overwrite: bool, fan_out: int) -> BuiltHierarchy:
    """Write the hierarchy of a column by how often its values occur."""
    return BuiltHierarchy(
        _write(lambda: balanced_rows(values.database, COUNTED, values.kind, fan_out), out, overwrite), {}
    )


def _write(rows: Callable[[], Iterable[Row]], out: Path, overwrite: bool) -> dict[str, Any]:
    """Write rows as a file that is a tree; return its shape. Nothing is left of a file that is none."""
    if out.exists() and not overwrite:
        raise ConfigError.at("--out", f"{out}, which exists", "a new file", "or say --overwrite")
    part = out.with_name(f".{out.name}.part")
    try:
        write_rows(rows(), part, overwrite=True)
        if not part.stat().st_size:
            raise ConfigError.at("--from", "a column without a value", "a column with values")
        facts = _shape(part)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return facts


def _shape(path: Path) -> dict[str, Any]:
    """Return the shape of a file. Its values are data, so a problem does not quote them."""
    try:
        return inspect(path).facts
    except ConfigError as error:
        found = f"{len(error.problems)} values that are also labels of other values"
        raise ConfigError.at("--from", found, "values that differ from all labels") from None
