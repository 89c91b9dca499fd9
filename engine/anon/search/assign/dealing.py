"""Deal people to groups, for *merge* and *colour*. The people of a set are put in the order of their sensitive values
and dealt out round-robin to g groups: the i-th goes to group i mod g. People next to each other in that order go to
different groups, so that a window of w people in it leaves at most ceil(w / g) of them in one group. With equal values
as windows and w <= c g no group has a value more than c times; with the neighbourhoods of a distance on a line, every
group has few people near each other. A `Rule` states what may be dealt, and before a set is dealt it is split by its
quasi-identifiers while both parts may be dealt (kernels_dealing.py), so that the people of a group are near each other.

Sets that are larger than a block are divided into chunks of people, consecutive along the order of the records; if one
of these may not be dealt though the whole may, each takes every m-th person instead, so that it resembles the whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from anon.core import interrupt
from anon.core.arrays import Codes, Flags, Floats, Ints
from anon.core.progress import ProgressCallback
from anon.cube import Domain
from anon.search.assign.ordering import OrderedRecords

BLOCK = 2**19  # people; a constant, so that groups do not depend on the memory


@dataclass(frozen=True)
class Rule:
    """The rule of what may be dealt: groups of at least `size` people, of whom at most near[people of the group] others
    lie in the window around the value of any of them. `place` is the position of each value in the order of dealing,
    and the window of place p goes from low[p] to high[p], neither of which ever descends. The last places may have no
    window: then any number of people may have these values."""

    size: int
    near: Ints  # for groups of up to twice the size
    place: Ints
    low: Ints
    high: Ints

    def holds(self, counts: Ints) -> bool:
        """Return whether people can be dealt, given the number of them with the value at each place."""
        from anon.search.assign.kernels_dealing import can_be_dealt

        held = np.flatnonzero(counts)
        people = counts[held].astype(np.int64)
        return bool(can_be_dealt(held, people, *self.arguments))

    @property
    def arguments(self) -> tuple[int, Ints, Ints, Ints]:
        """Return the arguments of kernels."""
        return self.size, self.near, self.low, self.high

    @classmethod
    def copies(cls, size: int, copies: int, limited: Flags) -> Rule:
        """Return the rule by which no group has a `limited` value more than `copies` times."""
        place = np.empty(len(limited), np.int64)
        place[np.argsort(~limited, kind="stable")] = np.arange(len(limited))
        alone = np.arange(int(limited.sum()))
        return cls(size, np.full(2 * size + 1, copies - 1, np.int64), place, alone, alone)


@dataclass(frozen=True)
class DealtGroups:
    """The people of some entries and their groups, numbered from 0."""

    codes: Codes
    group: Ints
    people: Ints
    groups: int
    doubtful: list[int] = field(default_factory=list)  # groups of these that may not be safe


def scales(domains: list[Domain]) -> Floats:
    """Return the position of the codes of each column as a share of the whole range of the column."""
    found = np.zeros((len(domains), max(domain.size for domain in domains)))
    for row, domain in zip(found, domains):
        at = domain.position
        row[: len(at)] = (at - at[0]) / (at[-1] - at[0] or 1.0)
    return found


def split(codes: Codes, people: Ints, root: Ints, rule: Rule, scale: Floats) -> tuple[Ints, Ints]:
    """Split sets of entries, codes with the sensitive one last, while both parts may be dealt. Entries with the same
    root, which ascends, are one set. Return their order, and where the parts start in it."""
    from anon.search.assign import kernels_dealing as kernels

    place = rule.place[codes[-1]]
    order = np.lexsort([place, root])
    start = np.append(np.flatnonzero(np.append(True, root[1:] != root[:-1])), len(root))
    leaf, own = np.empty(len(root) + 1, np.int64), np.ascontiguousarray(codes[:-1])
    parts = kernels.split((own, place, people), order, start, scale, rule.arguments, leaf)
    return order, leaf[: parts + 1]


def deal(codes: Codes, people: Ints, root: Ints, rule: Rule, scale: Floats) -> DealtGroups:
    """Split sets of entries, each of which may be dealt, and return the groups to which the parts are dealt."""
    from anon.search.assign import kernels_dealing as kernels

    order, leaf = split(codes, people, root, rule, scale)
    entry, group, shares = (np.empty(int(people.sum()) + 1, np.int64) for _ in range(3))
    count = kernels.deal(order, people, leaf, rule.size, entry, group, shares)
    return DealtGroups(codes[:, entry[:count]], group[:count], shares[:count], int(group[-1]))


@dataclass(frozen=True)
class PeopleChunk:
    """The people with numbers from `first` up to, not including, `last`, or those of them whose number leaves
    `remainder` when it is divided by `stride`."""

    first: int
    last: int
    stride: int = 1
    remainder: int = 0

    def share(self, begin: Ints, people: Ints) -> Ints:
        """Return the number of people of each record that are in the chunk, given the number of the first of each."""
        low, high = np.maximum(begin, self.first), np.minimum(begin + people, self.last)
        if self.stride > 1:
            low, high = (-((self.remainder - end) // self.stride) for end in (low, high))
        found: Ints = np.maximum(high - low, 0)
        return found


class Dealer:
    """Deals the classes of ordered records, all or some of them, each of which may be dealt as a whole, block by
    block."""

    def __init__(
        self,
        ordered: OrderedRecords,
        rule: Rule,
        domains: list[Domain],
        threads: int,
        on_progress: ProgressCallback = lambda **facts: None,
        classes: Flags | None = None,
    ) -> None:
        self.ordered, self.rule, self.scale = ordered, rule, scales(domains)
        self.threads, self.on_progress = threads, on_progress
        self.begin = np.append(0, np.cumsum(ordered.people))  # the number of the first person of each class
        self.classes = np.ones(len(ordered.people), bool) if classes is None else classes

    def run(self) -> Iterator[DealtGroups]:
        """Yield the groups of the blocks in order; some blocks are processed ahead."""
        total, done = int(self.ordered.people[self.classes].sum()), 0
        ahead: deque[tuple[int, Future[DealtGroups]]] = deque()
        chunks = self._chunks()
        with ThreadPoolExecutor(self.threads) as pool:
            while True:
                while len(ahead) <= self.threads and (chunk := next(chunks, None)) is not None:
                    ahead.append(((chunk.last - chunk.first) // chunk.stride, pool.submit(self._deal, chunk)))
                if not ahead:
                    return
                people, future = ahead.popleft()
                yield future.result()
                done += people
                self.on_progress(done=total + done, of=2 * total)
                interrupt.check()

    def _chunks(self) -> Iterator[PeopleChunk]:
        """Yield classes that fit into a block together, and parts of those that do not fit alone."""
        edges = np.flatnonzero(np.diff(self.classes, prepend=False, append=False)).tolist()
        for first, last in zip(edges[::2], edges[1::2]):
            yield from self._chunks_of(first, last)

    def _chunks_of(self, first: int, end: int) -> Iterator[PeopleChunk]:
        """Yield the same for consecutive classes."""
        people = self.ordered.people
        while first < end:
            if people[first] > BLOCK:
                yield from self._parts(int(self.begin[first]), int(people[first]))
                first += 1
                continue
            last = max(int(np.searchsorted(self.begin, self.begin[first] + BLOCK, "right")) - 1, first + 1)
            last = min(last, end)
            if self.begin[last] > self.begin[first]:
                yield PeopleChunk(int(self.begin[first]), int(self.begin[last]))
            first = last

    def _parts(self, first: int, people: int) -> list[PeopleChunk]:
        """Return the chunks of a class that is larger than a block."""
        count = -(-people // BLOCK)
        ends = [first + people * i // count for i in range(count + 1)]
        for chunks in (
            [PeopleChunk(a, b) for a, b in pairwise(ends)],
            [PeopleChunk(first, first + people, count, i) for i in range(count)],
        ):
            if all(map(self.rule.holds, self._counts(chunks))):
                return chunks
        return [PeopleChunk(first, first + people)]

    def _counts(self, chunks: list[PeopleChunk]) -> Ints:
        """Return the people at each place of the values in some chunks."""
        counts = np.zeros((len(chunks), len(self.rule.place)), np.int64)
        for codes, people, begin, _ in self.ordered.entries(chunks[0].first, chunks[-1].last):
            place = self.rule.place[codes[-1]]
            for row, chunk in zip(counts, chunks):
                row += np.bincount(place, chunk.share(begin, people), len(row)).astype(np.int64)
            interrupt.check()
        return counts

    def _deal(self, chunk: PeopleChunk) -> DealtGroups:
        return deal(*self._gathered(chunk), self.rule, self.scale)

    def _gathered(self, chunk: PeopleChunk) -> tuple[Codes, Ints, Ints]:
        """Return the entries of a chunk: codes, people, and the set each belongs to."""
        pieces = []
        for codes, people, begin, root in self.ordered.entries(chunk.first, chunk.last):
            share = chunk.share(begin, people)
            some = np.flatnonzero(share)
            pieces.append((codes[:, some], share[some], root[some]))
        codes = np.concatenate([piece[0] for piece in pieces], axis=1)
        people, root = (np.concatenate([piece[i] for piece in pieces]) for i in (1, 2))
        return codes, people, root
