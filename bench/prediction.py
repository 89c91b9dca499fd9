"""What classifiers learn from releases: `python bench/prediction.py [--table NAME ...]`.

For Adult (the salary class, which is kept) and Heritage Health (the group of conditions, which is sensitive), releases
with k = 5 by several settings, each measured by `anon utility --predict`. Prints a table and keeps it in
bench/results/prediction.md, with all that was measured in prediction.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anon

sys.path.insert(0, str(Path(__file__).parent))
from measure import described, keep, machine, markdown
from utility_tables import TABLES, Table

TARGETS = {"Adult": "salary_class", "Heritage Health": "conditions"}
KEEPING = {"kind": "partition", "prefer": "loss", "cuts": "ordered"}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {  # which columns have hierarchies, and the method
    "`lattice`, 2% suppressed": ("all", {"kind": "lattice", "suppress": 0.02}),
    "`prefer: widest`, hierarchies": ("all", {"kind": "partition"}),
    "`prefer: loss`, `cuts: ordered`, `labels: cells`": ("categories", KEEPING | {"labels": "cells"}),
    "`prefer: loss`, `cuts: ordered`, `labels: tight`": ("categories", KEEPING | {"labels": "tight"}),
}


def measured(name: str, table: Table, folder: Path) -> list[dict[str, Any]]:
    path, target = folder / "table.parquet", TARGETS[name]
    table.rows.write_parquet(path)
    columns: dict[str, Any] = {"individual": "row", "sensitive": [table.sensitive]}
    columns |= {} if target == table.sensitive else {"keep": [target]}
    found = []
    for words, (treed, method) in METHODS.items():
        config = {
            "source": {"path": str(path)}, "columns": columns | {"quasi_identifiers": table.builders(folder, treed)},
            "privacy": [{"k_anonymity": {"k": 5}}], "method": method, "release": {"path": str(folder / "release")},
        }  # fmt: skip
        anon.run(config, overwrite=True)
        found.append(
            {"table": name, "release": words} | anon.utility(config, folder / "release", predict=target).to_dict()
        )
    return found


def rows(found: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    first = found[0]["prediction"]
    head = f"{found[0]['table']}, {first['column']}"
    listed = [(head, "the source", *_scores(first, "source"))]
    return listed + [(head, each["release"], *_scores(each["prediction"], "release")) for each in found]


def _scores(found: dict[str, Any], on: str) -> list[str]:
    return [f"{model[on]['accuracy']:.1%} / {model[on]['auc']:.3f}" for model in found["models"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    given = parser.parse_args()
    every = []
    for name in given.table:
        with TemporaryDirectory() as folder:
            every.append(measured(name, TABLES[name](), Path(folder)))
    facts, listed = machine(), [row for found in every for row in rows(found)]
    head = ("table, predicted column", "trained on", "gradient boosting", "logistic regression")
    chance = "; ".join(f"{each[0]['table']} {each[0]['prediction']['majority']:.1%}" for each in every)
    note = f"Accuracy / AUC on rows that were held out. The most frequent value alone: {chance}."
    text = f"{described(facts)}\n\n{markdown(head, listed)}\n\n{note}\n"
    keep("prediction", text, {"machine": facts, "releases": every})
    print(text)


if __name__ == "__main__":
    main()
