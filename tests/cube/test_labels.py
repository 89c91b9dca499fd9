"""Labels of columns that are cut freely: their bounds are round numbers, days and moments between the values of the
table, never one of them where another one lies between."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.cube import Domain
from anon.cube.bounds import between
from anon.errors import ConfigError
from tests.conftest import House
from tests.oracles import labels as oracle
from tests.oracles.labels import Plain

KINDS = {"integer": int, "number": float, "date": dt.date, "timestamp": dt.datetime}
TYPES = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32(), "timestamp": pa.timestamp("us")}


def test_bounds_of_whole_numbers_are_the_roundest_of_all() -> None:
    rng = random.Random(1)
    far = [(low, low + rng.randint(1, 300)) for low in (rng.randint(-(10**5), 10**5) for _ in range(200))]
    for lower, upper in [(low, low + gap) for low in range(-45, 125) for gap in range(1, 45)] + far:
        assert between(lower, upper) == oracle.whole_bound(lower, upper), (lower, upper)


def test_bounds_of_days_are_those_of_whole_numbers_but_rounded_to_years_and_months() -> None:
    rng = random.Random(1)
    for _ in range(300):
        lower = dt.date(rng.choice([1, 1899, 1969, 2023, 9990]), rng.randint(1, 12), rng.randint(1, 28))
        gap = rng.choice([1, 2, 3, 4, 10, 100, 1000])
        upper = lower + gap * oracle.DAY
        bound = between(lower, upper)
        least = lower + (oracle.DAY if gap > 2 else oracle.DAY * 0)
        assert lower < bound <= upper and (bound == upper) == (gap == 1)
        if gap > 1:
            midnights = [dt.datetime.combine(day, dt.time()) for day in (least, upper, bound)]
            assert oracle.coarseness(midnights[2]) == oracle.coarsest_between(*midnights[:2])
            assert least < bound


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_bounds_of_numbers_are_the_shortest_decimals_between_them(one: float, other: float) -> None:
    lower, upper = sorted((one + 0.0, other + 0.0))
    if lower == upper:
        return
    bound = between(lower, upper)
    assert lower < bound < upper or bound == upper == math.nextafter(lower, math.inf)
    if lower < 0 < upper or upper - lower > 1e-9 * max(abs(lower), abs(upper)) > 1e-290:
        assert oracle.digits(bound) == oracle.fewest_digits(lower, upper)


@pytest.mark.parametrize("start", [1.0, -1.0, 0.1, 2.0**53, 5e-324, -1.7e308, 2.0**-1022, 0.0])
def test_floats_next_to_each_other_have_a_bound_as_soon_as_one_lies_between(start: float) -> None:
    second = math.nextafter(start, math.inf)
    third = math.nextafter(second, math.inf)
    assert between(start, second) == second
    assert between(start, third) == second


moments = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9998, 1, 1))


@settings(max_examples=200, deadline=None)
@given(moments, st.integers(0, 12), st.integers(1, 99))
def test_bounds_of_moments_begin_the_longest_unit_between_them(lower: dt.datetime, power: int, factor: int) -> None:
    upper = lower + dt.timedelta(microseconds=factor * 10**power)
    bound = between(lower, upper)
    if upper - lower == oracle.UNITS[-1]:
        assert bound == upper
    else:
        assert lower < bound < upper
        assert oracle.coarseness(bound) == oracle.coarsest_between(lower, upper)


EDGES = [0.0, 1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0), 5e-324, -5e-324, 1.7e308, -1.7e308, 0.1, 0.3]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-12, 12) | st.sampled_from([-(2**63), 2**63 - 1, 2**63 - 2]),
    "number": st.sampled_from(EDGES) | st.floats(-1e6, 1e6).map(lambda x: x + 0.0) | st.integers(-9, 9).map(float),
    "date": st.dates(dt.date(1969, 12, 20), dt.date(1970, 1, 15))
    | st.sampled_from([dt.date.min, dt.date(9999, 12, 30)]),
    "timestamp": st.integers(-9, 9).map(lambda n: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=n))
    | st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 30)),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[Domain, list[list[Any]]]:
    """A domain of values or of bins, and the values of each of its codes, null's first."""
    kind = draw(st.sampled_from(list(KINDS)))
    values = sorted(draw(st.lists(VALUES[kind], min_size=2, max_size=10, unique=True)))
    null, binned = draw(st.booleans()), draw(st.booleans())
    begins = {0, *draw(st.sets(st.integers(0, len(values) - 1)))} if binned else set(range(len(values)))
    edges = [*sorted(begins), len(values)]
    codes = [values[first:last] for first, last in pairwise(edges)]
    first, last = (pa.array([code[place] for code in codes], TYPES[kind]) for place in (0, -1))
    domain = Domain("c", kind, first, not binned, null, last=last if binned else None)
    return domain, [[None]] * null + codes


