"""Verification refuses what is unsafe or not what was meant to be written, and counts what every report tells."""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from anon import pipeline, release
from anon.cli.app import app
from anon.commands.check import check
from anon.criteria.value_names import Names
from anon.errors import SourceError, VerificationError
from anon.release import WrittenRelease
from anon.verify import grouped, judge
from tests.helpers import release as helpers
from tests.helpers.staged import Staged
from tests.helpers.staged import staged as stage
from tests.oracles import skyline

Rows = list[dict[str, Any]]
Random = random.Random

K, POINT = 3, (1, 0, 1, Fraction(9, 10))
LABELS, NAMES = ["age", "sex"], ["age", "sex", "d", "h"]
TYPES = {"age": pa.string(), "sex": pa.string(), "d": pa.string(), "h": pa.int64()}
COLUMNS = {
    "individual": "row",
    "quasi_identifiers": {"age": {}, "sex": {"suppress": True}},
    "sensitive": ["d"],
    "keep": ["h"],
}
PRIVACY = [
    {"k_anonymity": {"k": K}},
    {"skyline": {"points": [{"l": POINT[0], "k": POINT[1], "m": POINT[2], "c": 0.9}]}},
]
UNSAFE, STRUCTURAL, CONTROLS, FULL = 500, 400, 25, 20


def source_table(seed: int = 1, count: int = 70) -> pa.Table:
    rng = Random(seed)
    rows = [
        {"age": rng.randint(0, 30), "sex": rng.choice("fm"), "d": rng.choice("abcde"), "h": i} for i in range(count)
    ]
    return pa.Table.from_pylist(rows)


def as_table(rows: Rows) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})


def groups(rows: Rows) -> dict[Any, list[str]]:
    made: dict[Any, list[str]] = defaultdict(list)
    for row in rows:
        made[row["age"], row["sex"]].append(row["d"])
    return made


def is_safe(rows: Rows) -> bool:
    """By the oracle, in exact fractions."""
    made = list(groups(rows).values())
    values = {row["d"] for row in rows}
    return skyline.safe_k(made, K) and skyline.safe(made, {value: [POINT] for value in values})


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staged]:
    folder, copy = tmp_path_factory.mktemp("staged"), tmp_path_factory.mktemp("copy")
    with stage(copy, lambda: helpers.run(folder, source_table(), columns=COLUMNS, privacy=PRIVACY)) as found:
        yield found


def in_order(rows: Rows) -> list[pa.Table]:
    return [as_table(sorted(rows, key=helpers.canonical_key(NAMES)))]


def judged(staged: Staged, rows: Rows) -> judge.Findings:
    """Verifies rows as a release that was meant to be so: only its safety can be wrong."""
    tables = in_order(rows)
    meant = replace(staged.written, groups=len(groups(rows)))
    return replace(staged, written=meant).verify(tables, expected=staged.content(tables))


# Unsafe releases: everything else about them is as it was meant to be


def _group_of(rng: Random, rows: Rows) -> list[int]:
    age, sex = rng.choice(sorted(groups(rows)))
    return [i for i, row in enumerate(rows) if (row["age"], row["sex"]) == (age, sex)]


def shrink_a_group(rng: Random, rows: Rows) -> Rows:
    members = _group_of(rng, rows)
    gone = set(rng.sample(members, len(members) - rng.randint(1, K - 1)))
    return [row for i, row in enumerate(rows) if i not in gone]


def make_a_group_agree(rng: Random, rows: Rows) -> Rows:
    members = set(_group_of(rng, rows))
    value = rng.choice("abcde")
    return [row | {"d": value} if i in members else row for i, row in enumerate(rows)]


def crowd_a_group(rng: Random, rows: Rows) -> Rows:
    """All but one or two members get one of two values."""
    members = _group_of(rng, rows)
    chosen = set(members[rng.randint(1, 2) :])
    pair = rng.sample("abcde", 2)
    return [row | {"d": rng.choice(pair)} if i in chosen else row for i, row in enumerate(rows)]


def split_a_label(rng: Random, rows: Rows) -> Rows:
    members = _group_of(rng, rows)
    chosen = set(rng.sample(members, rng.randint(1, len(members))))
    return [row | {"age": f"{row['age']}'"} if i in chosen else row for i, row in enumerate(rows)]


