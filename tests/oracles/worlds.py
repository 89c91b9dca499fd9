"""The skyline criterion by enumeration, straight from its definition. Stands outside the way of the data: search and
verify are judged against it, so it knows neither closed forms nor the engine. A release is a list of groups, a group
the list of its sensitive values; every possible world hands each group's values to its people. A statement about the
people (an event) is the set of worlds where it is true, kept as the bits of one integer. What an adversary may learn
is a `Language`; one value per individual and several have their own worlds and their own languages, and share the
rest. For at most 7 people in all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate, combinations, permutations, product
from operator import and_

Value = Hashable
Release = Sequence[Sequence[Value]]
Event = int


@dataclass(frozen=True)
class Worlds:
    """Equally likely worlds. People are numbered through the groups, in the order of the release."""

    groups: list[range]
    values: list[Value]
    every: Event
    occurs: dict[tuple[int, Value], Event]

    def has(self, person: int, value: Value) -> Event:
        return self.occurs.get((person, value), 0)

    def negation(self, event: Event) -> Event:
        return self.every & ~event

    def implication(self, premise: Event, conclusion: Event) -> Event:
        return self.negation(premise) | conclusion

    def everyone(self) -> list[int]:
        return [person for group in self.groups for person in group]


@dataclass(frozen=True)
class Language:
    """The pieces an adversary may learn: any of `about_target`, and one of `about_other` per person looked into."""

    about_target: Callable[[Worlds, int, Value], list[Event]]
    about_other: Callable[[Worlds, int, Value], list[Event]]


def single_worlds(release: Release) -> Worlds:
    """One value per individual: every distinct assignment stands for the same number of labelled ones."""
    ends = list(accumulate(len(group) for group in release))
    occurs: dict[tuple[int, Value], Event] = {}
    count = 0
    for world in product(*(dict.fromkeys(permutations(group)) for group in release)):
        for key in enumerate(value for group in world for value in group):
            occurs[key] = occurs.get(key, 0) | 1 << count
        count += 1
    groups = [range(end - len(group), end) for group, end in zip(release, ends)]
    return Worlds(groups, list(dict.fromkeys(value for group in release for value in group)), (1 << count) - 1, occurs)


def _lacks_another_value(worlds: Worlds, target: int, sigma: Value) -> list[Event]:
    return [worlds.negation(worlds.has(target, value)) for value in worlds.values if value != sigma]


def _has_a_known_value(worlds: Worlds, other: int, _sigma: Value) -> list[Event]:
    return [worlds.has(other, value) for value in worlds.values]


def many_worlds(release: Sequence[tuple[int, Sequence[Value]]], kind: str) -> Worlds:
    """Several values per individual; a group is its number of people and all occurrences of its values. For a `set`
    the occurrences of one value go to different people, for a `multiset` each labelled occurrence to anyone."""
    ends = list(accumulate(people for people, _ in release))
    groups = [range(end - people, end) for (people, _), end in zip(release, ends)]
    choices = []
    for (_, held), group in zip(release, groups):
        for value in dict.fromkeys(held):
            count = sum(value == other for other in held)
            owners = combinations(group, count) if kind == "set" else product(group, repeat=count)
            choices.append([{(person, value) for person in some} for some in owners])
    occurs: dict[tuple[int, Value], Event] = {}
    number = 0
    for world in product(*choices):
        for key in set().union(*world):
            occurs[key] = occurs.get(key, 0) | 1 << number
        number += 1
    values = list(dict.fromkeys(value for _, held in release for value in held))
    return Worlds(groups, values, (1 << number) - 1, occurs)


def _implied_by_another_value(worlds: Worlds, target: int, sigma: Value) -> list[Event]:
    goal = worlds.has(target, sigma)
    return [worlds.implication(worlds.has(target, value), goal) for value in worlds.values if value != sigma]


def _lacks_the_value(worlds: Worlds, other: int, sigma: Value) -> list[Event]:
    return [worlds.negation(worlds.has(other, sigma))]


MANY = Language(about_target=_implied_by_another_value, about_other=_lacks_the_value)
SINGLE = Language(about_target=_lacks_another_value, about_other=_has_a_known_value)


def probability(event: Event, knowledge: Event) -> Fraction:
    """Pr(event | knowledge); the knowledge must be true in some world."""
    return Fraction((event & knowledge).bit_count(), knowledge.bit_count())


def breach(release: Release, sigma: Value, l: int, k: int, m: int) -> Fraction:
    """Breach probability of `sigma` under at most (l, k, m) pieces of knowledge, one value per individual."""
    return worst_case(single_worlds(release), SINGLE, sigma, (l, k, m))


def worst_case(
    worlds: Worlds,
    language: Language,
    sigma: Value,
    amount: tuple[int, int, int],
    targets: Collection[int] | None = None,
    others: Collection[int] | None = None,
    family: Collection[int] | None = None,
) -> Fraction:
    """Largest Pr(target has sigma | knowledge) over all groundings; each role may be confined to some of the people."""
    everyone = worlds.everyone()
    odds: set[tuple[int, int]] = {(0, 1)}
    for target in everyone if targets is None else targets:
        rest = [_without(everyone if role is None else role, {target}) for role in (others, family)]
        goal = worlds.has(target, sigma)
        for known in _groundings(worlds, language, sigma, amount, target, rest[0], rest[1]):
            if known:
                odds.add(((goal & known).bit_count(), known.bit_count()))
    return max(Fraction(favourable, possible) for favourable, possible in odds)


def _groundings(
    worlds: Worlds,
    language: Language,
    sigma: Value,
    amount: tuple[int, int, int],
    target: int,
    others: list[int],
    family: list[int],
) -> Iterator[Event]:
    l, k, m = amount
    about_target = {_all_of(worlds, some) for some in _at_most(l, language.about_target(worlds, target, sigma))}
    for looked_into in _at_most(k, others):
        pieces = [language.about_other(worlds, other, sigma) for other in looked_into]
        about_others = {_all_of(worlds, one_each) for one_each in product(*pieces)}
        relatives = _without(family, looked_into)
        about_family = {_same_value(worlds, sigma, target, some) for some in _at_most(m, relatives)}
        for parts in product(about_target, about_others, about_family):
            yield _all_of(worlds, parts)


def _same_value(worlds: Worlds, sigma: Value, target: int, relatives: Iterable[int]) -> Event:
    goal = worlds.has(target, sigma)
    return _all_of(worlds, (worlds.implication(worlds.has(person, sigma), goal) for person in relatives))


def _all_of(worlds: Worlds, events: Iterable[Event]) -> Event:
    return reduce(and_, events, worlds.every)


def _at_most(size: int, items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for count in range(min(size, len(items)) + 1):
        yield from combinations(items, count)


def _without(people: Iterable[int], gone: Collection[int]) -> list[int]:
    return [person for person in people if person not in gone]
