"""The tree over codes: every node is one range, null hangs from the root, labels stay distinct."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import ConfigError
from anon.hierarchy import HierarchyTree, interval_rows, write_rows
from tests.helpers.hierarchy import (
    Calendar,
    Digits,
    HierarchyFile,
    Intervals,
    Suppress,
    check_tree,
    children,
    csv_file,
    labels,
    tree_of,
)


def test_null_hangs_from_the_root_and_stays_null_below_it() -> None:
    tree, _ = tree_of(Digits(2), ["10", "11", "20"], null=True)
    assert [tree.label[node] for node in tree.node_at[1]] == [None, "1*", "1*", "2*"]
    assert children(tree, len(tree.label) - 1) == [None, "1*", "2*"]
    assert tree.parent[0] == len(tree.label) - 1


def test_a_column_of_nulls_is_a_tree() -> None:
    tree, order = tree_of(Suppress(), [], null=True)
    assert (tree.label, tree.levels, order) == ((None, "*"), 1, [])


def test_repeated_roots_of_a_file_take_null_in_at_once(tmp_path: Path) -> None:
    tree, _ = tree_of(csv_file(tmp_path, "a;x;*;*\nb;y;*;*\n"), ["a", "b"], null=True)
    assert tree.label == (None, "a", "b", "x", "y", "*")
    assert tree.node_at.tolist() == [[0, 1, 2], [0, 3, 4], [5, 5, 5], [5, 5, 5]]


def test_repeated_labels_are_one_node_and_other_labels_of_one_range_are_a_chain(tmp_path: Path) -> None:
    tree, _ = tree_of(csv_file(tmp_path, "a;a;x;y;*\nb;b;x;y;*\nc;c;z;z;*\n"), ["a", "b", "c"])
    assert tree.label == ("a", "b", "c", "x", "z", "y", "*")
    assert tree.node_at.tolist() == [[0, 1, 2], [0, 1, 2], [3, 3, 4], [5, 5, 4], [6, 6, 6]]
    assert tree.parent.tolist() == [3, 3, 4, 5, 6, 6, -1]
    assert tree.level.tolist() == [0, 0, 0, 2, 2, 3, 4]


def test_common_is_the_lowest_shared_node_and_its_children_are_in_order() -> None:
    tree, _ = tree_of(Intervals([5, 10]), [1, 3, 6, 12])
    found = tree.common(np.array([0, 0, 0, 0]), np.array([0, 1, 2, 3]))
    assert tree.labels[found].tolist() == ["1", "0-4", "0-9", "*"]
    assert children(tree, int(found[2])) == ["0-4", "5-9"]
    assert children(tree, 0) == []


@pytest.mark.parametrize("values", [["F", "*"], ["*", "F"]])
def test_a_data_value_that_equals_the_root_is_refused(values: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        tree_of(Suppress(), values)
    assert str(caught.value).startswith("columns.quasi_identifiers.c.suppress: found 1 labels with two meanings, 1 of")


def test_a_label_that_is_also_another_data_value_is_refused_without_quoting_it() -> None:
    with pytest.raises(ConfigError) as caught:
        HierarchyTree.build([("Smith", "*"), ("Smith", "*"), ("x", "*")], ["a", "b", "Smith"], False)
    assert "1 labels with two meanings, 1 of them also data values" in str(caught.value)
    assert "Smith" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("x", "*"), ("y", "*"), ("x", "*")], "next to each other"),
        ([("x", "p", "*"), ("x", "q", "*"), ("y", "q", "*")], "two parents"),
        ([("x",), ("x",), ("y",)], "last label"),
    ],
)
def test_labels_that_do_not_nest_in_order_are_refused(rows: list[tuple[str, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HierarchyTree.build(rows, ["a", "b", "c"], False)


def test_values_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="next to each other"):
        tree_of(Intervals([5]), [1, 7, 2])


@st.composite
def columns(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    kind = draw(st.sampled_from(["intervals", "decimals", "digits", "calendar", "suppress"]))
    if kind == "intervals":
        values: list[Any] = draw(st.lists(st.integers(-60, 60), min_size=1, unique=True))
        ends = draw(st.tuples(st.none() | st.integers(5, 50), st.none() | st.integers(-50, 4)))
        return Intervals([1, 4, 12], draw(st.integers(-3, 3)), *ends), sorted(values)
    if kind == "decimals":
        values = draw(st.lists(st.floats(-9, 9), min_size=1, unique=True))
        return Intervals([Decimal("0.3"), Decimal("1.5")], top=Decimal("7.7")), sorted(values)
    if kind == "digits":
        return Digits(3), sorted(draw(st.sets(st.text("0123", min_size=3, max_size=3), min_size=1)))
    if kind == "calendar":
        values = sorted(draw(st.sets(st.dates(date(2019, 1, 1), date(2024, 12, 31)), min_size=1)))
        return Calendar(["day", "month", "quarter", "year"]), values
    return Suppress(), sorted(draw(st.sets(st.text("abc"), min_size=1)))


@given(columns(), st.booleans())
def test_every_node_is_a_range_and_the_union_of_its_children(column: tuple[Any, list[Any]], null: bool) -> None:
    check_tree(tree_of(*column, null=null)[0])


@given(columns(), st.booleans(), st.data())
def test_common_is_the_smallest_node_over_both_codes(
    column: tuple[Any, list[Any]], null: bool, data: st.DataObject
) -> None:
    tree, _ = tree_of(*column, null=null)
    code = st.integers(0, tree.node_at.shape[1] - 1)
    low, high = sorted(data.draw(st.tuples(code, code)))
    covering = [node for node in range(len(tree.label)) if tree.low[node] <= low and high <= tree.high[node]]
    smallest = min(covering, key=lambda node: (tree.high[node] - tree.low[node], tree.level[node]))
    assert tree.common(np.array([low]), np.array([high])).tolist() == [smallest]


@given(columns())
def test_equal_labels_have_equal_labels_above(column: tuple[Any, list[Any]]) -> None:
    found = labels(column[0], *column[1])
    assert len({len(path) for path in found}) == 1
    for i in range(len(found[0]) - 1):
        assert len({path[i : i + 2] for path in found}) == len({path[i] for path in found})


# Speed

MANY = 32_768


@pytest.mark.parametrize("kind", ["intervals", "decimals", "digits", "calendar", "suppress", "hierarchy"])
def test_the_cost_of_a_full_column_does_not_grow_with_the_square_of_its_values(tmp_path: Path, kind: str) -> None:
    numbers = list(range(MANY))
    write_rows(interval_rows(0, MANY - 1, [5, 10, 100]), tmp_path / "h.csv")
    builder, values = {
        "intervals": (Intervals([5, 10, 100]), numbers),
        "decimals": (Intervals([Decimal("0.1"), Decimal("0.5")]), [n / 7 for n in numbers]),
        "digits": (Digits(5), [f"{n:05}" for n in numbers]),
        "calendar": (Calendar(["day", "month", "year"]), [datetime(1990, 1, 1) + timedelta(hours=n) for n in numbers]),
        "suppress": (Suppress(), numbers),
        "hierarchy": (HierarchyFile(tmp_path / "h.csv"), numbers),
    }[kind]

    def cost(count: int) -> float:
        start = time.process_time()
        tree_of(builder, values[:count], null=True)
        return time.process_time() - start

    assert cost(MANY) < 24 * max(cost(MANY // 8), 0.02), "8 times the values; their square would be 64 times the cost"
