"""Count the worlds that fit several releases at once, exactly. A world gives every individual one sensitive value so
that each group of each release has the values that were published of it; all worlds are equally likely.

Individuals who are in the same group of every release (a *cell*) are interchangeable, so that a world is counted by how
many members of each cell have each value: n! / prod x_v! worlds for a cell of n in which x_v have v. Cells are taken
one after the other; what the values still missing in the open groups are determines everything later, so that worlds
with the same missing values are counted together (dynamic programming forwards and backwards).

>>> one, other = {"flu": 1, "cold": 1}, {"flu": 1, "HIV": 1}
>>> found = beliefs([Cell(1, (0, 1)), Cell(1, (0,)), Cell(1, (1,))], {0: one, 1: other})
>>> [{value: str(p) for value, p in own.items()} for own in found.cells]
[{'flu': '1'}, {'cold': '1'}, {'HIV': '1'}]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import NamedTuple

MOST_STEPS = 50_000  # of the counting of one component, each a way to give values to a cell
Missing = tuple[tuple[int, ...], ...]  # of each group the number of each value that nobody has yet


class Cell(NamedTuple):
    """A number of individuals who are in the same groups."""

    people: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Beliefs:
    """Of each cell the values that some world gives to its members, with their probability; no cell if there is no
    world. `steps`: the work that it took."""

    cells: list[dict[str, Fraction]]
    steps: int


class TooManyWorlds(Exception):
    """Raised if counting takes more steps than allowed."""


class _Step(NamedTuple):
    before: Missing
    after: Missing
    given: tuple[int, ...]
    worlds: int


def beliefs(cells: Sequence[Cell], published: Mapping[int, Mapping[str, int]], most: int = MOST_STEPS) -> Beliefs:
    """Return the beliefs about the members of each cell of a component. `published`: of each group the count of each
    value. TooManyWorlds if it takes more than `most` steps."""
    values = sorted({value for counts in published.values() for value in counts})
    order = _ordered(cells)
    steps = _Counting(cells, order, published, values, most).steps()
    found: list[dict[str, Fraction]] = [{} for _ in cells]
    forward, backward = _forward(steps), _backward(steps)
    total = sum(backward[0].values())
    for at, own, ways, left in zip(order, steps, forward, backward[1:]) if total else ():
        sums = [0] * len(values)
        for step in own:
            worlds = ways[step.before] * step.worlds * left.get(step.after, 0)
            for index, times in enumerate(step.given):
                sums[index] += worlds * times
        found[at] = {v: Fraction(n, total * cells[at].people) for v, n in zip(values, sums) if n}
    return Beliefs(found if total else [], sum(map(len, steps)))


def _ordered(cells: Sequence[Cell]) -> list[int]:
    """Return the cells in an order in which groups are completed early: by their first group, those in one group alone,
    whose values are what is left, last."""
    return sorted(range(len(cells)), key=lambda at: (cells[at].groups[0], -len(cells[at].groups), cells[at].groups))


class _Counting:
    """The counting of one component."""

    def __init__(
        self,
        cells: Sequence[Cell],
        order: list[int],
        published: Mapping[int, Mapping[str, int]],
        values: list[str],
        most: int,
    ) -> None:
        self.cells, self.order, self.most = cells, order, most
        self.place = {group: at for at, group in enumerate(published)}
        self.first: Missing = tuple(tuple(counts.get(value, 0) for value in values) for counts in published.values())
        self.left = Counter(group for cell in cells for group in cell.groups)

    def steps(self) -> list[list[_Step]]:
        """Return the steps of each cell in order; those that lead nowhere are still among them."""
        found: list[list[_Step]] = []
        states, count = {self.first}, 0
        for at in self.order:
            own = []
            for state in sorted(states):
                for step in self._of_cell(self.cells[at], state):
                    own.append(step)
                    count += 1
                    if count > self.most:
                        raise TooManyWorlds
            self.left.subtract(self.cells[at].groups)
            states = {step.after for step in own}
            found.append(own)
        return found

    def _of_cell(self, cell: Cell, state: Missing) -> Iterator[_Step]:
        """Yield the ways to give values to the members of a cell."""
        places = [self.place[group] for group in cell.groups]
        room = [min(counts) for counts in zip(*(state[at] for at in places))]
        last = [at for group, at in zip(cell.groups, places) if self.left[group] == 1]
        forced = [state[at] for at in last]  # nobody else is left to have these values
        for given in _shares(cell.people, room, forced):
            after = list(state)
            for at in places:
                after[at] = tuple(have - own for have, own in zip(state[at], given))
            yield _Step(state, tuple(after), given, _arrangements(given))


def _shares(people: int, room: Sequence[int], forced: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Yield the ways in which people can have values, at most `room` of each; just those that are `forced`, if any."""
    if forced:
        fits = all(own == forced[0] for own in forced) and sum(forced[0]) == people
        if fits and all(own <= most for own, most in zip(forced[0], room)):
            yield forced[0]
        return
    yield from _splits(people, list(room))


def _splits(people: int, room: list[int]) -> Iterator[tuple[int, ...]]:
    if not room:
        if not people:
            yield ()
        return
    rest = room[1:]
    for own in range(max(0, people - sum(rest)), min(people, room[0]) + 1):
        for others in _splits(people - own, rest):
            yield (own, *others)


def _arrangements(given: tuple[int, ...]) -> int:
    """Return in how many ways people can have values of these numbers.

    >>> _arrangements((2, 1))
    3
    """
    ways, people = 1, 0
    for own in given:
        people += own
        ways *= comb(people, own)
    return ways


def _forward(steps: list[list[_Step]]) -> list[dict[Missing, int]]:
    """Return the number of ways to come to what is missing before each step."""
    found = [{step.before: 1 for step in steps[0]}]
    for own in steps:
        after: dict[Missing, int] = {}
        for step in own:
            after[step.after] = after.get(step.after, 0) + found[-1][step.before] * step.worlds
        found.append(after)
    return found


def _backward(steps: list[list[_Step]]) -> list[dict[Missing, int]]:
    """Return the number of ways to go from what is missing before each step to nothing missing."""
    found = [{step.after: int(not any(map(any, step.after))) for step in steps[-1]}]
    for own in reversed(steps):
        before: dict[Missing, int] = {}
        for step in own:
            before[step.before] = before.get(step.before, 0) + step.worlds * found[-1].get(step.after, 0)
        found.append(before)
    return found[::-1]
