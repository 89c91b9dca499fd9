"""Knowledge skylines against brute force: the points against every point of the whole (l, k, m) box, and each witness's
knowledge against all worlds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial, reduce
from math import comb, prod
from operator import and_

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anon.criteria import Groups
from anon.risk.fronts import fronts_of
from anon.risk.skylines import INFINITY, KnowledgeSkyline, SkylineSearch, skylines
from anon.risk.witness import Witness
from tests.oracles import skyline as oracle
from tests.oracles import worlds

VALUES = "abcde"
LAST = len(VALUES) - 1  # other values that there are at most
Held = list[tuple[int, str]]  # of each group its people, and all occurrences of their values
Point = tuple[float, float, float]

confidences = st.sampled_from([Fraction(n, 20) for n in range(5, 21)] + [Fraction(1, 3), Fraction(2, 3)])
kinds = st.sampled_from(["set", "multiset"])


def singles(letters: str, most: int, groups: int, people: int) -> st.SearchStrategy[Held]:
    """Releases of so many people in all, each with one value."""
    group = st.text(letters, min_size=1, max_size=most).map(lambda values: (len(values), values))
    return st.lists(group, min_size=1, max_size=groups).filter(lambda held: sum(n for n, _ in held) <= people)


@st.composite
def several(draw: st.DrawFn, letters: str, most: int, groups: int, times: int) -> tuple[str, Held]:
    """A kind, and a release of it: a value of a set occurs at most once for everybody."""
    kind, held = draw(kinds), []
    for _ in range(draw(st.integers(1, groups))):
        people = draw(st.integers(1, most))
        counts = [draw(st.integers(0, people if kind == "set" else times)) for _ in letters]
        held.append((people, "".join(letter * count for letter, count in zip(letters, counts))))
    return kind, held


def few_worlds(release: tuple[str, Held]) -> bool:
    kind, held = release
    each = [comb(n, own.count(v)) if kind == "set" else n ** own.count(v) for n, own in held for v in set(own)]
    return prod(each) <= 3_000


def as_groups(held: Held, first: int = 0) -> Groups:
    dense = Groups.dense(np.array([[values.count(value) for value in VALUES] for _, values in held], np.int64))
    return Groups(np.array([people for people, _ in held], np.int64), dense.start, dense.value, dense.count, first)


def found(held: Held, value: str, c: Fraction, kind: str = "single") -> KnowledgeSkyline:
    return skylines([as_groups(held)], [VALUES.index(value)], [c], kind)[0]


def points(skyline: KnowledgeSkyline, last: int) -> list[Point]:
    """The amounts, with a number for an infinite l."""
    return sorted((last if p.l == INFINITY else p.l, p.k, p.m) for p in skyline.points)


def every_point(held: Held, value: str, c: Fraction, breach: Callable[..., Fraction]) -> list[Point]:
    """All maximal points of the box that no amount of knowledge can leave: more than everybody and every value."""
    side = sum(people for people, _ in held)
    return sorted(oracle.knowledge_skyline(cache(breach), (LAST, side, side), c))


@settings(max_examples=25, deadline=None)
@given(singles("abc", 4, 2, 4), confidences)
@example([(3, "abb"), (1, "c")], Fraction(1))
@example([(1, "a"), (2, "ab")], Fraction(1))
def test_points_are_the_maximal_ones_of_all_worlds(held: Held, c: Fraction) -> None:
    release = [values for _, values in held]
    for value in sorted(set("".join(release))):
        expected = every_point(held, value, c, partial(worlds.breach, release, value))
        assert points(found(held, value, c), 4) == expected


@settings(max_examples=20, deadline=None)
@given(singles("aaabbccde", 9, 3, 16), confidences)
@example([(5, "abcde"), (9, "aaaabbbcc")], Fraction(3, 4))
def test_points_of_larger_releases_are_the_maximal_ones_of_the_closed_form(held: Held, c: Fraction) -> None:
    release = [values for _, values in held]
    for value in sorted(set("".join(release))):
        expected = every_point(held, value, c, partial(oracle.breach, release, value))
        assert points(found(held, value, c), 4) == expected


@settings(max_examples=25, deadline=None)
@given(several("abc", 3, 2, 2).filter(few_worlds), confidences)
@example(("set", [(1, "ab"), (2, "a")]), Fraction(9, 17))
@example(("multiset", [(2, "aa"), (1, "b")]), Fraction(3, 4))
def test_points_of_sets_and_multisets_are_the_maximal_ones_of_all_worlds(
    release: tuple[str, Held], c: Fraction
) -> None:
    kind, held = release
    possible = worlds.many_worlds(held, kind)

    def breach(value: str, *amount: int) -> Fraction:
        return worlds.worst_case(possible, worlds.MANY, value, amount)  # type: ignore[arg-type]

    for value in sorted(set("".join(values for _, values in held))):
        assert points(found(held, value, c, kind), 4) == every_point(held, value, c, partial(breach, value))


@settings(max_examples=20, deadline=None)
@given(several("abcde", 6, 3, 7), confidences)
def test_points_of_larger_sets_and_multisets_are_the_maximal_ones(release: tuple[str, Held], c: Fraction) -> None:
    kind, held = release
    for value in sorted(set("".join(values for _, values in held))):
        breach = partial(_many, held, kind, value)
        assert points(found(held, value, c, kind), 4) == every_point(held, value, c, breach)


def _many(held: Held, kind: str, value: str, l: int, k: int, m: int) -> Fraction:
    return oracle.many_breach(held, value, l, k, m, kind)


@settings(max_examples=60, deadline=None)
@given(several("abc", 3, 2, 2).filter(few_worlds), st.integers(0, 2), st.integers(0, 4), st.integers(0, 4))
def test_the_oracle_of_several_values_agrees_with_all_worlds(release: tuple[str, Held], l: int, k: int, m: int) -> None:
    kind, held = release
    possible = worlds.many_worlds(held, kind)
    assert oracle.many_breach(held, "a", l, k, m, kind) == worlds.worst_case(possible, worlds.MANY, "a", (l, k, m))


def reached(possible: worlds.Worlds, witness: Witness) -> Fraction:
    """How sure the witness's knowledge makes of its target, in all worlds where it is true."""
    free = [list(group) for group in possible.groups]
    target, value = free[witness.target].pop(0), VALUES[witness.value]
    goal, known = possible.has(target, value), []
    for ruled_out in witness.ruled_out:
        event = possible.has(target, VALUES[ruled_out])
        several = witness.multiplicity != "single"
        known.append(possible.implication(event, goal) if several else possible.negation(event))
    for code, people in witness.known_values:
        known += [possible.has(free[witness.known_group].pop(0), VALUES[code]) for _ in range(people)]
    if not witness.known_values:
        others = [free[witness.known_group].pop(0) for _ in range(witness.known)]
        known += [possible.negation(possible.has(other, value)) for other in others]
    family = [free[witness.family_group].pop(0) for _ in range(witness.family)]
    known += [possible.implication(possible.has(relative, value), goal) for relative in family]
    return worlds.probability(goal, reduce(and_, known, possible.every))


