"""Hierarchies: the labels of every builder, files and their mistakes, and the tree over codes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import ConfigError
from anon.hierarchy import (
    HierarchyGap,
    Tree,
    inspect,
    interval_rows,
    parent_rows,
    paths,
    prefix_rows,
    write_rows,
)
from anon.values import text

# Stand-ins with the attributes that the builders of the config have.


@dataclass
class Intervals:
    kind: ClassVar[str] = "intervals"
    intervals: list[Any]
    origin: Any = 0
    top: Any = None
    bottom: Any = None


@dataclass
class Suppress:
    kind: ClassVar[str] = "suppress"
    suppress: bool = True


@dataclass
class HierarchyFile:
    kind: ClassVar[str] = "hierarchy"
    hierarchy: Path


@dataclass
class Digits:
    kind: ClassVar[str] = "digits"
    digits: int


@dataclass
class Calendar:
    kind: ClassVar[str] = "calendar"
    calendar: list[str]


def labels(builder: Any, *values: Any) -> list[tuple[str, ...]]:
    return list(paths(builder, values, "c"))


def tree_of(builder: Any, values: list[Any], null: bool = False) -> tuple[Tree, list[str]]:
    """The tree of a builder and the text of each code but null's."""
    texts = [text(value) for value in values]
    tree, order = Tree.build(paths(builder, values, "c"), texts, null)
    return tree, [texts[i] for i in order]


def children(tree: Tree, node: int) -> list[str | None]:
    return [tree.label[child] for child in tree.child[tree.child_start[node] : tree.child_start[node + 1]]]


def csv_file(folder: Path, content: str | bytes) -> HierarchyFile:
    path = folder / "education.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return HierarchyFile(path)


