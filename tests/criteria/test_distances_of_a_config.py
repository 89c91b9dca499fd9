"""The variational distance over several columns and a Python function as the distance, from the config through `check`
and `run`, against the definition in exact fractions."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.config import Config, Dissimilarity, json_schema, load
from anon.criteria import distances
from anon.errors import ConfigError, UnsafeError
from tests.conftest import House
from tests.oracles import proximity as oracle

Row = dict[str, Any]
PLACE = "privacy[0].dissimilarity"
TABLE_I = (5311, 4321, 4222, 3421, 2710, 2620, 8101, 3151)  # distributions in tenths

# decimals of one digit, so that distances often lie on epsilon, where floats would go astray
shares = st.integers(0, 10).map(lambda tenths: tenths / 10)
rows = st.lists(
    st.fixed_dictionaries({"q": st.integers(0, 4), "r": st.integers(0, 2), "x": shares, "y": shares, "z": shares}),
    min_size=2,
    max_size=30,
)


def config(folder: str, distance: Any, epsilon: float = 0.1, delta: float = 0.5, **more: Any) -> dict[str, Any]:
    criterion = {"epsilon": epsilon, "delta": delta, "k": 2, "distance": distance, **more}
    return {
        "source": {"path": f"{folder}/none.parquet"},
        "columns": {
            "individual": "row",
            "quasi_identifiers": {"q": {}, "r": {"suppress": True}},
            "sensitive": ["x", "y", "z"],
        },
        "privacy": [{"dissimilarity": criterion}],
        "release": {"path": f"{folder}/out"},
    }


def exactly(row: Row, columns: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(str(row[name])) for name in columns)


def groups_of(table: list[Row]) -> list[list[Row]]:
    classes: dict[Any, list[Row]] = defaultdict(list)
    for row in table:
        classes[row["q"], row["r"]].append(row)
    return list(classes.values())


def risk(table: list[Row], columns: str, epsilon: float) -> Fraction:
    of_group = ([exactly(row, columns) for row in group] for group in groups_of(table))
    return max(oracle.risk(group, Fraction(str(epsilon)), oracle.variational) for group in of_group)


def holds(table: list[Row], columns: str, epsilon: float, delta: float) -> bool:
    large = all(len(group) >= 2 for group in groups_of(table))
    return large and risk(table, columns, epsilon) <= 1 - Fraction(str(delta))


@settings(max_examples=20, deadline=None)
@given(table=rows, columns=st.sampled_from(["xyz", "zx", "y"]), epsilon=shares, delta=st.sampled_from([0.25, 0.5, 1]))
def test_the_tuple_of_several_columns_is_judged_as_the_oracle_does(
    table: list[Row], columns: str, epsilon: float, delta: float
) -> None:
    wanted = config(".", {"kind": "variational", "columns": list(columns)}, epsilon, delta)
    told = anon.check(wanted, pa.Table.from_pylist(table)).to_dict()
    (criterion,) = told["criteria"]
    assert criterion["figure"] == pytest.approx(float(risk(table, columns, epsilon)))
    assert told["safe"] == holds(table, columns, epsilon, delta)
    assert criterion["sensitive"] == (columns if len(columns) == 1 else list(columns))


@settings(max_examples=10, deadline=None)
@given(table=rows, columns=st.sampled_from(["xyz", "zx", "y"]), delta=st.sampled_from([0.25, 0.5]))
def test_a_release_of_tuples_satisfies_the_oracle(table: list[Row], columns: str, delta: float) -> None:
    with TemporaryDirectory() as folder:
        wanted = config(folder, {"kind": "variational", "columns": list(columns)}, 0.1, delta)
        try:
            anon.run(wanted, pa.Table.from_pylist(table))
        except UnsafeError as error:
            together = [row | {"q": 0, "r": 0} for row in table]
            assert "no safe release was found" in str(error) and not holds(together, columns, 0.1, delta)
            return
        published = pq.read_table(Path(folder) / "out" / "release.parquet").to_pylist()
    assert len(published) == len(table)
    assert holds(published, columns, 0.1, delta)


def test_table_i_of_the_paper_as_a_table() -> None:
    """Example 2: in floats the second record is more than 0.1 from the fourth, and the risk would be 2/4."""
    table = [
        {"q": int(number > 4), **{name: int(tenths) / 10 for name, tenths in zip("abcd", record)}}
        for number, record in enumerate(str(number) for number in TABLE_I)
    ]
    wanted = config(".", {"kind": "variational", "columns": list("abcd")}, 0.1, 0.25, k=3)
    wanted["columns"] |= {"quasi_identifiers": {"q": {}}, "sensitive": list("abcd")}
    told = anon.check(wanted, pa.Table.from_pylist(table)).to_dict()
    assert (told["safe"], told["criteria"][0]["figure"]) == (True, 0.75)
    wanted["privacy"][0]["dissimilarity"]["delta"] = 0.2500000001
    assert not anon.check(wanted, pa.Table.from_pylist(table)).safe


def test_every_column_of_the_tuple_counts_as_protected() -> None:
    table = pa.Table.from_pylist([{"q": 0, "r": 0, "x": i, "y": i, "z": i} for i in range(9)])
    told = anon.check(config(".", {"kind": "variational", "columns": ["x", "z"]}, 0), table).to_dict()
    unprotected = [warning["text"] for warning in told["warnings"] if warning["code"] == "unprotected_sensitive"]
    assert unprotected == ["rows with a value of y, which no criterion protects"]


def test_tuples_stand_beside_joint_diversity_of_the_same_columns(house: House) -> None:
    """Both combine sensitive columns, each in its own way."""
    table = {"age": [30] * 8, "zip": ["02139"] * 8, "a": [0, 0, 0, 0, 1, 1, 1, 1], "b": [0, 1, 2, 3] * 2}
    privacy = [
        {"l_diversity": {"kind": "distinct", "l": 4, "sensitive": "b"}},
        {
            "dissimilarity": {
                "epsilon": 0, "delta": 1, "k": 2, "distance": {"kind": "variational", "columns": ["a", "b"]},
            }
        },
    ]  # fmt: skip
    told = house.run(pa.table(table), columns__sensitive=["a", "b"], privacy=privacy).to_dict()
    assert [criterion["figure"] for criterion in told["criteria"]] == [4, 0]
    again = house.check(house.released(), columns__sensitive=["a", "b"], privacy=privacy).to_dict()
    places = {"worst_rows"}  # a run names where its files have the group
    assert again["criteria"] == [
        {name: fact for name, fact in entry.items() if name not in places} for entry in told["criteria"]
    ]


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        ({"distance": {"kind": "variational", "columns": ["x", "w"]}}, rf"{PLACE}.distance.columns\[1\]: .*sensitive"),
        ({"distance": {"kind": "variational", "columns": ["x", "x"]}}, rf"{PLACE}.distance.columns\[1\]: .*once"),
        ({"distance": {"kind": "variational", "columns": []}}, rf"{PLACE}.distance.columns: .*at least one"),
        ({"distance": {"kind": "variational", "columns": ["x"]}, "sensitive": "y"}, rf"{PLACE}.sensitive: .*beside"),
        ({"distance": {"kind": "function"}, "sensitive": "y"}, rf"{PLACE}.distance.kind"),
        ({"distance": "package.module.function", "sensitive": "y"}, rf"{PLACE}.distance: .*a mapping"),
    ],
)
def test_what_no_distance_can_mean_is_refused_when_the_config_is_read(criterion: Any, message: str) -> None:
    wanted = config(".", None)
    wanted["privacy"][0]["dissimilarity"] |= criterion
    with pytest.raises(ConfigError, match=message.replace("privacy[0]", r"privacy\[0\]")):
        load(wanted)


@pytest.mark.parametrize("distance", [{"kind": "variational", "columns": ["x", "y"]}, {"kind": "matrix", "file": "m"}])
def test_t_closeness_takes_distances_along_a_line_or_a_tree_only(distance: Any) -> None:
    wanted = config(".", None) | {"privacy": [{"t_closeness": {"t": 0.2, "sensitive": "x", "distance": distance}}]}
    with pytest.raises(ConfigError, match="absolute, equal, ordered or hierarchy"):
        load(wanted)


def test_tuples_of_words_or_nulls_are_refused_by_column_without_quoting_them() -> None:
    table = {"q": [0] * 3, "r": [0] * 3, "x": [1, 2, 3], "y": ["secret", "b", "c"], "z": [1, None, 3]}
    wanted = config(".", {"kind": "variational", "columns": ["x", "y"]}) | {"nulls": {"sensitive": "value"}}
    with pytest.raises(ConfigError, match=r"distance.columns\[1\]: found 'y', which has other values") as error:
        anon.check(wanted, pa.table(table))
    assert "secret" not in str(error.value)
    wanted["privacy"][0]["dissimilarity"]["distance"] = {"kind": "variational", "columns": ["x", "z"]}
    with pytest.raises(ConfigError, match=r"distance.columns\[1\]: found 1 of 3 distinct values that are null"):
        anon.check(wanted, pa.table(table))


def test_more_values_than_can_be_paired_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "PAIRED", 2)
    table = pa.table({"q": [0] * 3, "r": [0] * 3, "x": [1, 1, 2], "y": [1, 2, 3], "z": [1, 2, 3]})
    for distance, more in (({"kind": "variational", "columns": ["x", "y"]}, {}), (gap, {"sensitive": "y"})):
        with pytest.raises(ConfigError, match="found 3 distinct values; expected at most 2") as error:
            anon.check(config(".", distance, **more), table)
        assert error.value.problems[0].path.startswith(f"{PLACE}.distance")
    assert anon.check(config(".", gap, sensitive="x"), table).facts["criteria"][0]["figure"] == 0.5


def test_numbers_that_need_more_than_64_bits_are_compared_exactly() -> None:
    """Three tuples whose distance from the first is half of 1e-30 below 1, 1 and above it."""
    tiny = Fraction(1, 10**30)
    tuples = [(Fraction(10**9 + one), Fraction(two)) for one, two in ((0, 0), (1, 1 - tiny), (1, 1), (1, 1 + tiny))]
    distance = distances.variational(tuples)
    assert not distance.fits
    for epsilon in (Fraction(0), tiny / 2, 1 - tiny, 1 - tiny / 2, Fraction(1), 1 + tiny / 2):
        for code, own in enumerate(tuples):
            truth = [other for other, its in enumerate(tuples) if oracle.variational(own, its) <= epsilon]
            assert distance.neighbours(epsilon).codes_near(code) == truth


def gap(one: Any, other: Any) -> Any:
    return abs(one - other)


@settings(max_examples=15, deadline=None)
@given(table=rows, epsilon=shares, delta=st.sampled_from([0.25, 0.5, 1]))
def test_a_function_is_the_distance_that_it_computes(table: list[Row], epsilon: float, delta: float) -> None:
    """Floats count as the decimals they are written as, so the function rounds what its subtraction spoils."""
    frame = pa.Table.from_pylist(table)
    by_kind = anon.check(config(".", {"kind": "absolute"}, epsilon, delta, sensitive="x"), frame)
    by_function = anon.check(config(".", lambda a, b: round(abs(a - b), 9), epsilon, delta, sensitive="x"), frame)
    assert by_function.to_dict() == by_kind.to_dict()


@settings(max_examples=5, deadline=None)
@given(table=rows)
def test_a_release_by_a_function_is_the_release_by_its_kind(table: list[Row]) -> None:
    told = []
    for distance in ({"kind": "absolute"}, lambda a, b: round(abs(a - b), 9)):
        with TemporaryDirectory() as folder:
            try:
                anon.run(config(folder, distance, 0.1, 0.25, sensitive="x"), pa.Table.from_pylist(table))
            except UnsafeError as error:
                told.append(str(error))
            else:
                told.append(pq.read_table(Path(folder) / "out" / "release.parquet").to_pylist())
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], int),
        ([0.5, 2.0, 3.0], float),
        (["02139", "b", "c"], str),
        ([Decimal("1.10"), Decimal("2.00"), Decimal("3.00")], Decimal),
        ([True, False, True], bool),
    ],
)
def test_a_function_gets_the_values_as_they_are_in_the_table(house: House, values: list[Any], kind: type) -> None:
    seen = set()

    def distance(one: Any, other: Any) -> int:
        seen.update((one, other))
        return int(one != other)

    table = pa.table({"age": [1, 1, 1], "zip": ["02139"] * 3, "disease": values})
    privacy = [{"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 2, "distance": distance}}]
    house.run(table, privacy=privacy)
    house.check(table, privacy=privacy)
    assert seen == set(values)
    assert {type(value) for value in seen} == {kind}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: a - b, "not the same both ways for 3 pairs"),
        (lambda a, b: a - b, "below 0 for 3 pairs of values"),
        (lambda a, b: 1, "not 0 for 3 values and themselves"),
        (lambda a, b: float("nan"), "gave a float that is no finite number"),
        (lambda a, b: float("inf"), "gave a float that is no finite number"),
        (lambda a, b: "0.5", "gave a str; expected a finite number"),
        (lambda a, b: a == b, "gave a bool; expected a finite number"),
        (lambda a, b: None, "gave a NoneType; expected a finite number"),
        (lambda a, b: [0], "gave a list; expected a finite number"),
        (lambda a, b: 1j, "gave a complex that is no finite number"),
        (lambda a, b: {}[a], "raised KeyError"),
        (lambda a: 0, "raised TypeError"),
    ],
)
def test_a_function_that_is_no_distance_is_refused_at_its_field(function: Any, message: str) -> None:
    table = pa.table({"q": [0] * 3, "r": [0] * 3, **{name: [7771, 7772, 7773] for name in "xyz"}})
    with pytest.raises(ConfigError, match=message) as error:
        anon.check(config(".", function, sensitive="x"), table)
    assert {problem.path for problem in error.value.problems} == {f"{PLACE}.distance"}
    assert "777" not in str(error.value)


def test_rounding_is_forgiven_and_any_kind_of_number_taken() -> None:
    values = [0, 1, 2]
    plain = distances.by_function(values, gap)
    for function in (
        lambda a, b: abs(a - b) + (1e-15 if a >= b else 0),
        lambda a, b: np.float64(abs(a - b)),
        lambda a, b: np.int32(abs(a - b)),
        lambda a, b: np.float32(abs(a - b)),
        lambda a, b: Fraction(abs(a - b)),
        lambda a, b: Decimal(abs(a - b)),
    ):
        near = distances.by_function(values, function).neighbours(Fraction(1))
        assert [near.codes_near(code) for code in values] == [
            plain.neighbours(Fraction(1)).codes_near(code) for code in values
        ]


class Metric:
    def __call__(self, one: Any, other: Any) -> Any:
        return gap(one, other)


def test_a_run_with_a_function_writes_its_name_and_no_address(house: House) -> None:
    table = pa.table({"age": [1, 1, 9, 9], "zip": ["02139"] * 4, "disease": [1, 5, 1, 5]})
    digests = []
    for distance, name in ((gap, "gap"), (Metric(), "Metric"), (Metric(), "Metric")):
        house.run(table, privacy=[{"dissimilarity": {"epsilon": 1, "delta": 0.5, "k": 2, "distance": distance}}])
        manifest = json.loads((house.folder / "out-run" / "manifest.json").read_text())
        digests.append(manifest["config_sha256"])
        package = (house.folder / "out" / "datapackage.json").read_text()
        assert manifest["config"]["privacy"][0]["dissimilarity"]["distance"] == f"{__name__}.{name}"
        assert f"{__name__}.{name}" in (house.folder / "out-run" / "report.json").read_text()
        assert " at 0x" not in package
    assert digests[0] != digests[1] == digests[2]


def test_a_typed_config_takes_a_function_too(house: House) -> None:
    table = pa.table({"age": [1, 1], "zip": ["02139"] * 2, "disease": [1, 5]})
    loaded = load(house.config(privacy=[{"dissimilarity": {"epsilon": 1, "delta": 0.5, "k": 2, "distance": gap}}]))
    assert isinstance(loaded.privacy[0], Dissimilarity) and loaded.privacy[0].distance is gap
    assert anon.check(loaded, table).safe and anon.run(loaded, table).safe
    parts = {name: getattr(loaded, name) for name in Config.model_fields}
    stricter = Dissimilarity(sensitive="disease", epsilon=Decimal(4), delta=Decimal("0.5"), k=2, distance=gap)
    assert not anon.check(Config(**parts | {"privacy": [stricter]}), table).safe


def test_the_schema_knows_no_functions() -> None:
    shown = json.dumps(json_schema()["$defs"]["Dissimilarity"]["properties"]["distance"])
    assert "Variational" in shown and "allable" not in shown
    assert "Variational" not in json.dumps(json_schema()["$defs"]["TCloseness"])
