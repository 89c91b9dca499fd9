"""The config stage: every mistake is answered with its path, what was found and what would be right."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from anon.config import load
from tests.helpers.config import POINT, REMOVE, SMALL, changed, criterion, problems

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
    ("columns.quasi_identifiers", 3, "columns.quasi_identifiers", ["a mapping or a list of names"]),
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
    ("columns.quasi_identifiers.age", {"bands": []}, "columns.quasi_identifiers.age.bands[0]", ["at least one"]),
    ("columns.quasi_identifiers.age", {"bands": [0, 18, 18]}, "columns.quasi_identifiers.age.bands[0]", ["ascending"]),
    ("columns.quasi_identifiers.age", {"bands": [0, "18"]}, "columns.quasi_identifiers.age.bands[0][1]", ["a number"]),
    ("columns.quasi_identifiers.age", {"bands": 18}, "columns.quasi_identifiers.age.bands", ["a list"]),
    (
        "columns.quasi_identifiers.age",
        {"bands": [[0, 18, 65], [0, 20]]},
        "columns.quasi_identifiers.age.bands[1]",
        ["some of the numbers of the level before"],
    ),
    (
        "columns.quasi_identifiers.age",
        {"bands": [[0, 18], [0, 18]]},
        "columns.quasi_identifiers.age.bands[1]",
        ["fewer than all"],
    ),
    (
        "columns.quasi_identifiers.age",
        {"age_on": "31.12.2024", "bands": [18]},
        "columns.quasi_identifiers.age.age_on",
        ["31.12.2024", "such as 2024-12-31"],
    ),
    ("columns.quasi_identifiers.age", {"age_on": 2024}, "columns.quasi_identifiers.age.age_on", ["such as 2024-12-31"]),
    ("columns.quasi_identifiers.age", {"age_on": "2023-02-29"}, "columns.quasi_identifiers.age.age_on", ["a day of"]),
    (
        "columns.quasi_identifiers.age",
        {"age_on": "2024-12-31", "calendar": ["year"]},
        "columns.quasi_identifiers.age.age_on",
        ["an unknown key", "calendar"],
    ),
    ("columns.quasi_identifiers.age", {"pad": 5}, "columns.quasi_identifiers.age.digits", ["found nothing", "length"]),
    ("columns.quasi_identifiers.age", {"digits": 5, "pad": 4}, "columns.quasi_identifiers.age.pad", ["5, the length"]),
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
    ("privacy", [{"k_anonymity": "5"}], "privacy[0].k_anonymity", ['text "5"', "whole number", "without quotes"]),
    ("privacy", [{"k_anonymity": 0}], "privacy[0].k_anonymity", ["number 0", "whole number at least 1"]),
    ("privacy", [{"k_anonymity": None}], "privacy[0].k_anonymity", ["nothing", "a mapping"]),
    ("privacy", [{"skyline": [POINT | {"l": -1}]}], "privacy[0].skyline[0].l", ["number -1", "at least 0"]),
    ("privacy", [{"l_diversity": 3}], "privacy[0].l_diversity", ["number 3", "a mapping"]),
    ("privacy", criterion("ck_safety", c="140%", k=1), "privacy[0].ck_safety.c", ['"140%"', "at most 1"]),
    ("privacy", criterion("ck_safety", c="a half", k=1), "privacy[0].ck_safety.c", ['"a half"', "0.04, or 4%"]),
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
        criterion("dissimilarity", epsilon=0, delta=1, k=2, distance={"kind": "matrix"}),
        "privacy[0].dissimilarity.distance.file",
        ["found nothing"],
    ),
    (
        "privacy",
        criterion("dissimilarity", epsilon=0, delta=1, k=2, distance={"kind": "variational", "columns": ["illnes"]}),
        "privacy[0].dissimilarity.distance.columns[0]",
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
