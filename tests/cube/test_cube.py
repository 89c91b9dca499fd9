"""Domains: ordered codes, labels exactly as published, and the way back."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.config import Free, Nulls
from anon.core.database import Database
from anon.cube import Domain, building, value_counts
from anon.errors import ConfigError, SourceError
from anon.source import Column, Source
from anon.source.rows import create_views
from anon.source.types import canonical, narrow


def free(kind: str, values: list[Any], null: bool = False) -> Domain:
    types = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32(), "timestamp": pa.timestamp("us")}
    return Domain("c", kind, pa.array(values, types.get(kind)), True, null)


AGES = free("integer", [18, 20, 34, 35, 85])
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 3, 1), dt.date(2024, 4, 1), dt.date(2024, 6, 30)]


@pytest.mark.parametrize(
    ("domain", "cell", "label"),
    [
        (AGES, (0, 4), "*"),
        (AGES, (1, 2), "19-34"),
        (AGES, (0, 0), "18"),
        (AGES, (0, 1), "<=29"),
        (AGES, (0, 2), "<=34"),
        (AGES, (4, 4), "85"),
        (AGES, (3, 4), ">=35"),
        (AGES, (2, 3), "30-59"),
        (free("integer", [-9, -5, 3, 7]), (1, 1), "-5"),
        (free("integer", [-9, -5, 0, 3, 7]), (1, 3), "-7..4"),
        (free("integer", [-9, -5, -3, 7]), (1, 1), "-5"),
        (free("integer", [-9, -5, -4, -2]), (1, 2), "-7..-4"),
        (free("integer", [0, 5], null=True), (0, 0), None),
        (free("integer", [18, 20, 30], null=True), (0, 2), "null|<=24"),
        (free("integer", [18, 20, 30], null=True), (0, 1), "null|18"),
        (free("integer", [18, 20, 30], null=True), (1, 3), "not null"),
        (free("integer", [18, 20, 30], null=True), (0, 3), "*"),
        (free("number", [0.0, 1.5, 2.0, 2.25, 9.0]), (1, 2), "[0.8,2.1)"),
        (free("number", [0.0, 1.5, 2.25]), (0, 1), "<2"),
        (free("number", [0.0, 1.5, 2.25]), (1, 2), ">=0.8"),
        (free("date", DAYS), (0, 1), "<=2024-03-16"),
        (free("date", DAYS), (1, 2), "2024-02-01..2024-04-30"),
        (free("date", DAYS), (2, 3), ">=2024-03-17"),
        (free("boolean", [False, True]), (1, 1), "true"),
        (free("text", ["a", "b", "c", "d"]), (0, 2), "{a|b|c}"),
        (free("text", ["a", "b|c", "{d}", "e"]), (1, 2), r"{b\|c|\{d\}}"),
        (free("text", ["a", "b", "c"], null=True), (0, 2), "null|{a|b}"),
        (free("text", ["a", "b", "c"]), (1, 1), "b"),
    ],
)
def test_labels_are_the_cells_of_the_contract(domain: Domain, cell: tuple[int, int], label: str | None) -> None:
    assert domain.label(*cell) == label


def test_a_timestamp_cell_is_half_open() -> None:
    moments = [dt.datetime(2024, 1, day, 12) for day in (1, 2, 3, 4)]
    assert free("timestamp", moments).label(1, 2) == "[2024-01-02T00:00:00,2024-01-04T00:00:00)"


def test_a_bin_is_labelled_as_a_range_even_alone() -> None:
    """A bound lies between the largest value of one bin and the smallest of the next."""
    bins = Domain("c", "integer", pa.array([0, 10, 20]), False, False, last=pa.array([5, 17, 30]))
    assert [bins.label(i, i) for i in range(3)] == ["<=7", "8-18", ">=19"]


kinds = st.sampled_from(["integer", "number", "date", "timestamp", "text"])
strategies: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(10**6), 10**6),
    "number": st.floats(-1e6, 1e6).map(lambda x: x + 0.0),
    "date": st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    "timestamp": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    "text": st.text("ab|{}\\*né", max_size=4),
}


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    kind = draw(kinds)
    values = draw(st.lists(strategies[kind], min_size=1, max_size=8, unique=True))
    values.sort(key=lambda v: v.encode() if isinstance(v, str) else v)
    return free(kind, values, draw(st.booleans()))


@settings(max_examples=300, deadline=None)
@given(domains())
def test_distinct_cells_have_distinct_labels(domain: Domain) -> None:
    cells = [(a, b) for a, b in combinations(range(domain.size), 2)] + [(i, i) for i in range(domain.size)]
    labels = [domain.label(*cell) for cell in cells]
    if domain.size == 1:
        assert labels == ["*"]
        return
    collisions = len(labels) - len(set(labels))
    # a text value may look like a label; the recoding refuses it when both would be published
    assert collisions == 0 or domain.kind == "text"


@settings(max_examples=300, deadline=None)
@given(domains(), st.booleans())
def test_a_label_leads_back_to_its_cell(domain: Domain, binned: bool) -> None:
    if binned and domain.kind != "text":
        domain = replace(domain, single=False)
    cells = [(a, b) for a in range(domain.size) for b in range(a, domain.size)]
    labels = [domain.label(*cell) for cell in cells]
    for cell, label in zip(cells, labels):
        if labels.count(label) == 1:
            assert domain.cell(label) == cell
    with pytest.raises(KeyError):
        domain.cell("nothing")


@settings(max_examples=200, deadline=None)
@given(domains(), st.randoms(use_true_random=False))
def test_encoding_gives_the_codes_of_the_values(domain: Domain, rng: Any) -> None:
    values = [None] * domain.null + domain.values.to_pylist()
    codes = [rng.randrange(domain.size) for _ in range(20)]
    column = pa.array([values[code] for code in codes], domain.values.type)
    assert domain.encode(column).tolist() == codes


@pytest.mark.parametrize("word", ["nan", ">=inf", "[1,nan)", "<1e3", "1.50", str(2**63), "2024-01-01T00:00:00Z", "01"])
def test_words_that_no_label_has_are_in_no_cell(word: str) -> None:
    moments = [dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)]
    for domain in (AGES, free("number", [1.5, 2.5]), free("date", DAYS), free("timestamp", moments)):
        with pytest.raises(KeyError):
            domain.cell(word)


def test_a_new_value_means_that_the_source_changed() -> None:
    with pytest.raises(SourceError, match="new values"):
        AGES.encode(pa.array([18, 19], pa.int64()))


def opened(table: pa.Table, *columns: list[Column]) -> Source:
    """The source with these quasi-identifiers and sensitive columns."""
    database = Database.in_memory()
    database.register("given", table)
    database.execute("CREATE TABLE raw_rows AS SELECT * FROM given")
    create_views(database, Nulls(), [*columns, []], None)
    return Source(database, *columns, [], rows=table.num_rows)


def source_of(values: pa.Array) -> tuple[Source, Column]:
    column = Column("c", "q0", "integer", "q0")
    return opened(pa.table({"q0": values}), [column], []), column


def quasi_identifier(source: Source, column: Column) -> Domain:
    (counts,) = value_counts.count(source, [column], 1)
    return building.quasi_identifier(source, column, Free(), counts)[0]


@pytest.mark.parametrize("lookup", [0, 1000])
def test_many_numbers_become_exact_weighted_quantile_bins(monkeypatch: pytest.MonkeyPatch, lookup: int) -> None:
    monkeypatch.setattr(value_counts, "CODES", 5)
    monkeypatch.setattr(value_counts, "LOOKUP", lookup)
    values = [0] * 50 + list(range(1, 51)) + [None]
    source, column = source_of(pa.array(values, pa.int64()))
    domain = quasi_identifier(source, column)
    assert (domain.single, domain.null) == (False, True)
    assert domain.values.to_pylist() == [0, 1, 26]  # 0 alone is two of the four quarters
    assert domain.last is not None and domain.last.to_pylist() == [0, 25, 50]
    again, column = source_of(pa.array(values[::-1], pa.int64()))
    assert quasi_identifier(again, column).values.equals(domain.values)
    codes = domain.encode(pa.array([None, 0, 1, 25, 26, 50], pa.int64()))
    assert codes.tolist() == [0, 1, 2, 2, 3, 3]


def test_text_with_many_values_needs_a_hierarchy() -> None:
    source, _ = source_of(pa.array([f"v{i}" for i in range(65)]))
    with pytest.raises(ConfigError, match="65 distinct values"):
        quasi_identifier(source, Column("c", "q0", "text", "q0"))


@pytest.mark.parametrize("lookup", [0, 1000])
def test_too_many_sensitive_values_are_refused(monkeypatch: pytest.MonkeyPatch, lookup: int) -> None:
    monkeypatch.setattr(value_counts, "LOOKUP", lookup)
    source, column = source_of(pa.array([1, 1, 2, None], pa.int64()))
    (counts,) = value_counts.count(source, [column], 1)
    assert building.sensitive(column, counts).objects == [None, 1, 2]
    assert counts.rows.tolist() == [1, 2, 1]
    monkeypatch.setattr(value_counts, "CODES", 2)
    (counts,) = value_counts.count(source, [column], 1)
    with pytest.raises(ConfigError, match=r"columns\.sensitive\.c: found 3 values"):
        building.sensitive(column, counts)


@pytest.mark.parametrize("copies", [1, 3])
def test_equal_rows_are_counted_where_it_pays(copies: int) -> None:
    values = np.repeat(np.arange(500), copies)
    columns = [Column("c", "q0", "integer", "q0")], [Column("d", "s0", "integer", "s0")]
    built = building.build(opened(pa.table({"q0": values, "s0": values % 7}), *columns), [Free()])
    assert built.counted == (copies == 3)
    assert built.individuals == len(values)
    rows = built.records.read(0, built.records.count).T
    people = rows[:, 2] if built.counted else np.ones(len(rows))
    assert sorted(map(tuple, rows[:, :2].tolist())) == [(i, i % 7) for i in range(500)]
    assert (people == copies).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.none() | st.integers(-128, 127), min_size=1, max_size=40),
    st.sampled_from([pa.int8(), pa.int16(), pa.int32()]),
    st.sampled_from([0, 2**40, -(2**62)]),
    st.sampled_from([1, 3]),
)
def test_whole_numbers_are_the_same_in_any_width(
    values: list[int | None], width: pa.DataType, far: int, copies: int
) -> None:
    def built(kind: pa.DataType, more: int) -> tuple[list[Any], list[Any]]:
        own = pa.array([None if value is None else value + more for value in values] * copies, kind)
        cube = building.build(opened(pa.table({"q": own, "s": own}), [whole("q", kind)], [whole("s", kind)]), [Free()])
        objects = [None if value is None else value - more for value in cube.domains[0].objects]
        return objects, sorted(map(tuple, cube.records.read(0, cube.records.count).T.tolist()))

    assert built(width, 0) == built(pa.int64(), far)


def whole(name: str, kind: pa.DataType) -> Column:
    """A column of whole numbers as the source stage sees it."""
    type_name = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[kind.bit_width]
    told, sql = canonical(Database.in_memory(), "", name, type_name, "q")
    return Column(name, f"{name}0", told, sql, narrow(name, type_name, sql))


def test_recoding_json_speaks_of_values_only(tmp_path: Path) -> None:
    from anon.criteria import KAnonymity
    from anon.search.partition.search import PartitionSearch
    from tests.helpers.cubes import Table
    from tests.oracles import partition as oracle

    rows = [((i % 3, i % 5), "ab"[i % 2]) for i in range(60)]
    table = Table([oracle.Free([100.0, 200.0, 300.0]), oracle.Hierarchy(((0, 1), (2, (3, 4))))], rows)
    recoding = PartitionSearch(table.cube(), [KAnonymity(4)]).run().recoding
    recoding.write(tmp_path / "recoding.json")
    written = json.loads((tmp_path / "recoding.json").read_text())
    assert written["groups"] == recoding.groups == 15
    for codes, _ in rows:
        node, labels = written["nodes"][0], {"q0": "*", "q1": "*"}
        while "group" not in node:
            value = [100, 200, 300][codes[0]] if node["column"] == "q0" else f"leaf{codes[1]}"
            children = [written["nodes"][child] for child in node["children"]]
            if "cut" in node:
                assert node["cut"] in ("200", "150", "250")
                child = children[int(value >= int(node["cut"]))]
            else:
                above = next(path for path in written["columns"][1]["hierarchy"] if path[0] == value)
                child = next(child for child in children if child["label"] in above)
            labels[node["column"]] = child["label"]
            node = child
        labels |= node["labels"]
        group = recoding.assign(np.array([codes], np.uint16).T.copy())[0]
        assert node["group"] == group
        assert list(labels.values()) == [c.labels[c.of_group[group]].as_py() for c in recoding.labels]


def test_a_value_that_looks_like_a_label_is_refused() -> None:
    from anon.recoding.tree import column_labels

    domain = free("text", ["a", "b", "{a|b}"])
    with pytest.raises(ConfigError, match="labels that are also values"):
        column_labels(domain, np.array([0, 2]), np.array([1, 2]))
