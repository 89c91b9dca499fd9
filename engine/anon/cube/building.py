"""Build the cube from the source's rows: the domains of all columns, and every row as a record of the codes of its
quasi-identifiers, its sensitive values and the other columns that the search uses. Equal rows are counted where that
shrinks the table."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon import hierarchy
from anon.config import Builder, Free
from anon.core.arrays import Codes, Ints
from anon.core.memory import VALUE
from anon.core.progress import ProgressCallback
from anon.core.text import CUTTABLE, text
from anon.criteria import Criterion, Groups
from anon.cube.domain import CODES, TEXT_VALUES, Domain
from anon.cube.label_ends import binned
from anon.cube.records import WIDE, Records, halves, in_memory, whole_numbers
from anon.cube.value_counts import ValueCounts, count, counted_values
from anon.errors import ConfigError, SourceError
from anon.hierarchy import HierarchyGap, HierarchyTree
from anon.source import Column, Source

BATCH = 131_072  # records
PEOPLE = [WIDE, WIDE]  # codes of the two halves that people are counted in


def quasi_identifier(source: Source, column: Column, builder: Builder, counted: ValueCounts) -> tuple[Domain, Ints]:
    """Return the domain of a quasi-identifier (its distinct values, or bins of them if there are too many, and its
    tree) and the rows with each code."""
    path, distinct = f"columns.quasi_identifiers.{column.name}", counted.distinct
    free = builder.kind == "free"
    if free and column.kind == "text" and distinct > TEXT_VALUES:
        expected = f"at most {TEXT_VALUES} values, or a hierarchy (suppress, digits, hierarchy)"
        hint = source.why_text(column)
        raise ConfigError.at(path, f"text with {distinct:,} distinct values", expected, hint)
    null = counted.values.null_count > 0
    if isinstance(builder, Free) and builder.ends is not None and counted.cuts is None:
        if counted.bins is not None:
            raise ConfigError.at(
                f"{path}.ends", f"{distinct:,} distinct values", f"at most {CODES:,}: round the column"
            )
        counted = binned(column, builder, counted)
    if counted.bins is not None or distinct > CODES:
        if counted.bins is None or not free or column.kind not in CUTTABLE:
            raise ConfigError.at(path, f"{distinct:,} distinct values", f"at most {CODES:,}, or numbers cut freely")
        in_bins = Domain(column.name, column.kind, counted.bins, False, null, None, counted.last, counted.cuts)
        return in_bins, counted.rows
    domain = _distinct(column, counted)
    if free:
        return domain, counted.rows
    domain, order = _with_tree(source, column, domain, builder)
    return domain, np.append(counted.rows[: domain.null], counted.rows[domain.null :][order])


def sensitive(column: Column, counted: ValueCounts) -> Domain:
    """Return the domain of a sensitive column."""
    if counted.bins is not None:
        found = f"{counted.distinct:,} values"
        raise ConfigError.at(f"columns.sensitive.{column.name}", found, f"at most {CODES:,}: round it")
    return _distinct(column, counted)


def _distinct(column: Column, counted: ValueCounts) -> Domain:
    values = counted.values
    null = values.null_count > 0
    return Domain(column.name, column.kind, values.drop_null(), True, null, cuts=counted.cuts)


def _with_tree(source: Source, column: Column, domain: Domain, builder: Builder) -> tuple[Domain, Ints]:
    """Return the domain with its values in the order of the tree's leaves, and that order."""
    objects = domain.values.to_pylist()
    try:
        paths = hierarchy.paths(builder, objects, column.name)
    except HierarchyGap as gap:
        missing = pa.array([value for value in objects if text(value) in set(gap.missing)], domain.values.type)
        first, *rest = gap.problems
        counted = replace(first, found=f"{first.found} ({source.rows_with(column, missing):,} rows)")
        raise HierarchyGap([counted, *rest], gap.missing) from None
    tree, order = HierarchyTree.build(paths, [text(value) for value in objects], domain.null)
    return Domain(column.name, column.kind, domain.values.take(pa.array(order)), True, domain.null, tree), order


@dataclass(frozen=True)
class Combinations:
    """The combinations of a context and a sensitive value that occur, in order of both: a separate record column."""

    context: Ints
    value: Ints

    @property
    def size(self) -> int:
        return len(self.value)


@dataclass(frozen=True)
class Tuples:
    """The tuples of several sensitive columns that occur, as codes, in order: a separate record column."""

    codes: Ints  # [tuples, columns]

    @property
    def size(self) -> int:
        return len(self.codes)