def has_room(read: Plain, lower: Any, upper: Any) -> bool:
    return bool(read.after(lower) < upper)


@settings(max_examples=400, deadline=None)
@given(columns())
def test_a_label_holds_its_values_and_no_others_and_begins_and_ends_at_none_of_them(
    column: tuple[Domain, list[list[Any]]],
) -> None:
    domain, codes = column
    values = [value for code in codes for value in code if value is not None]
    read = Plain(KINDS[domain.kind], values)
    for low in range(domain.size):
        for high in range(low, domain.size):
            inside = [value for code in codes[low : high + 1] for value in code]
            label = domain.label(low, high)
            assert [v for code in codes for v in code if read.contains(label, v)] == inside
            if label is None or inside == [None] or len([v for v in inside if v is not None]) == 1:
                continue
            start, past = read.bounds(label)
            if start in values:
                assert not has_room(read, values[values.index(start) - 1], start)
            if past in values:
                assert not has_room(read, values[values.index(past) - 1], past)
            if domain.kind in ("integer", "date") and past is not None:
                end = past - oracle.STEPS[read.kind]
                following = min(value for value in values if value > end)
                assert end not in values or not has_room(read, read.after(end), following)


@settings(max_examples=200, deadline=None)
@given(columns(), st.data())
def test_labels_of_neighbouring_cells_leave_no_gap_and_do_not_overlap(
    column: tuple[Domain, list[list[Any]]], data: st.DataObject
) -> None:
    domain, _ = column
    read, first = Plain(KINDS[domain.kind], ()), 1 + domain.null
    if domain.size == first:
        return
    cut = data.draw(st.integers(first, domain.size - 1))
    below, above = domain.label(0, cut - 1), domain.label(cut, domain.size - 1)
    assert below is not None and above is not None
    past, start = read.bounds(below)[1], read.bounds(above)[0]
    one_value = {below.removeprefix("null|"), above} & set(domain.texts)
    assert past <= start if one_value else past == start


def test_the_last_whole_number_before_a_bound_is_no_value_where_there_is_room() -> None:
    """Between 19 and 27 there is room for both ends; between 27 and 29 for one; 29 and 30 are next to each other."""
    domain = Domain("c", "integer", pa.array([10, 19, 27, 28, 30, 31, 40]), True, False)
    assert [domain.label(0, 1), domain.label(2, 3), domain.label(4, 6)] == ["<=22", "23-28", ">=29"]
    assert [domain.label(0, 4), domain.label(5, 6)] == ["<=30", ">=31"]


def config(house: House, out: str = "out", **changes: Any) -> dict[str, Any]:
    columns = {"individual": "row", "quasi_identifiers": {"income": {}}, "sensitive": ["disease"]}
    made = house.config(columns=columns, privacy=[{"k_anonymity": {"k": 3}}], **changes)
    return made | {"release": {"path": str(house.folder / out), "run": str(house.folder / f"{out}-run")}}