def refusal(builder: Any, *values: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        paths(builder, values, "c")
    return str(caught.value)


# Values


@given(st.floats(allow_nan=False))
def test_the_text_of_a_float_is_plain_and_reads_back(value: float) -> None:
    assert float(text(value)) == value
    assert "e" not in text(value).lower()


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_equal_numbers_have_equal_texts(value: Decimal) -> None:
    assert Decimal(text(value)) == value
    assert text(value) == text(Decimal(f"{value:f}000"))
    assert text(int(value)) == text(Decimal(int(value)))


# Intervals


def test_the_intervals_of_the_contract() -> None:
    builder = Intervals([5, 10, 20], origin=1, top=85)
    assert labels(builder, 1, 5, 6, 10, 11, 84, 85, 99) == [
        ("1-5", "1-10", "1-20", "*"),
        ("1-5", "1-10", "1-20", "*"),
        ("6-10", "1-10", "1-20", "*"),
        ("6-10", "1-10", "1-20", "*"),
        ("11-15", "11-20", "1-20", "*"),
        ("81-84", "81-84", "81-84", "*"),
        (">=85", ">=85", ">=85", "*"),
        (">=85", ">=85", ">=85", "*"),
    ]


@pytest.mark.parametrize(
    ("builder", "value", "expected"),
    [
        (Intervals([5]), 22, "20-24"),
        (Intervals([5]), -3, "-5..-1"),
        (Intervals([10], origin=-5), 3, "-5..4"),
        (Intervals([1]), 20, "20"),
        (Intervals([1]), -20, "-20"),
        (Intervals([20], top=85), 82, "80-84"),
        (Intervals([20], bottom=18), 19, "18-19"),
        (Intervals([20], bottom=18), 18, "18-19"),
        (Intervals([20], bottom=18), 17, "<=17"),
        (Intervals([20], bottom=18), 2.5, "<18"),
        (Intervals([5], top=86), 85, "85"),
        (Intervals([Decimal("0.75")], origin=Decimal("1.5")), 1.5, "[1.5,2.25)"),
        (Intervals([Decimal("0.1")]), 0.3, "[0.3,0.4)"),
        (Intervals([Decimal("0.1")]), Decimal("0.7"), "[0.7,0.8)"),
        (Intervals([Decimal("0.5")]), 3, "[3,3.5)"),
        (Intervals([5]), 22.0, "[20,25)"),
        (Intervals([5], top=Decimal("84.5")), 84, "[80,84.5)"),
        (Intervals([5], top=10), float("inf"), ">=10"),
        (Intervals([5], bottom=10), float("-inf"), "<10"),
        (Intervals([5]), 10**400, f"{10**400}-{10**400 + 4}"),
    ],
)
def test_the_label_of_a_cell(builder: Intervals, value: Any, expected: str) -> None:
    assert labels(builder, value) == [(expected, "*")]


decimals = st.decimals(-50, 50, places=2)


@given(
    st.lists(decimals, min_size=1, max_size=20),
    st.sampled_from(["0.1", "0.25", "1", "2.5", "7"]),
    st.lists(st.integers(2, 4), max_size=2),
    decimals,
    st.none() | decimals,
    st.booleans(),
)
def test_intervals_agree_with_exact_fractions(
    values: list[Decimal], width: str, factors: list[int], origin: Decimal, top: Decimal | None, as_float: bool
) -> None:
    widths = [Decimal(width)]
    for factor in factors:
        widths.append(widths[-1] * factor)
    given_values = [float(value) for value in values] if as_float else values
    for value, found in zip(values, labels(Intervals(widths, origin, top), *given_values)):
        if top is not None and value >= top:
            assert found == (*[f">={text(top)}"] * len(widths), "*")
            continue
        expected = []
        for w in widths:
            low = Fraction(origin) + (Fraction(value) - Fraction(origin)) // Fraction(w) * Fraction(w)
            high = low + Fraction(w) if top is None else min(low + Fraction(w), Fraction(top))
            assert low <= Fraction(value) < high
            expected.append((low, high))
        bounds = [tuple(Fraction(part) for part in label[1:-1].split(",")) for label in found[:-1]]
        assert bounds == expected


def test_values_that_are_not_numbers_are_counted_and_not_quoted() -> None:
    message = refusal(Intervals([5]), 3, "Smith", True)
    assert message == (
        "columns.quasi_identifiers.c.intervals: found 2 of 3 distinct values that are not numbers; "
        "expected a column of numbers"
    )


def test_a_message_names_the_role_of_the_column() -> None:
    with pytest.raises(ConfigError, match=r"^columns\.sensitive\.cost\.intervals: found 1 of 1"):
        paths(Intervals([5]), ["Smith"], "cost", role="sensitive")  # type: ignore[arg-type]


def test_infinity_needs_an_open_end() -> None:
    message = refusal(Intervals([5]), 3.0, float("inf"), float("nan"))
    assert "2 of 3 distinct values that are infinite or not a number" in message
    assert "`top` and `bottom`" in message


# Suppress, digits, calendar


def test_suppress_gives_the_star() -> None:
    assert labels(Suppress(), "F", "M") == [("*",), ("*",)]


def test_the_digits_of_the_contract() -> None:
    assert labels(Digits(5), "02139") == [("0213*", "021**", "02***", "0****", "*")]
    assert labels(Digits(1), "0", "7") == [("*",), ("*",)]


def test_whole_numbers_of_full_length_are_digits() -> None:
    assert labels(Digits(3), 213) == [("21*", "2**", "*")]
    assert labels(Digits(1), 0, 9) == [("*",), ("*",)]


def test_numbers_without_leading_zeros_are_refused_with_their_count() -> None:
    message = refusal(Digits(5), 2139, 10001)
    assert "columns.quasi_identifiers.c.digits: found 1 of 2 distinct values" in message
    assert "lose their leading zeros" in message
    assert "2139" not in message


@pytest.mark.parametrize("value", ["021399", "0213", "021x9", "0213٣", "", 213999, -2139, 21.39, True])
def test_values_that_are_not_the_digits_are_counted_and_not_quoted(value: Any) -> None:
    message = refusal(Digits(5), "02139", value)
    assert "1 of 2 distinct values that are not exactly 5 digits" in message
    assert text(value) not in message or value == ""


def test_the_calendar_of_the_contract_starts_above_the_day_for_dates() -> None:
    builder = Calendar(["day", "month", "quarter", "year"])
    assert labels(builder, date(2024, 3, 9)) == [("2024-03", "2024-Q1", "2024", "*")]
    assert labels(builder, datetime(2024, 3, 9, 7)) == [("2024-03-09", "2024-03", "2024-Q1", "2024", "*")]


def test_a_sensitive_date_keeps_the_day_that_the_calendar_lists() -> None:
    made = paths(Calendar(["day", "month"]), [date(2024, 3, 9)], "c", role="sensitive")
    assert list(made) == [("2024-03-09", "2024-03", "*")]
    assert list(paths(Calendar(["month"]), [date(2024, 3, 9)], "c", role="sensitive")) == [("2024-03", "*")]


@pytest.mark.parametrize(("month", "quarter"), [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (9, 3), (10, 4), (12, 4)])
def test_the_quarter_of_a_month(month: int, quarter: int) -> None:
    assert labels(Calendar(["quarter"]), date(2024, month, 1)) == [(f"2024-Q{quarter}", "*")]


def test_a_time_with_a_zone_is_labelled_in_utc() -> None:
    new_year = datetime(2024, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    assert labels(Calendar(["day", "year"]), new_year) == [("2023-12-31", "2023", "*")]


def test_a_calendar_refuses_what_is_not_a_date() -> None:
    message = refusal(Calendar(["year"]), date(2024, 1, 1), "2024-05-17")
    assert "columns.quasi_identifiers.c.calendar: found 1 of 2 distinct values that are not dates" in message
    assert "05-17" not in message


# Files

EDUCATION = "Bachelors;Higher;*\n10th;School;*\nMasters;Higher;*\n11th;School;*\n"


def test_a_file_gives_its_labels_and_orders_leaves_by_their_ancestors(tmp_path: Path) -> None:
    file = csv_file(tmp_path, EDUCATION)
    assert labels(file, "10th", "Masters") == [("School", "*"), ("Higher", "*")]
    tree, order = tree_of(file, ["10th", "11th", "Bachelors", "Masters"])
    assert order == ["Bachelors", "Masters", "10th", "11th"]
    assert tree.label[4:] == ("Higher", "School", "*")


def test_absent_leaves_still_order_the_present_ones(tmp_path: Path) -> None:
    _, order = tree_of(csv_file(tmp_path, EDUCATION), ["11th", "Masters"])
    assert order == ["Masters", "11th"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,x,*\nb,y,*\n", ("x", "*")),
        ("\ufeffa;x;*\nb;y;*", ("x", "*")),
        ("a;x\nb;y\n", ("x", "*")),
        ("a;x;Any\nb;y;Any\n", ("x", "*")),
        ("a;x;Any;Any\nb;y;Any;Any\n", ("x", "*", "*")),
        ('"a";"x,""1""";*\nb;y;*\n', ('x,"1"', "*")),
        ('"a","x;1",*\nb,y,*\n', ("x;1", "*")),
        ("a\nb\n", ("*",)),
        ("a;x;*\r\n\r\nb;y;*\r\n", ("x", "*")),
        ("a;a;x;*\nb;b;x;*\nc;y;y;*\n", ("a", "x", "*")),
    ],
)
def test_forms_of_a_file(tmp_path: Path, content: str, expected: tuple[str, ...]) -> None:
    assert labels(csv_file(tmp_path, content), "a") == [expected]


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("a;x;*\nb;x\n", 2, "2 fields; expected 3 fields, as on line 1"),
        ("a;x;*\n\nb;;*\n", 3, "an empty label at level 1"),
        ("a;x;*\nb;x;*\na;x;*\n", 3, "the same row as on line 1"),
        ("a;x;*\nb;y;*\na;y;*\n", 3, 'leaf "a" with other labels than on line 1'),
        ("a;x;p;*\nb;x;q;*\n", 2, '"x" at level 1 is under "q", on line 1 under "p"'),
        ("a;x;y;*\nb;z;x;*\n", 1, '"x" (level 1) stands again at level 2 on line 2, for other leaves'),
        ("a;x;*\nb;y;*\nc;a;*\n", 1, '"a" (leaf) stands again at level 1 on line 3, for other leaves'),
        ("a;*;x\nb;y;z\n", 1, '"*" (level 1) stands again for the root, for other leaves'),
        ('a;x;*\n"b;x;*\n', 2, "not CSV"),
        ('"a\nb";x;*\nc;y;*;*\n', 3, "4 fields"),
        (b"a;x;*\nb;\xff;*\n", 2, "bytes that are not UTF-8"),
    ],
)
def test_a_file_that_is_not_a_tree_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, line: int, words: str
) -> None:
    message = refusal(csv_file(tmp_path, content), "a")
    assert message.startswith(f"columns.quasi_identifiers.c.hierarchy: found education.csv line {line}: ")
    assert words in message


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    assert "education.csv without a row" in refusal(csv_file(tmp_path, "\n"), "a")
    assert "gone.csv: No such file" in refusal(HierarchyFile(tmp_path / "gone.csv"), "a")


