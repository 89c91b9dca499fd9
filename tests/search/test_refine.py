"""The post-pass of a partition (`refine: true`): what it finds, that it is safe with overlapping labels, and that it
does not depend on the order of the rows."""

from __future__ import annotations

import random
import tracemalloc
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from anon.config import load
from anon.config.criteria import CRITERIA as MODELS
from anon.config.criterion import Criterion as Model
from anon.config.support import refuse_unsupported
from anon.criteria import Criterion, KAnonymity, Point, Skyline
from anon.criteria.epsilon_m import EpsilonM
from anon.errors import ConfigError
from anon.search.partition import block, kernels_refine, refine, search
from anon.search.partition.kernels_refine import Pool, near_groups
from tests.conftest import House
from tests.helpers.cubes import Table
from tests.oracles import partition as oracle
from tests.oracles.criteria import of_values
from tests.oracles.overlapping import as_group, beliefs
from tests.search.test_partition import budget

METHOD = {"kind": "partition", "prefer": "loss", "cuts": "ordered", "labels": "tight"}
REFINED = {**METHOD, "refine": True}
COLUMNS: dict[str, Any] = {"individual": "row", "quasi_identifiers": {"x": {}, "y": {}}, "sensitive": ["s"]}
CRITERIA: list[dict[str, Any]] = [
    {"k_anonymity": {"k": 2}},
    {"group_size": {"k": 3}},
    {"l_diversity": {"kind": "distinct", "l": 2}},
    {"l_diversity": {"kind": "frequency", "l": 2}},
    {"l_diversity": {"kind": "entropy", "l": 1.8}},
    {"l_diversity": {"kind": "recursive", "c": 2, "l": 2}},
    {"t_closeness": {"t": 0.3, "distance": {"kind": "equal"}}},
    {"t_closeness": {"t": 0.3, "distance": {"kind": "ordered"}}},
    {"alpha_k": {"alpha": 0.6, "k": 2}},
    {"k_e": {"k": 2, "e": 1}},
    {"variance": {"minimum": 0.2}},
    {"delta_disclosure": {"delta": 1.2}},
]


