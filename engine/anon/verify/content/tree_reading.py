"""Read a tree of cuts from recoding.json. There may be millions of nodes, so they are held as numbers, and texts in
Arrow's memory. A tree that is not of the form that anon writes is a ValueError."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from anon.artifacts.recoding import TreeHead
from anon.core.memory import release_unused
from anon.verify.content.labels import LOWEST, Grammar, HierarchyLabels, OrderedLabels, keys_of_texts
from anon.verify.content.recoding_file import RecodingFile
from anon.verify.content.tree_groups import GroupLabels, Ints, WrittenTree

STAR = pa.array(["*"])  # the label of a column that is not cut; the first of all words
Codes = NDArray[np.int32]  # places in a list of words


def read_tree(file: RecodingFile, grammars: list[Grammar]) -> WrittenTree:
    """Read the tree of a recoding.json, whose columns have these grammars."""
    raw = _NodesOfFile.read(file, grammars)
    ends = (cut(j, grammar) for j, grammar in raw.with_nodes(grammars) for cut in (raw.cut_by_nodes, raw.cut_rest_off))
    low = np.concatenate([np.empty(0, np.int64), *ends])
    codes = (raw.narrowed[j] if j in raw.narrowed else raw.labels_of(j) for j in range(len(grammars)))
    labels = [GroupLabels.from_codes(raw.words, own, grammar) for own, grammar in zip(codes, grammars)]
    release_unused()  # of the texts
    raw.nodes[raw.rest, 1] = ~raw.nodes[raw.rest, 1]  # as the kernel reads them
    return WrittenTree(raw.nodes, low, labels)


@dataclass
class _NodesOfFile:
    """The nodes in the order of the file, breadth first, as `WrittenTree` has them; labels are places in `words`."""

    nodes: Ints
    label: Codes  # in the column that the parent is split by; none for the root
    narrowed: dict[int, Codes]  # the labels of the groups in hierarchy columns, if they are narrower than cuts in all
    words: pa.Array
    rest: NDArray[np.bool_]  # whether the last child of a node is the rest
    suppressed: NDArray[np.bool_]  # leaves that are no group
    cuts: int = 0  # keys of nodes with more than two children, or with a rest, that are placed so far

    @classmethod
    def read(cls, file: RecodingFile, grammars: list[Grammar]) -> _NodesOfFile:
        names, groups = [column.name for column in file.head.columns], file.head.groups
        treed = [j for j, grammar in enumerate(grammars) if isinstance(grammar, HierarchyLabels)]
        every = isinstance(file.head, TreeHead) and file.head.labels != "cells"
        listed = list(range(len(grammars))) if every else treed
        leaves = groups + file.head.suppressed  # at most: somebody is in each that is suppressed
        nodes, at = np.empty((2 * leaves, 2), np.int64), 0  # a split has two children or more
        texts: dict[int, list[pa.Array]] = {-1: [STAR], **{j: [] for j in listed}}
        rest, suppressed = [np.empty(0, bool)], [np.empty(0, bool)]
        for table in _tables(file, [names[j] for j in listed]):
            column = pc.index_in(table["column"], pa.array(names)).fill_null(-1).to_numpy().astype(np.int64)
            none = table["suppressed"].fill_null(False).to_numpy()
            own = nodes[at : at + len(column)]
            own[:, 0] = _cuts(table["cut"].combine_chunks(), column, grammars)
            own[:, 1] = np.where(none, groups, _packed(table, column, none))
            texts[-1].append(table["label"].combine_chunks())
            rest.append(table["rest"].fill_null(False).to_numpy())
            suppressed.append(none)
            for j in listed:
                labels = pc.struct_field(table["labels"].combine_chunks(), names[j])
                texts[j].append(labels.filter(pa.array((column < 0) & ~none)))
            at += len(column)
        words, codes = _numbered(texts)
        release_unused()  # of the file
        raw = cls(nodes[:at], codes.pop(-1)[1:], codes, words, np.concatenate(rest), np.concatenate(suppressed))
        raw.narrowed = {j: raw.by_group(own) for j, own in codes.items()}
        raw.check(groups)
        raw.cut_null_off([j for j in range(len(grammars)) if j not in treed])
        raw.check_cut_in_two([j for j, grammar in enumerate(grammars) if not _by_nodes(grammar)])
        return raw

    @property
    def column(self) -> NDArray[np.int16]:
        """Return the column that each node is split by, -1 for a group."""
        return ((self.nodes[:, 1] >> 32).astype(np.int16) & 0xFF) - 1

    @property
    def is_group(self) -> NDArray[np.bool_]:
        """Return which nodes are groups."""
        found: NDArray[np.bool_] = (self.column < 0) & ~self.suppressed
        return found

    @property
    def others(self) -> Ints:
        """Return the number of children of each node after the first."""
        return self.nodes[:, 1] >> 40

    @property
    def child(self) -> Ints:
        """Return the first child of each node, or the number of the group."""
        return self.nodes[:, 1] & 0xFFFFFFFF

    def by_group(self, codes: Codes) -> Codes:
        """Return codes of groups that are in the order of the nodes in the order of the groups' numbers."""
        found = np.empty_like(codes)
        found[self.nodes[self.is_group, 1] & 0xFFFFFFFF] = codes
        return found

    def check(self, groups: int) -> None:
        """Check that children follow each other from one split to the next, and that groups have numbers from 0 on."""
        group, split = self.is_group, self.column >= 0
        length = np.where(split, self.others + 1, 0)
        following = np.cumsum(length) - length + 1
        numbers = np.zeros(groups, bool)
        numbers[self.child[group]] = True
        if int(length.sum()) + 1 != len(group) or not numbers.all() or int(group.sum()) != groups:
            raise ValueError("a tree whose nodes or groups are not numbered in order")
        if (self.suppressed & split).any() or not np.array_equal(self.child[split], following[split]):
            raise ValueError("children that do not follow those of the node before")

    def cut_null_off(self, free: list[int]) -> None:
        """Move cuts that separate null from all values below the lowest value, so that all values stay together."""
        split = np.flatnonzero(np.isin(self.column, free))
        alone = np.asarray(self.words.is_null())[self.label[self.child[split]]]
        self.nodes[split[alone], 0] = LOWEST

    def check_cut_in_two(self, columns: list[int]) -> None:
        own = np.isin(self.column, columns)
        if (self.others[own] != 1).any() or self.rest[own | (self.column < 0)].any():
            raise ValueError("a column that is cut into more than two parts")

    def with_nodes(self, grammars: list[Grammar]) -> list[tuple[int, HierarchyLabels]]:
        return [
            (j, grammar)
            for j, grammar in enumerate(grammars)
            if isinstance(grammar, HierarchyLabels) and not grammar.ordered
        ]

    def cut_rest_off(self, j: int, grammar: HierarchyLabels) -> Ints:
        """Set the ends of the children of the nodes that are split by a hierarchy and have a rest, the last child;
        return these ends."""
        split = np.flatnonzero((self.column == j) & self.rest)
        others, child = self.others[split], self.child[split]
        place = np.cumsum(others) - others
        label = self.label[np.repeat(child - place, others) + np.arange(int(others.sum()))]
        ranges = self._ranges(grammar, label)
        around = np.repeat(self._ranges(grammar, self.label[child + others]), others, axis=0)
        if (ranges[:, 0] < around[:, 0]).any() or (ranges[:, 1] > around[:, 1]).any():
            raise ValueError("a child that is not under the label of the rest")
        ends: Ints = np.stack([ranges[:, 0], ranges[:, 1] + 1], axis=1).reshape(-1)
        same = np.diff(np.repeat(split, 2 * others)) == 0
        if (ranges[:, 0] > ranges[:, 1]).any() or (np.diff(ends) < 0)[same].any():
            raise ValueError("children that are not in the order of the hierarchy")
        self.nodes[split, 0] = self.cuts + 2 * place
        self.cuts += len(ends)
        return ends

    def _ranges(self, grammar: HierarchyLabels, label: Codes) -> Ints:
        used, inverse = np.unique(label, return_inverse=True)
        return grammar.ranges(self.words.take(pa.array(used)))[inverse.reshape(-1)]

    def cut_by_nodes(self, j: int, grammar: HierarchyLabels) -> Ints:
        """Set the lowest keys of the children of the nodes that are split by a hierarchy without a rest, without the
        first child of each; return those of nodes with more than two children."""
        split = np.flatnonzero((self.column == j) & ~self.rest)
        others, child = self.others[split], self.child[split]
        place = np.cumsum(others) - others
        label = self.label[np.repeat(child + 1 - place, others) + np.arange(int(others.sum()))]
        low = self._ranges(grammar, label)[:, 0]
        if (np.diff(low) <= 0)[np.diff(np.repeat(split, others)) == 0].any():
            raise ValueError("children that are not in the order of the hierarchy")
        two = others == 1
        self.nodes[split[two], 0] = low[place[two]]
        several = np.repeat(~two, others)
        self.nodes[split[~two], 0] = self.cuts + (np.cumsum(several) - 1)[place[~two]]
        self.cuts += int(several.sum())
        placed: Ints = low[several]
        return placed

    def labels_of(self, j: int) -> Codes:
        """Return the label of each group in a column that is cut freely: that of the last cut above the group."""
        column, parent = self.column, self.parent
        found = np.zeros(len(column), np.int32)
        first, last = 1, 1 + int(np.searchsorted(parent, 1))
        while first < last:  # level by level
            above = parent[first - 1 : last - 1]
            found[first:last] = np.where(column[above] == j, self.label[first:last], found[above])
            first, last = last, 1 + int(np.searchsorted(parent, last))
        return self.by_group(found[self.is_group])

    @cached_property
    def parent(self) -> NDArray[np.uint32]:
        """The node above each node but the root, in order."""
        length = np.where(self.column < 0, 0, self.others + 1)
        return np.repeat(np.arange(len(length), dtype=np.uint32), length)


