"""The lattice search, one of the ways between cube and release (config -> source -> cube -> search -> release -> verify
-> report): every column at one level for the whole table. `search` finds all nodes of the lattice that are safe,
`choice` weighs the minimal ones, and the chosen one becomes the recoding."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from anon.criteria import Criterion, prunes
from anon.cube import Cube
from anon.errors import ConfigError, UnsafeError
from anon.levels import LevelRecoding, Levels, canonical_order
from anon.progress import Tell
from anon.search.lattice.choice import Choice, Utility, best
from anon.search.lattice.frequency import FrequencySet, FrequencySets, Node, SensitiveValues
from anon.search.lattice.judging import Judge, Mask, Rebound, needs_values, part
from anon.search.lattice.search import MANY, Search, minimal
from anon.search.means import Means
from anon.search.outcome import GroupCounts, Outcome

NODES = 2**22  # of the largest lattice that is searched
EXPLAINED = 2**20  # records; of more of them it is not told why the node below is not safe

__all__ = ["Choice", "Lattice"]


class Lattice:
    """One search over one cube. `suppress` is the largest share of individuals that may be left out."""

    def __init__(
        self,
        cube: Cube,
        criteria: list[Criterion],
        choose: str = "loss",
        suppress: Fraction = Fraction(0),
        released: Rebound | None = None,
        means: Means | None = None,
        tell: Tell = lambda **facts: None,
    ) -> None:
        self.cube, self.criteria, self.choose, self.suppress = cube, criteria, choose, suppress
        self.columns = [Levels(domain) for domain in cube.domains]
        means = means or Means()
        self.memory, self.threads, self.spill, self.tell = means.memory, means.threads, means.spill, tell
        self._refuse_large()
        self.values = SensitiveValues(cube)
        rebound = released or (lambda at, frequency: criteria[at])
        self.judge = Judge(cube, criteria, suppress, self.values, rebound)

    def _refuse_large(self) -> None:
        for column in self.columns:
            if not column.domain.single:
                path = f"columns.quasi_identifiers.{column.domain.column}"
                raise ConfigError.at(path, "more values than a column of the lattice may have", "intervals")
        nodes = prod(column.height + 1 for column in self.columns)
        if nodes > NODES:
            found = f"a lattice of {nodes:,} nodes"
            raise ConfigError.at("columns.quasi_identifiers", found, f"at most {NODES:,}; fewer columns or levels")

    def run(self) -> Outcome:
        """The minimal safe nodes, and the release by the chosen one."""
        safe = self._safe_nodes()
        nodes = minimal(safe)
        if not nodes:
            raise UnsafeError(self._none_safe())
        sets = self._sets(True)
        source, unique = sets.exactly()
        utility = Utility(self.columns, source, prod(other.size for other in self.cube.others[: self.cube.sensitive]))
        sets.collapse(tuple(np.min(nodes, axis=0).tolist()))

        def weighed(node: Node) -> Choice:
            return utility.of(*self._groups(sets, node))

        with ThreadPoolExecutor(self.threads if sets.first.entries >= MANY else 1) as pool:
            choices = list(pool.map(weighed, nodes))
        chosen = best(choices, self.choose)
        finer = self._finer(chosen.levels)
        outcome = self._outcome(*self._groups(sets, chosen.levels), chosen, choices, safe, unique)
        assert isinstance(outcome.recoding, LevelRecoding)
        outcome.recoding.facts["finer"] = finer
        return outcome

    def _finer(self, levels: Node) -> list[dict[str, Any]] | None:
        """The criteria, by their places, that refuse each node with one column a level lower; None where it would take
        long to find out."""
        sets = self._sets(any(map(needs_values, self.criteria)))
        if sets.first.entries > EXPLAINED:
            return None
        told = []
        for at, level in enumerate(levels):
            if level:
                node = (*levels[:at], level - 1, *levels[at + 1 :])
                found = sets.roll_up(sets.first, tuple(range(len(levels))), node)
                refused = [i for i in range(len(self.criteria)) if self.judge.keeps(found, [i]) is None]
                told.append({"column": self.columns[at].domain.column, "level": level - 1, "refused_by": refused})
        return told

    def _safe_nodes(self) -> Mask:
        sets = self._sets(any(map(needs_values, self.criteria)))
        pruning = [at for at, criterion in enumerate(self.criteria) if prunes(criterion, self.suppress)]
        search = Search(sets, self.judge, self.tell, self.threads)
        safe = search.pruned(pruning)
        return safe if len(pruning) == len(self.criteria) else search.checked(safe)

    def _sets(self, about_values: bool) -> FrequencySets:
        return FrequencySets(self.cube, self.columns, self.values if about_values else None, self.memory.search)

    def _groups(self, sets: FrequencySets, node: Node) -> tuple[FrequencySet, Mask]:
        """The groups of a safe node, and which of them are published."""
        found = sets.roll_up(sets.first, tuple(range(len(self.columns))), node)
        kept = self.judge.keeps(found, list(range(len(self.criteria))))
        assert kept is not None, "a node that was safe is safe"
        return found, kept

    def _none_safe(self) -> str:
        nodes = prod(column.height + 1 for column in self.columns)
        names = ", ".join(dict.fromkeys(criterion.name for criterion in self.criteria))
        few = f", also if up to {float(self.suppress):.4g} of the individuals are left out" if self.suppress else ""
        return f"no safe release was found: none of the {nodes:,} combinations of levels satisfies {names}{few}"

    def _outcome(
        self, found: FrequencySet, kept: Mask, chosen: Choice, choices: list[Choice], safe: Mask, unique: int
    ) -> Outcome:
        left, dropped = part(found, kept), found.cells[:, ~kept]
        order = canonical_order(self.columns, chosen.levels, left.cells)
        facts = {
            "choose": self.choose,
            "chosen": chosen.facts(self.columns),
            "minimal": [choice.facts(self.columns) for choice in choices],
        }
        recoding = LevelRecoding(
            self.columns, chosen.levels, left.cells[:, order], left.n[order], dropped, chosen.suppressed, facts, safe
        )
        counts = GroupCounts(self.cube.sensitive, self.spill)
        counts.rank = np.empty(len(order), np.int64)
        counts.rank[order] = np.arange(len(order))
        entries = np.ones(len(left.n), np.int64) if left.start is None else np.diff(left.start)
        group = np.repeat(np.arange(len(left.n)), entries)
        codes = self.values.codes[: self.cube.sensitive].T
        codes = codes[left.value] if len(left.value) else codes[np.zeros(len(group), np.int64)]
        counts.add(group, codes, left.count.astype(np.int64))
        self.cube.records.close()
        return Outcome(recoding, counts, unique)
