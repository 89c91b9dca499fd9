"""Verification ties every published group to the source: releases of every method, form and format with other content
than the source's rows have under the written recoding are refused, although each marginal may be as before."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anon.config import load
from anon.cube import Domain
from anon.errors import VerificationError
from anon.recoding.levels import LevelRecoding
from anon.recoding.outcome import Outcome
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import Recoding
from anon.search import dispatch
from tests.conftest import House
from tests.helpers import release as helpers
from tests.helpers.staged import Staged
from tests.helpers.staged import staged as stage

Random = random.Random
Row = dict[str, Any]
Rows = list[Row]
Release = list[Rows]  # the rows of one table, or of the two of a bucketized one
ROUNDS = 3  # of every kind of change, on every release

QUASI_IDENTIFIERS = {
    "age": {}, "score": {}, "born": {"calendar": ["day", "month", "year"]}, "city": {}, "zip": {"digits": 2},
}  # fmt: skip
FEW = {"age": {"intervals": [5, 10]}, "sex": {"suppress": True}}
AGAIN = {"age": {}, "score": {}, "zip": {"digits": 2}}
LEVELS = {"kind": "lattice", "suppress": 0.1}
K = [{"group_size": {"k": 3}}]
SEVERAL = {"columns__individual": "name", "columns__quasi_identifiers": FEW, "release__form": "bucketized"}
CASES: dict[str, dict[str, Any]] = {
    "partition": {},
    "partition csv": {"release__format": "csv"},
    "partition bucketized": {"release__form": "bucketized"},
    "partition exact csv": {"release__form": "bucketized", "release__labels": "exact", "release__format": "csv"},
    "lattice": {"method": LEVELS, "columns__quasi_identifiers": FEW},
    "lattice csv": {"method": {"kind": "lattice"}, "columns__quasi_identifiers": FEW, "release__format": "csv"},
    "lattice bucketized": {"method": LEVELS, "columns__quasi_identifiers": FEW, "release__form": "bucketized"},
    "lattice exact csv": {
        "method": LEVELS, "columns__quasi_identifiers": FEW, "release__form": "bucketized", "release__labels": "exact",
        "release__format": "csv",
    },
    "merge": {
        "method": {"kind": "merge"}, "columns__quasi_identifiers": FEW, "release__form": "bucketized",
        "privacy": [{"r_robustness": {"r": 2, "priors": [{"estimate": ["sex"], "smoothing": 1}]}}],
    },
    "merge without kept columns": {
        "method": {"kind": "merge"}, "columns__quasi_identifiers": {"age": {}, "sex": {}}, "columns__keep": [],
        "privacy": [{"r_robustness": {"r": 2, "priors": [{"estimate": ["sex"], "smoothing": 1}]}}],
        "release__form": "bucketized",
    },
    "colour csv": {
        "method": {"kind": "colour"}, "columns__quasi_identifiers": FEW, "release__form": "bucketized",
        "release__format": "csv",
        "privacy": [{"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 3, "distance": {"kind": "equal"}}}],
    },
    "reuse": {"earlier": {"kind": "partition"}, "columns__quasi_identifiers": AGAIN},
    "reuse lattice csv": {"earlier": LEVELS, "columns__quasi_identifiers": FEW, "release__format": "csv"},
    "set": {"columns__multiplicity": "set", **SEVERAL},
    "multiset csv": {"columns__multiplicity": "multiset", "release__format": "csv", **SEVERAL},
    "multiset lattice": {"columns__multiplicity": "multiset", "method": LEVELS, **SEVERAL},
}  # fmt: skip


def source_rows(seed: int = 5, count: int = 90, several: bool = False) -> Rows:
    """Rows with nulls, ties, negative numbers and words of the label grammar. `several`: some individuals have
    more than one value."""
    rng = Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.06 else value

    people = [
        {
            "name": f"p{number}",
            "age": rng.randint(-3, 30),
            "score": maybe(rng.choice([-1.5, 0.0, 0.1, 2.25, 1e6])),
            "born": maybe(dt.date(2023, 11, 20) + dt.timedelta(days=rng.randint(0, 60))),
            "city": maybe(rng.choice(["Zürich", "a|b", "not null x", "back\\slash"])),
            "zip": f"{rng.randint(0, 2)}{rng.randint(0, 4)}",
            "sex": rng.choice("fm"),
            "weight": maybe(rng.choice([0.0, 1.5, -2.25])),
            "note": rng.choice(["", "x", "two\nlines"]),
        }
        for number in range(count)
    ]
    times = [rng.choice([1, 1, 2, 3]) if several else 1 for _ in people]
    return [row | {"d": rng.choice("abcd")} for row, own in zip(people, times) for _ in range(own)]


def changes_of(case: str) -> dict[str, Any]:
    columns = {
        "identifiers": [], "individual": "row", "quasi_identifiers": QUASI_IDENTIFIERS, "sensitive": ["d"],
        "keep": ["weight", "note"],
    }  # fmt: skip
    return {"columns": columns, "privacy": K, **CASES[case]}


def table_of(rows: Rows) -> pa.Table:
    kinds = {"score": pa.float64(), "weight": pa.float64(), "born": pa.date32()}
    return pa.table({name: pa.array([row[name] for row in rows], kinds.get(name)) for name in rows[0]})


@pytest.fixture(scope="module", params=CASES)
def staged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staged]:
    folder, copy = tmp_path_factory.mktemp("staged"), tmp_path_factory.mktemp("copy")
    rows, changes = source_rows(several="set" in request.param), changes_of(request.param)
    if "earlier" in changes:
        first = tmp_path_factory.mktemp("first")
        large = {"privacy": [{"group_size": {"k": 9}}], "method": changes.pop("earlier")}
        helpers.run(first, table_of(rows), **(changes | large))
        rows += source_rows(6)
        changes["method"] = {"kind": "reuse", "run": str(first / "out-run")}
    with stage(copy, lambda: helpers.run(folder, table_of(rows), **changes)) as found:
        found.config = load(found.config.original | {"privacy": [{"group_size": {"k": 2}}]})  # priors are gone by now
        yield found


def roles(staged: Staged) -> tuple[list[str], list[str]]:
    """The columns that are quasi-identifiers, and the kept ones."""
    return list(staged.config.columns.quasi_identifiers), list(staged.config.columns.keep)


def by_group(staged: Staged, rows: Rows) -> list[list[int]]:
    """The places of the rows of each group."""
    key = ["group"] if staged.written.values else roles(staged)[0]
    found: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault(tuple(row[name] for name in key), []).append(place)
    return list(found.values())


def two_of(rng: Random, staged: Staged, rows: Rows) -> tuple[int, int]:
    """Places of two rows of different groups."""
    one, two = rng.sample(by_group(staged, rows), 2)
    return rng.choice(one), rng.choice(two)


def exchange(rows: Rows, one: int, two: int, names: list[str]) -> None:
    for name in names:
        rows[one][name], rows[two][name] = rows[two][name], rows[one][name]


# Changes of what the first table says


def labels_of_two_groups(rng: Random, staged: Staged, release: Release) -> None:
    rows, names = release[0], roles(staged)[0]
    one, two = rng.sample(by_group(staged, rows), 2)
    first, second = ({name: rows[group[0]][name] for name in names} for group in (one, two))
    for place in one:
        rows[place] |= second
    for place in two:
        rows[place] |= first


def one_label_of_two_groups(rng: Random, staged: Staged, release: Release) -> None:
    rows, name = release[0], rng.choice(roles(staged)[0])
    one, two = rng.sample(by_group(staged, rows), 2)
    first, second = rows[one[0]][name], rows[two[0]][name]
    for place in one:
        rows[place][name] = second
    for place in two:
        rows[place][name] = first


def quasi_identifiers_of_two_rows(rng: Random, staged: Staged, release: Release) -> None:
    exchange(release[0], *two_of(rng, staged, release[0]), roles(staged)[0])


def kept_values_of_two_rows(rng: Random, staged: Staged, release: Release) -> None:
    exchange(release[0], *two_of(rng, staged, release[0]), roles(staged)[1])


def one_cell_of_two_rows(rng: Random, staged: Staged, release: Release) -> None:
    names = [name for name in release[0][0] if name != "group"]
    exchange(release[0], *rng.sample(range(len(release[0])), 2), [rng.choice(names)])


def a_row_twice_and_another_never(rng: Random, staged: Staged, release: Release) -> None:
    group = rng.choice(by_group(staged, release[0]))
    one, two = rng.choice(group), rng.choice(group if release[1:] else range(len(release[0])))
    release[0][one] = dict(release[0][two])


def a_cell_changed(rng: Random, staged: Staged, release: Release) -> None:
    rows = rng.choice(release)
    name = rng.choice([name for name in rows[0] if name not in ("group", "count")])
    rng.choice(rows)[name] = rng.choice([row[name] for row in rows])


def minus_zero(rng: Random, staged: Staged, release: Release) -> None:
    zeros = [row for row in release[0] if row.get("weight") == 0]
    if zeros:
        rng.choice(zeros)["weight"] = -0.0


# Changes of sensitive values


def sensitive_values_dealt_anew(rng: Random, staged: Staged, release: Release) -> None:
    dealt([row["d"] for row in release[-1] for _ in range(row.get("count", 1))], rng, staged, release)


def sensitive_values_of_two_rows(rng: Random, staged: Staged, release: Release) -> None:
    if not release[1:]:
        exchange(release[0], *two_of(rng, staged, release[0]), ["d"])
        return
    held = Counter({(row["group"], row["d"]): row["count"] for row in release[1]})
    (one, first), (two, second) = rng.sample(sorted(held), 2)
    held -= Counter([(one, first), (two, second)])
    put(release, held + Counter([(one, second), (two, first)]))


def dealt(values: list[str], rng: Random, staged: Staged, release: Release) -> None:
    rng.shuffle(values)
    if not release[1:]:
        for row, value in zip(release[0], values):
            row["d"] = value
        return
    groups = [row["group"] for row in release[1] for _ in range(row["count"])]
    put(release, Counter(zip(groups, values)))


def counts_of_two_values(rng: Random, staged: Staged, release: Release) -> None:
    if release[1:]:
        exchange(release[1], *rng.sample(range(len(release[1])), 2), ["count"])


def values_of_two_groups(rng: Random, staged: Staged, release: Release) -> None:
    """Two buckets exchange all their sensitive values."""
    if release[1:]:
        one, two = rng.sample(sorted({row["group"] for row in release[1]}), 2)
        for row in release[1]:
            row["group"] = {one: two, two: one}.get(row["group"], row["group"])


def put(release: Release, held: Counter[tuple[int, str]]) -> None:
    release[1] = [{"group": group, "d": value, "count": count} for (group, value), count in held.items()]


CHANGES: list[Callable[[Random, Staged, Release], None]] = [
    labels_of_two_groups, one_label_of_two_groups, quasi_identifiers_of_two_rows, kept_values_of_two_rows,
    one_cell_of_two_rows, a_row_twice_and_another_never, a_cell_changed, minus_zero, sensitive_values_dealt_anew,
    sensitive_values_of_two_rows, counts_of_two_values, values_of_two_groups,
]  # fmt: skip


def said(release: Release) -> Any:
    """What a release says, whatever the order of its rows and the numbers of its groups."""

    def bag(rows: Rows) -> frozenset[Any]:
        return frozenset(Counter(repr({n: v for n, v in row.items() if n != "group"}) for row in rows).items())

    if not release[1:]:
        return bag(release[0])
    groups = {row["group"] for row in release[0]}
    return Counter(tuple(bag([row for row in rows if row["group"] == g]) for rows in release) for g in groups)


def in_order(staged: Staged, release: Release) -> list[pa.Table]:
    ordered = [sorted(rows, key=helpers.canonical_key(list(rows[0]))) for rows in release]
    return [pa.Table.from_pylist(rows, table.schema) for rows, table in zip(ordered, staged.tables)]


def test_what_was_written_passes(staged: Staged) -> None:
    found = staged.verify(staged.tables)
    assert found.safe and found.groups >= 2


def test_every_change_of_content_is_refused(staged: Staged) -> None:
    """By the comparison with the source, before anything else is looked at."""
    rng, done = Random(repr(staged.written.types)), Counter[str]()
    before = said([table.to_pylist() for table in staged.tables])
    for change in CHANGES * ROUNDS:
        release = [table.to_pylist() for table in staged.tables]
        change(rng, staged, release)
        if said(release) == before:
            continue
        with pytest.raises(VerificationError, match=r"under the recoding|groups, not|not belong together"):
            staged.verify(in_order(staged, release))
        done[change.__name__] += 1
    assert len(done) >= 7 and done.total() >= 20


# What is written down of the recoding must be what the rows went by, and true of them


def written_otherwise(monkeypatch: pytest.MonkeyPatch, edit: Callable[[dict[str, Any]], None]) -> None:
    """Whatever is written as recoding.json is edited afterwards."""
    for kind in (Recoding, LevelRecoding):

        def write(self: Any, path: Path, original: Any = kind.write) -> None:
            original(self, path)
            recoding = json.loads(path.read_text())
            edit(recoding)
            rest = "nodes" if "nodes" in recoding else "suppressed_cells"
            lines = recoding.pop(rest)
            head = json.dumps(recoding)[:-1] + f', "{rest}": [\n'
            path.write_text(head + ",\n".join(map(json.dumps, lines)) + "\n]}\n")

        monkeypatch.setattr(kind, "write", write)


def exchange_labels(recoding: dict[str, Any]) -> None:
    groups = [node for node in recoding["nodes"] if "group" in node]
    one, two = (next(node for node in groups if node["labels"]["zip"][0] == first) for first in "01")
    one["labels"], two["labels"] = two["labels"], one["labels"]


def move_a_cut(recoding: dict[str, Any]) -> None:
    node = next(node for node in recoding["nodes"] if node.get("column") == "age")
    node["cut"] = str(int(node["cut"]) + 1)


def exchange_children(recoding: dict[str, Any]) -> None:
    node = next(node for node in recoding["nodes"] if "children" in node)
    node["children"] = node["children"][::-1]


def rename_a_label(recoding: dict[str, Any]) -> None:
    node = next(node for node in recoding["nodes"] if "-" in (node.get("label") or ""))
    node["label"] = f"0{node['label']}"


def damage(recoding: dict[str, Any]) -> None:
    next(node for node in recoding["nodes"] if "children" in node)["children"].pop()


def suppress_less(recoding: dict[str, Any]) -> None:
    recoding["suppressed_cells"].pop()


def suppress_more(recoding: dict[str, Any]) -> None:
    recoding["suppressed_cells"].append(["5-9", "f"])


def choose_another_level(recoding: dict[str, Any]) -> None:
    levels = recoding["chosen"]["levels"]
    levels["age"] += 1 if levels["age"] < 3 else -1


def relabel_a_value(recoding: dict[str, Any]) -> None:
    rows = recoding["columns"][0]["hierarchy"]
    rows[0][1:] = rows[-1][1:]


TREE = [exchange_labels, move_a_cut, exchange_children, rename_a_label, damage]
CELLS = [suppress_less, suppress_more, choose_another_level, relabel_a_value]


@pytest.mark.parametrize("edit", [None, *TREE, *CELLS], ids=lambda edit: getattr(edit, "__name__", "as it is"))
def test_a_recoding_that_says_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[[dict[str, Any]], None] | None
) -> None:
    written_otherwise(monkeypatch, edit or (lambda recoding: None))
    case = "lattice" if edit in CELLS else "reuse"
    changes = changes_of(case) | {"columns__keep": []}
    changes.pop("earlier", None)
    if edit is None:
        assert helpers.run(tmp_path, table_of(source_rows()), **changes).safe
        return
    with pytest.raises(VerificationError, match="nothing was published"):
        helpers.run(tmp_path, table_of(source_rows()), **changes)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", ["partition", "reuse"])
def test_labels_that_are_not_true_of_the_rows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Two groups have each other's labels, in the release and in recoding.json alike."""
    changes = changes_of(case)
    if earlier := changes.pop("earlier", None):
        (tmp_path / "first").mkdir()
        helpers.run(tmp_path / "first", table_of(source_rows()), **(changes | {"method": earlier}))
        changes["method"] = {"kind": "reuse", "run": str(tmp_path / "first" / "out-run")}
    original = dispatch.searched

    def searched(*arguments: Any, **options: Any) -> Outcome:
        found = original(*arguments, **options)
        for labels in found.recoding.labels if isinstance(found.recoding, Recoding) else []:
            labels.of_group[[0, -1]] = labels.of_group[[-1, 0]]
        return found

    monkeypatch.setattr(dispatch, "searched", searched)
    with pytest.raises(VerificationError, match=r"not true for \d+ rows"):
        helpers.run(tmp_path, table_of(source_rows()), **changes)


