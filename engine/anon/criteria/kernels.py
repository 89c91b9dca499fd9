"""The compiled loops of skylines: from the counts of each group to the minima over all groups. Plain loops with
explicit types, compiled once per installation."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import math

import numba as nb
import numpy as np

from anon.compiled import compiled, inner
from anon.criteria.kernels_counts import MULTISET, SET, SINGLE, above, before, largest_counts

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_IN2 = nb.types.Array(nb.int64, 2, "C", readonly=True)
_OUT = nb.int64[::1]
_MEMO = nb.int64[:, ::1]
_VALUES = nb.float64[:, ::1]
_WITNESS = nb.int64[:, :, ::1]


@inner(nb.float64(_I, _I, _I, _I, _I, _IN))
def target(kind, n, s, k, l, others):
    """T of the skyline paper for s > 0; `others` starts with the l largest counts of other values."""
    if kind == SINGLE:
        left = n - s - k
        for i in range(l):
            left -= others[i]
        return left / s if left > 0 else 0.0
    if kind == SET:
        ratio = (n - s - k) / s if n - s - k > 0 else 0.0
        for i in range(l):
            ratio = above(ratio * (n - others[i]) / n) if ratio > 0 and others[i] < n else 0.0
        return ratio
    if n - k - 1 <= 0:
        return 0.0
    nobody = s * math.log1p(-1.0 / (n - k))
    known = 0
    for i in range(l):
        known += others[i]
    return above(math.exp(nobody + known * math.log1p(-1.0 / n)) / -math.expm1(nobody))


@inner(nb.float64(_I, _I, _I, _I, _I))
def family(kind, n, s, m, k):
    """V of the skyline paper for s > 0."""
    if m == 0:
        return 1.0
    if kind == MULTISET:
        return above(math.exp(s * math.log1p(-m / (n - k)))) if n - k - m > 0 else 0.0
    product = 1.0
    for i in range(m):
        numerator = n - s - k - i
        if numerator <= 0:
            return 0.0
        product *= numerator / (n - k - i)
    return above(product)


@inner(nb.void(_I, _OUT, _OUT))
def _without(s, top, others):
    """The largest counts but one s, which is among them or, if it is smaller than all, the last in its place."""
    at = 0
    for i in range(top.size):
        if at == i and (top[i] == s or i == top.size - 1):
            continue
        others[at] = top[i]
        at += 1


@inner(nb.void(_I, _I, _I, _I, _I, _I, _IN, nb.float64[::1]))
def _figures(kind, n, s, l, k, m, others, figures):
    """SS1 to SS5 of a group alone."""
    figures[1] = target(kind, n, s, 0, l, others)
    figures[2] = target(kind, n, s, k, l, others)
    figures[3] = family(kind, n, s, m, 0)
    figures[4] = family(kind, n, s, m, k)
    figures[0] = figures[2] * family(kind, n, s, m, k + 1)


@compiled(nb.void(_I, _IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN2, _VALUES))
def lower_minima(kind, n, start, value, count, owner, slot_start, slot_of, knowledge, values):
    """Lowers values[owner] (five per slot) by every group."""
    most = 0
    for slot in range(knowledge.shape[0]):
        most = max(most, knowledge[slot, 0])
    top, others, figures = np.zeros(most + 1, np.int64), np.zeros(most, np.int64), np.zeros(5)
    for g in range(n.size):
        largest_counts(count, start[g], start[g + 1], top)
        for e in range(start[g], start[g + 1]):
            _without(count[e], top, others)
            for at in range(slot_start[value[e]], slot_start[value[e] + 1]):
                slot = slot_of[at]
                l, k, m = knowledge[slot, 0], knowledge[slot, 1], knowledge[slot, 2]
                _figures(kind, n[g], count[e], l, k, m, others, figures)
                for i in range(5):
                    values[owner[g], slot * 5 + i] = min(values[owner[g], slot * 5 + i], figures[i])


@inner(nb.void(nb.float64[::1], _I, _OUT, _VALUES, _WITNESS))
def _lower(figures, slot, integers, values, witness):
    """Lowers the five minima of a slot, and fills in their witnesses."""
    for i in range(5):
        column = slot * 5 + i
        lower = figures[i] < values[0, column]
        if figures[i] == values[0, column]:
            lower = before(integers, witness[0, column])
        if lower:
            values[0, column] = figures[i]
            for j in range(integers.size):
                witness[0, column, j] = integers[j]


@inner(nb.void(_MEMO, _I, _I, _I))
def _raise(memo, row, column, limit):
    if limit > memo[row, column]:
        memo[row, column] = limit


@inner(nb.void(_I, _I, _I, _I, _I, _VALUES, _WITNESS, _MEMO, _I, _I, _I))
def _remember(n, s, slot, k, m, values, witness, memo, row, column, later):
    """Notes in the row of n and s, which were folded in, the most people with neither sigma nor the l values with whom
    another group of n and s may change a slot, and in a `later` column the same for groups of more people. T rises with
    those people and V with n, to the last bit, so that groups beyond have no lower figures; a tie matters if it comes
    before the witness."""
    for i in range(5):
        at = slot * 5 + i
        least, bigger = values[0, at], n < witness[0, at, 0]
        wins = bigger or (n == witness[0, at, 0] and s <= witness[0, at, 1])
        v = 1.0 if i == 1 or i == 2 else family(SINGLE, n, s, m, k + 1 if i == 0 else 0 if i == 3 else k)
        if i > 2 or v == 0.0:
            if wins and v == least:
                _raise(memo, row, column, n)
        elif least > 0.0:
            limit = int(min((0 if i == 1 else k) + s * least / v, 1e18)) + 1
            _raise(memo, row, column, limit)
            _raise(memo, row, column + later, limit)
        else:
            if wins:
                _raise(memo, row, column, 0 if i == 1 else k)
            if bigger:
                _raise(memo, row, column + later, 0 if i == 1 else k)


@inner(nb.void(_IN, _I, _I, _IN, _OUT, _OUT), forceinline=True)
def _bound_named(count, low, high, depth, edge, named):
    """named[i]: the sum of the depth[i] largest counts is not above this. Whatever the edge, it is no more than so many
    times the edge and all that is above it; with the next largest count as the edge it is just that."""
    for i in range(depth.size):
        above = 0
        for e in range(low, high):
            above += max(count[e] - edge[i], 0)
        named[i] = depth[i] * edge[i] + above


@inner(nb.boolean(_MEMO, _I, _I, _I, _OUT, _OUT), forceinline=True)
def _reached(memo, row, n, s, edge, named):
    """Whether a group may change anything, by what the row says."""
    column = 3 if memo[row, 2] == n else 3 + edge.size
    reached = False
    for i in range(edge.size):
        reached |= n - s - named[i] + max(s - edge[i], 0) <= memo[row, column + i]
    return reached


@inner(nb.void(_MEMO, _I, _I, _I, _I))
def _begin(memo, row, v, s, n):
    memo[row, 0], memo[row, 1], memo[row, 2] = v, s, n
    for i in range(3, memo.shape[1]):
        memo[row, i] = -1


@inner(nb.boolean(_MEMO, _I, _I, _I, _OUT))
def _seen(memo, v, n, s, top):
    """Whether there was such a group before, if that is remembered; it is from now on."""
    rows, mark = memo.shape[0] // 2, (v * 31 + n) * 31 + s
    for i in range(top.size):
        mark = mark * 31 + top[i]
    row = rows + ((mark ^ (mark >> 21)) & (rows - 1))
    same = memo[row, 0] == v and memo[row, 1] == s and memo[row, 2] == n
    memo[row, 0], memo[row, 1], memo[row, 2] = v, s, n
    for i in range(top.size):
        same = same and memo[row, 3 + i] == top[i]
        memo[row, 3 + i] = top[i]
    return same


@inner(nb.void(_I, _I, _I, _I, _I, _IN, _IN2, _OUT, _OUT, nb.float64[::1], _VALUES, _WITNESS, _MEMO, _I, _I))
def _fold_value(
    kind, n, s, low, high, slot_of, knowledge, others, integers, figures, values, witness, memo, row, depths
):
    """Lowers the minima of the slots of one value of one group."""
    integers[0], integers[1] = n, s
    for at in range(low, high):
        slot = slot_of[at]
        l, k, m = knowledge[slot, 0], knowledge[slot, 1], knowledge[slot, 2]
        for i in range(others.size):
            integers[2 + i] = others[i] if i < l else 0
        _figures(kind, n, s, l, k, m, others, figures)
        _lower(figures, slot, integers, values, witness)
        if memo.shape[0] > 0:
            _remember(memo[row, 2], s, slot, k, m, values, witness, memo, row, 3 + knowledge[slot, 3], depths)


@inner(_I(_IN, _I, _I, _I), forceinline=True)
def _place(value, low, high, v):
    """Where a value is in a group, -1 if it is not; looked for first where it is if no lower one is missing."""
    guess = min(low + v, high - 1)
    for e in range(guess, low - 1, -1):
        if value[e] == v:
            return e
    for e in range(guess + 1, high):
        if value[e] == v:
            return e
    return -1


@compiled(nb.void(_I, _IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN2, _IN, _MEMO, _VALUES, _WITNESS, _I))
def fold_skyline(
    kind, n, start, value, count, asked, slot_start, slot_of, knowledge, depth, memo, values, witness, first
):
    """Lowers values[0] (five per slot) by every group, and fills in the witnesses: n, s, the l largest other counts
    padded with zeros to the largest l, and the group.

    `asked` lists the values that have slots, `depth` the different l. With a `memo` of zeros, for single values, most
    groups are seen to change nothing without formulas. Half of its rows say for a value, s, and n or more people when
    they might, the others what groups there were; each row has its place, and is taken over by the next that has the
    same one.
    """
    most = depth[depth.size - 1] if depth.size else 0
    top, others, integers = np.zeros(most + 1, np.int64), np.zeros(most, np.int64), np.zeros(most + 3, np.int64)
    edge, named = np.zeros(depth.size, np.int64), np.zeros(depth.size, np.int64)
    share, figures = np.zeros(depth.size), np.zeros(5)
    rows, row, known = memo.shape[0] // 2, 0, False
    values_known = slot_start.size - 1
    stride = rows // values_known if values_known else 0
    for g in range(n.size):
        low, high, size = start[g], start[g + 1], n[g]
        integers[most + 2] = first + g
        exact = rows == 0
        if exact:
            largest_counts(count, low, high, top)
        else:
            for j in range(depth.size):
                edge[j] = int(share[j] * size + 0.5)
            _bound_named(count, low, high, depth, edge, named)
        few = asked.size < high - low
        for i in range(asked.size if few else high - low):
            e = _place(value, low, high, asked[i]) if few else low + i
            if e < 0 or slot_start[value[e]] == slot_start[value[e] + 1]:
                continue
            v, s = value[e], count[e]
            if rows > 0:
                row = (v * stride + s) & (rows - 1)
                known = memo[row, 0] == v and memo[row, 1] == s and memo[row, 2] <= size
                if known and not _reached(memo, row, size, s, edge, named):
                    continue
                if not exact:
                    exact = True
                    largest_counts(count, low, high, top)
                    for j in range(depth.size):
                        edge[j] = top[depth[j]]
                        share[j] = edge[j] / size
                    _bound_named(count, low, high, depth, edge, named)
                    if known and not _reached(memo, row, size, s, edge, named):
                        continue
                if _seen(memo, v, size, s, top):
                    continue
                _begin(memo, row, v, s, memo[row, 2] if known else size)
            _without(s, top, others)
            _fold_value(
                kind, size, s, slot_start[v], slot_start[v + 1], slot_of, knowledge, others, integers, figures,
                values, witness, memo, row, depth.size,
            )  # fmt: skip