OtherColumn = Domain | Combinations | Tuples
WidenCounts = Callable[[Column, Builder, ValueCounts], ValueCounts]
Combined = tuple[type, tuple[str, ...]]  # Combinations or Tuples, of sensitive columns


@dataclass
class Cube:
    """The table as the search sees it: records of quasi-identifier codes, then of the codes of `others`, which are the
    sensitive columns, the target column if the search is to keep one predictable, and combinations of sensitive
    columns that a criterion reads together. Where equal rows were counted, the people of a record follow in two halves;
    where individuals have several values, after these the occurrences of its value."""

    domains: list[Domain]
    by_code: list[Ints]  # the people of the table by code, per quasi-identifier
    others: list[OtherColumn]
    totals: list[Ints]  # the same per other
    records: Records
    counted: bool = False  # equal rows are one record
    target: int | None = None  # index in others
    sensitive: int = 1  # the number of others that are sensitive columns; they come first
    combined: dict[Combined, int] = field(default_factory=dict)  # index of each combination in others
    people: int | None = None  # individuals, if they have several values each; totals then count occurrences

    @property
    def individuals(self) -> int:
        return int(self.totals[0].sum()) if self.people is None else self.people

    @property
    def held(self) -> int:
        """Return the bytes that the sensitive values take beside the records, from the search to the report."""
        return VALUE * sum(other.size for other in self.others)

    @property
    def several(self) -> bool:
        """Return whether individuals have several values."""
        return self.people is not None

    @property
    def people_at(self) -> int:
        """Return the first of the record columns that hold the people; -1 if every record is one person."""
        return len(self.domains) + len(self.others) if self.counted else -1

    @property
    def values_at(self) -> int:
        """Return the first of the record columns that hold the occurrences of the record's value; -1 as above."""
        return self.people_at + 2 if self.several else self.people_at

    def people_of(self, codes: Codes) -> Ints:
        """Return the people of records, given all their columns."""
        if not self.counted:
            return np.ones(codes.shape[1], np.int64)
        return whole_numbers(codes[self.people_at : self.people_at + 2]).astype(np.int64)

    def value_column(self, name: str | None) -> int:
        """Return the index of a sensitive column in others; any index serves a criterion without a column."""
        return 0 if name is None else [d.column for d in self.others if isinstance(d, Domain)].index(name)

    def domain(self, name: str) -> Domain:
        """Return the domain of a sensitive column."""
        return next(d for d in self.others if isinstance(d, Domain) and d.column == name)

    def reading(self, criterion: Criterion) -> int:
        """Return the index in others of the column or combination that a criterion reads."""
        if criterion.columns:
            return self.combined[Tuples, criterion.columns]
        if criterion.context:
            return self.combined[Combinations, (*criterion.context, str(criterion.column))]
        return self.value_column(criterion.column)

    def tuples(self, columns: tuple[str, ...]) -> Ints:
        """Return the tuples of some sensitive columns that occur, as codes [tuples, columns]."""
        tuples = self.others[self.combined[Tuples, columns]]
        assert isinstance(tuples, Tuples)
        return tuples.codes

    def seen_by(self, groups: Groups, column: int) -> Groups:
        """Return groups of codes of one of the others as a criterion that reads it sees them."""
        other = self.others[column]
        return groups.apart(other.context, other.value) if isinstance(other, Combinations) else groups

    def whole_table(self, column: int) -> Groups:
        """Return the table as one group."""
        whole = self.seen_by(Groups.dense(self.totals[column][None, :]), column)
        return replace(whole, n=np.array([self.people])) if self.several else whole


@dataclass(frozen=True)
class Encoder:
    """Encodes rows of the source as records: the columns it reads, their domains, and the combinations that follow
    them, each with the positions of its columns among those and its tuples of codes in order."""

    columns: list[Column]
    domains: list[Domain]
    combinations: list[tuple[list[int], Ints]] = field(default_factory=list)

    def codes(self, batch: pa.RecordBatch, more: int = 0) -> Codes:
        """Return the codes of the first columns of a batch, with `more` uninitialized columns after them."""
        codes = np.empty((len(self.domains) + len(self.combinations) + more, batch.num_rows), np.uint16)
        for index, domain in enumerate(self.domains):
            domain.encode(batch.column(index), codes[index])
        for index, (places, known) in enumerate(self.combinations, len(self.domains)):
            codes[index] = self._combined(codes[places], known)
        return codes

    def _combined(self, codes: Codes, known: Ints) -> Ints:
        key, of = np.zeros(codes.shape[1], np.int64), np.zeros(len(known), np.int64)
        for place in range(len(codes)):  # keys stay small: after each column they are ranks among the known ones
            steps, of = np.unique(of * CODES + known[:, place], return_inverse=True)
            wanted = key * CODES + codes[place]
            key = np.searchsorted(steps, wanted)
            if (steps[np.minimum(key, len(steps) - 1)] != wanted).any():
                raise SourceError("new combinations of values appeared while the source was being read")
        return key


