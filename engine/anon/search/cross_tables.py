"""The knowledge of the adversaries of r-robustness for the merge search: which people have equal priors, so that their
groups need only be large enough, and the distances between different priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Floats, Ints
from anon.core.cell_index import CellIndex
from anon.core.memory import Memory, require
from anon.criteria import RRobustness
from anon.criteria.prior_tables import CELL, Counting, SignatureTable
from anon.criteria.priors import Prior
from anon.criteria.protocol import NEAR
from anon.cube import Cube
from anon.errors import ConfigError

BATCH = 131_072  # records
MERGED = 115  # bytes that a probability takes in the merge search
LARGEST = 2**62  # the numbers of classes stay below


class CrossTables:
    """The number of people of a cube by the values of some quasi-identifiers and by the sensitive value."""

    def __init__(self, cube: Cube, memory: int | None = None) -> None:
        """Take a cube and the memory limit of the whole process, which a table may exceed."""
        self.cube, self.memory = cube, memory
        self._known: dict[tuple[str, ...], tuple[Codes, Counting, Ints]] = {}

    def __call__(self, attributes: tuple[str, ...], column: str) -> tuple[SignatureTable, Counting]:
        """Return the signatures over some columns as texts, in the order of their codes, and the function that counts
        the people of each who have each value of the only sensitive column."""
        assert column == getattr(self.cube.others[0], "column", None), "a bucketized release has one sensitive column"
        if attributes not in self._known:
            self._known[attributes] = self._count(attributes)
        cells, counting, _ = self._known[attributes]
        texts = [self.cube.domains[at].texts for at in self._places(attributes)]
        return SignatureTable(texts, cells), counting

    def cells(self, attributes: tuple[str, ...]) -> Codes:
        """Return the signatures as codes [columns, signatures]."""
        return self._known[attributes][0]

    def people(self, attributes: tuple[str, ...]) -> Ints:
        """Return the number of people with each signature."""
        return self._known[attributes][2]

    def _places(self, attributes: tuple[str, ...]) -> list[int]:
        names = [domain.column for domain in self.cube.domains]
        for name in attributes:
            if name not in names:
                raise ConfigError.at("privacy", f"a prior over {name!r}", "a prior over quasi-identifiers")
            if not self.cube.domains[names.index(name)].single:
                raise ConfigError.at("privacy", f"a prior over {name!r}, which has too many values", "fewer values")
        return [names.index(name) for name in attributes]

    def _check_memory(self, cells: int) -> None:
        """Raise ResourceError if a prior with this number of probabilities does not fit in memory during the search, or
        later beside the database that judges the release."""
        if self.memory is not None:
            require(self.memory, MERGED * cells, "a prior over this number of combinations of attributes and values")
            Memory(self.memory, self.cube.held + CELL * cells).check("probabilities of a prior")

    def _count(self, attributes: tuple[str, ...]) -> tuple[Codes, Counting, Ints]:
        cube, places = self.cube, self._places(attributes)
        value = len(cube.domains)
        cells, counts = np.empty((len(places) + 1, 0), np.uint16), np.empty(0, np.int64)
        for first in range(0, cube.records.count, BATCH):
            codes = cube.records.read(first, min(first + BATCH, cube.records.count))
            people = cube.people_of(codes)
            both = np.concatenate([cells, codes[[*places, value]]], axis=1)
            order = np.lexsort(both[::-1])
            both, weight = both[:, order], np.append(counts, people)[order]
            new = np.flatnonzero(np.append(True, (both[:, 1:] != both[:, :-1]).any(axis=0)))
            cells, counts = both[:, new], np.add.reduceat(weight, new)
        begins = np.flatnonzero(np.append(True, (cells[:-1, 1:] != cells[:-1, :-1]).any(axis=0)))
        self._check_memory(len(begins) * cube.others[0].size)

        def table() -> Ints:
            found = np.zeros((len(begins), cube.others[0].size), np.int64)
            found[np.repeat(np.arange(len(begins)), np.diff(begins, append=len(counts))), cells[-1]] = counts
            return found

        return cells[:-1, begins], table, np.add.reduceat(counts, begins)


@dataclass(frozen=True)
class MergeAdversary:
    """One prior, the r that the release must satisfy against it, and its distinct rows."""

    prior: Prior
    r: Fraction
    places: list[int]  # of its attributes among the quasi-identifiers
    index: CellIndex  # of its signatures
    row_of: Ints  # the index of each signature's row among the distinct rows
    rows: Ints  # a signature with each distinct row

    @classmethod
    def from_prior(cls, prior: Prior, r: Fraction, cells: Codes, cube: Cube) -> MergeAdversary:
        """Return the adversary of a prior, given its signatures as codes."""
        names = [domain.column for domain in cube.domains]
        places = [names.index(name) for name in prior.attributes]
        row_of, rows = _distinct(prior.p.place)
        sizes = [cube.domains[place].size for place in places]
        return cls(prior, r, places, CellIndex(cells, sizes), row_of, rows)

    @property
    def named(self) -> Flags:
        """Return which values the prior constrains: all, or for a binary prior those that it names."""
        return np.isin(np.arange(len(self.prior.values)), self.prior.named)

    def table(self, rows: Ints) -> Floats:
        """Return the probabilities of all values in some rows; for a binary prior, those against each value follow.
        Probabilities that are not known are equal for all people."""
        some = self.rows[rows]
        yes = self.prior.p.floats(1.0, some)
        return np.hstack([yes, self.prior.p.complements(1.0, some)]) if self.prior.binary else yes


def _distinct(rows: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Return the index of each row among the distinct rows in order of first occurrence, and that occurrence."""
    _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    return place[number.reshape(-1)], first[order]


