"""The lattice search: every column at one level for the whole table. `incognito` finds all safe nodes of the lattice,
or `best_first` some minimal ones with the best among them; `choice` measures the minimal ones, and the chosen one
becomes the recoding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from anon.core import interrupt
from anon.core.arrays import Codes, Flags, Ints
from anon.core.progress import ProgressCallback
from anon.criteria import Criterion, prunes
from anon.cube import Cube
from anon.errors import ConfigError, UnsafeError
from anon.recoding.levels import ColumnLevels, LevelRecoding, canonical_order
from anon.recoding.outcome import GroupCounts, Outcome
from anon.search.budget import SearchBudget
from anon.search.lattice.best_first import BestFirst
from anon.search.lattice.choice import Choice, UtilityMeasure, best
from anon.search.lattice.counting import CellPart
from anon.search.lattice.frequency import FrequencySet, FrequencySets, Node, SensitiveValues
from anon.search.lattice.incognito import LatticeWalk, at_once, minimal
from anon.search.lattice.judging import Judge, Rebound, needs_values
from anon.search.lattice.spill import SpillDatabase

GIVEN = "given"  # in place of a metric: the levels are those of the config
NODES = 2**22  # of the largest lattice that is searched
EXPLAINED = 2**20  # distinct rows; with more of them the report does not explain why finer nodes are not safe
MOST = 2**32 - 1  # people, or occurrences of their values, that a counter can count


def size(columns: list[ColumnLevels]) -> int:
    """Return the number of nodes of the lattice; raise ConfigError if it cannot be searched."""
    for column in columns:
        if not column.domain.single:
            path = f"columns.quasi_identifiers.{column.domain.column}"
            raise ConfigError.at(path, "more values than a column of the lattice may have", "intervals")
    nodes = prod(column.height + 1 for column in columns)
    if nodes > NODES:
        found = f"a lattice of {nodes:,} nodes"
        raise ConfigError.at("columns.quasi_identifiers", found, f"at most {NODES:,}; fewer columns or levels")
    return nodes


class LatticeSearch:
    """A search over one cube. `suppress` is the largest share of individuals that may be suppressed; with `every` all
    minimal nodes are found, otherwise only as many as it takes to find the best."""

    def __init__(
        self,
        cube: Cube,
        criteria: list[Criterion],
        choose: str = "loss",
        suppress: Fraction = Fraction(0),
        released: Rebound | None = None,
        budget: SearchBudget | None = None,
        on_progress: ProgressCallback = lambda **facts: None,
        every: bool = True,
    ) -> None:
        self.cube, self.criteria, self.choose, self.suppress, self.every = cube, criteria, choose, suppress, every
        self.columns = [ColumnLevels(domain) for domain in cube.domains]
        self.budget, self.on_progress = budget or SearchBudget(), on_progress
        size(self.columns)
        self._check_counters()
        self.values = self._sensitive_values()
        rebound = released or (lambda at, frequency: criteria[at])
        self.judge = Judge(cube, criteria, suppress, self.values, rebound)

    def _check_counters(self) -> None:
        largest = max(self.cube.individuals, *(int(total.sum()) for total in self.cube.totals))
        if largest > MOST:
            raise ConfigError.at("method.kind", f"lattice with {largest:,} rows", f"at most {MOST:,}, or partition")

    def _sensitive_values(self) -> SensitiveValues:
        return SensitiveValues(self.cube)

    def run(self) -> Outcome:
        """Return the release of the chosen minimal safe node."""
        with self._spill() as spill:
            safe = self._safe_nodes(spill) if self.every else None
            nodes = self._best_nodes(spill) if safe is None else minimal(safe)
            if not nodes:
                raise UnsafeError(self._none_safe())
            return self._released(nodes, safe, spill)

    def run_at(self, levels: Node) -> Outcome:
        """Return the release at given levels, without a search."""
        with self._spill() as spill:
            with closing(self._groups(self._sets(self._about_values, spill), levels)) as found:
                if not self.judge.safe(found, list(range(len(self.criteria)))):
                    raise UnsafeError("no group is large enough at the levels of the config; nothing was published")
            return self._released([levels], None, spill)

    def _released(self, nodes: list[Node], safe: Flags | None, spill: SpillDatabase | None) -> Outcome:
        """Return the release of the best of some safe nodes."""
        sets = self._sets(True, spill)
        facts = sets.table_facts()
        values = prod(other.size for other in self.cube.others[: self.cube.sensitive])
        utility = UtilityMeasure(self.columns, self.judge, facts.log_sum, values)
        sets.collapse(tuple(np.min(nodes, axis=0).tolist()))
        choices = self._measured(sets, utility, nodes)
        searched = self.choose != GIVEN
        chosen = best(choices, self.choose) if searched else choices[0]
        finer = self._finer(chosen.levels, spill) if searched and facts.tuples <= EXPLAINED else None
        outcome = self._outcome(self._groups(sets, chosen.levels), chosen, choices, safe, facts.unique)
        assert isinstance(outcome.recoding, LevelRecoding)
        outcome.recoding.facts["finer"] = finer
        return outcome

    def _finer(self, levels: Node, spill: SpillDatabase | None) -> list[dict[str, Any]]:
        """Return the criteria, by their positions, that refuse each node with one column a level lower."""
        sets, finer = self._sets(self._about_values, spill), []
        for at, level in enumerate(levels):
            if level:
                node = (*levels[:at], level - 1, *levels[at + 1 :])
                found = sets.roll_up(sets.first, tuple(range(len(levels))), node)
                refused = [i for i in range(len(self.criteria)) if not self.judge.safe(found, [i])]
                found.close()
                finer.append({"column": self.columns[at].domain.column, "level": level - 1, "refused_by": refused})
        return finer

    @contextmanager
    def _spill(self) -> Iterator[SpillDatabase | None]:
        """Yield the database for frequency sets that do not fit in memory, if there is a folder for it."""
        if self.budget.spill is None:
            yield None
            return
        spill = SpillDatabase(self.budget.spill, self.budget.memory.database // 4, self.budget.threads)
        try:
            yield spill
        finally:
            spill.close()

    def _safe_nodes(self, spill: SpillDatabase | None) -> Flags:
        search, pruning = self._walk(spill), self._pruning
        safe = search.pruned(pruning)
        return safe if len(pruning) == len(self.criteria) else search.checked(safe)

    def _best_nodes(self, spill: SpillDatabase | None) -> list[Node]:
        return BestFirst(self._walk(spill), self.choose, self._pruning).found()

    @property
    def _pruning(self) -> list[int]:
        """Return the positions of the criteria that prune."""
        return [at for at, criterion in enumerate(self.criteria) if prunes(criterion, self.suppress)]

    @property
    def _about_values(self) -> bool:
        return any(map(needs_values, self.criteria))

    def _walk(self, spill: SpillDatabase | None) -> LatticeWalk:
        sets = self._sets(self._about_values, spill)
        return LatticeWalk(sets, self.judge, self.on_progress)

    def _sets(self, about_values: bool, spill: SpillDatabase | None) -> FrequencySets:
        values, budget = self.values if about_values else None, self.budget
        return FrequencySets(self.cube, self.columns, values, budget.memory.database, budget.threads, spill)

    def _measured(self, sets: FrequencySets, utility: UtilityMeasure, nodes: list[Node]) -> list[Choice]:
        def measured(node: Node) -> Choice:
            interrupt.check()
            with closing(self._groups(sets, node)) as found:
                return utility.measure(found)

        return at_once(sets.at_once, measured, nodes)

    def _groups(self, sets: FrequencySets, node: Node) -> FrequencySet:
        return sets.roll_up(sets.first, tuple(range(len(self.columns))), node)

    def _none_safe(self) -> str:
        nodes = prod(column.height + 1 for column in self.columns)
        names = ", ".join(dict.fromkeys(criterion.name for criterion in self.criteria))
        few = f", also if up to {float(self.suppress):.4g} of the individuals are left out" if self.suppress else ""
        capped = ", ".join(domain.column for domain in self.cube.domains if domain.capped)
        within = f" within at_most of {capped}" if capped else ""
        return f"no safe release was found: none of the {nodes:,} combinations of levels{within} satisfies {names}{few}"

    def _outcome(
        self, found: FrequencySet, chosen: Choice, choices: list[Choice], safe: Flags | None, unique: int
    ) -> Outcome:
        counts, cells, people, dropped = GroupCounts(self.cube.sensitive, self.budget.spill), [], [], []
        groups = 0
        for part in found.parts():
            kept = self.judge.kept(part, range(len(self.criteria)))
            published = part.where(kept)
            dropped.append(part.cells[:, ~kept])
            cells.append(published.cells)
            people.append(published.n)
            self._add_counts(counts, published, groups)
            groups += len(published.n)
        found.close()
        self._close_records()
        recoding, counts.rank = self._recoding(chosen, choices, safe, cells, np.concatenate(people), dropped)
        return Outcome(recoding, counts, unique)

    def _close_records(self) -> None:
        """Free the records: the counts of the groups contain everything that is still needed of them."""
        self.cube.records.close()

    def _add_counts(self, counts: GroupCounts, part: CellPart, first: int) -> None:
        """Add the entries of published groups, numbered from `first` on, to the counts."""
        start, value, count = part.histograms()
        group = np.repeat(np.arange(first, first + len(part.n)), np.diff(start))
        codes = self.values.codes[: self.cube.sensitive].T[value]
        counts.add(group, codes, count.astype(np.int64))

    def _recoding(
        self,
        chosen: Choice,
        choices: list[Choice],
        safe: Flags | None,
        cells: list[Codes],
        people: Ints,
        dropped: list[Codes],
    ) -> tuple[LevelRecoding, Ints]:
        """Return the recoding, and the number of each group in canonical order."""
        published = np.concatenate(cells, axis=1)
        order = canonical_order(self.columns, chosen.levels, published)
        facts = {
            "choose": self.choose,
            "chosen": chosen.facts(self.columns),
            "minimal": [choice.facts(self.columns) for choice in choices],
            **({} if self.every else {"all_minimal": False}),
        }
        suppressed = np.concatenate(dropped, axis=1)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return LevelRecoding(
            self.columns, chosen.levels, published[:, order], people[order], suppressed, chosen.suppressed, facts, safe
        ), rank