@dataclass(frozen=True)
class RecordStore:
    """Storage for records: `place` allocates it, given the number of records, the number of codes of each column and a
    name; the number of threads that fill it, and a callback for the number of rows read."""

    place: Callable[[int, list[int], str], Records] = lambda count, sizes, name: in_memory(count, sizes)
    threads: int = 1
    on_progress: ProgressCallback = lambda **facts: None

    def counts(self, source: Source, columns: list[Column]) -> list[ValueCounts]:
        """Return the value counts of the columns, in order."""
        return list(count(source, columns, self.threads, self.on_progress))

    def combinations(self, source: Source, columns: list[Column]) -> tuple[int, pa.Table | None]:
        """Return the number of tuples of values that some columns have, and these with the rows n of each, unless there
        are too many."""
        with counted_values(source, columns) as distinct:
            return distinct, None if distinct > CODES else source.query("SELECT * FROM counted").combine_chunks()

    def fill(self, cube: Cube, source: Source, encoder: Encoder) -> None:
        """Make the records of a cube."""
        from anon.cube import several_values

        if source.multiplicity == "single":
            _fill(cube, source, encoder, self)
        else:
            several_values.fill(cube, source, encoder, self)


def build(
    source: Source,
    builders: list[Builder],
    target: str | None = None,
    combined: Collection[Combined] = (),
    store: RecordStore | None = None,
    widened: WidenCounts = lambda column, builder, counted: counted,
) -> Cube:
    """Return the cube of a source, which is read for the domains, and once more for the records. `widened` may add
    values to quasi-identifiers that do not occur."""
    store = store or RecordStore()
    read = [*source.sensitive]
    if target is not None:
        read.append(next(c for c in [*source.quasi_identifiers, *source.sensitive, *source.keep] if c.name == target))
    counts = store.counts(source, [*source.quasi_identifiers, *read])
    own, rest = counts[: len(builders)], counts[len(builders) :]
    wide = [widened(*each) for each in zip(source.quasi_identifiers, builders, own)]
    coded = _coded(source, builders, wide)
    domains, by_code = [domain for domain, _ in coded], [rows for _, rows in coded]
    own_domains = [sensitive(column, each) for column, each in zip(read, rest)]
    others: list[OtherColumn] = [*own_domains]
    totals = [each.rows for each in rest]
    if not others:
        others, totals = [Domain("", "integer", pa.array([0]), True, False)], [np.array([source.rows])]
    at = None if target is None else len(read) - 1
    cube = Cube(domains, by_code, others, totals, in_memory(0, []), False, at, len(source.sensitive))
    known = [_combine(source, cube, store, *both) for both in combined]
    encoder = Encoder([*source.quasi_identifiers, *read], [*domains, *own_domains], known)
    store.fill(cube, source, encoder)
    return cube


def _coded(source: Source, builders: list[Builder], counts: list[ValueCounts]) -> list[tuple[Domain, Ints]]:
    """Return the domains of all quasi-identifiers and the rows by code; report the problems of all of them in one
    error."""
    coded, problems, missing = [], [], []
    for each in zip(source.quasi_identifiers, builders, counts):
        try:
            coded.append(quasi_identifier(source, *each))
        except ConfigError as error:
            problems += error.problems
            missing += error.missing if isinstance(error, HierarchyGap) else []
    if problems:
        raise HierarchyGap(problems, missing) if missing else ConfigError(problems)
    return coded


def _fill(cube: Cube, source: Source, encoder: Encoder, store: RecordStore) -> None:
    """Make the records of a cube. Equal rows are counted if the sizes of the domains imply that this at least halves
    the table, or if a sample of the rows shows it."""
    sizes = [domain.size for domain in (*cube.domains, *cube.others)]
    cube.counted = 2 * prod(domain.size for domain in encoder.domains) <= source.rows
    keys: list[NDArray[np.uint64]] = []
    place = store.place(source.rows, sizes + PEOPLE * cube.counted, "records")
    cube.records = _records(source, encoder, cube.counted, place, store, keys)
    if not cube.counted and _share(keys) <= 0.5:
        cube.records, cube.counted = _counted(source, cube.records, store), True


