"""Which criteria stay monotone when groups that fail are suppressed, which decides how a lattice may be searched."""

from __future__ import annotations

from fractions import Fraction

from anon.criteria.l_diversity import LDiversity
from anon.criteria.protocol import Criterion


def prunes(criterion: Criterion, suppress: Fraction) -> bool:
    """Whether a node above a safe one, and the same node of fewer columns, must be safe too. With suppression a group
    that passes must go on to pass after being merged with one that does not: sizes do, and numbers of values."""
    if not suppress:
        return criterion.monotone
    if criterion.name in ("k_anonymity", "group_size"):
        return True
    return (
        isinstance(criterion, LDiversity) and criterion.kind == "distinct" and not (criterion.kept or criterion.context)
    )
