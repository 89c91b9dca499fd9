"""The compiled loops of r-robustness, in kernels_robustness.c."""

from __future__ import annotations

import numpy as np

from anon.compiled import loop, read, written
from anon.criteria.protocol import Floats, Ints

_IN = read(np.int64)
_P = read(np.float64, 2)
_OUT = written(np.float64)

_bound_groups = loop("robustness_bound_groups", _IN, _IN, _IN, _IN, _IN, _IN, _P, _OUT, _OUT)
bound_values = loop("robustness_bound_values", _IN, _IN, _IN, _IN, _IN, _IN, _IN, _P, _P, _OUT)
_largest_posteriors = loop(
    "robustness_largest_posteriors", _IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN, _IN, _P, _P, int, _OUT,
    _OUT, _OUT, written(np.int64), _OUT, _OUT,
)  # fmt: skip


def bound_groups(
    n: Ints, start: Ints, value: Ints, count: Ints, sig_start: Ints, code: Ints, p: Floats, inverse: Floats
) -> None:
    _bound_groups(n, start, value, count, sig_start, code, p, inverse, np.empty(p.shape[1]))


def largest_posteriors(
    group: Ints, entry: Ints, n: Ints, start: Ints, value: Ints, count: Ints, sig_start: Ints, code: Ints,
    sig_count: Ints, yes: Floats, no: Floats, limit: int, inverse: Floats,
) -> None:  # fmt: skip
    forward, backward, items = np.empty(limit), np.empty(limit), np.empty(limit, np.int64)
    w, weight = np.empty(limit * limit.bit_length()), np.empty(limit * limit.bit_length())
    _largest_posteriors(
        group, entry, n, start, value, count, sig_start, code, sig_count, yes, no, limit, inverse,
        forward, backward, items, w, weight,
    )  # fmt: skip
