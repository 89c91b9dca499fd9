"""Rows for new hierarchy files: intervals, prefixes and parents, and that they are read back as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import ConfigError
from anon.hierarchy import interval_rows, parent_rows, prefix_rows, write_rows
from tests.helpers.hierarchy import HierarchyFile, Intervals, check_tree, labels, tree_of

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
    with pytest.raises(ConfigError, match=r"codes.txt line 2: the label \(leaf\) occurs again at level 1") as caught:
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
        ("a,Kim\nKim,y\ny,Kim\n", 1, "form a cycle"),
        ("a,x\nKim,Kim\n", 2, "form a cycle"),
        ("Kim,x\n*,x\nx,y\nb,y\n", 2, "the label (leaf) occurs again for the root"),
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
