"""Queries on DuckDB files and on a real PostgreSQL as sources: the same release as from a file, one snapshot, only the
columns that are used, and no password anywhere."""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from anon.commands.plan import plan as planned
from anon.errors import ConfigError, SourceError
from anon.source import postgres as postgres_source
from anon.source import rows
from tests.conftest import House
from tests.helpers.services import PASSWORD, Postgres, postgres_server
from tests.helpers.source import as_csv

ROWS = pa.table(
    {
        "name": [f"Person {i}" for i in range(240)],
        "age": [20 + i % 7 for i in range(240)],
        "zip": [f"0213{i % 5}" for i in range(240)],
        "disease": ["Flu" if i % 3 else "HIV" for i in range(240)],
        "cost": pa.array([Decimal(i).scaleb(-2) for i in range(240)], pa.decimal128(10, 2)),
        "seen": [dt.date(2024, 1, 1 + i % 20) for i in range(240)],
    }
)
COLUMNS: dict[str, Any] = {"columns__identifiers": ["name"], "columns__keep": ["cost", "seen"]}
QUERY = "SELECT * FROM visits"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    yield from postgres_server()


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANON_TEST_PASSWORD", PASSWORD)


def with_source(house: House, source: dict[str, Any], **changes: Any) -> dict[str, Any]:
    config = house.config(**(COLUMNS | changes))
    config["source"] = source
    return config


def released(house: House, config: dict[str, Any]) -> list[bytes]:
    anon.run(config, overwrite=True, force=True)
    return [path.read_bytes() for path in sorted((house.folder / "out").iterdir())]


def from_file(house: House) -> list[bytes]:
    house.write(ROWS)
    return released(house, house.config(**COLUMNS))


def in_duckdb(house: House, table: pa.Table = ROWS) -> dict[str, Any]:
    file = house.folder / "house.db"
    with duckdb.connect(file) as con:
        con.register("given", table)
        con.execute("CREATE TABLE visits AS SELECT * FROM given")
    return {"duckdb": {"file": str(file), "query": QUERY}}


def in_postgres(postgres: Postgres, query: str = QUERY, **dsn: str) -> dict[str, Any]:
    return {"postgres": {"dsn": postgres.written(**dsn), "query": query}}


@pytest.fixture
def visits(postgres: Postgres) -> Postgres:
    """The rows in a table with an exact number in it, as PostgreSQL has them."""
    postgres.fill("loaded", ROWS.set_column(4, "cost", ROWS["cost"].cast(pa.string())))
    listed = "name, age, zip, disease, cost::numeric(10,2) AS cost, seen"
    postgres.execute("DROP TABLE IF EXISTS visits", f"CREATE TABLE visits AS SELECT {listed} FROM loaded")
    return postgres


def test_a_query_on_a_duckdb_file_gives_the_release_of_a_file(house: House) -> None:
    assert released(house, with_source(house, in_duckdb(house))) == from_file(house)
    assert house.leftovers() == []


def test_a_query_on_postgres_gives_the_release_of_a_file(house: House, visits: Postgres) -> None:
    assert released(house, with_source(house, in_postgres(visits))) == from_file(house)
    assert house.leftovers() == []


@pytest.mark.parametrize("query", [f"{QUERY};\n", f"{QUERY} -- all of them", f"WITH v AS ({QUERY}) SELECT * FROM v"])
def test_a_query_may_be_written_as_in_a_shell(house: House, visits: Postgres, query: str) -> None:
    duck = in_duckdb(house)
    duck["duckdb"]["query"] = query
    expected = from_file(house)
    assert released(house, with_source(house, duck)) == expected
    assert released(house, with_source(house, in_postgres(visits, query))) == expected


