"""`anon utility`: what a release still tells of its source, against its definitions on tables small enough to count by
hand; both forms, suppressed rows, missing values, hierarchies, free and binned columns; and what it refuses."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import anon
from anon.errors import ConfigError, SourceError
from anon.loss import kernels
from anon.loss.queries import DIMENSIONS, QUERIES, RUNS, SELECTIVITY, Queries
from anon.loss.utility import Original
from anon.recoding import metrics
from tests.conftest import House
from tests.oracles import utility as oracle
from tests.oracles.labels import Nodes, Plain
from tests.oracles.utility import Group

KEYS = [
    "groups",
    "average_group",
    "discernibility",
    "height",
    "divergence",
    "loss",
    "lower_bound",
    "query_error",
    "suppressed",
]
COLUMNS = {"quasi_identifiers": {"age": {}, "zip": {"digits": 2}}, "sensitive": ["disease"], "individual": "row"}
NULLS = {"quasi_identifiers": "value", "sensitive": "value"}
Person = tuple[int | None, str | None, str | None]

people = st.lists(
    st.tuples(
        st.sampled_from([None, 20, 21, 25, 40, 41, -3]),
        st.sampled_from([None, "00", "01", "11", "12", "22"]),
        st.sampled_from([None, "Cold", "Flu", "HIV"]),
    ),
    min_size=2,
    max_size=12,
)


def table(rows: Sequence[Sequence[Any]], *names: str) -> pa.Table:
    names = names or ("age", "zip", "disease")
    kinds = {"age": pa.int64(), "zip": pa.string(), "disease": pa.string(), "id": pa.int64()}
    return pa.table({name: pa.array([row[i] for row in rows], kinds[name]) for i, name in enumerate(names)})


def in_order(values: Sequence[Any]) -> list[Any]:
    """The different values as they are coded: null first."""
    return sorted(set(values), key=lambda v: (v is not None, v if v is not None else 0))


class Source:
    """The rows of a source as the oracle sees them, and what lies under a label."""

    def __init__(self, rows: Sequence[Person], kind: type = int) -> None:
        self.rows = [((age, zipped), (disease,)) for age, zipped, disease in rows]
        self.orders = [in_order(column) for column in zip(*rows)]
        self.codes = [[[value] for value in order] for order in self.orders]
        ages = [age for age in self.orders[0] if age is not None]
        zips = {z: (z, f"{z[0]}*") for z in self.orders[1] if z is not None}
        self.readers: list[Plain | Nodes] = [Plain(kind, ages), Nodes(zips)]
        self.positions: list[dict[Any, Any]] = [
            {age: min(ages, default=0) if age is None else age for age in self.orders[0]},
            {z: place for place, z in enumerate(self.orders[1])},
        ]

    def box(self, labels: Sequence[str | None]) -> oracle.Box:
        read = zip(labels, self.readers, self.orders)
        return tuple(frozenset(v for v in values if reader.contains(label, v)) for label, reader, values in read)

    def exact(self, values: Sequence[Any]) -> oracle.Box:
        return tuple(frozenset([value]) for value in values)

    def generalized(self, released: pa.Table) -> list[Group]:
        groups = defaultdict(list)
        for row in released.to_pylist():
            groups[row["age"], row["zip"]].append((row["disease"],))
        return [Group([self.box(labels)] * len(values), values) for labels, values in groups.items()]

    def asked(self) -> Iterator[list[frozenset[Any]]]:
        """The values that each query asks for, in every column; queries are drawn for columns of these sizes."""
        sizes: Any = [SimpleNamespace(size=len(codes)) for codes in self.codes]
        queries = Queries.draw(sizes[:2], sizes[2:])
        for columns, runs in zip(queries.column.tolist(), queries.run.tolist()):
            asked = [frozenset(order) for order in self.orders]
            for column, run in zip(columns, runs):
                low, high = queries.low[column, run], queries.high[column, run]
                asked[column] = frozenset().union(*self.codes[column][low : high + 1])
            yield asked

    def counts(self) -> list[int]:
        """The rows that each query counts."""
        return [
            sum(all(v in some for v, some in zip((*qi, *s), asked)) for qi, s in self.rows) for asked in self.asked()
        ]

    def errors(self, groups: list[Group]) -> list[Fraction]:
        expected = [oracle.expected(groups, tuple(asked[:2]), asked[2:]) for asked in self.asked()]
        return [oracle.error(*both, len(self.rows)) for both in zip(self.counts(), expected)]

    def agrees(self, told: dict[str, Any], groups: list[Group], individuals: int | None = None) -> None:
        """Asserts all that is told but the height."""
        individuals = len(self.rows) if individuals is None else individuals
        assert [name for name in told if name != "left_out"] == KEYS
        assert told["groups"] == len(groups)
        assert told["suppressed"] == individuals - sum(len(group.boxes) for group in groups)
        assert told["average_group"] == pytest.approx(float(oracle.average_group(groups)))
        assert told["discernibility"] == oracle.discernibility(groups, individuals)
        losses = [oracle.loss(groups, i, position, individuals) for i, position in enumerate(self.positions)]
        assert list(told["loss"]["columns"].values()) == pytest.approx([float(each) for each in losses])
        assert told["loss"]["all"] == pytest.approx(float(sum(losses) / 2))
        assert told["divergence"] == pytest.approx(oracle.divergence(self.rows, groups), abs=1e-9)
        self.agrees_on_queries(told, groups)

    def agrees_on_queries(self, told: dict[str, Any], groups: list[Group]) -> None:
        errors = self.errors(groups)
        assert told["query_error"]["queries"] == QUERIES == len(errors)
        assert told["query_error"]["mean"] == pytest.approx(float(sum(errors) / QUERIES), abs=1e-9)
        assert told["query_error"]["median"] == pytest.approx(float(median(errors)), abs=1e-9)
        expected = oracle.by_selectivity(errors, self.counts(), len(self.rows))
        found = told["query_error"]["by_selectivity"]
        assert [(each["at_least"], each["below"], each["queries"]) for each in found] == [
            (float(low), float(high), len(some)) for low, high, some in expected
        ]
        assert [each["median"] for each in found] == pytest.approx([float(median(s)) for *_, s in expected], abs=1e-9)
        assert [each["mean"] for each in found] == pytest.approx([float(mean(s)) for *_, s in expected], abs=1e-9)


def measured(rows: pa.Table, release: Any, **changes: Any) -> dict[str, Any]:
    form = "bucketized" if isinstance(release, tuple) else "generalized"
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        house.write(rows)
        config = house.config(columns=COLUMNS | changes, nulls=NULLS, release__form=form)
        return anon.utility(config, release).to_dict()


@settings(max_examples=8, deadline=None)
@given(people)
def test_a_run_tells_the_same_of_its_release_as_its_definition(rows: list[Person]) -> None:
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        house.write(table(rows))
        result = house.run(columns=COLUMNS, nulls=NULLS)
        told = result.report["utility"]
        source = Source(rows)
        source.agrees(told, source.generalized(house.released()))
        again = anon.utility(house.config(columns=COLUMNS, nulls=NULLS), house.folder / "out")
        assert {name: again.to_dict()[name] for name in KEYS} == told
        assert json.loads((house.folder / "out-run" / "report.json").read_text())["utility"] == told


def age_label(level: int, age: int | None) -> str | None:
    return "*" if level else None if age is None else str(age)


def zip_label(level: int, zipped: str | None) -> str | None:
    return "*" if level == 2 else None if zipped is None else f"{zipped[0]}*" if level else zipped


levels = st.tuples(st.integers(0, 1), st.integers(0, 2))


def full_domain(rows: list[Person], level: tuple[int, int], kept: Callable[[Any], bool]) -> list[tuple[Any, ...]]:
    """(labels of age and zip, disease) of all rows in groups that are kept."""
    labels = [(age_label(level[0], age), zip_label(level[1], z), disease) for age, z, disease in rows]
    return [row for row in labels if kept(row[:2])]


@settings(max_examples=8, deadline=None)
@given(people, levels, st.sets(st.integers(0, 11)))
def test_both_forms_of_a_full_domain_release_tell_what_the_definitions_say(
    rows: list[Person], level: tuple[int, int], dropped: set[int]
) -> None:
    every = in_every_group(full_domain(rows, level, lambda labels: True))
    kept = [labels for number, labels in enumerate(every) if number not in dropped] or list(every)
    released = full_domain(rows, level, lambda labels: labels in kept)
    names = ("age", "zip", "disease")
    flat = pa.table({name: pa.array([row[i] for row in released], pa.string()) for i, name in enumerate(names)})
    source = Source(rows)
    told = measured(table(rows), flat)
    source.agrees(told, source.generalized(flat))
    assert told["height"] is not None and told["height"] <= sum(level)
    if None not in source.orders[1] and len(source.orders[0]) > 1:
        assert told["height"] == sum(level)
    qi, held = bucketized([(row[:2], kept.index(row[:2]), row[2]) for row in released])
    pair = measured(table(rows), (qi, held))
    source.agrees(pair, source.generalized(flat))
    assert all(pair[name] == told[name] for name in told if name not in ("divergence", "query_error"))


def in_every_group(rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], None]:
    return {row[:2]: None for row in rows}


def bucketized(members: Sequence[tuple[tuple[Any, Any], int, Any]], typed: bool = False) -> tuple[pa.Table, pa.Table]:
    """Both tables, from the labels, the group and the value of every individual; `typed`: ages are numbers."""
    kinds = (pa.int64() if typed else pa.string(), pa.string())
    columns = [pa.array([labels[i] for labels, _, _ in members], kind) for i, kind in enumerate(kinds)]
    groups = pa.array([group for _, group, _ in members], pa.int64())
    held = sorted(Counter((group, value) for _, group, value in members).items(), key=str)
    values = {
        "group": pa.array([group for (group, _), _ in held], pa.int64()),
        "disease": pa.array([value for (_, value), _ in held], pa.string()),
        "count": pa.array([count for _, count in held], pa.int64()),
    }
    return pa.table([*columns, groups], names=["age", "zip", "group"]), pa.table(values)


@settings(max_examples=8, deadline=None)
@given(people, st.lists(st.integers(0, 3), min_size=12, max_size=12), st.booleans(), st.sets(st.integers(0, 3)))
def test_exact_labels_in_several_groups_are_told_with_the_values_of_all_of_them(
    rows: list[Person], group: list[int], typed: bool, dropped: set[int]
) -> None:
    if dropped >= set(group[: len(rows)]):
        dropped = set()
    kept = [(row, number) for row, number in zip(rows, group) if number not in dropped]
    pair = bucketized(
        [((row[0] if typed or row[0] is None else str(row[0]), row[1]), number, row[2]) for row, number in kept], typed
    )
    source = Source(rows)
    members = defaultdict(list)
    for row, number in kept:
        members[number].append(row)
    groups = [Group([source.exact(row[:2]) for row in m], [(row[2],) for row in m]) for m in members.values()]
    told = measured(table(rows), pair)
    source.agrees(told, groups)
    assert told["height"] == 0


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([20, 21, 25]),
            st.sampled_from(["00", "01", "11"]),
            st.lists(st.sampled_from(["Cold", "Flu", "HIV"]), min_size=1, max_size=4),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["set", "multiset"]),
)
def test_several_values_are_counted_as_often_as_individuals_have_them(
    patients: list[tuple[int, str, list[str], int]], multiplicity: str
) -> None:
    rows = [(age, z, d, who) for who, (age, z, diseases, _) in enumerate(patients) for d in diseases]
    counted = list(dict.fromkeys(rows)) if multiplicity == "set" else rows
    source = Source([row[:3] for row in counted])
    groups, qi, held = [], [], Counter()  # type: ignore[var-annotated]
    for number in sorted({group for *_, group in patients}):
        ids = [who for who, patient in enumerate(patients) if patient[3] == number]
        values = [row[2] for row in counted if row[3] in ids]
        groups.append(Group([source.exact(patients[who][:2]) for who in ids], [(value,) for value in values]))
        qi += [(*patients[who][:2], number) for who in ids]
        held.update((number, value) for value in values)
    pair = (
        pa.table(dict(zip(("age", "zip", "group"), map(list, zip(*qi))))),
        pa.table(
            {
                "group": [g for g, _ in held],
                "disease": [d for _, d in held],
                "count": list(held.values()),
            }
        ),
    )
    columns = {"individual": "id", "multiplicity": multiplicity}
    told = measured(table(rows, "age", "zip", "disease", "id"), pair, **columns)
    source.agrees(told, groups, len(patients))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(["00", "11"]), st.sampled_from("ab")), min_size=9, max_size=25
    ),
    st.booleans(),
    st.booleans(),
)
@example([(0, "00", "a")] * 6 + [(1, "00", "a")] + [(2, "00", "a")] * 2, False, True)  # few values: no bins
def test_bins_count_the_values_that_lie_in_them(rows: list[Person], whole: bool, exact: bool) -> None:
    rows = [(age if whole else age / 4, *rest) for age, *rest in rows]  # type: ignore[operator,misc]
    source, kind = Source(rows, int if whole else float), pa.int64() if whole else pa.float64()
    frame = table(rows).set_column(0, "age", pa.array([row[0] for row in rows], kind)) if whole else floats(rows)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("anon.cube.value_counts.CODES", 6)
        house = House(Path(folder))
        house.write(frame)
        house.run(columns=COLUMNS)
        released: Any = house.released()
        groups = source.generalized(released)
        if exact:
            members = [((metrics_text(row[0]), row[1]), number % 3, row[2]) for number, row in enumerate(rows)]
            released = bucketized(members)
            parts = [[row for n, row in enumerate(rows) if n % 3 == part] for part in range(3)]
            groups = [Group([source.exact(r[:2]) for r in part], [(r[2],) for r in part]) for part in parts]
        told = anon.utility(house.config(columns=COLUMNS), released).to_dict()
    binned = len(source.orders[0]) > 6
    if exact and binned and len(bins([row[0] for row in rows], 6)) < len(source.orders[0]):
        assert told["divergence"] is None  # bins of which several values are published
    else:
        assert told["divergence"] == pytest.approx(oracle.divergence(source.rows, groups), abs=1e-9)
    least = oracle.loss(groups, 0, source.positions[0], len(rows))
    assert 0 <= told["loss"]["columns"]["age"] <= least + Fraction(1, 10**9)
    if binned:
        source.codes[0] = bins([row[0] for row in rows], 6)
    source.agrees_on_queries(told, groups)


def bins(values: list[Any], codes: int) -> list[list[Any]]:
    """The values in bins: each begins where another share of the rows is complete."""
    found, rows = defaultdict(list), Counter(values)
    for value in sorted(rows):
        below = sum(count for other, count in rows.items() if other < value)
        found[below * (codes - 1) // len(values)].append(value)
    return list(found.values())


def floats(rows: Sequence[Sequence[Any]]) -> pa.Table:
    ages = pa.array([row[0] for row in rows], pa.float64())
    return pa.table({"age": ages, "zip": [row[1] for row in rows], "disease": [row[2] for row in rows]})


def metrics_text(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


ROWS: list[Person] = [(20 + i % 7, ["00", "01", "11"][i % 3], ["Flu", "Cold"][i % 2]) for i in range(40)]
STARS = pa.table({"age": ["*"] * 40, "zip": ["*"] * 40, "disease": [row[2] for row in ROWS]})


def test_a_release_of_everything_as_it_is_loses_nothing(house: House) -> None:
    house.write(table(ROWS))
    told = anon.utility(house.config(columns=COLUMNS), table(ROWS)).to_dict()
    assert told["height"] == told["suppressed"] == 0
    assert told["loss"] == {"all": 0, "columns": {"age": 0, "zip": 0}}
    assert told["divergence"] == pytest.approx(0, abs=1e-12)
    error = told["query_error"]
    assert (error["median"], error["queries"]) == (0, QUERIES) and error["mean"] == pytest.approx(0, abs=1e-12)


def test_a_release_of_nothing_but_stars_loses_everything(house: House) -> None:
    house.write(table(ROWS))
    told = anon.utility(house.config(columns=COLUMNS), STARS).to_dict()
    assert told["height"] == 3 and told["loss"]["all"] == 1 and told["groups"] == 1


def test_files_folders_and_frames_are_measured_alike(house: House) -> None:
    house.write(table(ROWS))
    config = house.config(columns=COLUMNS)
    path = house.write(STARS, "given/grouped.parquet")
    pyarrow.csv.write_csv(STARS, house.folder / "grouped.csv")
    expected = anon.utility(config, STARS).to_dict()
    for release in (path, str(path.parent), house.folder / "grouped.csv", pl.DataFrame(STARS)):
        assert anon.utility(config, release).to_dict() == expected


@pytest.mark.parametrize("builder", [{}, {"calendar": ["year"]}])
def test_exact_moments_and_large_numbers_are_known_in_both_formats(house: House, builder: dict[str, Any]) -> None:
    """CSV files have them with a space and with an exponent."""
    moments = [datetime(2024, 3, day, 7, 30, 0, 250_000) for day in range(1, 13)]
    sizes = [10.0**power for power in range(-20, 28, 4)]
    house.write({"at": moments, "size": sizes, "disease": ["a", "b", "c"] * 4})
    columns = {"individual": "row", "quasi_identifiers": {"at": builder, "size": {}}, "sensitive": ["disease"]}
    told = []
    for form in ("parquet", "csv"):
        release = {"path": form, "run": f"{form}-run", "form": "bucketized", "labels": "exact", "format": form}
        asked = {"columns": columns, "privacy": [{"group_size": {"k": 2}}], "release": release}
        house.run(**asked)
        told.append(anon.utility(house.config(**asked), house.folder / form).to_dict())
    assert told[0] == told[1] and told[0]["height"] == 0


def test_order_threads_and_layout_do_not_change_a_digit(house: House) -> None:
    rows = [(i * 37 % 90, f"{i * 7 % 30:02}", "abcd"[i * i % 4]) for i in range(3000)]
    house.write(table(rows))
    house.run(columns=COLUMNS)
    config = house.config(columns=COLUMNS)
    expected = anon.utility(config, house.folder / "out").to_dict()
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    house.write(table(shuffled), row_group_size=100)
    assert (
        anon.utility(config, house.released().slice(0).take(list(range(2999, -1, -1))), threads=1).to_dict() == expected
    )


def test_several_sensitive_columns_are_told_together(house: House) -> None:
    rows = [(*row, "xyz"[i % 3]) for i, row in enumerate(ROWS)]
    frame = table(ROWS).append_column("drug", [[row[3] for row in rows]])
    house.write(frame)
    columns = COLUMNS | {"sensitive": ["disease", "drug"]}
    stars = frame.set_column(0, "age", [["*"] * 40]).set_column(1, "zip", [["*"] * 40])
    told = anon.utility(house.config(columns=columns), stars).to_dict()
    source = Source(ROWS)
    flat = [((age, z), (disease, drug)) for age, z, disease, drug in rows]
    groups = [Group([source.box(["*", "*"])] * 40, [values for _, values in flat])]
    assert told["divergence"] == pytest.approx(oracle.divergence(flat, groups))
    assert anon.utility(house.config(columns=columns), frame).to_dict()["query_error"]["mean"] == pytest.approx(0)


def test_without_a_sensitive_column_the_quasi_identifiers_are_asked_for(house: House) -> None:
    house.write(table(ROWS).drop_columns(["disease"]))
    told = anon.utility(house.config(columns=COLUMNS | {"sensitive": []}), STARS.drop_columns(["disease"])).to_dict()
    flat = [((age, z), ()) for age, z, _ in ROWS]
    groups = [Group([Source(ROWS).box(["*", "*"])] * 40, [()] * 40)]
    assert told["divergence"] == pytest.approx(oracle.divergence(flat, groups))


def test_the_divergence_is_that_of_the_search(house: House) -> None:
    house.write(table(ROWS))
    told = anon.utility(house.config(columns=COLUMNS), STARS).to_dict()
    source = np.array(list(Counter(ROWS).values()))
    released = np.array(list(Counter(row[2] for row in ROWS).values()))
    expected = metrics.divergence(source, released, np.full(2, 7.0 * 3))
    assert told["divergence"] == pytest.approx(expected)


# What is no release of the source


@pytest.mark.parametrize("column", ["age", "zip"])
@pytest.mark.parametrize("label", ["secret", "[20,21)", "null|20", "<=20 ", "", None, "20-20", "0", "-"])
def test_a_label_of_no_cell_is_refused_with_its_count_and_without_itself(house: House, column: str, label: Any) -> None:
    house.write(table(ROWS))
    at = STARS.column_names.index(column)
    wrong = STARS.set_column(at, column, pa.array([label] * 3 + ["*"] * 37, pa.string()))
    with pytest.raises(ConfigError) as caught:
        anon.utility(house.config(columns=COLUMNS), wrong)
    (problem,) = caught.value.problems
    assert problem.path == f"columns.quasi_identifiers.{column}"
    assert problem.found == "1 labels, of 3 individuals, that no cell of the source's column has"
    assert "secret" not in str(caught.value)


def test_a_range_that_the_source_is_not_cut_into_stands_for_its_values_in_it(house: House) -> None:
    house.write(table(ROWS))
    at, ages = STARS.column_names.index("age"), [age for age, _, _ in ROWS]
    wide = STARS.set_column(at, "age", pa.array(["19-2000"] * 40))
    stars, ranges = (anon.utility(house.config(columns=COLUMNS), each).to_dict() for each in (STARS, wide))
    assert {name: ranges[name] for name in ("loss", "divergence")} == {
        name: stars[name] for name in ("loss", "divergence")
    }
    middle = sorted(set(ages))[3]
    own, foreign = ([label % middle if age <= middle else "*" for age in ages] for label in ("<=%d", "-99..%d"))
    told = [
        anon.utility(house.config(columns=COLUMNS), STARS.set_column(at, "age", pa.array(labels))).to_dict()
        for labels in (own, foreign)
    ]
    assert told[0] == told[1]


def test_labels_of_a_strange_type_are_refused_too(house: House) -> None:
    house.write(table(ROWS))
    with pytest.raises(ConfigError, match="1 labels, of 40 individuals"):
        anon.utility(house.config(columns=COLUMNS), STARS.set_column(0, "age", pa.array([["20", "21"]] * 40)))


def test_a_missing_column_is_refused(house: House) -> None:
    house.write(table(ROWS))
    with pytest.raises(ConfigError, match=r"columns\.quasi_identifiers\.zip: found column 'zip'"):
        anon.utility(house.config(columns=COLUMNS), STARS.drop_columns(["zip"]))


def test_more_individuals_than_the_source_has_are_refused(house: House) -> None:
    house.write(table(ROWS[:38]))
    with pytest.raises(SourceError, match="2 more individuals than the source"):
        anon.utility(house.config(columns=COLUMNS), STARS)


def test_sensitive_values_that_the_source_does_not_have_are_refused(house: House) -> None:
    house.write(table(ROWS))
    other = STARS.set_column(2, "disease", [["Flu"] * 39 + ["Plague"]])
    with pytest.raises(SourceError, match=r"'disease': 1 sensitive values that the source does not have") as caught:
        anon.utility(house.config(columns=COLUMNS), other)
    assert "Plague" not in str(caught.value)


def test_a_bucketized_table_that_tells_nothing_of_some_rows_is_refused(house: House) -> None:
    house.write(table([(20, "00", "Flu"), (20, "00", "Flu"), (21, "01", "Cold")]))
    pair = bucketized([(("20", "00"), 0, "Flu"), (("20", "00"), 1, "Cold"), (("21", "01"), 0, "Flu")])
    with pytest.raises(SourceError, match="has no trace of 1 rows of the source"):
        anon.utility(house.config(columns=COLUMNS), pair)


def test_what_goes_wrong_in_the_source_while_it_is_compared_is_told_as_it_is(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB reads the source's rows through us: it must not be blamed for what went wrong in them."""
    house.write(table([(20, "00", "Flu"), (20, "00", "Cold"), (21, "01", "Cold")]))
    pair = bucketized([(("20", "00"), 0, "Flu"), (("20", "00"), 1, "Cold"), (("21", "01"), 0, "Cold")])
    read = Original.batches

    def breaking(self: Original) -> Iterator[pa.RecordBatch]:
        yield from read(self)
        raise SourceError("the source is gone")

    monkeypatch.setattr(Original, "batches", breaking)
    with pytest.raises(SourceError, match=r"^the source is gone$"):
        anon.utility(house.config(columns=COLUMNS), pair)


