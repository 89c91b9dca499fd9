"""l-diversity in all its kinds from the definitions of the paper, on groups given as lists of values. Stands outside
the way of the data, as the reference for the criterion that search and verify share. Everything is decided in integers
and fractions, but for entropy with don't-care values: there the supremum of Definition 4.5 is looked for among all
ways to leave some don't-care counts at their limits and to give the others the one value at which the entropy is
stationary, with sixty digits. Where the paper leaves a gap: l = 1 holds, and so does a group of don't-care values only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

Value = Hashable
Group = Sequence[Value]

EVERYTHING_MAY_BE_TOLD = None
SAME = Decimal("1e-50")


def distinct(group: Group) -> int:
    return len(set(group))


def largest_share(group: Group) -> Fraction:
    return max(Fraction(count, len(group)) for count in Counter(group).values())


def entropy_reaches(group: Group, l: Fraction) -> bool:
    """exp(H) >= l, multiplied out: n^n >= l^n * product of count^count."""
    n, right = len(group), l ** len(group)
    for count in Counter(group).values():
        right *= count**count
    return n**n >= right


def adjusted_entropy(group: Group, dont_care: Collection[Value]) -> Decimal | None:
    """Definition 4.5 in nats, or EVERYTHING_MAY_BE_TOLD."""
    counts = Counter(group)
    own = [Decimal(count) for value, count in counts.items() if value not in dont_care]
    limits = [Decimal(count) for value, count in counts.items() if value in dont_care]
    if not own:
        return EVERYTHING_MAY_BE_TOLD
    with localcontext(prec=60):
        return max(_entropy(numbers) for numbers in _stationary(own, limits))


def adjusted_entropy_reaches(group: Group, l: Fraction, dont_care: Collection[Value]) -> bool:
    entropy = adjusted_entropy(group, dont_care)
    with localcontext(prec=60):
        return entropy is None or entropy - (Decimal(l.numerator) / Decimal(l.denominator)).ln() > -SAME


def _stationary(own: list[Decimal], limits: list[Decimal]) -> Iterator[list[Decimal]]:
    for at_limit in product((True, False), repeat=len(limits)):
        fixed = own + [limit for limit, kept in zip(limits, at_limit) if kept]
        mean = sum((x * x.ln() for x in fixed), Decimal(0)) / sum(fixed)
        free = [limit for limit, kept in zip(limits, at_limit) if not kept]
        if all(mean.exp() <= limit for limit in free):
            yield fixed + [mean.exp()] * len(free)


def _entropy(numbers: list[Decimal]) -> Decimal:
    total = sum(numbers)
    return -sum((x / total * (x / total).ln() for x in numbers), Decimal(0))


def head_and_tail(group: Group, l: int, dont_care: Collection[Value] = ()) -> tuple[int, int]:
    """r_y and the tail of Definition 4.3, by its two cases; (0, 0) where it holds without them."""
    ranked = Counter(group).most_common()
    y = next((rank for rank, (value, _) in enumerate(ranked, 1) if value not in dont_care), None)
    if y is None or l == 1:
        return 0, 0
    r = [0, *(count for _, count in ranked)]
    if y <= l - 1:
        return r[y], sum(r[l:])
    return r[y], sum(r[l - 1 : y]) + sum(r[y + 1 :])


def recursive(group: Group, c: Fraction, l: int, dont_care: Collection[Value] = ()) -> bool:
    head, tail = head_and_tail(group, l, dont_care)
    return head == 0 or head < c * tail


def recursive_by_lowering(group: Group, c: Fraction, l: int, dont_care: Collection[Value]) -> bool:
    """What section 4.2 says besides: don't-care counts above r_y lowered to it, then Definition 4.2. Not the same."""
    counts = Counter(group)
    most = max((count for value, count in counts.items() if value not in dont_care), default=0)
    lowered = [min(count, most) if value in dont_care else count for value, count in counts.items()]
    r = sorted(lowered, reverse=True)
    return most == 0 or l == 1 or r[0] < c * sum(r[l - 1 :])


def keeps_possible(group: Group, percents: Mapping[Value, Fraction]) -> bool:
    """Definition 4.4: every named value has at least its percentage of the group."""
    counts = Counter(group)
    return all(Fraction(100 * counts[value], len(group)) >= percent for value, percent in percents.items())


def holds(
    release: Sequence[Group],
    kind: str,
    l: Fraction,
    c: Fraction,
    dont_care: Collection[Value],
    percents: Mapping[Value, Fraction],
) -> bool:
    """Whether every group is diverse; `c` and `dont_care` are for the kinds that know them."""
    diverse = {
        "distinct": lambda group: distinct(group) >= l,
        "frequency": lambda group: largest_share(group) <= 1 / l,
        "entropy": lambda group: (
            adjusted_entropy_reaches(group, l, dont_care) if dont_care else entropy_reaches(group, l)
        ),
        "recursive": lambda group: recursive(group, c, int(l), dont_care),
    }[kind]
    return all(diverse(group) and keeps_possible(group, percents) for group in release)
