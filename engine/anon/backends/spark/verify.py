"""Verifies a release on the cluster, part by part: executors open the written files as an outsider would, with the SQL
and the formulas of the local engine, and the driver adds up what they found. That a part can be judged by itself is not
taken for granted: the labels must strictly increase from the last row of one part to the first of the next, so that no
group is in two. Only counts, published labels and the states of criteria come to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anon.backends.spark import executors
from anon.backends.spark.parts import part_name
from anon.config import Config
from anon.core.database import Database, translated
from anon.core.phrases import counted
from anon.core.text import text
from anon.criteria import Criterion, EarlierGroups, Ints, State, Values
from anon.errors import ClusterLost, SourceError, VerificationError
from anon.release import WrittenRelease
from anon.verify import judge as local
from anon.verify.attaining import attaining_groups
from anon.verify.bounds import difference_in_bounds
from anon.verify.content import EMPTY, Content, published
from anon.verify.files import (
    GAPS,
    STRANGERS,
    difference_in_content,
    difference_in_files,
    difference_in_numbers,
    files_of,
    open_written,
    rows_out_of_order,
)
from anon.verify.grouped import Grouped, KnownValues, code_values, codes_of
from anon.verify.grouped import numbered as numbered_values
from anon.verify.judge import Findings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READING = "reading the release back"
PICKLED = pa.schema([("pickled", pa.binary())])
Label = tuple[str | None, ...]


@dataclass
class PartContent:
    """What an executor saw in one part before it was judged."""

    number: int
    wrong: str
    rows: int = 0
    groups: int = 0
    first: Label = ()
    last: Label = ()
    content: Content = EMPTY
    numbers: tuple[int, int] | None = None  # of a bucketized part: its lowest group, and the first after its highest
    values: KnownValues = field(default_factory=dict)  # without codes


@dataclass(frozen=True)
class Judging:
    """What the groups of every part are judged by."""

    criteria: list[Criterion]
    beside: list[Criterion] = field(default_factory=list)  # with what is published already
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # of a series: of the sensitive values


@dataclass
class JudgedPart:
    """What an executor found when it judged one part."""

    found: Findings
    states: dict[int, State]
    kept: dict[str, dict[str, int]]  # per kept column the sums behind what is reported of it
    attaining: EarlierGroups = field(default_factory=EarlierGroups)  # of a series: the groups that attain its minima


def verify(
    spark: SparkSession,
    database: Database,
    written: WrittenRelease,
    config: Config,
    expected: Content,
    earlier: EarlierGroups,
) -> Findings:
    """Examine the parts of a release that was just written; VerificationError if they are not what they must be.
    `expected`: what the source's rows come to under the written recoding; `earlier`: groups that are published
    already."""
    parts = len(list(written.path.iterdir()))
    local.refuse(_difference_in_names(written, parts))
    tuples = [columns for spec in config.privacy if (columns := spec.tuple_columns())]
    look = executors.Broadcast(spark, (written, config.columns, tuples))
    try:
        seen = sorted(_on_parts(spark, parts, _look, look), key=lambda each: each.number)
        local.refuse(next((each.wrong for each in seen if each.wrong), "") or _difference(seen, expected))
        known = _known(database, seen)
        found = _judge(spark, seen, known, written, config, earlier)
    except ClusterLost:  # which says nothing about the release
        raise
    except (SourceError, ValueError) as error:
        cause = f" ({error})" if isinstance(error, SourceError) else ""
        raise VerificationError(f"the written release cannot be read back{cause}; nothing was published") from error
    local.refuse_unsafe(found, written, config)
    return found


def _difference_in_names(written: WrittenRelease, parts: int) -> str:
    folders = [file.path for file in files_of(written)]
    beside = sorted(path.name for path in written.path.parent.iterdir())
    wanted = [part_name(at) for at in range(parts)]
    inside = all(sorted(path.name for path in folder.iterdir()) == wanted for folder in folders)
    names = sorted(["datapackage.json", *(folder.name for folder in folders)])
    return "" if inside and beside == names else STRANGERS


def _on_parts(spark: SparkSession, parts: int, work: executors.Work, given: executors.Broadcast) -> list[Any]:
    """Do work on every part and return the results."""
    tasks = min(parts, 16 * spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, parts, 1, tasks)
    table = executors.collect(executors.map_rows(numbers, work, given, PICKLED), READING, executors.PACKED)
    return [pickle.loads(each.as_buffer()) for each in table["pickled"]]  # noqa: S301 - our own executors'


def _part_of(written: WrittenRelease, number: int) -> WrittenRelease:
    """Return the files of one part."""
    name, values = part_name(number), written.values
    own = None if values is None else replace(values, path=values.path / name)
    return replace(written, path=Path(written.path) / name, values=own)


def _look(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    written, columns, tuples = given
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        with executors.task_database() as database, translated(READING):
            part = _part_of(written, number)
            files = files_of(part)
            wrong = difference_in_files(database, files)
            if not wrong and (disorder := rows_out_of_order(database, files)):
                wrong = f"has {counted(disorder, 'row')} out of order"
            wrong = wrong or difference_in_bounds(database, files[0].view, part.bounds)
            seen = PartContent(number, wrong)
            if not wrong:
                _see(seen, open_written(database, files, columns), tuples)
        yield from executors.packed([(pickle.dumps(seen),)], PICKLED)


def _see(seen: PartContent, grouped: Grouped, tuples: list[tuple[str, ...]]) -> None:
    database = grouped.database
    for names in tuples:
        code_values(grouped, names)
    for names in [*((name,) for name in grouped.sensitive), *tuples]:
        places = "_".join(str(grouped.sensitive.index(name)) for name in names)
        seen.values[names] = database.query(f"SELECT v, n FROM values_{places}").to_arrow_table()
    seen.rows = grouped.rows()
    seen.groups = int(database.one(f"SELECT count(*) FROM {grouped.GROUPS}")[0])
    seen.content = published(grouped, labelled=True)
    seen.first, seen.last = (_end(grouped, "ASC NULLS FIRST"), _end(grouped, "DESC NULLS LAST"))
    if grouped.bucketized:
        low, high = database.one(f"SELECT min(g), max(g) FROM {grouped.GROUPS}")
        seen.numbers = int(low), int(high) + 1
        seen.wrong = difference_in_numbers(grouped, seen.numbers[0])


def _end(grouped: Grouped, order: str) -> Label:
    """Return the labels of the first row in an order."""
    labels, by = ", ".join(grouped.labels), ", ".join(f"{label} {order}" for label in grouped.labels)
    end: Label = grouped.database.one(f"SELECT {labels} FROM {grouped.VIEW} ORDER BY {by} LIMIT 1")
    return end


def _difference(seen: list[PartContent], expected: Content) -> str:
    """Return what in all parts together is not as it was meant to be, or nothing; without any value of the data."""
    if any(_place(before.last) >= _place(after.first) for before, after in pairwise(seen)):
        return "has parts that are out of order or share a group"
    found = sum((each.content for each in seen), EMPTY)
    return difference_in_content(found, expected) or _difference_in_numbers(seen)


def _difference_in_numbers(seen: list[PartContent]) -> str:
    """Return the difference if the groups of a bucketized release are not numbered from 0 on, from part to part."""
    after = 0
    for each in seen:
        if each.numbers is not None and each.numbers != (after, after + each.groups):
            return GAPS
        after += each.groups
    return ""


def _place(label: Label) -> list[tuple[bool, bytes]]:
    """Return labels in canonical order: UTF-8 bytes, nulls first."""
    return [(part is not None, (part or "").encode()) for part in label]


def _known(database: Database, seen: list[PartContent]) -> KnownValues:
    """Return the values of all parts, numbered in their order."""
    known = {}
    for columns in seen[0].values:
        database.register("values_of_parts", pa.concat_tables([each.values[columns] for each in seen]))
        query = numbered_values("SELECT v, CAST(sum(n) AS BIGINT) AS n FROM values_of_parts GROUP BY v")
        known[columns] = database.query(f"{query} ORDER BY code").to_arrow_table()
    return known


def _judge(
    spark: SparkSession,
    seen: list[PartContent],
    known: KnownValues,
    written: WrittenRelease,
    config: Config,
    earlier: EarlierGroups,
) -> Findings:
    found = Findings(rows=sum(each.rows for each in seen))
    local.bind_criteria(found, config, values_of(known, found, config), True, earlier)
    before = np.append(0, np.cumsum([each.groups for each in seen])).tolist()
    judging = Judging(found.criteria, found.beside, found.values if config.release.series else {})
    given = executors.Broadcast(spark, (written, config.columns, known, judging, before))
    judged = _on_parts(spark, len(seen), _judged, given)
    add_up(found, judged)
    for each in judged:
        found.attaining = found.attaining.union(each.attaining)
    return found


def values_of(known: KnownValues, found: Findings, config: Config) -> Values:
    """Return the values of a table as criteria are bound to them, and note them in what is found."""
    objects = {}
    for name in config.columns.sensitive:
        objects[name] = known[name,]["v"].to_pylist()
        found.values[name] = [None if value is None else text(value) for value in objects[name]]
        found.frequency[name] = known[name,]["n"].to_pylist()
    return Values(found.values, found.frequency, tuples=partial(_tuples, known, objects), objects=objects)


def add_up(found: Findings, judged: list[JudgedPart]) -> None:
    """Add up the results of all parts."""
    states: dict[int, State] = {}
    for each in judged:
        _add(found, each.found)
        for at, state in each.states.items():
            states[at] = states[at].merge(state) if at in states else state
    found.states = states
    found.verdicts = [criterion.verdict(states[at]) for at, criterion in enumerate(found.criteria)]
    people: dict[str, dict[str, int]] = {}
    for name in judged[0].kept:
        sums = [each.kept[name] for each in judged]
        people[name] = {key: sum(each[key] for each in sums) for key in ("unique", "homogeneous", "all")}
        people[name]["smallest"] = min(each["smallest"] for each in sums)
    local.add_shares_with_kept(found, people)


def _tuples(known: KnownValues, objects: dict[str, list[Any]], columns: tuple[str, ...]) -> Ints:
    """Return the tuples of some sensitive columns, each as the codes of its values."""
    return codes_of(known[columns]["v"].to_pylist(), [objects[name] for name in columns])


def _add(total: Findings, other: Findings) -> None:
    total.smallest = min(total.smallest or other.smallest, other.smallest)
    for name in ("individuals", "groups", "under_5", "homogeneous_rows", "nearly_homogeneous_rows"):
        setattr(total, name, getattr(total, name) + getattr(other, name))
    for size, count in other.sizes.items():
        total.sizes[size] = total.sizes.get(size, 0) + count


def _judged(given: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    written, columns, known, judging, before = given
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        with executors.task_database() as database, translated(READING):
            files = files_of(_part_of(written, number))
            for file in files:
                file.open(database)
            grouped = open_written(database, files, columns, known)
            for names in known:
                code_values(grouped, names)
            judged = judged_part(grouped, judging, before[number])
        yield from executors.packed([(pickle.dumps(judged),)], PICKLED)


def judged_part(grouped: Grouped, judging: Judging, before: int) -> JudgedPart:
    """Judge the groups of one part, which are numbered from `before` on."""
    found = Findings(grouped, criteria=judging.criteria, beside=judging.beside, values=judging.texts)
    found.states = local.judged(grouped, found)
    attaining = attaining_groups(found) if judging.texts else EarlierGroups()
    states = {}
    for at, state in found.states.items():
        by_number = grouped.bucketized and _by_labels(judging, at)  # of classes, by the numbers of groups
        states[at] = state if by_number else numbered(state, before)
    if len(grouped.sensitive) > 1:
        found.homogeneous_rows = local.people_of(grouped, local.alike(grouped, grouped.key))["homogeneous"]
    counted = replace(found, table=None, criteria=[], beside=[], values={}, states={})
    return JudgedPart(counted, states, local.people_with_kept(grouped, found), attaining)


def _by_labels(judging: Judging, at: int) -> bool:
    return at < len(judging.criteria) and judging.criteria[at].name == "k_anonymity"


def numbered(state: State, before: int) -> State:
    """Return a state whose groups are numbered from `before` on."""
    witness = state.witness.copy()
    witness[:, -1] += before
    return State(state.values, witness)
