"""`check` and releases from which a lattice has suppressed everybody with a value that the config names."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon.errors import ConfigError
from tests.conftest import House

POINT = {"l": 0, "k": 0, "m": 0, "c": 0.9}
NAMING: dict[str, dict[str, Any]] = {
    "skyline": {"skyline": {"points": [POINT], "values": {"HIV": [POINT | {"c": 0.5}]}}},
    "exempt": {"skyline": {"points": [POINT], "values": {"HIV": "exempt"}}},
    "entropy": {"l_diversity": {"kind": "entropy", "l": 1.5, "dont_care": ["HIV"]}},
    "recursive": {"l_diversity": {"kind": "recursive", "c": 3, "l": 2, "dont_care": ["HIV"]}},
    "alpha": {"alpha_k": {"alpha": 0.5, "k": 2, "values": ["HIV"]}},
}
ORDER = ["Cold", "Flu", "HIV"]
DISTANCES: dict[str, dict[str, Any]] = {
    "closeness": {"t_closeness": {"t": 0.9, "distance": {"kind": "ordered", "order": ORDER}}},
    "dissimilarity": {
        "dissimilarity": {"epsilon": 0, "delta": 0.2, "k": 2, "distance": {"kind": "ordered", "order": ORDER}}
    },
}
LATTICE = {"kind": "lattice", "suppress": 0.1, "exhaustive": True}
SEVERAL = {"columns__individual": "id", "release__form": "bucketized"}


def people(multiplicity: str = "single") -> pa.Table:
    """Two groups of twenty, and one person with HIV who is alone in theirs."""
    rng = random.Random(1)
    rows = [{"id": at, "zip": f"1111{at % 2}", "disease": ORDER[at // 2 % 2]} for at in range(40)]
    if multiplicity != "single":
        rows += [row | {"disease": ORDER[rng.randrange(2)]} for row in rows[:10]]
    return pa.Table.from_pylist([*rows, {"id": 99, "zip": "22222", "disease": "HIV"}])


def config(criterion: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "columns__quasi_identifiers": {"zip": {"suppress": True}},
        "privacy": [{"group_size": {"k": 2}}, criterion],
        "method": LATTICE,
    } | changes


def run(house: House, changes: dict[str, Any]) -> None:
    table = people(changes.get("columns__multiplicity", "single"))
    told = house.run(table, **changes).to_dict()
    assert told["suppressed"] == 1 and told["groups"] == 2
    held = [path for path in (house.folder / "out").glob("*.parquet") if path.stem != "qi"]
    assert "HIV" not in pq.read_table(held[0])["disease"].to_pylist()


@pytest.mark.parametrize("criterion", NAMING | DISTANCES)
@pytest.mark.parametrize("form", ["generalized", "bucketized"])
def test_a_published_release_is_safe_in_every_form_that_it_is_given(house: House, criterion: str, form: str) -> None:
    changes = config((NAMING | DISTANCES)[criterion], release__form=form)
    run(house, changes)
    out = house.folder / "out"
    files = [out / "release.parquet"] if form == "generalized" else [out / "qi.parquet", out / "sensitive.parquet"]
    frames = [pq.read_table(file) for file in files]
    tables = [out, files[0], frames[0]] if form == "generalized" else [out, tuple(files), tuple(frames)]
    for table in tables:
        told = house.check(table, **changes).to_dict()
        assert told["safe"]
        codes = [warning["code"] for warning in told["warnings"]]
        assert codes.count("absent_value") == (criterion in NAMING)


@pytest.mark.parametrize("multiplicity", ["set", "multiset"])
def test_sets_and_multisets_are_checked_alike(house: House, multiplicity: str) -> None:
    changes = config(NAMING["skyline"], columns__multiplicity=multiplicity, **SEVERAL)
    run(house, changes)
    assert house.check(house.folder / "out", **changes).safe
    assert house.check(house.folder / "out", **(changes | {"method": {"kind": "partition"}})).safe


def test_the_release_itself_says_whether_it_has_suppressed_anybody(house: House) -> None:
    """Also to a config whose method suppresses nobody, as one for checks may have; and its word is enough."""
    changes = config(NAMING["skyline"])
    run(house, changes)
    partition = changes | {"method": {"kind": "partition"}}
    out = house.folder / "out"
    assert house.check(out, **partition).safe and house.check(out / "release.parquet", **partition).safe
    with pytest.raises(ConfigError, match=r"HIV.*occurs in the data"):
        house.check(pq.read_table(out / "release.parquet"), **partition)
    for text in (json.dumps({"suppressed_share": 0}), "[]", "{", json.dumps({"suppressed_share": "x"})):
        (out / "datapackage.json").write_text(text)
        with pytest.raises(ConfigError, match=r"HIV.*occurs in the data"):
            house.check(out, **partition)
    (out / "datapackage.json").write_text(json.dumps({"suppressed_share": 0}))
    with pytest.raises(ConfigError, match=r"HIV.*occurs in the data"):  # nobody was suppressed: it is misspelt
        house.check(out, **changes)


def test_another_package_does_not_speak_for_a_table(house: House, tmp_path: Path) -> None:
    changes = config(NAMING["skyline"])
    run(house, changes)
    other = house.write(pq.read_table(house.folder / "out" / "release.parquet"), "elsewhere/table.parquet")
    package = {"suppressed_share": 0.5, "resources": [{"path": "other.parquet"}]}
    (other.parent / "datapackage.json").write_text(json.dumps(package))
    with pytest.raises(ConfigError, match=r"HIV.*occurs in the data"):
        house.check(other, **(changes | {"method": {"kind": "partition"}}))


def test_a_value_in_another_spelling_is_still_refused(house: House) -> None:
    run(house, config(NAMING["skyline"]))
    misspelt = {"skyline": {"points": [POINT], "values": {"flu": [POINT]}}}
    with pytest.raises(ConfigError, match=r"'flu'.*only in how it is written"):
        house.check(house.folder / "out", **config(misspelt))


def test_a_named_value_that_is_absent_counts_as_a_warning(house: House) -> None:
    changes = config(NAMING["alpha"])
    run(house, changes)
    (warning,) = [w for w in house.check(house.folder / "out", **changes).to_dict()["warnings"] if "alpha" in w["text"]]
    assert warning == {
        "code": "absent_value",
        "count": 1,
        "severity": "low",
        "column": "disease",
        "text": "value named in alpha_k that nobody in this release has: suppressed, or misspelt?",
    }


def test_the_source_of_a_run_must_have_the_named_values(house: House) -> None:
    table = people().filter(pa.array([True] * 40 + [False]))
    with pytest.raises(ConfigError, match=r"HIV.*occurs in the data"):
        house.run(table, **config(NAMING["skyline"]))
