"""Generates criteria with parameters of every kind. Thresholds are round numbers, or are put where some grouping of the
table just reaches or just misses them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tests.fuzz.cases import Person
from tests.oracles import criteria as oracle

Item = dict[str, dict[str, Any]]
Parameters = dict[str, Any]
SHARES = ("0.2", "0.25", "0.34", "0.4", "0.5", "0.6", "0.67", "0.75", "0.8", "0.9", "1")
OF_TEXT = (
    "k_anonymity", "group_size", "distinct", "frequency", "entropy", "recursive", "skyline", "skyline", "skyline",
    "ck_safety", "ck_safety", "dissimilarity", "t_closeness", "alpha_k", "delta_disclosure",
)  # fmt: skip
OF_NUMBERS = ("epsilon_m", "k_e", "variance", "dissimilarity", "t_closeness")
TRIES = 8  # to come to a criterion that some groups satisfy
KINDS = ("distinct", "frequency", "entropy", "recursive")


@dataclass
class Maker:
    """Makes criteria for the people of one table. Files that they name are kept in `files`, and what these say in
    `paths` and `matrices`."""

    rng: random.Random
    people: Sequence[Person]
    sensitive: Sequence[str]
    multiplicity: str = "single"
    files: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Mapping[Any, Sequence[Any]]] = field(default_factory=dict)
    matrices: dict[str, Mapping[Any, Mapping[Any, Fraction]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.goal = grouped_at_random(self.rng, self.people)
        self.aims = self.rng.choices([TRIES, 0], [4, 1])[0]  # at criteria that the goal satisfies

    def some(self) -> list[Item]:
        """Return one to four criteria, most of them satisfied by the groups of the goal."""
        found = [self.aimed(self._name()) for _ in range(self.rng.choice([1, 1, 2, 2, 3]))]
        if self.rng.random() < 0.3:
            found.insert(0, self.aimed("group_size"))
        return found

    def aimed(self, name: str) -> Item:
        """Return a criterion that the groups of the goal satisfy, if a few tries find one; where it is not monotone,
        preferably one that the table as one group fails."""
        found, goal, everyone = self.one(name), members(self.goal), tuple(range(len(self.people)))
        for _ in range(self.aims):
            made = self.one(name)
            criterion = oracle.criterion(made, self.table)
            if criterion.holds(self.goal, goal) or self.rng.random() < 0.1:
                found = made
                if criterion.monotone or not criterion.holds([everyone]):
                    break
        return found

    @property
    def table(self) -> oracle.Table:
        return oracle.Table(self.people, self.sensitive, self.multiplicity, self.paths, self.matrices)

    def _name(self) -> str:
        if self.multiplicity != "single":
            return self.rng.choice(["skyline", "skyline", "group_size", "k_anonymity"])
        names = [*(OF_TEXT if "d" in self.sensitive else ()), *(OF_NUMBERS if "x" in self.sensitive else ())]
        if len(self.sensitive) > 1:
            names += KINDS
        return self.rng.choice(names)

    def one(self, name: str) -> Item:
        """Return a criterion by its name, or by the kind of l-diversity."""
        column = self._column(name)
        made: Parameters = getattr(self, f"_{name}")(column)
        if name in oracle.SIZES:
            return {name: made}
        made = {"sensitive": column, **made}
        if "distance" in made and made["distance"].get("kind") == "variational":
            del made["sensitive"]
        return {"l_diversity" if name in KINDS else name: made}

    def _column(self, name: str) -> str:
        numbers = name in ("epsilon_m", "k_e", "variance")
        return "x" if numbers else self.rng.choice(list(self.sensitive))

    def _values(self, column: str) -> list[Any]:
        held = {person[column] for person in self.people}
        if self.multiplicity != "single":
            held = {value for own in held for value in own}
        return sorted(held, key=lambda value: (value is not None, value))

    def _named(self, column: str, most: int) -> list[str]:
        """Return some values that a config can name."""
        texts = [str(value) for value in self._values(column) if value is not None]
        return self.rng.sample(texts, min(self.rng.randint(1, most), len(texts)))

    def _size(self) -> int:
        near = [*map(len, equal_cells(self.people)), len(self.people)]
        return max(self.rng.choice([1, 2, 2, 3, 4, *near]) + self.rng.choice([-1, 0, 0, 0, 1]), 1)

    def _threshold(self, item: Item, names: Sequence[str], low: str, high: str, of: Callable[[Any], Any]) -> Decimal:
        """Return a number from low to high: a round one, or the figure of some groups, exactly or nearly."""
        reached = self._reached(item) if self.rng.random() < 0.6 else None
        if reached is None or (figure := of(reached)) is None or not Decimal(low) <= figure <= Decimal(high):
            return Decimal(self.rng.choice([name for name in names if Decimal(low) <= Decimal(name) <= Decimal(high)]))
        return figure

    def _reached(self, item: Item) -> Any:
        """Return the figure of a criterion for some groups of the table; None if it is infinite."""
        groups = grouped_at_random(self.rng, self.people) if self.rng.random() < 0.3 else self.goal
        found = oracle.criterion(item, self.table).verdict(groups, members(groups)).figure
        return None if isinstance(found, float) else found

    def _near(self, figure: Any) -> Decimal:
        """Return a number as a decimal, mostly exactly if it has finitely many digits, else slightly above or below."""
        number, step = Fraction(figure), Decimal(self.rng.choice(["1e-12", "1e-15", "1e-26"]))
        with localcontext(prec=50):
            decimal = Decimal(number.numerator) / Decimal(number.denominator)
            if Fraction(decimal) != number or self.rng.random() < 0.3:
                return decimal.quantize(step) + self.rng.choice([step, -step])
            return decimal

    def _share(self, item: Item, low: str = "0.01", high: str = "1") -> Decimal:
        return self._threshold(item, SHARES, low, high, self._near)

    def with_share(self, item: Callable[[Any], Item]) -> Item:
        """Return a criterion whose confidence c the goal just reaches or just misses."""
        groups = grouped_at_random(self.rng, self.people) if self.rng.random() < 0.3 else self.goal
        verdict = oracle.criterion(item(1), self.table).verdict(groups)
        reached = max(
            (breach for (value, *_), breach in verdict.points.items() if value == "s"), default=verdict.figure
        )
        return item(min(self._near(reached), Decimal(1)))

    # one for each criterion

    def _k_anonymity(self, column: str) -> Parameters:
        return {"k": self._size()}

    _group_size = _k_anonymity

    def _diversity(self, kind: str, l: Any, column: str, **more: Any) -> Parameters:
        made = {"kind": kind, "l": l, "joint": self.rng.random() < 0.5, **self._absent(), **more}
        if self.rng.random() < 0.15:
            percent = Decimal(self.rng.choice(["0", "5", "20", "25", "50"]))
            kept = self._named(column, 2) if "absent" not in made else [*self._named(column, 1), "zz"]
            made |= {"keep_possible": {"values": kept, "percent": percent}} if kept else {}
        return made

    def _absent(self) -> Parameters:
        """Return the setting by which a value need not occur, or nothing."""
        return {"absent": "ok"} if self.rng.random() < 0.5 else {}

    def _distinct(self, column: str) -> Parameters:
        return self._diversity("distinct", self._count(column), column)

    def _count(self, column: str) -> int:
        return max(self.rng.choice([1, 2, 2, 3, len(self._values(column))]), 1)

    def _frequency(self, column: str) -> Parameters:
        item = {"l_diversity": {"kind": "frequency", "l": 1, "sensitive": column, "joint": False}}
        l = self._threshold(item, ("1", "1.5", "2", "2.5", "3", "4"), "1", "9", lambda f: self._near(1 / f))
        return self._diversity("frequency", l, column)

    def _entropy(self, column: str) -> Parameters:
        cared = {"dont_care": self._named(column, 2)} if self.rng.random() < 0.3 else {}
        item = {"l_diversity": {"kind": "entropy", "l": 1, "sensitive": column, "joint": False, **cared}}
        l = self._threshold(item, ("1", "1.3", "1.5", "2", "2.5", "3", "4"), "1", "9", self._near)
        return self._diversity("entropy", l, column, **cared)

    def _recursive(self, column: str) -> Parameters:
        cared = {"dont_care": self._named(column, 2)} if self.rng.random() < 0.3 else {}
        l = self._count(column)
        item = {"l_diversity": {"kind": "recursive", "l": l, "c": 1, "sensitive": column, "joint": False, **cared}}
        c = self._threshold(item, ("0.5", "0.9", "1", "1.5", "2", "3"), "0.01", "9", self._near)
        return self._diversity("recursive", l, column, c=c, **cared)

    def _point(self, column: str) -> Parameters:
        rng = self.rng
        amount = {"l": rng.choice([0, 0, 1, 1, 2, 3]), "k": rng.choice([0, 0, 1, 2]), "m": rng.choice([0, 0, 0, 1, 2])}
        item = {"skyline": {"sensitive": column, "points": [{**amount, "c": 1}]}}
        return {**amount, "c": self._share(item)}

    def _skyline(self, column: str) -> Parameters:
        points = [self._point(column) for _ in range(self.rng.choice([1, 1, 1, 2]))]
        made: Parameters = {"points": points, **self._absent()}
        if self.rng.random() < 0.3:
            named = self._named(column, 2)
            own = [self.rng.choice(["exempt", [self._point(column)]]) for _ in named]
            made["values"] = dict(zip(named, own))
            if self.rng.random() < 0.3 and any(each != "exempt" for each in own):
                made["points"] = []
        return made

    def _ck_safety(self, column: str) -> Parameters:
        k = self.rng.choice([0, 1, 1, 2, 3])
        return {"k": k, "c": self._share({"ck_safety": {"sensitive": column, "k": k, "c": 1}})}

    def _alpha_k(self, column: str) -> Parameters:
        made: Parameters = {"k": self._size(), **self._absent()}
        if self.rng.random() < 0.3 and (named := self._named(column, 2)):
            made["values"] = named
        return made | {"alpha": self._share({"alpha_k": {"sensitive": column, "alpha": 1, **made}})}

    def _dissimilarity(self, column: str) -> Parameters:
        distance = self._distance(column, self.rng.choice(["any", "along"]))
        epsilon = Decimal(self.rng.choice(["0", "0.25", "0.5", "0.5", "1", "1", "5", "10"]))
        made = {"epsilon": epsilon, "k": self.rng.choice([1, 2, 2, 3, 4]), "distance": distance}
        own = {} if distance.get("kind") == "variational" else {"sensitive": column}
        item = {"dissimilarity": {**own, **made, "delta": 0}}
        return made | {
            "delta": 1 - self._threshold(item, ("0", "0.25", "0.5", "0.5", "0.75", "1"), "0", "1", self._near)
        }

    def _t_closeness(self, column: str) -> Parameters:
        distance = self._distance(column, "along")
        item = {"t_closeness": {"sensitive": column, "distance": distance, "t": 1}}
        return {"distance": distance, "t": self._threshold(item, ("0", "0.1", *SHARES, "3"), "0", "900", self._near)}

    def _delta_disclosure(self, column: str) -> Parameters:
        item = {"delta_disclosure": {"sensitive": column, "delta": 1}}
        round_numbers = ("0.1", "0.5", "0.7", "1", "1.1", "2", "5")
        return {"delta": self._threshold(item, round_numbers, "1e-20", "99", self._near)}

    def _distance(self, column: str, kinds: str) -> Parameters:
        values = self._values(column)
        known = ["equal", "ordered"]
        if None not in values:
            known += ["order", "hierarchy"] + (["absolute", "absolute"] if column == "x" else [])
            known += ["matrix"] if kinds == "any" else []
        if kinds == "any" and column == "x":
            known.append("variational")
        kind = self.rng.choice(known)
        made: Mapping[str, Callable[[], Parameters]] = {
            "order": lambda: {"kind": "ordered", "order": self.rng.sample([str(v) for v in values], len(values))},
            "hierarchy": lambda: {"kind": "hierarchy", "file": self._hierarchy(values)},
            "matrix": lambda: {"kind": "matrix", "file": self._matrix(values)},
            "variational": lambda: {"kind": "variational", "columns": ["x"]},
        }
        return made[kind]() if kind in made else {"kind": kind}

    def _hierarchy(self, values: list[Any]) -> str:
        """Write a hierarchy file with two groups of values below the root; return its name."""
        name = f"values{len(self.files)}.csv"
        labels = {value: f"g{at * 2 // len(values)}" for at, value in enumerate(values)}
        self.files[name] = "".join(f"{value};{labels[value]};*\n" for value in values)
        apart = len(set(labels.values())) > 1
        self.paths[name] = {value: (labels[value], "*") if apart else ("*",) for value in values}
        return name

    def _matrix(self, values: list[Any]) -> str:
        name = f"matrix{len(self.files)}.csv"
        rows: dict[Any, dict[Any, Fraction]] = {value: {} for value in values}
        for at, one in enumerate(values):
            for other in values[at:]:
                apart = Fraction(0) if one == other else Fraction(self.rng.choice([1, 2, 4]), 4)
                rows[one][other] = rows[other][one] = apart
        rows = {value: {other: rows[value][other] for other in values} for value in values}
        lines = [["", *map(str, values)], *([str(v), *(str(float(d)) for d in rows[v].values())] for v in values)]
        self.files[name] = "".join(",".join(line) + "\n" for line in lines)
        self.matrices[name] = rows
        return name

    def _epsilon_m(self, column: str) -> Parameters:
        return {
            "epsilon": Decimal(self.rng.choice(["0", "0.5", "1", "1", "2", "10"])),
            "m": self.rng.choice([1, 2, 2, 3]),
        }

    def _k_e(self, column: str) -> Parameters:
        k = self._count(column)
        item = {"k_e": {"sensitive": column, "k": k, "e": 0}}
        e = self._threshold(
            item, ("0", "1", "2", "3", "5", "10"), "0", "999", lambda figure: self._near(figure["range"])
        )
        return {"k": k, "e": e}

    def _variance(self, column: str) -> Parameters:
        item = {"variance": {"sensitive": column, "minimum": 0}}
        return {"minimum": self._threshold(item, ("0", "0.25", "0.5", "1", "2", "6.25"), "0", "99999", self._near)}


def members(groups: oracle.Groups) -> tuple[int, ...]:
    return tuple(sorted(person for group in groups for person in group))


def equal_cells(people: Sequence[Person], names: Sequence[str] = ()) -> list[tuple[int, ...]]:
    """Return groups of people who are equal in some columns, by default in all quasi-identifiers."""
    names = names or [name for name in people[0] if name.startswith("q")]
    groups: dict[Any, list[int]] = {}
    for number, person in enumerate(people):
        groups.setdefault(tuple(person[name] for name in names), []).append(number)
    return [tuple(group) for group in groups.values()]


def grouped_at_random(rng: random.Random, people: Sequence[Person]) -> list[tuple[int, ...]]:
    """Return groups of people: by cells, by one quasi-identifier or intervals of it, all together, or by chance."""
    names = [name for name in people[0] if name.startswith("q")]
    style = rng.choice(["cells", "column", "intervals", "intervals", "all", "random"])
    if style == "random":
        many = rng.randint(1, 4)
        return equal_cells([{"q": rng.randrange(many)} for _ in people], ["q"])
    if style == "intervals":
        return _intervals(rng, people, rng.choice(names))
    if style == "all":
        return [tuple(range(len(people)))]
    return equal_cells(people, names if style == "cells" else rng.sample(names, 1))


def _intervals(rng: random.Random, people: Sequence[Person], name: str) -> list[tuple[int, ...]]:
    held = sorted({person[name] for person in people}, key=lambda value: (value is not None, value))
    cuts = [rng.randrange(len(held)) for _ in range(rng.choice([1, 1, 2, 3]))]
    return equal_cells([{"q": sum(held.index(p[name]) >= cut for cut in cuts)} for p in people], ["q"])
