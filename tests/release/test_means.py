"""Kept numbers published as means or rounded (`columns.aggregate`): the release against the definition in fractions,
the same bytes whatever the memory, threads and order of rows, and verification that notices other values."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import anon
from anon.errors import ConfigError, VerificationError
from anon.release import means
from anon.release.means import MeanColumn
from tests.conftest import House
from tests.helpers.staged import staged
from tests.oracles import means as oracle

N = 3
SIZES = [2, N, N + 1, 2 * N - 1, 2 * N, 2 * N + 1, 17]
COLUMNS: dict[str, Any] = {
    "individual": "row", "quasi_identifiers": {"g": {"suppress": True}}, "sensitive": ["s"],
    "keep": ["whole", "money", "lab"],
}  # fmt: skip
K = [{"k_anonymity": {"k": 2}}]
PLACES = {"whole": 2, "money": 4, "lab": 6}
MEANS = {"whole": {"mean": "group"}, "money": {"mean": N}, "lab": {"mean": N}}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {"g": pa.string(), "s": pa.string(), "whole": pa.int64(), "money": pa.decimal128(9, 2), "lab": pa.float64()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def random_rows(seed: int, spread: int, missing: float) -> list[dict[str, Any]]:
    """Groups of every length around N; few different values make ties between runs."""
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < missing else value

    return [
        {
            "g": f"g{group}",
            "s": rng.choice("ab"),
            "whole": maybe(rng.randint(-spread, spread)),
            "money": maybe(Decimal(rng.randint(-spread, spread)) / 100),
            "lab": maybe(rng.randint(-spread, spread) / 8),
        }
        for group, size in enumerate(SIZES)
        for _ in range(size)
    ]


def exact(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["s"], *(None if row[name] is None else Fraction(str(row[name])) for name in PLACES))


def expected(rows: list[dict[str, Any]], aggregate: dict[str, Any]) -> Counter[tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["g"]].append(exact(row))
    sizes = {1 + at: (aggregate[name]["mean"], PLACES[name]) for at, name in enumerate(PLACES) if name in aggregate}
    return Counter((g, *row) for g, own in groups.items() for row in oracle.aggregated(own, sizes))


def released(house: House) -> Counter[tuple[Any, ...]]:
    return Counter((row["g"], *exact(row)) for row in house.released().to_pylist())


STRUCTURED = {
    "ties": random_rows(1, 1, 0.0),
    "one value": random_rows(2, 0, 0.0),
    "many missing": random_rows(3, 40, 0.6),
    "all missing": random_rows(4, 5, 1.0),
}


@pytest.mark.parametrize(
    "rows", [*(random_rows(seed, 10 ** (seed % 4), 0.15) for seed in range(12))], ids=str(range(12))
)
def test_random_groups_get_the_means_of_the_definition(house: House, rows: list[dict[str, Any]]) -> None:
    house.run(table(rows), columns=COLUMNS | {"aggregate": MEANS}, privacy=K)
    assert released(house) == expected(rows, MEANS)


@pytest.mark.parametrize("name", STRUCTURED)
def test_ties_and_missing_values_get_the_means_of_the_definition(house: House, name: str) -> None:
    rows = STRUCTURED[name]
    house.run(table(rows), columns=COLUMNS | {"aggregate": MEANS}, privacy=K)
    assert released(house) == expected(rows, MEANS)


def test_the_definition_makes_runs_of_n_to_2n_minus_1() -> None:
    for size in range(1, 60):
        lengths = [len(run) for run in oracle.runs(range(size), 5)]
        assert sum(lengths) == size and lengths == sorted(lengths, reverse=True)
        assert size < 5 or all(5 <= length <= 9 for length in lengths)


def test_a_lattice_that_suppresses_and_a_reused_recoding_publish_means(house: House) -> None:
    rows = random_rows(7, 50, 0.1)
    lattice = {"kind": "lattice", "suppress": 0.2}
    house.run(table(rows), columns=COLUMNS | {"aggregate": MEANS}, privacy=[{"k_anonymity": {"k": 4}}], method=lattice)
    kept = [row for row in rows if sum(other["g"] == row["g"] for other in rows) >= 4]
    assert len(kept) < len(rows) and released(house) == expected(kept, MEANS)
    later = random_rows(17, 50, 0.1)
    reuse = {"kind": "reuse", "run": str(house.folder / "out-run")}
    release = {"path": "later", "run": "later-run"}
    changes = {"columns": COLUMNS | {"aggregate": MEANS}, "privacy": K, "method": reuse, "release": release}
    house.run(table(later), **changes)
    found = Counter((row["g"], *exact(row)) for row in house.released(place="later").to_pylist())
    assert found == expected([row for row in later if row["g"] != "g0" and row["g"] != "g1"], MEANS)


def test_the_mean_of_each_group_is_kept_up_to_rounding(house: House) -> None:
    rows = random_rows(5, 1000, 0.0)
    house.run(table(rows), columns=COLUMNS | {"aggregate": {"money": {"mean": 2}}}, privacy=K)
    for name in {row["g"] for row in rows}:
        before = [Fraction(str(row["money"])) for row in rows if row["g"] == name]
        after = [Fraction(str(row["money"])) for row in house.released().to_pylist() if row["g"] == name]
        assert abs(sum(before) - sum(after)) / len(before) <= Fraction(1, 2 * 10**4)


def test_halves_are_rounded_away_from_zero(house: House) -> None:
    frame = pa.table({"g": ["a", "a", "b", "b"], "s": ["x", "y", "x", "y"], "whole": [1, 2, -1, -2]})
    columns = COLUMNS | {"keep": ["whole"], "aggregate": {"whole": {"mean": "group", "places": 0}}}
    house.run(frame, columns=columns, privacy=K)
    found = house.released()
    assert found["whole"].to_pylist() == [2, 2, -2, -2] and found.schema.field("whole").type == pa.int64()


def test_the_same_bytes_for_any_memory_threads_and_order_of_rows(house: House) -> None:
    rng = random.Random(9)
    rows = [
        {"g": f"g{rng.randint(0, 40)}", "s": rng.choice("abc"), "whole": rng.randint(0, 5),
         "money": Decimal(rng.randint(0, 9)), "lab": rng.randint(0, 3) / 4}
        for _ in range(4_000)
    ]  # fmt: skip
    changes = {"columns": COLUMNS | {"aggregate": MEANS}, "privacy": K}
    house.run(table(rows), **changes)
    before = house.bytes()
    for limits in ({"memory": "400MB", "threads": 1}, {"memory": "2GB", "threads": 3}):
        rng.shuffle(rows)
        house.run(table(rows), limits={"temp": "temp", **limits}, **changes)
        assert house.bytes() == before


def test_numbers_may_be_rounded_and_keep_the_rule_of_sensitive_columns(house: House) -> None:
    frame = pa.table(
        {"g": ["a"] * 4, "s": [149, 150, -150, 0], "whole": [149, 150, -150, None], "lab": [0.35, -0.35, 0.0, 2.0]}
    )
    columns = COLUMNS | {
        "sensitive": {"s": {"round": 100}}, "keep": ["whole", "lab"],
        "aggregate": {"whole": {"round": 100}, "lab": {"round": 0.1}},
    }  # fmt: skip
    result = house.run(frame, columns=columns, privacy=K)
    rows = house.released().sort_by([("s", "ascending"), ("lab", "ascending")])
    assert rows["s"].to_pylist() == [-200, 0, 100, 200]
    assert rows["whole"].to_pylist() == [-200, None, 100, 200]
    assert rows["lab"].to_pylist() == [Decimal("0.0"), Decimal("2.0"), Decimal("0.4"), Decimal("-0.4")]
    lost = result.report["utility"]["aggregated"]
    assert lost["whole"]["mean_change"] == pytest.approx((49 + 50 + 50) / 3)
    assert lost["s"]["mean_change"] == pytest.approx((49 + 50 + 50) / 4)
    mean, values = 149 / 3, [149, 150, -150]
    assert lost["whole"]["variance_lost"] == pytest.approx((49**2 + 2 * 50**2) / sum((v - mean) ** 2 for v in values))


def test_the_loss_is_that_of_the_definition(house: House) -> None:
    rows = random_rows(11, 300, 0.2)
    result = house.run(table(rows), columns=COLUMNS | {"aggregate": MEANS}, privacy=K)
    for at, name in enumerate(PLACES):
        pairs, withheld, fewest = pairs_of(rows, 1 + at, MEANS[name]["mean"], PLACES[name])
        centre = sum(before for before, _ in pairs) / len(pairs)
        lost = result.report["utility"]["aggregated"][name]
        squares = sum((before - after) ** 2 for before, after in pairs)
        assert lost["variance_lost"] == pytest.approx(float(squares / sum((b - centre) ** 2 for b, _ in pairs)))
        assert lost["mean_change"] == pytest.approx(float(sum(abs(b - a) for b, a in pairs) / len(pairs)))
        assert (lost["withheld"], lost["fewest"]) == (withheld, fewest)


def pairs_of(rows: list[dict[str, Any]], column: int, size: Any, places: int) -> tuple[list[Any], int, int]:
    """Values with their means, the number of values without one, and the fewest values of a mean."""
    groups, pairs, withheld, lengths = defaultdict(list), [], 0, []
    for row in rows:
        if exact(row)[column] is not None:
            groups[row["g"]].append(exact(row)[column])
    for own in groups.values():
        for run in oracle.runs(sorted(own), size):
            if len(run) >= (2 if size == "group" else size):
                mean = oracle.rounded(sum(run) / len(run), places)
                pairs += [(value, mean) for value in run]
                lengths.append(len(run))
            else:
                withheld += len(run)
    return pairs, withheld, min(lengths)


def test_recipients_and_the_report_learn_what_is_published(house: House) -> None:
    rows = random_rows(6, 100, 0.0)
    aggregate = MEANS | {"lab": {"round": 5}}
    result = house.run(table(rows), columns=COLUMNS | {"aggregate": aggregate}, privacy=K)
    package = json.loads((house.folder / "out" / "datapackage.json").read_text())
    fields = {field["name"]: field.get("description") for field in package["resources"][0]["schema"]["fields"]}
    said = {"whole": "the mean of the group", "money": "means of at least 3 values of the group"}
    assert fields == {"g": None, "s": None, **said, "lab": "rounded to multiples of 5"}
    assert said.items() <= {role["name"]: role["published"] for role in result.report["roles"]}.items()
    assert result.report["summary"]["with_kept"]["whole"]["unique_share"] == 0
    page = (house.folder / "out-run" / "report.html").read_text()
    assert "of the variance of money is lost" in page


def test_the_terminal_and_anon_utility_report_the_loss(house: House) -> None:
    house.write(table(random_rows(6, 100, 0.0)))
    changes = {"columns": COLUMNS | {"aggregate": MEANS | {"lab": {"round": 5}}}, "privacy": K}
    assert "of the variance of money is lost" in " ".join(house.cli("run", **changes).stdout.split())
    measured = anon.utility(house.config(**changes), str(house.folder / "out" / "release.parquet"))
    assert measured.facts["aggregated"]["lab"]["mean_change"] > 0


@pytest.mark.parametrize("column", ["whole", "money", "lab"])
def test_verification_refuses_another_value_in_a_column_of_means(house: House, column: str) -> None:
    rows = random_rows(8, 1000, 0.0)
    (house.folder / "copy").mkdir()
    run = lambda: house.run(table(rows), columns=COLUMNS | {"aggregate": MEANS}, privacy=K)  # noqa: E731
    with staged(house.folder / "copy", run) as release:
        whole = release.tables[0]
        release.verify([whole])
        values = whole[column].combine_chunks()
        more = pa.array([Decimal(values[-1].as_py()) + Decimal(1).scaleb(-PLACES[column])], values.type)
        changed = pa.concat_arrays([values.slice(0, len(values) - 1), more])
        at = whole.schema.get_field_index(column)
        with pytest.raises(VerificationError, match="other values"):
            release.verify([whole.set_column(at, whole.schema.field(column), changed)])


@pytest.mark.parametrize("broken", ["one run", "no order"])
def test_verification_does_not_rely_on_the_code_of_the_release(
    house: House, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    original = means._create_in_order
    if broken == "one run":
        monkeypatch.setattr(MeanColumn, "_runs", lambda self, table: f"SELECT g, r, v, 0 AS run FROM {table}")
    else:
        monkeypatch.setattr(
            means, "_create_in_order", lambda *given: original(*given[:3], given[3].replace("v, r", "r"))
        )
    with pytest.raises(VerificationError, match="other values"):
        house.run(table(random_rows(8, 1000, 0.0)), columns=COLUMNS | {"aggregate": MEANS}, privacy=K)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "sensitive": ({"aggregate": {"s": {"mean": "group"}}}, r"aggregate\.s.*a sensitive column.*round"),
    "not kept": ({"aggregate": {"mony": {"mean": "group"}}}, "did you mean `money`"),
    "both": ({"aggregate": {"money": {"mean": 3, "round": 5}}}, "either mean or round"),
    "neither": ({"aggregate": {"money": {}}}, "either mean or round"),
    "one value": ({"aggregate": {"money": {"mean": 1}}}, "group, or a number of values of at least 2"),
    "places with round": ({"aggregate": {"money": {"round": 5, "places": 2}}}, "no places with round"),
    "too few places": ({"aggregate": {"money": {"mean": 3, "places": 1}}}, "at least 2; or round the column"),
    "text": ({"keep": ["g2"], "aggregate": {"g2": {"mean": 3}}}, "type text with `mean`"),
    "dates": ({"keep": ["day"], "aggregate": {"day": {"mean": 3}}}, "type date with `mean`"),
    "infinite": ({"keep": ["far"], "aggregate": {"far": {"mean": 3}}}, "finite numbers"),
    "large": ({"keep": ["large"], "aggregate": {"large": {"mean": 3}}}, "small enough to round"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_mean_is_refused_with_the_reason(house: House, case: str) -> None:
    rows = table(random_rows(8, 10, 0.0))
    more: dict[str, pa.Array] = {
        "g2": pa.array(["x"] * len(rows)),
        "day": pa.array([1] * len(rows), pa.date32()),
        "far": pa.array([float("inf")] * len(rows)),
        "large": pa.array([9 * 10**18] * len(rows)),
    }
    for name, values in more.items():
        rows = rows.append_column(name, values)
    columns, message = REFUSED[case]
    with pytest.raises(ConfigError, match=message):
        house.run(rows, columns=COLUMNS | columns, privacy=K)


def test_means_are_refused_where_groups_have_no_labels_of_their_own_and_on_spark(house: House) -> None:
    columns = COLUMNS | {"aggregate": {"money": {"mean": 3}}}
    bucketized = {"path": "out", "run": "out-run", "form": "bucketized"}
    with pytest.raises(ConfigError, match=r"money\.mean.*3 with form bucketized"):
        house.run(
            table(random_rows(8, 10, 0.0)), columns=columns, privacy=[{"group_size": {"k": 2}}], release=bucketized
        )
    with pytest.raises(ConfigError, match=r"money\.mean.*3 with backend spark"):
        house.run(table(random_rows(8, 10, 0.0)), columns=columns, privacy=K, backend={"kind": "spark"})


def test_rounded_numbers_may_be_published_in_bucketized_form(house: House) -> None:
    columns = COLUMNS | {"aggregate": {"money": {"round": 5}}}
    bucketized = {"path": "out", "run": "out-run", "form": "bucketized"}
    rows = random_rows(8, 9999, 0.0)
    house.run(table(rows), columns=columns, privacy=[{"group_size": {"k": 2}}], release=bucketized)
    assert all(value % 5 == 0 for value in house.released("qi.parquet")["money"].to_pylist())
