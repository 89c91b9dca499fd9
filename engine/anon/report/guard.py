"""Report the bound of a guarded search: how much more an adversary who knows the algorithm can learn from what was not
cut (search/partition/guard.py)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from anon.config import Config, Partition
from anon.recoding.outcome import Outcome
from anon.recoding.tree import Recoding
from anon.search.partition.guard import UNBOUNDED


def guard_facts(config: Config, outcome: Outcome) -> dict[str, Any]:
    """Return the entry of report.json, nothing without a guard: the individuals by the number of candidates that count
    against their group."""
    method = config.method
    if not isinstance(method, Partition) or method.guard is None or outcome.passed is None:
        return {}
    assert isinstance(outcome.recoding, Recoding)
    people = np.bincount(outcome.passed, outcome.recoding.people, UNBOUNDED + 1).astype(np.int64)
    held = np.flatnonzero(people[:UNBOUNDED])
    unbounded, most = int(people[UNBOUNDED]), int(held.max(initial=0))
    largest = "inf" if unbounded else float(Fraction(method.guard.skip) ** -most)
    return {
        "guard": {
            "skip": float(method.guard.skip),
            "below": method.guard.limit,
            "enforced": method.guard.enforce,
            "individuals": {str(count): int(people[count]) for count in held.tolist()},
            "unbounded": unbounded,
            "largest": largest,
        }
    }
