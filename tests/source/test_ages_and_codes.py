"""What the source stage makes of birth dates with `age_on` and of codes with `pad`, and what a run publishes."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.core.database import connect
from anon.errors import ConfigError
from anon.source.requirements import DuckDBRows
from anon.source.types import as_builders_take_it, type_column
from tests.conftest import House

DAYS = ["2024-02-28", "2024-02-29", "2024-03-01", "2023-02-28", "2023-03-01", "2024-12-31", "2024-01-01", "2000-02-29"]


def age(born: dt.date, day: dt.date) -> int:
    """Birthdays one by one, until the next one is after the day."""
    years = 0
    while True:
        try:
            birthday = born.replace(year=born.year + years + 1)
        except ValueError:  # no 29 February in that year
            birthday = dt.date(born.year + years + 1, 3, 1)
        if birthday > day:
            return years
        years += 1


def ages(column: str, kind: str, day: str) -> list[Any]:
    """The ages that the SQL of the source stage gives for a column of a list of values, in order."""
    database = connect(1_000_000_000, 1, None)
    database.execute(f"CREATE TABLE t AS SELECT unnest({column})::{kind} AS born")
    builder = anon.config.Free(age_on=day)
    typed = as_builders_take_it("born", builder, type_column("born", "born", kind, "q"))
    assert not DuckDBRows(database, "t").evaluate(typed.requirements).problems(typed.requirements)
    return [row[0] for row in database.query(f"SELECT {typed.sql} FROM t ORDER BY born").fetchall()]


@pytest.mark.parametrize("day", DAYS)
def test_ages_are_completed_years_for_every_birth_date_of_ten_years(day: str) -> None:
    last = dt.date.fromisoformat(day)
    first = last.replace(year=last.year - 10, day=min(last.day, 28))
    born = [first + dt.timedelta(n) for n in range((last - first).days + 1)]
    written = "[" + ", ".join(f"'{each}'" for each in born) + "]"
    assert ages(written, "DATE", day) == [age(each, last) for each in born]


def test_ages_reach_back_to_old_people_and_take_moments() -> None:
    assert ages("['1900-02-28', '1904-02-29', NULL]", "DATE", "2024-02-28") == [124, 119, None]
    moments = "['2000-12-30 23:59:59', '2000-12-31 00:00:00']"
    assert ages(moments, "TIMESTAMP", "2024-12-30") == [24, 23]
    assert ages("['2000-12-31 00:30:00+01']", "TIMESTAMP WITH TIME ZONE", "2024-12-30") == [24]  # 23:30 the day before


BORN = [dt.date(1930, 6, 1), dt.date(1950, 2, 28), dt.date(1980, 12, 31), dt.date(1999, 1, 1), dt.date(2010, 7, 7)]
BANDS = {"age_on": "2024-12-31", "bands": [[0, 18, 30, 45, 65, 80], [18, 65]]}


def patients(rows: int = 60) -> pa.Table:
    return pa.table(
        {
            "born": pa.array([BORN[row % 5] for row in range(rows)]),
            "zip": pa.array([(1, 20, 2139, 99999)[row % 4] for row in range(rows)]),
            "disease": [("flu", "cold", "hiv")[row % 3] for row in range(rows)],
        }
    )


def columns(**builders: Any) -> dict[str, Any]:
    return {"individual": "row", "quasi_identifiers": builders, "sensitive": ["disease"]}


METHODS: dict[str, dict[str, Any]] = {
    "partition": {"kind": "partition"},
    "lattice": {"kind": "lattice"},
}


@pytest.mark.parametrize("method", METHODS)
def test_no_birth_date_is_in_a_release_and_every_label_is_an_age_or_a_band(house: House, method: str) -> None:
    house.write(patients())
    used = columns(born=BANDS, zip={"digits": 5, "pad": 5})
    for k, expected in ((3, {"94", "74", "44", "25", "14"}), (30, None)):
        result = house.run(columns=used, method=METHODS[method], privacy=[{"k_anonymity": {"k": k}}])
        assert result.to_dict()["safe"]
        found = set(house.released()["born"].to_pylist())
        bands = {">=80", "65-79", "30-44", "18-29", "0-17", "<=17", "18-64", ">=65", "*"}
        assert found == expected if expected else found <= bands
        everything = b"".join(path.read_bytes() for path in house.folder.glob("out*/**/*") if path.is_file())
        assert not any(born.isoformat().encode() in everything for born in BORN)
        assert house.check(house.folder / "out", columns=used, privacy=[{"k_anonymity": {"k": k}}]).to_dict()["safe"]
        utility = anon.utility(house.config(columns=used), house.folder / "out").to_dict()
        assert utility["groups"] == result.to_dict()["groups"]
    assert json.loads((house.folder / "out" / "datapackage.json").read_text())["ages_on"] == {"born": "2024-12-31"}


@pytest.mark.parametrize("builder", [{}, {"intervals": [10, 20]}, {"suppress": True}], ids=str)
def test_ages_take_other_builders(house: House, builder: dict[str, Any]) -> None:
    house.run(patients(), columns=columns(born={"age_on": "2024-12-31", **builder}))
    assert set(house.released()["born"].to_pylist()) == {"94", "74", "44", "25", "14"}


def test_a_bucketized_release_has_exact_ages_and_codes_of_full_length(house: House) -> None:
    used = columns(born=BANDS, zip={"digits": 5, "pad": 5})
    release = {"path": "out", "run": "out-run", "form": "bucketized", "labels": "exact"}
    privacy = [{"r_robustness": {"r": 2, "priors": [{"estimate": ["zip"]}]}}]
    house.run(patients(), columns=used, method={"kind": "merge"}, privacy=privacy, release=release)
    qi = pq.read_table(house.folder / "out" / "qi.parquet").to_pydict()
    assert {str(value) for value in qi["born"]} == {"94", "74", "44", "25", "14"}
    assert set(qi["zip"]) == {"00001", "00020", "02139", "99999"}


def test_a_sensitive_birth_date_is_published_as_its_band_or_its_age(house: House) -> None:
    for builder, expected in (
        (BANDS, {">=80", "65-79", "30-44", "18-29", "0-17"}),
        ({"age_on": "2024-12-31"}, {94, 74, 44, 25, 14}),
    ):
        used = {"individual": "row", "quasi_identifiers": {"disease": {}}, "sensitive": {"born": builder}}
        house.run(patients(), columns=used)
        assert set(house.released()["born"].to_pylist()) == expected


def test_a_reused_recoding_takes_ages_that_are_new(house: House) -> None:
    used = columns(born=BANDS)
    house.run(patients(), columns=used, privacy=[{"k_anonymity": {"k": 20}}], release={"path": "a", "run": "a-run"})
    later = patients().set_column(0, "born", pa.array([dt.date(1960 + row, 5, 5) for row in range(60)]))
    method = {"kind": "reuse", "run": str(house.folder / "a-run")}
    result = house.run(later, columns=used, method=method, privacy=[{"k_anonymity": {"k": 5}}])
    assert result.to_dict()["safe"]
    assert set(house.released()["born"].to_pylist()) <= {"0-17", "18-64", ">=65", "<=17", "*"}


def test_missing_birth_dates_and_codes_stay_missing(house: House) -> None:
    table = pa.table(
        {
            "born": pa.array([None, None, BORN[0], BORN[0]], pa.date32()),
            "zip": pa.array([None, None, 7.0, 7.0]),
            "disease": ["flu", "cold", "flu", "cold"],
        }
    )
    house.run(table, columns=columns(born=BANDS, zip={"digits": 3, "pad": 3}))
    assert set(zip(*(house.released()[name].to_pylist() for name in ("born", "zip")))) == {(None, None), ("94", "007")}


# Codes


@pytest.mark.parametrize(
    "codes",
    [
        pa.array([1, 20, 2139, 99999], pa.int32()),
        pa.array([1, 20, 2139, 99999], pa.uint64()),
        pa.array([1.0, 20.0, 2139.0, 99999.0]),
        pa.array([Decimal(1), Decimal(20), Decimal(2139), Decimal(99999)], pa.decimal128(7, 2)),
        pa.array(["1", "20", "02139", "99999"]),
        pa.array(["00001", "0020", "2139", "99999"]),
    ],
    ids=lambda codes: str(codes.type),
)
def test_codes_regain_their_leading_zeros(house: House, codes: pa.Array) -> None:
    table = pa.table({"zip": pa.concat_arrays([codes, codes]), "disease": ["flu"] * 4 + ["cold"] * 4})
    house.run(table, columns=columns(zip={"digits": 5, "pad": 5}))
    assert set(house.released()["zip"].to_pylist()) == {"00001", "00020", "02139", "99999"}


def test_padded_codes_find_their_line_in_a_hierarchy_file(house: House) -> None:
    file = house.folder / "zip.csv"
    file.write_text("00001;A;*\n00020;A;*\n02139;Boston;*\n99999;B;*\n")
    builder = {"hierarchy": str(file), "pad": 5}
    house.run(patients(), columns=columns(zip=builder), privacy=[{"k_anonymity": {"k": 30}}])
    assert set(house.released()["zip"].to_pylist()) <= {"A", "Boston", "B", "*"}


@pytest.mark.parametrize(
    ("codes", "count"),
    [
        (pa.array(["12345", "123456", "1234567", "02139"]), 2),
        (pa.array(["1234", "12a", "1 2", ""]), 3),
        (pa.array(["١٢٣", "+12", "-1", "1.0"]), 4),
        (pa.array([-1, 5, 100_000, 99_999]), 2),
        (pa.array([1.5, 5.0, 1e300, 12.0]), 2),
        (pa.array([Decimal("1.50"), Decimal("5.00"), Decimal("7.25"), None], pa.decimal128(9, 2)), 2),
    ],
    ids=["longer", "not digits", "like digits", "integers", "numbers", "decimals"],
)
def test_values_that_are_no_codes_are_refused_with_their_count(house: House, codes: pa.Array, count: int) -> None:
    table = pa.table({"zip": codes, "disease": ["flu", "cold", "flu", "cold"]})
    with pytest.raises(ConfigError) as refused:
        house.run(table, columns=columns(zip={"digits": 5, "pad": 5}))
    message = str(refused.value)
    assert "columns.quasi_identifiers.zip" in message
    assert f"with {count} values that are not" in message
    assert "codes of at most 5 digits" in message
    assert "123456" not in message


def test_birth_dates_after_the_day_are_refused_with_their_count(house: House) -> None:
    with pytest.raises(ConfigError, match=r"columns\.quasi_identifiers\.born: .*24 values .*up to the day"):
        house.run(patients(), columns=columns(born={"age_on": "1998-12-31", "bands": [18]}))


def test_a_birth_date_of_the_day_itself_has_age_zero(house: House) -> None:
    house.run(patients(), columns=columns(born={"age_on": "2010-07-07", "bands": [18]}))
    assert "0" in house.released()["born"].to_pylist()


@pytest.mark.parametrize(("name", "builder"), [("zip", BANDS), ("disease", BANDS), ("born", {"digits": 5, "pad": 5})])
def test_a_column_of_another_type_is_refused(house: House, name: str, builder: dict[str, Any]) -> None:
    used = {"individual": "row", "quasi_identifiers": {name: builder}}
    with pytest.raises(ConfigError, match=r"with `age_on`|with `pad`"):
        house.run(patients(), columns=used)