def swap_values_between_groups(rng: Random, rows: Rows) -> Rows:
    rows = [dict(row) for row in rows]
    for _ in range(rng.randint(10, 60)):
        one, two = rng.sample(range(len(rows)), 2)
        rows[one]["d"], rows[two]["d"] = rows[two]["d"], rows[one]["d"]
    return rows


MAKE_UNSAFE = [shrink_a_group, make_a_group_agree, crowd_a_group, split_a_label, swap_values_between_groups]


def test_the_release_that_the_mutations_start_from_is_safe(staged: Staged) -> None:
    rows = staged.tables[0].to_pylist()
    assert is_safe(rows) and len(groups(rows)) >= 5
    assert staged.verify(staged.tables).safe
    assert judged(staged, rows).safe


def test_every_unsafe_release_is_refused_for_being_unsafe(staged: Staged) -> None:
    rng, done = Random(2), Counter[str]()
    while done.total() < UNSAFE:
        mutate = MAKE_UNSAFE[done.total() % len(MAKE_UNSAFE)]
        rows = mutate(rng, staged.tables[0].to_pylist())
        if is_safe(rows):
            continue
        with pytest.raises(VerificationError, match="is not safe"):
            judged(staged, rows)
        done[mutate.__name__] += 1
    assert len(done) == len(MAKE_UNSAFE)


def test_changed_releases_that_are_still_safe_pass(staged: Staged) -> None:
    """The oracle and verification agree in both directions: they are not refused for being changed."""
    rng, passed = Random(3), 0
    while passed < CONTROLS:
        rows = rng.choice([swap_values_between_groups, crowd_a_group, split_a_label])(rng, staged.tables[0].to_pylist())
        if is_safe(rows):
            assert judged(staged, rows).safe
            passed += 1


# Releases that are not what was meant to be written


def delete_rows(rng: Random, table: pa.Table) -> pa.Table:
    gone = set(rng.sample(range(len(table)), rng.randint(1, len(table))))
    return table.take(pa.array([i for i in range(len(table)) if i not in gone], pa.int64()))


def duplicate_rows(rng: Random, table: pa.Table) -> pa.Table:
    twice = {rng.randrange(len(table)) for _ in range(rng.randint(1, 3))}
    return table.take(pa.array([j for i in range(len(table)) for j in [i] * (1 + (i in twice))]))


def replace_a_row_by_its_neighbour(rng: Random, table: pa.Table) -> pa.Table:
    at = rng.randrange(1, len(table))
    return table.take(pa.array([i - (i == at) for i in range(len(table))]))


def merge_labels(rng: Random, table: pa.Table) -> pa.Table:
    words = sorted(set(table["age"].to_pylist()))
    one, two = rng.sample(words, 2)
    merged = [two if word == one else word for word in table["age"].to_pylist()]
    return table.set_column(0, "age", pa.array(merged))


def change_a_label(rng: Random, table: pa.Table) -> pa.Table:
    column = rng.randrange(2)
    words = table.column(column).to_pylist()
    words[rng.randrange(len(words))] = rng.choice([None, "", "*x", "0-99"])
    return table.set_column(column, LABELS[column], pa.array(words, pa.string()))


def change_a_value(rng: Random, table: pa.Table) -> pa.Table:
    values = table["d"].to_pylist()
    at = rng.randrange(len(values))
    values[at] = rng.choice([None, "", *(set("abcdef") - {values[at]})])
    return table.set_column(2, "d", pa.array(values, pa.string()))


def change_a_kept_value(rng: Random, table: pa.Table) -> pa.Table:
    values = table["h"].to_pylist()
    values[rng.randrange(len(values))] = rng.choice([None, -1, 10**6])
    return table.set_column(3, "h", pa.array(values, pa.int64()))


def swap_values(rng: Random, table: pa.Table) -> pa.Table:
    values = table["d"].to_pylist()
    one = rng.randrange(len(values))
    two = rng.choice([i for i, value in enumerate(values) if value != values[one]])
    values[one], values[two] = values[two], values[one]
    return table.set_column(2, "d", pa.array(values))


