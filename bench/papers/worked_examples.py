"""Tables and worked examples that the papers print: 001, 002 (Figures 1 to 6), 003 (all), 004 (Figures 1 to 3)."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import anon
from measure import ANON, finished

from .figure import Findings, Table, figure

INPATIENTS = {  # Figure 1 of the l-diversity paper: zip code, age, condition
    1: ("13053", 28, "Heart Disease"), 2: ("13068", 29, "Heart Disease"), 3: ("13068", 21, "Viral Infection"),
    4: ("13053", 23, "Viral Infection"), 5: ("14853", 50, "Cancer"), 6: ("14853", 55, "Heart Disease"),
    7: ("14850", 47, "Viral Infection"), 8: ("14850", 49, "Viral Infection"), 9: ("13053", 31, "Cancer"),
    10: ("13053", 37, "Cancer"), 11: ("13068", 36, "Cancer"), 12: ("13068", 35, "Cancer"),
}  # fmt: skip
DISEASES = ("flu", "asthma", "bronchitis", "none")
UNCERTAIN = (  # Table I of the proximity paper, by group
    ("0.5", "0.3", "0.1", "0.1"), ("0.4", "0.3", "0.2", "0.1"), ("0.4", "0.2", "0.2", "0.2"),
    ("0.3", "0.4", "0.2", "0.1"), ("0.2", "0.7", "0.1", "0"), ("0.2", "0.6", "0.2", "0"), ("0.8", "0.1", "0", "0.1"),
    ("0.3", "0.1", "0.5", "0.1"),
)  # fmt: skip
TABLE_V = (  # N, r, f_max, and the printed bound on the difference of priors
    (3, 2, "0.1", "0.0474"), (3, 2, "0.3", "0.1235"), (3, 2, "0.5", "0.1667"), (3, 2, "0.9", "0.0818"),
    (4, 2, "0.3", "0.1750"), (6, 2, "0.3", "0.2211"), (6, 3, "0.3", "0.1537"), (6, 4, "0.3", "0.0955"),
)  # fmt: skip
WARD = {  # Figure 1 of the background-knowledge paper, by bucket
    "M": ("Flu", "Flu", "Lung Cancer", "Lung Cancer", "Heart Disease"),
    "F": ("Flu", "Flu", "Breast Cancer", "Ovarian Cancer", "Heart Disease"),
}


def config(columns: dict[str, Any], privacy: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a config for commands that never read a source."""
    return {
        "source": {"path": "unused.parquet"},
        "columns": {"individual": "row"} | columns,
        "privacy": privacy,
        "release": {"path": "unused"},
    }


def criterion(table: pl.DataFrame, columns: dict[str, Any], privacy: dict[str, Any]) -> dict[str, Any]:
    """Return what `anon check` finds for one criterion."""
    found: dict[str, Any] = anon.check(config(columns, [privacy]), table).to_dict()["criteria"][0]
    return found


def inpatients(zips: dict[str, str], ages: dict[range, str]) -> pl.DataFrame:
    """Return the inpatients with generalized zip codes and ages."""
    rows = [
        (
            next(label for start, label in zips.items() if code.startswith(start)),
            next(label for span, label in ages.items() if age in span),
            condition,
        )
        for code, age, condition in INPATIENTS.values()
    ]
    return pl.DataFrame(rows, schema=["zip", "age", "condition"], orient="row")


@figure("002-04", "Figures 1, 2 and 4: the inpatients")
def figure_4() -> Findings:
    by_zip = inpatients(
        {"130": "130**", "1485": "1485*"}, {range(30): "<30", range(30, 40): "3*", range(40, 100): ">=40"}
    )
    diverse = inpatients(
        {"1305": "1305*", "1306": "1306*", "1485": "1485*"}, {range(41): "<=40", range(41, 100): ">40"}
    )
    columns = {"quasi_identifiers": {"zip": {}, "age": {}}, "sensitive": ["condition"]}
    rows = []
    for name, table, printed in (
        ("Figure 2", by_zip, ("4", "one group of cancer alone", "-")),
        ("Figure 4", diverse, ("4", "3", "2.8")),
    ):
        found = [
            criterion(table, columns, each)["figure"]
            for each in (
                {"k_anonymity": {"k": 4}},
                {"l_diversity": {"kind": "distinct", "l": 2}},
                {"l_diversity": {"kind": "entropy", "l": 2}},
            )
        ]
        rows.append((name, *(cell for pair in zip(printed, (f"{each:.4g}" for each in found)) for cell in pair)))
    head = (
        "table",
        "paper: smallest group",
        "ours",
        "paper: distinct values",
        "ours",
        "paper: entropy diversity",
        "ours",
    )
    return Findings(
        "the twelve inpatients of Figure 1",
        "As printed: Figure 2 is 4-anonymous and has a group in which everybody has cancer, Figure 4 is 3-diverse "
        "and entropy 2.8-diverse (3 is the number of distinct values).",
        [Table("`anon check`", head, rows)],
    )