class Adversaries:
    """All priors together. A class is the set of people whom no prior distinguishes."""

    def __init__(self, criteria: Sequence[RRobustness], crossed: CrossTables) -> None:
        self.all = [
            MergeAdversary.from_prior(prior, criterion.r, crossed.cells(tuple(prior.attributes)), crossed.cube)
            for criterion in criteria
            for prior in criterion.priors
        ]
        if prod(len(one.rows) for one in self.all) > LARGEST:
            raise ConfigError.at("privacy", "more combinations of priors than can be numbered", "fewer priors")

    @property
    def named(self) -> Flags:
        """Return which values some prior constrains. The others may occur in a group any number of times."""
        named: Flags = np.logical_or.reduce([one.named for one in self.all])
        return named

    @property
    def r(self) -> Fraction:
        """Return the largest r of all criteria."""
        return max(one.r for one in self.all)

    def r_of(self, value: int) -> Fraction:
        """Return the largest r against a prior that constrains a value."""
        return max((one.r for one in self.all if one.named[value]), default=Fraction(1))

    def classes(self, codes: Codes) -> Ints:
        """Return the number of the class of each tuple of quasi-identifiers [columns, records]."""
        key = np.zeros(codes.shape[1], np.int64)
        for one in self.all:
            signature = one.index.find([codes[place] for place in one.places])
            key = key * len(one.rows) + one.row_of[signature]
        return key

    def known(self, keys: Ints) -> PriorTable:
        """Return the priors of the classes with these numbers."""
        tables = []
        for one in reversed(self.all):
            keys, rows = np.divmod(keys, len(one.rows))
            tables.append(one.table(rows))
        tables.reverse()
        first = np.cumsum([0, *(table.shape[1] for table in tables[:-1])])
        binary = np.array([one.prior.binary for one in self.all], np.int64)
        named = np.array([one.named for one in self.all], np.uint8)
        r = np.array([float(one.r) for one in self.all])
        return PriorTable(np.ascontiguousarray(np.hstack(tables)), first, binary, named, r)


@dataclass(frozen=True)
class PriorTable:
    """The priors of some classes in one table, as the kernels of merging read it."""

    table: Floats
    first: Ints
    binary: Ints
    named: NDArray[np.uint8]  # [priors, values] that a prior constrains
    r: Floats

    @property
    def values(self) -> int:
        found: int = self.named.shape[1]
        return found

    @property
    def limited(self) -> Flags:
        """Return which values some prior constrains."""
        limited: Flags = np.logical_or.reduce(self.named, dtype=bool)
        return limited

    @cached_property
    def logs(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.table), -700.0)  # a finite value for zeros, far from all others

    def impossible(self) -> Flags:
        """Return which [classes, values] some prior rules out, or is certain of."""
        found = np.zeros((len(self.table), self.values), bool)
        for first, binary in zip(self.first.tolist(), self.binary.tolist()):
            for at in range(1 + binary):
                found |= self.table[:, first + at * self.values : first + (at + 1) * self.values] == 0
        return found

    def distance(self, one: int, others: Ints) -> Floats:
        """Return the distance of the priors of some classes from those of one: the largest difference of logarithms."""
        furthest: Floats = np.abs(self.logs[others] - self.logs[one]).max(axis=1)
        return furthest

    def size_for(self, classes: Ints, values: Ints) -> int:
        """Return the number of people of these classes that a group requires, each with a different one of these
        values, so that the bound holds for every such group."""
        needed = max(1 + (r - 1) * wide for r, wide in zip(self.r.tolist(), self._widest(classes, values)))
        return int(np.ceil(min(needed, 2.0**40)))

    def copies_for(self, classes: Ints, values: Ints, size: int) -> int:
        """Return how often each of these values may occur among `size` people of these classes, who are enough for one
        occurrence, so that the bound holds."""
        most = (int((1 + (size - 1) / wide) / r) for r, wide in zip(self.r.tolist(), self._widest(classes, values)))
        return max(min(most), 1)

    def _widest(self, classes: Ints, values: Ints) -> list[float]:
        """Return for each prior the largest lam_x lam_o among these classes and values, slightly rounded up."""
        found = []
        for first, binary in zip(self.first.tolist(), self.binary.tolist()):
            wide = self._spreads(classes, first + values)
            if binary:
                wide = wide * self._spreads(classes, first + self.values + values)
            found.append(float(np.prod(np.sort(wide)[-1 if binary else -2 :])) * (1 + NEAR))
        return found

    def _spreads(self, classes: Ints, columns: Ints) -> Floats:
        some = self.table[np.ix_(classes, columns)]
        least = some.min(axis=0)
        spreads = np.full(len(columns), np.inf)
        np.divide(some.max(axis=0), least, out=spreads, where=least > 0)
        return spreads
