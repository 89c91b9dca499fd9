"""`check` on bucketized tables: `qi` with a row per individual, `sensitive` with the counts of each group's values."""

from __future__ import annotations

import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.errors import ConfigError, SourceError
from tests.conftest import House
from tests.oracles import robustness, worlds

BUCKETIZED = {"release__form": "bucketized"}
Pair = tuple[pa.Table, pa.Table]
Group = tuple[list[str], list[str]]  # the ages and the diseases of a group, in any order


def bucketized(groups: list[Group], ids: list[int] | None = None, **kept: list[Any]) -> Pair:
    numbers = list(range(len(groups))) if ids is None else ids
    people = [(age, number) for (ages, _), number in zip(groups, numbers) for age in ages]
    qi = pa.table({"age": [age for age, _ in people], "zip": ["*"] * len(people)} | kept)
    held = [
        (number, disease, count)
        for (_, diseases), number in zip(groups, numbers)
        for disease, count in sorted(Counter(diseases).items())
    ]
    columns = dict(zip(("group", "disease", "count"), map(list, zip(*held))))
    return qi.append_column("group", [[number for _, number in people]]), pa.table(columns)


GROUPS: list[Group] = [(["20", "30", "20"], ["Flu", "Cold", "Flu"]), (["30", "30"], ["Cold", "Ache"])]
PAIR = bucketized(GROUPS)
POINTS = [{"l": l, "k": k, "m": m, "c": 0.7} for l, k, m in ((0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 0), (0, 0, 2))]
SKYLINE = [{"skyline": {"points": POINTS}}]


def write(house: House, pair: Pair, folder: str = "given") -> str:
    for table, name in zip(pair, ("qi", "sensitive")):
        house.write(table, f"{folder}/{name}.parquet")
    return str(house.folder / folder)


groups_of = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda d: (["*"] * len(d), d))


@settings(max_examples=15, deadline=None)
@given(release=st.lists(groups_of, min_size=1, max_size=2))
def test_a_skyline_is_judged_as_by_all_possible_worlds(release: list[Group]) -> None:
    with TemporaryDirectory() as folder:
        told = House(Path(folder)).check(bucketized(release), privacy=SKYLINE, **BUCKETIZED).to_dict()
    values = [diseases for _, diseases in release]
    for point in told["criteria"][0]["points"]:
        name = sorted({d for group in values for d in group}, key=lambda d: (-sum(g.count(d) for g in values), d))
        sigma = name[int(point["value"].split("#")[1].split(" ")[0]) - 1]
        breach = worlds.breach(values, sigma, point["l"], point["k"], point["m"])
        assert point["breach"] == pytest.approx(float(breach))
        assert point["safe"] == (breach < Fraction("0.7"))


