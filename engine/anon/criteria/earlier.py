"""Groups that are published already, beside which those of a new table must be safe: the earlier parts of a series.

A criterion that judges each group alone is satisfied by the union of two releases iff it is by each. One about all
groups together (skyline points with m > 0, (c,k)-safety) is a function of minima over all groups, and each minimum is
attained by one group. So of all earlier groups only those that attain a minimum are needed, at most one for each:
`attaining` selects them, and the state of these is the state of all. They are stored as histograms by the text of the
values, because codes differ from table to table. A value that no earlier group has leaves all minima at those of no
group, whichever of the groups are kept.

>>> earlier = EarlierGroups({"illness": [Histogram(4, {"flu": 3, "cold": 1}), Histogram(9, {"flu": 4, "cold": 5})]})
>>> earlier.histograms("illness", ["cold", "flu"]).count.tolist()
[1, 3, 5, 4]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anon.criteria.protocol import Criterion, Groups, State

if TYPE_CHECKING:
    from anon.criteria.bind import Values

Text = str | None  # of a sensitive value


class Histogram(NamedTuple):
    """A group: its individuals, and the count of each of its sensitive values."""

    n: int
    counts: dict[Text, int]


@dataclass(frozen=True)
class EarlierGroups:
    """Groups by the sensitive column that they are counted by."""

    groups: dict[str, list[Histogram]] = field(default_factory=dict)

    def widened(self, values: Values) -> Values:
        """Return the values of a table followed by those that only earlier groups have."""
        texts, frequency = dict(values.texts), dict(values.frequency)
        for column, groups in self.groups.items():
            there = set(texts[column])
            new = sorted({text for group in groups for text in group.counts} - there, key=lambda text: text or "")
            texts[column] = [*texts[column], *new]
            frequency[column] = [*frequency.get(column, []), *[0] * len(new)]
        return replace(values, texts=texts, frequency=frequency)

    def histograms(self, column: str, texts: list[Text]) -> Groups:
        """Return the groups in the codes of a table that has these values."""
        code = {text: at for at, text in enumerate(texts)}
        rows = [sorted((code[text], count) for text, count in group.counts.items()) for group in self.groups[column]]
        pairs = np.array([pair for row in rows for pair in row], np.int64).reshape(-1, 2)
        start = np.append(0, np.cumsum([len(row) for row in rows]))
        n = np.array([group.n for group in self.groups[column]], np.int64)
        return Groups(n, start, pairs[:, 0].copy(), pairs[:, 1].copy())

    def state(self, criterion: Criterion, texts: list[Text]) -> State | None:
        """Return the state of a criterion about all groups together; None of others, or without groups."""
        if criterion.alone or not self.groups.get(criterion.column or ""):
            return None
        return criterion.state(self.histograms(str(criterion.column), texts))

    def attaining(self, criteria: Iterable[tuple[Criterion, list[Text]]]) -> EarlierGroups:
        """Return the groups that attain a minimum of one of some criteria, each with the texts of its values."""
        needed: dict[str, set[int]] = {}
        for criterion, texts in criteria:
            state = self.state(criterion, texts)
            if state is not None:
                needed.setdefault(str(criterion.column), set()).update(state.witness[:, -1].tolist())
        return EarlierGroups(
            {column: [self.groups[column][at] for at in sorted(ids)] for column, ids in needed.items()}
        )

    def union(self, other: EarlierGroups) -> EarlierGroups:
        """Return the groups of both."""
        columns = [*self.groups, *(column for column in other.groups if column not in self.groups)]
        return EarlierGroups({name: [*self.groups.get(name, []), *other.groups.get(name, [])] for name in columns})

    def to_json(self) -> dict[str, list[list[Any]]]:
        """Return the groups as JSON; null is a value like others, so counts are pairs."""
        return {
            name: [[g.n, [list(pair) for pair in g.counts.items()]] for g in own] for name, own in self.groups.items()
        }

    @classmethod
    def from_json(cls, content: dict[str, list[list[Any]]]) -> EarlierGroups:
        """Return the groups that `to_json` wrote."""
        return cls({name: [Histogram(n, dict(pairs)) for n, pairs in own] for name, own in content.items()})