def table(rows: int, seed: int, keep: bool = False) -> pa.Table:
    """Return rows with many ties."""
    rng, few = random.Random(seed), [1, 1, 1, 2, 3, 5]
    xs = few if rows < 20 else [*few, *range(rows // 10)]
    made = [{"x": rng.choice(xs), "y": rng.choice([0, 0, 4, 5]), "s": rng.randint(0, 2)} for _ in range(rows)]
    extra = {"kept": pa.array([f"p{i}" for i in range(rows)])} if keep else {}
    columns = {name: pa.array([row[name] for row in made]) for name in ("x", "y", "s")}
    return pa.table(columns | extra)


def structured() -> list[pa.Table]:
    """Return a group of exactly k people, all equal, two equal halves, balanced values, and ties at every cut."""
    return [
        pa.table({"x": [1, 2], "y": [0, 0], "s": [0, 1]}),
        pa.table({"x": [1] * 6, "y": [2] * 6, "s": [0, 1] * 3}),
        pa.table({"x": [1] * 4 + [9] * 4, "y": [0] * 8, "s": [0, 1] * 4}),
        pa.table({"x": [1, 1, 1, 1, 1, 2, 2], "y": [0, 0, 0, 0, 0, 0, 7], "s": [0, 1, 2, 0, 1, 2, 0]}),
        pa.table({"x": [1, 1, 1, 5, 5, 5, 5], "y": [0, 4, 4, 4, 4, 0, 0], "s": [0, 1, 1, 0, 0, 1, 1]}),
    ]


def ends(label: str, values: list[int]) -> tuple[int, int]:
    if label == "*":
        return min(values), max(values)
    if label[:2] in ("<=", ">="):
        return (min(values), int(label[2:])) if label[0] == "<" else (int(label[2:]), max(values))
    low, _, high = label.partition("-")
    return int(low), int(high or low)


def released(
    house: House, rows: pa.Table, privacy: list[dict[str, Any]], method: dict[str, Any]
) -> list[dict[str, Any]]:
    keep = {"keep": ["kept"]} if "kept" in rows.column_names else {}
    columns = COLUMNS | keep | {"sensitive": {"s": {"as_categories": True}}}
    config = house.config(columns=columns, privacy=privacy, method=method)
    result = anon.run(config, rows, overwrite=True).to_dict()
    found = pq.read_table(house.folder / "out" / "release.parquet")
    assert result["safe"] and anon.check(config, found).to_dict()["safe"]
    boxes = {name: rows[name].to_pylist() for name in ("x", "y")}
    return [{**row, "box": tuple(ends(row[name], boxes[name]) for name in ("x", "y"))} for row in found.to_pylist()]


def covers(box: Any, person: Any) -> bool:
    return all(low <= value <= high for (low, high), value in zip(box, person))


def lost(rows: list[dict[str, Any]]) -> int:
    return sum(high - low for row in rows for low, high in row["box"])


def name_of(item: dict[str, Any]) -> str:
    ((name, parameters),) = item.items()
    return f"{name}-{next(iter(parameters.values()))}"


@pytest.mark.parametrize("item", CRITERIA, ids=name_of)
def test_knowing_all_quasi_identifiers_tells_no_more_than_the_criterion_allows(
    house: House, item: dict[str, Any]
) -> None:
    """All ways to give rows to people are enumerated; the distribution of everybody's value satisfies the criterion."""
    ((name, parameters),) = item.items()
    overlapping = 0
    for rows in [*(table(7, seed) for seed in range(6)), *structured()]:
        values = rows["s"].to_pylist()
        sized = name in ("k_anonymity", "group_size")
        safe = (lambda group: True) if sized else of_values(item, values)
        if not safe(values) or len(values) < parameters.get("k", 2):
            continue
        found = released(house, rows, [{"k_anonymity": {"k": 2}}, item], REFINED)
        people = list(zip(rows["x"].to_pylist(), rows["y"].to_pylist()))
        boxes = {row["box"] for row in found}
        overlapping += any(sum(covers(box, person) for box in boxes) > 1 for person in people)
        for belief in beliefs(people, [row["box"] for row in found], covers):
            assert max(belief.values()) <= Fraction(1, parameters["k"] if sized else 2)
            assert safe(as_group(belief, [row["s"] for row in found]))
    assert overlapping


@pytest.mark.parametrize("seed", range(3))
def test_less_is_lost_than_without_it_and_the_order_of_rows_does_not_matter(house: House, seed: int) -> None:
    rows = table(400, seed)
    privacy = [{"k_anonymity": {"k": 4}}, {"l_diversity": {"kind": "entropy", "l": 1.7}}]
    plain = released(house, rows, privacy, METHOD)
    refined = released(house, rows, privacy, REFINED)
    written = (house.folder / "out" / "release.parquet").read_bytes()
    assert lost(refined) < lost(plain)
    order = random.Random(seed).sample(range(400), 400)
    assert released(house, rows.take(pa.array(order)), privacy, REFINED) == refined
    assert (house.folder / "out" / "release.parquet").read_bytes() == written


def test_every_individual_is_in_one_group_whose_labels_cover_them(house: House) -> None:
    rows = table(300, 7, keep=True)
    found = released(house, rows, [{"k_anonymity": {"k": 5}}], REFINED)
    assert sorted(row["kept"] for row in found) == sorted(rows["kept"].to_pylist())
    own = {row["kept"]: row for row in rows.to_pylist()}
    for row in found:
        assert covers(row["box"], (own[row["kept"]]["x"], own[row["kept"]]["y"]))
        assert row["s"] == own[row["kept"]]["s"]
    apart = {(own[row["kept"]]["x"], own[row["kept"]]["y"], row["box"]) for row in found}
    assert len(apart) > len({each[:2] for each in apart}), "equal people are in different groups"


def test_the_release_does_not_depend_on_blocks_and_threads(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(500, 3)
    monkeypatch.setattr(block, "REGION", 100)
    privacy = [{"k_anonymity": {"k": 3}}]
    monkeypatch.setattr(refine, "LARGEST", 100)
    monkeypatch.setattr(search, "LARGEST", 100)
    whole = released(house, rows, privacy, REFINED)
    monkeypatch.setattr("anon.search.budget.BLOCK", 300)
    assert released(house, rows, privacy, REFINED) == whole


@pytest.mark.parametrize(
    ("few", "many", "k", "groups"), [(10_000, 30_000, 15_000, {40_000}), (9_000, 21_000, 11_000, {11_000, 19_000})]
)
def test_a_large_group_is_divided_with_every_number_of_threads_or_with_none(
    house: House, monkeypatch: pytest.MonkeyPatch, few: int, many: int, k: int, groups: set[int]
) -> None:
    """Nobody can be cut off, but equal people may be divided. A block of one record would divide no group."""
    rows = pa.table({"x": [0] * few + [1] * many, "s": [0, 1] * ((few + many) // 2)})
    columns = COLUMNS | {"quasi_identifiers": {"x": {}}, "sensitive": {"s": {"as_categories": True}}}
    for threads, memory, held in ((1, "1GB", None), (2, "1GB", None), (2, "400MB", None), (1, "1GB", 1), (2, "1GB", 1)):
        if held:
            monkeypatch.setattr("anon.search.budget.BLOCK", held)
        limits = {"memory": memory, "threads": threads, "temp": "spill"}
        config = house.config(columns=columns, privacy=[{"k_anonymity": {"k": k}}], method=REFINED, limits=limits)
        anon.run(config, rows, overwrite=True)
        found = pq.read_table(house.folder / "out" / "release.parquet").group_by("x").aggregate([([], "count_all")])
        assert set(found["count_all"].to_pylist()) == groups


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("method.refine", {"method": {**REFINED, "labels": "cells"}}),
        ("method.prefer", {"method": {**REFINED, "prefer": "public"}}),
        ("columns.quasi_identifiers.x", {"columns": {**COLUMNS, "quasi_identifiers": {"x": {"intervals": [5]}}}}),
        ("columns.quasi_identifiers.x", {"columns": {**COLUMNS, "quasi_identifiers": {"x": {"suppress": True}}},
                                         "method": {**REFINED, "cuts": "nodes"}}),
        ("columns.quasi_identifiers.x.at_most",
         {"columns": {**COLUMNS, "quasi_identifiers": {"x": {"digits": 3, "at_most": 1}}}}),
        ("columns.sensitive", {"columns": {**COLUMNS, "sensitive": ["s", "t"]}}),
        ("release.one_level", {"release": {"path": "out", "one_level": True}}),
        ("release.form", {"release": {"path": "out", "form": "bucketized"}}),
        ("release.series", {"release": {"path": "out", "series": "append"}}),
        ("backend.kind", {"backend": {"kind": "spark"}}),
        ("privacy[0].ck_safety", {"privacy": [{"ck_safety": {"c": 0.8, "k": 1}}]}),
        ("privacy[0].skyline", {"privacy": [{"skyline": {"points": [{"l": 1, "k": 0, "m": 0, "c": 0.8}]}}]}),
        ("privacy[0].epsilon_m", {"privacy": [{"epsilon_m": {"epsilon": 1, "m": 2}}]}),
        ("privacy[0].l_diversity", {"privacy": [{"l_diversity": {"kind": "entropy", "l": 2, "dont_care": ["0"]}}]}),
    ],
)  # fmt: skip
def test_what_it_does_not_work_with_is_refused(house: House, where: str, change: dict[str, Any]) -> None:
    """Once, with what would be right."""
    given = {"columns": COLUMNS, "privacy": [{"k_anonymity": {"k": 2}}], "method": REFINED}
    with pytest.raises(ConfigError) as refused:
        refuse_unsupported(load(house.config(**(given | change))), run=True)
    problems = [problem for problem in refused.value.problems if problem.path == where]
    assert len(problems) == 1 and "without refine" not in problems[0].expected


def test_a_criterion_allows_labels_that_overlap_only_if_it_says_so_and_is_enumerated_above() -> None:
    assert Model.with_overlaps(SimpleNamespace())  # type: ignore[arg-type]
    plain: Any = SimpleNamespace(dont_care=[])
    allowed = {name for name, model in MODELS.items() if model.about_groups and not model.with_overlaps(plain)}
    assert allowed == {name for item in CRITERIA for name in item}


ONE_VALUE = Skyline("s", [[Point(1, 0, 1, Fraction(4, 5))]] * 2, shared=True)
IN_BANDS = EpsilonM("s", Fraction(1), 2, [Fraction(0), Fraction(1)])


@pytest.mark.parametrize("refused", [ONE_VALUE, IN_BANDS])
def test_criteria_that_groups_cannot_be_divided_by_are_not_passed_over(refused: Criterion) -> None:
    """The config refuses them; what it lets through must not be left out."""
    made = Table([oracle.Free((0, 1, 2, 3))], [((code,), value) for code in range(4) for value in "ab"])
    cube = made.cube()
    found = search.PartitionSearch(cube, [KAnonymity(2), refused], "loss", budget(made), tight=True, refine=True)
    with pytest.raises(AssertionError, match="monotone"):
        found.run()


def test_its_recoding_is_not_reused(house: House) -> None:
    house.write(table(40, 2))
    given: dict[str, Any] = {"columns": COLUMNS, "privacy": [{"k_anonymity": {"k": 3}}]}
    house.run(**given, method=REFINED, release={"path": "first", "run": "first-run"})
    with pytest.raises(ConfigError, match="cannot be reused"):
        house.run(**given, method={"kind": "reuse", "run": str(house.folder / "first-run")})


# The kernels against plain loops


def pool(seed: int, groups: int = 3) -> Pool:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, groups)
    people = int(sizes.sum())
    codes = rng.integers(0, 4, (2, people)).astype(np.uint16)
    codes = np.ascontiguousarray(codes[:, np.lexsort(codes[::-1])])
    scales = np.array([0, 4, 8]), np.array([0, 3, 4, 9, 0, 1, 2, 3])
    group = rng.permutation(np.repeat(np.arange(groups), sizes))
    member = np.argsort(group, kind="stable").astype(np.int32)
    values = rng.integers(0, 3, people).astype(np.int32)
    return Pool(codes, values, 3, scales, np.append(0, np.cumsum(sizes)), member)


def width(given: Pool, members: list[int]) -> int:
    start, scale = given.scales
    total = 0
    for j, codes in enumerate(given.codes):
        own = [int(scale[start[j] + codes[i]]) for i in members]
        total += max(own) - min(own)
    return total


def ordered(given: Pool, members: list[int], column: int, stratified: bool) -> list[int]:
    found = sorted(members, key=lambda i: (given.codes[column][i], i))
    if not stratified:
        return found
    ranks: list[tuple[Fraction, int]] = []
    for at, i in enumerate(found):
        alike = [other for other in found if given.value[other] == given.value[i]]
        ranks.append((Fraction(2 * alike.index(i) + 1, 2 * len(alike)), at))
    return [found[at] for _, at in sorted(ranks)]


def divisions(given: Pool, a: int, b: int, least: int) -> list[tuple[int, list[int], list[int]]]:
    """Return every division of a pool: what it loses, and its two parts."""
    own = [given.member[given.start[g] : given.start[g + 1]].tolist() for g in (a, b)]
    together = own[0] if a == b else own[0] + own[1]
    found = []
    for column in range(2):
        for stratified in (False, True):
            order = ordered(given, together, column, stratified)
            found += [(order[:at], order[at:]) for at in range(least, len(order) - least + 1)]
    for one, other, turned in ((own[0], own[1], False), (own[1], own[0], True)):
        for i in one if a != b and len(one) > least else ():
            parts = [x for x in one if x != i], [*other, i]
            found.append((parts[1], parts[0]) if turned else parts)
    return [(sum(len(part) * width(given, part) for part in parts), *parts) for parts in found]


@pytest.mark.parametrize("seed", range(40))
def test_the_best_ways_to_divide_a_pool_are_found(seed: int) -> None:
    given, least = pool(seed), 1 + seed % 3
    for a, b in ((0, 0), (0, 1), (1, 2)):
        members = [given.member[given.start[g] : given.start[g + 1]].tolist() for g in {a, b}]
        now = sum(len(own) * width(given, own) for own in members)
        every = divisions(given, a, b, least)
        pair = np.array([a]), np.array([b])
        gain, way, place = given.ways(*pair, np.array([now]), least, True, 8)
        best = sorted((now - lost for lost, *_ in every if lost < now), reverse=True)[:8]
        assert gain[0][gain[0] > 0].tolist() == best
        for at in range(len(best)):
            start, member, first = given.parts(*pair, way[:, at].copy(), place[:, at].copy())
            parts = member[: first[0]].tolist(), member[first[0] :].tolist()
            assert start.tolist() == [0, len(member)]
            known = [(sorted(one), sorted(other)) for lost, one, other in every if now - lost == best[at]]
            assert (sorted(parts[0]), sorted(parts[1])) in known


@pytest.mark.parametrize(("most", "seed"), [(64, 0), (64, 1), (3, 2), (3, 3), (1, 4)])
def test_near_groups_are_those_that_grow_least_to_hold_both(
    monkeypatch: pytest.MonkeyPatch, most: int, seed: int
) -> None:
    """At most `most` of each changed group, whose common range is at most half as wide again; the first of equals."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 9, (40, 2))
    high = low + rng.integers(0, 4, (40, 2))
    own, changed = (high - low).sum(axis=1), rng.random(40) < 0.5
    expected = set()
    for x in np.flatnonzero(changed).tolist():
        common = (np.maximum(high[x], high) - np.minimum(low[x], low)).sum(axis=1)
        near = [y for y in range(40) if y != x and own[x] + own[y] and common[y] <= (own[x] + own[y]) * 3 // 2]
        near.sort(key=lambda y: (common[y] - own[y], y))
        expected |= {(min(x, y), max(x, y)) for y in near[:most]}
    monkeypatch.setattr(kernels_refine, "NEAREST", most)
    a, b = near_groups(low, high, own, changed)
    assert list(zip(a.tolist(), b.tolist())) == sorted(expected)


@pytest.mark.parametrize("values", [2, 5_000])
def test_the_memory_of_a_region_is_bounded(monkeypatch: pytest.MonkeyPatch, values: int) -> None:
    """In independent columns all groups are near each other; what is held of pairs does not grow with their number."""
    rng, people, columns = np.random.default_rng(2), 900, 10
    codes = rng.integers(0, 30, (columns, people)).astype(np.uint16)
    codes = np.ascontiguousarray(codes[:, np.lexsort(codes[::-1])])
    start = np.arange(columns + 1) * 30
    scales = start, np.tile(np.arange(30), columns)
    cube: Any = SimpleNamespace(domains=[None] * columns, others=[SimpleNamespace(size=values)])
    rules = refine.Refinement(cube, [KAnonymity(2)], False, 2, scales)
    monkeypatch.setattr(refine, "AT_ONCE", 20_000)
    sensitive = rng.integers(0, values, people).astype(np.uint16)
    pools = refine.Pools(rules, np.vstack([codes, sensitive]), np.arange(people) // 3)
    tracemalloc.start()
    pools.find_divisions()
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pools.divisions.shape[1] <= kernels_refine.NEAREST * 300
    assert held < 10_000_000


@pytest.mark.parametrize("values", [1, 3, 40])
def test_groups_are_counted_alike_in_tables_and_in_lists(monkeypatch: pytest.MonkeyPatch, values: int) -> None:
    rng = np.random.default_rng(values)
    group, value = np.sort(rng.integers(0, 5, 30)), rng.integers(0, values, 30).astype(np.int32)
    group[:5], found = np.arange(5), []
    for counters in (0, 1_000):
        monkeypatch.setattr(refine, "COUNTERS", counters)
        found.append([each.tolist() for each in refine._counted(group, 5, value, values).arrays])
    assert found[0] == found[1]


@pytest.mark.parametrize("change", ["code", "scale"])
def test_codes_outside_their_scale_are_refused(change: str) -> None:
    given = pool(1)
    if change == "code":
        given.codes[1, 3] = 4
    else:
        given.scales[0][1] = 9
    one = np.array([0])
    with pytest.raises(ValueError, match="scale"):
        given.ways(one, one, one, 1, True, 1)
