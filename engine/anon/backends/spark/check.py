"""`check` on a cluster: the rows of a group come together, some groups in a partition and the partitions in canonical
order; executors count and judge them with the SQL and the formulas of the local engine, and the driver merges the
states of the criteria. The driver holds the different sensitive values and the signatures of priors, but no row."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anon.backends.spark import executors, verify
from anon.backends.spark.failures import on_spark
from anon.backends.spark.grouped import READING, OpenedGroups, open_grouped
from anon.backends.spark.session import session
from anon.config import Columns, Config, Spark
from anon.core.database import Database, translated
from anon.core.progress import Progress
from anon.criteria import Criterion, bind
from anon.criteria.prior_tables import Counting, SignatureTable
from anon.search.prepare import check_sensitive_numbers
from anon.source.left_out import LeftOut
from anon.verify.grouped import Grouped, KnownValues, code_values, cross_table, labels_of, numbered, signature_table
from anon.verify.judge import Findings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JUDGING = "checking the table"
PART = 2**20  # different rows of a partition
MOST_PARTS = 2**13
PICKLED = pa.schema([("pickled", pa.binary())])


def examined(
    database: Database, config: Config, table: Any, show_values: bool, progress: Progress
) -> tuple[Findings, LeftOut]:
    """Return what is found in a grouped table, and what of it was left out for null values."""
    assert isinstance(config.backend, Spark)
    first = table[0] if isinstance(table, tuple) else table
    with session(config.backend, first) as spark, executors.cleared():
        with progress.stage("read"):
            opened = open_grouped(spark, database, config, table)
            examination = Examination(database, opened, config, _known(database, opened, config))
        with progress.stage("check"):
            return examination.run(show_values), opened.left_out


@dataclass(frozen=True)
class CheckedPart:
    """What an executor found in one partition."""

    number: int
    judged: verify.JudgedPart
    labels: dict[int, dict[str, str | None]]  # of the groups that its states are about, if asked for


@dataclass(frozen=True)
class CheckWork:
    """What executors need to judge a partition."""

    columns: Columns
    keep: list[str]
    schema: pa.Schema
    known: KnownValues
    signatures: dict[str, pa.Table]
    criteria: list[Criterion]
    labels: bool


@dataclass(frozen=True)
class Examination:
    """One check of a table whose values are known."""

    database: Database
    opened: OpenedGroups
    config: Config
    known: KnownValues

    def run(self, show_values: bool) -> Findings:
        opened, found = self.opened, Findings(rows=self.opened.total)
        values = verify.values_of(self.known, found, self.config)
        values = replace(values, cross_table=self._cross_table, multiplicity=self.config.columns.multiplicity)
        with translated(JUDGING):
            found.criteria = bind(self.config.privacy, values)
            names = {signature_table(each) for criterion in found.criteria for each in criterion.attributes}
            signatures = {name: self.database.query(f"SELECT * FROM {name}").to_arrow_table() for name in names}
        schema = pa.schema([opened.schema.field(n) for n in opened.schema.names if n in opened.rows.columns])
        work = CheckWork(
            opened.columns, opened.columns.keep, schema, self.known, signatures, found.criteria, show_values
        )
        given = executors.Broadcast(opened.rows.sparkSession, work)
        table = executors.collect(executors.map_rows(_in_parts(opened), _judged, given, PICKLED), JUDGING)
        made = [pickle.loads(each.as_buffer()) for each in table["pickled"]]  # noqa: S301 - our own executors'
        parts = sorted(made, key=lambda part: part.number)
        self._add_up(found, parts)
        return found

    def _add_up(self, found: Findings, parts: list[CheckedPart]) -> None:
        labels: dict[int, dict[str, str | None]] = {}
        before, judged = 0, []
        for part in parts:
            states = {at: verify.numbered(state, before) for at, state in part.judged.states.items()}
            judged.append(replace(part.judged, states=states))
            labels |= {before + group: named for group, named in part.labels.items()}
            before += part.judged.found.groups
        verify.add_up(found, judged)
        worst = found.worst
        found.labels = {group: named for group, named in labels.items() if group in worst}

    def _cross_table(self, attributes: tuple[str, ...], column: str) -> tuple[SignatureTable, Counting | None]:
        """Return people by the values of some columns and a sensitive one, counted on the cluster."""
        opened, names = self.opened, self.opened.columns
        whole = Grouped(self.database, list(names.quasi_identifiers), list(names.sensitive), names.keep, weighted=True)
        by = [*dict.fromkeys(whole.alias(name) for name in attributes), f"s{whole.sensitive.index(column)}"]
        counted = opened.rows.groupBy(*by).sum("c").withColumnRenamed("sum(c)", "c")
        schema = pa.schema([*(opened.schema.field(name) for name in by), ("c", pa.int64())])
        self.database.register(Grouped.VIEW, executors.collect(counted, READING).cast(schema))
        self.database.register("known_values", self.known[column,])
        table = f"values_{whole.sensitive.index(column)}"
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM known_values")
        return cross_table(whole, attributes, column, self.config.limits.memory)


def _known(database: Database, opened: OpenedGroups, config: Config) -> KnownValues:
    """Return the values of each sensitive column, and the tuples of several that a distance looks at, in order."""
    tuples = [columns for spec in config.privacy if (columns := spec.tuple_columns())]
    names = [column.name for column in opened.sensitive]
    known = {}
    for columns in [*((name,) for name in names), *tuples]:
        aliases = [f"s{names.index(name)}" for name in columns]
        table = executors.collect(_times(opened, aliases), READING)
        kinds = pa.schema([*(opened.schema.field(alias) for alias in aliases), ("n", pa.int64())])
        database.register("counted_values", table.cast(kinds))
        packed = ", ".join(f"{alias} := {alias}" for alias in aliases)
        value = aliases[0] if len(aliases) == 1 else f"struct_pack({packed})"
        with translated(READING):
            query = numbered(f"SELECT {value} AS v, n FROM counted_values")
            known[columns] = database.query(f"{query} ORDER BY code").to_arrow_table()
    distinct = [known[name,].num_rows for name in names]
    check_sensitive_numbers(config, opened.sensitive, distinct)
    return known


def _times(opened: OpenedGroups, aliases: list[str]) -> DataFrame:
    """Return how often each combination of sensitive values occurs, as anon.verify.grouped counts it."""
    from pyspark.sql import functions

    multiplicity = opened.columns.multiplicity
    counts = {"single": functions.sum("c"), "set": functions.countDistinct("who"), "multiset": functions.count("*")}
    return opened.rows.groupBy(*aliases).agg(counts[multiplicity].alias("n"))


def _in_parts(opened: OpenedGroups) -> DataFrame:
    """Return the rows with all of a group in one partition, and the groups in order from one partition to the next."""
    with on_spark(READING):
        rows = opened.rows.count()
    parts = min(max(-(-rows // PART), 1), MOST_PARTS)
    return opened.rows.repartitionByRange(parts, *opened.labels)  # nulls come first


def _judged(work: CheckWork, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    extra = [held[0].schema.field(name) for name in held[0].schema.names if name not in work.schema.names]
    rows = pa.Table.from_batches(held).cast(pa.schema([*work.schema, *extra]))
    with executors.task_database() as database, translated(JUDGING):
        part = judged_rows(database, rows, work, context.partitionId())
    yield from executors.packed([(pickle.dumps(part),)], PICKLED)


def judged_rows(database: Database, rows: pa.Table, work: CheckWork, number: int) -> CheckedPart:
    """Judge all rows of some groups, which are numbered from 0 on."""
    for name, table in work.signatures.items():
        database.register(name, table)
    grouped = Grouped.from_part(database, rows, work.columns, work.keep, work.known)
    for names in work.known:
        code_values(grouped, names)
    judged = verify.judged_part(grouped, verify.Judging(work.criteria), 0)
    about = {group for state in judged.states.values() for group in state.witness[:, -1].tolist()}
    places = about & set(range(judged.found.groups))
    return CheckedPart(number, judged, labels_of(grouped, places) if work.labels and places else {})
