"""Privacy criteria, one file per principle: definition, citation, worked example, monotonicity, mergeable state, and
how it is bound to a table."""

from anon.criteria.bind import Values, bind, check_names
from anon.criteria.dissimilarity import Dissimilarity
from anon.criteria.earlier import EarlierGroups
from anon.criteria.k_anonymity import KAnonymity
from anon.criteria.protocol import (
    CLOSE,
    SAFE,
    UNSAFE,
    Criterion,
    Finding,
    Groups,
    Ints,
    Signatures,
    State,
    Verdict,
    exact,
)
from anon.criteria.pruning import prunes
from anon.criteria.r_robustness import RRobustness
from anon.criteria.skyline import Point, Skyline, Slot

__all__ = [
    "CLOSE",
    "SAFE",
    "UNSAFE",
    "Criterion",
    "Dissimilarity",
    "EarlierGroups",
    "Finding",
    "Groups",
    "Ints",
    "KAnonymity",
    "Point",
    "RRobustness",
    "Signatures",
    "Skyline",
    "Slot",
    "State",
    "Values",
    "Verdict",
    "bind",
    "check_names",
    "exact",
    "prunes",
]