def incomes(kind: str, seed: int = 3, count: int = 90) -> pa.Table:
    rng = random.Random(seed)
    days = [dt.date(1968, 1, 1) + dt.timedelta(days=4 * n) for n in range(count)]
    values: dict[str, list[Any]] = {
        "integer": [4 * rng.randint(-900, 9_000) for _ in range(count)],
        "number": [round(rng.lognormvariate(10, 1), 2) for _ in range(count)],
        "date": days,
        "timestamp": [dt.datetime.combine(day, dt.time(7, 30, 0, 250_001)) for day in days],
    }
    return pa.table({"income": pa.array(values[kind], TYPES[kind]), "disease": ["Flu", "HIV", "Cold"] * (count // 3)})


@pytest.mark.parametrize("word", ["*", "not null", "null|a", "{a|b}", "{a}"])
@pytest.mark.parametrize("method", ["partition", "lattice"])
def test_text_that_has_the_form_of_a_label_is_refused_before_the_search(house: House, word: str, method: str) -> None:
    table = pa.table({"income": [word] * 3 + ["a"] * 3 + ["b"] * 3, "disease": ["Flu"] * 9})
    with pytest.raises(ConfigError, match=r"income: found 1 distinct values with the form") as caught:
        anon.run(config(house, method={"kind": method}), table)
    assert word not in str(caught.value).replace("`*`, `not null`, `null|...` and `{...}`", "")
    assert not (house.folder / "out").exists()


@pytest.mark.parametrize("builder", ["suppress", "hierarchy"])
def test_a_star_in_a_column_with_a_hierarchy_is_refused(house: House, builder: str) -> None:
    (house.folder / "stars.csv").write_text("*;all\na;all\n")
    made = config(house)
    own = {"suppress": True} if builder == "suppress" else {"hierarchy": str(house.folder / "stars.csv")}
    made["columns"]["quasi_identifiers"] = {"income": own}
    with pytest.raises(ConfigError, match=r"two meanings|for other leaves"):
        anon.run(made, pa.table({"income": ["*"] * 3 + ["a"] * 3, "disease": ["Flu"] * 6}))


def test_text_like_the_range_of_a_number_is_a_value_and_the_description_has_the_kind(house: House) -> None:
    anon.run(config(house), pa.table({"income": ["<=19"] * 3 + ["20-34"] * 3, "disease": ["Flu"] * 6}))
    assert released(house) == ["20-34"] * 3 + ["<=19"] * 3
    package = json.loads((house.folder / "out" / "datapackage.json").read_text())
    assert package["cells"] == {"income": {"kind": "text", "labels": 2}}


def test_a_star_is_published_where_quasi_identifiers_are_published_as_they_are(house: House) -> None:
    made = config(house)
    made["release"] |= {"form": "bucketized", "labels": "exact"}
    made["privacy"] = [{"group_size": {"k": 3}}]
    anon.run(made, pa.table({"income": ["*"] * 3 + ["a"] * 3, "disease": ["Flu"] * 6}))
    assert pq.read_table(house.folder / "out" / "qi.parquet")["income"].to_pylist() == ["*"] * 3 + ["a"] * 3


def released(house: House, out: str = "out") -> list[str]:
    found: list[str] = pq.read_table(house.folder / out / "release.parquet")["income"].to_pylist()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_label_of_a_release_begins_or_ends_at_somebodys_value(house: House, kind: str) -> None:
    table = incomes(kind)
    anon.run(config(house), table)
    read, own = Plain(KINDS[kind], ()), table["income"].to_pylist()
    labels = set(released(house))
    assert len(labels) > 10
    for label in labels:
        assert sum(read.contains(label, value) for value in own) == released(house).count(label)
        start, past = read.bounds(label)
        assert start not in own and past not in own
        if kind in ("integer", "date") and past is not None:
            assert past - oracle.STEPS[KINDS[kind]] not in own
