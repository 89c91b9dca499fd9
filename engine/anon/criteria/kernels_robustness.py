"""The kernels of r-robustness, in kernels_robustness.c."""

from __future__ import annotations

import numpy as np

from anon.core.kernels import kernel
from anon.criteria.protocol import Floats, Groups, Ints, Signatures

_bound_groups = kernel("robustness_bound_groups")
_bound_values = kernel("robustness_bound_values")
_largest_posteriors = kernel("robustness_largest_posteriors")


def bound_groups(groups: Groups, signatures: Signatures, p: Floats, inverse: Floats) -> None:
    _bound_groups(*groups.arrays, *signatures.arrays, p, inverse, np.empty(p.shape[1]))


def bound_values(
    group: Ints, entry: Ints, groups: Groups, signatures: Signatures, yes: Floats, no: Floats, inverse: Floats
) -> None:
    _bound_values(group, entry, *groups.arrays, *signatures.arrays, yes, no, inverse)


def largest_posteriors(
    group: Ints, entry: Ints, groups: Groups, signatures: Signatures, yes: Floats, no: Floats, limit: int,
    inverse: Floats,
) -> None:  # fmt: skip
    """Fill in one over the largest posteriors; questions with more than `limit` states have no answer."""
    forward, backward, items = np.empty(limit), np.empty(limit), np.empty(limit, np.int64)
    w, weight = np.empty((limit, limit.bit_length())), np.empty((limit, limit.bit_length()))
    asked, scratch = (group, entry), (forward, backward, items, w, weight)
    _largest_posteriors(*asked, *groups.arrays, *signatures.arrays, yes, no, inverse, *scratch)