@figure("002-06", "Figures 5 and 6: Bayes-optimal privacy is not monotone")
def figure_6() -> Findings:
    people = pl.DataFrame({"q": ["q1"] * 2 + ["q2"] * 50, "s": ["s1", "s2"] + ["s1"] * 35 + ["s2"] * 15})
    whole = people.with_columns(pl.lit("q*").alias("group"))
    with TemporaryDirectory() as folder:
        prior = Path(folder) / "prior.csv"
        prior.write_text("q,value,p,n\nq1,s1,0.3,1\nq1,s2,0.7,1\nq2,s1,0.5,1\nq2,s2,0.5,1\n")
        found = []
        for table, columns in (
            (people, {"quasi_identifiers": {"q": {}}}),
            (whole, {"quasi_identifiers": {"group": {}}, "keep": ["q"]}),
        ):
            asked = config(columns | {"sensitive": ["s"]}, [{"k_anonymity": {"k": 2}}])
            found.append(anon.attack(asked, table, prior=prior, rho1=0.31, rho2=0.58).to_dict()["beliefs"])
    rows = [
        (name, printed, f"{each['largest_rise']['after']:.3f}", each["breaches"]["individuals"])
        for name, printed, each in zip(("T", "T*"), (".5", "> .59"), found)
    ]
    return Findings(
        "Figure 5: 2 people with q1, 50 with q2; prior belief .3 in s1 for q1",
        "As printed; the exact value for T* is 81/137. The paper adds that the belief about q2 is the same, which is "
        "wrong: it is .771.",
        [
            Table(
                "Belief that somebody with q1 has s1 (`anon attack --prior`, rho1 = .31, rho2 = .58)",
                ("table", "paper", "ours", "individuals breached"),
                rows,
            )
        ],
    )


def proximity_risk(table: pl.DataFrame) -> dict[str, Any]:
    """Return what `anon check` on the command line finds in a table of distributions over diseases."""
    asked = {"epsilon": 0.1, "delta": 0.25, "k": 3, "distance": {"kind": "variational", "columns": list(DISEASES)}}
    columns = {"quasi_identifiers": {"gid": {}}, "sensitive": list(DISEASES)}
    with TemporaryDirectory() as folder:
        path, file = Path(folder) / "check.yaml", Path(folder) / "table.csv"
        path.write_text(json.dumps(config(columns, [{"dissimilarity": asked}])))
        table.write_csv(file)
        found = json.loads(finished([ANON, "check", path, "--on", file, "--json"], codes=(0, 3)).out)
    return dict(found["criteria"][0])


@figure("001-1", "Table I and Examples 2 to 4: diseases as distributions")
def table_1() -> Findings:
    groups = ["1"] * 5 + ["2"] * 3
    rows = [(group, *each) for group, each in zip(groups, UNCERTAIN)]
    table = pl.DataFrame(rows, schema=["gid", *DISEASES], orient="row")
    found = {group: proximity_risk(table.filter(pl.col("gid") == group)) for group in ("1", "2")}
    printed = {"1": "3/4 (4/5 of the values by equation 2)", "2": "not given"}
    return Findings(
        "Table I: eight people in two groups, the disease a distribution over four diseases, variational distance",
        "The 80% of Example 2 is equation (2), the share of the neighbourhood of the second value; the risk of "
        "equation (3), which the principle bounds, is 3/4, so that the first group satisfies it up to delta = 1/4. "
        "Distances are exact: in floats the distance of the second and fourth value is above 0.1. Figure 1 is a "
        "drawing of the group.",
        [
            Table(
                "`anon check`, epsilon = 0.1, delta = 0.25, k = 3",
                ("group", "paper: risk", "ours", "holds"),
                [
                    (g, printed[g], f"{each['figure']:.4g}", "yes" if each["safe"] else "no")
                    for g, each in found.items()
                ],
            )
        ],
    )


