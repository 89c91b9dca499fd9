"""Generates tables by structure: quasi-identifiers with hierarchies of every shape, people spread over their cells in
equal numbers or by chance, and values that are balanced, tied, alone or tied to a cell."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tests.fuzz.cases import Person, Quasi

Cell = tuple[Any, ...]
NULLS = 0.15  # of the columns have nulls
TEXTS = "abcdef"
NUMBERS = (
    tuple(range(-3, 12)),
    (0, 1, 2, 3, 4),
    (0, 10, 11, 20),
    (-5, 0, 5),
    (1, 2, 4, 8, 16),
    (0, 1),
    (7,),
    (100, 101, 300),
)


@dataclass(frozen=True)
class Shape:
    """How large a table may be, and which kinds of quasi-identifiers it may have."""

    columns: int = 3
    people: int = 30
    kinds: tuple[str, ...] = ("integer", "number", "text", "tree", "tree", "tree")
    sizes: tuple[int, ...] = (1, 2, 2, 3, 4, 5, 6, 8, 12)  # how many values a column may have
    copies: int = 8  # the most people of a cell, where all have the same number
    several: bool = False


def quasi_identifiers(rng: random.Random, shape: Shape) -> tuple[list[Quasi], list[list[Any]]]:
    """Return columns, and the values that people may have in each."""
    columns, values = [], []
    for at in range(rng.choices(range(1, shape.columns + 1), range(shape.columns + 1, 1, -1))[0]):
        column, held = _column(rng, f"q{at}", rng.choice(shape.kinds), rng.choice(shape.sizes))
        columns.append(column)
        values.append([*held, None] if rng.random() < NULLS else held)
    return columns, values


def _column(rng: random.Random, name: str, kind: str, size: int) -> tuple[Quasi, list[Any]]:
    if kind == "integer":
        start, step = rng.randint(-3, 5), rng.choice([1, 1, 2, 7])
        held = sorted(rng.sample(range(0, 4 * size, rng.choice([1, 1, 2])), size))
        return Quasi(name, kind), [start + step * value for value in held]
    if kind == "number":
        return Quasi(name, kind), [value / 4 for value in sorted(rng.sample(range(-8, 40), size))]
    if kind == "text":
        return Quasi(name, kind), [f"t{value}" for value in range(size)]
    return _tree(rng, name, size)


def _tree(rng: random.Random, name: str, size: int) -> tuple[Quasi, list[Any]]:
    builder = rng.choice(["file", "file", "file", "suppress", "digits"])
    if builder == "suppress":
        held = [f"{name}v{value:02}" for value in range(size)]
        return Quasi(name, "tree", dict.fromkeys(held, ("*",)), {"suppress": True}), held
    if builder == "digits":
        held = sorted({f"{rng.randint(0, 2)}{rng.randint(0, 1)}{rng.randint(0, 2)}" for _ in range(size)})
        above = {code: (f"{code[:2]}*", f"{code[0]}**", "*") for code in held}
        return Quasi(name, "tree", above, {"digits": 3}), held
    held = [f"{name}v{value:02}" for value in range(size)]
    return Quasi(name, "tree", _paths(rng, name, held), {"file": True}), held


def _paths(rng: random.Random, name: str, values: list[str]) -> dict[str, tuple[str, ...]]:
    """Return levels above the values, each in a style of its own: every node alone (a chain) under a new or the same
    name, neighbours in pairs, at random, or all in one."""
    paths = {value: [value] for value in values}
    for level in range(1, rng.choice([1, 2, 2, 3, 4])):
        below = list(dict.fromkeys(path[-1] for path in paths.values()))
        half = max(len(below) // 2, 1)
        style = rng.choice(["chain", "same", "pairs", "pairs", "random", "all"])
        labels = {}
        for at, label in enumerate(below):
            node = {"pairs": at // 2, "random": rng.randrange(half), "all": 0}.get(style, at)
            labels[label] = f"{name}.{level}.{node}"
        for path in paths.values():
            path.append(path[-1] if style == "same" else labels[path[-1]])
    return {value: (*path[1:], "*") for value, path in paths.items()}


def people(rng: random.Random, columns: list[Quasi], values: list[list[Any]], shape: Shape) -> list[Person]:
    """Return people in the cells of a table, with their values of d (text) and x (a number)."""
    texts = TEXTS[: rng.choice([1, 2, 2, 3, 3, 3, 4, 4, 6])]
    cells = _spread(rng, _cells(rng, values, shape), shape, len(texts))
    own = _values(rng, cells, texts)
    if rng.random() < NULLS and not shape.several:
        own = [None if value == texts[0] else value for value in own]
    numbers = _values(rng, cells, rng.choice(NUMBERS))
    names = [column.name for column in columns]
    found: list[Person] = [dict(zip(names, cell)) | {"d": d, "x": x} for cell, d, x in zip(cells, own, numbers)]
    found = rng.sample(found, len(found))
    for column, held in zip(columns, values):  # a column of nulls only has no type
        if all(person[column.name] is None for person in found):
            found = [{**person, column.name: held[0]} for person in found]
    return [{**person, "d": _several(rng, person["d"], texts)} for person in found] if shape.several else found


def _several(rng: random.Random, own: str, texts: str) -> tuple[str, ...]:
    return tuple(sorted([own, *rng.choices(texts, k=rng.choice([0, 0, 1, 1, 2, 3]))]))


def _cells(rng: random.Random, values: list[list[Any]], shape: Shape) -> list[Cell]:
    """Return combinations of values: all, a diagonal, or a random choice."""
    grid = list(product(*values))
    style = rng.choice(["grid", "grid", "diagonal", "random"])
    if style == "diagonal":
        longest = max(map(len, values))
        return [tuple(held[at % len(held)] for held in values) for at in range(longest)]
    if style == "random" or len(grid) > shape.people:
        return rng.sample(grid, rng.randint(1, min(len(grid), shape.people)))
    return grid


def _spread(rng: random.Random, cells: list[Cell], shape: Shape, values: int) -> list[Cell]:
    """Return the cell of each person: the same number in each, often a multiple of the number of values, or two numbers
    in turn, or by chance."""
    style = rng.choice(["multiple", "multiple", "exactly", "exactly", "halves", "random"])
    room = min(max(shape.people // len(cells), 1), shape.copies)
    if style == "multiple" and values <= room:
        return cells * (values * rng.randint(1, room // values))
    if style in ("multiple", "exactly"):
        return cells * rng.randint(1, room)
    if style == "halves":
        few, many = rng.randint(1, room), rng.randint(1, room)
        return [cell for at, cell in enumerate(cells) for _ in range(many if at % 2 else few)]
    return rng.choices(cells, k=rng.randint(1, shape.people))


def _values(rng: random.Random, cells: list[Cell], held: Sequence[Any]) -> list[Any]:
    """Return the value of each person: in turn within a cell (balanced), exactly l of them in a cell, in two halves,
    one value for all but a few people, one for each cell, or by chance."""
    styles = ["balanced", "balanced", "balanced", "exactly", "any", "halves", "one", "by cell", "random", "skewed"]
    style = rng.choice(styles)
    place, seen = _numbered(cells), dict.fromkeys(cells, 0)
    few = rng.randint(1, len(held))
    rare = set(rng.sample(range(len(cells)), rng.randint(0, min(2, len(cells)))))
    weights, own = [2.0**-at for at in range(len(held))], {cell: rng.sample(range(len(held)), few) for cell in place}
    found = []
    for number, cell in enumerate(cells):
        turn, seen[cell] = seen[cell], seen[cell] + 1
        at = {
            "balanced": turn % len(held),
            "exactly": (place[cell] + turn % few) % len(held),
            "any": own[cell][turn % few],
            "halves": number * 2 // len(cells) % len(held),
            "one": int(number in rare) % len(held),
            "by cell": place[cell] % len(held),
            "random": rng.randrange(len(held)),
            "skewed": rng.choices(range(len(held)), weights)[0],
        }[style]
        found.append(held[at])
    return found


def _numbered(cells: list[Cell]) -> dict[Cell, int]:
    return {cell: number for number, cell in enumerate(dict.fromkeys(cells))}


def outliers(rng: random.Random, columns: list[Quasi], rows: list[Person]) -> tuple[list[Quasi], list[Person]]:
    """Return a few more people with equal values, who are a group of their own until a column is generalized: they are
    like somebody else except for a new value of that column, which has the same parent."""
    at, like = rng.randrange(len(columns)), rng.choice(rows)
    column, own = columns[at], like[columns[at].name]
    if own is None:
        return columns, []
    new: Any = {"integer": 99, "number": 99.5}.get(column.kind, f"{str(own)[:-2]}99")
    if column.kind == "tree":
        above = tuple(new if label == own else label for label in column.above[own])
        above = (f"{new[:2]}*", f"{new[0]}**", "*") if "digits" in column.builder else above
        columns = [*columns[:at], replace(column, above={**column.above, new: above}), *columns[at + 1 :]]
    return columns, [{**like, column.name: new}] * rng.randint(1, 3)
