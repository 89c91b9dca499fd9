"""Whole runs of merge and colour, judged on the published files: by all possible worlds, by the definition of
dissimilarity, and by `anon check`."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon.errors import ConfigError, UnsafeError
from tests.conftest import House
from tests.oracles import proximity, robustness

Group = tuple[list[dict[str, Any]], list[Any]]  # its rows of quasi-identifiers, and its sensitive values

COLUMNS = {"individual": "row", "quasi_identifiers": {"age": {}, "sex": {}}, "sensitive": ["disease"]}
RELEASE = {"path": "out", "run": "out-run", "form": "bucketized"}
DISEASES = ["asthma", "flu", "HIV", "none", "ulcer", "yaws"]


def people(seed: int, count: int = 40, sexes: str = "fm") -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "age": [rng.randint(20, 60) for _ in range(count)],
            "sex": [rng.choice(sexes) for _ in range(count)],
            "disease": rng.sample([DISEASES[at % 6] for at in range(count)], count),
        }
    )


def merging(r: float = 2, *priors: dict[str, Any], **more: Any) -> dict[str, Any]:
    known = list(priors) or [{"estimate": ["sex"], "smoothing": 1}]
    privacy = [{"r_robustness": {"r": r, "priors": known}}, *more.pop("also", [])]
    return {"columns": COLUMNS, "privacy": privacy, "method": {"kind": "merge"}, "release": RELEASE} | more


def colouring(delta: float, distance: dict[str, Any], epsilon: float, **more: Any) -> dict[str, Any]:
    criterion = {"epsilon": epsilon, "delta": delta, "k": 3, "distance": distance}
    privacy = [{"dissimilarity": criterion}, *more.pop("also", [])]
    return {"columns": COLUMNS, "privacy": privacy, "method": {"kind": "colour"}, "release": RELEASE} | more


def published(folder: Path) -> Iterator[Group]:
    qi, sensitive = (pq.ParquetFile(folder / f"{name}.parquet").read().to_pylist() for name in ("qi", "sensitive"))
    for group in sorted({row["group"] for row in qi}):
        held = [row for row in sensitive if row["group"] == group]
        values = [row["disease"] for row in held for _ in range(row["count"])]
        yield [row for row in qi if row["group"] == group], values


def saved_prior(file: Path) -> dict[str, list[Fraction]]:
    """sex -> probabilities of the diseases in order."""
    found: dict[str, dict[str, Fraction]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            found.setdefault(line["sex"], {})[line["value"]] = Fraction(line.get("p_exact") or line["p"])
    return {sex: [row[disease] for disease in DISEASES] for sex, row in found.items()}


@pytest.mark.parametrize("seed", range(6))
def test_no_world_of_a_published_merge_release_gives_a_posterior_above_one_over_r(house: House, seed: int) -> None:
    table = people(seed)
    result = house.run(table, **merging(2, also=[{"group_size": {"k": 3}}]))
    known = saved_prior(house.folder / "out-run" / "prior-1.csv")
    groups = list(published(house.folder / "out"))
    for rows, values in groups:
        codes = [DISEASES.index(value) for value in values]
        assert len(rows) >= 3
        assert robustness.largest([known[row["sex"]] for row in rows], codes) <= Fraction(1, 2)
    assert Counter(row["age"] for rows, _ in groups for row in rows) == Counter(table["age"].to_pylist())
    assert Counter(value for _, values in groups for value in values) == Counter(table["disease"].to_pylist())
    assert result.safe
    assert result.to_dict()["criteria"][0]["figure"] <= 0.5


def test_the_saved_prior_is_that_of_the_source_and_checks_the_release(house: House) -> None:
    table = people(1)
    house.run(table, **merging(2))
    file = house.folder / "out-run" / "prior-1.csv"
    assert file.stat().st_mode & 0o777 == 0o600
    counts = Counter(zip(table["sex"].to_pylist(), table["disease"].to_pylist()))
    for sex, row in saved_prior(file).items():
        total = sum(counts[sex, disease] for disease in DISEASES)
        assert row == [Fraction(counts[sex, disease] + 1, total + len(DISEASES)) for disease in DISEASES]
    told = house.cli("check", "--on", str(house.folder / "out"), "--prior", str(file), "--json", **merging(2))
    assert told.code == 0, told.stderr
    assert told.json["criteria"][0]["safe"]


def test_recoding_json_tells_of_the_search_and_not_of_people(house: House) -> None:
    house.run(people(3), **merging(2))
    told = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert told["method"] == "merge"
    assert told["algorithm"] == "bottom-up merging"
    assert told["classes"] == 2
    assert told["groups"] == len(list(published(house.folder / "out")))
    house.run(people(3), **colouring(0.5, {"kind": "equal"}, 0))
    told = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert (told["method"], told["algorithm"], told["group_size"]) == ("colour", "round-robin", 3)
    assert not {"nodes", "assignment"} & set(told)


@pytest.mark.parametrize("seed", range(4))
def test_published_colour_releases_satisfy_dissimilarity_by_all_pairs(house: House, seed: int) -> None:
    table = people(seed)
    order = proximity.ordered(DISEASES)
    house.run(table, **colouring(0.5, {"kind": "ordered", "order": DISEASES}, 0.2))
    groups = list(published(house.folder / "out"))
    for rows, values in groups:
        assert len(rows) == len(values) >= 3
        assert proximity.risk(values, Fraction("0.2"), order) <= Fraction(1, 2)
    assert Counter(value for _, values in groups for value in values) == Counter(table["disease"].to_pylist())


def test_distances_by_a_function_are_coloured_too(house: House) -> None:
    """The letters that two names do not share: no order of values makes such neighbourhoods windows."""

    def apart(one: str, other: str) -> int:
        return len(set(one) ^ set(other))

    house.run(people(4, 200), **colouring(0.5, apart, 4))  # type: ignore[arg-type]
    for _, values in published(house.folder / "out"):
        assert proximity.risk(values, Fraction(4), lambda a, b: Fraction(apart(a, b))) <= Fraction(1, 2)


def test_a_value_that_is_too_frequent_is_told_by_its_rank_unless_values_may_be_shown(house: House) -> None:
    table = pa.table({"age": list(range(20)), "sex": ["f"] * 20, "disease": ["flu"] * 9 + [f"d{i}" for i in range(11)]})
    house.write(table)
    told = house.cli("run", **merging(3))
    assert told.code == 3
    assert "9 of 20 individuals (0.45 of them) have value #1 by frequency" in told.stderr
    assert "; r is 2.22222 at most" in told.stderr
    assert "flu" not in told.stderr
    assert "have flu, which" in house.cli("run", "--show-values", **merging(3)).stderr
    assert not (house.folder / "out").exists()


def test_a_colouring_that_is_not_found_tells_the_largest_delta(house: House) -> None:
    table = pa.table({"age": list(range(20)), "sex": ["f"] * 20, "disease": ["flu"] * 12 + [f"d{i}" for i in range(8)]})
    house.write(table)
    told = house.cli("run", **colouring(0.8, {"kind": "equal"}, 0))
    assert told.code == 3
    assert "12 of 20 individuals (0.6 of them) lie within epsilon of value #1 by frequency" in told.stderr
    assert "the largest delta that was reached is 0.5" in told.stderr


def test_criteria_that_a_method_does_not_aim_at_must_hold_all_the_same(house: House) -> None:
    numbers = pa.table({"age": list(range(30)), "sex": ["f"] * 30, "disease": [at % 6 for at in range(30)]})
    assert house.run(numbers, **merging(3, also=[{"l_diversity": {"kind": "entropy", "l": 3}}])).safe
    apart = {"variance": {"minimum": 2.5}}
    found = house.run(numbers, **merging(2, also=[apart]))
    assert found.safe and 1 < found.to_dict()["groups"] < 15
    variances = [proximity.variance([*map(Fraction, values)]) for _, values in published(house.folder / "out")]
    assert min(variances) >= 2.5
    with pytest.raises(UnsafeError, match=r"groups that colour made do not satisfy variance; .* fail dissimilarity"):
        house.run(numbers, **colouring(1, {"kind": "equal"}, 0, also=[apart]))


def test_configs_that_cannot_work_are_refused_with_the_reason(house: House) -> None:
    table = people(1)
    with pytest.raises(ConfigError, match=r"release.form: .*bucketized"):
        house.run(table, **(merging(2) | {"release": {"path": "out", "run": "out-run"}}))
    with pytest.raises(ConfigError, match="merge without r_robustness"):
        house.run(table, **(merging(2) | {"privacy": [{"group_size": {"k": 2}}]}))
    with pytest.raises(ConfigError, match="colour with 0 criteria dissimilarity"):
        house.run(table, **(colouring(0.5, {"kind": "equal"}, 0) | {"privacy": [{"group_size": {"k": 2}}]}))
    noted = table.append_column("note", [table["sex"].combine_chunks()])
    with pytest.raises(ConfigError, match="a prior over 'note'; expected a prior over quasi-identifiers"):
        house.run(noted, **merging(2, {"estimate": ["note"], "smoothing": 1}, columns=COLUMNS | {"keep": ["note"]}))


def test_a_binary_prior_from_a_file_protects_the_values_that_it_names(house: House) -> None:
    """Table IV of the paper: lung cancer by sex; here for asthma."""
    file = house.folder / "prior.csv"
    file.write_text("sex,value,p\nm,asthma,0.1\nf,asthma,0.003\n")
    house.run(people(6, 200), **merging(2, {"file": str(file)}))
    known = {"m": Fraction("0.1"), "f": Fraction("0.003")}
    for rows, values in published(house.folder / "out"):
        assert len(set(values)) == len(values) >= 2
        if "asthma" in values:
            assert robustness.against_all_others([known[row["sex"]] for row in rows], 1) <= Fraction(1, 2)