def disorder(rng: Random, table: pa.Table) -> pa.Table:
    order = list(range(len(table)))
    one, two = rng.sample(order, 2)
    order[one], order[two] = two, one
    return table.take(pa.array(order))


def change_the_columns(rng: Random, table: pa.Table) -> pa.Table:
    at = rng.randrange(4)
    names = list(NAMES)
    kinds: list[Callable[[], pa.Table]] = [
        lambda: table.remove_column(at),
        lambda: table.rename_columns([f"{n}_" if i == at else n for i, n in enumerate(names)]),
        lambda: table.select(names[::-1]),
        lambda: table.append_column("name", pa.array([f"p{i}" for i in range(len(table))])),
        lambda: table.set_column(3, "h", table["h"].cast(pa.string())),
        lambda: table.set_column(3, "h", table["h"].cast(pa.int32())),
        lambda: table.set_column(2, "d", table["d"].cast(pa.binary())),
    ]
    return rng.choice(kinds)()


CHANGE = [
    delete_rows,
    duplicate_rows,
    replace_a_row_by_its_neighbour,
    merge_labels,
    change_a_label,
    change_a_value,
    change_a_kept_value,
    swap_values,
    disorder,
    change_the_columns,
]


def test_every_release_that_was_not_meant_to_be_written_is_refused(staged: Staged) -> None:
    rng = Random(4)
    for case in range(STRUCTURAL):
        with pytest.raises(VerificationError, match="nothing was published"):
            staged.verify([CHANGE[case % len(CHANGE)](rng, staged.tables[0])])


def test_releases_with_many_sensitive_values_are_refused_alike(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "FEW_VALUES", 0)
    rng = Random(7)
    assert staged.verify(staged.tables).safe
    for change in CHANGE:
        with pytest.raises(VerificationError, match="nothing was published"):
            staged.verify([change(rng, staged.tables[0])])
    with pytest.raises(VerificationError, match="is not safe"):
        judged(staged, shrink_a_group(rng, staged.tables[0].to_pylist()))


def _content(path: Path) -> list[Any] | None:
    try:
        return duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall()
    except (duckdb.Error, UnicodeDecodeError):
        return None


def test_damaged_files_are_refused(staged: Staged) -> None:
    """A damaged byte may be one that no reader looks at: only what reads back changed must be refused."""
    rng, refused = Random(5), 0
    written, rows = staged.write(staged.tables), staged.tables[0].to_pylist()
    whole = written.path.read_bytes()
    for case in range(150):
        content = bytearray(whole)
        if case % 3 == 0:
            del content[rng.randrange(len(content)) :]
        else:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        written.path.write_bytes(content)
        if _content(written.path) == [tuple(row.values()) for row in rows]:
            continue
        with pytest.raises(VerificationError, match="nothing was published"):
            judge.verify(staged.database, written, staged.config, staged.expected)
        refused += 1
    assert refused > 100


def test_metadata_in_the_file_is_refused(staged: Staged) -> None:
    with pytest.raises(VerificationError, match="carries metadata"):
        staged.verify([staged.tables[0].replace_schema_metadata({"origin": "ward 7"})])


def test_a_stranger_file_beside_the_release_is_refused(staged: Staged) -> None:
    stranger = staged.folder / "extract.parquet"
    stranger.write_bytes(b"x")
    try:
        with pytest.raises(VerificationError, match="files beside it"):
            staged.verify(staged.tables)
    finally:
        stranger.unlink()


def test_csv_headers_and_types_are_verified(staged: Staged) -> None:
    folder = staged.folder / "csv"
    folder.mkdir()
    (folder / "datapackage.json").write_text("{}")
    path = folder / "release.csv"
    written = replace(staged.written, path=path)
    pyarrow.csv.write_csv(staged.tables[0], path)
    good = path.read_text()
    assert judge.verify(staged.database, written, staged.config, staged.expected).safe
    for old, new in (('"age","sex"', '"age","gender"'), ('"age","sex"', '"sex","age"'), ('"h"\n', '"h"\nx,y\n')):
        path.write_text(good.replace(old, new, 1))
        assert path.read_text() != good
        with pytest.raises(VerificationError):
            judge.verify(staged.database, written, staged.config, staged.expected)


