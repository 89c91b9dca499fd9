"""Verification refuses bucketized releases that are unsafe, or that are not what was meant to be written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest

from anon.config import load
from anon.errors import VerificationError
from tests.helpers import bucketized
from tests.helpers import release as helpers
from tests.helpers.staged import Staged
from tests.helpers.staged import staged as stage

Random = random.Random
Pair = tuple[pa.Table, pa.Table]
COLUMNS = {"individual": "row", "quasi_identifiers": {"age": {}, "sex": {"suppress": True}}, "sensitive": ["d"],
           "keep": ["h"]}  # fmt: skip
PRIVACY = [{"group_size": {"k": 3}}, {"l_diversity": {"kind": "distinct", "l": 2}}]
CASES = 8  # of each kind of change


def source(count: int = 60) -> pa.Table:
    rng = Random(1)
    return pa.Table.from_pylist(
        [{"age": rng.randint(0, 9), "sex": rng.choice("fm"), "d": rng.choice("abc"), "h": i % 7} for i in range(count)]
    )


@pytest.fixture(scope="module", params=["labels", "exact", "dealt"])
def staged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staged]:
    folder, copy = tmp_path_factory.mktemp("staged"), tmp_path_factory.mktemp("copy")
    labels = "generalized" if request.param == "labels" else "exact"
    given = {"columns": COLUMNS, "privacy": PRIVACY, "release__form": "bucketized", "release__labels": labels}
    dealing = bucketized.dealing(lambda count: [at % 12 for at in range(count)])
    with (
        dealing if request.param == "dealt" else nullcontext(),
        stage(copy, lambda: helpers.run(folder, source(), **given)) as found,
    ):
        yield found


def edited(table: pa.Table, column: str, edit: Callable[[list[Any]], None]) -> pa.Table:
    values = table[column].to_pylist()
    edit(values)
    at = table.schema.names.index(column)
    return table.set_column(at, column, pa.array(values, table.schema.field(column).type))


def in_order(pair: Pair) -> Pair:
    """Rows in canonical order, so that only what they say is wrong."""
    qi, sensitive = pair
    ordered = [
        pa.Table.from_pylist(sorted(table.to_pylist(), key=helpers.canonical_key(names)), table.schema)
        for table, names in ((qi, qi.schema.names), (sensitive, sensitive.schema.names))
    ]
    return ordered[0], ordered[1]


def move_somebody(rng: Random, pair: Pair) -> Pair:
    """Two people of different groups change places."""

    def swap(groups: list[Any]) -> None:
        one = rng.randrange(len(groups))
        two = rng.choice([i for i, group in enumerate(groups) if group != groups[one]])
        groups[one], groups[two] = groups[two], groups[one]

    moved = edited(pair[0], "group", swap)
    same = sorted(map(str, moved.to_pylist())) == sorted(map(str, pair[0].to_pylist()))
    return move_somebody(rng, pair) if same else in_order((moved, pair[1]))


def renumber_groups(rng: Random, pair: Pair) -> Pair:
    """The numbers of two neighbours exchanged, in both tables."""
    groups = sorted(set(pair[1]["group"].to_pylist()))
    one = rng.choice(groups[:-1])
    other = {one: one + 1, one + 1: one}
    new = [
        table.set_column(
            table.schema.names.index("group"), "group",
            pa.array([other.get(g, g) for g in table["group"].to_pylist()], pa.int64()),
        )
        for table in pair
    ]  # fmt: skip
    return in_order((new[0], new[1]))


def leave_a_gap(rng: Random, pair: Pair) -> Pair:
    edge = rng.randint(1, 3)
    qi, sensitive = (
        edited(table, "group", lambda gs: gs.__setitem__(slice(None), [g + (g >= edge) for g in gs])) for table in pair
    )
    return qi, sensitive


def change_a_count(rng: Random, pair: Pair) -> Pair:
    at = rng.randrange(len(pair[1]))
    return pair[0], edited(pair[1], "count", lambda counts: counts.__setitem__(at, counts[at] + rng.choice([1, -1])))


def swap_values_of_groups(rng: Random, pair: Pair) -> Pair:
    """A person's value goes to another group and one comes back: every sum is as before."""
    rows = pair[1].to_pylist()
    one, two = next(
        (a, b) for a in rng.sample(rows, len(rows)) for b in rng.sample(rows, len(rows))
        if a["group"] != b["group"] and a["d"] != b["d"]
    )  # fmt: skip
    moved: dict[tuple[int, str], int] = {(row["group"], row["d"]): row["count"] for row in rows}
    for group, gone, come in ((one["group"], one["d"], two["d"]), (two["group"], two["d"], one["d"])):
        moved[group, gone] -= 1
        moved[group, come] = moved.get((group, come), 0) + 1
    listed = [{"group": g, "d": d, "count": n} for (g, d), n in sorted(moved.items()) if n]
    table = pa.Table.from_pylist(listed, pair[1].schema)
    return swap_values_of_groups(rng, pair) if table == pair[1] else (pair[0], table)


