"""What labels reveal and what they keep: `python bench/label_ends.py [--table NAME ...]`.

k = 5, `prefer: loss`, `cuts: ordered`, numbers cut freely: labels from cut to cut (`cells`), as far as the members
reach (`tight`), and each of them only to multiples of the number that `WIDTHS` has for a column (`ends`). Query error
and loss by the evaluator of bench/utility.py; of the printed ends of the labels of numbers, in every group, the share
that a member of the group has as their value. Keeps the result in bench/results/label_ends.md and .json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import anon

sys.path.insert(0, str(Path(__file__).parent))
from measure import described, keep, machine, markdown
from utility import K, judged
from utility import _ends as ends_of
from utility_tables import TABLES, Table

METHOD = {"kind": "partition", "prefer": "loss", "cuts": "ordered"}
WIDTHS = {"age": 5, "claims": 5, "providers": 5, "specialities": 3, "places": 2, "drugs": 3, "charlson": 2}
SETTINGS: dict[str, tuple[str, bool]] = {
    "`labels: cells`": ("cells", False), "`labels: cells`, `ends`": ("cells", True),
    "`labels: tight`": ("tight", False), "`labels: tight`, `ends`": ("tight", True),
}  # fmt: skip


def measured(table: Table, labels: str, ends: bool, folder: Path) -> dict[str, Any]:
    numbers = [name for name in table.hierarchies if table.rows.schema[name] == pl.Int64]
    builders = table.builders(folder, "categories")
    builders |= {name: {"ends": WIDTHS[name]} for name in numbers} if ends else {}
    copies = {f"{name}_copy": name for name in numbers}
    config = {
        "source": {"path": "rows.parquet"}, "privacy": [{"k_anonymity": {"k": K}}],
        "columns": {
            "individual": "row", "quasi_identifiers": builders, "sensitive": [table.sensitive], "keep": list(copies),
        },
        "method": METHOD | {"labels": labels}, "release": {"path": str(folder / "out")},
    }  # fmt: skip
    rows = table.rows.with_columns(pl.col(name).alias(copy) for copy, name in copies.items())
    anon.run(config, rows, overwrite=True)
    release = pl.read_parquet(folder / "out" / "release.parquet")
    error, loss = judged(table, release)
    return {"query_error": error, "loss": loss} | own_ends(release, list(table.hierarchies), copies)


def own_ends(release: pl.DataFrame, columns: list[str], copies: dict[str, str]) -> dict[str, Any]:
    """Return the groups, the printed ends of their labels, and those that are the value of a member."""
    groups = release.group_by(columns).agg(pl.col(copy).unique() for copy in copies)
    printed = own = 0
    for copy, name in copies.items():
        for label, values in zip(groups[name].to_list(), groups[copy].to_list()):
            found = {end for end in ends_of(label) or () if abs(end) < float("inf")}
            printed += len(found)
            own += len(found.intersection(values))
    return {"groups": groups.height, "printed": printed, "own": own}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=list(TABLES), default=list(TABLES))
    figures = []
    for name in parser.parse_args().table:
        table = TABLES[name]()
        for setting, (labels, ends) in SETTINGS.items():
            with TemporaryDirectory() as folder:
                figures.append({"table": name, "labels": setting} | measured(table, labels, ends, Path(folder)))
    head = ("table", "labels", "query error / loss", "groups", "printed ends of numbers", "of these a member's value")
    rows = [
        (f["table"], f["labels"], f"{f['query_error']:.3f} / {f['loss']:.3f}", f"{f['groups']:,}", f"{f['printed']:,}",
         f"{f['own']:,}, {f['own'] / f['printed']:.0%}")
        for f in figures
    ]  # fmt: skip
    text = f"{described(machine())}\n\n{markdown(head, rows)}\n"
    keep("label_ends", text, {"machine": machine(), "figures": figures})
    print(text)


if __name__ == "__main__":
    main()
