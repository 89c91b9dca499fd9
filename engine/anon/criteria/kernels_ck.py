"""The compiled loops of (c,k)-safety: from the largest counts of each group to the minima over all groups, which the
search, `check` and `verify` then judge."""

# mypy: disable-error-code="no-untyped-def,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from anon.compiled import compiled, inner
from anon.criteria.kernels_counts import before, largest_counts

_I = nb.int64
_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)

TINY = 1e-300  # stands for products that would underflow: zero is kept for chances that are zero


@inner(nb.void(_I, nb.int64[::1], nb.float64[:, ::1], nb.float64[::1]))
def least_absences(n, top, product, chance):
    """Fills chance[h], h = 0..top.size: the least probability that h atoms about one group are all false.

    product[i, h] is the least one with i people; people come by descending number of atoms, so j only falls. With
    fewer atoms than values every factor is positive, and with as many one person runs out of values.
    """
    most, named = 0, 0
    while most < top.size and named + top[most] < n:
        named += top[most]
        most += 1
    for i in range(most + 1):
        for h in range(i, most + 1):
            product[i, h] = np.inf
    product[0, 0] = 1.0
    for j in range(most, 0, -1):
        for i in range(most // j):
            factor = (n - i - named) / (n - i)
            for h in range(i * j, most - j + 1):
                lower = product[i, h] * factor
                if lower < product[i + 1, h + j]:
                    product[i + 1, h + j] = max(lower, TINY)
        named -= top[j - 1]
    for h in range(top.size + 1):
        chance[h] = 0.0
        if h <= most:
            chance[h] = np.inf
            for i in range(h + 1):
                chance[h] = min(chance[h], product[i, h])


@compiled(nb.void(_IN, _IN, _IN, _IN, _I, nb.float64[:, ::1], nb.int64[:, :, ::1], _I))
def fold_ck(n, start, count, owner, k, values, witness, first):
    """Lowers values[owner] (F_0..F_k, then f_1..f_k) by every group; fills witness[owner] too unless it is empty. A
    witness is n, the k + 1 largest counts, and the group."""
    integers = np.zeros(k + 3, np.int64)
    top = integers[1 : k + 2]
    chance = np.zeros(k + 2)
    product = np.zeros((k + 2, k + 2))
    keep = witness.shape[0] > 0
    for g in range(n.size):
        if n[g] == 0:
            continue
        largest_counts(count, start[g], start[g + 1], top)
        integers[0], integers[k + 2] = n[g], first + g
        least_absences(n[g], top, product, chance)
        o, odds = owner[g], n[g] / top[0]
        for column in range(2 * k + 1):
            figure = chance[column + 1] * odds if column <= k else chance[column - k]
            lower = figure < values[o, column]
            if keep and figure == values[o, column]:
                lower = before(integers, witness[o, column])
            if lower:
                values[o, column] = figure
                if keep:
                    for i in range(integers.size):
                        witness[o, column, i] = integers[i]
