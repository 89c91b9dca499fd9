"""SkylineAnonymize (Chen, LeFevre, Ramakrishnan, section 5.2): starting from the whole table as one group, split groups
for as long as every criterion keeps holding (decide.py). For monotone criteria the release is then minimal over the
splits that are tried (Theorem 5, with the root checked first).

The paper's queue is breadth first, and so is this for as long as nodes are large: those with more individuals than a
*block* holds are decided level by level (top.py). The rest of the tree falls into blocks, runs of nodes that are small
enough, and is searched block by block, breadth first within each (block.py). What a block holds is a matter of the
width of the records alone, so that the order of decisions, and with it the release, does not depend on the memory.

Criteria that judge groups alone do not care about that order, and blocks go to the threads as they come. For the others
a block starts from the state that those before it left. It may be searched ahead, from an earlier state: what that one
refuses a later, lower one refuses as well; and if the later state together with the minima of the block's groups is
safe, everything that was accepted would have been accepted too. If it is not, the block is searched again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil, log2

import numpy as np

from anon.core.checkpoint import LIMIT, Arrays
from anon.core.progress import ProgressCallback
from anon.criteria import Criterion, State
from anon.cube import Cube
from anon.cube.records import Records, make
from anon.errors import UnsafeError
from anon.recoding.outcome import GroupCounts, Outcome
from anon.search.budget import SearchBudget
from anon.search.partition import block, top
from anon.search.partition.block import BlockResult, Scratch, runs_of
from anon.search.partition.candidates import Nodes
from anon.search.partition.crew import Crew
from anon.search.partition.decide import Rules, cells_within
from anon.search.partition.passes import Passes, Spares, shaped
from anon.search.partition.steps import Steps
from anon.search.partition.tree import Fragment, assemble

IN_MEMORY = 3  # times its records: what a block takes while it is searched
SMALLEST_BLOCK = 2**15  # individuals; where the order does not matter, blocks may be that small to keep threads busy
LARGEST_BLOCK = 128 * 2**20  # bytes; larger ones are not searched faster

SORT, LEVELS = 5, 12  # levels of the top that take about as long as sorting it, and as searching a block


@dataclass(frozen=True)
class Limit:
    """The individuals of a block; one that was stopped is gone on with as it was begun."""

    individuals: int

    def arrays(self) -> Arrays:
        return {"individuals": np.array(self.individuals)}

    @classmethod
    def of(cls, arrays: Arrays) -> Limit:
        return cls(int(arrays["individuals"]))


class Partition:
    """One search over one cube."""

    def __init__(
        self,
        cube: Cube,
        criteria: list[Criterion],
        prefer: str = "widest",
        budget: SearchBudget | None = None,
        progress: ProgressCallback = lambda **facts: None,
    ) -> None:
        """`prefer`: widest | balanced | information_gain (of cube.target); progress gets facts about it."""
        self.cube, self.budget, self.rules = cube, budget or SearchBudget(), Rules.of(cube, criteria, prefer)
        self.cells = cells_within(self.budget.memory.search, self.budget.threads)
        self.steps = Steps(self.budget.checkpoint)
        self.limit = self.steps.take(LIMIT, Limit.of, self._limit).individuals
        self.pace = Pace(cube.individuals, self.limit, progress)

    def run(self) -> Outcome:
        """A safe release, given that the whole table as one group is safe. Takes the records of the cube with it."""
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
        recoding, counts.rank = assemble(cube.domains, upper, fragments[upper is not None :])
        return Outcome(recoding, counts, unique)

    def _refuse_broken(self, fragments: list[Fragment]) -> None:
        broken = sum(fragment.broken for fragment in fragments)
        if broken:
            names = ", ".join(criterion.name for criterion, _ in self.rules.erratic)
            raise UnsafeError(
                f"no safe release was found: {broken:,} groups that cannot be split further do not satisfy "
                f"{names}, which may hold for other groupings of the same people"
            )

    def _limit(self) -> Limit:
        """The individuals of a block: what its bytes hold if every one of them has a record of full width, whether the
        records have it or not. Where the order does not matter, what the memory has room for in every thread, or less
        to keep threads busy."""
        width, at_once = record_bytes(self.cube), self._blocks_at_once()
        limit = max(self.budget.block // width, 1)
        if self.rules.whole or at_once == 1:
            return Limit(limit)
        most = max(limit, self._largest_block() // width)
        # halves of halves, and a little more, so that those which are not quite even are not cut once more
        shared = self.cube.individuals * 5 // (16 * at_once)
        return Limit(max(min(most, shared), min(limit, SMALLEST_BLOCK)))

    def _largest_block(self) -> int:
        """Bytes of a block that there is room for in every thread."""
        return min(self.budget.memory.search // (IN_MEMORY * self.budget.threads), LARGEST_BLOCK)

    def _blocks_at_once(self) -> int:
        """How many blocks can be searched at the same time."""
        return self.budget.threads

    def _top(self, state: list[State], counts: GroupCounts) -> tuple[list[Fragment], Records, Nodes, int, list[State]]:
        """The top of the tree if the table is larger than a block; the records in the order of the nodes to go on with,
        and these; individuals that are unique in groups of the top."""
        cube, budget, rules = self.cube, self.budget, self.rules
        if cube.individuals <= self.limit:
            root = top.root(cube, rules.demands)
            root.stop, root.safe = np.array([cube.records.count]), np.array([rules.whole_table_safe(cube)])
            return [], cube.records, root, 0, state
        room = partial(make, budget.memory.records, budget.spill, cube.records.count)
        marks = partial(make, budget.memory.marks, budget.spill, cube.records.count)
        passes = Passes(cube.records, marks, budget.threads)
        upper = top.Top(cube, rules, passes, self.limit, budget)
        ended = top.search(upper, rules, state, self.pace.advance, self.steps)
        records = room(cube.records.sizes, "sorted-records")
        top.sort(upper, ended, records)
        passes.close()
        cube.records.close()
        unique = 0
        for number in range(len(ended.groups)):
            start, stop = int(ended.groups.start[number]), int(ended.groups.stop[number])
            unique += block.large_group(cube, records, start, stop, number, counts.add, budget.block)
        return [upper.fragment], records, ended.roots, unique, ended.state

    def _blocks(self, records: Records, nodes: Nodes, state: list[State]) -> Iterator[BlockResult]:
        """Searches the blocks, some ahead, and gives what they found in order."""
        runs = list(runs_of(nodes.people, self.limit))
        largest = max((int(nodes.stop[b - 1] - nodes.start[a]) for a, b in runs), default=1)
        fit = (self.budget.memory.free - records.held) // (IN_MEMORY * 2 * records.width * largest)
        workers = max(min(self.budget.threads, fit), 1)
        ahead: deque[Future[BlockResult]] = deque()
        todo = iter(runs)
        left = [state]  # by the blocks that were given, in its only place

        def latest() -> list[State]:
            """What the blocks that are done have left, one after the other. A block goes from `ahead` only after its
            state was taken over, so they are looked at in this order; one that is taken over twice does no harm."""
            found, now = tuple(ahead), left[0]
            for each in found:
                if not each.done() or each.exception() or not self.rules.hold(merged := each.result().after(now)):
                    break
                now = merged
            return now

        # after a block was searched ahead in vain: one at a time, until one leaves the state as it was
        alone = len(runs) == 1
        rooms = Spares(lambda: Scratch(records.width, largest))
        with Crew(self.budget.threads) as crew, ThreadPoolExecutor(workers) as pool:
            search = partial(self._block, crew, records, nodes, rooms, latest)
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
        nodes: Nodes,
        rooms: Spares[Scratch],
        latest: Callable[[], list[State]],
        run: tuple[int, int],
        on_progress: ProgressCallback = lambda **facts: None,
        again: bool = False,
    ) -> BlockResult:
        """What one block comes to from the latest state, unless that is among the finished steps."""
        finished = None if again else self.steps.finished(f"block-{run[0]}", BlockResult.of)
        if finished is not None:
            return finished
        roots = nodes.take(slice(*run))
        first, last = int(roots.start[0]), int(roots.stop[-1])
        roots.start, roots.stop = roots.start - first, roots.stop - first
        with rooms.one() as room, crew.block():
            codes = shaped(room.codes, records.width, last - first)
            records.fill(first, codes, range(records.width))
            return block.search(self.cube, self.rules, codes, roots, latest(), crew, room, self.cells, on_progress)


class Pace:
    """How far a search has come, in rows taken down a level; to sort counts for SORT levels, a block for LEVELS."""

    def __init__(self, people: int, limit: int, progress: ProgressCallback) -> None:
        above = ceil(log2(people / limit)) + SORT if people > limit else 0
        self.done, self.rows, self.progress = 0, people * (above + LEVELS), progress

    def advance(self, more: int, **facts: int) -> None:
        """Passes facts on, with how many rows were done and how many there are in all."""
        self.done = min(self.done + more, self.rows)
        self.progress(done=self.done, of=self.rows, **facts)

    def within(self, people: int, level: int, **facts: int) -> None:
        """Tells of a level of a block of so many people that is searched while no other is."""
        self.progress(done=self.done + people * min(level, LEVELS - 1), of=self.rows, level=level, **facts)


def record_bytes(cube: Cube) -> int:
    """Bytes of what an individual has of records that count their people: of several records where they have several
    values each."""
    own = 2 * (len(cube.domains) + len(cube.others)) + 4
    return own if cube.people is None else (own + 4) * max(-(-int(cube.totals[0].sum()) // cube.people), 1)