REFINED = {"kind": "partition", "prefer": "loss", "cuts": "ordered", "labels": "tight", "refine": True}
REFINED_COLUMNS = {**QUASI_IDENTIFIERS, "born": {}, "height": {"ends": 2}}


def refined(tmp_path: Path) -> None:
    """Run a refined release of columns of every grammar, one of them with bins."""
    rows = [row | {"height": place % 7} for place, row in enumerate(source_rows())]
    changes = changes_of("partition") | {"columns__quasi_identifiers": REFINED_COLUMNS, "method": REFINED}
    helpers.run(tmp_path, table_of(rows), **changes)


def test_a_refined_release_of_every_kind_of_label_is_verified(tmp_path: Path) -> None:
    refined(tmp_path)
    assert (tmp_path / "out").exists()


def searched_otherwise(monkeypatch: pytest.MonkeyPatch, edit: Callable[[RefinedRecoding], None]) -> None:
    """What the search finds is edited before anything is written."""
    original = dispatch.searched

    def searched(*arguments: Any, **options: Any) -> Outcome:
        found = original(*arguments, **options)
        assert isinstance(found.recoding, RefinedRecoding)
        edit(found.recoding)
        return found

    monkeypatch.setattr(dispatch, "searched", searched)


@pytest.mark.parametrize(
    ("lower", "higher", "words"), [(1, 0, r"not true for \d+ row"), (0, 1, "that reach further|not true")]
)
@pytest.mark.parametrize("column", REFINED_COLUMNS)
def test_refined_labels_that_begin_or_end_one_value_too_high_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, lower: int, higher: int, words: str
) -> None:
    """In the release and wherever else they are written; in bins labels need not be tight."""
    if column == "height" and higher:
        return

    def edit(recoding: RefinedRecoding) -> None:
        j = [domain.column for domain in recoding.domains].index(column)
        own, label = recoding.labels[j], recoding.domains[j].label
        last = recoding.domains[j].size - 1
        ends = [(low + lower * (low < high), min(high + higher, last)) for low, high in own.cells.tolist()]
        recoding.labels[j] = replace(own, labels=pa.array([label(*pair) for pair in ends], pa.string()))

    searched_otherwise(monkeypatch, edit)
    with pytest.raises(VerificationError, match=words):
        refined(tmp_path)
    assert not (tmp_path / "out").exists()


