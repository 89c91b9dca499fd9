"""Thresholds that an error message says would hold: with them in the config the whole table passes, and with the next
stricter ones it does not. For every criterion, also where other sensitive columns are contexts (Definition 4.6)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anon.config import load
from anon.criteria import Groups, Point, Skyline
from anon.errors import ConfigError, UnsafeError
from anon.search import dispatch
from tests.helpers.lattice import Table, cube_of
from tests.oracles import skyline

Spec = dict[str, Any]
VALUES = "abcd"


def table(rows: list[tuple[str, int]]) -> Table:
    listed = [{"q0": "v", "d": value, "x": number} for value, number in rows]
    return Table(listed, {"q0": {"v": ("v", "*")}}, {"q0": {"suppress": True}})


def structured() -> Iterator[list[tuple[str, int]]]:
    """Balanced values, one value, exact ties, one context that has only one value, contexts of different sizes."""
    yield [(value, number) for value in "abc" for number in (1, 2)]
    yield [("a", 1)] * 5
    yield [("a", 1), ("b", 2), ("a", 2)]
    yield [("a", 1)] * 3 + [(value, 2) for value in "abcd" for _ in range(3)]
    yield [("a", 1)] * 9 + [("b", 1)]
    yield [(value, number) for value, times in zip(VALUES, (4, 2, 1, 1)) for number in range(times)]
    yield [(value, 0) for value, times in zip(VALUES, (9, 5, 3, 1)) for _ in range(times)]
    yield [("a", 3)]


def drawn(seed: int) -> list[tuple[str, int]]:
    rng = random.Random(seed)
    values, numbers = VALUES[: rng.randint(1, 4)], rng.sample(range(-5, 40), rng.randint(1, 4))
    weights = [rng.choice([1, 1, 2, 5]) for _ in values]
    return [(rng.choices(values, weights)[0], rng.choice(numbers)) for _ in range(rng.randint(1, 24))]


TABLES = [*structured(), *map(drawn, range(12))]
SPECS: list[Spec] = [
    {"k_anonymity": {"k": 30}},
    {"group_size": {"k": 30}},
    *(
        {"l_diversity": {"sensitive": "d", "joint": joint, "absent": "ok", **spec}}
        for joint in (True, False)
        for spec in (
            {"kind": "distinct", "l": 7},
            {"kind": "frequency", "l": 4.5},
            {"kind": "entropy", "l": 4.5},
            {"kind": "entropy", "l": 4.5, "dont_care": ["a"]},
            {"kind": "recursive", "c": 0.3, "l": 2},
            {"kind": "recursive", "c": 2, "l": 6},
            {"kind": "recursive", "c": 0.7, "l": 4, "dont_care": ["a", "b"]},
            {"kind": "distinct", "l": 5, "keep_possible": {"values": ["a", "b"], "percent": 70}},
            {"kind": "recursive", "c": 1, "l": 3, "keep_possible": {"values": ["a", "c"], "percent": 51}},
        )
    ),
    {"skyline": {"sensitive": "d", "points": [{"l": 1, "k": 2, "m": 2, "c": 0.5}]}},
    {"skyline": {"sensitive": "d", "points": [{"l": 0, "k": 2, "m": 0, "c": 0.3}, {"l": 2, "k": 0, "m": 1, "c": 0.6}]}},
    {"skyline": {"sensitive": "d", "points": [{"l": 0, "k": 0, "m": 9, "c": 0.9}]}},
    {"ck_safety": {"sensitive": "d", "c": 0.3, "k": 1}},
    {"ck_safety": {"sensitive": "d", "c": 0.5, "k": 3}},
    {"alpha_k": {"sensitive": "d", "alpha": 0.1, "k": 20}},
    {"alpha_k": {"sensitive": "d", "alpha": 0.2, "k": 1, "values": ["a"], "absent": "ok"}},
    {"dissimilarity": {"sensitive": "d", "epsilon": 0, "delta": 0.95, "k": 20, "distance": {"kind": "equal"}}},
    {"dissimilarity": {"sensitive": "x", "epsilon": 3, "delta": 0.95, "k": 2, "distance": {"kind": "absolute"}}},
    {"epsilon_m": {"sensitive": "x", "epsilon": 2, "m": 9}},
    {"k_e": {"sensitive": "x", "k": 9, "e": 100}},
    {"variance": {"sensitive": "x", "minimum": 2000}},
]


def refusals(rows: Table, spec: Spec) -> list[str]:
    """What is said of the whole table; nothing if it passes."""
    config, cube = load(rows.config(Path("/"), [spec])), cube_of(rows, True)
    values = dispatch.sensitive_values(config, cube)
    try:
        return dispatch.check_whole_table(config, cube, values, True)
    except UnsafeError as error:
        return str(error).split("\n")[1:]


@dataclass(frozen=True)
class Hint:
    """A threshold: where it stands in the config, how it is called, and the number that would hold."""

    line: str
    name: str
    relation: str
    number: str

    @property
    def step(self) -> Decimal:
        """One of the last of six digits, or one where things are counted."""
        number = Decimal(self.number)
        counted = self.name in ("k", "m") or (
            self.name == "l" and ("different" in self.line or self.point or "tail" in self.line)
        )
        return Decimal(1) if counted else Decimal(10) ** (number.adjusted() - 5)

    @property
    def point(self) -> re.Match[str] | None:
        return re.search(r"\): (.) at \(l, k, m\) = \((\d+), (\d+), (\d+)\)", self.line)

    @property
    def just_holds(self) -> Decimal:
        return Decimal(self.number) + (self.step / 1_000 if self.relation == "above" else 0)

    @property
    def next_stricter(self) -> Decimal:
        upper = self.name in ("c", "alpha")
        return Decimal(self.number) + (-self.step if upper else self.step)

    def put(self, spec: Spec, number: Decimal) -> Spec:
        """The criterion with a number in this place."""
        changed = deepcopy(spec)
        ((name, parameters),) = changed.items()
        if name == "skyline":
            assert self.point is not None
            value, *amount = self.point.groups()
            own = parameters.setdefault("values", {}).setdefault(value, deepcopy(spec[name]["points"]))
            (mine,) = (at for at, p in enumerate(spec[name]["points"]) if [str(p[key]) for key in "lkm"] == amount)
            own[mine][self.name] = float(number) if self.name == "c" else int(number)
        elif self.name == "keep_possible.percent":
            parameters["keep_possible"]["percent"] = float(number)
        else:
            whole = self.name in ("k", "m") or self.step == 1
            parameters[self.name] = int(number) if whole else float(number)
        return changed


def hints(line: str) -> list[Hint]:
    words = line.partition("; would hold: ")[2]
    found = [re.fullmatch(r"(\S+) (=|above) (\S+)", each) for each in words.split(" or ")] if words else []
    assert all(found), line
    return [Hint(line, *each.groups()) for each in found if each is not None]


def applied(spec: Spec, chosen: tuple[Hint, ...]) -> Spec:
    for hint in chosen:
        spec = hint.put(spec, hint.just_holds)
    return spec


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_thresholds_that_would_hold_do_and_stricter_ones_do_not(spec: Spec) -> None:
    seen = 0
    for rows in map(table, TABLES):
        said = refusals(rows, spec)
        offered = [hints(line) for line in said]
        if not all(offered):
            continue
        for chosen in list(product(*offered))[:8]:
            seen += len(chosen)
            assert not refusals(rows, applied(spec, chosen)), said
            for hint in chosen:
                try:
                    stricter = refusals(rows, hint.put(applied(spec, chosen), hint.next_stricter))
                except ConfigError:
                    continue  # beyond what the config takes: c = 1
                assert stricter, (hint, said)
    assert seen


def test_hints_are_given_wherever_something_weaker_would_hold() -> None:
    """Without a hint the loosest thresholds that ask for anything fail as well."""
    loosest = {"k": 2, "l": 2, "m": 2, "e": 0.000001, "minimum": 0.000001, "alpha": 0.999999, "delta": 0.000001}
    for spec, rows in product(SPECS, map(table, TABLES)):
        ((name, parameters),) = spec.items()
        if name in ("skyline", "ck_safety", "l_diversity"):
            continue
        for line in refusals(rows, spec):
            if "would hold" not in line:
                weak = {key: loosest.get(key, value) for key, value in parameters.items()}
                assert refusals(rows, {name: weak}), line


@pytest.mark.parametrize("kind", ["set", "multiset"])
def test_points_that_would_hold_where_people_have_several_values(kind: str) -> None:
    rng, seen = random.Random(7), set()
    for _ in range(250):
        n = rng.randint(2, 12)
        counts = [rng.randint(1, n if kind == "set" else 2 * n) for _ in range(3)]
        point = Point(rng.randint(0, 2), rng.randint(0, 4), rng.randint(0, 4), Fraction(rng.randint(1, 9), 10))
        criterion = Skyline("s", [[point], [], []], multiplicity=kind)
        whole = replace(Groups.dense(np.array([counts])), n=np.array([n]))
        held = [value for value, count in enumerate(counts) for _ in range(count)]

        def breach(l: int, k: int, m: int, n: int = n, held: list[int] = held) -> Fraction:
            return skyline.many_breach([(n, held)], 0, l, k, m, kind)

        (finding,) = criterion.verdict(criterion.state(whole)).findings
        for words in [] if finding.safe else criterion.nearest(whole, finding):
            name, _, number = words.split()
            seen.add(name)
            amount = {"l": point.l, "k": point.k, "m": point.m}
            if name == "c":
                assert Fraction(number) - Fraction(1, 10**5) < breach(**amount) <= Fraction(number)
            else:
                assert breach(**amount | {name: int(number)}) < point.c <= breach(**amount | {name: int(number) + 1})
    assert seen == {"c", "l", "k", "m"}