def split_a_count(rng: Random, pair: Pair) -> Pair:
    """A value is told twice in a group."""
    rows = pair[1].to_pylist()
    at = rng.choice([i for i, row in enumerate(rows) if row["count"] > 1])
    twice = [rows[at] | {"count": rows[at]["count"] - 1}, rows[at] | {"count": 1}]
    split = sorted([*rows[:at], *rows[at + 1 :], *twice], key=lambda row: (row["group"], row["d"], row["count"]))
    return pair[0], pa.Table.from_pylist(split, pair[1].schema)


def disorder(rng: Random, pair: Pair) -> Pair:
    which = rng.randrange(2)
    table = pair[which]
    rows = table.to_pylist()
    at = rng.choice([i for i in range(len(rows) - 1) if rows[i] != rows[i + 1]])
    turned = table.take(pa.array([*range(at), at + 1, at, *range(at + 2, len(rows))]))
    return (turned, pair[1]) if which == 0 else (pair[0], turned)


def change_a_kept_value(rng: Random, pair: Pair) -> Pair:
    at = rng.randrange(len(pair[0]))
    return in_order((edited(pair[0], "h", lambda hours: hours.__setitem__(at, hours[at] + 50)), pair[1]))


def drop_somebody(rng: Random, pair: Pair) -> Pair:
    at = rng.randrange(len(pair[0]))
    return pair[0].take(pa.array([i for i in range(len(pair[0])) if i != at])), pair[1]


def change_the_columns(rng: Random, pair: Pair) -> Pair:
    qi, sensitive = pair
    kinds: list[Callable[[], Pair]] = [
        lambda: (qi.drop_columns("h"), sensitive),
        lambda: (qi.append_column("d", pa.array(["a"] * len(qi))), sensitive),
        lambda: (qi, sensitive.rename_columns(["group", "d", "n"])),
        lambda: (qi, sensitive.append_column("h", pa.array([0] * len(sensitive)))),
        lambda: (qi.set_column(3, "group", qi["group"].cast(pa.int32())), sensitive),
        lambda: (qi, sensitive.set_column(2, "count", sensitive["count"].cast(pa.float64()))),
    ]
    return rng.choice(kinds)()


CHANGE = [
    move_somebody, renumber_groups, leave_a_gap, change_a_count, swap_values_of_groups, split_a_count, disorder,
    change_a_kept_value, drop_somebody, change_the_columns,
]  # fmt: skip


def test_what_was_written_passes(staged: Staged) -> None:
    found = staged.verify(staged.tables)
    assert found.safe and found.groups >= 5 and found.rows == 60


@pytest.mark.parametrize("change", CHANGE, ids=lambda change: change.__name__)
def test_every_release_that_was_not_meant_to_be_written_is_refused(staged: Staged, change: Any) -> None:
    rng = Random(2)
    for _ in range(CASES):
        with pytest.raises(VerificationError, match="nothing was published"):
            staged.verify(change(rng, (staged.tables[0], staged.tables[1])))


def test_an_unsafe_release_is_refused_for_being_unsafe(staged: Staged) -> None:
    """Only the config asks for more than it did: all else is as it was meant to be."""
    strict = load(staged.config.original | {"privacy": [{"group_size": {"k": 40}}]})
    with pytest.raises(VerificationError, match="is not safe"):
        staged.verify(staged.tables, config=strict)


def test_a_stranger_file_beside_the_release_is_refused(staged: Staged) -> None:
    stranger = staged.folder / "release.parquet"
    stranger.write_bytes(b"x")
    try:
        with pytest.raises(VerificationError, match="files beside it"):
            staged.verify(staged.tables)
    finally:
        stranger.unlink()


def test_metadata_in_either_file_is_refused(staged: Staged) -> None:
    for at in (0, 1):
        tables = list(staged.tables)
        tables[at] = tables[at].replace_schema_metadata({"origin": "ward 7"})
        with pytest.raises(VerificationError, match="carries metadata"):
            staged.verify((tables[0], tables[1]))
