"""Rows that count as people (`individual: row`) although a column says that several are about one person: k visits of
one patient are not k people. Tables in which every row is a person are not suspected, however their columns hang
together."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import anon
from anon.commands.plan import plan
from anon.core.database import Database
from anon.errors import ConfigError
from anon.source import person_keys
from anon.source.requirements import ROWS, DuckDBRows
from tests.conftest import House
from tests.helpers.source import as_csv

FIRST = {"F": ["Mary", "Ann", "Rosa", "Ida"], "M": ["John", "Omar", "Paul", "Ivan"]}
LAST = ["Jones", "Meyer", "Costa", "Novak", "Silva", "Brown", "Khan", "Rossi"]
ROLES = ("quasi_identifiers", "keep", "identifiers")


def people(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """People, each with what others may know of them."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        sex, zip_code, born = rng.choice("FM"), rng.randrange(40), rng.randrange(1940, 2005)
        made.append(
            {
                "number": 1000 + number * 7,
                "first_name": rng.choice(FIRST[sex]),
                "surname": rng.choice(LAST),
                "born": born,
                "age": 2024 - born,
                "sex": sex,
                "zip": f"021{zip_code:02}",
                "town": f"town {zip_code // 4}",
                "state": f"state {zip_code // 20}",
            }
        )
    return made


def visits(count: int = 80, seed: int = 1) -> list[dict[str, Any]]:
    """Between one and fourteen rows of each person."""
    rng = random.Random(seed)
    return [
        person | {"disease": rng.choice(["Flu", "HIV", "Cold"]), "ward": f"ward {rng.randrange(5)}"}
        for person in people(count, seed)
        for _ in range(rng.randint(1, 14))
    ]


