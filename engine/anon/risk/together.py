"""What somebody learns who holds several releases of the same people, knows everybody's quasi-identifiers, and knows
who is in which release.

A world gives every individual one sensitive value so that each group of each release has the values that were
published of it; all worlds are equally likely, and the belief in a value of somebody is the share of the worlds that
give it to them. Individuals in the same group of every release form a *cell*; groups that share individuals form a
*component*. Only components with somebody in two releases are looked at: in the others nothing is added.

Small components are counted exactly (`shared_worlds`). In the others

- a value is *possible* for a cell unless bounds on how many of its n members have the value rule it out. With
  low <= x(cell, v) <= high, what the other cells of a group can take at most leaves the rest to this one, and what
  they take at least cannot be here (Frechet bounds, repeated over groups and cells until nothing changes). They hold
  in every world, so that the belief lies between low/n and high/n, and the largest belief about somebody with p
  possible values is at least 1/p;
- the belief is estimated by the product of the shares of the value in the groups of the cell, divided by the sum of
  these products: exact if the individual is the only one whom the groups share, because then the numbers of worlds
  multiply; and moved into its bounds.

Everything but small components is SQL, which spills.

Of large releases a sample can be looked at (`shared_sample`). Then some groups are *whole*: all of their people are
known. Of the other groups of these people only a part is, which can bound from above how many of others have a value,
but not from below. Figures are those of the cells in whole groups of the first release, the *watched* ones. Fewer
bounds are known than of all people, and those that are known hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from anon.config.criterion import Confidence
from anon.core.database import Database
from anon.risk.shared_worlds import MOST_STEPS, Cell, TooManyWorlds, beliefs

PEOPLE, VALUES = "held_people", "held_values"  # (who, release, g) and (release, g, v, c), which the caller makes
CELLS, NODES = "shared_cells", "shared_nodes"
ENTRIES, PUBLISHED, COUNTED, LIMITS = "shared_entries", "shared_published", "shared_counted", "shared_limits"
GROUPS = 2**40  # numbers of groups of one release
MOST_PEOPLE = 48  # of a component that is counted exactly
ALL_STEPS = 40 * MOST_STEPS  # of all components
ROUNDS, SPREADS = 10, 50  # at most, of the bounds, and of the search for components
NEAR = 1e-9


@dataclass(frozen=True)
class BeliefBounds:
    """The bounds of values that have any, and the number of values that must stay possible for everybody."""

    by_value: Mapping[str, Confidence]
    fewest: int = 1


@dataclass(frozen=True)
class Together:
    """What several releases reveal together. `individuals`: those in at least two of them; of these, how many are left
    with one possible value and with two. `largest_belief` is the largest about anybody in a component; it lies between
    `at_least` and `at_most`. `over`: individuals about whom a belief passes its bound, or for whom too few values are
    possible; of these, `certainly_over` by the bounds alone, without an estimate; `possibly_over`: those about whom the
    bounds allow a belief that passes its bound, and those that are over. `contradictory`: those in groups that no world
    fits, because values were changed. `not_compared`: rows that nothing tells apart from others."""

    individuals: int = 0
    one_value: int = 0
    two_values: int = 0
    largest_belief: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    over: int = 0
    certainly_over: int = 0
    contradictory: int = 0
    exact: bool = True
    possibly_over: int = 0
    not_compared: int = 0

    def __add__(self, other: Together) -> Together:
        def largest(name: str) -> float | None:
            return max((x for x in (getattr(self, name), getattr(other, name)) if x is not None), default=None)

        return Together(
            self.individuals,
            self.one_value + other.one_value,
            self.two_values + other.two_values,
            largest("largest_belief"),
            largest("at_least"),
            largest("at_most"),
            self.over + other.over,
            self.certainly_over + other.certainly_over,
            self.contradictory + other.contradictory,
            self.exact and other.exact,
            self.possibly_over + other.possibly_over,
        )

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def link(database: Database, releases: int, whole: str = "") -> int:
    """Make the tables of cells and of the groups in components from PEOPLE; return the number of individuals in at
    least two releases, of those who are watched. `whole`: the table of the whole groups of a sample. Everybody is in a
    release once."""
    own = ", ".join(f"max(g) FILTER (release = {at}) AS g{at}" for at in range(releases))
    names = [f"g{at}" for at in range(releases)]
    several = " + ".join(f"({name} IS NOT NULL)::INTEGER" for name in names)
    nodes = ", ".join(f"g{at} + {at * GROUPS}" for at in range(releases))
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {CELLS} AS "
        f"SELECT row_number() OVER () AS cell, count(*) AS n, {several} AS releases, "
        f"list_filter([{nodes}], lambda node: node IS NOT NULL) AS nodes "
        f"FROM (SELECT {own} FROM {PEOPLE} GROUP BY who) GROUP BY {', '.join(names)}"
    )
    linked = f"SELECT unnest(nodes) AS node FROM {CELLS} WHERE releases > 1"
    every = f"SELECT cell, n, releases, unnest(nodes) AS node FROM {CELLS}"
    marked = "SELECT *, true AS whole, true AS watched FROM linked_nodes"
    if whole:
        marked = (
            f"SELECT *, bool_or(whole AND node < {GROUPS}) OVER (PARTITION BY cell) AS watched "
            f"FROM (SELECT *, node IN (SELECT node FROM {whole}) AS whole FROM linked_nodes)"
        )
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {NODES} AS WITH linked_nodes AS "
        f"(SELECT * FROM ({every}) SEMI JOIN ({linked}) USING (node)) {marked}"
    )
    both = f"SELECT DISTINCT cell, n FROM {NODES} WHERE releases > 1 AND watched"
    return int(database.one(f"SELECT coalesce(sum(n), 0) FROM ({both})")[0])


def learned(database: Database, individuals: int, bounds: BeliefBounds) -> Together:
    """Return what the releases that were linked reveal together, of the sensitive column in VALUES."""
    found = Together(individuals)
    if not individuals:
        return found
    published = f"SELECT release * {GROUPS} + g AS node, v, c FROM {VALUES}"
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {PUBLISHED} AS SELECT * FROM ({published}) SEMI JOIN {NODES} USING (node)"
    )
    _register_limits(database, bounds)
    small, counted = _small_components(database), []
    left = ALL_STEPS
    for component in _listed(database, small):
        facts, steps = _exact(component, bounds, min(left, MOST_STEPS))
        left -= steps
        if facts is not None:
            found += facts
            counted += [cell for cell, *_ in component.cells]
    database.register(COUNTED, pa.table({"cell": pa.array(counted, pa.int64())}))
    return found + _bounded(database, bounds)


def _register_limits(database: Database, bounds: BeliefBounds) -> None:
    columns = {
        "v": pa.array(list(bounds.by_value), pa.string()),
        "most": pa.array([float(bound.share) for bound in bounds.by_value.values()], pa.float64()),
        "excluded": pa.array([bound.open for bound in bounds.by_value.values()], pa.bool_()),
    }
    database.register(LIMITS, pa.table(columns))


def _small_components(database: Database) -> str:
    """Make a table of (node, label) and return SQL for the nodes of complete components of at most MOST_PEOPLE. The
    smallest label of its neighbours spreads to a node; too many people with one label get the label -1. Components
    through which the labels have not spread to the end have cells with different ones, and are not complete; nor are
    those with a group that is not whole, which has the label -1 from the beginning. Without anybody who is watched,
    they are left out."""
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE shared_labels AS SELECT node, if(any_value(whole), node, -1) AS label, "
        f"CAST(sum(n) AS BIGINT) AS people FROM {NODES} GROUP BY node"
    )
    releases = database.one(f"SELECT max(releases) FROM {CELLS}")[0]
    for _ in range(SPREADS):
        of_cells = f"SELECT cell, min(label) AS label FROM {NODES} JOIN shared_labels USING (node) GROUP BY cell"
        spread = f"SELECT node, min(c.label) AS label FROM {NODES} JOIN ({of_cells}) AS c USING (cell) GROUP BY node"
        sizes = "sum(people) OVER (PARTITION BY s.label)"
        # a cell counts once for each of its groups: at most as often as there are releases
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE shared_spread AS SELECT node, people, l.label AS earlier, "
            f"CASE WHEN {sizes} > {releases * MOST_PEOPLE} THEN -1 ELSE s.label END AS label "
            f"FROM shared_labels AS l JOIN ({spread}) AS s USING (node)"
        )
        database.execute("CREATE OR REPLACE TEMP TABLE shared_labels AS SELECT node, label, people FROM shared_spread")
        if not database.one("SELECT count(*) FROM shared_spread WHERE label <> earlier")[0]:
            break
    cells = f"SELECT cell, n, watched, label FROM {NODES} JOIN shared_labels USING (node)"
    whole = (
        f"SELECT cell, any_value(n) AS n, any_value(watched) AS watched, min(label) AS label, max(label) AS other "
        f"FROM ({cells}) GROUP BY cell"
    )
    torn = f"SELECT unnest([label, other]) AS label FROM ({whole}) WHERE label <> other"
    return (
        f"SELECT label FROM ({whole}) WHERE label = other AND label >= 0 GROUP BY label "
        f"HAVING sum(n) <= {MOST_PEOPLE} AND bool_or(watched) AND label NOT IN ({torn})"
    )


@dataclass(frozen=True)
class _Component:
    cells: list[tuple[int, int, int, bool, tuple[int, ...]]]  # number, people, releases, watched, groups
    published: dict[int, dict[str, int]]


def _listed(database: Database, labels: str) -> Iterator[_Component]:
    """Yield the components with some labels, in their order."""
    of_node = f"SELECT node, label FROM shared_labels SEMI JOIN ({labels}) USING (label)"
    cells = (
        f"SELECT label, list((cell, n, releases, watched, nodes) ORDER BY nodes) AS cells "
        f"FROM (SELECT cell, any_value(label) AS label, any_value(n) AS n, any_value(releases) AS releases, "
        f"any_value(watched) AS watched, list(node ORDER BY node) AS nodes "
        f"FROM {NODES} JOIN ({of_node}) USING (node) GROUP BY cell) GROUP BY label"
    )
    values = (
        f"SELECT label, list((node, v, c) ORDER BY node, v) AS published FROM {PUBLISHED} JOIN ({of_node}) "
        "USING (node) GROUP BY label"
    )
    query = f"SELECT cells, published FROM ({cells}) JOIN ({values}) USING (label) ORDER BY label"
    for batch in database.query(query).to_arrow_reader(1_024):
        for cells_of, values_of in zip(*(column.to_pylist() for column in batch.columns)):
            published: dict[int, dict[str, int]] = {}
            for node, value, count in (tuple(each.values()) for each in values_of):
                published.setdefault(node, {})[value] = count
            rows = [tuple(each.values()) for each in cells_of]
            yield _Component([(*own, tuple(nodes)) for *own, nodes in rows], published)


def _exact(component: _Component, bounds: BeliefBounds, most: int) -> tuple[Together | None, int]:
    """Return what a component reveals, None if that takes too many steps, and the steps that it took."""
    try:
        found = beliefs([Cell(n, nodes) for _, n, *_, nodes in component.cells], component.published, most)
    except TooManyWorlds:
        return None, most
    if not found.cells:
        people = sum(n for _, n, _, watched, _ in component.cells if watched)
        return Together(contradictory=people), found.steps
    facts = Together()
    for (_, n, several, watched, _), own in zip(component.cells, found.cells):
        if not watched:
            continue
        largest = float(max(own.values()))
        passed = any(_passes(belief, bounds.by_value.get(value)) for value, belief in own.items())
        over = n * (passed or len(own) < bounds.fewest)
        facts += Together(
            one_value=n * (several > 1 and len(own) == 1),
            two_values=n * (several > 1 and len(own) == 2),
            largest_belief=largest,
            at_least=largest,
            at_most=largest,
            over=over,
            certainly_over=over,
            possibly_over=over,
        )
    return facts, found.steps


def _passes(belief: Fraction, limit: Confidence | None) -> bool:
    return limit is not None and (belief > limit.share or (limit.open and belief == limit.share))


def _bounded(database: Database, bounds: BeliefBounds) -> Together:
    """Return what the components that were not counted reveal, by bounds and products."""
    _make_entries(database)
    for _ in range(ROUNDS):
        if not _tightened(database):
            break
    weights = (
        f"SELECT cell, v, any_value(n) AS n, any_value(releases) AS releases, any_value(low) / any_value(n) AS low, "
        f"any_value(high) / any_value(n) AS high, product(c) AS weight FROM {ENTRIES} JOIN {NODES} USING (cell) "
        f"JOIN {PUBLISHED} USING (node, v) WHERE watched GROUP BY cell, v"
    )
    shares = f"SELECT *, weight / sum(weight) OVER (PARTITION BY cell) AS share FROM ({weights})"
    believed = f"SELECT *, least(greatest(share, low), high) AS belief FROM ({shares})"
    passed, surely, possibly = (
        f"coalesce(bool_or((excluded AND {own} >= most - {NEAR}) OR (NOT excluded AND {own} > most + {NEAR})), false)"
        for own in ("belief", "low", "high")
    )
    # somebody with p possible values, all with bounds, is believed to have one of them with 1/p at least
    surely = f"{surely} OR 1 / count(*) > max(coalesce(most, 1)) + {NEAR}"
    by_cell = (
        f"SELECT cell, any_value(n) AS n, any_value(releases) AS releases, count(*) AS possible, "
        f"max(belief) AS belief, greatest(max(low), 1 / count(*)) AS low, max(high) AS high, "
        f"{passed} AS passed, {surely} AS surely, {possibly} AS possibly "
        f"FROM ({believed}) LEFT JOIN {LIMITS} USING (v) GROUP BY cell"
    )
    row = database.one(
        f"SELECT coalesce(sum(n) FILTER (releases > 1 AND possible = 1), 0)::BIGINT, "
        f"coalesce(sum(n) FILTER (releases > 1 AND possible = 2), 0)::BIGINT, max(belief), max(low), max(high), "
        f"coalesce(sum(n) FILTER (passed OR surely OR possible < {bounds.fewest}), 0)::BIGINT, "
        f"coalesce(sum(n) FILTER (surely OR possible < {bounds.fewest}), 0)::BIGINT, "
        f"coalesce(sum(n), 0)::BIGINT, "
        f"coalesce(sum(n) FILTER (possibly OR passed OR surely OR possible < {bounds.fewest}), 0)::BIGINT "
        f"FROM ({by_cell})"
    )
    every = f"SELECT DISTINCT cell, n FROM {NODES} ANTI JOIN {COUNTED} USING (cell) WHERE watched"
    people = int(database.one(f"SELECT coalesce(sum(n), 0) FROM ({every})")[0])
    belief, low, high = (None if value is None else min(float(value), 1.0) for value in row[2:5])
    return Together(0, row[0], row[1], belief, low, high, row[5], row[6], people - row[7], not people, row[8])


def _make_entries(database: Database) -> None:
    """Make the table of the values that are possible for each cell by the groups alone, with their first bounds."""
    open_nodes = f"SELECT * FROM {NODES} ANTI JOIN {COUNTED} USING (cell)"
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {ENTRIES} AS SELECT cell, v, 0::BIGINT AS low, "
        f"least(any_value(n), min(c))::BIGINT AS high FROM ({open_nodes}) JOIN {PUBLISHED} USING (node) "
        "GROUP BY cell, v HAVING count(*) = any_value(releases)"
    )


def _tightened(database: Database) -> bool:
    """Tighten the bounds once; return whether any changed."""
    by_node = f"SELECT node, v, sum(low) AS lows, sum(high) AS highs FROM {ENTRIES} JOIN {NODES} USING (cell)"
    by_node += " GROUP BY node, v"
    by_cell = f"SELECT cell, sum(low) AS own_lows, sum(high) AS own_highs FROM {ENTRIES} GROUP BY cell"
    high = "least(any_value(high), any_value(n - (own_lows - low)), min(c - (lows - low)))::BIGINT"
    low = "greatest(any_value(low), any_value(n - (own_highs - high)), max(c - (highs - high)) FILTER (whole))::BIGINT"
    joined = (
        f"{ENTRIES} AS e JOIN {NODES} USING (cell) JOIN {PUBLISHED} USING (node, v) "
        f"JOIN ({by_node}) USING (node, v) JOIN ({by_cell}) USING (cell)"
    )
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE shared_tighter AS SELECT cell, v, {low} AS low, {high} AS high, "
        f"any_value(low) AS earlier_low, any_value(high) AS earlier_high FROM {joined} GROUP BY cell, v"
    )
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {ENTRIES} AS SELECT cell, v, least(low, high) AS low, high FROM shared_tighter "
        "WHERE high > 0"
    )
    changed = "low <> earlier_low OR high <> earlier_high"
    return bool(database.one(f"SELECT count(*) FROM shared_tighter WHERE {changed}")[0])