def witnesses(skyline: KnowledgeSkyline) -> list[tuple[Point, Witness]]:
    """Those of the point where nothing is known, and of all steps beyond the points, each with its amount."""
    assert skyline.start is not None
    told: list[tuple[Point, Witness]] = [((0, 0, 0), skyline.start)]
    for point in skyline.points:
        for axis, witness in point.beyond.items():
            amount = {"l": point.l, "k": point.k, "m": point.m}
            amount[axis] += 1
            told.append(((amount["l"], amount["k"], amount["m"]), witness))
    return told


@settings(max_examples=60, deadline=None)
@given(singles("abcd", 5, 2, 7), confidences)
@example([(2, "ab"), (4, "abbb")], Fraction(3, 4))
def test_witnesses_reach_what_they_state_in_all_worlds(held: Held, c: Fraction) -> None:
    release = [values for _, values in held]
    possible = worlds.single_worlds(release)
    for value in sorted(set("".join(release))):
        for (l, k, m), witness in witnesses(found(held, value, c)):
            assert float(reached(possible, witness)) == witness.probability
            assert len(witness.ruled_out) <= l and witness.known <= k and witness.family <= m
            assert witness.probability == float(oracle.breach(release, value, int(l), int(k), int(m)))


@settings(max_examples=60, deadline=None)
@given(several("abc", 4, 2, 3).filter(few_worlds), confidences)
def test_witnesses_among_sets_and_multisets_reach_what_they_state(release: tuple[str, Held], c: Fraction) -> None:
    kind, held = release
    possible = worlds.many_worlds(held, kind)
    for value in sorted(set("".join(values for _, values in held))):
        for (l, k, m), witness in witnesses(found(held, value, c, kind)):
            assert float(reached(possible, witness)) == witness.probability
            assert len(witness.ruled_out) <= l and witness.known <= k and witness.family <= m
            amount = min(l, 4), k, m
            assert witness.probability == float(oracle.many_breach(held, value, *map(int, amount), kind))


