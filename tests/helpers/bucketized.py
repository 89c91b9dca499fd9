"""Bucketized releases as plain rows, their canonical numbers by brute force, and a search that deals people to groups
as a test wants it: shared by the tests of this form. Outside the way of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from anon.cube import Cube
from anon.recoding.assignment import Assignment
from anon.recoding.outcome import Outcome
from anon.search import dispatch
from tests.helpers.release import Rows, canonical_key, comparable

Deal = Callable[[int], list[int]]  # the groups of so many records, in the order of the records


def released(folder: Path) -> tuple[Rows, Rows]:
    """The rows of `qi` and of `sensitive`."""
    qi, sensitive = (pq.ParquetFile(folder / f"{name}.parquet").read().to_pylist() for name in ("qi", "sensitive"))
    return qi, sensitive


def values_of(sensitive: Rows, column: str) -> dict[int, Counter[Any]]:
    """How often each group has each value."""
    found: dict[int, Counter[Any]] = {}
    for row in sensitive:
        found.setdefault(row["group"], Counter())[row[column]] += row["count"]
    return found


def canonical_numbers(qi: Rows, sensitive: Rows, labels: list[str], keep: list[str], column: str) -> list[int]:
    """The groups in canonical order: by sorted quasi-identifiers, then by sensitive counts, then by kept columns."""
    own: dict[int, Rows] = {}
    for row in qi:
        own.setdefault(row["group"], []).append(row)
    held: dict[int, Rows] = {}
    for row in sensitive:
        held.setdefault(row["group"], []).append(row)

    def key(group: int) -> Any:
        by_labels, by_rows = canonical_key(labels), canonical_key([*labels, *keep])
        counts = sorted(held[group], key=canonical_key([column]))
        told = [[*canonical_key([column])(row), row["count"]] for row in counts]
        return sorted(map(by_labels, own[group])), told, sorted(map(by_rows, own[group]))

    return sorted(own, key=key)


def assert_canonical(qi: Rows, sensitive: Rows, labels: list[str], keep: list[str], column: str) -> None:
    """Rows in the order of their columns, groups in that of their content."""
    assert qi == sorted(qi, key=canonical_key([*labels, *keep, "group"])) or _unlike_itself(qi)
    assert sensitive == sorted(sensitive, key=canonical_key(["group", column]))
    assert canonical_numbers(qi, sensitive, labels, keep, column) == list(range(len({row["group"] for row in qi})))


def _unlike_itself(rows: Rows) -> bool:
    return any(comparable(value) == "nan" for row in rows for value in row.values())


def records(cube: Cube) -> np.ndarray[Any, Any]:
    """Every individual of a cube as a record of codes, in canonical order [columns, individuals]."""
    rows = cube.records.read(0, cube.records.count)
    width = len(cube.domains) + 1
    if cube.counted:
        rows = np.repeat(rows, rows[cube.people_at].astype(np.int64), axis=1)
    rows = rows[:width]
    return rows[:, np.lexsort(rows[::-1])]


@contextmanager
def dealing(deal: Deal, edit: Callable[[Any], Any] = lambda rows: rows) -> Iterator[None]:
    """In place of the partition search one that puts people where it is told; `edit` changes who they are."""

    def search(config: Any, cube: Cube, values: Any, budget: Any, *_: Any) -> Outcome:
        rows = edit(records(cube))
        assignment = Assignment("merge", cube.domains, budget.spill)
        group = np.array(deal(rows.shape[1]))
        for some in np.array_split(np.arange(len(group)), 3):  # in pieces, and an entry for each
            assignment.add(rows[:, some], group[some], np.ones(len(some), np.int64))
        return Outcome(assignment, None, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "search", search)
        yield