@settings(max_examples=8, deadline=None)
@given(release=st.lists(groups_of, min_size=1, max_size=4))
def test_every_criterion_says_the_same_as_of_one_table_with_the_groups_as_labels(release: list[Group]) -> None:
    privacy = [
        {"group_size": {"k": 2}},
        *({"l_diversity": {"kind": kind, "l": 2}} for kind in ("distinct", "frequency", "entropy")),
        {"l_diversity": {"kind": "recursive", "l": 2, "c": 2}},
        {"ck_safety": {"c": 0.8, "k": 2}},
        {"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 2, "distance": {"kind": "equal"}}},
        {"t_closeness": {"t": 0.3, "distance": {"kind": "equal"}}},
        {"alpha_k": {"alpha": 0.6, "k": 2}},
        *SKYLINE,
    ]
    rows = [
        {"age": number, "zip": "*", "disease": disease}
        for number, (_, diseases) in enumerate(release)
        for disease in diseases
    ]
    table = pa.Table.from_pylist(rows)
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        expected = house.check(table, privacy=privacy).to_dict()
        assert house.check(bucketized(release), privacy=privacy, **BUCKETIZED).to_dict() == expected


def test_the_form_of_the_table_counts_and_not_that_of_the_config(house: House) -> None:
    assert house.check(PAIR).to_dict() == house.check(PAIR, **BUCKETIZED).to_dict()
    flat = pa.table({"age": ["1", "1"], "zip": ["*", "*"], "disease": ["Flu", "Cold"]})
    assert house.check(flat, **BUCKETIZED).to_dict() == house.check(flat).to_dict()


def test_rows_are_those_of_the_individuals(house: House) -> None:
    told = house.check(PAIR).to_dict()
    assert (told["rows"], told["individuals"], told["groups"]) == (5, 5, 2)
    assert told["risk"] == {
        "highest": 1 / 2, "mean": 2 / 5, "under_5": 5, "unique_before": None, "homogeneous_rows": 0,
    }  # fmt: skip


def test_group_size_is_about_groups_and_k_anonymity_about_equal_labels(house: House) -> None:
    privacy = [{"group_size": {"k": 2}}, {"k_anonymity": {"k": 3}}]
    size, classes = house.check(PAIR, privacy=privacy).to_dict()["criteria"]
    assert (size["figure"], size["safe"], size["worst_group"]) == (2, True, 1)
    assert (classes["figure"], classes["safe"], classes["worst_group"]) == (2, False, 0)
    wide = bucketized([(["20"] * 3, ["Flu"] * 3), (["20"], ["Cold"])])
    size, classes = house.check(wide, privacy=privacy).to_dict()["criteria"]
    assert (size["figure"], classes["figure"]) == (1, 4)


def test_groups_are_told_by_their_numbers(house: House) -> None:
    pair = bucketized([*GROUPS, (["40"], ["Flu"])], ids=[7, 5, 30])
    privacy = [{"group_size": {"k": 2}}, {"k_anonymity": {"k": 2}}, {"skyline": {"points": POINTS[:1]}}]
    told = house.check(pair, privacy=privacy).to_dict()
    assert [criterion["worst_group"] for criterion in told["criteria"]] == [30, 30, 30]


def test_counts_of_one_value_in_several_rows_are_added(house: House) -> None:
    qi, _ = PAIR
    apart = pa.table({"group": [0, 0, 1, 0, 1], "disease": ["Flu", "Cold", "Ache", "Flu", "Cold"], "count": [1] * 5})
    assert house.check((qi, apart), privacy=SKYLINE).to_dict() == house.check(PAIR, privacy=SKYLINE).to_dict()


def test_files_parts_and_frames_are_judged_alike(house: House) -> None:
    expected = house.check(PAIR, privacy=SKYLINE).to_dict()
    parquet = write(house, PAIR)
    (house.folder / "csv").mkdir()
    (house.folder / "mixed").mkdir()
    for table, name in zip(PAIR, ("qi", "sensitive")):
        pyarrow.csv.write_csv(table, house.folder / "csv" / f"{name}.csv")
    shutil.copy(house.folder / "csv" / "qi.csv", house.folder / "mixed")
    shutil.copy(house.folder / "given" / "sensitive.parquet", house.folder / "mixed")
    house.write(PAIR[0].slice(0, 2), "parts/qi.parquet/part-0.parquet")
    house.write(PAIR[0].slice(2), "parts/qi.parquet/part-1.parquet")
    house.write(PAIR[1], "parts/sensitive.parquet")
    (house.folder / "given" / "datapackage.json").write_text("{}")
    files = Path(parquet) / "qi.parquet", Path(parquet) / "sensitive.parquet"
    folders = [str(house.folder / name) for name in ("csv", "mixed", "parts")]
    for table in (parquet, Path(parquet), *folders, files, tuple(map(pl.DataFrame, PAIR))):
        assert house.check(table, privacy=SKYLINE).to_dict() == expected


def test_safe_is_exit_0_and_not_safe_exit_3(house: House) -> None:
    folder = write(house, PAIR)
    outcome = house.cli("check", "--on", folder, "--json", privacy=[{"group_size": {"k": 2}}], **BUCKETIZED)
    assert outcome.code == 0 and outcome.json["safe"] is True and outcome.json["groups"] == 2
    outcome = house.cli("check", "--on", folder, "--json", privacy=[{"group_size": {"k": 3}}], **BUCKETIZED)
    assert outcome.code == 3 and outcome.json["safe"] is False
    assert house.cli("check", "--on", folder, privacy=SKYLINE, **BUCKETIZED).code == 3


def changed(table: pa.Table, **columns: Any) -> pa.Table:
    return pa.table({name: columns.get(name, table[name]) for name in table.column_names} | columns)


QI, SENSITIVE = PAIR
BROKEN: dict[str, tuple[Pair, str]] = {
    "1 groups of qi that are not in sensitive": (bucketized([*GROUPS, (["1"], [])]), "qi and sensitive"),
    "1 groups of sensitive that are not in qi": (bucketized([*GROUPS, ([], ["Flu"])]), "qi and sensitive"),
    "2 groups with another number of values": (
        bucketized([(["1", "1"], ["Flu"]), (["1"], ["Flu", "Cold"]), (["2"], ["Flu"])]),
        "qi and sensitive",
    ),
    "2 rows whose `count` is not a positive": ((QI, changed(SENSITIVE, count=[0, -1, 1, 1])), "sensitive"),
    "1 row whose `count` is not a positive": ((QI, changed(SENSITIVE, count=[2, 1, 1, None])), "sensitive"),
    "`count` is not a column of whole": ((QI, changed(SENSITIVE, count=[2.0, 1.0, 1.0, 1.0])), "sensitive"),
    "`group` is not a column of whole": ((changed(QI, group=list("aaabb")), SENSITIVE), "qi"),
    "1 row whose `group` is not a whole": ((changed(QI, group=[0, 0, None, 1, 1]), SENSITIVE), "qi"),
    "no column `group`": ((QI.drop_columns("group"), SENSITIVE), "qi"),
    "no column `count`": ((QI, SENSITIVE.drop_columns("count")), "sensitive"),
    "has the sensitive column too": ((changed(QI, disease=["Flu"] * 5), SENSITIVE), "qi"),
    "has 1 of the columns that belong to qi": ((QI, changed(SENSITIVE, age=["2"] * 4)), "sensitive"),
    "the table has no rows": ((QI.slice(0, 0), SENSITIVE.slice(0, 0)), "the table"),
}


@pytest.mark.parametrize("words", BROKEN)
def test_tables_that_do_not_belong_together_are_exit_5_without_their_values(house: House, words: str) -> None:
    pair, where = BROKEN[words]
    outcome = house.cli("check", "--on", write(house, pair), "--json", **BUCKETIZED)
    assert outcome.code == 5 and outcome.json["exit_code"] == 5
    assert words in outcome.stderr and where in outcome.stderr
    assert not any(disease in outcome.stderr for disease in ("Flu", "Cold", "Ache"))


def test_a_folder_that_is_not_one_qi_and_one_sensitive_is_exit_5(house: House) -> None:
    for name, words in (("qi", "no table `sensitive`"), ("sensitive", "no table `qi`")):
        folder = house.write(QI, f"half-{name}/{name}.parquet").parent
        outcome = house.cli("check", "--on", str(folder))
        assert outcome.code == 5 and words in outcome.stderr
    twice = write(house, PAIR, "twice")
    pyarrow.csv.write_csv(QI, f"{twice}/qi.csv")
    assert "more than one table `qi`" in house.cli("check", "--on", twice).stderr
    more = write(house, PAIR, "more")
    house.write(QI, "more/release.parquet")
    outcome = house.cli("check", "--on", more)
    assert outcome.code == 5 and "1 more tables beside" in outcome.stderr
    with pytest.raises(SourceError, match="type tuple"):
        house.check((QI, SENSITIVE, SENSITIVE))


def test_a_config_that_does_not_fit_a_bucketized_table_is_exit_2(house: House) -> None:
    with pytest.raises(ConfigError, match=r"columns\.sensitive: found 2 sensitive columns"):
        house.check(PAIR, columns__sensitive=["disease", "drug"])
    with pytest.raises(ConfigError, match=r"columns\.quasi_identifiers\.group: found a column 'group'"):
        house.check(PAIR, columns__quasi_identifiers={"group": {}})
    with pytest.raises(ConfigError, match="did you mean 'age'"):
        house.check(PAIR, columns__quasi_identifiers={"aeg": {}, "zip": {}})
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.drug"):
        house.check(PAIR, columns__sensitive=["drug"])


def test_exact_labels_refuse_k_anonymity(house: House) -> None:
    exact = [
        {"release__labels": "exact"},
        {"method": {"kind": "merge"}},
        {"method": {"kind": "colour"}},
    ]
    for changes in exact:
        with pytest.raises(ConfigError, match="k_anonymity with exact labels; expected group_size"):
            house.check(PAIR, **BUCKETIZED, **changes)
        assert house.check(PAIR, privacy=[{"group_size": {"k": 2}}], **BUCKETIZED, **changes).safe
    labels = {"method": {"kind": "merge"}, "release__labels": "generalized"}
    assert house.check(PAIR, **BUCKETIZED, **labels).safe


def test_missing_values_may_be_values_but_nobody_can_be_dropped_for_them(house: House) -> None:
    pair = QI, changed(SENSITIVE, disease=["Flu", None, "Cold", None])
    for policy in ("error", "drop"):
        with pytest.raises(ConfigError, match="disease: found 2 rows without a value"):
            house.check(pair, nulls={"sensitive": policy})
    told = house.check(pair, nulls={"sensitive": "value"}, privacy=SKYLINE).to_dict()
    assert told["rows"] == 5 and len({point["value"] for point in told["criteria"][0]["points"]}) == 3


def test_individuals_who_are_named_have_one_row(house: House) -> None:
    assert house.check((changed(QI, id=list("abcde")), SENSITIVE), columns__individual="id").safe
    with pytest.raises(ConfigError, match="1 row that repeats an individual"):
        house.check((changed(QI, id=list("abcda")), SENSITIVE), columns__individual="id")


def test_kept_columns_make_classes_of_equal_labels_smaller_and_not_the_groups(house: House) -> None:
    release: list[Group] = [(["20", "20"], ["Flu", "Flu"]), (["20", "30"], ["Flu", "Cold"])]
    told = house.check(bucketized(release, ward=["a", "b", "b", "b"]), columns__keep=["ward", "hours"]).to_dict()
    assert told["with_kept"] == {"ward": {"smallest_group": 1, "unique_share": 0.5, "homogeneous_share": 0.5}}
    assert told["risk"]["homogeneous_rows"] == 2
    assert [warning["code"] for warning in told["warnings"]].count("kept_reveals") == 0


PRIOR = {
    "x": {"a": "0.5", "b": "0.3", "c": "0.2"},
    "y": {"a": "0.1", "b": "0.6", "c": "0.3"},
    "z": {"a": "0.2", "b": "0.2", "c": "0.6"},
}
members = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc")), min_size=2, max_size=5)


def robust(folder: Path, r: float, **prior: Any) -> list[dict[str, Any]]:
    lines = ["age,value,p", *(f"{age},{value},{p}" for age, row in PRIOR.items() for value, p in row.items())]
    (folder / "prior.csv").write_text("\n".join(lines))
    return [{"r_robustness": {"r": r, "priors": [prior or {"file": str(folder / "prior.csv")}]}}]


@settings(max_examples=20, deadline=None)
@given(release=st.lists(members, min_size=1, max_size=3), r=st.sampled_from([1.1, 1.5, 2, 3]))
def test_no_adversary_with_a_prior_is_surer_than_told(release: list[list[tuple[str, str]]], r: float) -> None:
    worst = max(
        robustness.largest(
            [tuple(Fraction(PRIOR[age][value]) for value in "abc") for age, _ in group],
            ["abc".index(disease) for _, disease in group],
        )
        for group in release
    )
    pair = bucketized([([age for age, _ in group], [disease for _, disease in group]) for group in release])
    with TemporaryDirectory() as folder:
        house = House(Path(folder))
        told = house.check(pair, privacy=robust(house.folder, r), **BUCKETIZED).to_dict()
    criterion = told["criteria"][0]
    assert not (told["safe"] and worst > 1 / Fraction(str(r)))
    if criterion["exact"]:
        assert criterion["figure"] == pytest.approx(float(worst))
        assert told["safe"] == (worst <= 1 / Fraction(str(r)) and min(map(len, release)) >= r)


def test_a_prior_cannot_be_estimated_where_nobody_has_a_value_of_their_own(house: House) -> None:
    pair = bucketized([(["x", "y"], ["a", "b"])])
    privacy = robust(house.folder, 1.1, estimate=["age"])
    with pytest.raises(ConfigError, match=r"an estimated prior on a bucketized table.*prior=FILE"):
        house.check(pair, privacy=privacy)
    folder, file = write(house, pair), str(house.folder / "prior.csv")
    assert house.cli("check", "--on", folder, privacy=privacy).code == 2
    assert house.cli("check", "--on", folder, "--prior", file, privacy=privacy).code == 0