def test_refined_groups_with_the_labels_of_others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def edit(recoding: RefinedRecoding) -> None:
        for labels in recoding.labels:
            labels.of_group[[0, -1]] = labels.of_group[[-1, 0]]

    searched_otherwise(monkeypatch, edit)
    with pytest.raises(VerificationError, match=r"not true for \d+ row"):
        refined(tmp_path)


@pytest.mark.parametrize("refine", [False, True])
def test_a_domain_whose_labels_are_not_true_is_found_out(
    house: House, monkeypatch: pytest.MonkeyPatch, refine: bool
) -> None:
    original = Domain.label
    monkeypatch.setattr(Domain, "label", lambda self, low, high: original(self, min(low + 1, high), high))
    table = pa.table({"age": [0, 1, 20, 21, 40, 41, 60, 61], "disease": ["flu", "cold"] * 4})
    columns = {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}
    method = REFINED | {"refine": refine}
    with pytest.raises(VerificationError, match=r"not true for \d+ row"):
        house.run(table, columns=columns, method=method, privacy=[{"k_anonymity": {"k": 2}}])


@pytest.mark.parametrize("method", ["partition", "lattice"])
@pytest.mark.parametrize("builder", [{"bands": [0, 18, 65]}, {"intervals": [20]}], ids=["bands", "intervals"])
def test_a_builder_whose_labels_do_not_cover_their_values_is_found_out(
    house: House, monkeypatch: pytest.MonkeyPatch, builder: dict[str, Any], method: str
) -> None:
    from anon.hierarchy.intervals import Cells

    between = Cells.between
    monkeypatch.setattr(Cells, "between", lambda self, low, high: between(self, low + 1, high + 1))
    table = pa.table({"age": [18, 18, 20, 30, 40, 50] * 2, "disease": ["flu", "cold"] * 6})
    columns = {"individual": "row", "quasi_identifiers": {"age": builder}, "sensitive": ["disease"]}
    with pytest.raises(VerificationError, match="labels of 'age' that do not cover the value"):
        house.run(table, columns=columns, method={"kind": method}, privacy=[{"k_anonymity": {"k": 3}}])
