"""On every backend the release is that of a plain local run: same recoding, same rows in the same order, same facts;
and mistakes have the same words."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from demo import hospital

import anon
from anon import pipeline
from anon.core.progress import Progress
from anon.errors import ConfigError
from anon.runs.options import Options
from anon.search import budget
from anon.search.partition import search as partition
from tests import ROOT
from tests.conftest import House
from tests.helpers.backends import LOCAL, at, each_on_every_backend, on_every_backend, run_as_plain
from tests.helpers.people import COLUMNS, ROWS, people

NUMBERS = [
    {"k_e": {"k": 2, "e": 500, "sensitive": "cost"}},
    {"variance": {"minimum": 100, "sensitive": "cost"}},
    {"epsilon_m": {"epsilon": 100, "m": 2, "sensitive": "cost"}},
    {"dissimilarity": {"epsilon": 50, "delta": 0.1, "k": 3, "sensitive": "cost", "distance": {"kind": "absolute"}}},
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small enough that a small table has a top of several levels, and many blocks."""
    monkeypatch.setattr(budget, "BLOCK", 5_000)
    monkeypatch.setattr(partition, "SMALLEST_BLOCK", 1)


@on_every_backend()
def test_criteria_about_numbers_and_splits_by_balance(house: House) -> None:
    columns = COLUMNS | {"sensitive": {"cost": {"round": 10}}}
    run_as_plain(house, people(), columns=columns, privacy=NUMBERS, method={"prefer": "balanced"}, files=1)


@on_every_backend()
def test_public_cuts(house: House) -> None:
    privacy = [{"k_anonymity": {"k": 3}}, {"skyline": {"points": [{"l": 1, "k": 2, "m": 1, "c": 0.9}]}}]
    run_as_plain(house, people(), columns=COLUMNS, privacy=privacy, method={"prefer": "public"})


