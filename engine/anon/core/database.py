"""The one place that opens DuckDB: the `Database` that every stage reads and writes tables with, its limits, quoting,
and the translation of its failures into ours. What DuckDB says may quote data (a CSV line, a value that does not
convert), so failures are reported in our own words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon.core import interrupt
from anon.core.memory import Memory, release_unused
from anon.errors import AnonError, ConfigError, ResourceError, SourceError

AT_REST = 20_000_000  # bytes that an idle connection may hold
# it believes the min and max of a Parquet column, which leave NaN out, and drops isnan()
NOT_TRUSTED = "statistics_propagation"
FAILURES = (duckdb.Error, pa.ArrowException, OSError, RuntimeError)
FULL = ("No space left", "Disk quota exceeded", "File too large")  # what systems say of a disk, a quota, a limit
BROKEN_DISK = re.compile(r"(?is)(\bwrit|\.anon-).*Input/output error")  # of a file of ours
NOT_PARQUET = ("magic bytes", "too small to be a Parquet", "TProtocol", "Parquet footer", "thrift")


@dataclass
class _Shared:
    """What a database and its cursors share: the SQL that they were sent, if it is recorded, and the memory limit in
    bytes, which DuckDB itself reports rounded."""

    queries: list[str] | None = None
    memory: int | None = None


class Database:
    """A connection to DuckDB with limits. Code of the engine takes a `Database`, never a connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, shared: _Shared | None = None) -> None:
        self._connection, self._shared = connection, shared or _Shared()

    @property
    def queries(self) -> list[str]:
        """The SQL that it and its cursors were sent, in order, since `record` was called."""
        return self._shared.queries or []

    @property
    def memory(self) -> int:
        """The bytes that the connection may hold, for work that is done while it is at rest."""
        assert self._shared.memory is not None, "a database without limits"
        return self._shared.memory

    @classmethod
    def in_memory(cls) -> Database:
        """Return a database without limits, for a few values."""
        return cls(duckdb.connect(":memory:"))

    def record(self) -> Database:
        """Record the queries that are sent from now on."""
        self._shared.queries = []
        return self

    def _recorded(self, sql: str) -> str:
        if self._shared.queries is not None:
            self._shared.queries.append(sql)
        return sql

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> None:
        """Run a statement to its end. Its result is drained: what is not fetched may not have happened."""
        self._connection.execute(self._recorded(sql), parameters).fetchall()

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """Return the result of a query, which is evaluated when it is fetched."""
        return self._connection.sql(self._recorded(sql))

    def one(self, sql: str) -> tuple[Any, ...]:
        """Return the first row of a result."""
        row: tuple[Any, ...] = self.query(sql).fetchall()[0]
        return row

    def statements(self, sql: str) -> list[Any]:
        """Return the statements of a text of SQL, parsed but not run."""
        return list(self._connection.extract_statements(sql))

    def register(self, name: str, table: Any) -> None:
        """Give an Arrow table or a stream of batches a name in SQL, on this connection alone."""
        self._connection.register(name, table)

    def unregister(self, name: str) -> None:
        self._connection.unregister(name)

    def cursor(self) -> Database:
        """Return another connection to the same database, which does not know the tables registered with this one."""
        return Database(self._connection.cursor(), self._shared)

    def close(self) -> None:
        self._connection.close()

    def set(self, name: str, value: str | int | bool) -> None:
        """Change a setting."""
        self.execute(f"SET {name} = {literal(value)}")

    def isolate(self) -> None:
        """Confine the connection to the database that it has open, and to its own spill folder: it reads and writes no
        other file, loads no extension, and none of this can be changed back."""
        self.set("allow_community_extensions", False)
        self.set("enable_external_access", False)
        self.set("lock_configuration", True)

    def limit(self, memory: Memory) -> None:
        """Give the connection its share of the memory, after that has changed."""
        self.limit_bytes(memory.database)

    def limit_bytes(self, memory: int) -> None:
        """Let the connection hold at most some bytes."""
        self._shared.memory = memory
        self.set("memory_limit", f"{memory}B")

    @contextmanager
    def all_optimizers(self) -> Iterator[None]:
        """For queries that ask nothing about numbers that may be NaN."""
        self.set("disabled_optimizers", "")
        try:
            yield
        finally:
            self.set("disabled_optimizers", NOT_TRUSTED)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """While others need the memory: write what the connection holds beyond a little to the disk, or forget it."""
        with self._limited(lambda memory: AT_REST):
            release_unused()
            yield

    @contextmanager
    def halved(self) -> Iterator[None]:
        """While another connection works with the other half of the memory."""
        with self._limited(lambda memory: memory // 2):
            yield

    @contextmanager
    def _limited(self, to: Callable[[int], int]) -> Iterator[None]:
        before = self._shared.memory
        assert before is not None, "a database without limits"
        self.limit_bytes(to(before))
        try:
            yield
        finally:
            self.limit_bytes(before)


def connect(memory: int, threads: int | None, spill: Path, file: Path | None = None, held: int = 0) -> Database:
    """Return a database that keeps to a limit (bytes for the whole process, of which some are held by others) and
    spills into the given folder; of a file, for reading only, if one is named."""
    if not in_utf8(spill):  # those of a run or a check were looked at before
        raise ConfigError.at("TMPDIR", f"{spill.parent}, which is not in UTF-8", "a path in UTF-8")
    database = Database(duckdb.connect(":memory:" if file is None else file, read_only=file is not None))
    settings: dict[str, str | int | bool] = {
        "threads": threads or os.cpu_count() or 1,
        "temp_directory": str(spill),
        "TimeZone": "UTC",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "enable_progress_bar": False,
        "preserve_insertion_order": False,
        "disabled_optimizers": NOT_TRUSTED,
    }
    database.limit_bytes(Memory(memory, held).database)
    for name, value in settings.items():
        database.set(name, value)
    return database


def quote(name: str) -> str:
    """Return an identifier for SQL, whatever it contains.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | bool) -> str:
    """Return a literal for SQL where a parameter cannot be bound."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def file_list(paths: Iterable[Path]) -> str:
    """Return a list of files for SQL, where DuckDB would take each for a pattern.

    >>> print(file_list([Path("part[1].csv")]))
    ['part[[]1].csv']
    """
    return "[" + ", ".join(literal(re.sub(r"([*?\\[])", r"[\1]", str(path))) for path in paths) + "]"


def in_utf8(path: Path) -> bool:
    """Return whether a path can be written in DuckDB's SQL: names of files are bytes, its SQL is text.

    >>> in_utf8(Path("café")), in_utf8(Path(os.fsdecode(b"caf\\xe9")))
    (True, False)
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def translated(what: str, disk: bool = False) -> Iterator[None]:
    """Turn failures of DuckDB and of the disk below it into ours, saying what was being done. `disk`: with files of
    our own, whose failures are those of the disk and not of the source."""
    try:
        yield
    except AnonError:
        raise
    except FAILURES as error:
        ours = _ours(what, error)
        if isinstance(ours, SourceError) and (disk or BROKEN_DISK.search(str(error))):
            ours = ResourceError(str(ours))
        raise ours from None


def interruptible(reader: Iterable[Any], what: str) -> Iterator[Any]:
    """Yield the batches of a reader. Failures of the reader are translated, those of the code that takes the batches
    are not."""
    batches = iter(reader)
    while True:
        with translated(what):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def fed(schema: pa.Schema, batches: Iterable[pa.RecordBatch], failures: list[BaseException]) -> pa.RecordBatchReader:
    """Return a stream for DuckDB to read, which notes what goes wrong in it for `causes`."""

    def noting() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:
            failures.append(error)
            raise

    return pa.RecordBatchReader.from_batches(schema, noting())


@contextmanager
def causes(failures: list[BaseException]) -> Iterator[None]:
    """Raise the cause in place of a failure of DuckDB: what goes wrong in a stream that it reads arrives as one."""
    try:
        yield
    except Exception:
        if failures:
            raise failures[0] from None
        raise


def is_interrupt(error: Exception) -> bool:
    """Return whether DuckDB stopped because of Ctrl-C; depending on where it was, it says so in one of three ways."""
    said = str(error)
    return isinstance(error, duckdb.InterruptException) or "Query interrupted" in said or "INTERRUPT Error" in said


def _ours(what: str, error: Exception) -> BaseException:
    """Return our exception for a failure. It does not carry the original, whose text may quote data."""
    said = str(error)
    if is_interrupt(error) or interrupt.requested():  # of a batch of ours, DuckDB says only that it failed
        return KeyboardInterrupt()
    if any(words in said for words in FULL):
        return ResourceError(f"{what}: no space left on the disk")
    if isinstance(error, duckdb.OutOfMemoryException) or said.startswith("Out of Memory Error"):
        if "max_temp_directory_size" in said or "temp directory" in said:
            return ResourceError(
                f"{what}: the disk or the memory is full; free space in limits.temp or raise limits.memory"
            )
        return ResourceError(f"{what}: limits.memory is too small for this step; raise it")
    if isinstance(error, RuntimeError) and not isinstance(error, duckdb.Error):
        return error
    return SourceError(f"{what}: {reason(error)}")


def reason(error: Exception) -> str:
    """Return what may be repeated of a failure: never a data value."""
    said = str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if line := re.search(r"CSV Error on Line: (\d+)", said):
        detail = "it is not UTF-8" if "not utf-8" in said else "it is not well-formed CSV"
        if size := re.search(r"Maximum line size of (\d+) bytes exceeded", said):
            detail = f"it is too long, over {int(size[1]):,} bytes; a quote that is not closed is the usual cause"
        files = re.findall(r"^ *file = (.+)$", said, re.MULTILINE)
        return (f"{Path(files[-1]).name}, " if files else "") + f"line {line.group(1)}: {detail}"
    if any(word in said for word in NOT_PARQUET):
        return "it is not a Parquet file, or it is cut off"
    if "Permission denied" in said:
        return "no permission"
    if "No files found" in said or "No such file" in said:
        return "no such file"
    return f"DuckDB refused it ({type(error).__name__})"
