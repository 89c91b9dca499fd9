"""`ends` of a column that is cut freely: labels begin and end at the bounds of the config and nowhere else, in both
reaches and both forms; what is released is verified, checked, measured and reused as any other release."""

from __future__ import annotations

import random
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import anon
from anon.config import Free
from anon.cube.label_ends import _start
from anon.errors import ConfigError
from anon.source import Column
from tests.conftest import House
from tests.helpers.backends import on_every_backend, run_as_plain

QUASI: dict[str, Any] = {
    "age": {"ends": 5, "origin": 1},
    "height": {"ends": Decimal("0.1")},
    "pay": {"ends": [0, 100, 1000]},
    "born": {"ends": "quarter"},
    "seen": {"ends": "day"},
}
COLUMNS = {"individual": "row", "quasi_identifiers": QUASI, "sensitive": ["disease"]}


def table(rows: int = 300, seed: int = 5) -> pa.Table:
    rng = random.Random(seed)
    made = [
        {
            "age": rng.choice([None, *range(-3, 60)]),
            "height": rng.choice([1.5, 1.55, 1.61, 1.7, 0.3, 0.30000000000000004, -0.05]),
            "pay": rng.choice([-7, 3, 99, 100, 101, 999, 1000, 5000]),
            "born": date(1980, 1, 1) + timedelta(days=rng.randrange(1500)),
            "seen": datetime(2024, 1, 1) + timedelta(hours=rng.randrange(60)),
            "disease": rng.choice(["Flu", "HIV", "Cold"]),
        }
        for _ in range(rows)
    ]
    return pa.Table.from_pylist(made)


def starts(label: str) -> list[str]:
    """The bounds that a label shows, as those from which on values are above: the end of a range of whole numbers is
    followed by the next one."""
    word = label.removeprefix("null|")
    if word in ("*", "not null"):
        return []
    if word.startswith("["):
        return word[1:-1].split(",")
    if word.startswith(">="):
        return [word[2:]]
    if word.startswith("<="):
        return [following(word[2:])]
    if word.startswith("<"):
        return [word[1:]]
    found = re.fullmatch(r"(.+?)\.\.(.+)", word) or re.fullmatch(r"(\d+)-(\d+)", word)
    assert found, label  # never a single value
    return [found[1], following(found[2])]


def following(word: str) -> str:
    if re.fullmatch(r"-?\d+", word):
        return str(int(word) + 1)
    return (date.fromisoformat(word) + timedelta(days=1)).isoformat()


def allowed(column: str, bound: str) -> bool:
    if column == "age":
        return (int(bound) - 1) % 5 == 0
    if column == "height":
        return (Fraction(bound) * 10).denominator == 1
    if column == "pay":
        return bound in ("0", "100", "1000")
    moment = datetime.fromisoformat(bound)
    if column == "seen":
        return moment.time() == datetime.min.time()
    return moment.day == 1 and moment.month in (1, 4, 7, 10)


@pytest.mark.parametrize("labels", ["cells", "tight"])
@pytest.mark.parametrize("prefer", ["widest", "loss", "public"])
@pytest.mark.parametrize("form", ["generalized", "bucketized"])
def test_labels_end_where_the_config_says(house: House, labels: str, prefer: str, form: str) -> None:
    house.write(table())
    method = {"kind": "partition", "labels": labels, "prefer": prefer}
    release = {"path": "out", "run": "out-run", "form": form}
    config = house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}], method=method, release=release)
    result = anon.run(config)
    released = house.released("release.parquet" if form == "generalized" else "qi.parquet")
    shown = {(name, bound) for name in QUASI for label in released[name].to_pylist() for bound in starts(label or "*")}
    assert {name for name, _ in shown} == set(QUASI)
    assert [each for each in shown if not allowed(*each)] == []
    assert anon.check(config, house.folder / "out").safe
    measured = anon.utility(config, house.folder / "out").to_dict()
    assert measured["groups"] == result.facts["groups"] and 0 < measured["loss"]["all"] < 1
    assert measured["loss"] == result.report["utility"]["loss"]
    assert measured["lower_bound"]["all"] <= measured["loss"]["all"]


def test_no_label_is_a_value(house: House) -> None:
    house.write(pa.table({"age": [20, 20, 23, 23, 40, 40], "zip": ["00000"] * 6, "disease": ["a", "b"] * 3}))
    quasi = {"age": {"ends": 5}, "zip": {"digits": 5}}
    house.run(columns__quasi_identifiers=quasi, method={"kind": "partition", "labels": "tight"})
    assert house.released()["age"].to_pylist() == ["<=39"] * 4 + [">=40"] * 2


