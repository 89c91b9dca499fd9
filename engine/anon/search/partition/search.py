"""SkylineAnonymize (Chen, LeFevre, Ramakrishnan, section 5.2): starting from the whole table as one group, split groups
while every criterion still holds (decide.py). For monotone criteria the release is then minimal over the splits that
are tried (Theorem 5, with the root checked first).

The paper's queue is breadth first, and so is this search while nodes are large: those with more individuals than a
*block* holds are decided level by level (top.py). The rest of the tree is divided into blocks, runs of nodes that are
small enough, and is searched block by block, breadth first within each (block.py). The size of a block depends on the
width of the records alone, so that the order of decisions, and with it the release, does not depend on the memory.

Criteria that judge groups alone do not depend on that order, and threads take blocks in any order. For the others a
block starts from the state that the previous blocks left. It may be searched ahead, from an earlier state: whatever
that state refuses, a later, lower one refuses as well; and if the later state together with the minima of the block's
groups is safe, everything that was accepted would have been accepted too. If it is not, the block is searched again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log2

import numpy as np

from anon.core.checkpoint import LIMIT, Arrays
from anon.core.phrases import counted
from anon.core.progress import ProgressCallback
from anon.criteria import Criterion, State
from anon.cube import Cube
from anon.cube.records import Records, make
from anon.errors import UnsafeError
from anon.recoding.assignment import Assignment
from anon.recoding.outcome import GroupCounts, Outcome
from anon.recoding.refined import REFINED, RefinedRecoding
from anon.search.budget import SearchBudget
from anon.search.partition import block, top
from anon.search.partition.block import BlockResult, Scratch, runs_of
from anon.search.partition.candidates import OpenNodes
from anon.search.partition.decide import Rules, at_root, cells_within
from anon.search.partition.dropping import NOBODY, Suppression
from anon.search.partition.fragments import Fragment, assemble, canonical, passed_over
from anon.search.partition.guard import Guard
from anon.search.partition.kernels import MOST_SMALL
from anon.search.partition.passes import Passes, ReusePool, shaped
from anon.search.partition.refine import LARGEST, entries_of
from anon.search.partition.resuming import Steps
from anon.search.partition.threads import Crew

IN_MEMORY = 3  # the memory of a block while it is searched, as a multiple of its records
SMALLEST_BLOCK = 2**15  # individuals; where the order does not matter, blocks may be that small to keep threads busy
LARGEST_BLOCK = 128 * 2**20  # bytes; larger ones are not searched faster

SORT, LEVELS = 5, 12  # levels of the top that take about as long as sorting it, and as searching a block


@dataclass(frozen=True)
class BlockLimit:
    """The number of individuals of a block; a resumed search uses that of the stopped one."""

    individuals: int

    def arrays(self) -> Arrays:
        return {"individuals": np.array(self.individuals)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> BlockLimit:
        return cls(int(arrays["individuals"]))


class PartitionSearch:
    """A search over one cube."""

    def __init__(
        self,
        cube: Cube,
        criteria: list[Criterion],
        prefer: str = "widest",
        budget: SearchBudget | None = None,
        progress: ProgressCallback = lambda **facts: None,
        tight: bool = False,
        peel: bool = False,
        refine: bool = False,
        guard: Guard | None = None,
        suppression: Suppression = NOBODY,
    ) -> None:
        """Take a cube and criteria; `prefer` is widest | balanced | loss | public | information_gain (of cube.target).
        With `tight`, labels of columns that are cut freely reach only as far as the members of the group. With `peel`,
        the safe parts of a split by a hierarchy leave although others are not. With `refine`, groups are divided anew
        where that loses less (refine.py). `guard`: coins, with prefer public. `suppression`: the share of
        people that may be dropped."""
        self.cube, self.budget = cube, budget or SearchBudget()
        rules = Rules.from_criteria(cube, criteria, prefer, tight, peel, guard, suppression)
        self.rules = replace(rules, refine=refine)
        self.cells = cells_within(self.budget.memory.search, self.budget.threads)
        self.steps = Steps(self.budget.checkpoint)
        self.limit = self.steps.take(LIMIT, BlockLimit.from_arrays, self._limit).individuals
        by_nodes = any(domain.by_nodes for domain in cube.domains)
        self.rules = self.rules.with_small(0 if by_nodes else min(MOST_SMALL, self.limit))
        self.pace = Pace(cube.individuals, self.limit, progress)
        self.assignment: Assignment | None = None  # of individuals to the groups after the post-pass

    def run(self) -> Outcome:
        """Return a safe release, given that the whole table as one group is safe, or that people may be dropped.
        Consumes the records of the cube."""
        if self.rules.refine:
            return self._refined()
        cube, state = self.cube, self.rules.first_state(self.cube)
        counts = GroupCounts(cube.sensitive, self.budget.spill)
        fragments, records, nodes, unique, state = self._top(state, counts)
        upper = fragments[0] if fragments else None
        groups = sum(fragment.groups for fragment in fragments)
        for found in self._blocks(records, nodes, state):
            counts.add(found.group + groups, found.codes, found.people)
            fragments.append(found.fragment)
            groups += found.fragment.groups
            unique += found.unique
        records.close()
        self._refuse_broken(fragments)
        self._refuse_above_caps(fragments)
        passed, one_group_safe = passed_over(fragments), not self.rules.suppression or self.rules.one_group_safe(cube)
        recoding, counts.rank = assemble(cube.domains, upper, fragments[upper is not None :], self.rules.reach)
        if not one_group_safe and recoding.groups == 1 and not recoding.suppressed:
            raise UnsafeError(
                "no safe release was found: the whole table as one group is not safe, and cannot be split"
            )
        if self.rules.guard is None:
            return Outcome(recoding, counts, unique)
        return Outcome(recoding, counts, unique, passed=passed[np.argsort(counts.rank)])

    def _refined(self) -> Outcome:
        """Return the release after the post-pass."""
        cube, state = self.cube, self.rules.first_state(self.cube)
        counts = GroupCounts(cube.sensitive, self.budget.spill)
        self.assignment = assignment = Assignment(REFINED, cube.domains, self.budget.spill)
        fragments, records, nodes, unique, state = self._top(state, counts)
        low, high = ([cell for fragment in fragments for cell in getattr(fragment, end)] for end in ("low", "high"))
        groups = sum(map(len, low))
        for found in self._blocks(records, nodes, state):
            own = found.regrouped
            assert own is not None, "every block has had its post-pass"
            assignment.add(own.codes, own.group + groups, own.people)
            counts.add(own.group + groups, own.codes[-1:].T, own.people)
            low.append(own.low)
            high.append(own.high)
            groups += len(own.low)
            unique += found.unique
        records.close()
        labels, counts.rank = canonical(cube.domains, np.concatenate(low), np.concatenate(high))
        assignment.merge(counts.rank.astype(np.int64))
        return Outcome(RefinedRecoding(cube.domains, labels, assignment.people, assignment), counts, unique)

    def _refuse_broken(self, fragments: list[Fragment]) -> None:
        broken = sum(fragment.broken for fragment in fragments)
        if broken:
            names = ", ".join(criterion.name for criterion, _ in self.rules.erratic)
            groups = counted(
                broken, "group that cannot be split further does", "groups that cannot be split further do"
            )
            raise UnsafeError(
                f"no safe release was found: {groups} not satisfy "
                f"{names}, which may hold for other groupings of the same people"
            )

    def _refuse_above_caps(self, fragments: list[Fragment]) -> None:
        """Raise UnsafeError if groups could not be split down to the cap of a column."""
        capped = [j for j, domain in enumerate(self.cube.domains) if domain.capped]
        for j in capped:
            pairs = ((low[:, j], high[:, j]) for each in fragments for low, high in zip(each.low, each.high))
            above = sum(np.count_nonzero(at_root(self.cube.domains[j], low, high)) for low, high in pairs)
            if above:
                name = self.cube.domains[j].column
                found = f"no safe release was found within columns.quasi_identifiers.{name}.at_most"
                raise UnsafeError(f"{found}: {above:,} of the groups would have to be coarser in that column")

    def _limit(self) -> BlockLimit:
        """Return the number of individuals of a block: those whose records fit in its bytes if each has a record of
        full width, whether the records have it or not. Where the order does not matter, those that fit in memory in
        every thread, or fewer to keep threads busy. Everybody who may be divided anew together is in one block."""
        width, at_once = record_bytes(self.cube), self._blocks_at_once()
        least = LARGEST if self.rules.refine else 1
        limit = max(self.budget.block // width, least)
        if self.rules.whole or at_once == 1:
            return BlockLimit(limit)
        most = max(limit, self._largest_block() // width)
        # quarters of the table, and a little more, so that slightly uneven parts are not cut once more
        shared = self.cube.individuals * 5 // (16 * at_once)
        return BlockLimit(max(min(most, shared), min(limit, SMALLEST_BLOCK), least))

    def _largest_block(self) -> int:
        """Return the bytes of a block for which every thread has memory."""
        return min(self.budget.memory.search // (IN_MEMORY * self.budget.threads), LARGEST_BLOCK)

    def _blocks_at_once(self) -> int:
        """Return the number of blocks that can be searched at the same time."""
        return self.budget.threads

    def _top(
        self, state: list[State], counts: GroupCounts
    ) -> tuple[list[Fragment], Records, OpenNodes, int, list[State]]:
        """Return the top of the tree if the table is larger than a block, the records in the order of the nodes that
        remain to be searched, these nodes, the number of unique individuals in groups of the top, and the state."""
        cube, budget, rules = self.cube, self.budget, self.rules
        if cube.individuals <= self.limit:
            root = top.root(cube, rules)
            root.stop = np.array([cube.records.count])
            return [], cube.records, root, 0, state
        store = partial(make, budget.memory.records, budget.spill, cube.records.count)
        marks = partial(make, budget.memory.marks, budget.spill, cube.records.count)
        passes = Passes(cube.records, marks, budget.threads)
        upper = top.Top(cube, rules, passes, self.limit, budget)
        ended = top.search(upper, rules, state, self.pace.advance, self.steps)
        records = store(cube.records.sizes, "sorted-records")
        top.sort(upper, ended, records)
        passes.close()
        cube.records.close()
        unique = 0
        for number in range(len(ended.dropped)):
            start, stop = int(ended.dropped.start[number]), int(ended.dropped.stop[number])
            unique += block.large_group(cube, records, start, stop, number, lambda *counts: None, budget.block)
        for number in range(len(ended.groups)):
            start, stop = int(ended.groups.start[number]), int(ended.groups.stop[number])
            unique += block.large_group(cube, records, start, stop, number, counts.add, budget.block)
            if self.assignment is not None:
                self._assign_large(self.assignment, records, start, stop, number)
        return [upper.fragment], records, ended.roots, unique, ended.state

    def _assign_large(self, assignment: Assignment, records: Records, start: int, stop: int, group: int) -> None:
        """Add a group that is larger than a block, a piece at a time."""
        step = max(self.budget.block // (2 * records.width), 1)
        for first in range(start, stop, step):
            codes, people = entries_of(self.cube, records.read(first, min(first + step, stop)))
            assignment.add(codes, np.full(len(people), group), people)

    def _blocks(self, records: Records, nodes: OpenNodes, state: list[State]) -> Iterator[BlockResult]:
        """Search the blocks, some ahead, and yield their results in order."""
        runs = list(runs_of(nodes.people, self.limit))
        largest = max((int(nodes.stop[b - 1] - nodes.start[a]) for a, b in runs), default=1)
        fit = (self.budget.memory.free - records.held) // (IN_MEMORY * 2 * records.width * largest)
        workers = max(min(self.budget.threads, fit), 1)
        ahead: deque[Future[BlockResult]] = deque()
        todo = iter(runs)
        left = [state]  # the state after the blocks that were yielded, its only element

        def latest() -> list[State]:
            """Return the state after the blocks that are done, in order. A block leaves `ahead` only after its state
            was merged, so `ahead` is read first; merging a state twice does no harm."""
            found, now = tuple(ahead), left[0]
            for each in found:
                if not each.done() or each.exception() or not self.rules.hold(merged := each.result().after(now)):
                    break
                now = merged
            return now

        # after a block had to be searched again: one at a time, until one leaves the state unchanged
        alone = len(runs) == 1
        scratches = ReusePool(lambda: Scratch(records.width, largest))
        with Crew(self.budget.threads) as crew, ThreadPoolExecutor(workers) as pool:
            search = partial(self._block, crew, records, nodes, scratches, latest)
            for done, run in enumerate(runs):
                people = int(nodes.people[slice(*run)].sum())
                self.pace.advance(0, blocks=len(runs) - done, individuals=int(nodes.people[run[0] :].sum()))
                by_itself = {"on_progress": partial(self.pace.within, people)}
                while len(ahead) < (1 if alone else 2 * workers) and (following := next(todo, None)):
                    ahead.append(pool.submit(search, following, **(by_itself if alone else {})))
                found = ahead[0].result()
                merged = found.after(left[0])
                if not self.rules.hold(merged):
                    found, alone = pool.submit(search, run, **by_itself, again=True).result(), True
                    merged = found.state
                elif all((now.values == then.values).all() for now, then in zip(merged, left[0])):
                    alone = False
                left[0] = merged
                ahead.popleft()
                self.steps.finish(f"block-{run[0]}", found)
                self.pace.advance(people * LEVELS, blocks=len(runs) - done - 1)
                yield found

    def _block(
        self,
        crew: Crew,
        records: Records,
        nodes: OpenNodes,
        scratches: ReusePool[Scratch],
        latest: Callable[[], list[State]],
        run: tuple[int, int],
        on_progress: ProgressCallback = lambda **facts: None,
        again: bool = False,
    ) -> BlockResult:
        """Return the result of one block: from the finished steps if it is there, otherwise from the latest state."""
        finished = None if again else self.steps.finished(f"block-{run[0]}", BlockResult.from_arrays)
        if finished is not None:
            return finished
        roots = nodes.take(slice(*run))
        first, last = int(roots.start[0]), int(roots.stop[-1])
        roots.start, roots.stop = roots.start - first, roots.stop - first
        with scratches.one() as scratch, crew.block():
            codes = shaped(scratch.codes, records.width, last - first)
            records.fill(first, codes, range(records.width))
            return block.search(self.cube, self.rules, codes, roots, latest(), crew, scratch, self.cells, on_progress)


class Pace:
    """The progress of a search, in rows moved down a level; sorting counts as SORT levels, a block as LEVELS."""

    def __init__(self, people: int, limit: int, progress: ProgressCallback) -> None:
        above = ceil(log2(people / limit)) + SORT if people > limit else 0
        self.done, self.rows, self.progress = 0, people * (above + LEVELS), progress

    def advance(self, more: int, **facts: int) -> None:
        """Report facts, with the number of rows done and the number of all rows."""
        self.done = min(self.done + more, self.rows)
        self.progress(done=self.done, of=self.rows, **facts)

    def within(self, people: int, level: int, **facts: int) -> None:
        """Report a level of a block with this number of people that is searched while no other is."""
        self.progress(done=self.done + people * min(level, LEVELS - 1), of=self.rows, level=level, **facts)


def record_bytes(cube: Cube) -> int:
    """Return the bytes of an individual's records, with counts of people; of several records where individuals have
    several values each."""
    own = 2 * (len(cube.domains) + len(cube.others)) + 4
    return own if cube.people is None else (own + 4) * max(-(-int(cube.totals[0].sum()) // cube.people), 1)
