"""Count the histograms that the criteria judge, by SQL from a table that is already grouped (grouped.py). Those of a
kind are counted once, into a table of plain numbers in the order of the groups, which is in the database and spills to
disk if it does not fit. `verify`, and after it the report, streams this table: the time is linear in the groups, and
the memory does not grow with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.criteria import Groups, Ints, Signatures
from anon.verify.grouped import Grouped, Reading, compared, in_order, listed, matches, signature_table, value_of

BATCH = 65_536  # groups that are judged at a time, or 8 times as many numbers about them
SIZE, VALUE = -1, 0  # kinds of facts about a part: its individuals; a value in it. From 1 on, the signatures of a prior


def histograms(grouped: Grouped, reading: Reading) -> Iterator[Groups]:
    """Return the groups in canonical order as histograms of a sensitive value; without one, with their size alone. With
    a context every group is divided by the values of those columns; with attributes each also has, per prior, the
    histogram of their values."""
    if not reading.columns:
        return _sizes(grouped, reading.classes)
    alone = len(reading.columns) == 1 and not reading.context and not reading.attributes
    if alone and grouped.has_few(reading.columns[0]):
        return _of_few(grouped, reading.columns[0])
    return _of_facts(grouped, reading)


def _sizes(grouped: Grouped, classes: bool) -> Iterator[Groups]:
    """Yield the sizes of groups, or of the classes of equal labels; a class of a bucketized table is identified by the
    first group it is in."""
    query = f"SELECT n FROM {grouped.GROUPS}"
    if classes:
        labels = grouped.classes
        counted = f"SELECT {grouped.people} AS n, min(g) AS row FROM {grouped.VIEW} GROUP BY {listed(labels)}"
        query = f"{counted} ORDER BY {in_order(labels)}"
    first = 0
    for batch in grouped.database.query(query).to_arrow_reader(BATCH):
        if batch.num_rows:
            n, *row = (column.to_numpy().astype(np.int64) for column in batch.columns)
            every = np.arange(len(n) + 1)
            yield Groups(n, every, np.zeros(len(n), np.int64), n, first, row[0] if row else None)
            first += len(n)


def _of_few(grouped: Grouped, column: str) -> Iterator[Groups]:
    """Yield the histograms of a sensitive column with few values, whose counts are columns of one row per group."""
    names = grouped.counted_as(column)
    first, size = 0, max(BATCH * 8 // len(names), 1)  # bounds counts, not groups
    for batch in grouped.database.query(f"SELECT {listed(names)} FROM {grouped.GROUPS}").to_arrow_reader(size):
        if batch.num_rows:
            groups = Groups.dense(np.column_stack([column.to_numpy() for column in batch.columns]))
            yield Groups(groups.n, groups.start, groups.value, groups.count, first)
            first += len(groups)


def _of_facts(grouped: Grouped, reading: Reading) -> Iterator[Groups]:
    query, first = f"SELECT * FROM {_table(grouped, reading)}", 0
    if not reading.attributes:
        query += f" WHERE kind <= {VALUE}"
    for facts in _whole_parts(grouped.database.query(query).to_arrow_reader(8 * BATCH)):
        groups = _groups(facts, first, len(reading.attributes), grouped.bucketized or bool(reading.context))
        yield groups
        first += len(groups)


def _table(grouped: Grouped, reading: Reading) -> str:
    """Return the table with the facts of a reading, made if there is none; a table of one with more attributes also
    serves."""
    for kept, name in grouped.facts.items():
        if reading in (kept, kept._replace(attributes=())):
            return name
    name = f"histograms_{len(grouped.facts)}"
    grouped.database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {_query(grouped, reading)}")
    grouped.facts[reading] = name
    return name


def _query(grouped: Grouped, reading: Reading) -> str:
    """Return SQL for facts (part, row, kind, code, n) in order; `row` is the number of the group, if parts are parts of
    groups. For a bucketized table a fact may come in several pieces."""
    parts = [*grouped.key, *(f"s{grouped.sensitive.index(name)}" for name in reading.context)]
    facts = [_values(grouped, parts, reading.columns)]
    if grouped.multiplicity != "single":
        facts.append(f"SELECT {listed(parts)}, {SIZE}, 0, n FROM ({grouped.sizes(parts)})")
    facts += [_signatures(grouped, names, kind) for kind, names in enumerate(reading.attributes, VALUE + 1)]
    part, row = "g", "g"
    if not grouped.bucketized:
        part, row = (f"dense_rank() OVER (ORDER BY {in_order(by)}) - 1" for by in (parts, grouped.key))
    named = listed([*parts, "kind", "code", "n"])
    numbers = listed([f"{part} AS part", *([f"{row} AS row"] if reading.context else [])])
    return (
        f"SELECT {numbers}, kind::TINYINT AS kind, code::INTEGER AS code, n::BIGINT AS n "
        f"FROM ({' UNION ALL '.join(facts)}) AS f({named}) ORDER BY part, kind, code"
    )


def _values(grouped: Grouped, parts: list[str], columns: tuple[str, ...]) -> str:
    (_, table), (value, same) = value_of(grouped, columns), compared(grouped, columns)
    counts = grouped.counts(parts, value)
    if grouped.bucketized:  # repeated facts are added up when they are read
        counts = f"SELECT g, {value} AS s, c AS n FROM {grouped.COUNTS}"
    own = listed([f"c.{part}" for part in parts])
    return (
        f"SELECT {own}, {VALUE}, v.code, c.n FROM ({counts}) AS c JOIN {table} AS v ON c.s IS NOT DISTINCT FROM {same}"
    )


def _signatures(grouped: Grouped, attributes: tuple[str, ...], kind: int) -> str:
    """Return SQL for the signatures in each group, and the number of people with each."""
    key, joined = listed(grouped.key), f"JOIN {signature_table(attributes)} AS a ON {matches(grouped, attributes)}"
    if grouped.bucketized:
        return f"SELECT g, {kind}, a.code, 1 FROM {grouped.VIEW} {joined}"
    return f"SELECT {key}, {kind}, a.code, {grouped.many()} FROM {grouped.VIEW} {joined} GROUP BY {key}, a.code"


Facts = dict[str, NDArray[np.int64]]  # by the names of their columns


def _whole_parts(reader: Iterable[pa.RecordBatch]) -> Iterator[Facts]:
    """Yield facts of some whole parts at a time; the last part of a batch may continue in the next one."""
    held: list[Facts] = []
    for batch in reader:
        if not batch.num_rows:
            continue
        facts = {name: column.to_numpy() for name, column in zip(batch.schema.names, batch.columns)}
        part = facts["part"]
        whole = int(np.searchsorted(part, part[-1]))
        if whole or (held and held[-1]["part"][-1] != part[-1]):
            yield _joined([*held, {name: each[:whole] for name, each in facts.items()}])
            held, facts = [], {name: each[whole:].copy() for name, each in facts.items()}
        held.append(facts)
    if held:
        yield _joined(held)


def _joined(pieces: list[Facts]) -> Facts:
    """Return the pieces as one, in which every fact occurs once."""
    facts = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    same = np.ones(len(facts["n"]) - 1, bool)
    for name in ("part", "kind", "code"):
        same &= facts[name][1:] == facts[name][:-1]
    if not same.any():
        return facts
    once = np.flatnonzero(np.append(True, ~same))
    return {name: np.add.reduceat(each, once) if name == "n" else each[once] for name, each in facts.items()}


def _groups(facts: Facts, first: int, priors: int, numbered: bool) -> Groups:
    """Return facts as groups. `numbered`: parts have their own numbers, or are parts of a group that has one."""
    part, kind, n = facts["part"], facts["kind"], facts["n"]
    begins = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
    place = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(part))))

    def lists(of: int) -> tuple[Ints, Ints, Ints]:
        own = kind == of
        start = np.append(0, np.cumsum(np.bincount(place[own], minlength=len(begins))))
        return start, facts["code"][own].astype(np.int64), n[own]

    start, value, count = lists(VALUE)
    people = n[kind == SIZE] if kind[0] == SIZE else np.add.reduceat(count, start[:-1])
    row = facts.get("row", part)[begins] if numbered else None
    return Groups(people, start, value, count, first, row, tuple(Signatures(*lists(1 + at)) for at in range(priors)))
