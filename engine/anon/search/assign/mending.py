"""Merge groups that fail with others until every criterion holds, for *merge* and *colour*: for people whom the search
could not place in any group, and for criteria that the search does not aim at. Groups with consecutive numbers are
near, so a run of 2, 4, 8, ... of them, from a multiple of this number on, becomes one group while one of its groups
fails; the last run is the whole table. A release is refused only if that fails as one group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa

from anon.core.arrays import Flags, Ints
from anon.core.database import Database, connect, interruptible, translated
from anon.criteria import Criterion, Groups, Signatures, State
from anon.recoding.assignment import Assignment
from anon.search.budget import SearchBudget
from anon.search.cross_tables import MergeAdversary

BATCH = 131_072  # entries


def raised(level: Ints, failed: Flags) -> Ints:
    """Return the levels of groups after runs that fail were merged with their neighbours. A group of level i is in a
    run of 2**i groups; `failed` marks the first group of those that fail.

    >>> raised(np.array([0, 0, 1, 1, 0]), np.array([False, True, False, False, False])).tolist()
    [1, 1, 1, 1, 0]
    >>> raised(np.array([1, 1, 1, 1, 0]), np.array([False, False, True, False, True])).tolist()
    [2, 2, 2, 2, 1]
    """
    number, found = np.arange(len(level)), level.copy()
    for own in np.unique(level[failed]).tolist():
        runs = np.zeros((len(level) >> (own + 1)) + 1, bool)
        runs[number[failed & (level == own)] >> (own + 1)] = True
        found[runs[number >> (own + 1)]] = own + 1  # ascending: a larger run overwrites those that it contains
    return found


class Mending:
    """The groups of an assignment under some criteria. `adversaries` are those of the priors of all criteria."""

    def __init__(
        self,
        assignment: Assignment,
        criteria: list[Criterion],
        adversaries: Sequence[MergeAdversary],
        budget: SearchBudget,
    ) -> None:
        self.assignment, self.criteria, self.adversaries, self.budget = assignment, criteria, adversaries, budget
        self.level = np.zeros(assignment.groups, np.int64)
        self.failing: list[list[str]] = []  # the names of the criteria that failed, at each check

    def run(self, doubtful: list[Flags]) -> bool:
        """Merge groups until all criteria hold; `doubtful` marks for each criterion the groups that may fail it. Return
        False, and change nothing, if the whole table as one group fails one."""
        assert self.budget.spill is not None
        with closing(connect(self.budget.memory.total, self.budget.threads, self.budget.spill)) as database:
            while (failed := self._failed(database, doubtful)).any():
                if not self.into.any():
                    return False
                before, self.level = self.level, raised(self.level, failed)
                changed = np.zeros(len(self.level), bool)
                changed[self.into[self.level != before]] = True
                doubtful = [changed] * len(self.criteria)
        if self.level.any():
            self.assignment.merge(np.unique(self.into, return_inverse=True)[1].reshape(-1))
        return True

    @property
    def into(self) -> Ints:
        """Return the first group of the run that each group is in."""
        return np.arange(len(self.level)) >> self.level << self.level

    def _failed(self, database: Database, doubtful: list[Flags]) -> Flags:
        """Return the runs that fail a criterion, marked at their first groups; all, if they fail one only together."""
        into, failed, names = self.into, np.zeros(len(self.level), bool), set[str]()
        first = into == np.arange(len(into))
        checked = [mask if c.alone else first for c, mask in zip(self.criteria, doubtful)]
        states: dict[int, State] = {}
        for number, groups in self._groups(database, into, np.logical_or.reduce(checked)):
            for at, criterion in enumerate(self.criteria):
                mine, seen = checked[at][number], self._seen_by(at, groups)
                unsafe = mine & ~criterion.safe_alone(seen, len(number)) if mine.any() else mine
                failed[number[unsafe]] = True
                names |= {criterion.name} if unsafe.any() else set()
                if not criterion.alone:
                    state = criterion.state(seen)
                    states[at] = states[at].merge(state) if at in states else state
        if not failed.any():
            names = {self.criteria[at].name for at, state in states.items() if not self.criteria[at].holds(state)}
            failed = first & bool(names)
        self.failing.append(sorted(names))
        return failed

    def _seen_by(self, at: int, groups: Groups) -> Groups:
        """Return groups with the signatures of one criterion's priors."""
        before = sum(len(criterion.attributes) for criterion in self.criteria[:at])
        return replace(groups, signatures=groups.signatures[before : before + len(self.criteria[at].attributes)])

    def _groups(self, database: Database, into: Ints, wanted: Flags) -> Iterator[tuple[Ints, Groups]]:
        """Yield the wanted runs, some at a time: the numbers of their first groups, and their histograms."""
        names = [f"k{kind}" for kind in range(1 + len(self.adversaries))]
        schema = pa.schema([(name, pa.int64()) for name in ("g", "n", *names)])
        each = f"unnest({[*range(len(names))]}) AS kind, unnest([{', '.join(names)}]) AS code"
        query = (
            f"SELECT g, kind, code, sum(n)::BIGINT AS n FROM (SELECT g, {each}, n FROM assigned) "
            "GROUP BY g, kind, code ORDER BY g, kind, code"
        )
        database.register("assigned", pa.RecordBatchReader.from_batches(schema, self._entries(into, wanted, schema)))
        with translated("checking the groups"):
            batches = database.query(query).to_arrow_reader(BATCH)
        for entries in _whole_groups(interruptible(batches, "checking the groups")):
            yield self._histograms(*entries)

    def _entries(self, into: Ints, wanted: Flags, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the entries of some runs: the run, people, the value, and the signature of each prior."""
        for batch in self.assignment.batches():
            *codes, value, group, people = (column.to_numpy() for column in batch.columns)
            run = into[group]
            signatures = (one.index.find([codes[place] for place in one.places]) for one in self.adversaries)
            columns = (run, people, value, *signatures)
            arrays = [pa.array(column[wanted[run]].astype(np.int64)) for column in columns]
            yield pa.record_batch(arrays, schema=schema)

    def _histograms(self, group: Ints, kind: Ints, code: Ints, count: Ints) -> tuple[Ints, Groups]:
        number = np.unique(group)
        parts = []
        for own in range(1 + len(self.adversaries)):
            mine = kind == own
            parts.append((np.searchsorted(group[mine], np.append(number, number[-1] + 1)), code[mine], count[mine]))
        start, value, times = parts[0]
        people = np.add.reduceat(times, start[:-1])
        return number, Groups(people, start, value, times, signatures=tuple(Signatures(*part) for part in parts[1:]))


def _whole_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[Ints]]:
    """Yield the columns of batches that are ordered by the first one, cut where its value changes."""
    held: list[list[Ints]] = []
    for batch in batches:
        if batch.num_rows:
            columns = [column.to_numpy().astype(np.int64) for column in batch.columns]
            whole = int(np.searchsorted(columns[0], columns[0][-1]))  # the last group may continue in the next batch
            if whole:
                yield _together([*held, [column[:whole] for column in columns]])
                held = []
            held.append([column[whole:] for column in columns])
    if held:
        yield _together(held)


def _together(pieces: list[list[Ints]]) -> list[Ints]:
    return [np.concatenate(columns) for columns in zip(*pieces)]
