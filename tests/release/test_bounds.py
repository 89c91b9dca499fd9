"""Typed bounds beside the labels: the ends of every cell, in both forms, verified by their own path; and `anon.read`,
which finds them from the labels where a release has none."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import anon
from anon.core.database import Database
from anon.errors import ConfigError, VerificationError
from anon.release import bounds as writing
from anon.verify.bounds import difference_in_bounds
from tests.conftest import House

FORMS: dict[str, dict[str, Any]] = {
    "generalized": {}, "csv": {"format": "csv"}, "bucketized": {"form": "bucketized"},
}  # fmt: skip
BUILDERS: dict[str, dict[str, Any]] = {
    "whole": {"intervals": [5, 10, 50], "top": 90, "bottom": 10},
    "broken": {"intervals": [2.5, 10]},
    "halves": {"intervals": [2.5, 10]},
    "period": {"calendar": ["day", "month", "quarter", "year"]},
    "moment": {"calendar": ["day", "month", "year"]},
    "zip": {"digits": 5},
}


def table(seed: int, rows: int = 240) -> pl.DataFrame:
    rng = random.Random(seed)
    start = dt.datetime(2023, 1, 1)

    def later(days: int) -> dt.datetime:
        return start + dt.timedelta(seconds=rng.randrange(days * 86_400))

    made: dict[str, list[Any]] = {
        "age": [rng.choice([None, *range(-5, 90)]) for _ in range(rows)],
        "weight": [rng.choice([rng.uniform(-5, 5), 0.1 + 0.2, 1e-7, 1e20]) for _ in range(rows)],
        "day": [later(700).date() for _ in range(rows)],
        "at": [later(30) for _ in range(rows)],
        "whole": [rng.randrange(100) for _ in range(rows)],
        "broken": [rng.uniform(0, 50) for _ in range(rows)],
        "halves": [rng.randrange(20) for _ in range(rows)],
        "period": [later(700).date() for _ in range(rows)],
        "moment": [later(700) for _ in range(rows)],
        "zip": [f"0{rng.randrange(2130, 2145)}" for _ in range(rows)],
        "word": [rng.choice("abcdef") for _ in range(rows)],
        "disease": [rng.choice(["Flu", "Cold", "HIV"]) for _ in range(rows)],
        "stay": list(range(rows)),
    }
    return pl.DataFrame(made)


def settings(folder: Path, columns: list[str], release: dict[str, Any], k: int = 6, **more: Any) -> dict[str, Any]:
    roles = {
        "quasi_identifiers": {name: BUILDERS.get(name, {}) for name in columns},
        "sensitive": "disease",
        "keep": "stay",
    }
    return {
        "columns": {"individual": "row", **roles},
        "privacy": [{"k_anonymity": {"k": k}}],
        "release": {"path": str(folder / "out")} | release,
        "limits": {"memory": "1GB", "threads": 2},
    } | more


PAIRS = [
    ["age", "weight"],
    ["day", "at"],
    ["whole", "broken"],
    ["halves", "period"],
    ["moment", "zip"],
    ["age", "word"],
]
BOUNDED = {"age", "weight", "day", "at", "whole", "broken", "halves", "period", "moment"}
EXCLUSIVE = {"weight", "at", "broken", "halves"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("columns", PAIRS, ids=" ".join)
def test_every_value_lies_between_the_bounds_of_its_label(tmp_path: Path, columns: list[str], form: str) -> None:
    """`stay` says which row of the source a published one is."""
    for seed, k in ((1, 2), (2, 6), (3, 40)):
        source = table(seed)
        config = settings(tmp_path, columns, FORMS[form] | {"bounds": True}, k)
        found = (
            anon.run(config, source, overwrite=True, force=True).scan().collect().join(source, on="stay", suffix="_was")
        )
        assert found.height == source.height
        for name in columns:
            if name not in BOUNDED:
                assert f"{name}_low" not in found.columns
                continue
            for row in found.iter_rows(named=True):
                holds(row[name], row[f"{name}_low"], row[f"{name}_high"], row[f"{name}_was"], name in EXCLUSIVE)


def holds(label: str | None, low: Any, high: Any, value: Any, exclusive: bool) -> None:
    """Check that bounds are typed, hold the value, and are open exactly where the label is."""
    if label is None:
        assert (low, high, value) == (None, None, None)
        return
    open_low = label in ("*", "not null") or label.removeprefix("null|").startswith("<")
    open_high = label in ("*", "not null") or label.startswith(">=")
    assert (low is None, high is None) == (open_low, open_high), label
    if value is None:
        assert label == "*" or label.startswith("null|")
        return
    day = value.date() if isinstance(value, dt.datetime) and isinstance(low or high, dt.date) else value
    value = day if type(low if low is not None else high) is dt.date else value
    assert low is None or low <= value
    assert high is None or (value < high if exclusive and low != high else value <= high)


@pytest.mark.parametrize("form", FORMS)
def test_labels_order_and_everything_else_are_those_of_a_release_without_bounds(tmp_path: Path, form: str) -> None:
    source, names = table(5), ["age", "whole", "word"]
    plain = anon.run(settings(tmp_path / "plain", names, FORMS[form]), source)
    typed = anon.run(settings(tmp_path / "typed", names, FORMS[form] | {"bounds": True}), source)
    ends = [f"{name}_{end}" for name in ("age", "whole") for end in ("low", "high")]
    assert typed.scan().collect().columns[:6] == ["age", "age_low", "age_high", "whole", "whole_low", "whole_high"]
    assert typed.scan().drop(ends).collect().equals(plain.scan().collect())
    assert typed.recoding == plain.recoding and typed.to_dict() == plain.to_dict()
    package = json.loads((tmp_path / "typed" / "out" / "datapackage.json").read_text())
    fields = {field["name"]: field for field in package["resources"][0]["schema"]["fields"]}
    assert fields["age_low"] == {"name": "age_low", "type": "integer", "role": "bound", "of": "age", "end": "low"}
    assert "role `bound`" in package["bounds"]
    assert "bounds" not in json.loads((tmp_path / "plain" / "out" / "datapackage.json").read_text())


def test_a_lattice_release_has_bounds_too(tmp_path: Path) -> None:
    config = settings(tmp_path, ["whole", "period"], {"bounds": True}, method={"kind": "lattice"})
    found = anon.run(config, table(6)).scan().collect()
    for row in found.iter_rows(named=True):
        low, high = row["whole_low"], row["whole_high"]
        holds(row["whole"], low, high, high if low is None else low, False)
    assert found["period_low"].dtype == pl.Date and found["whole_low"].dtype == pl.Int64


def test_a_release_with_bounds_is_checked_like_any_other(tmp_path: Path) -> None:
    for form in FORMS.values():
        config = settings(tmp_path, ["age", "day"], form | {"bounds": True})
        found = anon.run(config, table(7), overwrite=True, force=True)
        assert anon.check(config, tmp_path / "out").to_dict()["groups"] == found.to_dict()["groups"]


@pytest.mark.parametrize("columns", PAIRS[:5], ids=" ".join)
@pytest.mark.parametrize("end", ["low", "high"])
def test_verification_refuses_bounds_that_are_not_those_of_the_label(
    tmp_path: Path, columns: list[str], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = writing.ColumnBounds.arrays

    def shifted(self: writing.ColumnBounds, *given: Any) -> list[pa.Array]:
        found = arrays(self, *given)
        if self.column != columns[0] or not found:
            return found
        at = ("low", "high").index(end)
        moved = pl.Series(found[at]) + (dt.timedelta(days=1) if pa.types.is_temporal(found[at].type) else 1)
        found[at] = moved.to_arrow().cast(found[at].type)
        return found

    monkeypatch.setattr(writing.ColumnBounds, "arrays", shifted)
    with pytest.raises(VerificationError, match="other bounds than theirs"):
        anon.run(settings(tmp_path, columns, {"bounds": True}), table(8))
    assert not (tmp_path / "out").exists()


LABELS: list[tuple[str, str | None, Any, Any]] = [
    ("integer", "20-34", 20, 34), ("integer", "-5..3", -5, 3), ("integer", "-7", -7, -7), ("integer", "<=19", None, 19),
    ("integer", ">=-85", -85, None), ("integer", "null|<=19", None, 19), ("integer", "null|5", 5, 5),
    ("integer", None, None, None), ("integer", "*", None, None), ("integer", "not null", None, None),
    ("number", "[1.5,2.25)", 1.5, 2.25), ("number", "<0", None, 0.0), ("number", ">=0.00000015", 1.5e-7, None),
    ("number", "0.1", 0.1, 0.1), ("number", "[-2,-1)", -2.0, -1.0), ("number", "100000000000000000000", 1e20, 1e20),
    ("date", "2024-01-01..2024-03-31", dt.date(2024, 1, 1), dt.date(2024, 3, 31)),
    ("date", "<=1969-12-31", None, dt.date(1969, 12, 31)),
    ("date", "2024-02-29", dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
    ("timestamp", "[2024-01-01T00:00:00,2024-01-01T07:30:00.25)", dt.datetime(2024, 1, 1),
     dt.datetime(2024, 1, 1, 7, 30, 0, 250_000)),
    ("timestamp", ">=1969-12-31T23:59:59", dt.datetime(1969, 12, 31, 23, 59, 59), None),
    ("calendar", "2024-02", dt.date(2024, 2, 1), dt.date(2024, 2, 29)),
    ("calendar", "2023-Q4", dt.date(2023, 10, 1), dt.date(2023, 12, 31)),
    ("calendar", "0999", dt.date(999, 1, 1), dt.date(999, 12, 31)),
    ("calendar", "2024-12", dt.date(2024, 12, 1), dt.date(2024, 12, 31)),
    ("calendar", "2024-03-09T07:30:00Z", dt.date(2024, 3, 9), dt.date(2024, 3, 9)), ("calendar", "*", None, None),
]  # fmt: skip


def both_readers(kind: str, label: str | None) -> Iterator[tuple[Any, Any]]:
    """The bounds that the release writes, and those that `anon.read` finds for columns that are cut freely."""
    from anon.release import reading

    read: Any = writing._days if kind == "calendar" else writing._range
    low, high = (writing._array([end], kind)[0].as_py() for end in writing._ends(label, kind, read))
    yield low, high
    if kind in reading.VALUES:
        frame = pl.DataFrame({"x": [label]}, schema={"x": pl.String}).select(reading._bounds("x", kind, set()))
        yield frame.row(0)


@pytest.mark.parametrize(("kind", "label", "low", "high"), LABELS)
def test_the_ends_of_a_label_are_those_of_its_grammar(kind: str, label: str | None, low: Any, high: Any) -> None:
    for found in both_readers(kind, label):
        assert found == (low, high)
    database = Database.in_memory()
    ends = {"x_low": pa.array([low], writing.ARROW[kind]), "x_high": pa.array([high], writing.ARROW[kind])}
    database.register("written", pa.table({"x": pa.array([label], pa.string()), **ends}))
    assert difference_in_bounds(database, "written", {"x": kind}) == ""
    for name in ends:
        for wrong in (None, _other(kind)):
            if ends[name][0].as_py() == wrong:
                continue
            database.register(
                "written",
                pa.table({"x": pa.array([label], pa.string()), **ends, name: pa.array([wrong], writing.ARROW[kind])}),
            )
            assert "1 labels of column 'x'" in difference_in_bounds(database, "written", {"x": kind}), (name, wrong)


def _other(kind: str) -> Any:
    moment = dt.datetime(2001, 2, 3, 4, 5)
    return {"integer": 77, "number": math.pi, "timestamp": moment}.get(kind, moment.date())


@pytest.mark.parametrize("form", FORMS)
def test_read_finds_the_bounds_that_a_release_does_not_have(tmp_path: Path, form: str) -> None:
    """For columns that are cut freely; a hierarchy does not say in its labels what it is."""
    for columns in (["age", "weight"], ["day", "at"]):
        source = table(9)
        typed = anon.run(settings(tmp_path / "typed", columns, FORMS[form] | {"bounds": True}), source, overwrite=True)
        plain = anon.run(settings(tmp_path / "plain", columns, FORMS[form]), source, overwrite=True)
        found = anon.read(plain.release or "").collect()
        assert found.equals(anon.read(str(typed.release)).collect())
        assert {f"{name}_low" for name in columns} < set(found.columns)
    plain = anon.run(settings(tmp_path / "plain", ["whole", "word"], FORMS[form]), source, overwrite=True)
    assert "whole_low" not in anon.read(plain.release or "").collect_schema().names()


def test_read_of_a_bucketized_release_has_every_possible_value_of_each_individual(tmp_path: Path) -> None:
    source = table(10)
    result = anon.run(settings(tmp_path, ["age"], {"form": "bucketized"}), source)
    found = anon.read(tmp_path / "out").collect()
    values = result.scan("sensitive").collect()
    groups = values.group_by("group").agg(n=pl.col("count").sum())
    assert found.columns == ["age", "age_low", "age_high", "stay", "group", "disease", "count"]
    share = found.join(groups, on="group").select((pl.col("count") / pl.col("n")).sum()).item()
    assert share == pytest.approx(source.height)
    assert found["stay"].n_unique() == source.height


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ({"quasi_identifiers": ["age"], "sensitive": "Age_Low"}, "columns.sensitive.Age_Low"),
        ({"quasi_identifiers": ["age", "age_high"], "sensitive": "s"}, "columns.quasi_identifiers[1]"),
        ({"quasi_identifiers": ["age"], "sensitive": "s", "keep": "age_low"}, "columns.keep[0]"),
    ],
)
def test_a_column_named_like_a_bound_is_refused(tmp_path: Path, columns: dict[str, Any], where: str) -> None:
    config = settings(tmp_path, [], {"bounds": True}) | {"columns": {"individual": "row"} | columns}
    with pytest.raises(ConfigError) as refused:
        anon.run(config, table(1))
    assert [problem.path for problem in refused.value.problems] == [where]
    assert "a bound of age" in str(refused.value)


def test_exact_labels_have_no_bounds(tmp_path: Path) -> None:
    config = settings(tmp_path, ["age"], {"bounds": True, "form": "bucketized", "labels": "exact"})
    with pytest.raises(ConfigError, match=r"release\.bounds: found true with exact labels"):
        anon.run(config | {"privacy": [{"group_size": {"k": 5}}]}, table(1))


def test_decades_and_centuries_have_their_first_and_last_day(house: House) -> None:
    days = [dt.date(1910 + row % 90, 3, 9) for row in range(180)]
    table = pa.table({"born": days, "disease": ["Flu", "HIV"] * 90})
    columns = {
        "individual": "row",
        "quasi_identifiers": {"born": {"calendar": ["year", "decade", "century"]}},
        "sensitive": ["disease"],
    }
    house.run(table, columns=columns, privacy=[{"k_anonymity": {"k": 15}}], release__bounds=True)
    found = {(row["born"], row["born_low"], row["born_high"]) for row in house.released().to_pylist()}
    wide = {(label, low, high) for label, low, high in found if label and len(label) == 9}
    assert wide and all(
        label == f"{low:%Y}-{high:%Y}" and (low.month, low.day, high.month, high.day) == (1, 1, 12, 31)
        for label, low, high in wide
    )