def test_many_mistakes_are_summed_up(tmp_path: Path) -> None:
    message = refusal(csv_file(tmp_path, "a;x;*\n" + "b;x\n" * 30), "a")
    assert len(message.splitlines()) == 11
    assert message.endswith("20 more of the same kind")


def test_a_gap_counts_the_missing_values_and_carries_them_apart(tmp_path: Path) -> None:
    with pytest.raises(HierarchyGap) as caught:
        paths(csv_file(tmp_path, EDUCATION), ["10th", "Doctorate", "Preschool"], "c")
    assert "2 of 3 distinct values that are not leaves of education.csv" in str(caught.value)
    assert caught.value.missing == ["Doctorate", "Preschool"]
    assert caught.value.exit_code == 2
    assert "Doctorate" not in str(caught.value) + repr(caught.value)


def test_inspect_counts_nodes_and_coverage_and_keeps_the_missing_values_apart(tmp_path: Path) -> None:
    path = csv_file(tmp_path, EDUCATION).hierarchy
    tree = {"leaves": 4, "levels": 2, "nodes_per_level": [4, 2, 1]}
    assert inspect(path).facts == tree
    found = inspect(path, {"10th": 5, "Doctorate": 2})
    coverage = {"values": 2, "rows": 7, "missing_values": 1, "missing_rows": 2, "unused_leaves": 3}
    assert found.facts == tree | coverage
    assert found.missing == {"Doctorate": 2}
    assert "Doctorate" not in repr(found)


