"""Generates tables whose groups depend on each other: the worst adversary knows a target in one group and others in
another, so that either of two splits is safe, but not both. Random tables hardly ever have such groups; these are the
smallest pairs of histograms that do."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from tests.fuzz.cases import Person, Quasi

Item = dict[str, dict[str, Any]]
Histogram = tuple[int, ...]  # the first count is that of the value that a point is about
# Knowledge (l, k, m), the group of the target and the group of its family.
SKYLINES: tuple[tuple[tuple[int, int, int], Histogram, Histogram], ...] = (
    ((1, 1, 3), (4, 10, 2, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1)),
    ((1, 1, 2), (6, 15, 2, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1)),
    ((1, 1, 1), (1, 5, 2), (1, 1, 1, 1, 1)),
    ((1, 2, 1), (1, 4, 3), (2, 2, 2, 2, 1)),
    ((2, 1, 2), (2, 7, 1, 1, 1), (1, 1, 1, 1, 1)),
)
# The number of implications, the group of the target and the group that they are about.
IMPLICATIONS: tuple[tuple[int, Histogram, Histogram], ...] = ((2, (4, 1, 1, 1, 1, 1, 1), (4, 4, 1, 1, 1)),)
TEXTS = "sabcdefg"
# The same where people have several values: the people and the counts of two groups. Of the first four the groups are
# safe apart and together, but the running minima of the search, which keep those of the table, may refuse the split. Of
# the others the groups are safe apart, and not together.
SEVERAL: tuple[tuple[str, tuple[int, int, int], tuple[int, Histogram], tuple[int, Histogram]], ...] = (
    ("set", (2, 0, 2), (2, (0, 2, 0, 2)), (5, (1, 2, 0, 2))),
    ("set", (2, 0, 1), (3, (1, 2)), (2, (0, 2, 2))),
    ("multiset", (2, 0, 1), (2, (0, 2, 1, 4)), (4, (1, 1, 1, 1))),
    ("multiset", (2, 1, 1), (3, (0, 0, 6, 6)), (4, (1, 0, 2, 1))),
    ("set", (2, 0, 0), (2, (1, 1)), (1, (0, 1, 1))),
    ("set", (2, 0, 1), (4, (1, 1, 2)), (1, (0, 1, 1))),
    ("multiset", (2, 0, 0), (1, (0, 1, 2)), (2, (1, 0, 1))),
    ("multiset", (1, 0, 1), (1, (0, 3)), (3, (1, 1, 1))),
)


def table(rng: random.Random) -> tuple[list[Quasi], list[Person], Callable[[Any], Item]]:
    """Return two groups that depend on each other, each with other people beside it or not, and the criterion by which
    they do, as a function of c."""
    if rng.random() < 0.7:
        amount, *groups = rng.choice(SKYLINES)
        item, beside = partial(_skyline, amount), "z" * rng.randint(0, 2)
    else:
        pieces, *groups = rng.choice(IMPLICATIONS)
        item, beside = partial(_ck_safety, pieces), "stuvwxyz" * rng.randint(0, 1)
    if rng.random() < 0.5:
        groups.reverse()
    people, late = [], rng.choice([0, 1, None])  # the node that gets to its split with its second candidate only
    for node, counts in enumerate(groups):
        own = "".join(value * count for value, count in zip(TEXTS, counts))
        rest = [beside] if node != late else ["yz" * (len(own) // 8 + 1), "h" * (len(own) + 2 * (len(own) // 8 + 1))]
        for at, values in enumerate([own, *rest]):
            people += [{"q0": node, "q1": at, "d": value} for value in values]
    columns = [Quasi("q0", "integer"), Quasi("q1", "integer")]
    return columns, rng.sample(people, len(people)), item


def of_several(rng: random.Random) -> tuple[str, list[Quasi], list[Person], Callable[[Any], Item]]:
    """Return two groups of people with several values, which are dealt to them in turn."""
    kind, amount, *groups = rng.choice(SEVERAL)
    if rng.random() < 0.5:
        groups.reverse()
    people: list[Person] = []
    for node, (size, counts) in enumerate(groups):
        own = [value for value, count in zip(TEXTS, counts) for _ in range(count)]
        people += [{"q0": node, "q1": rng.randint(0, 1), "d": tuple(own[at::size])} for at in range(size)]
    columns = [Quasi("q0", "integer"), Quasi("q1", "integer")]
    return kind, columns, rng.sample(people, len(people)), partial(_skyline, amount)


def unlike(rng: random.Random) -> tuple[list[Quasi], list[Person], Item]:
    """Return people who are unlike each other within each value of one column, and not all together, with a criterion
    that is not monotone; another column, with a hierarchy, is of no use or of some."""
    values = rng.choice([2, 2, 3])
    held = [f"q0v{at:02}" for at in range(rng.choice([2, 3]))]
    tree = Quasi("q0", "tree", dict.fromkeys(held, ("*",)), {"suppress": True})
    people = [
        {"q0": rng.choice(held), "q1": cell, "d": TEXTS[value], "x": 10 * value}
        for cell in range(rng.choice([2, 3, 4]))
        for value in range(values)
    ]
    columns = rng.sample([tree, Quasi("q1", "integer")], 2)
    same = {"sensitive": "d", "epsilon": Decimal(0), "delta": Decimal(1), "k": 2, "distance": {"kind": "equal"}}
    near = {"sensitive": "x", "epsilon": Decimal(1), "m": values}
    item: Item = rng.choice([{"dissimilarity": same}, {"epsilon_m": near}])
    return columns, rng.sample(people, len(people)), item


def _skyline(amount: tuple[int, int, int], c: Any) -> Item:
    point = dict(zip("lkm", amount)) | {"c": c}
    alone = {"l": 0, "k": 0, "m": 0, "c": Decimal("0.95")}  # of h, which is refused where it is by itself
    return {"skyline": {"sensitive": "d", "points": [], "values": {"s": [point], "h": [alone]}, "absent": "ok"}}


def _ck_safety(pieces: int, c: Any) -> Item:
    return {"ck_safety": {"sensitive": "d", "k": pieces, "c": c}}