# The command


def test_the_command_tells_in_words_and_in_json(house: House) -> None:
    house.write(table(ROWS))
    house.run(columns=COLUMNS)
    plain = house.cli("utility", "--on", str(house.folder / "out"), columns=COLUMNS)
    told = house.cli("utility", "--on", str(house.folder / "out"), "--json", columns=COLUMNS)
    assert plain.code == told.code == 0 and list(told.json) == [*KEYS, "left_out"]
    for word in ("Information loss", "age", "zip", "random COUNT queries", "divergence", "discernibility", "not in"):
        assert word in plain.stdout
    assert "utility: done" in plain.stderr and house.leftovers() == []


@pytest.mark.parametrize(
    ("release", "code", "word"),
    [("nowhere.parquet", 5, "no such file"), ("stars.parquet", 2, "labels"), ("short.parquet", 5, "more individuals")],
)
def test_what_cannot_be_measured_is_an_error_with_its_exit_code(
    house: House, release: str, code: int, word: str
) -> None:
    house.write(table(ROWS))
    house.write(STARS.set_column(0, "age", [["?"] * 40]), "stars.parquet")
    house.write(pa.concat_tables([STARS, STARS]), "short.parquet")
    told = house.cli("utility", "--on", str(house.folder / release), "--json", columns=COLUMNS)
    assert told.code == told.json["exit_code"] == code and word in told.stderr and word in told.json["error"]
    assert house.leftovers() == []


