"""People who are dropped by the partition search where the loss of all falls (`suppress: f`)."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anon
from anon.criteria import KAnonymity, Point, Skyline
from anon.errors import ConfigError, UnsafeError, VerificationError
from anon.recoding import tree
from anon.search.partition import search as engine
from anon.search.partition.dropping import SCALE, Suppression
from tests.conftest import House
from tests.helpers.backends import LOCAL, assert_same_release, at, on_every_backend
from tests.helpers.cubes import Table
from tests.oracles import partition as oracle
from tests.oracles import skyline
from tests.search.test_partition import VALUES, budget, check_counts, leaves, tables

SHARES = [Fraction(1, 20), Fraction(1, 10), Fraction(1, 4), Fraction(1, 3), Fraction(1)]
STRUCTURED = [
    Table([oracle.Free([0.0, 1.0, 2.0, 50.0])], [((code,), "ab"[code % 2]) for code in (0, 0, 1, 1, 2, 2, 3)]),
    Table([oracle.Free([0.0, 9.0, 18.0])], [((1,), "a")] * 20 + [((0,), "b"), ((2,), "b")]),  # two equal tails
    Table([oracle.Hierarchy((0, 1, 2))], [((0,), "a")] * 8 + [((1,), "b")] * 8 + [((2,), "a")]),
    Table([oracle.Hierarchy(((0, 1), (2, (3, 4))))], [((code,), "a") for code in (0, 0, 0, 1, 2, 2, 2, 3, 4, 4)]),
    Table(
        [oracle.Hierarchy(((0, 1), 2)), oracle.Free([0.0, 1.0, 9.0])],
        [((at % 3, 0 if at < 8 else at % 2), VALUES[at % 4]) for at in range(9)] + [((2, 2), "d")],
    ),
    Table([oracle.Free([0.0, 1.0])], [((0,), "a")] * 3 + [((1,), "b")]),  # the table is exactly as small as a group
    Table([oracle.Free([5.0]), oracle.Hierarchy((0, 1))], [((0, 0), "a")] * 6 + [((0, 1), "b")]),
]


def searched(table: Table, criteria: list[Any], share: Fraction, **options: Any) -> Any:
    prefer, limits = options.pop("prefer", "widest"), options.pop("limits", None)
    collapsed = options.pop("collapsed", False)
    suppression = Suppression.from_share(share)
    return engine.PartitionSearch(
        table.cube(collapsed), criteria, prefer, limits, suppression=suppression, **options
    ).run()


def assert_within_budget(recoding: Any, rows: np.ndarray, share: Fraction) -> None:
    """Of the people under every node of the tree at most their share is dropped."""
    leaf = np.zeros(rows.shape[1], np.int64)
    everybody, gone = np.zeros(len(recoding.column), int), np.zeros(len(recoding.column), int)
    group = recoding.assign(rows)
    for row in range(rows.shape[1]):
        at = 0
        while True:
            everybody[at] += 1
            gone[at] += group[row] == recoding.groups
            if recoding.column[at] < 0:
                break
            cuts = recoding.cut[recoding.cut_start[at] : recoding.cut_start[at + 1]]
            part = int(np.searchsorted(cuts, rows[recoding.column[at], row], "right"))
            if recoding.peeled[at]:
                part = part // 2 if part % 2 else (len(cuts) + 1) // 2
            at = int(recoding.child[at]) + part
        leaf[row] = at
    dropped = set(leaf[group == recoding.groups].tolist())
    assert dropped.isdisjoint(leaf[group < recoding.groups].tolist())
    for at in range(len(everybody)):
        if at not in dropped:
            assert gone[at] <= share * int(everybody[at])
    assert recoding.suppressed == gone[0]


def assert_as_defined(
    table: Table, k: int, point: tuple[int, Fraction], share: Fraction, options: dict[str, Any], block: int = 10**6
) -> None:
    known, c = point
    wanted = {value: [(1, known, 0, c)] for value in table.values if c <= 1}

    def safe(groups: list[list[Any]]) -> bool:
        return skyline.safe_k(groups, k) and skyline.safe(groups, wanted)

    rule, prefer = Suppression.from_share(share), options["prefer"]
    wished = oracle.partition(
        table.rows, table.columns, safe, prefer, block, tight=options["tight"], least=k, peel=options["peel"],
        suppression=oracle.Suppression(rule.share, rule.scale),
    )  # fmt: skip
    rules: list[Any] = [KAnonymity(k)]
    rules += [Skyline("s", [[Point(1, known, 0, c)]] * len(table.values), shared=True)] if c <= 1 else []
    with TemporaryDirectory() as spill:
        limits = budget(table, block, options.pop("threads", 1), memory=0, spill=Path(spill))
        if wished is None:
            with pytest.raises(UnsafeError):
                searched(table, rules, share, limits=limits, **options)
            return
        found = searched(table, rules, share, limits=limits, **options)
        check_counts(table, found)
    rows = np.array([codes for codes, _ in table.rows], np.uint16).T.copy()
    assert_within_budget(found.recoding, rows, share)
    uncut_whole = [
        (tuple(None if cell == c.whole() else cell for cell, c in zip(cells, table.columns)), members)
        for cells, members in wished
    ]
    assert leaves(table, found.recoding) == sorted(uncut_whole, key=lambda leaf: [cell or (-1, -1) for cell in leaf[0]])


options = st.fixed_dictionaries({
    "prefer": st.sampled_from(["widest", "balanced", "loss"]),
    "tight": st.booleans(),
    "peel": st.booleans(),
    "collapsed": st.booleans(),
    "threads": st.integers(1, 2),
})  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(
    tables(), st.integers(1, 4), st.tuples(st.integers(0, 2), st.integers(8, 21).map(lambda c: Fraction(c, 20))),
    st.sampled_from(SHARES), options, st.sampled_from([10**6, 12, 5, 1]),
)  # fmt: skip
def test_the_search_drops_people_as_its_naive_definition_does(
    table: Table, k: int, point: tuple[int, Fraction], share: Fraction, options: dict[str, Any], block: int
) -> None:
    assert_as_defined(table, k, point, share, options, block)


@pytest.mark.parametrize("prefer", ["widest", "balanced", "loss"])
@pytest.mark.parametrize("peel", [False, True])
@pytest.mark.parametrize("table", STRUCTURED)
def test_structured_tables(table: Table, prefer: str, peel: bool) -> None:
    for share in (Fraction(1, 9), Fraction(1, 4), Fraction(1)):
        for k, c in ((2, 2), (3, 2), (4, 2), (2, Fraction(2, 3))):
            assert_as_defined(table, k, (0, Fraction(c)), share, {"prefer": prefer, "tight": True, "peel": peel})


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(1, 3), st.sampled_from(SHARES), options, st.sampled_from([10**6, 5]))
def test_groups_that_depend_on_each_other_are_safe_together(
    table: Table, k: int, share: Fraction, options: dict[str, Any], block: int
) -> None:
    points = {value: [(1, 1, 1, Fraction(9, 10))] for value in table.values}
    rules = [KAnonymity(k), Skyline("s", [[Point(1, 1, 1, Fraction(9, 10))]] * len(table.values), shared=True)]
    del options["threads"]
    try:
        found = searched(table, rules, share, limits=budget(table, block), **options)
    except UnsafeError:
        return
    groups = [[table.rows[member][1] for member in members] for _, members in leaves(table, found.recoding)]
    assert skyline.safe_k(groups, k)
    assert skyline.safe(groups, points)
    rows = np.array([codes for codes, _ in table.rows], np.uint16).T.copy()
    assert_within_budget(found.recoding, rows, share)


def test_without_a_share_nobody_is_dropped_and_with_one_the_loss_falls() -> None:
    rows = [((code,), "a") for code in (0, 0, 0, 0, 1, 1, 1, 1, 2)]
    table = Table([oracle.Hierarchy((0, 1, 2))], rows)
    assert searched(table, [KAnonymity(4)], Fraction(0)).recoding.groups == 1
    assert searched(table, [KAnonymity(4)], Fraction(1, 10)).recoding.groups == 1  # 0.9 people
    found = searched(table, [KAnonymity(4)], Fraction(1, 9)).recoding
    assert (found.groups, found.suppressed) == (2, 1)


@pytest.mark.parametrize("share", [Fraction(2, 100), Fraction(1, 3), Fraction(1), Fraction(1, 2**31), Fraction(0)])
def test_shares_are_exact_where_their_denominator_allows_it(share: Fraction) -> None:
    rule = Suppression.from_share(share)
    assert Fraction(rule.share, rule.scale) <= share
    assert rule.scale <= SCALE
    if share.denominator <= SCALE:
        assert Fraction(rule.share, rule.scale) == share


def test_what_is_handed_down_never_exceeds_what_is_left() -> None:
    rng, rule = random.Random(3), Suppression.from_share(Fraction(7, 100))
    for _ in range(300):
        people = rng.randint(1, 10**9)
        share = np.array([rng.randint(0, rule.share)])
        dropped = rng.randint(0, min(int(rule.most(share, np.array([people]))[0]), people - 1))
        left = rule.left(share, np.array([people]), np.array([dropped]))
        first = rng.randint(0, people - dropped)
        parts = np.array([first, people - dropped - first])
        assert 0 <= left[0] <= share[0]
        assert rule.most(left, parts).sum() <= share[0] * people // rule.scale - dropped


PRIVACY = [{"k_anonymity": {"k": 4}}, {"l_diversity": {"kind": "entropy", "l": 2}}]
PLACES = {"North": ["n1", "n2", "n3"], "South": ["s1", "s2", "s3"]}


def people(rows: int = 300, seed: int = 5) -> pa.Table:
    """The last place of each side is rare."""
    rng = random.Random(seed)
    sides = [rng.choice(["North", "North", "South"]) for _ in range(rows)]
    return pa.table({
        "age": [rng.choice([rng.randint(20, 60), 95]) if rng.random() < 0.03 else rng.randint(20, 60) for _ in sides],
        "place": [rng.choices(PLACES[side], [40, 40, 1])[0] for side in sides],
        "sex": [rng.choices(["f", "m", "x"], [50, 50, 1])[0] for _ in sides],
        "disease": [rng.choice(["Cold", "Flu", "HIV"]) for _ in sides],
    })  # fmt: skip


def made(house: House, rows: pa.Table, method: dict[str, Any], **changes: Any) -> dict[str, Any]:
    house.folder.mkdir(exist_ok=True)
    file = house.folder / "place.csv"
    file.write_text("".join(f"{leaf};{side};*\n" for side, listed in PLACES.items() for leaf in listed))
    builders = {"age": {}, "place": {"hierarchy": str(file)}, "sex": {"suppress": True}}
    columns = {"individual": "row", "quasi_identifiers": builders, "sensitive": ["disease"]}
    house.write(rows)
    method = {"kind": "partition", **method}
    return house.config(**({"columns": columns, "privacy": PRIVACY, "method": method} | changes))


def released(house: House, name: str = "out") -> pa.Table:
    return pyarrow.parquet.read_table(house.folder / name / "release.parquet")


@pytest.mark.parametrize("form", ["generalized", "bucketized"])
@pytest.mark.parametrize(
    "method",
    [{}, {"prefer": "loss", "cuts": "ordered", "labels": "tight"}, {"peel": True}, {"prefer": "balanced"}],
    ids=["widest", "ordered", "peel", "balanced"],
)
def test_a_release_says_how_many_are_missing_and_passes_check(house: House, form: str, method: dict[str, Any]) -> None:
    privacy = PRIVACY if form == "generalized" else [{"group_size": {"k": 4}}, PRIVACY[1]]
    config = made(house, people(), method | {"suppress": 0.1}, privacy=privacy)
    config["release"] |= {"form": form}
    facts = anon.run(config).to_dict()
    assert facts["individuals"] + facts["suppressed"] == 300
    assert facts["suppressed"] <= 30
    package = json.loads((house.folder / "out" / "datapackage.json").read_text())
    assert package["suppressed_share"] == facts["suppressed"] / 300
    recoding = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    dropped = [node for node in recoding["nodes"] if node.get("suppressed")]
    assert bool(dropped) == bool(facts["suppressed"]) == ("suppressed" in recoding)
    assert recoding["format"] == (3 if dropped else 2 if any("rest" in node for node in recoding["nodes"]) else 1)
    assert anon.check(config, house.folder / "out").to_dict()["safe"]
    assert anon.explain(house.folder / "out-run").to_dict()


def test_suppression_makes_the_others_finer(house: House) -> None:
    losses = []
    for share in (0, 0.05):
        config = made(house, people(), {"suppress": share})
        suppressed = anon.run(config, overwrite=True).to_dict()["suppressed"]
        losses.append(anon.utility(config, released(house)).to_dict()["loss"]["all"])
    assert suppressed > 0
    assert losses[1] < losses[0]


def test_a_reused_recoding_suppresses_the_same_rows(house: House) -> None:
    suppressed = anon.run(made(house, people(), {"suppress": 0.1})).to_dict()["suppressed"]
    config = made(house, people(), {"kind": "reuse", "run": str(house.folder / "out-run")})
    config["release"] = {"path": str(house.folder / "again"), "run": str(house.folder / "again-run")}
    assert anon.run(config).to_dict()["suppressed"] == suppressed > 0
    assert released(house, "again") == released(house)


def test_verification_finds_people_who_should_be_missing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tree.Recoding.write

    def other(recoding: Any, path: Path) -> None:
        plain(recoding, path)
        lines = path.read_text().splitlines()
        at = next(i for i, line in enumerate(lines) if '"suppressed": true' in line)
        group = next(i for i, line in enumerate(lines) if '"group": 0,' in line)
        labels = [line[: line.index(", ") + 2] for line in (lines[at], lines[group])]
        lines[at], lines[group] = labels[0] + lines[group][len(labels[1]) :], labels[1] + '"suppressed": true},'
        path.write_text("\n".join(lines) + "\n")

    monkeypatch.setattr(tree.Recoding, "write", other)
    with pytest.raises(VerificationError):
        anon.run(made(house, people(), {"suppress": 0.1}))


def test_a_table_that_is_unsafe_as_one_group_may_be_released_without_some(house: House) -> None:
    rows = pa.table({
        "age": [*range(20, 30), *[90] * 3],
        "place": ["n1"] * 13,
        "sex": ["f"] * 13,
        "disease": ["Cold", "Flu", "Flu", "HIV", "Cold"] * 2 + ["HIV"] * 3,
    })  # fmt: skip
    privacy, tighter = ([{"l_diversity": {"kind": "frequency", "l": l}}] for l in (2.5, 2.7))
    with pytest.raises(UnsafeError, match="even the whole table"):
        anon.run(made(house, rows, {}, privacy=tighter))
    facts = anon.run(made(house, rows, {"suppress": 0.25}, privacy=privacy)).to_dict()
    assert facts["safe"]
    with pytest.raises(UnsafeError, match="cannot be split"):
        anon.run(made(house, rows, {"suppress": 0.01}, privacy=tighter), overwrite=True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"method": {"prefer": "public"}}, "method.prefer"),
        ({"method": {"refine": True}}, "method.refine"),
        ({"release": {"one_level": True}}, "release.one_level"),
        ({"release": {"series": "append"}}, "release.series"),
        ({"privacy": [{"t_closeness": {"t": 0.3, "distance": {"kind": "equal"}}}]}, r"privacy\[0\].t_closeness"),
        ({"privacy": [{"delta_disclosure": {"delta": 1.0}}]}, r"privacy\[0\].delta_disclosure"),
    ],
)
def test_what_suppression_does_not_work_with_is_refused(house: House, changes: dict[str, Any], field: str) -> None:
    config = made(house, people(20), {"suppress": 0.1} | changes.get("method", {}))
    config["release"] |= changes.get("release", {})
    config["privacy"] = changes.get("privacy", PRIVACY)
    with pytest.raises(ConfigError, match=rf"{field}: .*method.suppress"):
        anon.run(config)


def test_a_criterion_that_is_not_monotone(house: House) -> None:
    privacy = [{"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 4, "distance": {"kind": "equal"}}}]
    config = made(house, people(), {"suppress": 0.1}, privacy=privacy)
    assert anon.run(config).to_dict()["suppressed"]
    assert anon.check(config, released(house)).to_dict()["safe"]


def test_individuals_with_several_values_are_dropped_with_all_of_them(house: House) -> None:
    rows = pa.concat_tables([people().append_column("id", [[f"p{at}" for at in range(300)]])] * 2)
    config = made(house, rows, {"suppress": 0.1}, privacy=[{"group_size": {"k": 4}}])
    config["columns"] |= {"individual": "id", "multiplicity": "multiset"}
    config["release"] |= {"form": "bucketized"}
    facts = anon.run(config).to_dict()
    assert facts["individuals"] + facts["suppressed"] == 300
    assert facts["suppressed"]
    assert anon.check(config, house.folder / "out").to_dict()["safe"]


@on_every_backend(always=True)
def test_the_same_release_on_every_backend(house: House) -> None:
    """Also with a criterion about all groups together."""
    privacy = [{"k_anonymity": {"k": 4}}, {"ck_safety": {"c": 0.97, "k": 1}}]
    config = made(house, people(600), {"suppress": 0.05}, privacy=privacy)
    assert anon.run(config | {"backend": LOCAL}).to_dict()["suppressed"]
    anon.run(at(house, "again", config))
    assert_same_release(house, "out", "again")