@on_every_backend()
def test_guarded_searches(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.runs.run_key.secrets.token_bytes", lambda size: b"k" * size)
    privacy = [{"k_anonymity": {"k": 3}}, {"skyline": {"points": [{"l": 1, "k": 2, "m": 1, "c": 0.9}]}}]
    method = {"prefer": "public", "guard": {"skip": 0.5, "below": 60}}
    first, second = run_as_plain(house, people(), columns=COLUMNS, privacy=privacy, method=method)
    assert first.report["guard"] == second.report["guard"]
    enforced = {"prefer": "public", "guard": {"skip": 0.5, "enforce": True}}
    alpha = [{"alpha_k": {"alpha": 0.9, "k": 3}}]
    first, second = run_as_plain(house, people(), columns=COLUMNS, privacy=alpha, method=enforced)
    assert first.report["guard"] == second.report["guard"]


@on_every_backend()
def test_several_sensitive_columns_and_splits_by_information(house: House) -> None:
    columns = COLUMNS | {"sensitive": {"disease": {}, "cost": {"round": 5000}, "visits": {}}, "keep": ["dose"]}
    distance = {"kind": "variational", "columns": ["cost", "visits"]}
    privacy = [
        {"l_diversity": {"kind": "distinct", "l": 2, "sensitive": "disease"}},
        {"dissimilarity": {"epsilon": 0.1, "delta": 0.1, "k": 3, "distance": distance}},
    ]
    method = {"prefer": {"information_gain": "disease"}}
    run_as_plain(house, people(), columns=columns, privacy=privacy, method=method)


@on_every_backend()
def test_more_values_than_codes_make_the_same_bins(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BLOCK", 200_000)
    rows = 70_000
    draw = np.random.default_rng(7)
    fine = np.where(draw.random(rows) < 0.01, np.nan, draw.random(rows))
    table = pa.table({"fine": fine, "disease": draw.choice(["a", "b", "c"], rows).tolist()})
    columns = {"individual": "row", "quasi_identifiers": {"fine": {}}, "sensitive": ["disease"]}
    run_as_plain(house, table, columns=columns, privacy=[{"k_anonymity": {"k": 500}}])


@on_every_backend()
def test_adult(house: House, adult: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BLOCK", 100_000)
    columns = {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "sex": {"suppress": True}, "race": {"suppress": True}, "education": {}},
        "sensitive": ["occupation"],
    }
    skyline = {"skyline": {"points": [{"l": 3, "k": 5, "m": 2, "c": 0.9}]}}
    run_as_plain(house, adult, columns=columns, privacy=[{"k_anonymity": {"k": 10}}, skyline])


@on_every_backend()
def test_the_demo(house: House) -> None:
    path = ROOT / "configs" / "hospital.yaml"
    text = path.read_text(encoding="utf-8").replace("../hierarchies", str(ROOT / "hierarchies"))
    config = yaml.safe_load(text)
    config["privacy"][1]["skyline"]["absent"] = "ok"
    parts = {name: config[name] for name in ("columns", "privacy", "method")}
    run_as_plain(house, hospital.rows(0, 5_000), **parts)


@on_every_backend()
def test_mistakes_in_the_data_are_told_in_the_same_words(house: House) -> None:
    table = people(300).append_column("id", pa.array([*range(299), 0]))
    house.write(table.append_column("patient_id", pa.array([row // 3 for row in range(300)])))
    cases: list[dict[str, Any]] = [
        {"columns": COLUMNS | {"individual": "id"}},
        {"columns": COLUMNS | {"quasi_identifiers": {"agee": {}}}},
        {"columns": COLUMNS | {"quasi_identifiers": {"name": {}}, "identifiers": []}},
        {"columns": COLUMNS, "nulls": {"quasi_identifiers": "error"}},
        {"columns": COLUMNS | {"identifiers": ["name", "patient_id"]}},
        {"columns": COLUMNS | {"quasi_identifiers": {"name": {"digits": 3}}, "identifiers": []}},
    ]
    for changes in cases:
        said = []
        for backend in (LOCAL, house.backend):
            with pytest.raises(ConfigError) as refused:
                anon.run(house.config(**changes) | {"backend": backend}, overwrite=True)
            said.append(str(refused.value))
        assert said[0] == said[1]
    assert not house.leftovers()


@each_on_every_backend("form", ["generalized", "bucketized"], {}, always=["generalized"])
def test_bounds_of_labels_in_many_parts(house: House, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.backends.spark.parts.PART", 200)
    release = {"path": "out", "run": "out-run", "form": form, "bounds": True}
    run_as_plain(house, people(600), columns=COLUMNS, privacy=[{"k_anonymity": {"k": 9}}], release=release)
    found = anon.read(house.folder / "again").collect()
    assert {"age_low", "weight_high", "admitted_low"} < set(found.columns)
    assert found["age_low"].null_count() < found.height


@on_every_backend()
def test_one_level_per_column(house: House) -> None:
    columns = COLUMNS | {"quasi_identifiers": {name: COLUMNS["quasi_identifiers"][name] for name in ("age", "zip")}}
    release = {"path": "out", "run": "out-run", "one_level": True}
    run_as_plain(house, people(600), columns=columns, privacy=[{"k_anonymity": {"k": 9}}], release=release)


@on_every_backend()
def test_ages_bands_and_padded_codes(house: House) -> None:
    """Birth dates repeat in rows that agree on the rest, which would make a key of persons of anything but a date."""
    table = people()
    born = [datetime.date(1950, 1, 1) + datetime.timedelta(days=40 * (row // 2)) for row in range(ROWS)]
    table = table.append_column("born", pa.array(born)).append_column("code", pa.array(range(ROWS)))
    builders = {
        "born": {"age_on": "2035-02-28", "bands": [[0, 18, 30, 45, 65, 80], [18, 65]]},
        "code": {"digits": 5, "pad": 5},
        "weight": {"bands": [50, 62.5, 75]},
        "admitted": {"calendar": ["month", "decade", "century"]},
    }
    plain, _ = run_as_plain(house, table, columns=COLUMNS | {"quasi_identifiers": builders})
    assert plain.to_dict()["groups"] > 50


@on_every_backend()
def test_a_run_that_was_stopped_goes_on_where_it_was(house: House) -> None:
    class Stops(Progress):
        def update(self, name: str, done: int = 0, of: int = 0, **facts: int) -> None:
            if facts.get("level") == 2:
                raise KeyboardInterrupt

    house.write(people())
    config = house.config(columns=COLUMNS, privacy=[{"k_anonymity": {"k": 4}}])
    with pytest.raises(KeyboardInterrupt):
        pipeline.run(config, None, Options(), Stops())
    resumed = anon.run(config, resume=True)
    whole = anon.run(at(house, "whole", config) | {"backend": LOCAL})
    assert resumed.facts == whole.facts