def posterior(people: list[tuple[str, str]], priors: dict[str, str], value: str, r: int) -> dict[str, Any]:
    """Return what `anon check` finds for r-robustness in one group of people, given as (signature, disease)."""
    table = pl.DataFrame([("L", *each) for each in people], schema=["gid", "signature", "disease"], orient="row")
    with TemporaryDirectory() as folder:
        prior = Path(folder) / "prior.csv"
        prior.write_text("signature,value,p\n" + "".join(f"{name},{value},{p}\n" for name, p in priors.items()))
        columns = {"quasi_identifiers": {"gid": {}}, "sensitive": ["disease"], "keep": ["signature"]}
        return criterion(table, columns, {"r_robustness": {"r": r, "priors": [{"file": str(prior)}]}})


@figure("003-1", "Tables I to IV and Example 1: Alan and Betty")
def tables_1_to_4() -> Findings:
    people = [("male", "Lung Cancer"), ("female", "Hypertension")]
    found = posterior(people, {"male": "0.1", "female": "0.003"}, "Lung Cancer", 2)
    exact = Fraction(997, 10000) / (Fraction(997, 10000) + Fraction(27, 10000))
    rows = [
        (
            "Alan has lung cancer",
            "above 1/2",
            f"{float(exact):.4f}",
            f"{found['figure']:.4f}",
            "yes" if found["safe"] else "no",
        )
    ]
    return Findings(
        "Group L1 of Table III with the prior of Table IV",
        "As in Example 1, 2-diversity promises 1/2 and the prior breaks it.",
        [Table("`anon check`, r = 2", ("belief", "paper", "by hand", "ours", "holds"), rows)],
    )


def ceiling(n: int, r: int, largest: Fraction) -> Fraction:
    """Return the right side of inequality (4): how far priors may differ."""
    return (n - r) * largest / (largest * (r - 1) / (1 - largest) + (n - 1))


def holds_at(n: int, r: int, largest: Fraction, difference: Fraction) -> bool:
    """Return whether a group of one person at the largest prior and n - 1 others below it is r-robust by `anon`."""
    people = [("high", "x"), *(("low", f"other {i}") for i in range(n - 1))]
    priors = {"high": str(float(largest)), "low": f"{float(largest - difference):.12f}"}
    return bool(posterior(people, priors, "x", r)["safe"])


@figure("003-5", "Table V and Example 2: how far priors may differ")
def table_5() -> Findings:
    rows = []
    for n, r, largest, printed in TABLE_V:
        bound = ceiling(n, r, Fraction(largest))
        step = Fraction(1, 10**6)
        rows.append(
            (
                n,
                r,
                largest,
                printed,
                f"{float(bound):.4f}",
                *("yes" if holds_at(n, r, Fraction(largest), bound + sign * step) else "no" for sign in (-1, 1)),
            )
        )
    example = posterior([("s1", "x"), ("s2", "y"), ("s3", "z")], {"s1": "0.1", "s2": "0.08", "s3": "0.09"}, "x", 2)
    return Findings(
        "Table V, and the three people of Example 2 with priors .1, .08 and .09",
        "As printed. The last columns are `anon check` of a group whose priors differ by a millionth less and more "
        "than the bound: it is tight where a prior names one value (with general priors the paper's theorem is "
        f"wrong, docs/how-it-works.md). Example 2: the largest posterior is {example['figure']:.4f}, at most 1/2.",
        [
            Table(
                "Bound on the difference of priors",
                ("N", "r", "f_max", "paper", "ours", "just below: holds", "just above: holds"),
                rows,
            )
        ],
    )


@figure("004-3", "Figures 1 to 3: the ward")
def ward() -> Findings:
    table = pl.DataFrame(
        [(sex, each) for sex, values in WARD.items() for each in values], schema=["sex", "disease"], orient="row"
    )
    asked = config({"quasi_identifiers": {"sex": {}}, "sensitive": ["disease"]}, [{"ck_safety": {"c": 1, "k": 1}}])
    found = anon.disclose(asked, table, 2).to_dict()
    paper = {
        "negations": ("2/5", "2/3 (not the flu)", "1 (nor heart disease)"),
        "implications": ("2/5", "10/19 (Hannah's flu)", ""),
    }
    rows = [(k, *(cell for kind in paper for cell in (paper[kind][k], f"{found[kind][k]:.4f}"))) for k in range(3)]
    head = ("pieces", "paper: negations", "ours", "paper: implications", "ours")
    return Findings(
        "the ten patients of Figure 1 in the two buckets of Figure 3",
        "The paper's second story, that Hannah's flu would give Charlie the flu, ends at 10/19; it is one "
        "implication of many, and the worst one gives 2/3. Figure 4 is a truth table.",
        [Table("Maximum disclosure (`anon disclose`)", head, rows)],
    )
