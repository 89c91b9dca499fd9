"""The config stage: what a config means, and that every mistake is answered with its path and what would be right."""

from __future__ import annotations

import copy
import glob
import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from anon.config import Config, json_schema, load, parse_size, redact
from anon.errors import ConfigError, Problem

CONTRACT = """
source: {path: extract/*.parquet}        # file, glob, folder
columns:
  identifiers: [name]
  individual: row
  multiplicity: single
  quasi_identifiers:
    age: {intervals: [5, 10, 20], origin: 1, top: 85}
    sex: {suppress: true}
    education: {hierarchy: ../hierarchies/adult/education.csv}
    zipcode: {digits: 5}
    admitted: {calendar: [day, month, quarter, year]}
    income: {}
  sensitive: [occupation]
  keep: [hours]
nulls: {quasi_identifiers: value, sensitive: error}
privacy:
  - k_anonymity: {k: 5}
  - group_size: {k: 5}
  - l_diversity: {kind: distinct, l: 3}
  - l_diversity: {kind: recursive, c: 3, l: 4, dont_care: [Healthy], keep_possible: {values: [Flu], percent: 2}}
  - skyline:
      points: [{l: 1, k: 5, m: 2, c: 0.5}, {l: 2, k: 1, m: 1, c: 0.5}]
      values: {HIV: [{l: 3, k: 50, m: 5, c: 0.2}], Flu: exempt}
  - ck_safety: {c: 0.8, k: 3}
  - dissimilarity: {epsilon: 0.1, delta: 0.5, k: 5, distance: {kind: absolute}}
  - r_robustness: {r: 4, priors: [{file: prior.csv}, {estimate: [sex], smoothing: 1}]}
  - t_closeness: {t: 0.2, distance: {kind: equal}}
  - alpha_k: {alpha: 0.5, k: 5}
  - epsilon_m: {epsilon: 1000, m: 2}
  - k_e: {k: 3, e: 5000}
  - variance: {minimum: 250000}
method: {kind: partition, prefer: widest}
#method: {kind: lattice, suppress: 0.02, choose: loss, exhaustive: false}
release: {path: out, run: out-run, form: generalized, format: parquet}
limits: {memory: 1GB, threads: 2, temp: spill}
backend: {kind: local}
"""

SMALL: dict[str, Any] = {
    "source": {"path": "t.csv"},
    "columns": {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "sex": {"suppress": True}},
        "sensitive": ["illness"],
    },
    "privacy": [{"k_anonymity": {"k": 2}}],
    "release": {"path": "out"},
}
POINT = {"l": 1, "k": 5, "m": 2, "c": 0.5}
REMOVE = object()


def changed(path: str, value: Any) -> dict[str, Any]:
    """The small config with one value replaced, e.g. at `columns.keep`."""
    data = copy.deepcopy(SMALL)
    *parents, last = path.split(".")
    target = data
    for part in parents:
        target = target.setdefault(part, {})
    if value is REMOVE:
        del target[last]
    else:
        target[last] = value
    return data


def problems(data: Any, **options: Any) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        load(data, {}, **options)
    return caught.value.problems


