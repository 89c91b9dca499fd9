"""The minimality attack: on tiny tables its posteriors are those of all worlds in which a naive search (an oracle)
makes the same release; random worlds come close to them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import anon
from anon.criteria import Criterion
from anon.criteria.group_size import GroupSize
from anon.criteria.l_diversity import l_diversity
from anon.risk import minimality
from anon.risk.minimality import Examination
from anon.risk.people import SampledPeople
from anon.risk.refused_splits import Repeated
from anon.risk.worlds import Judge
from anon.search.partition.public import PublicCuts
from anon.search.partition.search import PartitionSearch
from tests.helpers.cubes import Table
from tests.oracles import minimality as oracle
from tests.oracles.partition import Free, Hierarchy

COLUMNS = [
    [Free([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])],
    [Free([0.0, 1.0, 2.0, 7.0]), Free([0.0, 1.0, 2.0])],
    [Hierarchy(((0, 1), (2, 3))), Free([0.0, 1.0, 2.0])],
    [Hierarchy((0, 1, 2)), Hierarchy(((0, 1), 2))],
]
SIZES = [[6], [4, 3], [4, 3], [3, 3]]
STRUCTURED = [
    (0, [(0,), (1,), (2,), (3,)], "aabb"),  # balanced, in order
    (0, [(0,), (1,), (2,), (3,), (4,), (5,)], "ababab"),
    (0, [(0,), (0,), (1,), (1,), (2,), (2,)], "abcabc"),
    (1, [(0, 0), (1, 1), (2, 2), (3, 0), (0, 1), (1, 2)], "aabbab"),
    (3, [(0, 0), (1, 1), (2, 2), (0, 1), (1, 0), (2, 0)], "abcabc"),
    (2, [(0, 0), (1, 0), (2, 1), (3, 1), (0, 2), (3, 2)], "aaabbb"),
    (0, [(0,), (1,), (2,)], "aaa"),  # one value
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[tuple[int, ...]], str]:
    kind = draw(st.integers(0, 3))
    people = draw(st.integers(2, 7))
    codes = [tuple(draw(st.integers(0, size - 1)) for size in SIZES[kind]) for _ in range(people)]
    return kind, codes, "".join(draw(st.sampled_from("aabbc")) for _ in range(people))


def criterion(k: int, l: Fraction) -> list[Criterion]:
    return [GroupSize(k), l_diversity("s", "frequency", l)]


def safe(k: int, l: Fraction) -> Any:
    def holds(groups: list[list[Any]]) -> bool:
        shares = ([Fraction(group.count(v), len(group)) for v in set(group)] for group in groups)
        return all(len(group) >= k and max(own) * l <= 1 for group, own in zip(groups, shares))

    return holds


def examined(table: Table, k: int, l: Fraction, prefer: str) -> tuple[Examination, Any]:
    criteria, cube = criterion(k, l), table.cube()
    public = PublicCuts.from_cube(cube) if prefer == "public" else None
    codes = np.array([codes for codes, _ in table.rows], np.uint16).T
    recoding = PartitionSearch(cube, criteria, prefer).run().recoding
    group = recoding.assign(np.ascontiguousarray(codes)).astype(np.int64)
    order = np.argsort(group, kind="stable")
    values = np.array([table.values.index(value) for _, value in table.rows])
    texts: list[str | None] = list(table.values)
    sample = SampledPeople(cube.domains, "s", texts, codes[:, order], values[order], group[order], recoding.groups)
    least = max(each.least_group for each in criteria)
    found = Examination(sample, recoding, Judge(criteria, len(texts)), Repeated(cube.domains, prefer, least, public))
    found.run()
    return found, order


def beliefs(found: Examination, order: Any, table: Table) -> list[dict[str, float]]:
    """The posteriors of each row of a table."""
    assert len(found.people_of) == found.examined == len(found.found.found) and not found.found.undecided
    result: list[dict[str, float]] = [{} for _ in table.rows]
    for each in found.found.found:
        for place, person in enumerate(found.people_of[each.group].tolist()):
            row = each.belief[place if len(each.belief) > 1 else 0]
            result[order[person]] = {table.values[c]: p for c, p in zip(each.codes.tolist(), row.tolist()) if p}
    return result


@settings(max_examples=250, deadline=None)
@given(
    cases(),
    st.sampled_from([1, 2]),
    st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2)]),
    st.sampled_from(["widest", "balanced", "public"]),
)
@example(STRUCTURED[0], 1, Fraction(2), "widest")
@example(STRUCTURED[1], 1, Fraction(2), "public")
@example(STRUCTURED[2], 2, Fraction(2), "widest")
@example(STRUCTURED[3], 1, Fraction(3, 2), "balanced")
@example(STRUCTURED[4], 1, Fraction(2), "public")
@example(STRUCTURED[5], 2, Fraction(3, 2), "widest")
@example(STRUCTURED[6], 1, Fraction(1), "widest")
def test_posteriors_are_those_of_all_worlds_with_the_same_release(
    case: tuple[int, list[tuple[int, ...]], str], k: int, l: Fraction, prefer: str
) -> None:
    kind, codes, values = case
    table = Table(COLUMNS[kind], list(zip(codes, values)))
    if not safe(k, l)([list(values)]):
        return
    wanted, _, possible = oracle.posteriors(table.rows, table.columns, safe(k, l), prefer, k)
    found, order = examined(table, k, l, prefer)
    assert possible
    for own, truth in zip(beliefs(found, order, table), wanted):
        assert own == pytest.approx({value: float(p) for value, p in truth.items()})


@settings(max_examples=40, deadline=None)
@given(cases(), st.sampled_from(["widest", "public"]))
def test_random_worlds_come_close_and_their_lower_ends_are_not_above(
    case: tuple[int, list[tuple[int, ...]], str], prefer: str
) -> None:
    kind, codes, values = case
    table = Table(COLUMNS[kind], list(zip(codes, values)))
    if not safe(1, Fraction(2))([list(values)]):
        return
    wanted, every, possible = oracle.posteriors(table.rows, table.columns, safe(1, Fraction(2)), prefer, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minimality, "EXACT", 0)
        found, order = examined(table, 1, Fraction(2), prefer)
    if found.found.undecided:
        assert possible < every
        return
    for own, truth in zip(beliefs(found, order, table), wanted):
        for value, p in truth.items():
            assert own.get(value, 0.0) == pytest.approx(float(p), abs=0.2)
    for each in found.found.lowered():
        assert not each.drawn or each.belief.max() < 1


def run(folder: Path, table: pa.Table, **more: Any) -> dict[str, Any]:
    settings = {
        "columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]},
        "privacy": [{"l_diversity": {"kind": "frequency", "l": 2}}],
        "release": {"path": str(folder / "out"), "run": str(folder / "run")},
    }
    told = anon.run(settings | more, table).to_dict()
    return next(attack for attack in told["attacks"] if attack["name"] == "minimality")


def test_a_run_reports_posteriors_above_the_promise(tmp_path: Path) -> None:
    """Half of everybody is promised at most. Age 4 was not cut off with ages 5, so the three do not have two values in
    equal parts: in two thirds of the worlds left, age 4 has b (by enumeration of all worlds)."""
    table = pa.table({"age": [2, 2, 5, 2, 4, 5, 2], "disease": list("babcbac")})
    found = run(tmp_path, table)
    assert found["exact"] and found["breached"] and found["bound"] == 0.5
    assert (found["individuals"], found["largest"]) == (1, pytest.approx(2 / 3))


def test_criteria_and_methods_whose_decisions_are_not_repeated_say_so(tmp_path: Path) -> None:
    table = pa.table({"age": list(range(20)), "disease": list("abcd") * 5})
    privacy = [{"ck_safety": {"c": 0.9, "k": 1}}]
    assert run(tmp_path / "a", table, privacy=privacy)["individuals"] is None
    reused = run(tmp_path / "b", table, method={"kind": "partition", "prefer": {"information_gain": "disease"}})
    assert reused["individuals"] is None and "information_gain" in reused["found"]
