"""anonymity-api: Mondrian, which splits numbers only; categories go in as their rank in text order."""

import re

import pandas as pd
from anonymity_api import anonymity
from shared import CATEGORIES, NAMES, SENSITIVE, given, write

table, k, out = given()
frame = pd.read_parquet(table, columns=[*NAMES, SENSITIVE])
values = {name: sorted(frame[name].unique().tolist()) for name in CATEGORIES}
for name in CATEGORIES:
    frame[name] = frame[name].map({value: rank for rank, value in enumerate(values[name])})
found = anonymity.k_anonymity(frame, list(NAMES), k)


def label(cell: object, name: str) -> str:
    low, *high = re.findall(r"\d+", str(cell))
    if name in CATEGORIES:
        return "|".join(values[name][int(low) : int((high or [low])[0]) + 1])
    return "-".join([low, *high])


write(out, (
    (tuple(label(cell, name) for cell, name in zip(cells, NAMES)), size)
    for cells, size in found.groupby(list(NAMES)).size().items()
))  # fmt: skip