# Trees


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
        Tree.build([("Smith", "*"), ("Smith", "*"), ("x", "*")], ["a", "b", "Smith"], False)
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
        Tree.build(rows, ["a", "b", "c"], False)


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


def check_tree(tree: Tree) -> None:
    codes = tree.node_at.shape[1]
    root = len(tree.label) - 1
    assert (tree.low[root], tree.high[root], tree.parent[root]) == (0, codes - 1, -1)
    assert tree.levels + 1 == len(tree.node_at)
    assert tree.node_at[0].tolist() == list(range(codes))
    for node in range(root + 1):
        members = [c for c in range(codes) if node in tree.node_at[:, c]]
        assert members == list(range(tree.low[node], tree.high[node] + 1))
        assert tree.level[node] == np.flatnonzero(tree.node_at[:, members[0]] == node)[0]
        children = tree.child[tree.child_start[node] : tree.child_start[node + 1]]
        assert all(tree.parent[child] == node for child in children)
        covered = [c for child in children for c in range(tree.low[child], tree.high[child] + 1)]
        assert covered == (members if node >= codes else [])
    meaning: dict[str | None, tuple[int, int]] = {}
    for label, low, high in zip(tree.label, tree.low, tree.high):
        assert meaning.setdefault(label, (low, high)) == (low, high)


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


@given(columns(), st.booleans())
def test_a_tree_survives_json(column: tuple[Any, list[Any]], null: bool) -> None:
    tree, _ = tree_of(*column, null=null)
    again = Tree.from_dict(json.loads(json.dumps(tree.to_dict())))
    assert again.to_dict() == tree.to_dict()
    for name in ("node_at", "child_start", "child"):
        assert getattr(again, name).tolist() == getattr(tree, name).tolist()
        assert getattr(again, name).dtype == getattr(tree, name).dtype == np.int32


# Rows for new files

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@given(st.lists(names, min_size=2, max_size=12, unique=True), st.integers(1, 4))
def test_written_rows_are_read_back_identically(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[str], parts: int
) -> None:
    leaves = [name for name in drawn if name != "*"]
    rows = [(leaf, f"{leaves[i % parts]};group", "*") for i, leaf in enumerate(leaves)]
    path = tmp_path_factory.mktemp("rows") / "h.csv"
    write_rows(rows, path)
    assert [(leaf, *above) for leaf, above in zip(leaves, labels(HierarchyFile(path), *leaves))] == rows
    check_tree(tree_of(HierarchyFile(path), leaves)[0])


def test_an_empty_leaf_is_written_and_read(tmp_path: Path) -> None:
    write_rows([("", "unknown", "*"), ("a", "known", "*")], tmp_path / "h.csv")
    assert labels(HierarchyFile(tmp_path / "h.csv"), "") == [("unknown", "*")]


