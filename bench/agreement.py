"""`anon check` and pycanon on the Adult table, grouped in several ways: `python bench/agreement.py`.

pycanon pins its own versions of what anon runs on, so it lives in an environment of its own, .cache/pycanon, made the
first time. Its figures are kept in bench/results/pycanon.json, which tests/verify/test_pycanon.py holds anon to; the
table that is printed is kept in bench/results/pycanon.md. Exit 1 where the two disagree.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from demo import adult  # noqa: E402

import anon  # noqa: E402

PEER = "pycanon==1.3.6"
HOME = ROOT / ".cache" / "pycanon"
RESULTS = ROOT / "bench" / "results"
AGREED = 1e-9  # how near shares and distances must be; sizes and numbers of values are equal

# Quasi-identifiers as they stand and generalized to bands of so many years, and what is sensitive.
GROUPINGS: list[tuple[tuple[str, ...], str]] = [
    (("sex", "race", "marital_status", "education"), "occupation"),
    (("age_5", "sex", "race"), "occupation"),
    (("age_20", "sex"), "occupation"),
    (("age_20", "sex"), "workclass"),
    (("sex", "race"), "occupation"),
    (("education", "sex"), "marital_status"),
    (("age_20", "sex"), "hours_per_week"),
    (("sex", "race"), "hours_per_week"),
]

# In the environment of the peer. Empty fields are no missing values, and the index is the row number: it goes by that.
ASK = """
import json, sys
import pandas
from pycanon import anonymity
table = pandas.read_csv(sys.argv[1], keep_default_na=False).reset_index(drop=True)
told = []
for names, sensitive in json.loads(sys.argv[2]):
    alpha, k = anonymity.alpha_k_anonymity(table, names, [sensitive])
    l = anonymity.l_diversity(table, names, [sensitive])
    t = anonymity.t_closeness(table, names, [sensitive])
    figures = {"k": int(k), "l": int(l), "t": float(t), "alpha": float(alpha)}
    told.append({"quasi_identifiers": names, "sensitive": sensitive, **figures})
print(json.dumps(told))
"""


def banded(table: pa.Table) -> pa.Table:
    """The table with ages in bands beside the ages."""
    for width in (5, 20):
        low = pc.multiply(pc.divide(table["age"], width), width)
        high = pc.add(low, width - 1)
        label = pc.binary_join_element_wise(low.cast(pa.string()), high.cast(pa.string()), "-")
        table = table.append_column(f"age_{width}", label)
    return table


def by_anon(table: pa.Table, names: tuple[str, ...], sensitive: str) -> dict[str, float]:
    """The four figures by anon, with the distance that pycanon chooses: equal for text, ordered for numbers."""
    distance = "ordered" if sensitive in adult.NUMBERS else "equal"
    criteria: dict[str, dict[str, Any]] = {
        "k": {"k_anonymity": {"k": 2}},
        "l": {"l_diversity": {"kind": "distinct", "l": 2}},
        "t": {"t_closeness": {"t": 0.5, "distance": {"kind": distance}}},
        "alpha": {"alpha_k": {"alpha": 0.5, "k": 2}},
    }
    config = {
        "source": {"path": "none.parquet"},
        "columns": {"individual": "row", "quasi_identifiers": list(names), "sensitive": [sensitive]},
        "privacy": list(criteria.values()),
        "release": {"path": "out"},
    }
    found = anon.check(config, table.select([*names, sensitive])).to_dict()["criteria"]
    return {name: criterion["figure"] for name, criterion in zip(criteria, found)}


def differences(ours: dict[str, float], theirs: dict[str, Any]) -> list[str]:
    """The names of the figures that do not agree."""
    wrong = [name for name in ("k", "l") if ours[name] != theirs[name]]
    return wrong + [name for name in ("t", "alpha") if abs(ours[name] - theirs[name]) > AGREED]


def peer() -> Path:
    """The interpreter that has pycanon."""
    python = HOME / "bin" / "python"
    if not (HOME / "ready").exists():
        venv.create(HOME, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PEER], check=True)
        (HOME / "ready").touch()
    return python


def by_pycanon(table: pa.Table) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/adult.csv"
        pa.csv.write_csv(table, path)
        command = [peer(), "-I", "-c", ASK, path, json.dumps(GROUPINGS)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


def main() -> None:
    table = banded(adult.load(adult.fetch()))
    told = by_pycanon(table)
    lines = ["| quasi-identifiers | sensitive | k | l | t | alpha | |", "|---" * 7 + "|"]
    wrong = 0
    for (names, sensitive), theirs in zip(GROUPINGS, told):
        ours = by_anon(table, names, sensitive)
        differing = differences(ours, theirs)
        wrong += bool(differing)
        figures = f"{ours['k']:g} | {ours['l']:g} | {ours['t']:.9f} | {ours['alpha']:.9f}"
        verdict = f"pycanon differs: {', '.join(differing)}" if differing else "pycanon agrees"
        lines.append(f"| {', '.join(names)} | {sensitive} | {figures} | {verdict} |")
    RESULTS.mkdir(exist_ok=True)
    text = f"Adult, {table.num_rows:,} rows, figures of `anon check` against {PEER}.\n\n" + "\n".join(lines) + "\n"
    (RESULTS / "pycanon.md").write_text(text)
    kept = {"by": PEER, "rows": table.num_rows, "tables": told}
    (RESULTS / "pycanon.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(text)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
