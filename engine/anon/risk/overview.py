"""The overview of attacks on a release: for each what the adversary is assumed to know, what the attack achieved, how
many individuals it affects, the confidence that the criteria of the config promise, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anon.config import Criterion
from anon.core.arrays import Flags, Floats
from anon.core.phrases import counted
from anon.criteria.protocol import NEAR


@dataclass(frozen=True)
class Attack:
    """The result of one attack. `individuals`: those affected, None if the attack was not carried out, for the reason
    in `found`; `largest`: the largest confidence that it gave; `bound`: the lowest that the criteria promise, if they
    promise one; `exact`: nothing was estimated, and no group left out."""

    name: str
    assumes: str
    found: str
    helps: str = ""
    individuals: int | None = None
    largest: float | None = None
    bound: float | None = None
    exact: bool = False
    breached: bool = False  # somebody's confidence is above what the criteria promise
    sensitive: str | None = None  # the column that the attack is about
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        own = ("name", "assumes", "individuals", "largest", "bound", "exact", "breached", "found", "helps")
        about = {} if self.sensitive is None else {"sensitive": self.sensitive}
        return {name: getattr(self, name) for name in own} | about | dict(self.details)


@dataclass(frozen=True)
class Promise:
    """The confidence in each value of a sensitive column that the criteria of a config allow at most, 1 where they
    allow any; `lowest` is None if they allow any in all values."""

    limit: Floats  # moved by the tolerance of comparisons
    lowest: float | None

    @classmethod
    def from_config(cls, privacy: Iterable[Criterion], column: str, texts: Sequence[str | None]) -> Promise:
        """Return the promise of the criteria about a column, given its values as text in code order."""
        limit, lowest = np.full(len(texts), np.inf), []
        for spec in privacy:
            for code, text in enumerate(texts) if spec.protects(column) else ():
                allowed = spec.confidence(text)
                if allowed is not None and allowed.share < 1:
                    near = 1 - NEAR if allowed.open else 1 + NEAR
                    limit[code] = min(limit[code], float(allowed.share) * near)
                    lowest.append(allowed.share)
        return cls(limit, float(min(lowest)) if lowest else None)

    def exceeded(self, belief: Floats, value: Any) -> Flags:
        """Return which beliefs, each in the value with a code, are above what is allowed."""
        above: Flags = belief > self.limit[value]
        return above


def sampled(examined: int, every: int) -> tuple[str, dict[str, int]]:
    """Return in words, and as facts, the number of groups that were examined, if these are not all."""
    if examined == every:
        return "", {}
    facts = {"groups_examined": examined, "groups": every}
    return f" in a sample of {examined:,} of {counted(every, 'group')}", facts
