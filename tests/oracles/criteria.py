"""Every criterion of the config grammar, as a config writes it, judged from its definition in exact arithmetic: whether
groups of people satisfy it, and the figure that `check` reports. Imports nothing of the engine; the definitions are
those of the other oracles. People are rows of a table, and a group is a tuple of their numbers; where individuals have
several values, the sensitive column of a row holds all of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from tests.oracles import ck_safety, delta_disclosure, l_diversity, proximity, robustness, skyline

Row = Mapping[str, Any]
Group = tuple[int, ...]
Groups = Sequence[Group]
Parameters = Mapping[str, Any]
Figure = Any  # Fraction, Decimal or inf; of k_e a mapping of two

ERRATIC = ("dissimilarity", "epsilon_m", "r_robustness")  # not monotone; nor is skyline with several values
SIZES = ("k_anonymity", "group_size")
LARGEST = (
    "frequency", "recursive", "dissimilarity", "t_closeness", "alpha_k", "epsilon_m", "delta_disclosure",
)  # figures, not smallest  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What a criterion says of some groups; of a skyline also the breach at each (value, l, k, m)."""

    safe: bool
    figure: Figure
    points: dict[tuple[Any, int, int, int], Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Prior:
    """What an adversary believes of people with the same attributes: the probability of each value. A prior that names
    only some values knows each of them against all others together."""

    attributes: tuple[str, ...]
    p: Mapping[tuple[Any, ...], Mapping[Any, Fraction]]


@dataclass(frozen=True)
class Table:
    """The people that groups are made of. `sensitive` are all sensitive columns; `kind`: single, set or multiset;
    `paths`: of each hierarchy and `matrices` of each matrix file what it says, `priors` those of r_robustness."""

    people: Sequence[Row]
    sensitive: Sequence[str]
    kind: str = "single"
    paths: Mapping[str, Mapping[Any, Sequence[Any]]] = field(default_factory=dict)
    matrices: Mapping[str, Mapping[Any, Mapping[Any, Fraction]]] = field(default_factory=dict)
    priors: Sequence[Prior] = ()

    @property
    def everyone(self) -> Group:
        return tuple(range(len(self.people)))

    def column(self, name: str, group: Group) -> list[Any]:
        return [self.people[person][name] for person in group]

    def named(self, column: str, names: Iterable[str]) -> list[Any]:
        """Return values by the texts that a config uses; a text that is no value of the table stays as it is."""
        held = self.column(column, self.everyone)
        if self.kind != "single":
            held = [value for own in held for value in own]
        known = {str(value): value for value in held if value is not None}
        return [known.get(name, name) for name in names]


def exact(number: Any) -> Fraction:
    """Return a number of the config exactly as it is written."""
    return Fraction(str(number))


def criterion(item: Mapping[str, Parameters], table: Table) -> Criterion:
    """Return one entry of `privacy` for the people of a table."""
    ((name, parameters),) = item.items()
    own = {"skyline": SkylineCriterion, "ck_safety": CKSafety}.get(name, OfGroups)
    return own(name, parameters, table)


def of_values(item: Mapping[str, Parameters], whole: list[Any]) -> Callable[[list[Any]], bool]:
    """Return a function that judges the values of one group by an entry of `privacy`, given those of the table."""
    ((name, parameters),) = item.items()
    measure = _measure(name, parameters, Table([{"s": value} for value in whole], ["s"]), whole)
    return lambda values: measure(values)[0]


@dataclass(frozen=True)
class Criterion:
    """A criterion over the people of one table."""

    name: str
    p: Parameters
    table: Table

    @property
    def column(self) -> str:
        return str(self.p.get("sensitive") or self.table.sensitive[0])

    @property
    def monotone(self) -> bool:
        """Return whether merging groups never breaks it."""
        return self.name not in ERRATIC and (self.name != "skyline" or self.table.kind == "single")

    @property
    def least(self) -> int:
        """Return the size that the definition itself requires of a group."""
        if self.name == "dissimilarity":
            return max(int(self.p["k"]), 2 if exact(self.p["delta"]) > 0 else 1)
        return int(self.p["m"]) if self.name == "epsilon_m" else 1

    def holds(self, groups: Groups, released: Group | None = None) -> bool:
        """Return whether groups satisfy it; `released` are all people of the release, the whole table by default."""
        return self.verdict(groups, released).safe

    def verdict(self, groups: Groups, released: Group | None = None) -> Verdict:
        raise NotImplementedError


class OfGroups(Criterion):
    """A criterion that holds for a release iff it holds for each group alone."""

    @cached_property
    def _known(self) -> dict[tuple[Group, Group], tuple[bool, Figure]]:
        return {}

    @cached_property
    def _measures(self) -> dict[Group, Callable[[list[Any]], tuple[bool, Figure]]]:
        return {}

    def holds(self, groups: Groups, released: Group | None = None) -> bool:
        return all(self._of(group, released)[0] for group in groups)

    def verdict(self, groups: Groups, released: Group | None = None) -> Verdict:
        found = [self._of(group, released) for group in groups]
        safe, figures = all(each for each, _ in found), [figure for _, figure in found]
        if self.name == "k_e":
            return Verdict(safe, {key: min(each[key] for each in figures) for key in ("distinct", "range")})
        kind = self.p["kind"] if self.name == "l_diversity" else self.name
        largest = kind in LARGEST or self.name == "r_robustness"
        return Verdict(safe, max(figures) if largest else min(figures))

    def _of(self, group: Group, released: Group | None) -> tuple[bool, Figure]:
        whole = self.table.everyone if released is None else released
        if (group, whole) not in self._known:
            self._known[group, whole] = self._judged(group, whole)
        return self._known[group, whole]

    def _judged(self, group: Group, whole: Group) -> tuple[bool, Figure]:
        if self.name in SIZES:
            return len(group) >= self.p["k"], len(group)
        if self.name == "r_robustness":
            return self._robust(group)
        if whole not in self._measures:
            self._measures[whole] = _measure(self.name, self.p, self.table, self._values(whole))
        found = [self._measures[whole](self._values(part)) for part in self._parts(group)]
        kind = self.p.get("kind")
        worst = max if (kind if self.name == "l_diversity" else self.name) in LARGEST else min
        return all(safe for safe, _ in found), found[0][1] if len(found) == 1 else worst(each for _, each in found)

    def _values(self, group: Group) -> list[Any]:
        if self._columns:
            return [tuple(self.table.people[person][name] for name in self._columns) for person in group]
        return self.table.column(self.column, group)

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        """Return the columns whose tuple is the sensitive value."""
        distance = self.p.get("distance", {})
        return tuple(distance["columns"]) if isinstance(distance, Mapping) and "columns" in distance else ()

    def _parts(self, group: Group) -> list[Group]:
        """Return the parts of a group by the other sensitive columns, which join the quasi-identifier (Def 4.6)."""
        others = [name for name in self.table.sensitive if name != self.column]
        if self.name != "l_diversity" or not self.p.get("joint", True) or not others:
            return [group]
        parts = defaultdict(list)
        for person in group:
            parts[tuple(self.table.people[person][name] for name in others)].append(person)
        return [tuple(part) for part in parts.values()]

    def _robust(self, group: Group) -> tuple[bool, Figure]:
        largest = max(self._posterior(group, prior) for prior in self.table.priors)
        r = exact(self.p["r"])
        return largest <= 1 / r and len(group) >= r, largest

    def _posterior(self, group: Group, prior: Prior) -> Fraction:
        rows = [prior.p[tuple(self.table.people[person][name] for name in prior.attributes)] for person in group]
        values = self._values(group)
        known = set().union(*(row.keys() for row in prior.p.values()))
        if known.issuperset(self.table.column(self.column, self.table.everyone)):
            names = sorted(known, key=repr)
            return robustness.largest([[row[name] for name in names] for row in rows], [*map(names.index, values)])
        asked = known.intersection(values)
        chances = (robustness.against_all_others([row[x] for row in rows], values.count(x)) for x in asked)
        return max(chances, default=Fraction(0))


def _measure(name: str, p: Parameters, table: Table, whole: list[Any]) -> Callable[[list[Any]], tuple[bool, Figure]]:
    """Return a function that judges the values of one group, given those of the whole release."""
    named = partial(table.named, str(p.get("sensitive") or table.sensitive[0]))
    if name == "l_diversity":
        kept = p.get("keep_possible") or {"values": [], "percent": 0}
        percents = dict.fromkeys(named(kept["values"]), exact(kept["percent"]))
        return partial(_diverse, p, named(p.get("dont_care", ())), percents)
    if name in ("dissimilarity", "t_closeness"):
        distance = _distance(p["distance"], table, named, whole)
        if name == "t_closeness":
            return lambda values: _at_most(proximity.least_work(values, whole, distance), exact(p["t"]))
        epsilon, most = exact(p["epsilon"]), 1 - exact(p["delta"])
        return lambda values: _sized(_at_most(proximity.risk(values, epsilon, distance), most), values, p)
    if name == "delta_disclosure":
        delta = exact(p["delta"])
        return lambda values: (
            delta_disclosure.holds(values, whole, delta),
            delta_disclosure.figure(values, whole),
        )
    if name == "alpha_k":
        asked = named(p["values"]) if "values" in p else None
        return lambda values: _sized(_at_most(proximity.largest_share(values, asked), exact(p["alpha"])), values, p)
    return lambda values: _numeric(name, p, [exact(value) for value in values])


def _at_most(figure: Fraction, bound: Fraction) -> tuple[bool, Figure]:
    return figure <= bound, figure


def _sized(found: tuple[bool, Figure], values: list[Any], p: Parameters) -> tuple[bool, Figure]:
    return found[0] and len(values) >= p["k"], found[1]


def _numeric(name: str, p: Parameters, numbers: list[Fraction]) -> tuple[bool, Figure]:
    if name == "epsilon_m":
        return _at_most(proximity.neighbour_share(numbers, exact(p["epsilon"])), Fraction(1, p["m"]))
    if name == "variance":
        variance = proximity.variance(numbers)
        return variance >= exact(p["minimum"]), variance
    distinct, width = len(set(numbers)), proximity.width(numbers)
    return distinct >= p["k"] and width >= exact(p["e"]), {"distinct": distinct, "range": width}


def _diverse(
    p: Parameters, dont_care: list[Any], percents: Mapping[Any, Fraction], values: list[Any]
) -> tuple[bool, Figure]:
    c = exact(p.get("c", 1))
    safe = l_diversity.holds([values], p["kind"], exact(p["l"]), c, dont_care, percents)
    return safe, _diversity(p, dont_care, values)


def _diversity(p: Parameters, dont_care: list[Any], values: list[Any]) -> Figure:
    if p["kind"] == "distinct":
        return l_diversity.distinct(values)
    if p["kind"] == "frequency":
        return l_diversity.largest_share(values)
    if p["kind"] == "entropy":
        entropy = l_diversity.adjusted_entropy(values, dont_care)
        return math.inf if entropy is None else entropy.exp()
    head, tail = l_diversity.head_and_tail(values, int(p["l"]), dont_care)
    return Fraction(0) if not head else Fraction(head, tail) if tail else math.inf


def _distance(
    given: Any, table: Table, named: Callable[[Iterable[str]], list[Any]], whole: list[Any]
) -> proximity.Distance:
    """Return a distance of the config, between the values of one release."""
    if callable(given):
        return lambda one, other: exact(given(one, other))
    kind = given["kind"]
    if kind == "absolute":
        return lambda one, other: proximity.absolute(exact(one), exact(other))
    if kind == "equal":
        return proximity.equal
    if kind == "ordered":
        in_order = sorted(set(whole), key=lambda value: (value is not None, value))
        return proximity.ordered(named(given["order"]) if "order" in given else in_order)
    if kind == "hierarchy":
        return proximity.by_ancestors(dict(table.paths[given["file"]]))
    if kind == "matrix":
        matrix = table.matrices[given["file"]]
        return lambda one, other: matrix[one][other]
    return lambda one, other: proximity.variational([*map(exact, one)], [*map(exact, other)])


Statistics = tuple[Fraction | None, Fraction | None, Fraction | None, Fraction, Fraction]


class SkylineCriterion(Criterion):
    """breach < c at every point of every value: Theorem 2 of Privacy Skyline over five statistics of each group."""

    @cached_property
    def _points(self) -> dict[Any, list[skyline.Point]]:
        given = self.p.get("values", {})
        named = dict(zip(self.table.named(self.column, given), given.values()))
        held = {value for own in self.table.column(self.column, self.table.everyone) for value in self._held(own)}
        asked = {value: named.get(value, self.p["points"]) for value in held}
        return {
            value: [(int(p["l"]), int(p["k"]), int(p["m"]), exact(p["c"])) for p in points]
            for value, points in asked.items()
            if points != "exempt"
        }

    def _held(self, own: Any) -> Sequence[Any]:
        """Return the values of an individual, in a set each once."""
        if self.table.kind == "single":
            return [own]
        return sorted(set(own)) if self.table.kind == "set" else list(own)

    @cached_property
    def _known(self) -> dict[Group, list[Statistics]]:
        return {}

    def verdict(self, groups: Groups, released: Group | None = None) -> Verdict:
        of_groups = [self._of(group) for group in groups]
        asked = [(value, point) for value, points in self._points.items() for point in points]
        points: dict[tuple[Any, int, int, int], Fraction] = {}
        safe = True
        for (value, (l, k, m, c)), statistics in zip(asked, zip(*of_groups)):
            breach = _breach(statistics)
            safe &= breach < c
            if any(each[0] is not None for each in statistics):  # the value occurs
                points[value, l, k, m] = breach
        return Verdict(safe, max(points.values(), default=Fraction(0)), points)

    def holds(self, groups: Groups, released: Group | None = None) -> bool:
        of_groups = [self._of(group) for group in groups]
        bounds = [c for points in self._points.values() for *_, c in points]
        return all(_breach(statistics) < c for c, statistics in zip(bounds, zip(*of_groups)))

    def _of(self, group: Group) -> list[Statistics]:
        if group not in self._known:
            asked = [(value, point) for value, points in self._points.items() for point in points]
            self._known[group] = [self._statistics(group, value, point) for value, point in asked]
        return self._known[group]

    def _statistics(self, group: Group, value: Any, point: skyline.Point) -> Statistics:
        l, k, m, _ = point
        values = [each for own in self.table.column(self.column, group) for each in self._held(own)]
        if self.table.kind == "single":
            target = [skyline.target_ratio(values, value, l, known) for known in (k, 0)]
            family = [skyline.family_ratio(values, value, m, known) for known in (k + 1, 0, k)]
        elif value not in values:
            target, family = [None, None], [Fraction(1)] * 3
        else:
            people, kind = len(group), self.table.kind
            target = [skyline.many_target(people, values, value, l, known, kind) for known in (k, 0)]
            family = [skyline.many_family(people, values, value, m, known, kind) for known in (k + 1, 0, k)]
        together = None if target[0] is None else target[0] * family[0]
        return together, target[0], target[1], family[1], family[2]


def _breach(statistics: Sequence[Statistics]) -> Fraction:
    """Return 1 / (1 + the least negated ratio), given the statistics of all groups; without the value there is none."""
    least = [min((one for one in each if one is not None), default=None) for each in zip(*statistics)]
    together, among, alone, family_alone, family_among = least
    if together is None or among is None or alone is None or family_alone is None or family_among is None:
        return Fraction(0)
    return 1 / (1 + min(together, alone * family_among, among * family_alone))


class CKSafety(Criterion):
    """Maximum disclosure below c, by the dynamic program of the paper."""

    def verdict(self, groups: Groups, released: Group | None = None) -> Verdict:
        histograms = [ck_safety.histogram(self.table.column(self.column, group)) for group in groups]
        disclosure = ck_safety.disclosure(histograms, int(self.p["k"]))
        return Verdict(disclosure < exact(self.p["c"]), disclosure)