def test_a_source_that_is_not_there_is_exit_5(house: House) -> None:
    house.write(STARS, "stars.parquet")
    assert house.cli("utility", "--on", str(house.folder / "stars.parquet"), columns=COLUMNS).code == 5


# The queries


def test_queries_are_drawn_as_the_docs_say() -> None:
    sizes: Any = [SimpleNamespace(size=size) for size in (1, 5, 100, 65_536, 20)]
    queries = Queries.draw(sizes[:4], sizes[4:])
    share = SELECTIVITY ** (1 / (DIMENSIONS + 1))
    for column, size in enumerate((1, 5, 100, 65_536, 20)):
        assert set(queries.high[column] - queries.low[column] + 1) == {math.ceil(size * share)}
        assert queries.low[column].min() >= 0 and queries.high[column].max() < size
    assert queries.column.shape == (QUERIES, DIMENSIONS + 1) and queries.run.max() == RUNS - 1
    assert all(a < b < 4 for a, b in queries.column[:, :2].tolist()) and set(queries.column[:, 2]) == {4}
    again = Queries.draw(sizes[:4], sizes[4:])
    assert (again.column == queries.column).all() and (again.run == queries.run).all()


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_rows_are_counted_in_words_as_one_by_one(rows: int) -> None:
    """64 rows at a time, and the rest."""
    rng = np.random.default_rng(rows)
    codes, inside = rng.integers(0, 9, (3, rows), np.uint16), rng.integers(0, 2**64, (3, 9), np.uint64)
    column, run = np.array([[0, 1], [0, 2], [1, 2]] * 20), rng.integers(0, 64, (60, 2))
    counts = np.zeros(60, np.uint64)
    kernels.count_rows(codes, inside, (column, run), counts)
    words = [[int(inside[c, code]) for code in codes[c]] for c in range(3)]
    expected = [
        sum(all(words[c][row] >> int(r) & 1 for c, r in zip(columns, runs)) for row in range(rows))
        for columns, runs in zip(column, run)
    ]
    assert counts.tolist() == expected
