"""One class owns the connection to DuckDB: it drains statements, keeps to its limits and records what it is sent."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import anon
from anon.core.database import Database, connect


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(connect(2_300_000_000, 1, tmp_path)) as opened:
        yield opened


def limit_of(database: Database) -> str:
    return str(database.one("SELECT current_setting('memory_limit')")[0])


def test_queries_are_recorded_on_request_those_of_cursors_too(database: Database) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS v")
    assert database.queries == []
    database.record()
    with closing(database.cursor()) as cursor:
        assert cursor.one("SELECT v FROM t") == (1,)
    database.execute("INSERT INTO t VALUES (?)", [2])
    assert database.query("SELECT sum(v) FROM t").fetchall() == [(3,)]
    assert database.queries == ["SELECT v FROM t", "INSERT INTO t VALUES (?)", "SELECT sum(v) FROM t"]


def test_a_statement_is_run_to_its_end(database: Database) -> None:
    database.execute("CREATE SEQUENCE numbers")
    database.execute("SELECT nextval('numbers') FROM range(100000)")
    assert database.one("SELECT nextval('numbers')") == (100_001,)


def test_limits_that_are_lowered_for_a_while_come_back(database: Database) -> None:
    whole = limit_of(database)
    with database.at_rest():
        assert limit_of(database) == "19.0 MiB"
    with database.halved(), closing(database.cursor()) as cursor:
        assert limit_of(cursor) != whole
    assert limit_of(database) == whole


def test_only_the_database_knows_a_connection_of_duckdb() -> None:
    """No other module opens one or takes one for a parameter."""
    root = Path(anon.__file__).parent
    found = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "duckdb"
        if node.attr in ("connect", "DuckDBPyConnection", "sql", "execute")
    }
    assert found == {"core/database.py"}
