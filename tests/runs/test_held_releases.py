"""`check --with`, and what a run says of the release that it replaces."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.errors import ConfigError, SourceError, UnsafeError
from anon.risk import shared_sample
from tests import ROOT
from tests.oracles import together as oracle

ADULT = ROOT / "hierarchies" / "adult"
PRIVACY = [{"k_anonymity": {"k": 2}}, {"l_diversity": {"kind": "frequency", "l": 2}}]


ROBUST = [{"r_robustness": {"r": 1.5, "priors": [{"estimate": ["age"], "smoothing": 100}]}}]


def config(folder: Path, name: str, source: str = "", **changes: Any) -> dict[str, Any]:
    return {
        "source": {"path": str(folder / f"{source or name}.parquet")},
        "columns": {"individual": "person", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]},
        "privacy": PRIVACY,
        "release": {"path": str(folder / name)},
    } | changes


def table(seed: int, people: list[int]) -> pa.Table:
    """The rows of some of twelve people, of whom each has one age and one disease."""
    rng = np.random.default_rng(seed)
    ages, diseases = rng.permutation(12), rng.permutation(["flu", "cold", "HIV"] * 4)
    return pa.table(
        {
            "person": [f"p{who}" for who in people],
            "age": [int(ages[who]) for who in people],
            "disease": [str(diseases[who]) for who in people],
        }
    )


def write(folder: Path, name: str, rows: pa.Table) -> pa.Table:
    pq.write_table(rows, folder / f"{name}.parquet")
    return rows


def published(release: Path, rows: pa.Table) -> oracle.Release:
    """The groups of a release by the labels of ages, as an outsider reads them."""
    groups, members = defaultdict(list), defaultdict(list)
    for row in pq.read_table(release / "release.parquet").to_pylist():
        groups[row["age"]].append(row["disease"])
    for row in rows.to_pylist():
        members[next(label for label in groups if covers(label, row["age"]))].append(row["person"])
    return [(members[label], values) for label, values in groups.items()]


def covers(label: str, age: int) -> bool:
    if label == "*":
        return True
    if label.startswith("<="):
        return age <= int(label[2:])
    if label.startswith(">="):
        return age >= int(label[2:])
    low, _, high = label.partition("-")
    return int(low) <= age <= int(high or low)


def some_people(seed: int, times: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [sorted(rng.permutation(12)[:9].tolist()) for _ in range(times)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("times", [2, 3])
def test_small_releases_are_held_together_as_enumeration_does(seed: int, times: int, tmp_path: Path) -> None:
    releases, names = [], "abc"[:times]
    for name, people in zip(names, some_people(seed, times)):
        rows = write(tmp_path, name, table(seed, people))
        anon.run(config(tmp_path, "now", name), overwrite=True)
        for kind in ("", "-run"):
            shutil.copytree(tmp_path / f"now{kind}", tmp_path / f"{name}{kind}")
        releases.append(published(tmp_path / name, rows))
    *earlier, last = names
    held = [tmp_path / name for name in earlier]
    checked = anon.check(config(tmp_path, last), tmp_path / last, held_with=held)
    facts, expected = checked.to_dict()["together"], oracle.figures(releases)
    assert facts["exact"]
    for name in ("individuals", "one_value", "two_values"):
        assert facts[name] == expected[name]
    assert facts["largest_belief"] == pytest.approx(float(expected["largest_belief"]))
    assert checked.safe == (expected["largest_belief"] <= Fraction(1, 2))


def two_releases(folder: Path, first: pa.Table, second: pa.Table, **changes: Any) -> dict[str, Any]:
    """Two releases at their own places, each with a key of its own; return what they reveal together."""
    for name, rows in (("a", first), ("b", second)):
        write(folder, name, rows)
        anon.run(config(folder, name, **changes))
    return anon.check(config(folder, "b", **changes), folder / "b", held_with=folder / "a").to_dict()["together"]


def adult_samples(adult: pa.Table) -> list[pa.Table]:
    """Two overlapping samples of nine tenths of the table."""
    rng, rows = np.random.default_rng(7), adult.append_column("person", pa.array(range(adult.num_rows)))
    return [rows.take(np.sort(rng.permutation(rows.num_rows)[: int(rows.num_rows * 0.9)])) for _ in range(2)]


ADULT_CHANGES: dict[str, Any] = {
    "columns": {
        "individual": "person",
        "quasi_identifiers": {
            "age": {},
            "sex": {"suppress": True},
            "race": {"suppress": True},
            "education": {"hierarchy": str(ADULT / "education.csv")},
            "marital_status": {"hierarchy": str(ADULT / "marital_status.csv")},
        },
        "sensitive": ["occupation"],
    },
    "privacy": [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "frequency", "l": 3}}],
}


def test_two_samples_of_adult_that_are_safe_alone_are_not_safe_together(adult: pa.Table, tmp_path: Path) -> None:
    facts = two_releases(tmp_path, *adult_samples(adult), **ADULT_CHANGES)
    both = ("individuals", "one_value", "two_values", "largest_belief", "exact")
    assert {name: facts[name] for name in both} == {
        "individuals": 36_636, "one_value": 10, "two_values": 41, "largest_belief": 1.0, "exact": False,
    }  # fmt: skip
    assert 1_000 < facts["certainly_over"] < facts["over"]


def test_a_run_reports_the_same_of_the_release_that_it_replaces(tmp_path: Path) -> None:
    first, second = (table(3, people) for people in some_people(3, 2))
    expected = two_releases(tmp_path, first, second)
    for rows in (first, second):
        write(tmp_path, "now", rows)
        ran = anon.run(config(tmp_path, "now"), overwrite=True)
    assert ran.to_dict()["together"] == expected
    (warning,) = [each for each in ran.to_dict()["warnings"] if each["code"] == "intersection"]
    assert warning["count"] == expected["individuals"]
    assert f"leaves {expected['one_value']} of them with one possible value" in warning["text"]
    report = json.loads((tmp_path / "now-run" / "report.json").read_text())
    assert report["summary"]["together"] == expected
    assert "individuals are in at least two of the 2 releases" in (tmp_path / "now-run" / "report.html").read_text()


def test_a_run_compares_everybody_if_composition_must_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_sample, "MOST", 5)
    first, second = (table(3, people) for people in some_people(3, 2))
    expected = two_releases(tmp_path, first, second)
    write(tmp_path, "now", first)
    anon.run(config(tmp_path, "now"))
    write(tmp_path, "now", second)
    sampled = anon.run(config(tmp_path, "now"), overwrite=True).to_dict()["together"]
    assert sampled["groups_examined"] < sampled["groups"] and "groups_examined" not in expected
    write(tmp_path, "now", first)
    changes = config(tmp_path, "now")
    changes["privacy"] = [*changes["privacy"], {"withstands": {"attacks": ["composition"]}}]
    with pytest.raises(UnsafeError, match=rf"{expected['one_value']} individuals left with one possible value"):
        anon.run(changes, overwrite=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": {"kind": "lattice", "suppress": 0.3}},
        {"release": {"form": "bucketized"}},
        {"release": {"form": "bucketized"}, "method": {"kind": "merge"}, "privacy": ROBUST},
        {"columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}},
    ],
    ids=["suppressed", "bucketized", "merge", "row"],
)  # fmt: skip
def test_every_method_and_form_says_who_is_where(changes: dict[str, Any], tmp_path: Path) -> None:
    rows, place = table(5, list(range(12))), changes.pop("release", {})
    for name, own in (("a", rows), ("b", rows.slice(0, 11))):
        write(tmp_path, name, own)
        anon.run(config(tmp_path, name, release={"path": str(tmp_path / name), **place}, **changes))
    settings = config(tmp_path, "b", release={"path": str(tmp_path / "b"), **place}, **changes)
    saved = tmp_path / "b-run" / "prior-1.csv"
    prior = saved if saved.exists() else None
    facts = anon.check(settings, tmp_path / "b", held_with=tmp_path / "a", prior=prior).to_dict()["together"]
    assert 2 <= facts["individuals"] <= 11 and facts["contradictory"] == 0


def test_the_file_of_members_has_neither_names_nor_values_and_is_private(tmp_path: Path) -> None:
    write(tmp_path, "a", table(1, list(range(12))))
    anon.run(config(tmp_path, "a"))
    run = tmp_path / "a-run"
    assert (run.stat().st_mode & 0o777, (run / "members.key").stat().st_mode & 0o077) == (0o700, 0)
    members = pq.read_table(run / "members.parquet")
    assert members.schema.names == ["who", "g"] and members.num_rows == 12
    assert not list((tmp_path / "a").glob("members*"))


def test_a_key_is_taken_over_by_the_release_that_replaces_another(tmp_path: Path) -> None:
    keys = []
    for people in (range(12), range(11)):
        write(tmp_path, "a", table(1, list(people)))
        anon.run(config(tmp_path, "a"), overwrite=True)
        keys.append((tmp_path / "a-run" / "members.key").read_text())
    assert keys[0] == keys[1] and len(keys[0]) == 64


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a", table(1, list(range(12))))
    write(tmp_path, "b", table(1, list(range(11))))
    anon.run(config(tmp_path, "a", release={"path": str(tmp_path / "a"), "members": False}))
    anon.run(config(tmp_path, "b"))
    with pytest.raises(ConfigError, match="does not say who is in which group"):
        anon.check(config(tmp_path, "b"), tmp_path / "b", held_with=tmp_path / "a")
    shutil.rmtree(tmp_path / "a-run")
    with pytest.raises(ConfigError, match="no run folder lists the files"):
        anon.check(config(tmp_path, "b"), tmp_path / "b", held_with=tmp_path / "a")
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(ConfigError, match="where nothing is"):
        anon.check(config(tmp_path, "b"), tmp_path / "b", held_with=tmp_path / "a")
    anon.run(config(tmp_path, "a"))
    write(tmp_path, "b", table(1, list(range(10))))
    with pytest.raises(SourceError, match="source has changed since the release"):
        anon.check(config(tmp_path, "b"), tmp_path / "b", held_with=tmp_path / "a")
    other = {"columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}}
    anon.run(config(tmp_path, "c", "a", **other))
    with pytest.raises(ConfigError, match="known by other columns"):
        anon.check(config(tmp_path, "c", "a", **other), tmp_path / "c", held_with=tmp_path / "a")


def test_a_changed_value_is_a_contradiction(tmp_path: Path) -> None:
    rows = table(1, list(range(12)))
    changed = rows.set_column(2, "disease", pa.array(["new", *rows.column("disease").to_pylist()[1:]]))
    facts = two_releases(tmp_path, rows, changed, privacy=PRIVACY[:1])
    assert facts["contradictory"] > 0 and not facts["exact"]
    checked = anon.check(config(tmp_path, "b", privacy=PRIVACY[:1]), tmp_path / "b", held_with=tmp_path / "a")
    assert not checked.safe and "contradictory_values" in codes(checked)


def codes(checked: Any) -> list[str]:
    return [warning["code"] for warning in checked.to_dict()["warnings"]]


def test_ids_of_another_kind_are_refused(tmp_path: Path) -> None:
    rows = table(1, list(range(12)))
    for name, ids in (("a", pa.array(range(12))), ("b", pa.array([str(float(who)) for who in range(12)]))):
        write(tmp_path, name, rows.set_column(0, "person", ids))
        anon.run(config(tmp_path, name))
    with pytest.raises(ConfigError, match="known by whole numbers; expected text, as in the first release"):
        anon.check(config(tmp_path, "b"), tmp_path / "b", held_with=tmp_path / "a")


def test_releases_in_which_nobody_is_recognized_are_not_exact(tmp_path: Path) -> None:
    rows = table(1, list(range(12)))
    for name in "ab":
        ids = pa.array([f"{name}{who}" for who in range(12)])
        write(tmp_path, name, rows.set_column(0, "person", ids))
        anon.run(config(tmp_path, name))
    checked = anon.check(config(tmp_path, "b"), tmp_path / "b", held_with=tmp_path / "a")
    facts = checked.to_dict()["together"]
    assert (facts["individuals"], facts["exact"]) == (0, False) and "nobody_recognized" in codes(checked)


def test_rows_that_are_alike_are_not_taken_for_each_other(tmp_path: Path) -> None:
    by_row = {"columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}}
    rng = np.random.default_rng(1)
    ages, diseases = [at // 2 for at in range(12)] + [20, 30], rng.permutation(["flu", "cold", "HIV"] * 5)[:14]
    rows = pa.table({"age": ages, "disease": [str(each) for each in diseases]})
    for name, own in (("a", rows), ("b", rows.take(pa.array(rng.permutation(14))).slice(0, 14))):
        write(tmp_path, name, own)
        anon.run(config(tmp_path, name, privacy=PRIVACY[:1], **by_row))
    settings = config(tmp_path, "b", privacy=PRIVACY[:1], **by_row)
    checked = anon.check(settings, tmp_path / "b", held_with=tmp_path / "a")
    facts = checked.to_dict()["together"]
    assert (facts["individuals"], facts["not_compared"]) == (2, 24)
    assert not facts["exact"] and facts["contradictory"] == 0 and "rows_not_compared" in codes(checked)


def test_releases_without_a_sensitive_column_can_be_replaced(tmp_path: Path) -> None:
    columns = {"individual": "person", "quasi_identifiers": {"age": {}}}
    settings = config(tmp_path, "a", columns=columns, privacy=PRIVACY[:1])
    for people in (range(12), range(11)):
        write(tmp_path, "a", table(1, list(people)))
        ran = anon.run(settings, overwrite=True)
    assert "together" not in ran.to_dict() and "intersection" in codes(ran)
    with pytest.raises(ConfigError, match="without a sensitive column"):
        anon.check(settings, tmp_path / "a", held_with=tmp_path / "a")
