"""Describe the adversary behind a breach probability of the skyline criterion: the group of the target, what is known
about it, about others and about a family, and the resulting confidence. `skylines` finds the adversary among the groups
of a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anon.core.phrases import percent
from anon.risk.fronts import Histogram

NAMED = 4  # values that a sentence lists
Name = Callable[[int], str]


@dataclass(frozen=True)
class Witness:
    """Knowledge (l, k, m), at most, about people of one or two groups, and the probability that it gives.

    `ruled_out` are values that the target does not have; if people have several values, values that imply the value in
    question for it. The values of the `known` people are known if people have one each; otherwise it is known that they
    do not have the value in question. If anybody of the `family` has it, so does the target.
    """

    value: int
    multiplicity: str
    probability: float
    target: int  # its group
    ruled_out: tuple[int, ...]
    known_group: int
    known: int
    known_values: tuple[tuple[int, int], ...]  # values, and the number of known people who have each
    family_group: int
    family: int

    @classmethod
    def from_histograms(
        cls,
        case: int,
        target: Histogram,
        family: Histogram,
        knowledge: tuple[int, int, int],
        about: tuple[int, str, float],
    ) -> Witness:
        """Return the adversary behind one of the three ratios of Theorem 2: everybody in the target's group (0), the
        known people with the family (1), or with the target (2). The numbers of people are limited to those that
        exist."""
        (l, k, m), (value, multiplicity, probability) = knowledge, about
        others = target.others(value)
        ruled_out, rest = others[:l], others[l:]
        where = family if case == 1 else target
        available = where.others(value) if case == 1 else rest
        if multiplicity == "single":
            known_values = _first(available, k)
            known = sum(people for _, people in known_values)
        else:
            have = where.counts[value]
            known, known_values = min(k, where.n - (have if multiplicity == "set" else 1)), ()
        taken = {0: known + 1, 1: known, 2: 0}[case]
        return cls(
            value, multiplicity, probability, target.group, tuple(v for v, _ in ruled_out), where.group, known,
            known_values, family.group, min(m, family.n - taken),
        )  # fmt: skip

    def to_dict(self, name: Name) -> dict[str, Any]:
        """Return the JSON; `name` gives the name that a sensitive value may be shown by."""
        single = self.multiplicity == "single"
        about = "does_not_have" if single else "implied_by"
        values = [{"value": name(value), "people": people} for value, people in self.known_values]
        known: dict[str, Any] = {"group": self.known_group, "people": self.known}
        known |= {"values": values} if single else {"does_not_have": name(self.value)}
        return {
            "target": {"group": self.target, about: [name(value) for value in self.ruled_out]},
            "known": known if self.known else None,
            "family": {"group": self.family_group, "people": self.family} if self.family else None,
            "sentence": self.sentence(name),
        }

    def sentence(self, name: Name) -> str:
        value = name(self.value)
        clauses = [*self._about_target(name), *self._about_others(name), *self._about_family(value)]
        learns = f"learns {_listed(clauses)}" if clauses else "knows nothing more than the release"
        return (
            f"An adversary who {learns} is {percent(self.probability)} sure that a person in group {self.target} "
            f"has {value}."
        )

    def _about_target(self, name: Name) -> list[str]:
        count = len(self.ruled_out)
        if not count:
            return []
        values = f"{count:,} {'value' if count == 1 else 'values'} ({_few([name(v) for v in self.ruled_out])})"
        if self.multiplicity == "single":
            return [f"{values} that the person does not have"]
        each = "which implies" if count == 1 else "each of which implies"
        return [f"{values} {each} {name(self.value)} for the person"]

    def _about_others(self, name: Name) -> list[str]:
        if not self.known:
            return []
        people = f"{self.known:,} {'other person' if self.known == 1 else 'other people'} in group {self.known_group}"
        if self.multiplicity != "single":
            return [f"that {people} {'does' if self.known == 1 else 'do'} not have {name(self.value)}"]
        held = _few([f"{count:,} with {name(value)}" for value, count in self.known_values])
        return [f"the {'value' if self.known == 1 else 'values'} of {people} ({held})"]

    def _about_family(self, value: str) -> list[str]:
        if not self.family:
            return []
        people = f"{self.family:,} {'relative' if self.family == 1 else 'relatives'} in group {self.family_group}"
        any_of = "" if self.family == 1 else "any of "
        return [f"that the person has {value} if {any_of}{people} has it"]


def _first(counts: list[tuple[int, int]], people: int) -> tuple[tuple[int, int], ...]:
    """Return the first `people` of those with some values, in their order, as values and numbers of people."""
    taken = []
    for value, count in counts:
        if people > 0:
            taken.append((value, min(count, people)))
            people -= count
    return tuple(taken)


def _few(words: list[str]) -> str:
    more = len(words) - NAMED
    return ", ".join([*words[:NAMED], f"{more:,} more"] if more > 0 else words)


def _listed(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
