"""The one place that opens DuckDB: limits, quoting, and the translation of its failures into ours. What DuckDB says may
quote data (a CSV line, a value that does not convert), so only messages known to be about files pass through."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from anon.errors import AnonError, ResourceError, SourceError

OVERHEAD = 300_000_000  # bytes that the interpreter, the libraries and the batches under way take beside DuckDB
LEAST = 100_000_000  # DuckDB does not do useful work in less


def connect(memory: int, threads: int | None, spill: Path) -> duckdb.DuckDBPyConnection:
    """A connection that keeps to the limits (bytes for the whole process) and spills into the given folder."""
    con = duckdb.connect(":memory:")
    settings: dict[str, str | int | bool] = {
        "memory_limit": f"{max(memory - OVERHEAD, LEAST)}B",
        "threads": threads or os.cpu_count() or 1,
        "temp_directory": str(spill),
        "TimeZone": "UTC",
        "autoinstall_known_extensions": False,
        "preserve_insertion_order": False,
    }
    for name, value in settings.items():
        con.execute(f"SET {name} = {literal(value)}").fetchall()
    return con


def quote(name: str) -> str:
    """An identifier for SQL, whatever it contains.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | bool) -> str:
    """A literal for SQL where a parameter cannot be bound."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns failures of DuckDB and of the disk below it into ours, saying what was being done."""
    try:
        yield
    except AnonError:
        raise
    except duckdb.OutOfMemoryException as error:
        if "disk" in str(error).lower() or "temp" in str(error).lower():
            raise ResourceError(
                f"{what}: the disk or the memory is full; free space in limits.temp or raise limits.memory"
            ) from error
        raise ResourceError(f"{what}: limits.memory is too small for this step; raise it") from error
    except (duckdb.Error, OSError) as error:
        if "No space left" in str(error):
            raise ResourceError(f"{what}: no space left on the disk") from error
        raise SourceError(f"{what}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """What may be repeated of a failure: never a data value."""
    text = str(error).splitlines()[0] if str(error) else ""
    if line := re.search(r"CSV Error on Line: (\d+)", text):
        detail = "it is not UTF-8" if "not utf-8" in str(error) else "it is not well-formed CSV"
        return f"line {line.group(1)}: {detail}"
    if isinstance(error, (duckdb.IOException, OSError)) or "Parquet" in text or "parquet" in text:
        return text
    return f"DuckDB refused it ({type(error).__name__})"
