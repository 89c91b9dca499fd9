"""One level per column after a search by partition: labels of a column do not overlap, every group is a union of the
groups of the tree, as few of them as possible, and the release is verified."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anon
from anon.errors import ConfigError, VerificationError
from anon.recoding import one_level
from anon.runs.result import Result

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {}, "zip": {"digits": 3}, "born": {"intervals": [5, 10, 50]}, "sex": {"suppress": True}, "word": {},
}  # fmt: skip


def table(seed: int, rows: int = 200, nulls: bool = True) -> pl.DataFrame:
    rng = random.Random(seed)
    made = {
        "age": [None if nulls and rng.random() < 0.1 else rng.randrange(30) for _ in range(rows)],
        "zip": [f"{rng.choice([1, 2])}{rng.randrange(10)}{rng.randrange(3)}" for _ in range(rows)],
        "born": [1900 + rng.randrange(100) for _ in range(rows)],
        "sex": [rng.choice("mf") for _ in range(rows)],
        "word": [rng.choice("abcdef") for _ in range(rows)],
        "disease": [rng.choice(["Flu", "Cold", "HIV"]) for _ in range(rows)],
        "row": list(range(rows)),
    }
    return pl.DataFrame(made)


def settings(folder: Path, columns: list[str], **changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = {
        "columns": {
            "individual": "row",
            "quasi_identifiers": {n: COLUMNS[n] for n in columns},
            "sensitive": "disease",
            "keep": "row",
        },
        "privacy": [{"k_anonymity": {"k": 4}}, {"l_diversity": {"kind": "distinct", "l": 2}}],
        "release": {"path": str(folder / "out")},
    }
    for name, value in changes.items():
        config[name] = config[name] | value if name == "release" else value
    return config


def both(
    folder: Path, columns: list[str], source: pl.DataFrame, **changes: Any
) -> tuple[pl.DataFrame, pl.DataFrame, Result]:
    """The rows of a release as partition cuts it and at one level, as in the source, and the second result."""
    plain = anon.run(settings(folder / "plain", columns, **changes), source, overwrite=True)
    return plain.scan().sort("row").collect(), *at_one_level(folder, columns, source, **changes)


def at_one_level(folder: Path, columns: list[str], source: pl.DataFrame, **changes: Any) -> tuple[pl.DataFrame, Result]:
    """The rows of a release at one level, as in the source, and the result."""
    release = changes.pop("release", {}) | {"one_level": True}
    one = anon.run(settings(folder / "one", columns, release=release, **changes), source, overwrite=True)
    return one.scan().sort("row").collect(), one


def components(labels: list[Any], values: list[Any]) -> Iterator[set[Any]]:
    """The finest sets of values such that the values of every label are in one set, whatever labels are."""
    sets: list[set[Any]] = []
    for label in set(labels):
        own = {value for value, word in zip(values, labels) if word == label}
        touching = [other for other in sets if other & own]
        sets = [other for other in sets if not other & own] + [own.union(*touching)]
    yield from sets


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "columns", [["age", "zip"], ["born", "sex", "age"], ["word", "age"], ["zip", "born"]], ids=" ".join
)
def test_every_group_is_a_union_of_groups_and_labels_do_not_overlap(
    tmp_path: Path, columns: list[str], seed: int
) -> None:
    source = table(seed, rows=40 + 80 * (seed % 3), nulls=seed % 2 == 0)
    plain, one, result = both(tmp_path, columns, source)
    merged = plain.select(columns).with_columns(new=pl.struct(one.select(columns).rename(lambda name: f"{name}_one")))
    assert merged.group_by(columns).agg(pl.col("new").n_unique())["new"].max() == 1
    for name in columns:
        pairs = set(zip(source[name].to_list(), one[name].to_list()))
        assert len(pairs) == len({value for value, _ in pairs}), "a value has one label"
    assert result.recoding["one_level"] and result.recoding["method"] == "partition"
    assert anon.check(settings(tmp_path / "one", columns), tmp_path / "one" / "out").safe


@pytest.mark.parametrize("seed", range(8))
def test_a_column_that_is_cut_freely_keeps_exactly_the_cuts_that_no_group_crosses(tmp_path: Path, seed: int) -> None:
    """Cells of the tree are ranges: a label covers all values between its ends, in whichever group they are."""
    source = table(seed, rows=60)
    plain, one, _ = both(tmp_path, ["age", "sex"], source)
    values, labels = source["age"].to_list(), plain["age"].to_list()
    order = sorted(set(values), key=lambda value: -1 if value is None else value)
    covered = {label: [value for value in order if _within(value, label, order)] for label in set(labels)}
    spread = [(label, value) for label, own in covered.items() for value in own]
    expected = {frozenset(each) for each in components([label for label, _ in spread], [value for _, value in spread])}
    found: dict[Any, set[Any]] = {}
    for value, label in zip(values, one["age"].to_list()):
        found.setdefault(label, set()).add(value)
    assert {frozenset(each) for each in found.values()} == expected


def _within(value: Any, label: str | None, order: list[Any]) -> bool:
    """Whether a label of whole numbers covers a value, read off the text alone."""
    if label == "*":
        return True
    if label is None or value is None:
        return value is None and (label is None or label.startswith("null|"))
    word = label.removeprefix("null|")
    if word == "not null":
        return True
    if word.startswith("<="):
        return value <= int(word[2:])
    if word.startswith(">="):
        return value >= int(word[2:])
    low, _, high = word.partition("-")
    return int(low) <= value <= int(high or low)


@pytest.mark.parametrize("seed", range(4))
def test_a_hierarchy_is_published_at_the_lowest_level_that_no_group_is_above(tmp_path: Path, seed: int) -> None:
    plain, one, result = both(tmp_path, ["zip", "age"], table(seed, rows=300))
    stars = max(label.count("*") if label != "*" else 3 for label in plain["zip"].to_list())
    assert {label.count("*") if label != "*" else 3 for label in one["zip"].to_list()} == {stars}
    assert result.recoding["chosen"]["levels"]["zip"] == stars


MONOTONE: list[dict[str, Any]] = [
    {"group_size": {"k": 5}},
    {"l_diversity": {"kind": "entropy", "l": 1.5}},
    {"l_diversity": {"kind": "recursive", "c": 3, "l": 2, "keep_possible": {"values": "Flu", "percent": 10}}},
    {"t_closeness": {"t": 0.4, "distance": {"kind": "equal"}}},
    {"alpha_k": {"alpha": 0.7, "k": 4}},
    {"skyline": {"points": [{"l": 1, "k": 3, "m": 1, "c": 0.9}]}},
    {"ck_safety": {"c": 0.97, "k": 1}},
    {"delta_disclosure": {"delta": 2.0}},
]


@pytest.mark.parametrize("criterion", MONOTONE, ids=lambda each: next(iter(each)))
def test_monotone_criteria_hold_for_the_merged_groups(tmp_path: Path, criterion: dict[str, Any]) -> None:
    """Verification judges the written files, and would refuse what is unsafe."""
    for seed in range(3):
        one, result = at_one_level(tmp_path, ["zip", "age", "sex"], table(seed, rows=240), privacy=[criterion])
        assert result.safe and result.to_dict()["groups"] == one.select("zip", "age", "sex").n_unique()


@pytest.mark.parametrize("release", [{"form": "bucketized"}, {"format": "csv"}, {"bounds": True}])
def test_every_form_can_have_one_level(tmp_path: Path, release: dict[str, Any]) -> None:
    one, result = at_one_level(tmp_path, ["age", "born"], table(3), release=release)
    assert result.safe and one.height == 200
    assert anon.read(tmp_path / "one" / "out").collect().height >= 200


def test_the_same_release_whatever_the_means(tmp_path: Path) -> None:
    source = table(4, rows=500)
    found = []
    for limits in ({"memory": "400MB", "threads": 1}, {"memory": "2GB", "threads": 2}):
        anon.run(
            settings(tmp_path, ["age", "zip"], release={"one_level": True}) | {"limits": limits},
            source.sample(fraction=1, shuffle=True),
            overwrite=True,
            force=True,
        )
        files = [tmp_path / "out" / "release.parquet", tmp_path / "out-run" / "recoding.json"]
        found.append([file.read_bytes() for file in files])
    assert found[0] == found[1]


def test_a_column_of_more_values_than_codes_is_not_published(tmp_path: Path) -> None:
    rng = random.Random(1)
    source = pl.DataFrame({"age": [rng.random() for _ in range(70_000)], "sex": ["m", "f"] * 35_000})
    source = source.with_columns(disease=pl.col("sex").shift(1, fill_value="f")).with_row_index("row")
    config = settings(tmp_path, ["age", "sex"], release={"one_level": True}, privacy=[{"k_anonymity": {"k": 4}}])
    assert set(anon.run(config, source).scan().collect()["age"]) == {"*"}


def test_labels_that_overlap_or_are_not_true_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = one_level.CutLevels.labels
    ages = {"age": [20, 21, 30, 31] * 6, "sex": ["m"] * 24, "disease": ["a", "b"] * 12, "row": range(24)}
    config = settings(tmp_path, ["age", "sex"], release={"one_level": True}, privacy=[{"k_anonymity": {"k": 12}}])
    for wrong in ("<=99", "40-45"):

        def tampered(self: Any, level: int, wrong: str = wrong) -> list[str | None]:
            found = labels(self, level)
            return [wrong, *found[1:]] if level == 1 else found

        monkeypatch.setattr(one_level.CutLevels, "labels", tampered)
        with pytest.raises(VerificationError):
            anon.run(config, pl.DataFrame(ages))
        monkeypatch.undo()
    assert not (tmp_path / "out").exists()
    assert set(anon.run(config, pl.DataFrame(ages)).scan().collect()["age"]) == {"<=25", ">=26"}


NEAR = {"epsilon": 1, "delta": 0.5, "k": 2, "distance": {"kind": "equal"}}
ROBUST = {"r": 1.1, "priors": [{"estimate": ["sex"], "smoothing": 1}]}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"method": {"kind": "lattice"}}, "release.one_level"),
        ({"privacy": [{"k_anonymity": {"k": 3}}, {"dissimilarity": NEAR}]}, "privacy[1].dissimilarity"),
        ({"privacy": [{"r_robustness": ROBUST}]}, "privacy[0].r_robustness"),
    ],
)
def test_what_merging_groups_could_make_unsafe_is_refused(tmp_path: Path, changes: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        anon.run(settings(tmp_path, ["zip", "sex"], release={"one_level": True}, **changes), table(1))
    assert {problem.path for problem in refused.value.problems} == {path}
    assert "one_level" in str(refused.value)


def test_such_a_run_is_explained_and_not_reused(tmp_path: Path) -> None:
    source = table(5)
    source.write_parquet(tmp_path / "table.parquet")
    config = settings(tmp_path, ["zip", "age"], release={"one_level": True}) | {
        "source": {"path": str(tmp_path / "table.parquet")}
    }
    result = anon.run(config)
    explained = anon.explain(result.run or "").to_dict()
    assert "one_level" in json.dumps(explained["relaxing"])
    assert "level" in explained["columns"][0]
    again = settings(tmp_path / "again", ["zip", "age"], method={"kind": "reuse", "run": str(result.run)})
    with pytest.raises(ConfigError, match=r"method\.run: found a recoding with release\.one_level"):
        anon.run(again, source)
