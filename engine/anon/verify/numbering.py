"""Check from the files whether the groups of a bucketized release are numbered in canonical order: by their sorted
quasi-identifiers, then by their sensitive values and counts, then by their kept columns. No code is shared with the
release that numbered them.

Rows of `qi` are in order already, so equal quasi-identifiers (t) and equal rows (r) are numbered by a count of changes.
Mostly the first row of a group decides its place; if neighbours begin alike, everything that is published of them is
compared. Equal rows of a group are compared at once, as a number and its count. Of two groups with different counts of
it, the one with the larger count comes first, unless the other has nothing after it: a sequence that ends comes first.
So a count c is written as c if it is the last, and as MANY - c elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon.verify.grouped import Grouped, listed

Ints = NDArray[np.int64]
BATCH = 131_072
MANY = 2**60
ROWS, FIRST = "numbered_rows", "numbered_groups"


def groups_out_of_order(grouped: Grouped) -> int:
    """Return the number of groups that come before the one that is numbered before them."""
    _number(grouped)
    pairs = f"SELECT t, lag(t) OVER (ORDER BY g) AS before FROM {FIRST}"
    counted = "SELECT count(*) FILTER (t < before), count(*) FILTER (t = before)"
    wrong, tied = grouped.database.one(f"{counted} FROM ({pairs})")
    return int(wrong) + (_tied_out_of_order(grouped) if tied else 0)


def _number(grouped: Grouped) -> None:
    """Create a view of the rows with their numbers, and a table of the first and the last numbers of each group."""
    kept = [f"k{index}" for index in range(len(grouped.keep))]
    parts = {"t": f"row({listed(grouped.labels)})", "r": f"row({listed([*grouped.labels, *kept])})"}
    changes = listed([f"({row} IS DISTINCT FROM lag({row}) OVER ())::INTEGER AS {name}" for name, row in parts.items()])
    sums = listed([f"(sum({name}) OVER (ROWS UNBOUNDED PRECEDING))::BIGINT AS {name}" for name in parts])
    rows = f"SELECT g, {sums} FROM (SELECT g, {changes} FROM {grouped.VIEW})"
    ends = "min(t) AS t, max(t) AS last_t, max(r) AS last_r"
    for sql in (f"VIEW {ROWS} AS {rows}", f"TABLE {FIRST} AS SELECT g, {ends} FROM {ROWS} GROUP BY g"):
        grouped.database.execute(f"CREATE OR REPLACE TEMP {sql}")


def _tied_out_of_order(grouped: Grouped) -> int:
    """Return the number of neighbours in the wrong order, among those whose first rows have the same
    quasi-identifiers."""
    around = f"SELECT g, t, lag(t) OVER (ORDER BY g) AS b, lead(t) OVER (ORDER BY g) AS a FROM {FIRST}"
    tied = f"SELECT g FROM ({around}) WHERE t = b OR t = a"
    values = (
        f"SELECT c.g, 1, v.code, c.n FROM ({grouped.counts(['g'])}) AS c "
        "JOIN values_0 AS v ON c.s IS NOT DISTINCT FROM v.v"
    )
    facts = " UNION ALL ".join([_runs("t", 2), values, *([_runs("r", 0)] if grouped.keep else [])])
    query = (
        f"SELECT f.g, f.part, f.a, f.b, e.t FROM ({facts}) AS f(g, part, a, b) JOIN {FIRST} AS e USING (g) "
        f"WHERE f.g IN ({tied}) ORDER BY f.g, f.part DESC, f.a"
    )
    wrong, held = 0, np.empty((5, 0), np.int64)
    for batch in grouped.database.query(query).to_arrow_reader(BATCH):
        columns = np.stack([column.to_numpy().astype(np.int64) for column in batch.columns])
        held = np.concatenate([held, columns], axis=1)
        starts = np.flatnonzero(np.append(True, held[0, 1:] != held[0, :-1]))
        if len(starts) > 2:  # the last group may continue in the next batch
            wrong += _wrong_pairs(held[:, : starts[-1]], starts[:-1])
            held = held[:, starts[-2] :]
    return wrong + _wrong_pairs(held, np.flatnonzero(np.append(True, held[0, 1:] != held[0, :-1])))


def _runs(number: str, part: int) -> str:
    """Return SQL for the distinct numbers of the rows of each group, and their counts."""
    counted = f"SELECT g, {number} AS a, count(*) AS n FROM {ROWS} GROUP BY g, a"
    often = f"CASE WHEN a = last_{number} THEN n ELSE {MANY} - n END"
    return f"SELECT g, {part}, a, {often} FROM ({counted}) JOIN {FIRST} USING (g)"


def _wrong_pairs(facts: Ints, starts: Ints) -> int:
    """Return the number of neighbours with the same first number of which the second comes first. Facts are [group,
    part, a, b, first number of the group], and groups begin at these places."""
    length = np.diff(np.append(starts, facts.shape[1]))
    group, first = facts[0, starts], facts[4, starts]
    one = np.flatnonzero((group[1:] == group[:-1] + 1) & (first[1:] == first[:-1]))
    wrong, at = 0, 0
    while len(one):
        two = one + 1
        wrong += int(((length[two] <= at) & (length[one] > at)).sum())
        one = one[(length[one] > at) & (length[two] > at)]
        these, those = facts[1:4, starts[one] + at], facts[1:4, starts[one + 1] + at]
        differ = these != those
        place = differ.argmax(axis=0)
        column = np.arange(len(one))
        wrong += int((these[place, column] > those[place, column]).sum())
        one = one[~differ.any(axis=0)]
        at += 1
    return wrong