def test_identifiers_are_copied_as_tokens_only(house: House, visits: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    (house.folder / "table.csv").write_bytes(as_csv(ROWS))
    seen: list[list[str]] = []
    views = rows.create_views

    def look(*about: Any) -> None:
        (copy,) = house.folder.rglob("raw_rows.parquet")
        assert copy.parent.stat().st_mode & 0o777 == 0o700
        table = pq.read_table(copy)
        seen.append(list(table.to_pylist()[0]))
        assert not any(str(value).startswith("Person") for row in table.to_pylist() for value in row.values())
        assert len({row[seen[-1][-1]] for row in table.to_pylist()}) == 240
        views(*about)

    monkeypatch.setattr(rows, "create_views", look)
    for source in (in_duckdb(house), in_postgres(visits), {"path": str(house.folder / "table.csv")}):
        released(house, with_source(house, source))
    assert seen[:2] == [["age", "zip", "disease", "cost", "seen", "token of name"]] * 2
    assert seen[2:] == [["c1", "c2", "c3", "c4", "c5", "t0"]]


def test_people_who_have_several_rows_are_found_in_every_source(house: House, postgres: Postgres) -> None:
    """Names that rows share by chance: their other columns differ."""
    table = ROWS.set_column(0, "name", [[None if i % 60 == 7 else f"Person {i % 60}" for i in range(240)]])
    house.write(table)
    (house.folder / "table.csv").write_bytes(as_csv(table))
    postgres.fill("visits", table.drop_columns(["cost"]))
    sources = {path: {"path": str(house.folder / path)} for path in ("table.parquet", "table.csv")}
    sources |= {"duckdb": in_duckdb(house, table), "postgres": in_postgres(postgres)}
    for name, source in sources.items():
        told = anon.run(with_source(house, source, columns__keep=[]), overwrite=True, force=True).to_dict()
        assert {warning["code"]: warning["count"] for warning in told["warnings"]}["repeated_identifier"] == 236, name
    told = house.run(table, columns__identifiers=["name"], columns__individual="row").to_dict()
    assert {warning["code"]: warning["count"] for warning in told["warnings"]}["repeated_identifier"] == 236


def test_a_source_that_is_read_with_tokens_is_still_up_to_date(house: House, visits: Postgres) -> None:
    for source in (in_duckdb(house), in_postgres(visits)):
        anon.run(with_source(house, source), overwrite=True)
        assert anon.run(with_source(house, source)).to_dict()["up_to_date"]


def test_a_missing_column_is_told_before_anything_is_copied(house: House, visits: Postgres) -> None:
    for source in (in_duckdb(house), in_postgres(visits)):
        with pytest.raises(ConfigError, match="column 'hours'; expected a column of the table"):
            anon.run(with_source(house, source, columns__keep=["hours"]))
    assert not (house.folder / "out").exists()


def test_a_run_sees_one_snapshot_whatever_is_written_meanwhile(
    house: House, visits: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are written after the columns were asked for and before the rows are."""
    check = postgres_source._refuse_unusable

    def write_more(*about: Any) -> None:
        visits.execute("INSERT INTO visits SELECT * FROM visits")
        check(*about)

    monkeypatch.setattr(postgres_source, "_refuse_unusable", write_more)
    assert released(house, with_source(house, in_postgres(visits))) == from_file(house)


def test_a_query_cannot_write(house: House, visits: Postgres) -> None:
    visits.execute("CREATE OR REPLACE FUNCTION spoil() RETURNS int LANGUAGE sql AS 'DELETE FROM visits RETURNING 1'")
    with pytest.raises(SourceError, match=r"the server refused the query.*psql"):
        anon.run(with_source(house, in_postgres(visits, f"SELECT *, spoil() FROM ({QUERY}) AS v")))


NOT_ONE_SELECT = [
    "SELECT 1; SELECT * FROM visits", "DELETE FROM visits RETURNING *", "COPY visits TO '{out}'", "ATTACH '{out}' AS x",
    "INSTALL httpfs", "LOAD httpfs", "SET enable_external_access = true", "PRAGMA enable_profiling", "EXPLAIN {query}",
    "CALL enable_logging(storage = 'file', storage_path = '{out}')", "CREATE TEMP TABLE t AS {query}",
    "EXPORT DATABASE '{out}'", "-- nothing",
]  # fmt: skip
OTHER_FILES = [
    "SELECT * EXCLUDE zip, content AS zip FROM visits, read_text('{other}')", "FROM read_csv('{other}')",
    "SELECT * EXCLUDE zip, file AS zip FROM visits, glob('{folder}/*')", "FROM read_blob('{folder}/*')",
    "FROM read_duckdb('{other}')", "FROM query('SELECT * FROM read_text(''{other}'')')",
    "SELECT * FROM visits WHERE zip IN (SELECT content FROM read_text('{other}'))", "FROM seen_elsewhere",
]  # fmt: skip
UNBALANCED = [
    "SELECT 1) AS x; COPY (SELECT 1) TO '{out}'; SELECT * FROM ({query}", "SELECT 1) AS x, ({query}",
    "{query} /*", "{query}) --", "{query}; --\n) AS x; DROP TABLE visits",
]  # fmt: skip
NOT_ALLOWED = [
    "FROM enable_logging(storage = 'file', storage_config = {{'path': '{out}'}})", "FROM enable_profiling()",
    "WITH gone AS (DELETE FROM visits RETURNING *) FROM gone", "SELECT nextval('counter') FROM visits",
    "FROM '{other}'",
]  # fmt: skip


def hostile_duckdb(house: House) -> tuple[dict[str, Any], dict[str, str]]:
    """A DuckDB file, and the names that hostile queries on it are written with."""
    source, other = in_duckdb(house), house.folder / "other.csv"
    other.write_text("content\nsecret of another file\n")
    with duckdb.connect(source["duckdb"]["file"]) as con:
        con.execute(f"CREATE VIEW seen_elsewhere AS SELECT * FROM read_text('{other}')")
        con.execute("CREATE SEQUENCE counter")
    return source, {"out": f"{house.folder}/stolen", "other": str(other), "folder": str(house.folder), "query": QUERY}


@pytest.mark.parametrize(
    ("queries", "error", "words"),
    [
        (NOT_ONE_SELECT, ConfigError, "source.duckdb.query: found .* statement.*; expected one SELECT statement"),
        (OTHER_FILES, SourceError, "reads another file or loads an extension"),
        (UNBALANCED, SourceError, "the query: Parser Error"),
        (NOT_ALLOWED, SourceError, r"house\.db: (DuckDB refused it|the query)"),
    ],
)
def test_a_query_on_a_duckdb_file_is_one_select_on_its_tables(
    house: House, queries: list[str], error: type[Exception], words: str
) -> None:
    source, names = hostile_duckdb(house)
    before = Path(source["duckdb"]["file"]).read_bytes()
    for query in queries:
        source["duckdb"]["query"] = query.format(**names)
        for attempt in (anon.run, planned):
            with pytest.raises(error, match=words) as caught:
                attempt(with_source(house, source))
            assert "secret of another file" not in str(caught.value)
    assert sorted(path.name for path in house.folder.iterdir()) == ["house.db", "other.csv"]
    assert Path(source["duckdb"]["file"]).read_bytes() == before


def test_init_takes_one_select_too(house: House) -> None:
    source, names = hostile_duckdb(house)
    for query, code in ((OTHER_FILES[0], 5), (NOT_ONE_SELECT[0], 2), (UNBALANCED[0], 5)):
        said = CliRunner().invoke(app, ["init", source["duckdb"]["file"], "--query", query.format(**names), "--json"])
        assert said.exit_code == code, said.output
    assert sorted(path.name for path in house.folder.iterdir()) == ["house.db", "other.csv"]


def test_a_query_on_postgres_is_one_statement_that_cannot_write(house: House, visits: Postgres) -> None:
    visits.execute("CREATE SEQUENCE IF NOT EXISTS counter")
    hostile = {
        "SELECT 1; SELECT * FROM visits": "source.postgres.query: found several statements; expected one SELECT",
        f"{QUERY}; COMMIT; DELETE FROM visits": "found several statements",
        "SELECT 1) AS x; DELETE FROM visits; SELECT * FROM (SELECT * FROM visits": "the query: syntax error",
        f"SELECT 1 AS one) AS x, ({QUERY}": "the query: syntax error",
        f"{QUERY} /*": "the query: unterminated",
        "DELETE FROM visits RETURNING *": "the query: syntax error",
        "WITH gone AS (DELETE FROM visits RETURNING *) SELECT * FROM gone": "the server refused the query",
        "SELECT *, nextval('counter') FROM visits": "the server refused the query",
        "SELECT *, set_config('transaction_read_only', 'off', false) FROM visits": "the server refused the query",
        f"{QUERY} FOR UPDATE": "the server refused the query",
        "COPY visits TO STDOUT": "the query: syntax error",
        "SELECT * INTO copied FROM visits": "the query: SELECT ... INTO is not allowed here",
    }
    for query, words in hostile.items():
        with pytest.raises((ConfigError, SourceError), match=words):
            anon.run(with_source(house, in_postgres(visits, query), columns__keep=[]))
    assert released(house, with_source(house, in_postgres(visits))) == from_file(house)


def test_types_of_postgres_become_those_of_a_release(house: House, postgres: Postgres) -> None:
    postgres.execute(
        "DROP TABLE IF EXISTS kinds",
        "DROP TYPE IF EXISTS mood",
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE kinds (age int2, zip char(7), disease mood, cost numeric, who uuid, at timestamptz, ok bool, "
        "f float4)",
        "INSERT INTO kinds SELECT 30, '02139', 'sad', x, gen_random_uuid(), '2024-01-02 03:04+02', true, 0.1 "
        "FROM unnest(ARRAY[1.5, -12.125, 'NaN', 7]::numeric[]) AS x",
    )
    config = with_source(house, in_postgres(postgres, "SELECT * FROM kinds"))
    config["columns"] |= {"identifiers": [], "keep": ["cost", "at", "ok", "f"], "individual": "who"}
    released(house, config)
    rows = house.released().to_pylist()
    assert {(row["age"], row["zip"], row["disease"]) for row in rows} == {("*", "*", "sad")}
    assert [row["cost"] for row in rows] == [None, Decimal("-12.125"), Decimal("1.5"), Decimal(7)]
    assert {(row["ok"], row["f"], row["at"].isoformat()) for row in rows} == {(True, 0.1, "2024-01-02T01:04:00+00:00")}


def test_a_type_that_is_no_value_is_refused_with_its_name(house: House, postgres: Postgres) -> None:
    query = f"SELECT *, ARRAY[1] AS listed, interval '1 day' AS lasts FROM ({QUERY}) AS v"
    with pytest.raises(ConfigError) as caught:
        anon.run(with_source(house, in_postgres(postgres, query), columns__keep=["listed", "lasts"]))
    assert [(p.path, p.found) for p in caught.value.problems] == [
        ("columns.keep.0", "type _int4"), ("columns.keep.1", "type interval"),
    ]  # fmt: skip


def test_sums_of_duckdb_are_whole_numbers(house: House) -> None:
    source = in_duckdb(house)
    source["duckdb"]["query"] = "SELECT sum(age) AS age, zip, min(disease) AS disease FROM visits GROUP BY zip, age"
    config = with_source(house, source)
    config["columns"] |= {"identifiers": [], "keep": []}
    released(house, config)
    assert json.loads((house.folder / "out-run" / "recoding.json").read_text())["columns"][0]["kind"] == "integer"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELEC 1", "the query: .*[Ss]yntax error"),
        ("SELECT * FROM visit", "the query: .*visit.*does not exist"),
        ("SELECT nme FROM visits", "the query: .*nme"),
        ("SELECT disease::int AS age, zip, disease, name, cost, seen FROM visits", "."),
    ],
)
def test_what_is_wrong_with_a_query_is_told_without_values(
    house: House, visits: Postgres, query: str, words: str
) -> None:
    duck = in_duckdb(house)
    duck["duckdb"]["query"] = query
    for source in (duck, in_postgres(visits, query)):
        with pytest.raises(SourceError, match=words) as caught:
            anon.run(with_source(house, source))
        assert "Flu" not in str(caught.value)
        assert "HIV" not in str(caught.value)


def test_a_duckdb_file_that_cannot_be_read_is_exit_5(house: House) -> None:
    source = in_duckdb(house)
    for change, words in (("missing.db", "no such DuckDB file"), ("bad.db", "not a DuckDB file")):
        (house.folder / "bad.db").write_bytes(b"x" * 20_000)
        source["duckdb"]["file"] = str(house.folder / change)
        with pytest.raises(SourceError, match=words):
            anon.run(with_source(house, source))


def test_a_duckdb_file_that_another_program_writes_is_exit_5(house: House) -> None:
    source = in_duckdb(house)
    code = "import duckdb, sys; con = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, source["duckdb"]["file"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"open\n"
        with pytest.raises(SourceError, match="another program has the file open for writing"):
            anon.run(with_source(house, source))
        other.communicate()


def test_without_the_driver_the_command_that_installs_it_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(SourceError, match=re.escape("pip install 'anon-engine[postgres]'")):
        anon.run(with_source(house, {"postgres": {"dsn": "postgresql://localhost/db", "query": QUERY}}))


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:written@host/db", "postgresql://me@host/db?password=written", "host=h password=written",
        "host=h password='written'", "postgresql://me:${ANON_TEST_PASSWORD}written@host/db",
    ],
)  # fmt: skip
def test_a_password_in_the_config_itself_is_refused(house: House, dsn: str) -> None:
    with pytest.raises(ConfigError, match="found a password; expected the password as") as caught:
        anon.run(with_source(house, {"postgres": {"dsn": dsn, "query": QUERY}}))
    assert "written" not in str(caught.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_cancels_the_query(house: House, visits: Postgres, number: signal.Signals) -> None:
    query = f"SELECT v.* FROM ({QUERY}) AS v, (SELECT pg_sleep(600)) AS waiting"
    path = house.folder / "config.yaml"
    path.write_text(json.dumps(with_source(house, in_postgres(visits, query))))
    command = [sys.executable, "-m", "anon", "run", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        while not visits.asked("pg_sleep"):
            assert job.poll() is None
        job.send_signal(number)
        told, _ = job.communicate(timeout=120)
    assert job.returncode == 130
    assert json.loads(told)["error"] == "interrupted; nothing was published, and no checkpoint was kept"
    assert not visits.asked("pg_sleep")
    assert [path.name for path in house.folder.iterdir()] == ["config.yaml"]


def test_a_server_that_does_not_answer_does_not_keep_whoever_wants_to_stop(house: House) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        dsn = f"postgresql://me@127.0.0.1:{port}/db"
        path = house.folder / "config.yaml"
        path.write_text(json.dumps(with_source(house, {"postgres": {"dsn": dsn, "query": QUERY}})))
        command = [sys.executable, "-m", "anon", "run", str(path), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job, silent.accept()[0]:
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=120)
    assert job.returncode == 130


def test_a_password_may_have_any_character(house: House, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = "p@ss/w#r d%41?:"
    postgres.fill("odd", ROWS)
    postgres.execute(f"CREATE ROLE odd LOGIN SUPERUSER PASSWORD '{odd}'")
    monkeypatch.setenv("ANON_TEST_PASSWORD", odd)
    dsn = postgres.written().replace("tester:", "odd:")
    anon.run(with_source(house, {"postgres": {"dsn": dsn, "query": "SELECT * FROM odd"}}))
    assert house.released().num_rows == ROWS.num_rows


def test_a_connection_string_in_a_wrong_place_is_shown_without_its_password(house: House) -> None:
    for place in ({"postgres": "postgresql://me:written@host/db"}, "postgresql://me:written@host/db"):
        with pytest.raises(ConfigError) as caught:
            anon.run(with_source(house, place))  # type: ignore[arg-type]
        assert "written" not in str(caught.value)


CASES = {
    "safe": {},
    "unsafe": {"privacy": [{"k_anonymity": {"k": 9999}}]},
    "wrong password": {"password": "${ANON_TEST_PASSWORD}${ANON_TEST_PASSWORD}"},
    "no database": {"database": "nowhere"},
    "wrong query": {"query": "SELECT '${ANON_TEST_PASSWORD}' FROM nothing"},
    "failing query": {"query": f"SELECT v.*, '${{ANON_TEST_PASSWORD}}'::int AS hours FROM ({QUERY}) AS v"},
    "wrong dsn": {"dsn": "${ANON_TEST_PASSWORD}"},
    "wrong option": {"dsn": "postgresql://127.0.0.1/db?x=${ANON_TEST_PASSWORD}"},
}


LISTED = ("safe", "failing query")  # as processes of their own, which anyone can list; the others in this one


@pytest.mark.parametrize("look", [
    anon.check,
    lambda config, table: anon.explore(config, table, ["HIV"], ["0.9"]),
    lambda config, table: anon.disclose(config, table, 1),
    anon.attack,
])  # fmt: skip
def test_whoever_only_looks_at_a_table_needs_no_password_of_its_source(
    house: House, monkeypatch: pytest.MonkeyPatch, look: Callable[..., Any]
) -> None:
    monkeypatch.delenv("ANON_TEST_PASSWORD")
    source = {"postgres": {"dsn": "postgresql://me:${ANON_TEST_PASSWORD}@127.0.0.1/db", "query": QUERY}}
    config = with_source(house, source, columns__keep=[])
    assert look(config, ROWS.select(["age", "zip", "disease"])).to_dict()
    with pytest.raises(ConfigError, match="an environment variable ANON_TEST_PASSWORD that is set"):
        anon.run(config)


@pytest.mark.parametrize("case", CASES)
def test_the_password_is_in_nothing_that_a_run_leaves_or_says(
    house: House, visits: Postgres, case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    changes = dict(CASES[case])
    source = in_postgres(visits, changes.pop("query", QUERY), **{
        name: changes.pop(name) for name in ("password", "database") if name in changes
    })  # fmt: skip
    source["postgres"]["dsn"] = changes.pop("dsn", source["postgres"]["dsn"])
    path = house.folder / "config.yaml"
    path.write_text(json.dumps(with_source(house, source, **changes)))
    command = [sys.executable, "-m", "anon", "run", str(path), "--debug", "--log-json", "--json"]
    if case in LISTED:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        listed = list(watched(process))
        stdout, stderr = process.communicate()
        code = process.returncode
        assert listed
    else:
        told = CliRunner().invoke(app, command[3:])
        code, listed = told.exit_code, [capfd.readouterr().err.encode()]
        stdout, stderr = told.stdout_bytes, told.stderr_bytes
    assert code == {"safe": 0, "unsafe": 3}.get(case, 5), stderr.decode()
    left = [file.read_bytes() for file in house.folder.rglob("*") if file.is_file()]
    for text in [stdout, stderr, *left, *listed]:
        assert PASSWORD.encode() not in text
    if case == "safe":
        manifest = json.loads((house.folder / "out-run" / "manifest.json").read_text())
        assert "${ANON_TEST_PASSWORD}" in manifest["config"]["source"]["postgres"]["dsn"]


def watched(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """While a process lives: what anyone can list of it and of the processes that it started, and the environment of
    the latter; its own holds the password, by which it gets it."""
    while process.poll() is None:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                if int(folder.name) == process.pid:
                    yield (folder / "cmdline").read_bytes()
                elif int(status[1]) == process.pid:
                    yield (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except (OSError, IndexError):
                continue
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