def test_interval_rows_are_what_the_builder_gives(tmp_path: Path) -> None:
    rows = interval_rows(0, 99, [1, 5, 20], top=85, bottom=18)
    write_rows(rows, tmp_path / "age.csv")
    values = list(range(100))
    from_file = labels(HierarchyFile(tmp_path / "age.csv"), *values)
    assert from_file == labels(Intervals([1, 5, 20], top=85, bottom=18), *values)
    assert rows[82] == ("82", "82", "80-84", "80-84", "*")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 10**12, [5]), "at most 1,000,000 numbers"),
        ((5, 1, [5]), "5 and 1"),
        ((0, 9, []), "no width"),
        ((0, 9, [0, 5]), "--width: found 0, 5"),
        ((0, 9, [5, 5]), "5, 5"),
        ((0, 9, [5, 12]), "5, 12"),
        ((0, 9, [5], 0, 3, 4), "--bottom and --top: found 4 and 3"),
    ],
)
def test_intervals_that_make_no_hierarchy_are_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        interval_rows(*arguments)
    assert words in str(caught.value)


def test_prefix_rows_hide_one_more_character_per_level(tmp_path: Path) -> None:
    (tmp_path / "codes.txt").write_text("C50\nC509\n\nJ10\nC50\n", encoding="utf-8")
    assert prefix_rows(tmp_path / "codes.txt") == [
        ("C50", "C50", "C5**", "C***", "*"),
        ("C509", "C50*", "C5**", "C***", "*"),
        ("J10", "J10", "J1**", "J***", "*"),
    ]


def test_a_value_that_looks_like_a_prefix_is_refused_by_its_line_alone(tmp_path: Path) -> None:
    (tmp_path / "codes.txt").write_text("ab\na*\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"codes.txt line 2: the label \(leaf\) stands again at level 1") as caught:
        prefix_rows(tmp_path / "codes.txt")
    assert "a*" not in str(caught.value)


@given(st.sets(st.text("ab1", min_size=1, max_size=5), min_size=1))
def test_prefix_rows_are_a_tree(tmp_path_factory: pytest.TempPathFactory, values: set[str]) -> None:
    folder = tmp_path_factory.mktemp("prefix")
    (folder / "values.txt").write_text("\n".join(sorted(values)), encoding="utf-8")
    write_rows(prefix_rows(folder / "values.txt"), folder / "h.csv")
    check_tree(tree_of(HierarchyFile(folder / "h.csv"), sorted(values))[0])


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (
            "Paris,France\nFrance,Europe\nEurope,World\nNauru,Oceania\nOceania,World\n",
            [("Paris", "France", "Europe", "*"), ("Nauru", "Nauru", "Oceania", "*")],
        ),
        ("a,x\nb,y\n", [("a", "x", "*"), ("b", "y", "*")]),
        ("a,x\nb,*\n", [("a", "x", "*"), ("b", "b", "*")]),
        ("a;x\nb;x\n", [("a", "*"), ("b", "*")]),
    ],
)
def test_parent_rows_follow_the_chains(tmp_path: Path, content: str, rows: list[tuple[str, ...]]) -> None:
    (tmp_path / "pairs.csv").write_text(content, encoding="utf-8")
    assert parent_rows(tmp_path / "pairs.csv") == rows


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("Kim,x\nb,x\nKim,y\n", 3, "the value of line 1 again"),
        ("a,x\nKim\n", 2, "1 names; expected a value and its parent"),
        ("a,x\nKim,\n", 2, "1 names"),
        ("a,Kim\nKim,y\ny,Kim\n", 1, "in a circle"),
        ("a,x\nKim,Kim\n", 2, "in a circle"),
        ("Kim,x\n*,x\nx,y\nb,y\n", 2, "the label (leaf) stands again for the root"),
        ('Kim,x\n"Kim,x\n', 2, "not CSV"),
    ],
)
def test_pairs_that_make_no_tree_are_refused_by_their_line_alone(
    tmp_path: Path, content: str, line: int, words: str
) -> None:
    (tmp_path / "pairs.csv").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        parent_rows(tmp_path / "pairs.csv")
    assert f"LIST: found pairs.csv line {line}: " in str(caught.value)
    assert words in str(caught.value)
    assert "Kim" not in str(caught.value)


# Speed

MANY = 65_536


@pytest.mark.parametrize("kind", ["intervals", "decimals", "digits", "calendar", "suppress", "hierarchy"])
def test_a_full_column_takes_seconds_at_most(tmp_path: Path, kind: str) -> None:
    """The limit is generous for slow machines; what it catches is a cost that grows with the square of the values."""
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
    start = time.perf_counter()
    tree_of(builder, values, null=True)
    assert time.perf_counter() - start < 5
