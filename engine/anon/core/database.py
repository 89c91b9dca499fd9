"""The one place that opens DuckDB: limits, quoting, and the translation of its failures into ours. It serves every
stage that reads or writes a table (config -> source -> cube -> search -> release -> verify -> report). What DuckDB says
may quote data (a CSV line, a value that does not convert), so failures are told in words of our own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from anon.core import interrupt
from anon.core.memory import Memory
from anon.errors import AnonError, ConfigError, ResourceError, SourceError

AT_REST = 20_000_000  # bytes that an idle connection may hold
# it believes the min and max of a Parquet column, which leave NaN out, and drops isnan()
NOT_TRUSTED = "statistics_propagation"
FAILURES = (duckdb.Error, pa.ArrowException, OSError, RuntimeError)
FULL = ("No space left", "Disk quota exceeded", "File too large")  # what systems say of a disk, a quota, a limit
BROKEN_DISK = re.compile(r"(?is)(\bwrit|\.anon-).*Input/output error")  # of a file of ours
NOT_PARQUET = ("magic bytes", "too small to be a Parquet", "TProtocol", "Parquet footer", "thrift")


def connect(
    memory: int, threads: int | None, spill: Path, file: Path | None = None, held: int = 0
) -> duckdb.DuckDBPyConnection:
    """A connection that keeps to a limit (bytes for the whole process, of which some are held by others) and spills
    into the given folder; to a database file, for reading only, if one is named."""
    if not in_utf8(spill):  # those of a run or a check were looked at before
        raise ConfigError.at("TMPDIR", f"{spill.parent}, which is not in UTF-8", "a path in UTF-8")
    con = duckdb.connect(":memory:" if file is None else file, read_only=file is not None)
    settings: dict[str, str | int | bool] = {
        "memory_limit": f"{Memory(memory, held).database}B",
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
    for name, value in settings.items():
        con.execute(f"SET {name} = {literal(value)}").fetchall()
    return con


def isolate(con: duckdb.DuckDBPyConnection) -> None:
    """Confine a connection to the database that it has open, and to its own spill folder: it reads and writes no other
    file, loads no extension, and none of this can be changed back."""
    for name, value in {"allow_community_extensions": False, "enable_external_access": False}.items():
        con.execute(f"SET {name} = {literal(value)}").fetchall()
    con.execute("SET lock_configuration = true").fetchall()


def limit(con: duckdb.DuckDBPyConnection, memory: Memory) -> None:
    """Gives a connection its share of the memory, after that has changed."""
    con.execute(f"SET memory_limit = {literal(f'{memory.database}B')}").fetchall()


@contextmanager
def all_optimizers(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """For queries that ask nothing about numbers that may be NaN."""
    con.execute("SET disabled_optimizers = ''").fetchall()
    try:
        yield
    finally:
        con.execute(f"SET disabled_optimizers = {literal(NOT_TRUSTED)}").fetchall()


@contextmanager
def at_rest(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """While others need the memory: what the connection holds beyond a little goes to the disk or is forgotten."""
    with _limited(con, lambda limit: f"{AT_REST}B"):
        yield


@contextmanager
def halved(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """While another connection works with the other half of the memory."""
    with _limited(con, lambda limit: f"{float(limit.split()[0]) / 2} {limit.split()[1]}"):
        yield


@contextmanager
def _limited(con: duckdb.DuckDBPyConnection, to: Callable[[str], str]) -> Iterator[None]:
    (limit,) = con.sql("SELECT current_setting('memory_limit')").fetchall()[0]
    con.execute(f"SET memory_limit = {literal(to(limit))}").fetchall()
    try:
        yield
    finally:
        con.execute(f"SET memory_limit = {literal(limit)}").fetchall()


def quote(name: str) -> str:
    """An identifier for SQL, whatever it contains.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | bool) -> str:
    """A literal for SQL where a parameter cannot be bound."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def file_list(paths: Iterable[Path]) -> str:
    """A list of files for SQL, where DuckDB would take each for a pattern.

    >>> print(file_list([Path("part[1].csv")]))
    ['part[[]1].csv']
    """
    return "[" + ", ".join(literal(re.sub(r"([*?\\[])", r"[\1]", str(path))) for path in paths) + "]"


def in_utf8(path: Path) -> bool:
    """Whether DuckDB can be told a path: names of files are bytes, its SQL is text.

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
    """Turns failures of DuckDB and of the disk below it into ours, saying what was being done. `disk`: with files of
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
    """The batches of a reader. Failures of the reader are translated, those of whoever takes the batches are not."""
    batches = iter(reader)
    while True:
        with translated(what):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def fed(schema: pa.Schema, batches: Iterable[pa.RecordBatch], failures: list[BaseException]) -> pa.RecordBatchReader:
    """A stream for DuckDB to read, which notes what goes wrong in it for `causes`."""

    def noting() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:
            failures.append(error)
            raise

    return pa.RecordBatchReader.from_batches(schema, noting())


@contextmanager
def causes(failures: list[BaseException]) -> Iterator[None]:
    """What goes wrong in a stream that DuckDB reads arrives as a failure of DuckDB: raises the cause in its place."""
    try:
        yield
    except Exception:
        if failures:
            raise failures[0] from None
        raise


def is_interrupt(error: Exception) -> bool:
    """Whether DuckDB stopped because of Ctrl-C; depending on where it was, it says so in one of three ways."""
    said = str(error)
    return isinstance(error, duckdb.InterruptException) or "Query interrupted" in said or "INTERRUPT Error" in said


def _ours(what: str, error: Exception) -> BaseException:
    """Our exception for a failure. It does not carry the original, whose text may quote data."""
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
    """What may be repeated of a failure: never a data value."""
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
