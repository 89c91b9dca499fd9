"""`anon utility --predict`: perfect where the release has all that is needed, chance where it has nothing; who is held
out is not in the training rows of either; both forms; the same for every order of rows; what it refuses; the report."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.config import load
from anon.core.database import connect
from anon.core.memory import Memory
from anon.cube import Domain
from anon.errors import ConfigError
from anon.loss.cells import LabelCells, read_cells, values_below
from anon.loss.prediction import _codes, _shape
from anon.loss.prediction.classifiers import accuracy, auc
from anon.loss.prediction.features import LabelFeatures
from anon.loss.prediction.held_out import ReleasedRows, draws, split
from anon.loss.utility import Original
from anon.source import open_grouped, open_source
from anon.verify.grouped import Grouped
from tests.conftest import House
from tests.oracles import prediction as oracle

PEOPLE = 400
COLUMNS = {"quasi_identifiers": {"age": {}, "zip": {"digits": 2}}, "sensitive": ["disease"], "keep": ["cost", "ward"]}


def table(seed: int = 0, people: int = PEOPLE) -> pa.Table:
    """People whose disease is a matter of their zip code, and whose ward is a matter of chance."""
    rng = np.random.default_rng(seed)
    zips = rng.integers(0, 4, people)
    return pa.table(
        {
            "age": rng.integers(20, 60, people),
            "zip": [f"{code}{code}" for code in zips],
            "disease": [["Flu", "Cold", "Flu", "HIV"][code] for code in zips],
            "cost": rng.integers(0, 3, people) * 1.5,
            "ward": [("north", "south")[one] for one in rng.integers(0, 2, people)],
        }
    )


def config(house: House, **changes: Any) -> dict[str, Any]:
    return house.config(**({"columns": COLUMNS | {"individual": "row"}} | changes))


def predicted(house: House, on: Any, column: str = "disease", **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = anon.utility(config(house, **changes), on, predict=column).to_dict()["prediction"]
    return found


def released(house: House, **changes: Any) -> Path:
    anon.run(config(house, **changes), overwrite=True, force=True)
    return house.folder / "out"


def each_score(found: dict[str, Any], on: str) -> list[tuple[float, float]]:
    return [(model[on]["accuracy"], model[on]["auc"]) for model in found["models"]]


def test_a_release_with_unchanged_values_predicts_what_they_decide(house: House) -> None:
    house.write(table())
    found = predicted(house, table())
    assert each_score(found, "release") == each_score(found, "source") == [(1.0, 1.0)] * 2
    assert found["matched"] == found["tested"] == PEOPLE - found["trained"]["release"]
    assert found["trained"]["release"] == found["trained"]["source"]
    assert (found["classes"], found["features"]) == (3, ["age", "zip", "cost", "ward"])


def test_labels_that_keep_what_decides_predict_perfectly(house: House) -> None:
    """The zip codes are split, and the nodes of 11 and 22 are apart in the order of their features."""
    house.write(table())
    columns = COLUMNS | {"individual": "row", "quasi_identifiers": {"age": {}, "zip": {"suppress": True}}}
    path = released(house, columns=columns, method={"kind": "partition", "prefer": "balanced"})
    found = predicted(house, path, columns=columns)
    assert found["models"][0]["source"] == {"accuracy": 1.0, "auc": 1.0}
    assert found["models"][0]["release"]["accuracy"] > found["majority"]


def test_one_group_without_labels_predicts_by_chance(house: House) -> None:
    house.write(table().drop_columns(["cost", "ward"]))
    columns = {"individual": "row", **COLUMNS, "keep": []}
    path = released(house, columns=columns, privacy=[{"k_anonymity": {"k": PEOPLE}}])
    found = predicted(house, path, columns=columns)
    assert each_score(found, "release") == [(found["majority"], 0.5)] * 2
    assert each_score(found, "source") == [(1.0, 1.0)] * 2


def test_a_column_of_chance_is_predicted_by_chance(house: House) -> None:
    house.write(table(people=4_000))
    for who, (right, area) in [
        (on, score)
        for on in ("release", "source")
        for score in each_score(predicted(house, table(people=4_000), "ward"), on)
    ]:
        assert 0.44 < right < 0.56 and 0.44 < area < 0.56, who


def test_a_bucketized_release_has_the_shares_of_its_groups(house: House) -> None:
    house.write(table())
    form = {"path": "out", "form": "bucketized"}
    path = released(house, release=form, privacy=[{"l_diversity": {"kind": "distinct", "l": 2}}])
    found = predicted(house, path, release=form)
    assert found["matched"] == found["tested"] and found["features"] == ["age", "zip", "cost", "ward"]
    assert found["trained"]["release"] > found["trained"]["source"]  # a row for each value of a group
    assert found["models"][0]["source"]["accuracy"] == 1.0 > found["models"][0]["release"]["accuracy"]
    assert predicted(house, path, "ward", release=form)["features"] == ["age", "zip", "cost"]


def test_suppressed_people_are_tested_too(house: House) -> None:
    house.write(table())
    keeping = table().slice(0, PEOPLE // 2)
    found = predicted(house, keeping)
    assert 0 < found["matched"] < found["tested"]
    assert found["trained"]["release"] == PEOPLE // 2 - found["matched"]


def test_the_order_of_rows_makes_no_difference(house: House) -> None:
    rows = table(people=200)
    house.write(rows)
    path = released(house)
    first = predicted(house, path)
    house.write(rows.take(pa.array(np.random.default_rng(1).permutation(200))))
    assert predicted(house, path) == first
    assert predicted(house, path, limits={"memory": "2GB", "threads": 1, "temp": "spill"}) == first


@pytest.mark.parametrize("form", ["generalized", "bucketized"])
@pytest.mark.parametrize("labels", ["cells", "tight"])
@pytest.mark.parametrize("seed", range(3))
def test_nobody_who_is_held_out_is_trained_with(house: House, form: str, labels: str, seed: int) -> None:
    """What is left of the release is the release of the others, to the row; in a bucketized one also its counts."""
    rows = table(seed, 60)
    house.write(rows)
    changes: dict[str, Any] = {
        "release": {"path": "out", "form": form},
        "method": {"kind": "partition", "labels": labels},
    }
    path = released(house, **changes)
    typed = load(config(house, **changes))
    with closing(connect(typed.limits.memory, 1, house.folder)) as database:
        grouped = Grouped.from_opened(database, open_grouped(database, "t", typed, path, house.folder), typed.columns)
        original = Original.from_source(open_source(database, typed, None, house.folder), typed.columns, 1)
        shape = _shape(original.source, grouped, typed.columns, "disease")
        distinct = original.distinct()
        cells = read_cells(grouped, original.quasi_identifiers, distinct)
        _, test = split(original.source, shape, 1_000)
        known = ReleasedRows(grouped, cells, values_below(distinct), shape)
        assert known.take_out(test, _codes(original, test)) == test.num_rows > 0
        trained = known.training(10_000)
    diseases: Counter[Any] = Counter(rows["disease"].to_pylist())
    diseases.subtract(Counter(test["y"].to_pylist()))
    weights: Counter[Any] = Counter()
    for disease, weight in zip(trained["y"].to_pylist(), trained["weight"].to_pylist()):
        weights[disease] += weight
    assert {name: round(weight, 6) for name, weight in weights.items() if weight} == {
        n: c for n, c in diseases.items() if c
    }
    wards: Counter[Any] = Counter(zip(rows["cost"].to_pylist(), rows["ward"].to_pylist()))
    wards.subtract(Counter(zip(test["x0"].to_pylist(), test["x1"].to_pylist())))
    own: Counter[Any] = Counter()
    for cost, ward, weight in zip(*(trained[name].to_pylist() for name in ("x0", "x1", "weight"))):
        own[cost, ward] += weight
    assert {key: round(weight, 6) for key, weight in own.items()} == {key: many for key, many in wards.items() if many}


@given(st.lists(st.tuples(st.integers(0, 2), *[st.sampled_from([0.0, 0.25, 0.5, 1.0])] * 3), min_size=1, max_size=12))
@settings(deadline=None)
def test_the_area_is_that_of_all_pairs(rows: list[tuple[Any, ...]]) -> None:
    classes, scores = [row[0] for row in rows], [row[1:] for row in rows]
    assert auc(np.array(scores), np.array(classes)) == pytest.approx(float(oracle.auc(scores, classes)), abs=1e-12)
    right = sum(max(range(3), key=lambda one: (row[one], -one)) == own for row, own in zip(scores, classes))
    assert accuracy(np.array(scores), np.array(classes)) == right / len(rows)


def test_a_label_is_the_expectation_of_the_values_under_it() -> None:
    values = ["a", "b", "c", "d"]
    domain = Domain("c", "text", pa.array(values), True, False)
    low, high = np.array([0, 1, 0, 3]), np.array([0, 2, 3, 3])
    cells = LabelCells(domain, [""] * 4, low, high, low, high + 1, np.ones(4, np.int64))
    expected = [oracle.expectation(values, values[a : b + 1]) for a, b in zip(low.tolist(), high.tolist())]
    assert LabelFeatures(domain).of_labels(cells).tolist() == [[float(share) for share in row] for row in expected]


def test_a_number_is_the_mean_of_the_values_under_its_label() -> None:
    domain = Domain("n", "integer", pa.array([1, 2, 6, 100]), True, True)  # code 0 is null
    low, high = np.array([1, 2, 0, 0]), np.array([1, 3, 0, 1])
    cells = LabelCells(domain, [""] * 4, low, high, low, high + 1, np.ones(4, np.int64))
    assert LabelFeatures(domain).of_labels(cells).tolist() == [[1, 0], [4, 0], [27.25, 1], [(27.25 + 1) / 2, 0.5]]


def test_draws_are_even_and_depend_on_the_rank_alone() -> None:
    drawn = draws(0, 100_000)
    assert np.array_equal(draws(500, 100), drawn[500:600])
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(np.full(10, 10_000), rel=0.05)


@pytest.mark.parametrize(
    ("column", "changes", "words"),
    [
        ("age", {}, "quasi-identifier, whose labels stand for several values"),
        ("name", {}, "which is not published"),
        ("cost", {"columns__aggregate": {"cost": {"mean": "group"}}}, "replaced by means"),
        ("zip2", {"columns__keep": ["zip2"]}, "more than 50 different values"),
        ("one", {"columns__keep": ["one"]}, "with 1 different values"),
    ],
)
def test_columns_that_cannot_be_predicted(house: House, column: str, changes: dict[str, Any], words: str) -> None:
    rows = table(people=100).append_column("zip2", pa.array(map(str, range(100))))
    rows = rows.append_column("one", pa.array(["same"] * 100))
    house.write(rows)
    asked = config(house)
    for name, value in changes.items():
        asked["columns"][name.removeprefix("columns__")] = value
    with pytest.raises(ConfigError, match=words):
        anon.utility(asked, rows, predict=column)


def test_without_the_extra_the_message_has_the_command(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(table(people=20))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ConfigError, match=r"pip install 'anon-engine\[predict\]'"):
        anon.utility(config(house), table(people=20), predict="disease")


def test_the_command_prints_it_and_the_report_of_the_run_draws_it(house: House) -> None:
    house.write(table())
    path = released(house)
    options = ("--on", str(path), "--predict", "disease", "--run", str(house.folder / "out-run"))
    shown = house.cli("utility", *options, columns=COLUMNS | {"individual": "row"})
    assert shown.code == 0 and "Prediction of disease" in shown.stdout and "gradient boosting" in shown.stdout
    report = json.loads((house.folder / "out-run" / "report.json").read_text())
    page = (house.folder / "out-run" / "report.html").read_text()
    assert report["utility"]["prediction"] == predicted(house, path)
    assert "<h3>Prediction of disease</h3>" in page and '"prediction": {' in page.replace(
        '"prediction":{', '"prediction": {'
    )
    other = house.folder / "other"
    other.mkdir()
    (other / "release.parquet").write_bytes(house.bytes() + b" ")
    options = ("--on", str(other), "--predict", "disease", "--run", str(house.folder / "out-run"))
    assert house.cli("utility", *options, columns=COLUMNS | {"individual": "row"}).code == 2
    options = ("--on", str(path), "--run", str(house.folder / "out-run"))
    assert house.cli("utility", *options, columns=COLUMNS | {"individual": "row"}).code == 2


def test_little_memory_means_fewer_rows(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(table(people=2_000))
    monkeypatch.setattr(Memory, "free", property(lambda self: 400_000))
    found = predicted(house, table(people=2_000))
    assert found["trained"]["release"] < 1_500 and found["trained"]["source"] < 1_500
