"""The proximity principles and t-closeness in exact fractions, from their definitions. Stands outside the way of the
data, as the reference for the criteria that search and verify share. A group is the list of its members' values; a
distance is a function of two values; neighbourhoods are found by asking for every pair of members, and the distance of
two distributions by solving the transport between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

Group = Sequence[Any]
Distance = Callable[[Any, Any], Fraction]


def absolute(one: Fraction, other: Fraction) -> Fraction:
    return abs(one - other)


def equal(one: Hashable, other: Hashable) -> Fraction:
    return Fraction(int(one != other))


def ordered(order: Sequence[Any]) -> Distance:
    """Steps between two values, of all the steps from the first to the last."""
    return lambda one, other: Fraction(abs(order.index(one) - order.index(other)), max(len(order) - 1, 1))


def by_ancestors(paths: dict[Any, Sequence[Any]]) -> Distance:
    """`paths` lists the ancestors of each value from its parent to the root."""

    def distance(one: Any, other: Any) -> Fraction:
        if one == other:
            return Fraction(0)
        up = next(level for level, (a, b) in enumerate(zip(paths[one], paths[other]), 1) if a == b)
        return Fraction(up, len(paths[one]))

    return distance


def variational(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return sum((abs(a - b) for a, b in zip(one, other)), Fraction(0)) / 2


def neighbours(group: Group, centre: Any, epsilon: Fraction, distance: Distance) -> int:
    """How many members lie within epsilon of a value, those that have it included."""
    return sum(distance(centre, member) <= epsilon for member in group)


def risk(group: Group, epsilon: Fraction, distance: Distance) -> Fraction:
    if len(group) == 1:
        return Fraction(1)
    near = max(neighbours(group, member, epsilon, distance) for member in set(group))
    return Fraction(near - 1, len(group) - 1)


def neighbour_share(group: Group, epsilon: Fraction) -> Fraction:
    return Fraction(max(neighbours(group, member, epsilon, absolute) for member in set(group)), len(group))


def largest_share(group: Group, values: Sequence[Any] | None = None) -> Fraction:
    asked = set(group) if values is None else values
    return max((Fraction(list(group).count(value), len(group)) for value in asked), default=Fraction(0))


def width(group: Group) -> Fraction:
    return max(group) - min(group)


def variance(group: Group) -> Fraction:
    mean = sum(group, Fraction(0)) / len(group)
    return sum(((member - mean) ** 2 for member in group), Fraction(0)) / len(group)


def least_work(group: Group, table: Group, distance: Distance) -> Fraction:
    """The cheapest transport from the distribution of the group to that of the table: mass is sent along the cheapest
    way that is left, back along earlier shipments where that saves, until all has arrived."""
    supply = {value: count * len(table) for value, count in Counter(group).items()}
    demand = {value: count * len(group) for value, count in Counter(table).items()}
    exact = {(a, b): distance(a, b) for a in supply for b in demand}
    per_one = lcm(*(cost.denominator for cost in exact.values()))
    costs = {pair: int(cost * per_one) for pair, cost in exact.items()}
    sent = dict.fromkeys(costs, 0)
    while any(supply.values()):
        way = _cheapest_way(supply, demand, sent, costs)
        back = [sent[pair] for pair, forward in way if not forward]
        amount = min([supply[way[0][0][0]], demand[way[-1][0][1]], *back])
        for pair, forward in way:
            sent[pair] += amount if forward else -amount
        supply[way[0][0][0]] -= amount
        demand[way[-1][0][1]] -= amount
    work = sum(amount * costs[pair] for pair, amount in sent.items())
    return Fraction(work, per_one * len(group) * len(table))


Pair = tuple[Any, Any]
Step = tuple[Pair, bool]  # a pair (from, to), and whether mass goes forward or is taken back


def _cheapest_way(
    supply: dict[Any, int], demand: dict[Any, int], sent: dict[Pair, int], costs: dict[Pair, int]
) -> list[Step]:
    """Bellman-Ford from all values with supply to the nearest with demand."""
    best: dict[tuple[str, Any], tuple[int, list[Step]]] = {
        ("from", value): (0, []) for value, left in supply.items() if left
    }
    changed = True
    while changed:
        changed = False
        for (a, b), cost in costs.items():
            edges = [(("from", a), ("to", b), cost, ((a, b), True))]
            if sent[a, b]:
                edges.append((("to", b), ("from", a), -cost, ((a, b), False)))
            for tail, head, more, step in edges:
                if tail in best and (head not in best or best[tail][0] + more < best[head][0]):
                    best[head] = best[tail][0] + more, [*best[tail][1], step]
                    changed = True
    return min((best["to", value] for value, left in demand.items() if left), key=lambda found: found[0])[1]