def file(folder: Path, text: str | bytes, name: str = "anon.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def criterion(name: str, **parameters: Any) -> list[dict[str, Any]]:
    return [{name: parameters}]


# What is replaced in the small config, by what, the path of the one problem, and words that its message must have.
MISTAKES: list[tuple[str, Any, str, list[str]]] = [
    ("source", REMOVE, "source", ["found nothing", "required"]),
    ("source", "t.csv", "source", ['text "t.csv"', "a mapping"]),
    ("source", {}, "source", ["exactly one of path, duckdb, postgres, table"]),
    ("source", {"path": "a", "table": "b"}, "source", ["path and table", "exactly one"]),
    ("source", {"pth": "a", "table": "b"}, "source.pth", ["unknown key", "did you mean `path`?"]),
    ("source", {"duckdb": {"file": "a.db"}}, "source.duckdb.query", ["found nothing", "SQL query"]),
    ("source", {"path": ""}, "source.path", ["text that is not empty"]),
    ("columns.individual", REMOVE, "columns.individual", ["found nothing", "`row`"]),
    ("columns.individual", 7, "columns.individual", ["number 7", "text", "quotes"]),
    ("columns.multiplicity", "sets", "columns.multiplicity", ["single, set or multiset", "did you mean `set`?"]),
    ("columns.quasi_identifiers", {}, "columns.quasi_identifiers", ["mapping of 0", "at least one"]),
    ("columns.quasi_identifiers", "age", "columns.quasi_identifiers", ["a mapping or a list of names"]),
    ("columns.quasi_identifiers", ["age", "sex", "age"], "columns.quasi_identifiers[2]", ['"age"', "each name once"]),
    ("columns.quasi_identifiers", ["age", 3], "columns.quasi_identifiers[1]", ["number 3", "text", "quotes"]),
    ("columns.quasi_identifiers", {"": {}}, 'columns.quasi_identifiers[""]', ["not empty"]),
    ("columns.quasi_identifiers.age", [5], "columns.quasi_identifiers.age", ["list of 1", "a mapping"]),
    ("columns.quasi_identifiers.age", {"interval": [5]}, "columns.quasi_identifiers.age.interval", ["`intervals`?"]),
    ("columns.quasi_identifiers.age", {"origin": 5}, "columns.quasi_identifiers.age.intervals", ["found nothing"]),
    (
        "columns.quasi_identifiers.age",
        {"intervals": [5], "digits": 2},
        "columns.quasi_identifiers.age",
        ["intervals and digits", "one of intervals"],
    ),
    ("columns.quasi_identifiers.age", {"intervals": []}, "columns.quasi_identifiers.age.intervals", ["at least one"]),
    (
        "columns.quasi_identifiers.age",
        {"intervals": [0]},
        "columns.quasi_identifiers.age.intervals[0]",
        ["more than 0"],
    ),
    (
        "columns.quasi_identifiers.age",
        {"intervals": [5, 12]},
        "columns.quasi_identifiers.age.intervals[1]",
        ["multiple"],
    ),
    ("columns.quasi_identifiers.age", {"intervals": [5, 5]}, "columns.quasi_identifiers.age.intervals[1]", ["larger"]),
    ("columns.quasi_identifiers.age", {"intervals": ["5"]}, "columns.quasi_identifiers.age.intervals[0]", ["a number"]),
    (
        "columns.quasi_identifiers.age",
        {"intervals": [5], "top": 1, "bottom": 2},
        "columns.quasi_identifiers.age.bottom",
        ["less than top"],
    ),
    ("columns.quasi_identifiers.age", {"suppress": False}, "columns.quasi_identifiers.age.suppress", ["expected true"]),
    (
        "columns.quasi_identifiers.age",
        {"digits": 33},
        "columns.quasi_identifiers.age.digits",
        ["at least 1 and at most 32"],
    ),
    (
        "columns.quasi_identifiers.age",
        {"hierarchy": 3},
        "columns.quasi_identifiers.age.hierarchy",
        ["number 3", "text"],
    ),
    ("columns.quasi_identifiers.age", {"calendar": ["week"]}, "columns.quasi_identifiers.age.calendar[0]", ["month"]),
    (
        "columns.quasi_identifiers.age",
        {"calendar": ["year", "day"]},
        "columns.quasi_identifiers.age.calendar",
        ["in the order day, month, quarter, year"],
    ),
    ("columns.keep", ["age"], "columns.keep[0]", ['"age"', "one role only", "quasi_identifiers"]),
    ("columns.keep", ["AGE"], "columns.keep[0]", ['"AGE"', "one role only"]),
    ("columns.keep", ["h", "h"], "columns.keep[1]", ["keep already"]),
    ("columns.sensitive", ["illness", "sex"], "columns.sensitive[1]", ['"sex"', "one role only"]),
    ("columns.sensitive", {"illness": {"rond": 1}}, "columns.sensitive.illness.rond", ["did you mean `round`?"]),
    ("columns.sensitive", {"illness": {"round": 0}}, "columns.sensitive.illness.round", ["more than 0"]),
    ("columns.sensitive", {"illness": {"round": 1, "digits": 3}}, "columns.sensitive.illness", ["round and digits"]),
    ("columns.sensitive", {"illness": {"digits": 0}}, "columns.sensitive.illness.digits", ["number 0", "at least 1"]),
    ("columns.individual", "illness", "columns.sensitive[0]", ["individual already"]),
    ("nulls", {"sensitive": "dorp"}, "nulls.sensitive", ['text "dorp"', "did you mean `drop`?"]),
    ("privacy", [], "privacy", ["list of 0", "at least one"]),
    ("privacy", REMOVE, "privacy", ["found nothing"]),
    ("privacy", {"k_anonymity": {"k": 2}}, "privacy", ["mapping of 1", "a list"]),
    ("privacy", ["k_anonymity"], "privacy[0]", ['text "k_anonymity"', "a mapping"]),
    ("privacy", [{"k_anonymity": {"k": 2}, "variance": {"minimum": 1}}], "privacy[0]", ["one key"]),
    (
        "privacy",
        criterion("k_anonimity", k=2),
        "privacy[0].k_anonimity",
        ["unknown key", "did you mean `k_anonymity`?"],
    ),
    ("privacy", criterion("k_anonymity"), "privacy[0].k_anonymity.k", ["found nothing", "individuals"]),
    ("privacy", [{"k_anonymity": 5}], "privacy[0].k_anonymity", ["number 5", "a mapping"]),
    ("privacy", criterion("k_anonymity", k=0), "privacy[0].k_anonymity.k", ["number 0", "whole number at least 1"]),
    ("privacy", criterion("k_anonymity", k="5"), "privacy[0].k_anonymity.k", ['text "5"', "whole", "without quotes"]),
    ("privacy", criterion("k_anonymity", k=5.0), "privacy[0].k_anonymity.k", ["number 5.0", "whole number", "write 5"]),
    ("privacy", criterion("k_anonymity", k=True), "privacy[0].k_anonymity.k", ["found true", "whole number"]),
    ("privacy", criterion("k_anonymity", k=10**18), "privacy[0].k_anonymity.k", ["at most 18 digits"]),
    ("privacy", criterion("group_size", k=-1), "privacy[0].group_size.k", ["at least 1"]),
    (
        "privacy",
        criterion("l_diversity", kind="distinct", l=2.5),
        "privacy[0].l_diversity.l",
        ["whole number", "distinct"],
    ),
    ("privacy", criterion("l_diversity", kind="distinct", l=0), "privacy[0].l_diversity.l", ["at least 1"]),
    ("privacy", criterion("l_diversity", kind="recursive", l=2), "privacy[0].l_diversity.c", ["nothing", "recursive"]),
    ("privacy", criterion("l_diversity", kind="entropy", l=2, c=1), "privacy[0].l_diversity.c", ["no c", "recursive"]),
    (
        "privacy",
        criterion("l_diversity", kind="frequency", l=2, dont_care=["x"]),
        "privacy[0].l_diversity.dont_care",
        ["entropy and recursive"],
    ),
    (
        "privacy",
        criterion("l_diversity", kind="entropy", l=2, keep_possible={"values": ["Flu"], "percent": 101}),
        "privacy[0].l_diversity.keep_possible.percent",
        ["at least 0 and at most 100"],
    ),
    ("privacy", criterion("l_diversity", kind="entropi", l=2), "privacy[0].l_diversity.kind", ["`entropy`?"]),
    ("privacy", criterion("skyline", points=[]), "privacy[0].skyline.points", ["at least one point"]),
    ("privacy", criterion("skyline", values={}), "privacy[0].skyline.points", ["found nothing", "required"]),
    (
        "privacy",
        [*SMALL["privacy"], *criterion("skyline", points=[POINT | {"c": 1.5}])],
        "privacy[1].skyline.points[0].c",
        ["number 1.5", "more than 0 and at most 1"],
    ),
    ("privacy", criterion("skyline", points=[POINT | {"c": 0}]), "privacy[0].skyline.points[0].c", ["more than 0"]),
    (
        "privacy",
        criterion("skyline", points=[POINT | {"c": "0.5"}]),
        "privacy[0].skyline.points[0].c",
        ["without quotes"],
    ),
    (
        "privacy",
        criterion("skyline", points=[POINT | {"c": float("nan")}]),
        "privacy[0].skyline.points[0].c",
        ["finite"],
    ),
    ("privacy", criterion("skyline", points=[POINT | {"l": -1}]), "privacy[0].skyline.points[0].l", ["at least 0"]),
    (
        "privacy",
        criterion("skyline", points=[POINT], values={"HIV": "exmpt"}),
        "privacy[0].skyline.values.HIV",
        ["exempt"],
    ),
    ("privacy", criterion("skyline", points=[POINT], values={"HIV": []}), "privacy[0].skyline.values.HIV", ["points"]),
    (
        "privacy",
        criterion("skyline", points=[POINT], values={"HIV": [{"l": 1, "k": 1, "m": 1}]}),
        "privacy[0].skyline.values.HIV[0].c",
        ["found nothing"],
    ),
    (
        "privacy",
        criterion("skyline", points=[POINT], values={1: "exempt"}),
        "privacy[0].skyline.values.1",
        ["in quotes"],
    ),
    ("privacy", criterion("skyline", points=[POINT], absent="yes"), "privacy[0].skyline.absent", ["expected ok"]),
    (
        "privacy",
        criterion("skyline", points=[POINT], sensitive="ilness"),
        "privacy[0].skyline.sensitive",
        ["sensitive columns", "did you mean `illness`?"],
    ),
    ("privacy", criterion("ck_safety", c=0.5, k=-1), "privacy[0].ck_safety.k", ["at least 0"]),
    (
        "privacy",
        criterion("dissimilarity", epsilon=1, delta=2, k=2, distance={"kind": "equal"}),
        "privacy[0].dissimilarity.delta",
        ["at most 1"],
    ),
    (
        "privacy",
        criterion("t_closeness", t=1, distance={"kind": "equl"}),
        "privacy[0].t_closeness.distance.kind",
        ["did you mean `equal`?"],
    ),
    ("privacy", criterion("t_closeness", t=1, distance={}), "privacy[0].t_closeness.distance.kind", ["found nothing"]),
    (
        "privacy",
        criterion("t_closeness", t=1, distance={"kind": "matrix"}),
        "privacy[0].t_closeness.distance.file",
        ["found nothing"],
    ),
    (
        "privacy",
        criterion("t_closeness", t=1, distance={"kind": "variational", "columns": ["illnes"]}),
        "privacy[0].t_closeness.distance.columns[0]",
        ["did you mean `illness`?"],
    ),
    ("privacy", criterion("r_robustness", r=1, priors=[{"file": "p"}]), "privacy[0].r_robustness.r", ["more than 1"]),
    ("privacy", criterion("r_robustness", r=2, priors=[]), "privacy[0].r_robustness.priors", ["at least one"]),
    (
        "privacy",
        criterion("r_robustness", r=2, priors=[{"smoothing": 1}]),
        "privacy[0].r_robustness.priors[0]",
        ["either file or estimate"],
    ),
    (
        "privacy",
        criterion("r_robustness", r=2, priors=[{"estimate": ["sx"]}]),
        "privacy[0].r_robustness.priors[0].estimate[0]",
        ["did you mean `sex`?"],
    ),
    ("privacy", criterion("alpha_k", alpha=0, k=2), "privacy[0].alpha_k.alpha", ["more than 0"]),
    ("privacy", criterion("alpha_k", alpha=0.5, k=2, values=[3]), "privacy[0].alpha_k.values[0]", ["quotes"]),
    ("privacy", criterion("epsilon_m", epsilon=-1, m=2), "privacy[0].epsilon_m.epsilon", ["at least 0"]),
    ("privacy", criterion("k_e", k=3, e="many"), "privacy[0].k_e.e", ['text "many"', "a number"]),
    ("privacy", criterion("variance", minimum=-1), "privacy[0].variance.minimum", ["at least 0"]),
    ("method", {"kind": "latice"}, "method.kind", ["did you mean `lattice`?"]),
    ("method", {"kind": "merge", "prefer": "widest"}, "method.prefer", ["unknown key"]),
    ("method", {"prefer": "widst"}, "method.prefer", ["did you mean `widest`?"]),
    ("method", {"prefer": {"information_gain": "illnes"}}, "method.prefer.information_gain", ["`illness`?"]),
    ("method", {"kind": "lattice", "suppress": 2}, "method.suppress", ["at least 0 and at most 1"]),
    ("method", {"kind": "lattice", "exhaustive": "yes"}, "method.exhaustive", ["true or false"]),
    ("method", {"kind": "reuse"}, "method.run", ["found nothing"]),
    ("release.path", REMOVE, "release.path", ["found nothing", "folder"]),
    ("release.fromat", "csv", "release.fromat", ["did you mean `format`?"]),
    ("release.format", "xlsx", "release.format", ["parquet or csv"]),
    ("release.labels", "exact", "release.labels", ["bucketized"]),
    ("release.run", "out", "release.run", ["apart from release.path"]),
    ("release.run", "out/run", "release.run", ["neither inside the other"]),
    ("release.path", ".", "release.path", ["does not contain the config"]),
    ("release.run", "..", "release.run", ["does not contain the config"]),
    ("source.path", "out/t.csv", "release.path", ["do not contain the source"]),
    ("source.path", "out/*.csv", "release.path", ["do not contain the source"]),
    ("columns.multiplicity", "set", "release.form", ["found nothing", "bucketized form only"]),
    ("limits", {"memory": "2 apples"}, "limits.memory", ['text "2 apples"', "2GB"]),
    ("limits", {"memory": "0GB"}, "limits.memory", ["at least one byte"]),
    ("limits", {"memory": 0}, "limits.memory", ["at least one byte"]),
    ("limits", {"threads": 0}, "limits.threads", ["at least 1"]),
    ("limits", {"temp": "out/spill"}, "limits.temp", ["outside release.path"]),
    ("limits", None, "limits", ["found nothing", "a mapping"]),
    ("backend", {"kind": "spork"}, "backend.kind", ["did you mean `spark`?"]),
    ("backend", {"kind": "local", "master": "x"}, "backend.master", ["unknown key"]),
    ("backend", {"kind": "spark", "conf": {"a": 1}}, "backend.conf.a", ["quotes"]),
    ("colums", {}, "colums", ["unknown key", "did you mean `columns`?"]),
    ("release.path", "${MISSING}", "release.path", ["${MISSING}", "environment variable MISSING"]),
    ("release.path", "${un closed", "release.path", ["$${"]),
    ("columns.quasi_identifiers.${A}", {}, "columns.quasi_identifiers.${A}", ["in values only"]),
]


@pytest.mark.parametrize(
    ("place", "value", "path", "words"), MISTAKES, ids=[f"{m[2]}-{i}" for i, m in enumerate(MISTAKES)]
)
def test_one_mistake_is_one_problem_with_its_path(place: str, value: Any, path: str, words: list[str]) -> None:
    found = problems(changed(place, value))
    assert [problem.path for problem in found] == [path]
    assert [word for word in words if word not in str(found[0])] == []


def test_no_message_is_in_the_words_of_the_validation_library() -> None:
    texts = [str(problem) for place, value, *_ in MISTAKES for problem in problems(changed(place, value))]
    assert [text for text in texts if "nput should" in text or "Value error" in text or "None" in text] == []


def test_all_mistakes_are_reported_at_once() -> None:
    data = copy.deepcopy(SMALL)
    data["source"] = {"pat": "x"}
    data["columns"]["quasi_identifiers"] = {"age": {"intervals": [5, 7]}, "zip": {"digits": "5"}}
    data["privacy"] = [
        {"k_anonymity": {"k": 0}},
        {"skyline": {"points": [POINT | {"c": 2, "l": -1}]}},
        {"nonsense": {}},
    ]
    data["release"] = {"format": "doc", "path": "${NOT_SET}/x"}
    assert {problem.path for problem in problems(data)} == {
        "source.pat",
        "columns.quasi_identifiers.age.intervals[1]",
        "columns.quasi_identifiers.zip.digits",
        "privacy[0].k_anonymity.k",
        "privacy[1].skyline.points[0].l",
        "privacy[1].skyline.points[0].c",
        "privacy[2].nonsense",
        "release.path",
        "release.format",
    }


def test_every_problem_of_several_sensitive_columns_names_the_criterion() -> None:
    data = changed("columns.sensitive", ["illness", "cost"])
    data["privacy"] += [{"skyline": {"points": [POINT]}}, {"variance": {"minimum": 1, "sensitive": "cots"}}]
    found = problems(data)
    assert [problem.path for problem in found] == ["privacy[1].skyline.sensitive", "privacy[2].variance.sensitive"]
    assert found[1].hint == "did you mean `cost`?"


def test_a_criterion_about_values_needs_a_sensitive_column() -> None:
    data = changed("columns.sensitive", [])
    assert load(data, {}).columns.sensitive == {}
    data["privacy"] = criterion("skyline", points=[POINT])
    assert [problem.path for problem in problems(data)] == ["privacy[0].skyline.sensitive"]


def test_the_only_sensitive_column_is_filled_in_where_values_matter() -> None:
    data = changed("privacy", [{"k_anonymity": {"k": 2}}, {"skyline": {"points": [POINT]}}])
    assert [item.sensitive for item in load(data, {}).privacy] == [None, "illness"]


def test_the_example_of_the_contract_parses(tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    config = load(file(folder, CONTRACT), {}, available_only=False)
    assert config.source.path == f"{folder}/extract/*.parquet"
    assert config.source.kind == "path"
    builders = config.columns.quasi_identifiers
    assert [builder.kind for builder in builders.values()] == [
        "intervals",
        "suppress",
        "hierarchy",
        "digits",
        "calendar",
        "free",
    ]
    assert builders["education"].hierarchy == tmp_path / "hierarchies/adult/education.csv"
    assert builders["age"].intervals == [5, 10, 20]
    assert (builders["age"].origin, builders["age"].top, builders["age"].bottom) == (1, 85, None)
    assert [item.name for item in config.privacy][:5] == [
        "k_anonymity",
        "group_size",
        "l_diversity",
        "l_diversity",
        "skyline",
    ]
    assert config.privacy[4].values["Flu"] == "exempt"
    assert config.privacy[4].values["HIV"][0].c == Decimal("0.2")
    assert config.privacy[3].keep_possible.values == ["Flu"]
    assert config.privacy[7].priors[0].file == folder / "prior.csv"
    assert config.privacy[7].priors[1].smoothing == 1
    assert {item.sensitive for item in config.privacy[2:]} == {"occupation"}
    assert (config.release.path, config.release.run) == (folder / "out", folder / "out-run")
    assert (config.limits.memory, config.limits.threads, config.limits.temp) == (10**9, 2, folder / "spill")
    assert config.base == folder


def test_what_this_version_cannot_run_is_one_problem_each(tmp_path: Path) -> None:
    text = CONTRACT.replace("kind: partition, prefer: widest", "kind: merge").replace("kind: local", "kind: spark")
    found = problems(file(tmp_path, text))
    assert [problem.path for problem in found] == ["method.kind", "backend.kind"]
    assert all("is not yet available in this version" in str(problem) for problem in found)


@pytest.mark.parametrize(
    ("place", "value", "path"),
    [
        ("source", {"table": "db.t"}, "source.table"),
        ("source", {"duckdb": {"file": "a.db", "query": "select 1"}}, "source.duckdb"),
        ("release.form", "bucketized", "release.form"),
        ("method", {"kind": "reuse", "run": "old"}, "method.kind"),
    ],
)
def test_a_part_not_yet_available_is_refused_only_on_demand(place: str, value: Any, path: str) -> None:
    data = changed(place, value)
    assert [problem.path for problem in problems(data)] == [path]
    config = load(data, {}, available_only=False)
    assert load(config, available_only=False) is config
    assert [problem.path for problem in problems(config)] == [path]


def test_a_mistake_is_reported_before_what_is_not_available() -> None:
    data = changed("privacy", criterion("variance", minimum=-1))
    data["method"] = {"kind": "colour"}
    assert [problem.path for problem in problems(data)] == ["privacy[0].variance.minimum"]


def test_a_loaded_config_is_returned_as_it_is() -> None:
    config = load(SMALL, {})
    assert isinstance(config, Config)
    assert load(config) is config


def test_defaults_are_those_of_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load(SMALL, {})
    assert config.source.path == str(tmp_path / "t.csv")
    assert (config.nulls.quasi_identifiers, config.nulls.sensitive) == ("value", "error")
    assert (config.columns.multiplicity, config.columns.keep, config.columns.identifiers) == ("single", [], [])
    assert (config.method.kind, config.method.prefer) == ("partition", "widest")
    assert (config.release.run, config.release.form, config.release.format) == (
        tmp_path / "out-run",
        "generalized",
        "parquet",
    )
    assert (config.limits.memory, config.limits.threads, config.limits.temp) == (2 * 10**9, None, None)
    assert config.backend.kind == "local"
    assert list(config.columns.quasi_identifiers) == ["age", "sex"]
    assert config.columns.sensitive["illness"].builder is None


def test_names_may_be_lists_and_the_individual_an_identifier() -> None:
    data = changed("columns.quasi_identifiers", ["zip", "age"])
    data["columns"] |= {"individual": "who", "identifiers": ["who"]}
    columns = load(data, {}).columns
    assert [(name, builder.kind) for name, builder in columns.quasi_identifiers.items()] == [
        ("zip", "free"),
        ("age", "free"),
    ]


def test_a_sensitive_column_takes_rounding_or_a_builder() -> None:
    sensitive = {"cost": {"round": 0.1, "as_categories": True}, "day": {"calendar": ["month"]}, "illness": None}
    columns = load(changed("columns.sensitive", sensitive), {}).columns
    assert (columns.sensitive["cost"].round, columns.sensitive["cost"].as_categories) == (Decimal("0.1"), True)
    assert columns.sensitive["day"].builder.calendar == ["month"]
    assert columns.sensitive["illness"].builder is None


def test_thresholds_are_the_decimals_as_written(tmp_path: Path) -> None:
    points = "[{l: 1, k: 1, m: 0, c: 0.1}, {l: 1, k: 1, m: 0, c: 0.30000000000000004000}, {l: 1, k: 0, m: 0, c: 1e-1}]"
    text = json.dumps(SMALL | {"privacy": "POINTS"}).replace('"POINTS"', f"[{{skyline: {{points: {points}}}}}]")
    cs = [point.c for point in load(file(tmp_path, text), {}).privacy[0].points]
    assert [str(c) for c in cs] == ["0.1", "0.30000000000000004000", "0.1"]
    by_dict = load(changed("privacy", criterion("skyline", points=[POINT | {"c": 0.1}])), {})
    assert by_dict.privacy[0].points[0].c == Decimal("0.1")


def test_widths_that_floats_would_confuse_divide_exactly() -> None:
    data = changed("columns.quasi_identifiers.age", {"intervals": [0.1, 0.3]})
    assert load(data, {}).columns.quasi_identifiers["age"].intervals == [Decimal("0.1"), Decimal("0.3")]


def test_words_of_old_yaml_stay_text(tmp_path: Path) -> None:
    names = ["No", "on", "yes", "2024-01-01", "1:30", "0x1F", "1_000", "<<", "NULL_"]
    text = json.dumps(SMALL)[:-1] + ", method: {kind: partition}}"
    text = text.replace('["illness"]', "[illness], keep: [" + ", ".join(names) + "]")
    assert load(file(tmp_path, text), {}).columns.keep == names


def test_numbers_with_a_leading_zero_are_decimal(tmp_path: Path) -> None:
    assert load(file(tmp_path, json.dumps(SMALL).replace('"k": 2', '"k": 010')), {}).privacy[0].k == 10


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: [1, 2\nb: 3\n", "anon.yaml:2:", "not valid YAML"),
        ("a: 1\n b: 2\n", "anon.yaml:2:", "not valid YAML"),
        ("a: &x 1\nb: *x\n", "anon.yaml:2:4", "aliases are not supported"),
        ("a: &x [*x]\n", "anon.yaml:1:", "aliases are not supported"),
        ("a: 1\n---\nb: 2\n", "anon.yaml:2:", "not valid YAML"),
        ("a: 'x", "anon.yaml:1:", "not valid YAML"),
        ("", "anon.yaml", "the file is empty"),
        ("# nothing\n", "anon.yaml", "the file is empty"),
        ("- a\n- b\n", "anon.yaml", "expected a mapping"),
        ("just text", "anon.yaml", "expected a mapping"),
        ("a: \x01\n", "anon.yaml", "not text"),
        (b"PAR1\x00\xff\xfe\x80", "anon.yaml", "not UTF-8"),
        ("[" * 5000, "config", "nested too deeply"),
    ],
)
def test_a_file_that_is_no_config_is_refused_plainly(tmp_path: Path, text: str | bytes, place: str, words: str) -> None:
    (found,) = problems(file(tmp_path, text))
    assert place in found.path
    assert words in str(found)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    assert "no such file" in str(problems(tmp_path / "none.yaml")[0])
    assert "a folder" in str(problems(str(tmp_path))[0])
    assert "not a path" in str(problems("a\0b")[0])
    assert "a path, a mapping or a Config" in str(problems(3)[0])


def test_a_key_twice_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = "source: {path: a}\nrelease:\n  path: a\n  path: b\ncolumns: {}\n"
    found = problems(file(tmp_path, text))
    assert found[0].path == "release.path"
    assert "line 4" in found[0].found
    assert {problem.path for problem in found} >= {"columns.individual", "privacy"}


@pytest.mark.parametrize("key", ["1", "1.5", "true", "null"])
def test_a_key_that_is_not_text_must_be_quoted(tmp_path: Path, key: str) -> None:
    text = json.dumps(changed("privacy", [{"skyline": {"points": [POINT], "values": {"KEY": "exempt"}}}]))
    (found,) = problems(file(tmp_path, text.replace('"KEY"', key)))
    assert found.path.startswith("privacy[0].skyline.values")
    assert "quotes" in found.hint
    assert load(file(tmp_path, text.replace('"KEY"', f'"{key}"')), {}).privacy[0].values == {key: "exempt"}


@pytest.mark.parametrize("value", ["!!python/name:os.system x", "!mine x", "!!int x", "!!set {a}", "? [a]\n: b"])
def test_tags_and_nested_keys_are_refused(tmp_path: Path, value: str) -> None:
    found = problems(file(tmp_path, f"source:\n  {value}\n".replace("\n:", "\n  :")))
    assert found[0].path.startswith("source")
    assert "line 2" in found[0].found


def test_numbers_that_would_stop_exact_arithmetic_are_refused(tmp_path: Path) -> None:
    text = json.dumps(SMALL).replace('"age": {}', '"age": {"intervals": [1, 1e999999999]}')
    (found,) = problems(file(tmp_path, text))
    assert found.path == "columns.quasi_identifiers.age.intervals[1]"
    long = json.dumps(SMALL).replace('"k": 2', '"k": ' + "9" * 10_000)
    assert [problem.path for problem in problems(file(tmp_path, long))] == ["privacy[0].k_anonymity.k"]


SECRET = "s3cr\"et\\pass'word"


def with_secret() -> dict[str, Any]:
    return changed("source", {"postgres": {"dsn": "postgresql://u:${PW}@${HOST}/db", "query": "select $${x}"}})


def test_variables_are_put_in_and_kept_as_secrets() -> None:
    config = load(with_secret(), {"PW": SECRET, "HOST": "db.example", "OTHER": "x"}, available_only=False)
    assert config.source.postgres.dsn == f"postgresql://u:{SECRET}@db.example/db"
    assert config.source.postgres.query == "select ${x}"
    assert config.secrets == (("PW", SECRET), ("HOST", "db.example"))


def test_variables_come_from_the_environment_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANON_TEST_COLUMN", "hours")
    data = changed("columns.keep", ["${ANON_TEST_COLUMN}", "$${x}"])
    assert load(data).columns.keep == ["hours", "${x}"]
    assert [problem.path for problem in problems(data)] == ["columns.keep[0]"]


def test_a_secret_is_in_no_representation_of_the_config() -> None:
    config = load(with_secret(), {"PW": "s3cret", "HOST": "db.example"}, available_only=False)
    shown = [repr(config), str(config), repr(config.source), config.text, json.dumps(config.original), config.digest]
    assert [text for text in shown if "s3cret" in text] == []
    assert "secrets" not in config.model_dump()
    assert "${PW}" in repr(config)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("release.form", "${PW}"),
        ("release.path", ["${PW}"]),
        ("limits", {"memory": "${PW}"}),
        ("columns.keep", ["a", "${PW}", "${PW}"]),
        ("columns.sensitive", ["${PW}", "${PW}"]),
        ("columns.sensitive", ["${PW}", "age", "illness"]),
        ("columns.quasi_identifiers.age", {"calendar": ["${PW}"]}),
        ("privacy", criterion("skyline", points=[POINT], sensitive="${PW}")),
        ("privacy", criterion("skyline", points=[POINT], values={"HIV": "${PW}"})),
        ("method", {"kind": "${PW}"}),
        ("method", {"prefer": "${PW}"}),
        ("method", {"prefer": {"information_gain": "${PW}x"}}),
        ("backend", {"kind": "spark", "conf": "${PW}"}),
    ],
)
@pytest.mark.parametrize(
    "secret", ["s3cret-and-long-enough-to-be-cut-somewhere-in-the-middle", SECRET, "widestt", "agee"]
)
def test_an_error_shows_the_name_of_a_variable_and_never_its_value(place: str, value: Any, secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(changed(place, value), {"PW": secret})
    shown = str(caught.value) + repr(caught.value)
    assert secret not in shown
    assert secret[:20] not in shown
    assert caught.value.__context__ is None


def test_a_near_miss_hint_does_not_give_a_secret_column_away() -> None:
    data = changed("columns.sensitive", ["${COLUMN}"])
    data["privacy"] = criterion("skyline", points=[POINT], sensitive="diagnosys")
    with pytest.raises(ConfigError) as caught:
        load(data, {"COLUMN": "diagnosis"})
    assert caught.value.problems[0].hint == "did you mean `${COLUMN}`?"


def test_redaction_takes_the_longest_value_first_and_skips_empty_ones() -> None:
    secrets = (("SHORT", "ab"), ("LONG", "abc"), ("EMPTY", ""))
    assert redact("abcab x", secrets) == "${LONG}${SHORT} x"
    assert redact("nothing", (("EMPTY", ""),)) == "nothing"
    assert redact("HORT", (("A", "HORT"), ("B", "A"))) == "${A}"


def test_text_and_digest_are_those_before_variables(tmp_path: Path) -> None:
    text = json.dumps(SMALL).replace('"out"', '"${OUT}"') + "\n"
    one, two = (load(file(tmp_path, text), {"OUT": out}) for out in ("a", "b"))
    assert one.text == text
    assert one.digest == two.digest == hashlib.sha256(text.encode()).hexdigest()
    assert (one.release.path, one.original["release"]) == (tmp_path / "a", {"path": "${OUT}"})


def test_the_text_of_a_mapping_is_its_json_in_its_own_order() -> None:
    config = load(SMALL, {})
    assert config.text == json.dumps(SMALL)
    assert config.original == SMALL


def test_the_original_is_plain_json_and_loads_again() -> None:
    data = changed("privacy", criterion("skyline", points=[POINT | {"c": Decimal("0.3")}]))
    data["release"]["path"] = Path("out")
    first = load(data, {})
    again = load(json.loads(json.dumps(first.original)), {})
    assert again.privacy == first.privacy
    assert again.release == first.release


def test_paths_are_relative_to_the_folder_of_the_file_wherever_it_is_called_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "configs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "configs")
    data = changed("source.path", "../data/*.csv")
    data["columns"]["quasi_identifiers"]["age"] = {"hierarchy": "../data/age.csv"}
    file(tmp_path / "link", json.dumps(data))
    monkeypatch.chdir(tmp_path)
    config = load("link/anon.yaml", {})
    assert config.source.path == f"{tmp_path}/real/data/*.csv"
    assert config.columns.quasi_identifiers["age"].hierarchy == tmp_path / "real/data/age.csv"


def test_only_what_the_user_wrote_is_a_glob(tmp_path: Path) -> None:
    folder = tmp_path / "year[1]"
    folder.mkdir()
    text = json.dumps(SMALL)
    assert load(file(folder, text), {}).source.path == f"{folder}/t.csv"
    (folder / "a.csv").touch()
    pattern = load(file(folder, text.replace("t.csv", "*.csv")), {}).source.path
    assert glob.glob(pattern) == [f"{folder}/a.csv"]  # noqa: PTH207 - the absolute pattern as it stands


@pytest.mark.parametrize("name", ["group", "Count"])
def test_names_of_bucketized_columns_are_reserved_in_that_form_only(name: str) -> None:
    data = changed("columns.keep", ["a", name])
    assert load(data, {}).columns.keep == ["a", name]
    data["release"]["form"] = "bucketized"
    assert [problem.path for problem in problems(data)] == ["columns.keep[1]"]


def test_the_bucketized_form_takes_one_sensitive_column() -> None:
    data = changed("columns.sensitive", ["a", "b"])
    data["release"]["form"] = "bucketized"
    (found,) = problems(data)
    assert (found.path, "one sensitive column" in found.expected) == ("release.form", True)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1B", 1),
        ("2KB", 2000),
        ("1GB", 10**9),
        ("1.5 GB", 15 * 10**8),
        ("3TB", 3 * 10**12),
        ("1KiB", 1024),
        ("2gib", 2**31),
    ],
)
def test_sizes_are_in_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert load(changed("limits", {"memory": text}), {}).limits.memory == size


