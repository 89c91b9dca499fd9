"""Generates a case of any family from its seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import ROUND_UP, Decimal
from fractions import Fraction
from typing import Any

from tests.fuzz import rivals
from tests.fuzz.cases import Case, Person, Quasi
from tests.fuzz.criteria import Maker, equal_cells, grouped_at_random
from tests.fuzz.tables import Shape, outliers, people, quasi_identifiers
from tests.oracles import criteria as oracle

SHARES = {"partition": 45, "lattice": 20, "merge": 7, "colour": 6, "judge": 12, "check": 6, "whole": 4}
FEW = 9  # people of a group whose worlds are looked at
METRICS = ("loss", "height", "discernibility", "average", "divergence")


def case(seed: int) -> Case:
    """Return the case of a seed; a hundred consecutive seeds have all families in their shares."""
    families = [family for family, share in SHARES.items() for _ in range(share)]
    family = families[seed * 37 % len(families)]
    return MAKERS[family](seed, random.Random(seed))


def _table(rng: random.Random, shape: Shape) -> tuple[list[Quasi], list[Person]]:
    columns, values = quasi_identifiers(rng, shape)
    return columns, people(rng, columns, values, shape)


def _multiplicity(rng: random.Random) -> str:
    return rng.choices(["single", "set", "multiset"], [8, 1, 1])[0]


def _sensitive(rng: random.Random, multiplicity: str) -> list[str]:
    return ["d"] if multiplicity != "single" else rng.choice([["d"], ["d"], ["x"], ["d", "x"]])


def _searched(seed: int, rng: random.Random, family: str, shape: Shape) -> Case:
    """Return a table and criteria for a search by partition or by lattice."""
    if (chance := rng.random()) < 0.08:
        return (_rivals if chance < 0.06 else _unlike)(seed, rng, family)
    multiplicity = _multiplicity(rng)
    shape = replace(shape, several=multiplicity != "single")
    columns, rows = _table(rng, shape)
    sensitive = _sensitive(rng, multiplicity)
    few: list[Person] = []
    if rng.random() < (0.5 if family == "lattice" else 0.2):
        columns, few = outliers(rng, columns, rows)
    make = Maker(rng, [*rows, *few], sensitive, multiplicity)
    if family == "lattice" and rng.random() < 0.8:
        make.goal = _at_levels(rng, columns, rows)  # without the few, who may be suppressed
    privacy, rows = make.some(), [*rows, *few]
    method = _method(rng, family)
    if few and family == "lattice" and rng.random() < 0.7:
        method["suppress"] = _just(rng, len(few), len(rows))
    form = {"form": "bucketized"} if multiplicity != "single" or (len(sensitive) == 1 and rng.random() < 0.2) else {}
    settings = {
        "block": rng.choice([10**6, 10**6, 12, 6, 3, 1]), "counted": rng.random() < 0.5,
        "threads": rng.choice([1, 1, 2]), "spilled": rng.random() < 0.1,
        "small": rng.random() < 0.3,
    }  # fmt: skip
    return Case(
        seed, family, columns, rows, sensitive, privacy, method, multiplicity, form, make.files,
        paths=make.paths, matrices=make.matrices, settings=settings,
    )  # fmt: skip


def _at_levels(rng: random.Random, columns: list[Quasi], rows: list[Person]) -> list[tuple[int, ...]]:
    """Return the groups of a random node of the lattice."""
    levels = {column.name: rng.randint(0, column.height) for column in columns}
    labels = [{c.name: c.path(row[c.name])[levels[c.name]] for c in columns} for row in rows]
    return equal_cells(labels)


def _just(rng: random.Random, people: int, of: int) -> Decimal:
    """Return the share of some people among all, rounded up; sometimes slightly less."""
    share = (Decimal(people) / Decimal(of)).quantize(Decimal("1e-9"), ROUND_UP)
    return share - rng.choice([0, 0, 0, Decimal("2e-9")])


def _unlike(seed: int, rng: random.Random, family: str) -> Case:
    columns, rows, item = rivals.unlike(rng)
    settings = {"counted": rng.random() < 0.5, "small": rng.random() < 0.3}
    sensitive = [next(iter(item.values()))["sensitive"]]
    return Case(seed, family, columns, rows, sensitive, [item], _method(rng, family), settings=settings)


def _rivals(seed: int, rng: random.Random, family: str) -> Case:
    """Return a table whose groups depend on each other, with a threshold just above or below their figure."""
    kind, release = "single", {}
    if rng.random() < 0.3:
        kind, columns, rows, item = rivals.of_several(rng)
        release = {"form": "bucketized"}
    else:
        columns, rows, item = rivals.table(rng)
    make = Maker(rng, rows, ["d"], kind)
    cells = equal_cells(rows, rng.choice([["q0"], ["q0", "q1"]]))
    make.goal = rng.choice([cells, [*cells, tuple(range(len(rows)))]])  # with the table that is split, or without
    privacy = [make.with_share(item)]
    settings = {"block": rng.choice([10**6, 12, 3]), "counted": rng.random() < 0.5, "threads": rng.choice([1, 2])}
    return Case(seed, family, columns, rows, ["d"], privacy, _method(rng, family), kind, release, settings=settings)


def _method(rng: random.Random, kind: str) -> dict[str, Any]:
    if kind == "partition":
        prefer, labels = rng.choice(["widest", "widest", "balanced", "loss", "public"]), rng.choice(["cells", "tight"])
        return {"kind": kind, "prefer": prefer, "labels": labels, "peel": prefer != "public" and rng.random() < 0.5}
    suppress = Decimal(rng.choice(["0", "0", "0.05", "0.1", "0.2", "0.34", "0.5"]))
    choose = rng.choice(METRICS)
    minimal = rng.choice(["all", "best"]) if choose in ("loss", "height") else "all"
    return {"kind": kind, "suppress": suppress, "choose": choose, "minimal": minimal, "exhaustive": True}


def _partition(seed: int, rng: random.Random) -> Case:
    line = Shape(1, rng.choice([8, 12, 16]), ("integer", "number", "text"), sizes=(6, 7, 8, 9, 12))
    return _searched(seed, rng, "partition", line if rng.random() < 0.2 else Shape(people=rng.choice([12, 24, 36, 60])))


def _lattice(seed: int, rng: random.Random) -> Case:
    kinds = ("tree", "tree", "tree", "text", "integer")
    return _searched(seed, rng, "lattice", Shape(kinds=kinds, copies=rng.choice([1, 1, 2, 8])))


def _whole(seed: int, rng: random.Random) -> Case:
    family = rng.choice(["partition", "partition", "lattice", "merge", "colour"])
    found = MAKERS[family](seed, rng)
    return replace(found, family="whole", settings={})


def _colour(seed: int, rng: random.Random) -> Case:
    columns, rows = _table(rng, Shape(people=rng.choice([6, 12, 24])))
    sensitive = rng.choice(["d", "x"])
    make = Maker(rng, rows, [sensitive])
    privacy = [make.one("dissimilarity"), *_beside(rng, make)]
    return _assigned(seed, "colour", columns, rows, make, privacy)


def _merge(seed: int, rng: random.Random) -> Case:
    columns, rows = _table(rng, Shape(columns=2, people=rng.choice([4, 6, 8, 12])))
    make = Maker(rng, rows, ["d"])
    r = Decimal(rng.choice(["1.01", "1.5", "2", "2", "2.5", "3", "4"]))
    priors = [_prior(rng, columns, rows, number, make.files) for number in range(rng.choice([1, 1, 2]))]
    known = [prior for _, prior in priors]
    item = {"r_robustness": {"sensitive": "d", "r": r, "priors": [written for written, _ in priors]}}
    return _assigned(seed, "merge", columns, rows, make, [item, *_beside(rng, make)], known)


def _beside(rng: random.Random, make: Maker) -> list[dict[str, Any]]:
    """Return a criterion that the method only checks, or a size, or nothing."""
    chance = rng.random()
    if chance < 0.25:
        return [{"group_size": {"k": rng.choice([1, 2, 3])}}]
    return [make.one(rng.choice(["distinct", "frequency"]))] if chance < 0.4 and make.sensitive == ["d"] else []


def _assigned(
    seed: int, family: str, columns: list[Quasi], rows: list[Person], make: Maker, privacy: list[Any],
    priors: list[oracle.Prior] | None = None,
) -> Case:  # fmt: skip
    release = {"form": "bucketized", "labels": "exact"}
    settings = {"counted": make.rng.random() < 0.5, "small": make.rng.random() < 0.3}
    return Case(
        seed, family, columns, rows, make.sensitive, privacy, {"kind": family}, "single", release, make.files,
        priors or [], make.paths, make.matrices, settings=settings,
    )  # fmt: skip


def _prior(
    rng: random.Random,
    columns: list[Quasi],
    rows: list[Person],
    number: int,
    files: dict[str, str],
    estimated: bool = True,
) -> tuple[dict[str, Any], oracle.Prior]:
    """Return a prior as the config writes it, and its probabilities: estimated with smoothing, or from a file that
    names all values or only some."""
    names = [column.name for column in rng.sample(columns, rng.randint(1, len(columns)))]
    signatures = sorted(
        {tuple(row[n] for n in names) for row in rows}, key=lambda each: [(v is not None, v) for v in each]
    )
    values = sorted({row["d"] for row in rows}, key=lambda value: (value is not None, value))
    if estimated and rng.random() < 0.5:
        return _estimated(rng, names, signatures, rows, values)
    if len(values) > 1 and rng.random() < 0.3:
        values = rng.sample(values, rng.randint(1, len(values) - 1))
    p = {signature: _probabilities(rng, values) for signature in signatures}
    name = f"prior{number}.csv"
    lines = [[*names, "value", "p"]]
    lines += [[*map(_word, key), _word(value), str(share)] for key, row in p.items() for value, share in row.items()]
    files[name] = "".join(",".join(line) + "\n" for line in lines)
    exactly = {key: {value: Fraction(share) for value, share in row.items()} for key, row in p.items()}
    return {"file": name}, oracle.Prior(tuple(names), exactly)


def _word(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _probabilities(rng: random.Random, values: list[Any]) -> dict[Any, Decimal]:
    """Return hundredths that add up to one, equal or by chance, some of them zero."""
    cuts = sorted(rng.choices(range(0, 101, rng.choice([1, 10, 25])), k=len(values) - 1))
    shares = [high - low for low, high in zip([0, *cuts], [*cuts, 100])]
    if rng.random() < 0.6:
        shares = [100 // len(values)] * len(values)
        shares[0] += 100 - sum(shares)
    return {value: Decimal(share) / 100 for value, share in zip(values, shares)}


def _estimated(
    rng: random.Random, names: list[str], signatures: list[tuple[Any, ...]], rows: list[Person], values: list[Any]
) -> tuple[dict[str, Any], oracle.Prior]:
    smoothing = rng.choice([1, 1, 2, 20])
    p = {}
    for key in signatures:
        own = [row["d"] for row in rows if tuple(row[name] for name in names) == key]
        total = len(own) + smoothing * len(values)
        p[key] = {value: Fraction(own.count(value) + smoothing, total) for value in values}
    return {"estimate": names, "smoothing": Decimal(smoothing)}, oracle.Prior(tuple(names), p)


def _grouped(seed: int, rng: random.Random, family: str) -> Case:
    """Return a table that is already grouped."""
    multiplicity = _multiplicity(rng)
    columns, rows = _table(rng, Shape(people=24, several=multiplicity != "single"))
    sensitive = _sensitive(rng, multiplicity)
    if multiplicity != "single" and family == "check" and rng.random() < 0.4:
        rows = [{**row, "d": ()} if rng.random() < 0.4 else row for row in rows]  # who has no value at all
    make = Maker(rng, rows, sensitive, multiplicity)
    make.aims = 0  # a criterion that fails is as good
    privacy = [item for _ in range(3) for item in make.some()]
    groups = grouped_at_random(rng, rows)
    form = {"form": "bucketized"} if multiplicity != "single" or (len(sensitive) == 1 and rng.random() < 0.3) else {}
    found = Case(
        seed, family, columns, rows, sensitive, privacy, {"kind": "partition"}, multiplicity, form, make.files, [],
        make.paths, make.matrices, groups,
    )  # fmt: skip
    small = sensitive == ["d"] and multiplicity == "single" and max(map(len, groups)) <= FEW
    return _known(rng, found) if small and family == "check" and rng.random() < 0.5 else found


def _known(rng: random.Random, given: Case) -> Case:
    """Add a prior to a case: over a kept column where quasi-identifiers are labels, else over quasi-identifiers."""
    columns, rows, files = list(given.quasi), list(given.people), dict(given.files)
    labelled = not given.release
    if labelled:
        columns, rows = [Quasi("w", "text")], [{**row, "w": rng.choice("uv")} for row in rows]
    written, prior = _prior(rng, columns, rows, 0, files, estimated=labelled)
    r = Decimal(rng.choice(["1.01", "1.5", "2", "3"]))
    privacy = [*given.privacy, {"r_robustness": {"sensitive": "d", "r": r, "priors": [written]}}]
    return replace(given, people=rows, privacy=privacy, files=files, priors=[prior], keep=["w"] if labelled else [])


MAKERS: Mapping[str, Callable[[int, random.Random], Case]] = {
    "partition": _partition,
    "lattice": _lattice,
    "merge": _merge,
    "colour": _colour,
    "judge": lambda seed, rng: _grouped(seed, rng, "judge"),
    "check": lambda seed, rng: _grouped(seed, rng, "check"),
    "whole": _whole,
}
