"""Hierarchy files: their forms, their mistakes with the line, and the values that they lack."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from anon.core.memory import LIBRARIES
from anon.errors import ResourceError
from anon.hierarchy import HierarchyGap, inspect, paths, read
from anon.hierarchy.label_levels import LabelLevel
from tests.helpers.hierarchy import HierarchyFile, csv_file, labels, refusal, tree_of

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
        ("a;x;y;*\nb;z;x;*\n", 1, '"x" (level 1) occurs again at level 2 on line 2, for other leaves'),
        ("a;x;*\nb;y;*\nc;a;*\n", 1, '"a" (leaf) occurs again at level 1 on line 3, for other leaves'),
        ("a;*;x\nb;y;z\n", 1, '"*" (level 1) occurs again for the root, for other leaves'),
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


def test_levels_number_labels_as_they_come(tmp_path: Path) -> None:
    rng = random.Random(3)
    for size in (0, 1, 2, 50, 500):
        labels = [rng.choice(["b", "a", "", "é", None, "aa", str(rng.randrange(40))]) for _ in range(size)]
        level, names = LabelLevel.from_labels(labels), list(dict.fromkeys(labels))
        assert level.names.to_pylist() == names
        assert level.number.tolist() == [names.index(label) for label in labels]
        assert level.first.tolist() == [labels.index(name) for name in names]
        assert level.size.tolist() == [labels.count(name) for name in names]


def test_a_file_of_many_lines_takes_little_more_memory_than_its_text(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text("".join(f"place {i:06};district {i // 100:04};region {i // 10_000};*\n" for i in range(100_000)))
    tracemalloc.start()
    try:
        table = read(path, "c")
        peak = tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes()
    finally:
        tracemalloc.stop()
    assert len(table) == 100_000
    assert peak < 5 * path.stat().st_size  # rows of Python texts take 12 times as much
    with pytest.raises(ResourceError, match=r"places\.csv, which takes 20 MB; at least 220MB is required"):
        read(path, "c", LIBRARIES + 10_000_000)
    assert len(read(path, "c", LIBRARIES + 21_000_000)) == 100_000
