"""`check` on tables that are already grouped, from any tool: what it reads, what it refuses, how it answers."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import anon
from anon.errors import ConfigError, SourceError
from tests.conftest import House
from tests.helpers.backends import on_every_backend

SAFE = pa.table(
    {
        "age": ["20-29", "20-29", "30-39", "30-39", None, None],
        "zip": ["0213*"] * 6,
        "disease": ["Flu", "Cold"] * 3,
    }
)
POINTS = [{"l": 0, "k": 0, "m": 0, "c": 0.6}]
SKYLINE = {"privacy": [{"k_anonymity": {"k": 2}}, {"skyline": {"points": POINTS}}]}


def labelled(labels: list[Any], **columns: list[Any]) -> pa.Table:
    return pa.table(
        {"age": labels, "zip": ["*"] * len(labels), "disease": ["Flu", "Cold"] * (len(labels) // 2)} | columns
    )


def as_csv(house: House, table: pa.Table, name: str = "grouped.csv") -> str:
    pyarrow.csv.write_csv(table, house.folder / name)
    return str(house.folder / name)


@pytest.mark.parametrize(
    "labels",
    [
        [1, 1, 2, 2],
        [1.5, 1.5, 2.5, 2.5],
        [dt.date(2024, 1, 1)] * 2 + [dt.date(2024, 2, 1)] * 2,
        ["20-29", "20-29", "*", "*"],
        [None, None, "a", "a"],
        [["20", "29"]] * 2 + [["30", "39"]] * 2,
    ],
)
def test_groups_are_the_distinct_labels_whatever_their_type(house: House, labels: list[Any]) -> None:
    result = house.check(labelled(labels), **SKYLINE)
    assert result.safe and result.facts["groups"] == 2 and result.facts["rows"] == 4
    assert [criterion["figure"] for criterion in result.facts["criteria"]] == [2, 0.5]


MONTH, DAYS = (1, 0, 0), (0, 30, 0)  # months, days and nanoseconds


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([0.0, -0.0]),
        pa.array([0.0, -0.0], pa.float32()),
        pa.array([MONTH, DAYS], pa.month_day_nano_interval()),
        pa.array([[0.0], [-0.0]]),
        pa.array([{"from": 0.0}, {"from": -0.0}]),
    ],
    ids=["double", "float", "interval", "list", "struct"],
)
def test_labels_that_read_differently_are_different_classes(house: House, labels: pa.Array) -> None:
    table = pa.table({"age": labels, "zip": ["*", "*"], "disease": ["Flu", "Cold"]})
    file = house.folder / "labels.parquet"
    duckdb.from_arrow(table).write_parquet(str(file))  # pyarrow writes no intervals
    for place in (table, file):
        result = house.check(place, privacy=[{"k_anonymity": {"k": 2}}])
        assert not result.safe and result.facts["groups"] == 2
    kept = pa.table({"age": ["*"] * 2, "zip": ["*"] * 2, "disease": ["Flu", "Cold"], "stay": labels})
    facts = house.check(kept, privacy=[{"k_anonymity": {"k": 2}}], columns__keep=["stay"]).to_dict()
    assert facts["safe"] and facts["with_kept"]["stay"]["smallest_group"] == 1


def test_parquet_csv_folder_and_frames_are_judged_alike(house: House) -> None:
    path = house.write(SAFE, "folder/grouped.parquet")
    expected = house.check(SAFE, **SKYLINE).to_dict()
    for table in (path, str(path), str(path.parent), as_csv(house, SAFE), pl.DataFrame(SAFE)):
        assert house.check(table, **SKYLINE).to_dict() == expected


def test_labels_of_a_csv_file_are_compared_as_they_are_written(house: House) -> None:
    (house.folder / "grouped.csv").write_text("age,zip,disease\n1,*,Flu\n1.0,*,Cold\n")
    result = house.check(str(house.folder / "grouped.csv"))
    assert result.facts["groups"] == 2 and not result.safe


def test_missing_and_empty_labels_of_a_csv_file_are_two_groups(house: House) -> None:
    (house.folder / "grouped.csv").write_text('age,zip,disease\n,*,Flu\n"",*,Cold\n')
    assert house.check(str(house.folder / "grouped.csv")).facts["groups"] == 2


@on_every_backend()
def test_without_a_sensitive_column_only_the_sizes_are_judged(house: House) -> None:
    result = house.check(SAFE.select(["age", "zip"]), columns__sensitive=[])
    assert result.safe and result.facts["criteria"][0]["figure"] == 2


@on_every_backend()
def test_each_sensitive_column_is_judged_by_the_criteria_about_it(house: House) -> None:
    privacy = [{"skyline": {"sensitive": name, "points": POINTS}} for name in ("disease", "drug")]
    table = labelled([1, 1, 2, 2], drug=["x", "x", "x", "y"])
    result = house.check(table, columns__sensitive=["disease", "drug"], privacy=privacy)
    assert [criterion["safe"] for criterion in result.facts["criteria"]] == [True, False]


@on_every_backend()
def test_kept_columns_are_reported_where_they_are_there(house: House) -> None:
    table = labelled([1, 1, 2, 2], ward=["a", "b", "a", "a"])
    result = house.check(table, columns__keep=["ward", "hours"])
    assert list(result.facts["with_kept"]) == ["ward"]
    assert result.facts["with_kept"]["ward"]["smallest_group"] == 1


@on_every_backend()
def test_columns_of_the_source_only_need_not_be_there(house: House) -> None:
    assert house.check(SAFE, columns__identifiers=["name"], columns__individual="id").safe


@on_every_backend()
def test_a_named_value_must_occur_unless_it_may_be_absent(house: House) -> None:
    skyline: dict[str, Any] = {"points": POINTS, "values": {"HIV": "exempt"}}
    with pytest.raises(ConfigError, match=r"skyline\.values\.HIV"):
        house.check(SAFE, privacy=[{"skyline": skyline}])
    assert house.check(SAFE, privacy=[{"skyline": skyline | {"absent": "ok"}}]).safe


def test_a_named_value_in_another_spelling_is_refused_unless_both_are_named(house: House) -> None:
    skyline: dict[str, Any] = {"points": POINTS, "absent": "ok", "values": {"FLU": "exempt"}}
    with pytest.raises(ConfigError, match="a value differs from it only in how it is written") as caught:
        house.check(SAFE, privacy=[{"skyline": skyline}])
    assert "Flu" not in str(caught.value)
    skyline["values"] = {"FLU": "exempt", "Flu": POINTS}
    assert house.check(SAFE, privacy=[{"skyline": skyline}]).safe


def test_safe_is_exit_0_and_not_safe_exit_3_with_the_findings_on_stdout(house: House) -> None:
    path = str(house.write(SAFE, "grouped.parquet"))
    outcome = house.cli("check", "--on", path, "--json")
    assert outcome.code == 0 and outcome.json["safe"] is True
    outcome = house.cli("check", "--on", path, "--json", privacy=[{"k_anonymity": {"k": 3}}])
    assert outcome.code == 3 and outcome.json["safe"] is False
    assert outcome.json["criteria"][0] == {
        "name": "k_anonymity", "safe": False, "figure": 2, "bound": 3, "relation": ">=", "worst_group": 0,
        "failed": [{"text": "2 individuals, asked for at least 3", "figure": 2, "bound": 3, "worst_group": 0}],
    }  # fmt: skip


@on_every_backend()
def test_the_labels_of_the_worst_group_are_told_to_those_who_ask_for_values_only(house: House) -> None:
    table = pa.table({
        "age": ["20-29", None, "20-29", "30-39", "30-39", None],
        "zip": ["*", "*", "*", "*", "0213*", "*"],
        "disease": ["Flu", "Cold"] * 3,
    })  # fmt: skip
    path, asked = str(house.write(table, "grouped.parquet")), {"privacy": [{"k_anonymity": {"k": 2}}]}
    (quiet,) = house.cli("check", "--on", path, "--json", **asked).json["criteria"]
    assert quiet["worst_group"] == 2 and "worst_labels" not in quiet
    (told,) = house.cli("check", "--on", path, "--json", "--show-values", **asked).json["criteria"]
    assert told == quiet | {"worst_labels": {"age": "30-39", "zip": "*"}}
    assert "age 30-39, zip *" in house.cli("check", "--on", path, "--show-values", **asked).stdout
    assert "30-39" not in house.cli("check", "--on", path, **asked).stdout


def test_worst_labels_are_those_of_the_group_that_has_the_figure(house: House) -> None:
    labels = [1, 1, 1, 2, 2, 3, 3, 3, None, None, None]
    table = pa.table({"age": labels, "zip": ["*"] * 11, "disease": list("aababaaabbc")})
    asked = [{"l_diversity": {"kind": "distinct", "l": 2}}, {"k_anonymity": {"k": 3}}]
    given = house.config(privacy=asked)
    diversity, size = anon.check(given, table, show_values=True).to_dict()["criteria"]
    assert diversity["worst_labels"] == {"age": "3", "zip": "*"}
    assert size["worst_labels"] == {"age": "2", "zip": "*"}


def test_of_a_skyline_the_terminal_tells_one_point_everywhere(house: House) -> None:
    """HIV is nearer to its bound of 0.3 than Flu, which has the largest breach, to its own."""
    table = pa.table({"age": [1] * 10 + [2] * 10, "zip": ["*"] * 20, "disease": list("ffffghijkl" + "fhhgggiijk")})
    values = {"f": [{"l": 0, "k": 0, "m": 0, "c": 0.9}], "h": [{"l": 0, "k": 0, "m": 0, "c": 0.21}], "i": "exempt"}
    asked = {"privacy": [{"skyline": {"points": [], "values": values}}]}
    path = str(house.write(table, "grouped.parquet"))
    (told,) = house.cli("check", "--on", path, "--json", "--show-values", **asked).json["criteria"]
    assert (told["figure"], told["worst_group"], told["worst_labels"]["age"]) == (0.4, 0, "1")
    assert told["exempt"] == ["i"]
    said = house.cli("check", "--on", path, "--show-values", **asked).stdout
    assert re.search(r"0\.2 +< 0\.21", said) and "age 2, zip *" in said and "age 1" not in said
    assert "not protected, as the config says: i" in said


def test_strict_makes_warnings_exit_3(house: House) -> None:
    path = str(house.write(SAFE, "grouped.parquet"))
    assert house.cli("check", "--on", path, "--json").json["warnings"]
    assert house.cli("check", "--on", path).code == 0
    assert house.cli("check", "--on", path, "--strict").code == 3


@on_every_backend()
def test_repeated_individuals_are_refused_as_in_a_run(house: House) -> None:
    single = labelled([1, 1, 2, 2], id=["a", "b", "c", "d"])
    assert house.check(single, columns__individual="id").safe
    for ids, found in (
        (["a", "a", "c", "c"], "2 rows that repeat an individual"),
        (["a", "c", "a", "d"], "1 individual whose rows disagree"),
        (["a", None, "c", "d"], "1 row without an individual"),
    ):
        with pytest.raises(ConfigError, match=found):
            house.check(labelled([1, 1, 2, 2], id=ids), columns__individual="id")


@on_every_backend()
def test_missing_values_are_refused_where_the_config_says_so(house: House) -> None:
    table = labelled([1, 1, 2, 2], disease=["Flu", None, "Flu", "Cold"])
    with pytest.raises(ConfigError, match="disease: found 1 row without a value"):
        house.check(table)
    assert house.check(table, nulls={"sensitive": "value"}).safe
    with pytest.raises(ConfigError, match="age: found 2 rows without a value"):
        house.check(SAFE, nulls={"quasi_identifiers": "error"})


def costs(values: list[Any]) -> pa.Table:
    return pa.table({"age": ["*"] * len(values), "zip": ["*"] * len(values), "disease": values})


def test_numbers_are_no_categories_unless_the_config_says_so_as_in_a_run(house: House) -> None:
    for values in ([1.5, 2.5] * 2, list(range(1001))):
        with pytest.raises(ConfigError, match=r"columns\.sensitive\.disease: found numbers with .* for categories"):
            house.check(costs(values), **SKYLINE)
        for spec in ({"as_categories": True}, {"round": 1}, {"intervals": [5]}):
            assert house.check(costs(values), columns__sensitive={"disease": spec}, **SKYLINE).safe
    assert house.check(costs(list(range(1000))), **SKYLINE).safe
    assert house.check(costs([1.5, 2.5])).safe, "no criterion takes them for categories"


def test_the_release_of_a_run_is_safe_in_a_check_with_the_same_config(house: House) -> None:
    table = pa.table({"age": [1] * 40, "zip": ["02139"] * 40, "disease": [n / 4 for n in range(40)]})
    for spec in ({"round": 2.5}, {"intervals": [5]}, {"as_categories": True}):
        for format in ("parquet", "csv"):
            changes: dict[str, Any] = {"columns__sensitive": {"disease": spec}, **SKYLINE}
            release = {"path": f"out-{format}", "format": format}
            assert house.run(table, release=release, **changes).safe
            assert house.check(house.folder / f"out-{format}", **changes).safe


@on_every_backend()
def test_missing_columns_and_unusable_types_are_refused(house: House) -> None:
    with pytest.raises(ConfigError, match="did you mean 'age'"):
        house.check(SAFE, columns__quasi_identifiers={"aeg": {}, "zip": {}})
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.disease: found type VARCHAR\[\]"):
        house.check(labelled([1, 1], disease=[["Flu"], ["Cold"]]))


def test_a_table_that_cannot_be_read_is_exit_5_without_its_values(house: House) -> None:
    (house.folder / "bad.csv").write_text("age,zip,disease\n1,2,SECRET\nSECRET\n")
    house.write(SAFE.slice(0, 0), "none.parquet")
    for name in ("bad.csv", "none.parquet", "nowhere.parquet"):
        outcome = house.cli("check", "--on", str(house.folder / name))
        assert outcome.code == 5 and "SECRET" not in outcome.stderr
    with pytest.raises(SourceError, match="Arrow-speaking"):
        house.check(7)


def test_check_never_reads_the_source_and_leaves_nothing(house: House, tmp_path: Path) -> None:
    assert house.check(as_csv(house, SAFE), source={"path": "does-not-exist.parquet"}).safe
    assert not house.leftovers()


def test_options_of_the_api_are_checked_like_those_of_the_command_line(house: House) -> None:
    for threads in (0, 1_000_000):
        with pytest.raises(ConfigError) as error:
            anon.run(house.config(), None, memory="lots", threads=threads)
        assert [problem.path for problem in error.value.problems] == ["threads", "memory"]
    with pytest.raises(TypeError, match="outt"):
        anon.run(house.config(), outt="x")  # type: ignore[call-arg]


@on_every_backend()
def test_rows_without_a_sensitive_value_are_dropped_where_the_config_says_so_as_in_a_run(house: House) -> None:
    table = labelled([1, 1, 1, 2], disease=["Flu", None, "Cold", None])
    told = house.check(table, nulls={"sensitive": "drop"}).to_dict()
    assert (told["safe"], told["rows"], told["groups"]) == (True, 2, 1)
    assert [warning["count"] for warning in told["warnings"] if warning["code"] == "rows_dropped"] == [2]
    with pytest.raises(ConfigError, match=r"nulls\.sensitive: found all 4 rows dropped"):
        house.check(labelled([1] * 4, disease=pa.nulls(4, pa.string())), nulls={"sensitive": "drop"})


@on_every_backend()
def test_a_missing_label_is_a_label_and_its_rows_are_never_dropped(house: House) -> None:
    told = house.check(SAFE, nulls={"quasi_identifiers": "drop"}).to_dict()
    assert (told["rows"], told["groups"]) == (6, 3)
