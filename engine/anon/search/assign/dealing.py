"""Dealing, which *merge* and *colour* share. The people of a set are put in the order of their sensitive values and
dealt out round-robin to g groups: the i-th goes to group i mod g. People who stand next to each other in that order go
to different groups, so that a window of w people in it leaves at most ceil(w / g) of them in one group. With equal
values as windows and w <= c g no group has a value more than c times; with the neighbourhoods of a distance on a line,
every group has few people near each other. What may be dealt is a `Rule`, and before a set is dealt it is split by its
quasi-identifiers for as long as both parts may be (kernels_dealing.py), which keeps groups near.

Sets that are larger than a block fall into chunks of people, consecutive along the order of the records; if one of
these may not be dealt though the whole may, each takes every m-th person instead, which is how the whole looks."""

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
from anon.search.assign.ordering import Ordered

BLOCK = 2**19  # people; a constant, so that groups do not depend on the memory


@dataclass(frozen=True)
class Rule:
    """What may be dealt: groups of at least `size` people, of whom at most near[people of the group] others lie in the
    window around anybody's value. `place` is that of each value in the order they are dealt in, and the window of
    place p goes from low[p] to high[p], neither of which ever descends. The last places may have no window: then any
    number of people may have these values."""

    size: int
    near: Ints  # for groups of up to twice the size
    place: Ints
    low: Ints
    high: Ints

    def holds(self, counts: Ints) -> bool:
        """Whether people can be dealt of whom so many have the value at each place."""
        from anon.search.assign.kernels_dealing import can_be_dealt

        held = np.flatnonzero(counts)
        people = counts[held].astype(np.int64)
        return bool(can_be_dealt(held, people, *self.arguments))

    @property
    def arguments(self) -> tuple[int, Ints, Ints, Ints]:
        """The arguments of kernels."""
        return self.size, self.near, self.low, self.high

    @classmethod
    def copies(cls, size: int, copies: int, limited: Flags) -> Rule:
        """Return the rule by which no group has a value of those that are limited more often than `copies` times."""
        place = np.empty(len(limited), np.int64)
        place[np.argsort(~limited, kind="stable")] = np.arange(len(limited))
        alone = np.arange(int(limited.sum()))
        return cls(size, np.full(2 * size + 1, copies - 1, np.int64), place, alone, alone)


@dataclass(frozen=True)
class Dealt:
    """People of some entries and their groups, numbered from 0."""

    codes: Codes
    group: Ints
    people: Ints
    groups: int
    doubtful: list[int] = field(default_factory=list)  # groups of these that may not be safe


def scales(domains: list[Domain]) -> Floats:
    """Where the codes of each column lie, of the whole range of the column."""
    found = np.zeros((len(domains), max(domain.size for domain in domains)))
    for row, domain in zip(found, domains):
        at = domain.position
        row[: len(at)] = (at - at[0]) / (at[-1] - at[0] or 1.0)
    return found


def split(codes: Codes, people: Ints, root: Ints, rule: Rule, scale: Floats) -> tuple[Ints, Ints]:
    """Splits sets of entries, codes with the sensitive one last, for as long as both parts may be dealt. Entries with
    the same root, which ascends, are one set. Returns their order, and where the parts start in it."""
    from anon.search.assign import kernels_dealing as kernels

    place = rule.place[codes[-1]]
    order = np.lexsort([place, root])
    start = np.append(np.flatnonzero(np.append(True, root[1:] != root[:-1])), len(root))
    leaf, own = np.empty(len(root) + 1, np.int64), np.ascontiguousarray(codes[:-1])
    parts = kernels.split((own, place, people), order, start, scale, rule.arguments, leaf)
    return order, leaf[: parts + 1]


def deal(codes: Codes, people: Ints, root: Ints, rule: Rule, scale: Floats) -> Dealt:
    """Splits sets of entries, each of which may be dealt, and deals out the parts."""
    from anon.search.assign import kernels_dealing as kernels

    order, leaf = split(codes, people, root, rule, scale)
    entry, group, shares = (np.empty(int(people.sum()) + 1, np.int64) for _ in range(3))
    count = kernels.deal(order, people, leaf, rule.size, entry, group, shares)
    return Dealt(codes[:, entry[:count]], group[:count], shares[:count], int(group[-1]))