def test_the_loss_counts_what_a_bin_covers(house: House) -> None:
    """Ages 20 to 24 under one label span 4 of the 20 years."""
    rows = pa.table({"age": [20, 24, 40, 40], "zip": ["00000"] * 4, "disease": ["a", "b"] * 2})
    house.write(rows)
    quasi = {"age": {"ends": 10}, "zip": {"digits": 5}}
    found = house.run(columns__quasi_identifiers=quasi).report["utility"]["loss"]["columns"]
    assert found["age"] == pytest.approx((2 * Fraction(4, 20) + 0) / 4)


def test_a_recoding_with_ends_is_reused(house: House) -> None:
    rows = table()
    house.write(rows)
    first = house.run(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}])
    assert first.safe
    before = house.released()
    method = {"kind": "reuse", "run": str(house.folder / "out-run")}
    config = house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}], method=method)
    config["release"] = {"path": str(house.folder / "again"), "run": str(house.folder / "again-run")}
    anon.run(config)
    assert house.released(place="again") == before


@on_every_backend()
def test_a_cluster_releases_the_same(house: House) -> None:
    plain, there = run_as_plain(
        house,
        table(),
        columns=COLUMNS,
        privacy=[{"k_anonymity": {"k": 4}}],
        method={"kind": "partition", "labels": "tight"},
    )
    assert there.facts["groups"] == plain.facts["groups"]


def test_memory_threads_and_the_order_of_rows_make_no_difference(house: House) -> None:
    rows = table(2_000)
    house.write(rows)
    house.run(columns=COLUMNS, method={"kind": "partition", "labels": "tight"})
    first = house.bytes()
    house.write(rows.take(pa.array(random.Random(1).sample(range(2_000), 2_000))))
    limits = {"memory": "400MB", "threads": 1, "temp": "spill"}
    house.run(columns=COLUMNS, method={"kind": "partition", "labels": "tight"}, limits=limits)
    assert house.bytes() == first


@pytest.mark.parametrize(
    ("builder", "changes", "words"),
    [
        ({"ends": "month"}, {}, "month for a column of kind integer"),
        ({"ends": "week"}, {}, "a number, a list of numbers, or one of day"),
        ({"ends": 0}, {}, "a width more than 0"),
        ({"ends": [3, 1]}, {}, "numbers in ascending order"),
        ({"ends": [1, 2], "origin": 3}, {}, "no origin without a number"),
        ({"ends": 5}, {"method": {"kind": "lattice"}}, "ends with method lattice"),
        ({"ends": 5}, {"release": {"path": "out", "form": "bucketized", "labels": "exact"}}, "ends with exact labels"),
    ],
)
def test_ends_that_make_no_sense(house: House, builder: Any, changes: dict[str, Any], words: str) -> None:
    house.write(pa.table({"age": [20, 20], "zip": ["00000"] * 2, "disease": ["a", "b"]}))
    quasi = {"age": builder, "zip": {"digits": 5}}
    privacy = [{"group_size": {"k": 2}}]
    with pytest.raises(ConfigError, match=words):
        house.run(columns__quasi_identifiers=quasi, privacy=privacy, **changes)
    with pytest.raises(ConfigError, match=r"sensitive\.disease\.ends: found an unknown key"):
        house.run(columns__sensitive={"disease": {"ends": 5}})


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("labels", ["cells", "tight"])
@pytest.mark.parametrize(
    ("ends", "found"),
    [
        (1000, {"<=-1", "0-9223372036854774999", ">=9223372036854775000"}),
        ([Decimal(-1).scaleb(30), 0, 100], {"<=-1", "0-99", ">=100"}),
    ],
)
def test_the_lowest_and_the_highest_whole_numbers_have_ends(
    house: House, ends: Any, found: set[str], labels: str, null: bool
) -> None:
    """The multiple of 1000 below the lowest whole number is no value of the column, and no label begins there."""
    numbers = [-(2**63), -(2**63) + 5, 0, 7, 2**63 - 1] * 3 + [None] * 3 * null
    rows = pa.table({"n": pa.array(numbers, pa.int64()), "disease": ["Flu", "HIV", "Cold"] * (5 + null)})
    columns = {"individual": "row", "quasi_identifiers": {"n": {"ends": ends}}, "sensitive": ["disease"]}
    method = {"kind": "partition", "labels": labels}
    assert house.run(rows, columns=columns, privacy=[{"k_anonymity": {"k": 3}}], method=method).safe
    assert set(house.released()["n"].to_pylist()) - {None} == found


def test_the_lowest_number_has_ends() -> None:
    values = [-1.797e308, -1e300, 0.5]
    starts = _start(Column("n", "q0", "number", "n"), Free(ends=[Decimal("-1e300"), 0]))
    assert [starts(value) for value in values] == [None, -1e300, 0.0]
    assert _start(Column("n", "q0", "number", "n"), Free(ends=Decimal("9e300")))(-1.7976931348623157e308) is None
