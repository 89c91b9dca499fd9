"""The oracles against each other, against the papers' examples and against tables whose answer can be read off. Stands
outside the way of the data: what is pinned here is the ground the engine's own tests stand on."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import pytest

from tests.oracles import ck_safety, criteria, robustness, skyline, worlds
from tests.oracles.partition import Column, Free, Hierarchy, Record, Safe, Value, partition

FIGURE_3 = [["AIDS", "AIDS", "Flu", "Flu"], ["AIDS", "Cancer", "Flu", "Flu"]]
TOM, GARY = 7, 6
F = ["s", "b", "c", "d", "e"]
G = ["s"] * 6 + ["a"] * 17 + [f"g{number}" for number in range(7)]


def random_release(rng: random.Random, people: int, values: str = "sabc") -> list[list[str]]:
    """One to three groups with few "s" but nearly always one: neither certain breach nor none at all says much."""
    weights = [rng.choice([0.2, 2]) if value == "s" else rng.choice([1, 2, 4]) for value in values]
    most = rng.choice([1, 1, 2, 3])
    labels = [rng.randrange(most) for _ in range(people)]
    groups = [[rng.choices(values, weights)[0] for label in labels if label == each] for each in range(most)]
    present = [group for group in groups if group]
    if rng.random() < 0.9:
        present[-1][0] = "s"
    return present


def random_amount(rng: random.Random) -> tuple[int, int, int]:
    l, k, m = rng.choices(range(4), [6, 3, 2, 1], k=3)
    return l, k, m


# The skyline criterion on the paper's example


def test_chosen_knowledge_about_tom_raises_the_confidence_as_the_paper_says() -> None:
    possible = worlds.single_worlds(FIGURE_3)
    aids = possible.has(TOM, "AIDS")
    no_cancer = possible.negation(possible.has(TOM, "Cancer"))
    gary_has_flu = possible.has(GARY, "Flu")
    assert worlds.probability(aids, possible.every) == Fraction(1, 4)
    assert worlds.probability(aids, no_cancer) == Fraction(1, 3)
    assert worlds.probability(aids, no_cancer & gary_has_flu) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ((0, 0, 0), "1/4"),
        ((1, 0, 0), "1/2"),
        ((0, 1, 0), "1/3"),
        ((1, 1, 0), "1"),
        ((0, 0, 1), "1/3"),
        ((0, 1, 1), "1/2"),
    ],
)
def test_worst_case_in_toms_group_is_above_the_chosen_one(amount: tuple[int, int, int], expected: str) -> None:
    toms_group = FIGURE_3[1:]
    assert skyline.breach(toms_group, "AIDS", *amount) == Fraction(expected)
    assert worlds.breach(toms_group, "AIDS", *amount) == Fraction(expected)


def test_one_excluded_value_breaks_the_other_group_of_figure_3() -> None:
    assert skyline.breach(FIGURE_3, "AIDS", 0, 0, 0) == Fraction(1, 2)
    assert skyline.breach(FIGURE_3, "AIDS", 1, 0, 0) == 1


# Closed form against enumeration


def test_closed_form_equals_enumeration_on_random_tiny_releases() -> None:
    rng = random.Random(2007)
    undecided = 0
    for _ in range(4000):
        release, amount = random_release(rng, rng.choice([1, 2, 3, 4, 5, 6, 6, 7, 7])), random_amount(rng)
        expected = worlds.breach(release, "s", *amount)
        assert skyline.breach(release, "s", *amount) == expected, (release, amount)
        undecided += 0 < expected < 1
    assert undecided > 500


def test_closed_form_equals_enumeration_on_every_small_single_group() -> None:
    for counts in product(range(4), repeat=3):
        group = [value for value, count in zip("sab", counts) for _ in range(count)]
        if 1 <= len(group) <= 6:
            for amount in product(range(3), repeat=3):
                assert skyline.breach([group], "s", *amount) == worlds.breach([group], "s", *amount), (group, amount)


@pytest.mark.parametrize("known_beside", ["target", "family"])
def test_cross_group_terms_equal_enumeration_with_everyone_placed(known_beside: str) -> None:
    rng = random.Random(5)
    undecided = 0
    for _ in range(900):
        g, f = ([rng.choice("sab") for _ in range(rng.randint(2, size))] for size in (3, 4))
        l, k, m = rng.randint(0, 1), rng.randint(0, 2), rng.randint(0, 2)
        possible = worlds.single_worlds([g, f])
        in_g, in_f = possible.groups
        others, known_in_g = (in_g, k) if known_beside == "target" else (in_f, 0)
        found = worlds.worst_case(possible, worlds.SINGLE, "s", (l, k, m), in_g, others, in_f)
        ratio = skyline.target_ratio(g, "s", l, known_in_g)
        expected = 0 if ratio is None else 1 / (1 + ratio * skyline.family_ratio(f, "s", m, k - known_in_g))
        assert found == expected, (g, f, l, k, m)
        undecided += 0 < found < 1
    assert undecided > 100


def test_known_people_beside_the_target_and_family_elsewhere_can_be_the_worst_case() -> None:
    g = ["s"] * 5 + ["a"] * 85 + [f"g{number}" for number in range(10)]
    f = ["s"] * 10 + [f"f{number}" for number in range(20)]
    target, family = Fraction(100 - 5 - 85 - 8, 5), Fraction(20 * 19 * 18, 30 * 29 * 28)
    assert skyline.breach([g, f], "s", 1, 8, 3) == 1 / (1 + target * family) == Fraction(1015, 1129)


# Boundary rules


def test_tiny_group_without_the_value_does_not_make_the_release_unsafe() -> None:
    release = [["s", "a", "a", "b", "b"], ["a"]]
    assert skyline.family_ratio(["a"], "s", 2, 0) == 1
    assert skyline.breach(release, "s", 0, 0, 2) == worlds.breach(release, "s", 0, 0, 2) == Fraction(1, 3)


def test_group_without_the_value_puts_no_target_at_risk() -> None:
    release = [["a", "a", "b"], ["s", "a", "b"]]
    assert skyline.target_ratio(release[0], "s", 1, 3) is skyline.NO_RISK
    assert skyline.breach(release, "s", 0, 0, 0) == worlds.breach(release, "s", 0, 0, 0) == Fraction(1, 3)


def test_value_nobody_has_cannot_be_breached() -> None:
    release = [["a", "b"], ["a"]]
    for amount in product((0, 3), repeat=3):
        assert skyline.breach(release, "s", *amount) == worlds.breach(release, "s", *amount) == 0


@pytest.mark.parametrize(
    ("release", "amount", "family"),
    [
        ([["s", "a"]], (0, 1, 1), 0),
        ([["s", "a"]], (0, 2, 0), 1),
        ([["s"]], (0, 0, 3), 0),
        ([["s"], ["a"]], (0, 1, 1), 0),
    ],
)
def test_more_knowledge_than_people_is_a_breach_and_not_a_division_by_zero(
    release: list[list[str]], amount: tuple[int, int, int], family: int
) -> None:
    _, k, m = amount
    assert skyline.family_ratio(release[0], "s", m, k) == family
    assert skyline.breach(release, "s", *amount) == worlds.breach(release, "s", *amount) == 1


def test_excluding_every_other_value_is_a_breach_even_if_there_are_fewer_than_l() -> None:
    release = [["s", "s", "a", "a", "a", "b"]]
    assert skyline.breach(release, "s", 1, 0, 0) == Fraction(2, 3)
    for l in (2, 3, 9):
        assert skyline.breach(release, "s", l, 0, 0) == worlds.breach(release, "s", l, 0, 0) == 1


def breach_by_figure_6(children: list[list[str]], l: int, k: int, m: int, as_printed: bool) -> Fraction:
    """The running minima of Figure 6 after one split of the whole, with the fifth as printed or as meant."""
    whole = [value for child in children for value in child]
    groups = [whole, *children]
    ratios = [
        (
            skyline.group_ratio(group, "s", l, k, m),
            skyline.target_ratio(group, "s", l, 0),
            skyline.target_ratio(group, "s", l, k),
        )
        for group in groups
    ]
    a1, a2, a3 = (min(ratio for ratio in column if ratio is not None) for column in zip(*ratios))
    a4, a5 = skyline.family_ratio(whole, "s", m, 0), skyline.family_ratio(whole, "s", m, k)
    for child in children:
        a4 = min(a4, skyline.family_ratio(child, "s", m, 0))
        a5 = min(a4 if as_printed else a5, skyline.family_ratio(child, "s", m, k))
    least: Fraction = min(a1, a2 * a5, a3 * a4)
    return 1 / (1 + least)


def test_printed_figure_6_understates_the_breach_of_the_35_people() -> None:
    assert breach_by_figure_6([F, G], 1, 1, 2, as_printed=True) == Fraction(5, 8)
    assert breach_by_figure_6([F, G], 1, 1, 2, as_printed=False) == Fraction(12, 19)
    assert skyline.breach([F, G], "s", 1, 1, 2) == Fraction(12, 19)


# Safety


def test_safety_is_strict_and_covers_every_point_of_every_value() -> None:
    toms_group = FIGURE_3[1:]
    at_half, above_half = (1, 0, 0, Fraction(1, 2)), (1, 0, 0, Fraction(51, 100))
    assert not skyline.safe(toms_group, {"AIDS": [at_half]})
    assert skyline.safe(toms_group, {"AIDS": [above_half], "Flu": []})
    assert not skyline.safe(toms_group, {"AIDS": [above_half, (1, 1, 0, Fraction(1))]})
    assert not skyline.safe(toms_group, {"AIDS": [above_half], "Flu": [(0, 0, 0, Fraction(1, 2))]})


def test_group_size_counts_the_smallest_group() -> None:
    assert skyline.safe_k([["a"] * 3, ["a"] * 5], 3)
    assert not skyline.safe_k([["a"] * 3, ["a"] * 5], 4)


def test_k_anonymity_is_the_skyline_of_k_less_two_known_people_over_identities() -> None:
    rng = random.Random(3)
    seen = set()
    for _ in range(500):
        identities = iter(range(40))
        release = [[next(identities) for _ in range(rng.randint(1, 6))] for _ in range(rng.randint(1, 4))]
        k = rng.randint(2, 5)
        points = {person: [(0, k - 2, 0, Fraction(1))] for group in release for person in group}
        assert skyline.safe(release, points) == skyline.safe_k(release, k), (release, k)
        seen.add(skyline.safe_k(release, k))
    assert seen == {True, False}


def recursively_diverse(group: list[str], c: Fraction, l: int) -> bool:
    counts = sorted(Counter(group).values(), reverse=True)
    return counts[0] < c * sum(counts[l - 1 :])


def test_recursive_diversity_is_the_skyline_of_l_less_two_excluded_values() -> None:
    rng = random.Random(4)
    seen = set()
    for _ in range(1000):
        release = random_release(rng, rng.randint(2, 24), "sabcd")
        c, l = Fraction(rng.randint(1, 12), rng.randint(1, 4)), rng.randint(2, 4)
        points = {value: [(l - 2, 0, 0, c / (c + 1))] for value in "sabcd"}
        diverse = all(recursively_diverse(group, c, l) for group in release)
        assert skyline.safe(release, points) == diverse, (release, c, l)
        seen.add(diverse)
    assert seen == {True, False}


def test_recursive_diversity_is_strict_at_its_bound() -> None:
    points = {value: [(1, 0, 0, Fraction(2, 3))] for value in "sab"}
    assert not recursively_diverse(["s", "s", "a", "b"], Fraction(2), 3)
    assert not skyline.safe([["s", "s", "a", "b"]], points)


def test_merging_two_groups_never_raises_the_breach() -> None:
    rng = random.Random(6)
    lowered = 0
    for _ in range(3000):
        release, amount = random_release(rng, rng.randint(4, 40), "sabcde"), random_amount(rng)
        if len(release) > 1:
            before = skyline.breach(release, "s", *amount)
            after = skyline.breach([release[0] + release[1], *release[2:]], "s", *amount)
            assert after <= before, (release, amount)
            lowered += after < before
    assert lowered > 300


# The partition search


def one_column(codes: list[int], values: str = "") -> list[Record]:
    return [((code,), value) for code, value in zip(codes, values or "x" * len(codes))]


def at_least(k: int) -> Safe:
    return lambda groups: skyline.safe_k(groups, k)


def test_unsafe_whole_table_has_no_release() -> None:
    assert partition(one_column([0, 1]), [Free([0, 1])], at_least(3)) is None


def test_whole_table_that_cannot_be_split_is_one_uncut_leaf() -> None:
    assert partition(one_column([2, 2, 2]), [Free([0, 1, 2])], at_least(1)) == [((None,), [0, 1, 2])]


def test_free_column_is_halved_until_groups_are_as_small_as_allowed() -> None:
    codes = [7, 6, 5, 4, 3, 2, 1, 0]
    leaves = partition(one_column(codes), [Free([float(code) for code in range(8)])], at_least(2))
    assert leaves == [(((0, 1),), [6, 7]), (((2, 3),), [4, 5]), (((4, 5),), [2, 3]), (((6, 7),), [0, 1])]


def test_cut_falls_in_the_middle_of_a_gap_and_cells_reach_the_ends_of_the_domain() -> None:
    position = [float(code) for code in range(11)]
    assert partition(one_column([2, 2, 7, 7]), [Free(position)], at_least(2)) == [
        (((0, 4),), [0, 1]),
        (((5, 10),), [2, 3]),
    ]
    assert partition(one_column([2, 2, 8, 8]), [Free(position)], at_least(2)) == [
        (((0, 4),), [0, 1]),
        (((5, 10),), [2, 3]),
    ]


def test_equally_balanced_cuts_take_the_lower_one_first() -> None:
    leaves = partition(one_column([0, 1, 1, 2]), [Free([0, 1, 2])], lambda groups: len(groups) <= 2)
    assert leaves == [(((0, 0),), [0]), (((1, 2),), [1, 2, 3])]


def test_cut_away_from_the_median_is_taken_where_the_median_is_unsafe() -> None:
    records = one_column([0, 1, 2, 3, 4, 5], "aaabab")
    leaves = partition(records, [Free([0, 1, 2, 3, 4, 5])], lambda groups: all(len(set(group)) > 1 for group in groups))
    assert leaves == [(((0, 3),), [0, 1, 2, 3]), (((4, 5),), [4, 5])]


def test_hierarchy_splits_whole_into_its_children_that_hold_someone() -> None:
    column = Hierarchy(((0, 1), (2, (3, 4)), 5))
    leaves = partition(one_column([0, 0, 3, 4, 4, 3]), [column], at_least(2))
    assert leaves == [(((0, 0),), [0, 1]), (((3, 3),), [2, 5]), (((4, 4),), [3, 4])]


def test_hierarchy_that_cannot_split_whole_stays_whole() -> None:
    column = Hierarchy(((0, 1), (2, (3, 4)), 5))
    assert partition(one_column([0, 0, 3, 3, 5]), [column], at_least(2)) == [((None,), [0, 1, 2, 3, 4])]


def two_columns(codes: list[tuple[int, int]]) -> list[Record]:
    return [(pair, "x") for pair in codes]


def test_widest_column_is_cut_first_and_ties_go_to_the_first_column() -> None:
    records = two_columns([(0, 0), (0, 1), (1, 0), (1, 1)])
    half = [0.0, 1.0, 2.0]
    by_rows, by_columns = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
    cases: list[tuple[list[Column], list[list[int]]]] = [
        ([Free(half), Free([0.0, 1.0])], by_columns),
        ([Free([0.0, 1.0]), Free(half)], by_rows),
        ([Free([0.0, 1.0]), Free([0.0, 1.0])], by_rows),
        ([Hierarchy(((0, 1), 2, 3)), Hierarchy((0, 1))], by_columns),
        ([Free(half), Hierarchy((0, 1, 2))], by_columns),
        ([Free([5.0, 5.0]), Free(half)], by_rows),
    ]
    for columns, expected in cases:
        leaves = partition(records, columns, at_least(2))
        assert leaves is not None
        assert [members for _, members in leaves] == expected


def test_balanced_prefers_the_column_whose_first_split_leaves_the_smallest_largest_child() -> None:
    records = two_columns([(0, 0), (1, 0), (1, 1), (1, 1)])
    columns = [Free([0.0, 1.0]), Free([0.0, 1.0, 2.0])]

    def two_groups(groups: list[list[Value]]) -> bool:
        return len(groups) <= 2

    assert partition(records, columns, two_groups) == [(((0, 0), None), [0]), (((1, 1), None), [1, 2, 3])]
    assert partition(records, columns, two_groups, "balanced") == [
        ((None, (0, 0)), [0, 1]),
        ((None, (1, 2)), [2, 3]),
    ]


def test_queue_is_served_level_by_level() -> None:
    leaves = partition(
        one_column(list(range(8))), [Free([float(c) for c in range(8)])], lambda groups: len(groups) <= 4
    )
    assert leaves is not None
    assert [cells[0] for cells, _ in leaves] == [(0, 1), (2, 3), (4, 5), (6, 7)]


def safe_beside(rest: list[list[Value]], points: dict[str, list[skyline.Point]]) -> Safe:
    return lambda groups: skyline.safe([*rest, *groups], points)


def test_partition_with_a_skyline_is_safe_and_no_leaf_can_be_split_again() -> None:
    rng = random.Random(8)
    points = {value: [(1, 1, 2, Fraction(9, 10))] for value in "sabc"}
    columns: list[Column] = [Free([0.0, 1.0, 2.0, 5.0, 9.0]), Hierarchy(((0, 1), (2, (3, 4)), 5))]
    groups_found = 0
    for _ in range(20):
        records: list[Record] = [((rng.randrange(5), rng.randrange(6)), rng.choice("sabc")) for _ in range(60)]
        leaves = partition(records, columns, safe_beside([], points))
        assert leaves is not None
        groups = [[records[member][1] for member in members] for _, members in leaves]
        assert sorted(member for _, members in leaves for member in members) == list(range(60))
        assert skyline.safe(groups, points)
        for number, (_, members) in enumerate(leaves):
            rest = groups[:number] + groups[number + 1 :]
            own = [records[member] for member in members]
            again = partition(own, columns, safe_beside(rest, points))
            assert again is not None and len(again) == 1
        groups_found += len(leaves)
    assert groups_found > 40


# Several oracles for one thing


def test_posteriors_are_the_same_listed_world_by_world_and_added_up_over_sets() -> None:
    rng = random.Random(3)
    for _ in range(60):
        size, values = rng.randint(1, 5), rng.randint(1, 3)
        people = [[Fraction(rng.randint(0, 4), 4) for _ in range(values)] for _ in range(size)]
        held = [rng.randrange(values) for _ in range(size)]
        assert robustness.posteriors(people, held) == robustness.posteriors_of_many(people, held)


@pytest.mark.parametrize("kind", ["single", "set", "multiset"])
def test_a_criterion_of_the_config_is_judged_by_the_oracle_of_its_definition(kind: str) -> None:
    """Skylines from the statistics of groups and from whole releases; disclosure likewise."""
    rng = random.Random(4)
    for _ in range(60):
        release = random_release(rng, rng.randint(1, 7))
        own = [value if kind == "single" else (value,) for group in release for value in group]
        table = criteria.Table([{"d": value} for value in own], ["d"], kind)
        ends = [sum(map(len, release[:at])) for at in range(len(release) + 1)]
        groups = [tuple(range(low, high)) for low, high in pairwise(ends)]
        l, k, m = random_amount(rng)
        point = {"l": l, "k": k, "m": m, "c": "0.5"}
        found = criteria.criterion({"skyline": {"points": [point]}}, table).verdict(groups)
        many = [(len(group), group) for group in release]
        for value in {value for group in release for value in group}:
            breach = skyline.many_breach(many, value, l, k, m, kind) if kind != "single" else None
            assert found.points[value, l, k, m] == (breach or skyline.breach(release, value, l, k, m))
        assert found.safe == (max(found.points.values()) < Fraction(1, 2))
        if kind == "single":
            disclosed = criteria.criterion({"ck_safety": {"c": 1, "k": k}}, table).verdict(groups).figure
            assert disclosed == ck_safety.disclosure([ck_safety.histogram(group) for group in release], k)
