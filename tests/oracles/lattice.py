"""Full-domain generalization by its definition: every combination of levels is applied to the rows, judged on its own,
and weighed. Stands outside the way of the data, as what the engine's lattice search must find. A column's hierarchy
maps each value to its labels, from level 0 (the value) to the top.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

Row = Mapping[str, Any]
Hierarchy = Mapping[Any, Sequence[Hashable]]
Groups = list[list[Row]]
Holds = Callable[[Groups, list[Row]], bool]  # the groups of a release, and its rows
Levels = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """A safe combination of levels: what is published, under its labels, and its utility."""

    levels: Levels
    released: dict[tuple[Hashable, ...], list[Row]]
    suppressed: int
    height: int
    average: Fraction
    discernibility: int
    loss: Fraction
    divergence: float


def grouped(
    rows: Sequence[Row], columns: Mapping[str, Hierarchy], levels: Levels
) -> dict[tuple[Hashable, ...], list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        labels = tuple(tree[row[name]][level] for (name, tree), level in zip(columns.items(), levels))
        groups[labels].append(row)
    return dict(groups)


def safe_nodes(
    rows: Sequence[Row], columns: Mapping[str, Hierarchy], sensitive: Sequence[str], holds: Holds, suppress: Fraction
) -> list[Node]:
    """All combinations of levels that are safe after dropping the groups that fail alone, if these are few enough."""
    found = []
    for levels in product(*(range(len(next(iter(tree.values())))) for tree in columns.values())):
        groups = grouped(rows, columns, levels)
        kept = groups
        if suppress:
            kept = {labels: group for labels, group in groups.items() if holds([group], list(rows))}
        left = [row for group in kept.values() for row in group]
        if left and len(rows) - len(left) <= suppress * len(rows) and holds(list(kept.values()), left):
            found.append(_weighed(rows, columns, sensitive, levels, kept))
    return found


def minimal(nodes: Sequence[Node]) -> list[Node]:
    def below(one: Levels, other: Levels) -> bool:
        return one != other and all(a <= b for a, b in zip(one, other))

    return [node for node in nodes if not any(below(other.levels, node.levels) for other in nodes)]


def _weighed(
    rows: Sequence[Row],
    columns: Mapping[str, Hierarchy],
    sensitive: Sequence[str],
    levels: Levels,
    kept: dict[tuple[Hashable, ...], list[Row]],
) -> Node:
    sizes = [len(group) for group in kept.values()]
    released = sum(sizes)
    missing = len(rows) - released
    return Node(
        levels,
        kept,
        missing,
        sum(levels),
        Fraction(released, len(sizes)),
        sum(size * size for size in sizes) + missing * len(rows),
        sum(_loss(rows, kept, columns, name, levels) for name in columns) / len(columns),
        divergence(rows, columns, sensitive, levels, kept),
    )


def _under(rows: Sequence[Row], name: str, tree: Hierarchy, level: int) -> Counter[Hashable]:
    """How many values of the table lie under each label of a level."""
    return Counter(tree[value][level] for value in {row[name] for row in rows})


def _loss(
    rows: Sequence[Row],
    kept: dict[tuple[Hashable, ...], list[Row]],
    columns: Mapping[str, Hierarchy],
    name: str,
    levels: Levels,
) -> Fraction:
    at = list(columns).index(name)
    under = _under(rows, name, columns[name], levels[at])
    whole = sum(under.values()) - 1
    if not whole:
        return Fraction(0)
    lost = sum((Fraction(under[labels[at]] - 1, whole) * len(group) for labels, group in kept.items()), Fraction(0))
    return (lost + len(rows) - sum(map(len, kept.values()))) / len(rows)


def divergence(
    rows: Sequence[Row],
    columns: Mapping[str, Hierarchy],
    sensitive: Sequence[str],
    levels: Levels,
    kept: dict[tuple[Hashable, ...], list[Row]],
) -> float:
    """Section 6 of the l-diversity paper; who is suppressed is spread evenly over all that could be."""
    under = [_under(rows, name, tree, level) for (name, tree), level in zip(columns.items(), levels)]

    def values(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in sensitive)

    whole = math.prod(sum(counts.values()) for counts in under)
    whole *= math.prod(len({row[name] for row in rows}) for name in sensitive)
    missing = Fraction(len(rows) - sum(map(len, kept.values())), len(rows)) / whole
    exactly = Counter((tuple(row[name] for name in columns), values(row)) for row in rows)
    found = 0.0
    for (own, value), count in exactly.items():
        labels = tuple(tree[v][level] for tree, v, level in zip(columns.values(), own, levels))
        like = sum(values(row) == value for row in kept.get(labels, []))
        area = math.prod(counts[label] for counts, label in zip(under, labels))
        told = Fraction(like, len(rows) * area) + missing
        share = Fraction(count, len(rows))
        found += float(share) * math.log(share / told)
    return found
