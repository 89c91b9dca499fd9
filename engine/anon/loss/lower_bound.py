"""Bound from below the loss of any release in which at least k individuals share their labels, to see how far a release
is from the best that is possible.

Let d(x, y) be the mean over the columns of |position of x - position of y| / extent of the column, where positions are
those that the loss is measured by. Let r(x) be the smallest distance such that at least k individuals of the source, x
among them, are no farther than r(x) from x.

Every release in which x shares labels with at least k individuals, x among them, publishes x with a loss of at least
r(x). One of the k, y, has d(x, y) >= r(x): otherwise k individuals would be nearer than r(x). In each column the label
covers the values of both, and a label covers a run of codes; positions do not decrease with codes, so that the label
extends over at least |position of x - position of y|. The mean over the columns is at least d(x, y) >= r(x).
Hierarchies, intervals, cells and other criteria only make labels wider. An individual who is suppressed loses 1, and no
d is larger.

So the mean of r over all individuals bounds the loss from below. It is seldom reached: a label must reach k individuals
at once and not only the farthest, and their groups must fit together. In a large table the mean is taken over a sample
of the individuals, each compared with all of the source: then it estimates the bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anon.config import Criterion
from anon.config.criteria.group_size import GroupSize
from anon.config.criteria.k_anonymity import KAnonymity
from anon.core.arrays import Floats
from anon.criteria import Ints
from anon.cube import Domain

if TYPE_CHECKING:
    from anon.loss.utility import Original

SAMPLE = 1_000  # individuals at most
PAIRS = 200_000_000  # of a sampled individual and an individual of the source, at most, but for the fewest samples
FEWEST = 100
ROOM = 2**21  # entries of all lists of nearest people, at most


def least_class(privacy: list[Criterion], bucketized: bool) -> int | None:
    """Return how many individuals share their labels at least, in a release that satisfies the criteria. Members of a
    group of a bucketized release may have different labels."""
    demanding = KAnonymity if bucketized else KAnonymity | GroupSize
    return max((spec.k for spec in privacy if isinstance(spec, demanding)), default=None)


def lower_bound(original: Original, k: int) -> dict[str, Any] | None:
    """Return the lower bound of the loss of all releases of a source in which at least k individuals share their
    labels; None if there are none, or if k is too large to be measured."""
    individuals = original.individuals
    size = min(SAMPLE, individuals, max(PAIRS // individuals, FEWEST), ROOM // (k + 1))
    if individuals < k or not size:
        return None
    nearest = Nearest.from_positions(_sampled(original, size), k)
    nearest.add_all(_records(original), original.threads)
    reach = nearest.distance[:, 0]
    return {
        "all": math.fsum(reach.tolist()) / size,
        "standard_error": 0.0 if size == individuals else float(np.std(reach)) / math.sqrt(size),
        "k": k,
        "sample": size,
        "individuals": individuals,
    }


@dataclass(frozen=True)
class Nearest:
    """The nearest k individuals of some records: for each a heap of distances, the farthest first, with the number of
    individuals at each distance. positions[column, record] are those of the records."""

    positions: Floats
    k: int
    distance: Floats
    people: Ints
    size: Ints
    total: Ints

    @classmethod
    def from_positions(cls, positions: Floats, k: int) -> Nearest:
        samples = positions.shape[1]
        room, counts = (samples, k + 1), np.zeros((2, samples), np.int64)
        return cls(positions, k, np.zeros(room), np.zeros(room, np.int64), counts[0], counts[1])

    def add_all(self, records: Iterator[tuple[Floats, Ints]], threads: int) -> None:
        """Compare with positions[column, record] of records and the individuals that have each, in any order."""
        from anon.loss import kernels

        bounds = np.linspace(0, len(self.size), threads + 1).astype(np.int64)
        parts = [slice(*both) for both in zip(bounds[:-1].tolist(), bounds[1:].tolist())]
        own = [np.ascontiguousarray(self.positions[:, part]) for part in parts]
        heaps = [(self.distance[part], self.people[part], self.size[part], self.total[part]) for part in parts]
        with ThreadPoolExecutor(threads) as pool:
            for positions, people in records:
                calls = [
                    pool.submit(kernels.nearest_people, sampled, positions, people, self.k, *heap)
                    for sampled, heap in zip(own, heaps)
                ]
                for call in calls:
                    call.result()


def _sampled(original: Original, size: int) -> Floats:
    """Return positions[column, individual] of a sample: of the individuals in the order of their values one at equal
    distances, which does not depend on the order of rows."""
    ranks = (2 * np.arange(size) + 1) * original.individuals // (2 * size)
    found, before = [], 0
    for positions, people in _records(original, ordered=True):
        ends = before + np.cumsum(people)
        own = ranks[(ranks >= before) & (ranks < ends[-1])]
        found.append(positions[:, np.searchsorted(ends, own, side="right")])
        before = int(ends[-1])
    return np.ascontiguousarray(np.concatenate(found, axis=1))


def _records(original: Original, ordered: bool = False) -> Iterator[tuple[Floats, Ints]]:
    """Yield the different records of the source: positions[column, record] such that differences are shares of the mean
    loss, and the individuals who have each."""
    source, domains = original.source, original.quasi_identifiers
    names = ", ".join(column.alias for column in source.quasi_identifiers)
    order = f" ORDER BY {names}" if ordered else ""
    scaled = [_scaled(domain) / len(domains) for domain in domains]
    for batch in source.rows_of(f"SELECT {names}, count(*) FROM {source.people_view} GROUP BY {names}{order}"):
        codes = [domain.encode(values) for domain, values in zip(domains, batch.columns)]
        people = batch.column(len(domains)).to_numpy().astype(np.int64)
        yield np.stack([position[own] for position, own in zip(scaled, codes)]), people


def _scaled(domain: Domain) -> Floats:
    """Return positions as shares of the extent of their column, which is 0 in a column with one value. Bins lie where
    they begin: nearer to each other than some of their values may be, and a bound may be too low."""
    position = domain.position
    whole = float(domain.end_position[-1] - position[0])
    return (position - position[0]) / whole if whole else np.zeros(len(position))