def _share(keys: list[NDArray[np.uint64]]) -> float:
    """Return the share of distinct rows among the sampled ones; it does not depend on the order of rows."""
    sampled = np.sort(np.concatenate([np.empty(0, np.uint64), *keys]))  # quicker than np.unique
    return (1 + np.count_nonzero(sampled[1:] != sampled[:-1])) / len(sampled) if len(sampled) else 1.0


def _combine(
    source: Source, cube: Cube, store: RecordStore, kind: type, names: tuple[str, ...]
) -> tuple[list[int], Ints]:
    """Add a combination of sensitive columns to the cube; return the indexes of its columns in records, and its
    tuples."""
    columns = [next(c for c in source.sensitive if c.name == name) for name in names]
    distinct, table = store.combinations(source, columns)
    if table is None:
        hint = " or say `joint: false`" if kind is Combinations else ""
        found = f"{distinct:,} combinations of sensitive values"
        raise ConfigError.at("privacy", found, f"at most {CODES:,}; coarsen them{hint}")
    codes = [cube.domain(c.name).encode(table[c.alias].combine_chunks()).astype(np.int64) for c in columns]
    order = np.lexsort(codes[::-1])
    known = np.stack(codes, axis=1)[order]
    cube.combined[kind, names] = len(cube.others)
    if kind is Tuples:
        cube.others.append(Tuples(known))
    else:
        context = np.unique(known[:, :-1], axis=0, return_inverse=True)[1].reshape(-1)
        cube.others.append(Combinations(context, known[:, -1]))
    cube.totals.append(table["n"].to_numpy().astype(np.int64)[order])
    return [len(cube.domains) + cube.value_column(name) for name in names], known


def _records(
    source: Source,
    encoder: Encoder,
    counted: bool,
    records: Records,
    store: RecordStore,
    keys: list[NDArray[np.uint64]],
) -> Records:
    """Encode the rows of the source, whose number must not have changed, and return the records; append the keys of
    sampled rows to `keys`."""
    from anon.cube import kernels

    width = len(encoder.domains) + len(encoder.combinations)

    def put(batch: pa.RecordBatch, at: int) -> None:
        codes = encoder.codes(batch, records.width - width)
        codes[width:] = 0  # the people, and the one value that all individuals have without a sensitive column
        if counted:
            people = batch.column(batch.num_columns - 1).to_numpy()
            codes[-2:] = halves(people)
        else:
            sampled = np.empty(batch.num_rows, np.uint64)
            keys.append(sampled[: kernels.sample(codes, sampled)].copy())
        records.write(at, codes)

    at, rows = 0, 0
    under_way: deque[Future[None]] = deque()
    with ThreadPoolExecutor(store.threads) as pool:
        for batch in source.batches(encoder.columns, counted, source.NARROW):
            rows += int(batch.column(batch.num_columns - 1).to_numpy().sum()) if counted else batch.num_rows
            if rows > source.rows:
                raise SourceError("rows appeared while the source was being read")
            under_way.append(pool.submit(put, batch, at))
            at += batch.num_rows
            if len(under_way) > store.threads:
                under_way.popleft().result()
            store.on_progress(done=rows + source.rows, of=2 * source.rows)
        for future in under_way:
            future.result()
    if rows != source.rows:
        raise SourceError("rows disappeared while the source was being read")
    records.count = at
    return records


def _counted(source: Source, records: Records, store: RecordStore) -> Records:
    """Return the records with equal ones counted."""
    names = [f"c{index}" for index in range(records.width)]
    schema = pa.schema([(name, pa.uint16()) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, records.count, BATCH):
            codes = records.read(start, min(start + BATCH, records.count))
            yield pa.record_batch([pa.array(column) for column in codes], schema=schema)

    listed = ", ".join(names)
    place, at = store.place(records.count, records.sizes + PEOPLE, "counted-records"), 0
    for batch in source.stream(
        f"SELECT {listed}, count(*) FROM uncounted GROUP BY {listed}",
        {"uncounted": pa.RecordBatchReader.from_batches(schema, batches())},
    ):
        codes = np.empty((place.width, batch.num_rows), np.uint16)
        for index in range(len(names)):
            codes[index] = batch.column(index).to_numpy()
        people = batch.column(len(names)).to_numpy()
        codes[-2:] = halves(people)
        place.write(at, codes)
        at += batch.num_rows
    place.count = at
    records.close()
    return place
