"""Which criteria stay monotone when groups that fail are suppressed, which decides how a lattice may be searched."""

from __future__ import annotations

from fractions import Fraction

from anon.criteria.protocol import Criterion


def prunes(criterion: Criterion, suppress: Fraction) -> bool:
    """Return whether every node above a safe one, and the same node of fewer columns, is safe too.

    Their groups are unions of the safe node's groups. Without suppression all of these are safe. With suppression some
    of them fail, so that being safe must survive merging with people who were not: then a union fails only if it
    consists of groups that fail, and no more individuals are suppressed than before. In a joint reading (Definition 4.6
    of l-diversity) merging may add contexts, which are judged by themselves.
    """
    return criterion.absorbs and not criterion.context if suppress else criterion.monotone
