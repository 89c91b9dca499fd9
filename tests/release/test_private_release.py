"""Differentially private releases: who is drawn, what is published of them and of nothing else, what has to be the same
for the same release, and what is refused."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anon
from anon.config import load
from anon.config.sampling import Sampling
from anon.core.database import Database, connect
from anon.errors import ConfigError, UnsafeError
from anon.source.origins import Frame, fingerprint
from anon.source.sample import Drawn
from tests.conftest import House
from tests.oracles import differential_privacy as oracle

Row = tuple[int | None, str]
LEVELS = {"age": 1, "zip": 2}
PROMISE: dict[str, Any] = {"epsilon": 1, "delta": 0.01, "levels": LEVELS}
PRIVATE: dict[str, Any] = {
    "columns": {
        "individual": "row",
        "quasi_identifiers": {"age": {"intervals": [20], "top": 60}, "zip": {"digits": 3}},
    },
    "nulls": {"quasi_identifiers": "drop"},
    "privacy": [{"differential_privacy": PROMISE}],
    "method": {"kind": "lattice"},
}


def people(count: int = 400, seed: int = 0) -> list[Row]:
    rng = random.Random(seed)
    ages = [None, *range(15, 75)]
    return [(rng.choice(ages), rng.choice(["021", "022", "101", "999"])) for _ in range(count)]


def table(rows: list[Row]) -> pa.Table:
    columns = {
        "age": [age for age, _ in rows],
        "zip": [code for _, code in rows],
        "id": [f"p{i}" for i in range(len(rows))],
    }
    return pa.table(columns, pa.schema([("age", pa.int32()), ("zip", pa.string()), ("id", pa.string())]))


def label(row: Row) -> tuple[str, str]:
    """Return the labels at the levels of the config: ages by 20 years, and the first digit of the code."""
    age, code = row
    low = (age or 0) // 20 * 20
    return ">=60" if low >= 60 else f"{low}-{low + 19}", f"{code[0]}**"


def drawn_rows(database: Database, rows: pa.Table, individual: str, key: bytes, settings: dict[str, Any]) -> list[Row]:
    config = load(settings | {"release": {"path": "out"}}, source=False).with_key(key)
    origin = Drawn(Frame(rows), config, config.privacy[0].drawn)
    columns = config.columns.model_copy(update={"individual": individual})
    origin.register(database, "t", columns, Path())
    names = ", ".join(f'"{name}"' for name in config.columns.quasi_identifiers)
    return [tuple(row) for row in database.query(f"SELECT {names} FROM t ORDER BY ALL").fetchall()]  # type: ignore[misc]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return connect(10**9, 2, tmp_path)


@pytest.mark.parametrize("individual", ["row", "id"])
def test_somebody_is_drawn_if_the_coin_of_the_key_says_so(database: Database, individual: str) -> None:
    rows, key = people(), bytes(range(32))
    config = load(PRIVATE | {"release": {"path": "out"}}, source=False)
    settings = repr((config.columns, config.nulls, config.privacy, config.method))
    database.register("whole", table(rows))
    about = repr(((settings, []), fingerprint(database, "whole")))
    seen: Counter[Row] = Counter()
    expected, limit = [], Sampling.derived(Decimal(1), Decimal("0.01")).limit
    for number, row in enumerate(rows):
        texts = ["-" if part is None else f"{len(str(part))}:{part}" for part in row]
        who = f"{''.join(texts)}#{seen[row]}" if individual == "row" else f"p{number}"
        seen[row] += 1
        if oracle.is_drawn(key, about, who, limit):
            expected.append(row)
    found = drawn_rows(database, table(rows), individual, key, PRIVATE)
    assert Counter(found) == Counter(expected)
    assert 0.55 < len(found) / len(rows) < 0.72


def shown(house: House) -> Counter[tuple[str, str]]:
    released = house.released()
    return Counter(zip(*(released.column(name).to_pylist() for name in ("age", "zip"))))


def key_of(house: House) -> bytes:
    return bytes.fromhex((house.folder / "out-run" / "run.key").read_text())


def test_a_release_has_all_groups_of_the_sample_that_are_large_enough(house: House, database: Database) -> None:
    rows = people()
    house.run(table(rows), **PRIVATE)
    sample = drawn_rows(database, table(rows), "row", key_of(house), PRIVATE)
    k = Sampling.derived(Decimal(1), Decimal("0.01")).k
    groups = Counter(label(row) for row in sample if row[0] is not None)
    assert shown(house) == {group: n for group, n in groups.items() if n >= k}
    assert 0 < len(shown(house)) < len(groups)


def test_the_same_key_and_rows_give_the_same_release(house: House) -> None:
    rows = people()
    house.write(table(rows))
    house.run(**PRIVATE)
    first = house.bytes()
    shuffled = rows.copy()
    random.Random(3).shuffle(shuffled)
    house.write(table(shuffled).drop_columns(["id"]), row_group_size=50)
    result = house.run(**PRIVATE, limits={"memory": "600MB", "threads": 1, "temp": "spill"})
    assert house.bytes() == first
    assert result.to_dict()["rows"] == sum(shown(house).values())


@pytest.mark.parametrize("what", ["one row more", "another level", "another key"])
def test_all_coins_are_others_when_anything_changes(what: str, tmp_path: Path) -> None:
    """Otherwise one release could be subtracted from the other. Each age is one person here."""
    rows: list[Row] = [(age, "021") for age in range(300)]
    key, other = b"k" * 32, b"l" * 32 if what == "another key" else b"k" * 32
    more: list[Row] = [*rows, (300, "021")] if what == "one row more" else rows
    levels = {"age": 1, "zip": 1} if what == "another level" else LEVELS
    changed = PRIVATE | {"privacy": [{"differential_privacy": PROMISE | {"levels": levels}}]}
    once = set(drawn_rows(connect(10**9, 2, tmp_path), table(rows), "row", key, PRIVATE))
    again = set(drawn_rows(connect(10**9, 2, tmp_path), table(more), "row", other, changed))
    assert len(once ^ again) > 75  # of 300, 139 on average


def test_nothing_that_is_published_counts_those_who_are_missing(house: House) -> None:
    house.run(table(people()), **PRIVATE)
    package = json.loads((house.folder / "out" / "datapackage.json").read_text())
    drawn = Sampling.derived(Decimal(1), Decimal("0.01"))
    assert package["sampling"] == {"share": float(drawn.share), "smallest_group": drawn.k}
    assert not {"suppressed_share", "null_share"} & set(package)
    assert sorted(path.name for path in (house.folder / "out").iterdir()) == ["datapackage.json", "release.parquet"]
    assert not (house.folder / "out-run" / "members.parquet").exists()


def test_the_report_says_what_is_promised_and_that_levels_were_given(house: House) -> None:
    house.run(table(people()), **PRIVATE)
    page = (house.folder / "out-run" / "report.html").read_text()
    assert "(1, 0.01)-differentially private" in page
    assert "no part of the data chose them" in page
    told = anon.explain(house.folder / "out-run").to_dict()
    assert told["choose"] == "given"


def test_a_check_sees_the_sizes_of_groups(house: House) -> None:
    k = Sampling.derived(Decimal(1), Decimal("0.01")).k
    rows = pa.table({"age": ["0-19"] * k, "zip": ["0**"] * k})
    assert house.check(rows, **PRIVATE).to_dict()["safe"]
    without_levels = [{"differential_privacy": {"epsilon": 1, "delta": 0.01}}]
    assert not house.check(rows.slice(1), **PRIVATE | {"privacy": without_levels}).to_dict()["safe"]


def test_larger_groups_may_be_demanded(house: House) -> None:
    larger = [*PRIVATE["privacy"], {"k_anonymity": 25}]
    house.run(table(people()), **PRIVATE | {"privacy": larger})
    assert min(shown(house).values()) >= 25


def test_levels_of_a_run_on_other_data_are_reused(house: House, database: Database) -> None:
    plain = {"k_anonymity": 9}
    other = {"release": {"path": "earlier", "run": "earlier-run"}}
    house.run(table(people(seed=1)), **PRIVATE | {"privacy": [plain]} | other)
    levels = json.loads((house.folder / "earlier-run" / "recoding.json").read_text())["chosen"]["levels"]
    reuse = {"kind": "reuse", "run": str(house.folder / "earlier-run")}
    private = PRIVATE | {"privacy": [{"differential_privacy": {"epsilon": 1, "delta": 0.01}}], "method": reuse}
    house.run(table(people()), **private)
    told = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert told["chosen"]["levels"] == levels


def test_levels_that_a_search_chose_for_the_same_source_are_refused(house: House) -> None:
    house.write(table(people()))
    other = {"release": {"path": "earlier", "run": "earlier-run"}}
    house.run(**PRIVATE | {"privacy": [{"k_anonymity": 9}]} | other)
    reuse = {"kind": "reuse", "run": str(house.folder / "earlier-run")}
    private = PRIVATE | {"privacy": [{"differential_privacy": {"epsilon": 1, "delta": 0.01}}], "method": reuse}
    with pytest.raises(ConfigError, match="searched the same source"):
        house.run(**private)


def test_too_few_people_are_not_published(house: House) -> None:
    with pytest.raises(UnsafeError):
        house.run(table(people(30)), **PRIVATE)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"columns__sensitive": ["id"]}, "columns.sensitive"),
    ({"columns__keep": ["id"]}, "columns.keep"),
    ({"columns__quasi_identifiers": {"age": {}, "zip": {"digits": 3}}}, "cut freely"),
    ({"method": {"kind": "partition"}}, "depend on the data"),
    ({"method": {"kind": "lattice", "suppress": 0.1}}, "all small groups are suppressed"),
    ({"method": {"kind": "lattice", "choose": "height"}}, "nothing is searched"),
    ({"release__bounds": True}, "release.bounds"),
    ({"nulls": {"quasi_identifiers": "value"}}, "drop or error"),
    ({"backend": {"kind": "spark", "master": "local"}}, "spark with differential_privacy"),
    ({"release__series": "append"}, "release.series"),
    ({"privacy": [{"differential_privacy": PROMISE | {"levels": {"age": 1}}}]}, "also for zip"),
    ({"privacy": [{"differential_privacy": PROMISE | {"levels": LEVELS | {"sex": 1}}}]}, "a quasi-identifier"),
    ({"privacy": [{"differential_privacy": PROMISE | {"levels": LEVELS | {"age": 3}}}]}, "0 to 2, the highest"),
    ({"privacy": [{"differential_privacy": {"epsilon": 1, "delta": 0.01}}]}, "no levels"),
    ({"privacy": [{"differential_privacy": PROMISE | {"sampling": 0.7}}]}, "at most 1 - e\\^-epsilon, 0.632120"),
    ({"privacy": [{"differential_privacy": PROMISE | {"epsilon": 9}}]}, "epsilon"),
    ({"privacy": [{"differential_privacy": PROMISE | {"epsilon": 0.0001}}]}, "at least 0.001"),
    ({"privacy": [{"differential_privacy": PROMISE | {"delta": 1e-40}}]}, "at least 1E-30"),
    ({"privacy": [{"differential_privacy": PROMISE | {"sampling": 1e-20}}]}, "at least 1E-9"),
    ({"privacy": [{"differential_privacy": PROMISE}, {"differential_privacy": PROMISE}]}, "once"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_the_proof_does_not_cover_is_refused(house: House, changes: dict[str, Any], message: str) -> None:
    house.write(table(people()))
    config = house.config(**PRIVATE)
    for name, value in changes.items():
        section, _, field = name.partition("__")
        config[section] = config[section] | {field: value} if field else value
    with pytest.raises(ConfigError, match=message):
        anon.run(config)


def test_a_csv_file_needs_types(house: House) -> None:
    (house.folder / "t.csv").write_text("age,zip\n" + "30,021\n" * 200)
    config = house.config(**PRIVATE) | {"source": {"path": str(house.folder / "t.csv")}}
    with pytest.raises(ConfigError, match="no type of age, zip"):
        anon.run(config)
    config["source"]["csv"] = {"types": {"age": "integer", "zip": "text"}}
    anon.run(config)
    assert set(shown(house)) == {("20-39", "0**")}


WORDS = "a;x;*\nb;x;*\nc;y;*\nd;y;*\n"
BUILDERS: dict[str, Any] = {
    "whole": {"intervals": [5, 10], "origin": 1},
    "broken": {"intervals": [5, 10], "top": 50, "bottom": 0},
    "band": {"bands": [[0, 18, 30], [18]]},
    "code": {"digits": 5, "pad": 5},
    "day": {"calendar": ["month", "year"]},
    "word": {"hierarchy": "words.csv"},
    "sex": {"suppress": True},
}
ONE = {"whole": 17, "broken": 17.5, "band": 17, "code": 2139, "day": date(2024, 3, 9), "word": "d", "sex": "f"}
SCHEMA = pa.Table.from_pylist([ONE]).schema
STRANGE: list[dict[str, Any]] = [
    {"whole": -(10**9), "broken": 1e300, "band": -5, "code": 99999, "day": date(1, 1, 1), "word": "a", "sex": "*x"},
    {"whole": 10**9, "broken": 0.001, "band": 99, "code": 1, "day": date(9999, 1, 1), "word": "c", "sex": ""},
    dict.fromkeys(BUILDERS) | {"word": "b"},
    ONE | {"sex": None},
]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_the_labels_of_a_row_do_not_depend_on_the_other_rows(house: House, level: int) -> None:
    path = house.folder / "words.csv"
    path.write_text(WORDS)
    builders = BUILDERS | {"word": {"hierarchy": str(path)}}
    heights = {"sex": 1, "word": 2}
    levels = {name: min(level, heights.get(name, 3)) for name in builders}
    private = PRIVATE | {"privacy": [{"differential_privacy": PROMISE | {"levels": levels}}]}
    private |= {"columns": {"individual": "row", "quasi_identifiers": builders}}
    found = []
    for others in ([], STRANGE):
        house.run(pa.Table.from_pylist([ONE] * 100 + others, SCHEMA), **private)
        found.append(set(map(str, house.released().to_pylist())))
    assert found[0] == found[1] and len(found[0]) == 1


def test_a_trial_is_refused(house: House) -> None:
    house.write(table(people()))
    with pytest.raises(ConfigError, match="a trial with"):
        anon.run(house.config(**PRIVATE), sample="50%")