def one_row_each(count: int = 900, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        person | {"disease": rng.choice(["Flu", "HIV", "Cold"]), "household": f"h{number // 3}", "class": number // 25}
        for number, person in enumerate(people(count, seed))
    ]


def config(house: House, quasi: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return house.config(columns__quasi_identifiers=quasi, **changes)


def with_key(house: House, role: str, key: str = "number", others: tuple[str, ...] = ("sex", "born")) -> dict[str, Any]:
    """A config with a column that numbers people in one of the roles."""
    quasi: dict[str, Any] = {other: {"suppress": True} for other in others}
    if role == "quasi_identifiers":
        return config(house, {key: {"suppress": True}} | quasi)
    return config(house, quasi, **{f"columns__{role}": [key]})


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", ["frame", "parquet", "csv", "duckdb"])
def test_visits_of_one_person_do_not_pass_for_people(house: House, role: str, kind: str) -> None:
    table, given = pa.Table.from_pylist(visits()), with_key(house, role)
    house.write(table)
    (house.folder / "table.csv").write_bytes(as_csv(table))
    if kind == "duckdb":
        with duckdb.connect(house.folder / "house.db") as con:
            con.register("given", table)
            con.execute("CREATE TABLE visits AS SELECT * FROM given")
        given["source"] = {"duckdb": {"file": str(house.folder / "house.db"), "query": "SELECT * FROM visits"}}
    elif kind != "frame":
        given["source"]["path"] = str(house.folder / f"table.{kind}")
    for attempt in (anon.run, plan):
        with pytest.raises(ConfigError, match=r"values that repeat, in rows that agree on .*born") as caught:
            attempt(given, table if kind == "frame" else None)
        (problem,) = caught.value.problems
        assert problem.path.startswith(f"columns.{role}") and problem.expected.startswith("`individual: number`")
    assert not (house.folder / "out").exists()


@pytest.mark.parametrize("key", ["surname_and_first", "account"])
def test_a_key_needs_no_name_and_no_number(house: House, key: str) -> None:
    rows = [row | {key: f"{row['surname']}, {row['first_name']} {row['number']}"} for row in visits()]
    with pytest.raises(ConfigError, match="rows of one person each"):
        anon.run(with_key(house, "quasi_identifiers", key), pa.Table.from_pylist(rows))


def test_agreement_on_everything_that_others_may_know_is_enough(house: House) -> None:
    """Neither the name of the key nor an age tells; sex does not follow from the town, nor the town from the sex."""
    rows = pa.Table.from_pylist([row | {"code": row["number"]} for row in visits()])
    with pytest.raises(ConfigError, match=r"columns\.quasi_identifiers\.code"):
        anon.run(with_key(house, "quasi_identifiers", "code", ("sex", "town")), rows)


def test_a_number_of_patients_alone_is_refused_by_its_name(house: House) -> None:
    rows = pa.Table.from_pylist([{"disease": row["disease"], "patient_id": row["number"]} for row in visits()])
    with pytest.raises(ConfigError, match=r"columns\.quasi_identifiers\.patient_id"):
        anon.run(with_key(house, "quasi_identifiers", "patient_id", ()), rows)


def test_whoever_says_who_a_row_is_about_is_not_refused(house: House) -> None:
    buckets = {"path": "out", "run": "out-run", "form": "bucketized"}
    given = config(house, {"sex": {}, "zip": {"digits": 5}}, release=buckets)
    given["columns"] |= {"individual": "number", "multiplicity": "multiset"}
    assert anon.run(given, pa.Table.from_pylist(visits())).safe


ROW_EACH: dict[str, dict[str, list[str]]] = {
    "names that rows share by chance": {"identifiers": ["first_name", "surname"], "quasi_identifiers": ["sex", "zip"]},
    "a first name that tells the sex": {"keep": ["first_name"], "quasi_identifiers": ["sex", "age"]},
    "a year of birth that tells the age": {"quasi_identifiers": ["born", "age", "sex"]},
    "an age that tells the year of birth": {"quasi_identifiers": ["age", "born"]},
    "a zip code that tells the town and the state": {"quasi_identifiers": ["zip", "town", "state"]},
    "a zip code beside people's own columns": {"quasi_identifiers": ["zip", "town", "sex", "age"]},
    "a household": {"identifiers": ["household"], "quasi_identifiers": ["sex", "age", "zip"]},
    "a class": {"keep": ["class"], "quasi_identifiers": ["sex", "age"]},
    "a number for everybody": {"identifiers": ["number"], "quasi_identifiers": ["sex", "age"]},
}


@pytest.mark.parametrize("name", ROW_EACH)
def test_people_with_a_row_each_are_not_suspected(name: str) -> None:
    roles = ROW_EACH[name]
    columns = [
        person_keys.Attribute(f"columns.{role}", column, column, True, role == "quasi_identifiers")
        for role, listed in roles.items()
        for column in listed
    ]
    for seed in range(6):
        with closing(Database.in_memory()) as database:
            database.register("given", pa.Table.from_pylist(one_row_each(seed=seed)))
            assert person_keys.PersonSearch(DuckDBRows(database, "given"), columns, 1).found() == []


def test_a_table_is_asked_at_most_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster each time is a pass over the rows. Here everything is asked: machines repeat, their rows agree on
    the town and the floor, neither of which follows from the other, and nearly all rows agree on the country."""
    machines = [number % 40 for number in range(400)]
    rows = {
        "machine": machines,
        "town": [machine % 5 for machine in machines],
        "floor": [machine % 7 for machine in machines],
        "sex": [number // 40 % 2 for number in range(400)],
        "country": [int(number < 3) for number in range(400)],
    }
    columns = [
        person_keys.Attribute(f"columns.{name}", name, name, name == "machine", name != "machine") for name in rows
    ]
    asked: list[int] = []
    plain = DuckDBRows.evaluate_all

    def counting(self: DuckDBRows, questions: Any) -> Any:
        asked.append(len(questions))
        return plain(self, questions)

    monkeypatch.setattr(DuckDBRows, "evaluate_all", counting)
    with closing(Database.in_memory()) as database:
        database.register("given", pa.table(rows))
        search = person_keys.PersonSearch(DuckDBRows(database, "given"), columns, 1)
        assert search.found() == []
        (machine,) = search.found(of_anything=True)
    assert machine.agree == ["town", "floor"] and not machine.person
    assert asked[:3] == [1, 5, 3]


def test_only_a_part_of_the_values_is_compared_in_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_keys, "COMPARED", 500)
    columns = [person_keys.Attribute("columns.keep[0]", "number", "number", True)]
    columns += [person_keys.Attribute("columns.quasi_identifiers.born", "born", "born", False, True)]
    with closing(Database.in_memory()) as database:
        database.register("given", pa.Table.from_pylist(visits(800)))
        rows = DuckDBRows(database, "given")
        part = person_keys.part_compared(int(rows.evaluate([ROWS])[ROWS.name]))
        (found,) = person_keys.PersonSearch(rows, columns, part).found()
        (every,) = person_keys.PersonSearch(rows, columns, 1).found()
    assert 20 <= found.repeated < every.repeated / 5
