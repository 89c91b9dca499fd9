"""The guarded search by its definition, and what an adversary who knows it learns: all coins and all worlds of a tiny
table are enumerated. A world gives the people of each published group its published values in some order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations, product

from tests.oracles.partition import Cells, Column, Value, _Node, _Table

Level = Callable[[list[Value], int], bool]  # whether a group satisfies the criteria with s candidates against it
Coin = Callable[[tuple[tuple[int, int], ...], int], bool | None]  # of a cell and a column; None: both ways


@dataclass(frozen=True)
class Passed:
    """A candidate that was passed over: its column, the people of its parts, and whether a coin could have done it."""

    column: int
    parts: tuple[frozenset[int], ...]
    tossed: bool

    def divides(self, members: frozenset[int]) -> bool:
        return sum(bool(part & members) for part in self.parts) > 1


@dataclass(frozen=True)
class Tree:
    """What a search came to: a group, or a split."""

    members: frozenset[int]
    against: tuple[Passed, ...]  # what was passed over at the nodes above and here, if the sizes do not decide it
    children: tuple[Tree, ...] = ()

    def groups(self) -> list[Tree]:
        return [group for child in self.children for group in child.groups()] if self.children else [self]

    def counted(self) -> int | None:
        """The candidates that count against a group; None if there is no bound."""
        own = [each for each in self.against if each.divides(self.members)]
        return len(own) if all(each.tossed for each in own) else None


@dataclass(frozen=True)
class Guarded:
    """A guarded search over people with these codes."""

    codes: Sequence[tuple[int, ...]]
    columns: Sequence[Column]
    safe: Level
    skip: Fraction
    least: int = 1
    below: int | None = None
    enforce: bool = False
    coin: Coin = lambda cell, column: None
    worlds: dict[tuple[Value, ...], list[tuple[Fraction, Tree]]] = field(default_factory=dict)  # those searched
    offered: dict[tuple[Cells, tuple[int, ...]], list[tuple[int, list[_Node]]]] = field(default_factory=dict)

    def trees(self, values: Sequence[Value]) -> list[tuple[Fraction, Tree]]:
        """Everything that a search may come to in a world, with its probability."""
        if (world := tuple(values)) not in self.worlds:
            table = _Table([*zip(self.codes, values)], self.columns)
            root = _Node((None,) * len(self.columns), list(range(len(values))))
            self.worlds[world] = list(self._node(table, root, ()))
        return self.worlds[world]

    def _node(self, table: _Table, node: _Node, against: tuple[Passed, ...]) -> Iterator[tuple[Fraction, Tree]]:
        yield from self._from(table, node, against, self._candidates(table, node))

    def _candidates(self, table: _Table, node: _Node) -> list[tuple[int, list[_Node]]]:
        """The public candidates of a node, which are the same in all worlds."""
        key = node.cells, tuple(node.members)
        if key not in self.offered:
            found = self.offered[key] = []
            for parts in table.publicly(node):
                every = range(len(self.columns))
                (column,) = {at for part in parts for at in every if part.cells[at] != node.cells[at]}
                found.append((column, parts))
        return self.offered[key]

    def _from(
        self, table: _Table, node: _Node, against: tuple[Passed, ...], left: list[tuple[int, list[_Node]]]
    ) -> Iterator[tuple[Fraction, Tree]]:
        members = frozenset(node.members)
        if not left or not self._may_offer(table, node, against):
            yield Fraction(1), Tree(members, against)
            return
        (column, parts), *rest = left
        large = min(len(part.members) for part in parts) >= self.least
        others = [each for each in against if each.divides(members) and each.column != column]
        level = len(others) if self.enforce else 0
        safe = large and all(self.safe(table.values(part), s) for part in parts for s in {0, level})
        tossed = self.below is None or len(members) < self.below
        skip = self._skip(table, node, column) if safe and tossed else Fraction(not safe)
        if skip < 1:
            for chance, children in self._split(table, parts, against):
                yield (1 - skip) * chance, Tree(members, against, children)
        if skip > 0:
            noted = (Passed(column, tuple(frozenset(part.members) for part in parts), tossed),) if large else ()
            for chance, tree in self._from(table, node, against + noted, rest):
                yield skip * chance, tree

    def _may_offer(self, table: _Table, node: _Node, against: tuple[Passed, ...]) -> bool:
        own = sum(each.divides(frozenset(node.members)) for each in against)
        return not self.enforce or self.safe(table.values(node), own + 1)

    def _skip(self, table: _Table, node: _Node, column: int) -> Fraction:
        cell = tuple(table.narrowed(node, at) for at in range(len(self.columns)))
        heads = self.coin(cell, column)
        return self.skip if heads is None else Fraction(heads)

    def _split(
        self, table: _Table, parts: list[_Node], against: tuple[Passed, ...]
    ) -> Iterator[tuple[Fraction, tuple[Tree, ...]]]:
        for found in product(*(list(self._node(table, part, against)) for part in parts)):
            chance = Fraction(1)
            for each, _ in found:
                chance *= each
            yield chance, tuple(tree for _, tree in found)


def worlds(values: Sequence[Value], groups: Sequence[frozenset[int]]) -> Iterator[list[Value]]:
    """All worlds in which the groups have the values that they have, each once."""
    orders = [sorted(set(permutations([values[who] for who in sorted(group)])), key=repr) for group in groups]
    for chosen in product(*orders):
        world = list(values)
        for group, own in zip(groups, chosen):
            for who, value in zip(sorted(group), own):
                world[who] = value
        yield world


def posteriors(
    search: Guarded, values: Sequence[Value], of: Callable[[Tree], object]
) -> Iterator[tuple[Tree, int, Value, Fraction, Fraction]]:
    """For all that may be published of this table, each member of a group and each value: the tree, the member, the
    value, its share of the group, and its probability for somebody who sees what `of` shows of a tree."""
    seen = {of(tree): tree for _, tree in reversed(search.trees(values))}
    for shown, tree in seen.items():
        likely: defaultdict[tuple[int, Value], Fraction] = defaultdict(Fraction)  # of a member and its value
        total = Fraction(0)
        for world in worlds(values, [group.members for group in tree.groups()]):
            weight = sum((chance for chance, other in search.trees(world) if of(other) == shown), Fraction(0))
            total += weight
            for who, value in enumerate(world) if weight else ():
                likely[who, value] += weight
        for group in tree.groups():
            counts = Counter(values[who] for who in group.members)
            for who, (value, count) in product(group.members, counts.items()):
                yield group, who, value, Fraction(count, len(group.members)), likely[who, value] / total


def shape(tree: Tree) -> object:
    """What somebody sees who knows every decision."""
    return tree.members, frozenset(shape(child) for child in tree.children)


def groups(tree: Tree) -> object:
    """What somebody sees who has the release alone."""
    return frozenset(group.members for group in tree.groups())
