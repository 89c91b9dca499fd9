"""Hostile configs, and the files they name beside the source: wrong types, YAML that bites, criteria that cannot be
met, hierarchies and priors that are none. Used by test_hostile_input."""

from __future__ import annotations

from typing import Any

from tests.helpers.hostile import AGES, DISEASES, PEOPLE, ZIPS, Case, all_of, file, holding

GOOD = """
source: {path: HOUSE/table.parquet}
columns: {individual: row, quasi_identifiers: {age: {}}, sensitive: [disease]}
privacy: [{k_anonymity: {k: 2}}]
release: {path: HOUSE/out}
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi")
)
WRONG = """
source: 3
columns: {identifiers: 4, individual: 7, multiplicity: [], quasi_identifiers: 9, sensitive: true, keep: {a: 1}}
nulls: value
privacy: {k_anonymity: {k: 2}}
method: [partition]
release: out
limits: {memory: -1, threads: two, temp: 5}
backend: local
"""
WRONG_FIELDS = (
    *("source", "columns.identifiers", "columns.individual", "columns.multiplicity", "columns.quasi_identifiers"),
    *("columns.sensitive", "columns.keep", "nulls", "privacy", "method", "release", "limits.memory"),
    *("limits.threads", "limits.temp", "backend"),
)
POINT = {"l": 0, "k": 0, "m": 0, "c": 0.9}


def privacy(**criterion: Any) -> dict[str, Any]:
    return {"privacy": [criterion]}


def hierarchy(content: str | bytes, *says: str, code: int = 2) -> Case:
    """A hierarchy file for `zip`, relative to the config."""
    changes = {"columns__quasi_identifiers": {"zip": {"hierarchy": "zip.csv"}}}
    return Case(code, ("columns.quasi_identifiers.zip.hierarchy", *says), changes, file("zip.csv", content))


def rows(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def prior(content: str, *says: str) -> Case:
    """A prior file, which only `merge` reads."""
    changes = {
        **privacy(r_robustness={"r": 1.1, "priors": [{"file": "prior.csv"}]}),
        "method": {"kind": "merge"},
        "release": {"path": "out", "run": "out-run", "form": "bucketized"},
        "columns__quasi_identifiers": {"age": {}},
    }
    return Case(2, ("privacy[0].r_robustness.priors[0].file", *says), changes, file("prior.csv", content))


def matrix(content: str, *says: str) -> Case:
    distance = {"kind": "matrix", "file": "distances.csv"}
    changes = privacy(dissimilarity={"epsilon": 0, "delta": 0.1, "k": 2, "distance": distance})
    return Case(2, ("privacy[0].dissimilarity.distance.file", *says), changes, file("distances.csv", content))


LEAVES = [f"{zip_code};low;*" for zip_code in sorted(set(ZIPS))]

CASES: dict[str, Case] = {
    "a config of the wrong type everywhere": Case(2, (*WRONG_FIELDS, "expected"), config=WRONG),
    "a YAML bomb": Case(2, ("config.yaml:", "aliases are not supported"), config=BOMB),
    "YAML that is nested too deeply": Case(2, ("nested too deeply",), config="a: " + "[" * 20_000),
    "YAML that makes Python objects": Case(
        2, ("a: found an unreadable value", "without a custom tag"), config="a: !!python/object/apply:os.system [x]\n"
    ),
    "YAML with a key twice": Case(
        2, ("source: found the same key again", "each key once"), config=GOOD + "source: {path: x}\n"
    ),
    "YAML with a tab": Case(2, ("config.yaml:", "not valid YAML"), config="a:\n\tb: 1\n"),
    "two YAML documents": Case(2, ("config.yaml:", "not valid YAML"), config=GOOD + "---\na: 1\n"),
    "an empty config": Case(2, ("config.yaml: the file is empty",), config=" "),
    "a config that is a list": Case(2, ("config.yaml", "expected a mapping"), config="- a\n"),
    "a config that is not text": Case(2, ("config.yaml", "not UTF-8"), config=b"\xff\xfe\x00\x01"),
    "a config with half a character": Case(
        2, ("columns.individual", "whole characters"), config=GOOD.replace("individual: row", 'individual: "\\ud83d"')
    ),
    "no config": Case(2, ("nowhere.yaml", "no such file"), command=("run", "HOUSE/nowhere.yaml")),
    "a folder for a config": Case(2, ("a folder", "a config file in YAML"), command=("run", "HOUSE")),
    "a table for a config": Case(2, ("table.parquet", "not UTF-8"), command=("run", "HOUSE/table.parquet")),
    "a variable that is not set": Case(
        2,
        ("source.path", "${NOT_SET_AT_ALL}", "environment variable"),
        config=GOOD.replace("HOUSE/table.parquet", '"${NOT_SET_AT_ALL}"'),
    ),
    "an infinite number": Case(
        2, ("privacy[0].k_anonymity.k", "a whole number"), config=GOOD.replace("k: 2", "k: .inf")
    ),
    "a number of a thousand digits": Case(
        2, ("privacy[0].k_anonymity.k", "at most 18 digits"), config=GOOD.replace("k: 2", f"k: {'9' * 900}")
    ),
    "a k of nothing": Case(2, ("privacy[0].k_anonymity.k", "at least 1"), privacy(k_anonymity={"k": 0})),
    "more values ruled out than anybody has": Case(
        2,
        ("skyline.points[0].l", "at most 1000"),
        privacy(skyline={"points": [{"l": 10**17, "k": 0, "m": 0, "c": 0.9}]}),
    ),
    "a million threads": Case(2, ("limits.threads", "at most 1024"), {"limits__threads": 1_000_000}),
    "a k that is no whole number": Case(
        2, ("privacy[0].k_anonymity.k", "a whole number", "write 2"), config=GOOD.replace("k: 2", "k: 2.0")
    ),
    "a k larger than the table": Case(3, ("k_anonymity", "1000"), privacy(k_anonymity={"k": 1000})),
    "an unknown criterion": Case(
        2, ("privacy[0].k_anonimity", "did you mean `k_anonymity`?"), privacy(k_anonimity={"k": 2})
    ),
    "criteria that are always true": Case(
        2, ("privacy", "only criteria that are always true"), privacy(k_anonymity={"k": 1})
    ),
    "a sensitive column that is a quasi-identifier": Case(
        2, ("columns.sensitive[0]", "one role only"), {"columns__sensitive": ["age"]}
    ),
    "an identifier that is kept, in other letters": Case(
        2, ("columns.keep[0]", "one role only"), {"columns__identifiers": ["name"], "columns__keep": ["NAME"]}
    ),
    "a misspelt value": Case(
        2,
        ("privacy[0].skyline.values.mark-a", "only in how it is written"),
        privacy(skyline={"points": [POINT], "values": {"mark-a": "exempt"}}),
    ),
    "a value that is a number in YAML": Case(
        2,
        ("privacy[0].skyline.values.5", "text as a key", 'write "5" in quotes'),
        config=GOOD.replace("k_anonymity: {k: 2}", "skyline: {points: [], values: {5: exempt}}"),
    ),
    "a criterion for numbers on text": Case(
        2, ("privacy[0].variance.sensitive", "a column of numbers"), privacy(variance={"minimum": 5})
    ),
    "floats treated as categories": Case(
        2,
        ("columns.sensitive.disease", "as_categories"),
        privacy(l_diversity={"kind": "distinct", "l": 2}),
        holding({"age": AGES, "zip": ZIPS, "disease": [77.70 + i for i in range(PEOPLE)]}),
    ),
    "a method that cannot do what is asked": Case(
        2,
        ("privacy[0].epsilon_m", "exhaustive: true"),
        {"method": {"kind": "lattice"}, **privacy(epsilon_m={"epsilon": 1, "m": 2})},
    ),
    "too little memory": Case(6, ("limits.memory", "400MB"), {"limits__memory": "100MB"}),
    "an invalid size": Case(2, ("memory", "a size such as 512MB"), command=("run", "CONFIG", "--memory", "lots")),
    "an invalid sample": Case(2, ("--sample", "a share above 0%"), command=("run", "CONFIG", "--sample", "0%")),
    "an empty sample": Case(2, ("--sample", "a larger one"), command=("run", "CONFIG", "--sample", "0.0001%")),
    "a hierarchy that is not there": Case(
        2,
        ("columns.quasi_identifiers.zip.hierarchy", "zip.csv: No such file"),
        {"columns__quasi_identifiers": {"zip": {"hierarchy": "zip.csv"}}},
    ),
    "a hierarchy with a cycle": hierarchy(rows("x;y;*", "y;x;*"), "one meaning for every label"),
    "a hierarchy with gaps": hierarchy(rows(*LEAVES[2:]), "2 of 6", "(4 rows)"),
    "a hierarchy with two parents": hierarchy(
        rows(*LEAVES[2:], "77700;a;b;*", "77701;a;c;*").replace("low;*", "low;low;*"), "one parent for every label"
    ),
    "a hierarchy with a leaf twice": hierarchy(rows(*LEAVES, LEAVES[0]), "every leaf once"),
    "a hierarchy of uneven lines": hierarchy(rows(*LEAVES, "x;y"), "2 fields"),
    "a hierarchy with an empty label": hierarchy(rows(*LEAVES, "x;;*"), "an empty label at level 1"),
    "an empty hierarchy": hierarchy("", "at least one row"),
    "a hierarchy in another encoding": hierarchy("x;é;*\n".encode("latin-1"), "not UTF-8"),
    "a hierarchy with an open quote": hierarchy('"x;y;*\n', "not CSV"),
    "a hierarchy that is a folder": Case(
        2,
        ("columns.quasi_identifiers.zip.hierarchy", "Is a directory"),
        {"columns__quasi_identifiers": {"zip": {"hierarchy": "zip.csv"}}},
        file("zip.csv/x", "MARK"),
    ),
    "a prior that is not there": Case(2, ("privacy[0].r_robustness.priors[0].file", "No such file"), prior("").changes),
    "a prior without what it is about": prior("age,p\n77700,1\n", "value"),
    "a prior of more than 1": prior(
        rows("age,value,p", *(f"{age},{d},0.9" for age in AGES for d in set(DISEASES))), "1"
    ),
    "a prior that leaves people out": prior(rows("age,value,p", *(f"0,{d},0.25" for d in sorted(set(DISEASES)))), "12"),
    "a distance that is not symmetric": matrix(
        rows(",MARK-A,MARK-B,MARK-C", "MARK-A,0,1,1", "MARK-B,2,0,1", "MARK-C,1,1,0"), "the same distance both ways"
    ),
    "a distance that leaves values out": matrix(rows(",MARK-A,MARK-B", "MARK-A,0,1", "MARK-B,1,0"), "1"),
    "an infinite distance": matrix(
        rows(",MARK-A,MARK-B,MARK-C", "MARK-A,0,1e999999999,1", "MARK-B,1e999999999,0,1", "MARK-C,1,1,0"),
        "line 2: field 3",
        "an exponent of at most 300",
    ),
    "an infinite threshold": Case(
        2,
        ("--threshold", "an exponent of at most 300"),
        command=("attack", "CONFIG", "--on", "HOUSE/table.parquet", "--threshold", "1e-999999999"),
    ),
    "a recoding that is not there": Case(
        2, ("method.run", "no manifest.json"), {"method": {"kind": "reuse", "run": "earlier-run"}}
    ),
    "a recoding that is garbled": Case(
        2,
        ("method.run", "a manifest.json that is damaged"),
        {"method": {"kind": "reuse", "run": "earlier-run"}},
        all_of(file("earlier-run/recoding.json", "{MARK"), file("earlier-run/manifest.json", "[]")),
    ),
    "a password in the config": Case(
        2,
        ("source.postgres.dsn", "a password", "${NAME}"),
        config=GOOD.replace(
            "{path: HOUSE/table.parquet}", '{postgres: {dsn: "postgresql://me:MARK@h/d", query: "SELECT 1"}}'
        ),
    ),
    "a file that is not a DuckDB file": Case(
        5,
        ("house.db", "not a DuckDB file"),
        make=file("house.db", b"MARK" * 5000),
        config=GOOD.replace("{path: HOUSE/table.parquet}", "{duckdb: {file: HOUSE/house.db, query: SELECT 1}}"),
    ),
    "a report without a run": Case(
        2, ("RUN", "a report.json that is damaged"), make=file("run/report.json", "{"), command=("report", "HOUSE/run")
    ),
    "an explanation without a run": Case(2, ("RUN", "no manifest.json"), command=("explain", "HOUSE")),
    "a check of a table without the columns": Case(
        2,
        ("columns.sensitive.disease", "a column of the table"),
        make=holding({"age": [1], "zip": ["77700"]}, "t.parquet"),
        command=("check", "CONFIG", "--on", "HOUSE/t.parquet"),
    ),
    "a check of half a bucketized table": Case(
        5,
        ("no table `sensitive`",),
        make=holding({"age": [1], "group": [0]}, "b/qi.parquet"),
        command=("check", "CONFIG", "--on", "HOUSE/b"),
    ),
    "a check of counts below zero": Case(
        5,
        ("1 row whose `count` is not a positive whole number",),
        make=all_of(
            holding({"age": [1, 1], "zip": ["77700"] * 2, "group": [0, 0]}, "b/qi.parquet"),
            holding({"group": [0], "disease": ["MARK"], "count": [-2]}, "b/sensitive.parquet"),
        ),
        command=("check", "CONFIG", "--on", "HOUSE/b"),
    ),
    "more knowledge than anybody has": Case(
        2,
        ("--max-k", "at most 1,000"),
        command=("disclose", "CONFIG", "--on", "HOUSE/table.parquet", "--max-k", "1000000000"),
    ),
    "an invalid confidence": Case(
        2,
        ("--confidence", "above 0 and at most 1"),
        command=("explore", "CONFIG", "--on", "HOUSE/table.parquet", "--value", "x", "--confidence", "high"),
    ),
}
