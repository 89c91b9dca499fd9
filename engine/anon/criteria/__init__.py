"""Privacy criteria, one file per principle: definition, citation, worked example, monotonicity, mergeable state."""

from anon.criteria.bind import CATEGORICAL, Values, always_holds, bind, check_names, named_values, protects, vacuous
from anon.criteria.dissimilarity import Dissimilarity
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
from anon.criteria.r_robustness import RRobustness
from anon.criteria.skyline import Point, Skyline, Slot
from anon.criteria.suppression import prunes

__all__ = [
    "CATEGORICAL",
    "CLOSE",
    "SAFE",
    "UNSAFE",
    "Criterion",
    "Dissimilarity",
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
    "always_holds",
    "bind",
    "check_names",
    "exact",
    "named_values",
    "protects",
    "prunes",
    "vacuous",
]
