"""What somebody who keeps every part of a series can believe: no more than the groups of one release give."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anon
from tests.helpers.series import People, Row, check_series, extract, series_config, waiting

Group = tuple[tuple[str, ...], tuple[str, ...]]  # its people and its values


def groups_of_part(file: Path, members: list[Row]) -> list[Group]:
    """Return the groups of a part with their members: who is in a cell is known to an adversary who knows the
    quasi-identifiers of everybody and who came in which night."""
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in pq.read_table(file).to_pylist():
        cells[row["age"], row["zip"]].append(row["ill"])
    found: list[Group] = []
    for (age, code), values in cells.items():
        own = [row for row in members if inside(age, row["age"]) and row["zip"].startswith(code.rstrip("*"))]
        assert sorted(row["ill"] for row in own) == sorted(values)
        found.append((tuple(row["id"] for row in own), tuple(values)))
    return found


def inside(label: str, age: int) -> bool:
    if label == "*":
        return True
    if label[:2] in ("<=", ">="):
        return age <= int(label[2:]) if label[0] == "<" else age >= int(label[2:])
    low, _, high = label.partition("-")
    return int(low) <= age <= int(high or low)


def beliefs(groups: list[Group]) -> dict[tuple[str, str], Fraction]:
    """Return, over all worlds that fit the groups, how often each person has each value."""
    counts: Counter[tuple[str, str]] = Counter()
    worlds = list(product(*(set(permutations(values)) for _, values in groups)))
    for world in worlds:
        counts.update(pair for (members, _), own in zip(groups, world) for pair in zip(members, own))
    return {pair: Fraction(count, len(worlds)) for pair, count in counts.items()}


@pytest.mark.parametrize("seed", range(6))
def test_beliefs_after_several_parts_are_those_of_one_release_of_the_same_groups(tmp_path: Path, seed: int) -> None:
    """All worlds of all parts together, against each group enumerated alone."""
    config = series_config(tmp_path, [{"k_anonymity": {"k": 2}}, {"l_diversity": {"kind": "frequency", "l": 2}}])
    people, groups, released = People(seed), list[Group](), set[str]()
    for size in (3, 2, 3, 2):
        extract(tmp_path, people.arrive(size, "abc"))
        part = anon.run(config).to_dict()["series"]["part"]
        new = [row for name, row in people.known.items() if name not in released | waiting(tmp_path)]
        released |= {row["id"] for row in new}
        if part is not None:
            groups += groups_of_part(tmp_path / "out" / f"part-{part:06d}.parquet", new)
    assert groups
    together = beliefs(groups)
    alone = {pair: belief for group in groups for pair, belief in beliefs([group]).items()}
    assert together == alone and max(together.values()) <= Fraction(1, 2)


def test_a_rule_that_holds_back_those_with_the_most_frequent_value_would_show_their_value() -> None:
    """Why everybody waits or nobody: of all assignments of the values of a night to its people, under a rule that
    holds back the surplus of one value, whoever waits has it in every one; under ours, waiting says nothing."""
    values = ("flu", "flu", "flu", "flu", "cold", "cough")

    def surplus(world: tuple[str, ...]) -> frozenset[int]:
        """Hold back people with a value that has more than a third of those who stay."""
        stay = list(range(len(world)))
        while any(3 * n > len(stay) for n in Counter(world[i] for i in stay).values()):
            most = Counter(world[i] for i in stay).most_common(1)[0][0]
            stay.remove(next(i for i in stay if world[i] == most))
        return frozenset(range(len(world))) - set(stay)

    def everybody(world: tuple[str, ...]) -> frozenset[int]:
        unsafe = any(3 * n > len(world) for n in Counter(world).values())
        return frozenset(range(len(world)) if unsafe else ())

    worlds = set(permutations(values))
    for rule, certain in ((surplus, Fraction(1)), (everybody, Fraction(4, 6))):
        fitting = [world for world in worlds if rule(world) == rule(values)]
        waits = min(rule(values))
        assert Fraction(sum(world[waits] == "flu" for world in fitting), len(fitting)) == certain


def test_the_composition_of_two_samples_of_adult_does_not_happen(tmp_path: Path, adult: pa.Table) -> None:
    """Two overlapping 90% samples, k = 5 and frequency l = 3, published as two releases, leave 24 people with one
    possible value. As nights of a series nobody is in two groups, so that everybody has at least three."""
    table = adult.append_column("id", pa.array(range(adult.num_rows)))
    columns = {"age": {}, "education": {}, "sex": {"suppress": True}}
    config = {
        "source": {"path": str(tmp_path / "extract.parquet")},
        "columns": {"individual": "id", "quasi_identifiers": columns, "sensitive": ["occupation"]},
        "nulls": {"sensitive": "drop"},
        "privacy": [{"k_anonymity": {"k": 5}}, {"l_diversity": {"kind": "frequency", "l": 3}}],
        "release": {"path": str(tmp_path / "out"), "run": str(tmp_path / "run"), "series": "append"},
        "limits": {"memory": "1GB", "threads": 2, "temp": str(tmp_path / "spill")},
    }
    samples = [table.filter(pa.array([i % 10 != left for i in range(table.num_rows)])) for left in (0, 1)]
    for sample in samples:
        pq.write_table(sample, tmp_path / "extract.parquet")
        night = anon.run(config).to_dict()["series"]
    assert night["part"] == 2 and night["again"] > 0.85 * samples[0].num_rows
    found = anon.check(config, tmp_path / "out").to_dict()
    assert found["safe"] and found["individuals"] == night["released"]
    possible = []
    for file in sorted((tmp_path / "out").glob("part-*.parquet")):
        groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for row in pq.read_table(file).to_pylist():
            groups[row["age"], row["education"], row["sex"]].add(row["occupation"])
        possible += [len(values) for values in groups.values()]
    assert min(possible) >= 3


def test_check_series_notices_somebody_in_two_parts(tmp_path: Path) -> None:
    """The check of these tests can fail."""
    config, people = series_config(tmp_path), People(1)
    extract(tmp_path, people.arrive(40))
    anon.run(config)
    ledger = tmp_path / "run" / "ledger"
    (ledger / "ids-000002.parquet").write_bytes((ledger / "ids-000001.parquet").read_bytes())
    with pytest.raises(AssertionError, match="in two parts"):
        check_series(tmp_path, config, people)