def _by_nodes(grammar: Grammar) -> bool:
    """Return whether a column is split into the nodes of a hierarchy."""
    return isinstance(grammar, HierarchyLabels) and not grammar.ordered


def _packed(table: pa.Table, column: Ints, suppressed: NDArray[np.bool_]) -> Ints:
    children = table["children"].combine_chunks()
    length = children.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    listed = children.flatten().to_numpy()
    begins = np.cumsum(length) - length
    first = np.append(listed, 0)[begins]
    if not np.array_equal(np.repeat(first - begins, length) + np.arange(len(listed)), listed):
        raise ValueError("children that do not follow each other")
    if ((length > 1) != (column >= 0)).any():
        raise ValueError("a node that is neither split nor a group")
    group = table["group"].fill_null(-1).to_numpy()
    if (np.where(column >= 0, first, np.where(suppressed, 0, group)) < 0).any():
        raise ValueError("a number below 0")
    packed: Ints = np.where(column >= 0, first | (column + 1) << 32 | (length - 1) << 40, group)
    return packed


def _cuts(texts: pa.Array, column: Ints, grammars: list[Grammar]) -> Ints:
    """Return the keys of the cuts of nodes that are split freely."""
    keys = np.zeros(len(texts), np.int64)
    for j, grammar in enumerate(grammars):
        own = column == j
        if _by_nodes(grammar) or not own.any():
            continue
        mine = texts.filter(pa.array(own))
        if isinstance(grammar, OrderedLabels):
            keys[own] = keys_of_texts(grammar.kind, mine)
        elif isinstance(grammar, HierarchyLabels):
            keys[own] = [grammar.nodes[word][0] for word in mine.to_pylist()]
        else:
            keys[own] = [grammar.place[word] for word in mine.to_pylist()]
    return keys


