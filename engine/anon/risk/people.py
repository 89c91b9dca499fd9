"""The people of some groups with their own quasi-identifiers, for attacks by somebody who knows these of everybody. A
small table is taken whole, of a large one a sample of groups that depends on nothing but the number of each: those of a
tree of cuts come in whole subtrees of few people, so that the cuts that were refused there can be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.arrays import Codes, Flags, Ints
from anon.core.memory import release_unused
from anon.cube import Domain, Encoder
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding, LevelRecoding
from anon.recoding.outcome import Outcome
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import Recoding
from anon.source import Source

MOST = 2**16  # individuals of a table; larger ones are sampled
SAMPLED = 2**14  # individuals of a sample, at most
SUBTREE = 256  # individuals of a subtree, at most, unless it is one group


@dataclass(frozen=True)
class SampledPeople:
    """People in the order of their groups: codes [columns, people] of the quasi-identifiers, the code of the sensitive
    value, and the number of the group; `groups`: the number of all groups of the release."""

    domains: list[Domain]
    column: str  # the sensitive one
    texts: list[str | None]  # its values
    codes: Codes
    value: Ints
    group: Ints
    groups: int

    def coded_by(self, texts: list[str | None]) -> SampledPeople:
        """Return the same people with the codes that a release has for the values."""
        place = {text: code for code, text in enumerate(texts)}
        code = np.array([place.get(text, -1) for text in self.texts], np.int64)
        return replace(self, texts=texts, value=code[self.value])


def sample_people(source: Source, outcome: Outcome, sensitive: Domain) -> SampledPeople:
    """Read the people of some groups of a release; the source is read once."""
    release_unused()  # of the verification
    recoding = outcome.recoding
    wanted = chosen_groups(recoding)
    if isinstance(recoding, Assignment | RefinedRecoding):
        assignment = recoding if isinstance(recoding, Assignment) else recoding.assignment
        pieces = list(_assigned(assignment, wanted))
    else:
        pieces = list(_recoded(source, recoding, sensitive, wanted))
    codes, value, group = (np.concatenate(each, axis=-1) for each in zip(*pieces))
    order = np.lexsort((value, *reversed(codes), group))  # whatever the order of the source
    return SampledPeople(
        recoding.domains,
        sensitive.column,
        sensitive.texts,
        np.ascontiguousarray(codes[:, order]),
        value[order].astype(np.int64),
        group[order].astype(np.int64),
        recoding.groups,
    )


Piece = tuple[Codes, Ints, Ints]


def _recoded(source: Source, recoding: Recoding | LevelRecoding, sensitive: Domain, wanted: Flags) -> Iterator[Piece]:
    columns = [*source.quasi_identifiers, source.sensitive[0]]
    encoder, wanted = Encoder(columns, [*recoding.domains, sensitive]), np.append(wanted, False)  # the suppressed
    for batch in source.batches(columns):
        codes = encoder.codes(batch)
        group = np.minimum(recoding.assign(codes[:-1]), recoding.groups)
        own = wanted[group]
        yield codes[:-1, own], codes[-1, own], group[own]


def _assigned(assignment: Assignment, wanted: Flags) -> Iterator[Piece]:
    for batch in assignment.batches():
        *codes, value, group, people = (column.to_numpy() for column in batch.columns)
        own = np.flatnonzero(wanted[group])
        each = np.repeat(own, people[own])
        yield np.stack(codes)[:, each], value[each], group[each]


def chosen_groups(recoding: AnyRecoding | Assignment) -> Flags:
    """Return which groups are examined: all of a small table, else whole subtrees, or single groups, of at most
    SAMPLED individuals together, in the order of a hash of their numbers."""
    people = recoding.people
    if int(people.sum()) <= MOST:
        return np.ones(recoding.groups, bool)
    part = subtrees(recoding) if isinstance(recoding, Recoding) else np.arange(recoding.groups)
    parts, of = np.unique(part, return_inverse=True)
    sizes = np.bincount(of, people).astype(np.int64)
    return taken(parts, sizes, SAMPLED)[of]


def taken(numbers: NDArray[Any], sizes: Ints, most: int) -> Flags:
    """Return which parts, each with a number and a size, are taken: in the order of a hash of their numbers, as long as
    their sizes together are not above the most; larger ones never."""
    order = np.argsort(spread(numbers), kind="stable")
    order = order[sizes[order] <= most]
    found = np.zeros(len(numbers), bool)
    found[order[np.cumsum(sizes[order]) <= most]] = True
    return found


def spread(numbers: NDArray[Any]) -> Ints:
    """Return numbers that are spread over 64 bits, of small numbers (the finalizer of splitmix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))).astype(np.int64)


def parents(recoding: Recoding) -> NDArray[np.int32]:
    """Return the parent of each node of a tree of cuts, -1 of the root. Nodes are breadth first, and the children of a
    node follow those of the previous one."""
    split = np.flatnonzero(recoding.column >= 0).astype(np.int32)  # there may be a node for every other individual
    return np.append(np.int32(-1), np.repeat(split, recoding.children[split]))


def node_people(recoding: Recoding, parent: NDArray[np.int32]) -> Ints:
    """Return the individuals under each node of a tree of cuts."""
    people = recoding.people_of_leaves
    for first, last in reversed(_levels(parent)):
        np.add.at(people, parent[first:last], people[first:last])
    return people


def _levels(parent: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Return the first node and the one past the last of each level below the root."""
    found, first, last = [], 0, 1
    while last < len(parent):
        first, last = last, int(np.searchsorted(parent, last))
        found.append((first, last))
    return found


def subtrees(recoding: Recoding) -> NDArray[np.int32]:
    """Return for each group the highest node above it with at most SUBTREE individuals, or the group's own node."""
    parent = parents(recoding)
    people, top = node_people(recoding, parent), np.arange(len(parent), dtype=np.int32)
    for first, last in _levels(parent):
        above = parent[first:last]
        top[first:last] = np.where(people[above] <= SUBTREE, top[above], np.arange(first, last))
    leaf, found = recoding.is_group, np.empty(recoding.groups, np.int32)
    found[recoding.child[leaf]] = top[leaf]
    return found
