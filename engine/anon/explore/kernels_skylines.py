"""The compiled loops of knowledge skylines: which groups no other one outdoes, and the negated ratio of Theorem 2 over
those that are left. Plain loops with explicit types, compiled once per installation."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import math

import numba as nb

from anon.compiled import compiled, inner
from anon.criteria.arithmetic import TINY
from anon.criteria.kernels_counts import MULTISET, SET, SINGLE, above

_I = nb.int64
_INTS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_FLOATS = nb.types.Array(nb.float64, 1, "C", readonly=True)



@compiled(nb.void(_INTS, _FLOATS, nb.float64[::1], nb.boolean[::1]))
def keep_undominated(rank, left, tree, keep):
    """Marks the groups that no earlier one outdoes by a rank and a `left` as low as theirs. `tree` holds, all infinite
    at first, the least `left` of ranks below powers of two (a Fenwick tree)."""
    for i in range(rank.size):
        lowest, at = math.inf, rank[i] + 1
        while at > 0:
            lowest = min(lowest, tree[at])
            at -= at & -at
        keep[i] = left[i] < lowest
        if keep[i]:
            at = rank[i] + 1
            while at < tree.size:
                tree[at] = min(tree[at], left[i])
                at += at & -at


@inner(nb.float64(_I, _I, _I, nb.float64, _I))
def _target(kind, n, s, left, k):
    """T, given what is left of the group once l values are ruled out."""
    if kind == SINGLE:
        return (left - k) / s if left > k else 0.0
    if left <= 0.0:
        return 0.0
    if kind == SET:
        return above((n - s - k) / s * left) if n - s - k > 0 else 0.0
    if n - k - 1 <= 0:
        return 0.0
    nobody = s * math.log1p(-1.0 / (n - k))
    return above(math.exp(nobody) / -math.expm1(nobody) * left)


@inner(nb.float64(_I, _I, _I, _I, _I))
def _family(kind, n, s, m, k):
    """V: with m relatives and s occurrences it is a product of as many factors as the fewer of them."""
    if m == 0:
        return 1.0
    if kind == MULTISET:
        return above(math.exp(s * math.log1p(-m / (n - k)))) if n - k - m > 0 else 0.0
    if n - s - k - m + 1 <= 0:
        return 0.0
    fewer, more = min(s, m), max(s, m)
    product = 1.0
    for i in range(fewer):
        product *= (n - k - more - i) / (n - k - i)
        if product < TINY:
            return TINY
    return product


@compiled(nb.void(_I, _INTS, _INTS, _FLOATS, _INTS, _INTS, _I, _I, nb.float64[::1], nb.int64[::1]))
def least_ratios(kind, n, s, left, family_n, family_s, k, m, ratios, at):
    """The three negated ratios of Theorem 2, and where the minima behind SS1 to SS5 are."""
    one = two = three = four = five = math.inf
    for g in range(n.size):
        known = _target(kind, n[g], s[g], left[g], k)
        together = known * _family(kind, n[g], s[g], m, k + 1)
        alone = _target(kind, n[g], s[g], left[g], 0)
        if together < one:
            one, at[0] = together, g
        if alone < two:
            two, at[1] = alone, g
        if known < three:
            three, at[2] = known, g
    for f in range(family_n.size):
        without, among = _family(kind, family_n[f], family_s[f], m, 0), _family(kind, family_n[f], family_s[f], m, k)
        if without < four:
            four, at[3] = without, f
        if among < five:
            five, at[4] = among, f
    ratios[0], ratios[1], ratios[2] = one, two * five, three * four
