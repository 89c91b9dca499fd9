"""The deFinetti attack against a plain second implementation, and what a run reports of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.risk import people
from anon.risk.definetti import FITTINGS, ROUNDS, _members, beliefs
from tests.oracles import definetti as oracle

persons = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))  # group, codes, value


@settings(max_examples=150, deadline=None)
@given(st.lists(persons, min_size=1, max_size=14))
def test_beliefs_are_those_of_the_plain_algorithm(table: list[tuple[int, int, int, int]]) -> None:
    table = sorted(table)
    group = np.unique([row[0] for row in table], return_inverse=True)[1]
    counts = np.zeros((int(group.max()) + 1, 3), np.int64)
    np.add.at(counts, (group, [row[3] for row in table]), 1)
    codes = [row[1:3] for row in table]
    members, of = _members(np.array(codes).T, group)
    found = beliefs(members, counts)
    wanted = oracle.believed(codes, group.tolist(), counts.tolist(), ROUNDS, FITTINGS)
    for person, own in enumerate(of.tolist()):
        assert found.belief[own] == pytest.approx(max(wanted[person].values()), abs=1e-6)
        assert wanted[person][int(found.value[own])] == pytest.approx(max(wanted[person].values()), abs=1e-6)


SIGNS = ["a", "b", "c", "d", "e", "f"]


def config(folder: Path, names: list[str]) -> dict[str, Any]:
    """Everybody is in a group of 50 at least, so that what the columns say is not in the groups."""
    return {
        "columns": {"individual": "row", "quasi_identifiers": {name: {} for name in names}, "sensitive": ["disease"]},
        "privacy": [{"group_size": 50}, {"l_diversity": {"kind": "frequency", "l": 2}}],
        "release": {"path": str(folder / "out"), "run": str(folder / "run")},
    }


def related(rows: int) -> pa.Table:
    """Zip codes have their own diseases, and each of six signs goes with one bit of the disease."""
    chance = np.random.default_rng(1)
    zips = chance.integers(0, 20, rows)
    disease = np.where(chance.random(rows) < 0.45, zips % 4, chance.integers(0, 4, rows))
    own = {name: np.where(chance.random(rows) < 0.9, disease >> at % 2, 1) & 1 for at, name in enumerate(SIGNS)}
    return pa.table({"zip": zips, **own, "disease": disease})


def found(report: dict[str, Any], name: str = "definetti") -> dict[str, Any]:
    return next(attack for attack in report["attacks"] if attack["name"] == name)


def test_a_relation_of_age_and_disease_is_learnt_and_breaks_the_promise(tmp_path: Path) -> None:
    attack = found(anon.run(config(tmp_path, ["zip", *SIGNS]), related(2000)).to_dict())
    assert attack["breached"] and attack["bound"] == 0.5 and not attack["exact"]
    assert attack["named"]["50"]["right"] > 0.5 * attack["named"]["50"]["named"] > 0


def test_strict_publishes_nothing_if_the_promise_is_broken(tmp_path: Path) -> None:
    with pytest.raises(anon.errors.UnsafeError, match="definetti"):
        anon.run(config(tmp_path, ["zip", *SIGNS]), related(2000), strict=True)
    assert not (tmp_path / "out").exists()


def test_values_without_a_relation_break_no_promise(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    table = pa.table({name: chance.integers(0, 8, 2000) for name in ("age", "zip", "disease")})
    assert not found(anon.run(config(tmp_path, ["age", "zip"]), table).to_dict())["breached"]


def test_a_large_table_is_sampled_by_groups_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST", 700)
    monkeypatch.setattr(people, "SAMPLED", 700)
    monkeypatch.setattr(people, "SUBTREE", 30)
    attack = found(anon.run(config(tmp_path, ["zip", *SIGNS]), related(2000)).to_dict())
    assert 0 < attack["groups_examined"] < attack["groups"] and "sample" in attack["found"]


def test_the_sample_has_whole_subtrees_and_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    table = related(2000)
    one, other = (
        anon.run(config(tmp_path / name, ["zip", *SIGNS]), rows).to_dict()["attacks"]
        for name, rows in (("a", table), ("b", table.take(list(range(1999, -1, -1)))))
    )
    assert one == other