# Through the whole way of the data


@pytest.mark.parametrize("through_cli", [False, True])
def test_a_release_that_fails_verification_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through_cli: bool
) -> None:
    rng, original = Random(6), release.write
    pq.write_table(source_table(), tmp_path / "source.parquet")
    given = helpers.config(tmp_path, columns=COLUMNS, privacy=PRIVACY)
    (tmp_path / "config.yaml").write_text(json.dumps(given))
    left = sorted(tmp_path.iterdir())
    for case in range(FULL // 2):
        change = CHANGE[case % len(CHANGE)]

        def mutated(*arguments: Any, change: Any = change) -> WrittenRelease:
            written = original(*arguments)
            pq.write_table(change(rng, pq.ParquetFile(written.path).read()), written.path, store_schema=False)
            return written

        monkeypatch.setattr(release, "write", mutated)
        if through_cli:
            result = CliRunner().invoke(app, ["run", str(tmp_path / "config.yaml")])
            assert result.exit_code == 4, result.output
        else:
            with pytest.raises(VerificationError):
                pipeline.run(given)
        assert sorted(tmp_path.iterdir()) == left


# What every report tells, by brute force


def _share(made: list[list[Any]], condition: Callable[[list[Any]], bool]) -> int:
    return sum(len(group) for group in made if condition(group))


@pytest.mark.parametrize("seed", range(12))
def test_risk_and_homogeneity_are_as_counted_by_hand(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    rows = [
        {
            "age": rng.choice([None, "1-2", "3"]),
            "sex": rng.choice(["*", "f", None]),
            "d": rng.choice([None, "a", "b"]),
            "e": rng.choice([1, 2, None]),
            "h": rng.choice([None, 1.5, float("nan")]),
        }
        for _ in range(rng.randint(1, 40))
    ]
    columns = COLUMNS | {"sensitive": ["d", "e"]}
    given = helpers.config(tmp_path, columns=columns, privacy=[{"k_anonymity": {"k": 2}}])
    types = {"age": pa.string(), "sex": pa.string(), "d": pa.string(), "e": pa.int64(), "h": pa.float64()}
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})
    told = check(given, table).to_dict()

    def made(*names: str) -> list[list[Any]]:
        found: dict[Any, list[Any]] = defaultdict(list)
        for row in rows:
            found[tuple(helpers.comparable(row[name]) for name in names)].append((row["d"], row["e"]))
        return list(found.values())

    def same(group: list[Any]) -> bool:
        return len({d for d, _ in group}) == 1 or len({e for _, e in group}) == 1

    plain, known = made("age", "sex"), made("age", "sex", "h")
    assert told["groups"] == len(plain) and told["rows"] == len(rows)
    assert told["risk"] == {
        "highest": 1 / min(map(len, plain)),
        "mean": len(plain) / len(rows),
        "under_5": _share(plain, lambda group: len(group) < 5),
        "unique_before": None,
        "homogeneous_rows": _share(plain, same),
    }
    assert told["with_kept"]["h"] == {
        "smallest_group": min(map(len, known)),
        "unique_share": _share(known, lambda group: len(group) == 1) / len(rows),
        "homogeneous_share": _share(known, same) / len(rows),
    }


def test_a_table_without_rows_cannot_be_checked(tmp_path: Path) -> None:
    given = helpers.config(tmp_path, columns=COLUMNS, privacy=PRIVACY)
    with pytest.raises(SourceError, match="no rows"):
        check(given, as_table([]))


def test_values_are_named_by_rank_in_linear_time() -> None:
    count = 65_535
    names = Names({"d": [str(i) for i in range(count)]}, {"d": [i % 1000 for i in range(count)]}, {"7"}, False)
    began = time.perf_counter()
    told = [names.of_value("d", code) for code in range(count)]
    assert time.perf_counter() - began < 2
    assert told[999] == "value #1 by frequency" and told[1999] == "value #2 by frequency"
    assert told[7] == "7" and told[0] == f"value #{count - 65} by frequency"
    assert len(set(told)) == count