def _numbered(texts: dict[int, list[pa.Array]]) -> tuple[pa.Array, dict[int, Codes]]:
    """Return all distinct texts, and the places of each list of texts among them."""
    every = pa.chunked_array([array for arrays in texts.values() for array in arrays], pa.string())
    encoded = every.dictionary_encode("encode").combine_chunks()
    ends = np.cumsum([sum(map(len, arrays)) for arrays in texts.values()])[:-1]
    return encoded.dictionary, dict(zip(texts, np.split(encoded.indices.to_numpy(), ends)))


def _tables(file: RecodingFile, narrowed: list[str]) -> Iterator[pa.Table]:
    """Yield the nodes of a recoding.json, some at a time."""
    kinds = {"label": pa.string(), "column": pa.string(), "cut": pa.string(), "children": pa.list_(pa.int64())}
    kinds |= {"rest": pa.bool_(), "suppressed": pa.bool_(), "group": pa.int64(), "people": pa.int64()}
    labels = pa.struct([(name, pa.string()) for name in narrowed])
    options = pa.json.ParseOptions(pa.schema([*kinds.items(), ("labels", labels)]), unexpected_field_behavior="error")
    for lines in file.chunks():
        alone = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        yield pa.json.read_json(pa.BufferReader(lines), alone, options)
