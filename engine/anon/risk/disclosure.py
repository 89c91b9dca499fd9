"""Compute disclosure curves (Martin, Kifer, Machanavajjhala, Gehrke, Halpern, ICDE 2007, Figure 5): the highest
confidence that 0, 1, ... pieces of knowledge can give, for implications and for negations, with the pieces that reach
it. Groups come as `verify.grouped` counts them; the arithmetic is that of criteria/ck_safety.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anon.core.phrases import percent
from anon.criteria.ck_safety import DisclosureCurves, Person
from anon.criteria.protocol import Groups
from anon.risk.fronts import Histogram, histogram
from anon.risk.witness import Name


@dataclass(frozen=True)
class Piece:
    """A piece of knowledge about one person: if the person has any of these values (codes), the target has the target's
    value; if the person is the target, it does not have them."""

    group: int
    target: bool
    values: tuple[int, ...]


@dataclass(frozen=True)
class WorstCase:
    """The knowledge that reaches a maximum: the value that the adversary infers for the target, and the pieces, the
    target's first."""

    probability: float
    value: int
    pieces: tuple[Piece, ...]

    def to_dict(self, name: Name) -> dict[str, Any]:
        return {
            "target": {"group": self.pieces[0].group, "value": name(self.value)},
            "atoms": [
                {"group": piece.group, "target": piece.target, "values": [name(value) for value in piece.values]}
                for piece in self.pieces
                if piece.values
            ],
            "sentence": self.sentence(name),
        }

    def sentence(self, name: Name) -> str:
        own, value = self.pieces[0], name(self.value)
        learns = []
        if own.values:
            learns.append(f"that the person does not have {' or '.join(name(code) for code in own.values)}")
        for piece, people in Counter(self.pieces[1:]).items():
            who = "another person" if people == 1 else f"any of {people:,} other people"
            premise = " or ".join(name(code) for code in piece.values)
            learns.append(f"that the person has {value} if {who} in group {piece.group} has {premise}")
        known = f"learns {' and '.join(learns)}" if learns else "knows nothing more than the release"
        return (
            f"An adversary who {known} is {percent(self.probability)} sure that a person in group {own.group} "
            f"has {value}."
        )


@dataclass(frozen=True)
class Curves:
    """Maxima for 0..K pieces and the knowledge that reaches each. When there are at least as many pieces as values,
    everything is known."""

    implications: list[float]
    negations: list[float]
    worst_implications: list[WorstCase]
    worst_negations: list[WorstCase]

    def to_dict(self, name: Name) -> dict[str, Any]:
        kinds = {"implications": self.worst_implications, "negations": self.worst_negations}
        return {
            "implications": self.implications,
            "negations": self.negations,
            "worst": {kind: [worst.to_dict(name) for worst in each] for kind, each in kinds.items()},
        }


class Maxima:
    """The maximum disclosure given 0..max_k pieces of knowledge, for the groups of a release, added batch by batch.
    `values` is the number of distinct values."""

    def __init__(self, max_k: int, values: int) -> None:
        self.max_k, self.needed = max_k, min(max_k, max(values - 1, 0))
        self.whole: DisclosureCurves | None = None
        self.kept: dict[int, Histogram] = {}

    def add(self, groups: Groups) -> None:
        part = DisclosureCurves.from_groups(groups, self.needed)
        whole = self.whole.merge(part) if self.whole else part
        places = set(whole.of_implications.witness[:, -1].tolist() + whole.of_negations.witness[:, 0].tolist())
        here = {place for place in places if groups.first <= place < groups.first + len(groups)} - self.kept.keys()
        kept = self.kept | {place: histogram(groups, place - groups.first) for place in here}
        self.whole, self.kept = whole, {place: kept[place] for place in places}

    def curves(self) -> Curves:
        whole, kept = self.whole, self.kept
        assert whole is not None, "a table has groups"
        most = [min(k, self.needed) for k in range(self.max_k + 1)]
        implications, negations = whole.implications(), whole.negations()
        return Curves(
            [implications[k] for k in most],
            [negations[k] for k in most],
            [_worst(implications[k], whole.implication_atoms(k), kept) for k in most],
            [_worst(negations[k], whole.negation_atoms(k), kept) for k in most],
        )


def curves(batches: Iterable[Groups], max_k: int, values: int) -> Curves:
    """Return the curves of the groups of a release, which is read once. `values` is the number of distinct values."""
    found = Maxima(max_k, values)
    for groups in batches:
        found.add(groups)
    return found.curves()


def _worst(probability: float, people: list[Person], kept: dict[int, Histogram]) -> WorstCase:
    """Return the worst case with values in place of their ranks in the groups; ranks that a group does not have are
    left out."""
    pieces = []
    for person in people:
        ranked = kept[person.group].ranked
        values = tuple(ranked[rank] for rank in person.ranks if rank < len(ranked))
        pieces.append(Piece(kept[person.group].group, person.target, values))
    return WorstCase(probability, kept[people[0].group].ranked[0], tuple(pieces))