@settings(max_examples=60, deadline=None)
@given(singles("aaabbccde", 9, 4, 30), confidences)
def test_every_step_beyond_a_point_is_a_breach(held: Held, c: Fraction) -> None:
    for value in sorted(set("".join(values for _, values in held))):
        skyline = found(held, value, c)
        for point in skyline.points:
            assert all(witness.probability >= float(c) for witness in point.beyond.values())
        if not skyline.points:
            assert skyline.start is not None and skyline.start.probability >= float(c)


@settings(max_examples=60, deadline=None)
@given(st.lists(several("abcde", 8, 6, 9), min_size=1, max_size=1), confidences, st.integers(1, 5))
def test_batches_make_no_difference(drawn: list[tuple[str, Held]], c: Fraction, size: int) -> None:
    kind, held = drawn[0]
    cut = [as_groups(held[at : at + size], at) for at in range(0, len(held), size)]
    values = [code for code, value in enumerate(VALUES) if any(value in own for _, own in held)]
    assert skylines(cut, values, [c], kind) == skylines([as_groups(held)], values, [c], kind)


def test_a_family_may_be_in_another_group_than_the_target() -> None:
    """Group 0 is where the value is most probable, group 1 where few relatives are enough."""
    held = [(40, "a" * 10 + "b" * 15 + "c" * 15), (200, "a" * 90 + "b" * 60 + "c" * 50)]
    cases = {
        (w.target == w.family_group, w.known_group == w.target) for _, w in witnesses(found(held, "a", Fraction(9, 10)))
    }
    assert (False, True) in cases


def test_a_value_that_nobody_has_is_safe_against_everything() -> None:
    absent, unknown = skylines([as_groups([(3, "abb")])], [4, None], [Fraction(1, 2)])
    told = absent.to_dict(str)["points"]
    assert told == unknown.to_dict(str)["points"]
    assert [(p["l"], p["k"], p["m"]) for p in told] == [("inf", "inf", "inf")]


def test_all_other_values_of_a_set_may_be_known() -> None:
    """(n - s - k) / s (n - o) / n: with every other value 3/1 * 2/4, and one person known 2/1 * 2/4."""
    points = found([(4, "abb")], "a", Fraction(1, 2), "set").to_dict(str)["points"]
    assert [(p["l"], p["k"], p["m"]) for p in points] == [(0, 0, 1), (0, 1, 0), ("inf", 0, 0)]
    assert points[-1]["beyond"].keys() == {"k", "m"}


@pytest.mark.parametrize(("kind", "sentence"), [
    ("single", "An adversary who learns 1 value (b) that the person does not have, the value of 1 other person in "
     "group 0 (1 with c) and that the person has a if 1 relative in group 0 has it is 100% sure that a person in "
     "group 0 has a."),
    ("set", "An adversary who learns 1 value (b) which implies a for the person, that 1 other person in group 0 does "
     "not have a and that the person has a if 1 relative in group 0 has it is 50% sure that a person in "
     "group 0 has a."),
])  # fmt: skip
def test_sentences_tell_all_that_is_known(kind: str, sentence: str) -> None:
    told = Witness(
        0, kind, 1.0 if kind == "single" else 0.5, 0, (1,), 0, 1, ((2, 1),) if kind == "single" else (), 0, 1
    )
    assert told.sentence(lambda code: VALUES[code]) == sentence


@settings(max_examples=100, deadline=None)
@given(n=st.integers(2, 3_000), share=st.floats(0.001, 0.999), k=st.integers(0, 40), m=st.integers(0, 400))
def test_ratios_of_large_groups_are_the_exact_products_but_for_rounding(n: int, share: float, k: int, m: int) -> None:
    s = min(max(round(n * share), 1), n - 1)
    fronts = fronts_of([Groups.dense(np.array([[s, n - s]]))], [0], "single")[0]
    search = SkylineSearch(0, Fraction(1, 2), fronts, "single")
    others = max(n - s - k, 0) * prod(max(n - s - k - 1 - i, 0) for i in range(m))
    exact = Fraction(others, s * prod(max(n - k - 1 - i, 1) for i in range(m)))
    ratio = search.ask(0, k, m).ratio
    assert abs(Fraction(ratio) - exact) <= exact / 10**12 if exact > Fraction(1, 10**140) else ratio < 1e-139