@dataclass(frozen=True)
class Chunk:
    """The people from number `first` on up to `last`, or of them those whose number leaves a remainder when it is
    divided by a stride."""

    first: int
    last: int
    stride: int = 1
    remainder: int = 0

    def share(self, begin: Ints, people: Ints) -> Ints:
        """How many of the people of each record are in the chunk, given the number of the first of each."""
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
        ordered: Ordered,
        rule: Rule,
        domains: list[Domain],
        threads: int,
        on_progress: ProgressCallback = lambda **facts: None,
        classes: Flags | None = None,
    ) -> None:
        self.ordered, self.rule, self.scale, self.threads, self.on_progress = (
            ordered,
            rule,
            scales(domains),
            threads,
            on_progress,
        )
        self.begin = np.append(0, np.cumsum(ordered.people))  # the number of the first person of each class
        self.classes = np.ones(len(ordered.people), bool) if classes is None else classes

    def run(self) -> Iterator[Dealt]:
        """The blocks in order; some are worked on ahead."""
        total, done = int(self.ordered.people[self.classes].sum()), 0
        ahead: deque[tuple[int, Future[Dealt]]] = deque()
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

    def _chunks(self) -> Iterator[Chunk]:
        """Classes that fit into a block together, and parts of those that do not fit alone."""
        edges = np.flatnonzero(np.diff(self.classes, prepend=False, append=False)).tolist()
        for first, last in zip(edges[::2], edges[1::2]):
            yield from self._chunks_of(first, last)

    def _chunks_of(self, first: int, end: int) -> Iterator[Chunk]:
        """The same for consecutive classes."""
        people = self.ordered.people
        while first < end:
            if people[first] > BLOCK:
                yield from self._parts(int(self.begin[first]), int(people[first]))
                first += 1
                continue
            last = max(int(np.searchsorted(self.begin, self.begin[first] + BLOCK, "right")) - 1, first + 1)
            last = min(last, end)
            if self.begin[last] > self.begin[first]:
                yield Chunk(int(self.begin[first]), int(self.begin[last]))
            first = last

    def _parts(self, first: int, people: int) -> list[Chunk]:
        """Chunks of a class that is larger than a block."""
        count = -(-people // BLOCK)
        ends = [first + people * i // count for i in range(count + 1)]
        for chunks in (
            [Chunk(a, b) for a, b in pairwise(ends)],
            [Chunk(first, first + people, count, i) for i in range(count)],
        ):
            if all(map(self.rule.holds, self._counts(chunks))):
                return chunks
        return [Chunk(first, first + people)]

    def _counts(self, chunks: list[Chunk]) -> Ints:
        """The people at each place of the values in some chunks."""
        counts = np.zeros((len(chunks), len(self.rule.place)), np.int64)
        for codes, people, begin, _ in self.ordered.entries(chunks[0].first, chunks[-1].last):
            place = self.rule.place[codes[-1]]
            for row, chunk in zip(counts, chunks):
                row += np.bincount(place, chunk.share(begin, people), len(row)).astype(np.int64)
            interrupt.check()
        return counts

    def _deal(self, chunk: Chunk) -> Dealt:
        return deal(*self._gathered(chunk), self.rule, self.scale)

    def _gathered(self, chunk: Chunk) -> tuple[Codes, Ints, Ints]:
        """The entries of a chunk: codes, people, and the set each belongs to."""
        pieces = []
        for codes, people, begin, root in self.ordered.entries(chunk.first, chunk.last):
            share = chunk.share(begin, people)
            some = np.flatnonzero(share)
            pieces.append((codes[:, some], share[some], root[some]))
        codes = np.concatenate([piece[0] for piece in pieces], axis=1)
        people, root = (np.concatenate([piece[i] for piece in pieces]) for i in (1, 2))
        return codes, people, root
