"""Privacy criteria, one file per principle: definition, citation, worked example, monotonicity, mergeable state."""

from anon.criteria.bind import CATEGORICAL, bind, protects, vacuous
from anon.criteria.k_anonymity import KAnonymity
from anon.criteria.protocol import CLOSE, SAFE, UNSAFE, Criterion, Finding, Groups, State, Verdict, exact
from anon.criteria.skyline import Point, Skyline, Slot

__all__ = [
    "CATEGORICAL",
    "CLOSE",
    "SAFE",
    "UNSAFE",
    "Criterion",
    "Finding",
    "Groups",
    "KAnonymity",
    "Point",
    "Skyline",
    "Slot",
    "State",
    "Verdict",
    "bind",
    "exact",
    "protects",
    "vacuous",
]
