"""`anon explain RUN`: why a run came to its release, from its run folder."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import anon
from anon.cli.app import app
from tests.conftest import House

ROWS = {
    "age": [20 + i % 40 for i in range(120)],
    "zip": [f"{i % 7:05d}" for i in range(120)],
    "disease": ["flu" if i % 3 else "cold" for i in range(120)],
}


def explain(folder: Path, *options: str) -> tuple[int, str]:
    told = CliRunner().invoke(app, ["explain", str(folder), *options])
    return told.exit_code, told.stdout if "--json" in options else told.stdout + told.stderr


@pytest.mark.parametrize("method", [{"prefer": "balanced"}, {"kind": "partition"}, {"kind": "lattice"}])
def test_a_run_is_explained_in_words_and_as_json(house: House, method: dict[str, Any]) -> None:
    house.write(ROWS)
    house.run(method=method)
    folder = house.folder / "out-run"
    told = json.loads(explain(folder, "--json")[1])
    assert told["method"]["kind"] == method.get("kind", "partition")
    assert told["groups"] == len(set(zip(*(house.released()[name].to_pylist() for name in ("age", "zip")))))
    assert ("minimal" in told) == (method.get("kind") == "lattice")
    code, said = explain(folder)
    assert code == 0 and f"by method {told['method']['kind']}" in said and "Information loss" in said


def test_all_minimal_combinations_are_listed(house: House) -> None:
    house.write(ROWS)
    result = house.run(method={"kind": "lattice"})
    told = json.loads(explain(house.folder / "out-run", "--json")[1])
    recoding = json.loads((house.folder / "out-run" / "recoding.json").read_text())
    assert told["minimal"] == recoding["minimal"] == result.report["lattice"]["minimal"]
    assert told["chosen"] in told["minimal"]


@pytest.mark.parametrize("report", [None, "", "{}", '{"method": {}, "utility": 1, "summary": {"criteria": []}}'])
def test_a_folder_that_is_no_run_is_told_so(tmp_path: Path, report: str | None) -> None:
    if report is not None:
        (tmp_path / "report.json").write_text(report)
    code, said = explain(tmp_path)
    assert code == 2 and "run folder" in said and "Traceback" not in said


def test_a_report_of_another_version_is_not_explained(house: House) -> None:
    house.write(ROWS)
    house.run()
    path = house.folder / "out-run" / "report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99}))
    code, said = explain(house.folder / "out-run")
    assert code == 2 and "a report.json of version 99" in said


def test_what_blocks_groups_is_counted_group_by_group(house: House) -> None:
    """k = 7 blocks groups of fewer than 14; distinct 2 needs no more than 4. Nobody else says anything of the rest."""
    house.write(ROWS)
    house.run(privacy=[{"k_anonymity": {"k": 7}}, {"l_diversity": {"kind": "distinct", "l": 2}}])
    released = house.released()
    sizes = Counter(zip(released["age"].to_pylist(), released["zip"].to_pylist()))
    told = json.loads(explain(house.folder / "out-run", "--json")[1])
    small = [people for people in sizes.values() if people < 14]
    k, l = told["blocking"]["criteria"]
    assert (k["groups"], k["individuals"]) == (len(small), sum(small)) and small
    assert l["groups"] == 0 and k["only"] == {"groups": len(small), "individuals": sum(small)}
    assert k["largest"][0]["individuals"] == max(small)
    split = {"groups": 0, "individuals": 0} | told["blocking"]["refused"]
    at_most = {name: split[name] + k["only"][name] for name in split}
    assert k["at_most"] == at_most and l["at_most"] == split
    rest = told["blocking"]["refused"]["groups"] + told["blocking"]["finest"]["groups"]
    assert rest == len(sizes) - len(small)
    assert told["binding"] == 0 and told["criteria"][0]["near"] == 7 / min(sizes.values())


def test_groups_as_fine_as_the_data_are_blocked_by_nothing(house: House) -> None:
    house.write({"age": [1] * 4 + [2] * 4, "zip": ["00000"] * 8, "disease": list("abcdabcd")})
    house.run()
    blocking = json.loads(explain(house.folder / "out-run", "--json")[1])["blocking"]
    assert blocking["finest"] == {"groups": 2, "individuals": 8} and blocking["refused"]["groups"] == 0


def test_columns_say_where_they_were_never_cut(house: House) -> None:
    house.write(ROWS)
    house.run(privacy=[{"k_anonymity": {"k": 30}}])
    released = house.released()
    for column in json.loads(explain(house.folder / "out-run", "--json")[1])["columns"]:
        labels = released[column["column"]].to_pylist()
        assert column["uncut"]["individuals"] == labels.count("*")
        assert (column["cuts"] == 0) == (set(labels) == {"*"})


def test_a_lattice_says_what_refuses_one_level_less(house: House) -> None:
    """Each node just below is judged by each criterion alone, by a check of the table at its levels."""
    house.write(ROWS)
    privacy = [{"k_anonymity": {"k": 12}}, {"l_diversity": {"kind": "distinct", "l": 2}}]
    house.run(
        privacy=privacy, method={"kind": "lattice"}, columns__quasi_identifiers={"age": AGE, "zip": {"digits": 5}}
    )
    told = json.loads(explain(house.folder / "out-run", "--json")[1])
    levels = told["chosen"]["levels"]
    assert [node["column"] for node in told["finer"]] == [name for name, level in levels.items() if level]
    for node in told["finer"]:
        rows = at_levels(levels | {node["column"]: node["level"]})
        refused = [i for i, spec in enumerate(privacy) if not house.check(rows, privacy=[spec]).safe]
        assert node["refused_by"] == refused and refused


AGE = {"intervals": [5, 20]}


def at_levels(levels: dict[str, int]) -> pa.Table:
    """The rows with ages in intervals and so many digits of the zip starred."""
    width = [1, 5, 20, 1000][levels["age"]]
    age = [str(value // width) for value in ROWS["age"]]
    return pa.table(ROWS | {"age": age, "zip": [value[: 5 - levels["zip"]] for value in ROWS["zip"]]})


def test_a_run_can_be_explained_in_python(house: House) -> None:
    house.write(ROWS)
    house.run()
    folder = house.folder / "out-run"
    assert anon.explain(folder).to_dict() == json.loads(explain(folder, "--json")[1])


@pytest.mark.parametrize(
    ("method", "criterion"),
    [
        ("merge", {"r_robustness": {"r": 2, "priors": [{"estimate": ["sex"], "smoothing": 1}]}}),
        ("colour", {"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 2, "distance": {"kind": "equal"}}}),
    ],
)
def test_groups_that_people_were_assigned_to_one_by_one_are_explained_too(
    tmp_path: Path, method: str, criterion: dict[str, Any]
) -> None:
    rows = {"sex": ["f", "m"] * 20, "age": [n % 7 for n in range(40)], "s": [f"v{n % 8}" for n in range(40)]}
    pq.write_table(pa.table(rows), tmp_path / "people.parquet")
    config = {
        "source": {"path": str(tmp_path / "people.parquet")},
        "columns": {"individual": "row", "quasi_identifiers": {"sex": {}, "age": {}}, "sensitive": ["s"]},
        "privacy": [criterion],
        "method": {"kind": method},
        "release": {"path": str(tmp_path / "out"), "form": "bucketized"},
    }
    anon.run(config)
    told = anon.explain(tmp_path / "out-run").to_dict()
    assert [(column["column"], column["level"]) for column in told["columns"]] == [("sex", 0), ("age", 0)]
    page = (tmp_path / "out-run" / "report.html").read_text()
    assert "may be recognized" in page and "cannot be distinguished" not in page


def test_a_recoding_that_does_not_fit_in_the_memory_is_refused_before_it_is_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(ROWS)
    house.run()
    folder = house.folder / "out-run"
    size = (folder / "recoding.json").stat().st_size
    monkeypatch.setattr("anon.commands.explain.OBJECTS", 300_000_000 // size + 1)
    monkeypatch.setattr("anon.commands.explain.read_run", lambda run: pytest.fail("it was read"))
    code, said = explain(folder, "--memory", "400MB")
    assert code == 6
    assert "too little for the recoding.json of this run, which takes" in said and "at least 50" in said
