"""The worlds that fit several releases are counted as enumeration counts them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

from anon.risk.shared_worlds import Cell, TooManyWorlds, beliefs
from tests.oracles import together as oracle


def random_releases(rng: random.Random) -> list[oracle.Release]:
    """Two or three releases of some of a few people, in random groups."""
    people = range(rng.randint(2, 8))
    value = {who: rng.choice("abcd"[: rng.randint(1, 4)]) for who in people}
    releases = []
    for _ in range(rng.choice([2, 2, 3])):
        there = [who for who in people if rng.random() < 0.8]
        rng.shuffle(there)
        groups = []
        while there:
            size = rng.randint(1, 4)
            members, there = there[:size], there[size:]
            groups.append((members, [value[who] for who in members]))
        releases.append(groups)
    return releases


def cells_of(releases: list[oracle.Release]) -> tuple[list[Cell], list[list[int]], dict[int, dict[str, int]]]:
    """The cells of all people with their members, and what each group publishes."""
    published, groups = {}, defaultdict(list)
    for release in releases:
        for members, values in release:
            for who in members:
                groups[who].append(len(published))
            published[len(published)] = dict(Counter(map(str, values)))
    cells = defaultdict(list)
    for who, own in groups.items():
        cells[tuple(own)].append(who)
    return [Cell(len(members), own) for own, members in cells.items()], list(cells.values()), published


@pytest.mark.parametrize("seed", range(150))
def test_beliefs_are_those_of_enumeration(seed: int) -> None:
    releases = random_releases(random.Random(seed))
    cells, members, published = cells_of(releases)
    if not cells:
        return
    found, expected = beliefs(cells, published), oracle.beliefs(releases)
    for own, people in zip(found.cells, members, strict=True):
        for who in people:
            assert own == expected[who]


def test_releases_that_no_world_fits_have_no_beliefs() -> None:
    assert beliefs([Cell(1, (0, 1))], {0: {"a": 1}, 1: {"b": 1}}).cells == []


def test_the_work_is_limited() -> None:
    cells = [Cell(1, (0, group)) for group in range(1, 9)]
    published = {0: {str(v): 1 for v in range(8)}} | {group: {str(v): 1 for v in range(8)} for group in range(1, 9)}
    cells += [Cell(7, (group,)) for group in range(1, 9)]
    with pytest.raises(TooManyWorlds):
        beliefs(cells, published, most=1_000)
