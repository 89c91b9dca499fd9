"""The demo's hospital extract stands before the way of the data: it must be the same everywhere, believable, and such
that configs/hospital.yaml can be satisfied on it."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from datetime import date
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml
from demo import hospital

from tests import ROOT

CONFIG = ROOT / "configs" / "hospital.yaml"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return hospital.rows(0, 100_000)


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    return loaded


def of(table: pa.Table, diagnosis: str) -> pa.Table:
    return table.filter(pc.equal(table["diagnosis"], diagnosis))


def mean(column: pa.ChunkedArray) -> float:
    return float(column.to_numpy().mean())


def digest(table: pa.Table) -> str:
    text = "\n".join(",".join(map(str, column.to_pylist())) for column in table.columns)
    return hashlib.sha256(text.encode()).hexdigest()


def test_splitmix64_gives_the_published_sequence_of_seed_zero() -> None:
    states = np.array([hospital.GOLDEN * step % 2**64 for step in (1, 2, 3)], dtype=np.uint64)
    assert [int(word) for word in hospital.words(states)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


def test_a_range_of_rows_is_the_same_alone_and_within_a_larger_one() -> None:
    assert hospital.rows(100, 200).equals(hospital.rows(0, 1000).slice(100, 100).combine_chunks())
    assert hospital.rows(7, 7).num_rows == 0


def test_the_first_ten_thousand_rows_never_change() -> None:
    assert digest(hospital.rows(0, 10_000)) == "229417959b4fce94329ca54accd223d59691821a5f611720cdda1c6a50c5d805"


def test_rows_far_out_have_a_longer_patient_id_and_stay_valid() -> None:
    far = hospital.rows(99_999_998, 100_000_000)
    assert far["patient_id"].to_pylist() == ["P99999999", "P100000000"]


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4)])
def test_a_range_that_is_none_is_refused(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="expected 0 <= start <= stop"):
        hospital.rows(start, stop)


def test_columns_have_their_types_and_no_nulls(table: pa.Table) -> None:
    assert table.schema == hospital.SCHEMA
    assert all(column.null_count == 0 for column in table.columns)
    table.validate(full=True)


def test_every_row_is_another_patient(table: pa.Table) -> None:
    assert len(set(table["patient_id"].to_pylist())) == table.num_rows
    assert table["patient_id"][0].as_py() == "P00000001"


def test_values_stay_in_their_ranges(table: pa.Table) -> None:
    assert pc.min_max(table["age"]).as_py() == {"min": 0, "max": 104}
    assert pc.min_max(table["admitted"]).as_py() == {"min": date(2023, 1, 1), "max": date(2024, 12, 31)}
    assert pc.min(table["length_of_stay"]).as_py() == 1
    assert pc.max(table["length_of_stay"]).as_py() <= 120
    assert 100 < pc.min(table["cost"]).as_py() < pc.max(table["cost"]).as_py() < 200_000


def test_postcodes_are_five_digits_with_leading_zeros_and_uneven(table: pa.Table) -> None:
    people = Counter(table["zip"].to_pylist())
    assert len(people) == 400
    assert all(len(code) == 5 and code.isdigit() for code in people)
    assert {code[0] for code in people} == {"0", "1"}
    assert max(people.values()) > 10 * min(people.values())


def test_diagnoses_have_their_shares(table: pa.Table) -> None:
    people = Counter(table["diagnosis"].to_pylist())
    assert sum(diagnosis.share for diagnosis in hospital.DIAGNOSES) == pytest.approx(100)
    for diagnosis in hospital.DIAGNOSES:
        expected = table.num_rows * diagnosis.share / 100
        assert abs(people[diagnosis.name] - expected) < 5 * expected**0.5, diagnosis.name


def test_sex_is_f_m_and_a_few_x(table: pa.Table) -> None:
    people = Counter(table["sex"].to_pylist())
    assert set(people) == {"F", "M", "X"}
    assert 0.001 < people["X"] / table.num_rows < 0.003


def test_childbirth_meets_only_women_from_15_to_50(table: pa.Table) -> None:
    births = of(table, "Childbirth")
    assert set(births["sex"].to_pylist()) == {"F"}
    assert pc.min(births["age"]).as_py() >= 15
    assert pc.max(births["age"]).as_py() <= 50


def test_prostate_disorders_meet_only_men_over_45(table: pa.Table) -> None:
    cases = of(table, "Prostate disorder")
    assert set(cases["sex"].to_pylist()) == {"M"}
    assert pc.min(cases["age"]).as_py() > 45


def test_hips_break_in_old_age_and_asthma_meets_the_young(table: pa.Table) -> None:
    assert mean(of(table, "Fracture of the hip")["age"]) > 75
    assert mean(of(table, "Asthma")["age"]) < 30


def test_a_ward_follows_from_the_diagnosis_with_some_noise(table: pa.Table) -> None:
    wards = Counter(of(table, "Stroke")["ward"].to_pylist())
    assert 0.7 < wards["Neurology"] / wards.total() < 0.9
    assert len(wards) > 5


def test_only_children_lie_in_paediatrics_and_no_man_in_gynaecology(table: pa.Table) -> None:
    paediatrics = table.filter(pc.equal(table["ward"], "Paediatrics"))
    gynaecology = table.filter(pc.equal(table["ward"], "Obstetrics and gynaecology"))
    assert pc.max(paediatrics["age"]).as_py() < 15
    assert "M" not in gynaecology["sex"].to_pylist()


def test_planned_stays_begin_on_working_days_and_pneumonia_comes_in_winter(table: pa.Table) -> None:
    planned = pc.day_of_week(of(table, "Osteoarthritis of the knee")["admitted"]).to_numpy()
    month = pc.month(of(table, "Pneumonia")["admitted"]).to_numpy()
    assert (planned >= 5).mean() < 0.12
    assert np.isin(month, [12, 1, 2]).sum() > 1.8 * np.isin(month, [6, 7, 8]).sum()


def test_cost_grows_with_the_stay_and_is_skewed(table: pa.Table) -> None:
    cost = table["cost"].to_numpy()
    assert np.corrcoef(cost, table["length_of_stay"].to_numpy())[0, 1] > 0.5
    assert cost.mean() > 1.2 * np.median(cost)


def test_the_ward_hierarchy_covers_the_wards_and_nothing_else() -> None:
    with (ROOT / "hierarchies" / "hospital" / "ward.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter=";"))
    assert [line[0] for line in lines] == list(hospital.WARDS)
    assert {line[2] for line in lines} == {"*"}


def test_the_config_names_columns_and_diagnoses_that_exist(config: dict[str, Any]) -> None:
    columns = config["columns"]
    named = [columns["individual"], *columns["identifiers"], *columns["quasi_identifiers"], *columns["sensitive"]]
    assert {*named, *columns["keep"]} == set(hospital.SCHEMA.names) - {"cost"}
    assert set(config["privacy"][1]["skyline"]["values"]) <= {diagnosis.name for diagnosis in hospital.DIAGNOSES}


def breach(people: Counter[str], value: str, point: dict[str, Any]) -> float:
    """Breach probability of the whole table as one group (Privacy Skyline, section 6.1, one value per person)."""
    n, s, k = people.total(), people[value], point["k"]
    top = sum(sorted((count for name, count in people.items() if name != value), reverse=True)[: point["l"]])
    spared = prod((n - s - k - 1 - i) / (n - k - 1 - i) for i in range(point["m"]))
    return 1 / ((n - s - top - k) / s * spared + 1)


def test_the_whole_table_as_one_group_is_safe_with_room_to_split(table: pa.Table, config: dict[str, Any]) -> None:
    people = Counter(table["diagnosis"].to_pylist())
    skyline = config["privacy"][1]["skyline"]
    for value in people:
        points = skyline["values"].get(value, skyline["points"])
        for point in points if points != "exempt" else []:
            assert breach(people, value, point) < point["c"] / 5, value


def test_both_formats_hold_the_rows_across_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hospital, "ROW_GROUP", 400)
    hospital.main(["--rows", "1000", "--out", str(tmp_path / "new" / "extract.parquet")])
    hospital.main(["--rows", "1000", "--csv", "--out", str(tmp_path / "extract.csv")])
    expected = hospital.rows(0, 1000)
    assert pq.read_table(tmp_path / "new" / "extract.parquet").equals(expected)
    assert pq.ParquetFile(tmp_path / "new" / "extract.parquet").num_row_groups == 3
    types = pa.csv.ConvertOptions(column_types=hospital.SCHEMA)
    assert pa.csv.read_csv(tmp_path / "extract.csv", convert_options=types).equals(expected)
    assert [line.split(" to ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "wrote 1,000 rows, 10 columns"
    ] * 2


@pytest.mark.parametrize("count", ["0", "-3", "many"])
def test_a_row_count_that_is_none_is_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        hospital.main(["--rows", count])
    assert stopped.value.code == 2
    assert "at least 1" in capsys.readouterr().err