@pytest.mark.parametrize("text", ["", "5", "GB", "-1GB", "1e3GB", "1XB", "0.1B", "1GB!"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="2GB"):
        parse_size(text)


def test_lists_may_be_tuples_and_paths_may_be_paths(tmp_path: Path) -> None:
    data = changed("columns.keep", ("a", "b"))
    data["source"]["path"] = tmp_path / "t.csv"
    config = load(data, {})
    assert (config.columns.keep, config.source.path) == (["a", "b"], str(tmp_path / "t.csv"))


def test_a_tuple_of_sensitive_values_needs_no_single_column() -> None:
    data = changed("columns.sensitive", ["a", "b"])
    data["privacy"] = criterion("t_closeness", t=0.5, distance={"kind": "variational", "columns": ["a", "b"]})
    assert load(data, {}, available_only=False).privacy[0].sensitive is None


# --- JSON Schema


def fits(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """The few words of JSON Schema that ours uses."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            count = sum(fits(option, value, root) for option in schema[word])
            if count == 0 or (word == "oneOf" and count > 1):
                return False
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    return of_type(schema.get("type"), value) and in_range(schema, value) and inside(schema, value, root)


def of_type(name: str | None, value: Any) -> bool:
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
    if name in ("number", "integer") and isinstance(value, bool):
        return False
    if name == "number":
        return isinstance(value, int | float)
    return name is None or isinstance(value, types[name])


def in_range(schema: dict[str, Any], value: Any) -> bool:
    if isinstance(value, str | list | dict):
        prefix = {str: "Length", list: "Items", dict: "Properties"}[type(value)]
        return schema.get(f"min{prefix}", 0) <= len(value) <= schema.get(f"max{prefix}", 10**9)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low = value >= schema.get("minimum", value) and value > schema.get("exclusiveMinimum", value - 1)
        return low and value <= schema.get("maximum", value)
    return True


def inside(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    if isinstance(value, list):
        return all(fits(schema.get("items", {}), item, root) for item in value)
    if not isinstance(value, dict):
        return True
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if set(schema.get("required", [])) - set(value) or (others is False and set(value) - set(known)):
        return False
    rest = others if isinstance(others, dict) else {}
    return all(fits(known.get(key, rest), item, root) for key, item in value.items())


def valid(value: Any) -> bool:
    return fits(json_schema(), value, json_schema())


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every part of the schema that has properties."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if isinstance(schema.get("properties"), dict) else []
    return own + [found for item in schema.values() for found in objects(item)]


def test_the_schema_accepts_the_example_of_the_contract(tmp_path: Path) -> None:
    example = load(file(tmp_path, CONTRACT), {}, available_only=False).original
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert valid(example)
    assert valid(SMALL)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("columns.sensitive", {"cost": {"round": 100}, "day": {"calendar": ["month"], "as_categories": True}, "x": {}}),
        ("columns.quasi_identifiers", {"age": None, "zip": {"digits": 5}}),
        ("columns.quasi_identifiers", ["age"]),
        ("method", {"prefer": {"information_gain": "age"}}),
        ("method", {"kind": "lattice", "suppress": 0.02, "choose": "loss"}),
        ("source", {"postgres": {"dsn": "${DSN}", "query": "select 1"}}),
        ("backend", {"kind": "spark", "master": "local", "conf": {"a": "1"}}),
    ],
)
def test_the_schema_and_the_loader_accept_the_same_forms(place: str, value: Any) -> None:
    data = changed(place, value)
    load(data, {"DSN": "x"}, available_only=False)
    assert valid(data)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("colums", {}),
        ("release.fromat", "csv"),
        ("columns.individual", REMOVE),
        ("columns.quasi_identifiers.age", {"intervals": [5], "digits": 2}),
        ("columns.quasi_identifiers", {}),
        ("columns.sensitive", {"cost": {"round": 1, "digits": 2}}),
        ("source", {"path": "a", "table": "b"}),
        ("privacy", []),
        ("privacy", [{"k_anonymity": {"k": 2}, "group_size": {"k": 2}}]),
        ("privacy", criterion("k_anonymity", k="5")),
        ("privacy", criterion("skyline", points=[POINT | {"c": 1.5}])),
        ("privacy", criterion("skyline", points=[POINT | {"c": "0.5"}])),
        ("privacy", criterion("skyline", points=[POINT], values={"HIV": "no"})),
        ("method", {"prefer": "widst"}),
        ("method", {"kind": "merge", "prefer": "widest"}),
    ],
)
def test_the_schema_and_the_loader_refuse_the_same_mistakes(place: str, value: Any) -> None:
    data = changed(place, value)
    assert problems(data, available_only=False)
    assert not valid(data)


def test_every_field_of_the_schema_has_a_description_and_no_object_takes_unknown_keys() -> None:
    found = objects(json_schema())
    assert len(found) > 40
    bare = [key for item in found for key, field in item["properties"].items() if not field.get("description")]
    assert bare == []
    assert [item for item in found if item.get("additionalProperties") is not False] == []
