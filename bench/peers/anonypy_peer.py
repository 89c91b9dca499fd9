"""anonypy: Mondrian with sets of categories, as its README calls it."""

import anonypy
import pandas as pd
from shared import CATEGORIES, NAMES, NUMBERS, SENSITIVE, given, write

table, k, out = given()
frame = pd.read_parquet(table, columns=[*NAMES, SENSITIVE])
for name in (*CATEGORIES, SENSITIVE):
    frame[name] = frame[name].astype("category")
rows = anonypy.Preserver(frame, list(NAMES), SENSITIVE).anonymize_k_anonymity(k=k)


def label(row: dict, name: str) -> str:
    return row[name][0] if name in NUMBERS else "|".join(sorted(row[name][0].split(",")))


write(out, ((tuple(label(row, name) for name in NAMES), row["count"]) for row in rows))
