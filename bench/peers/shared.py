"""What the scripts of the peers share. They run in the environments of the peers, so this needs pandas at most.

A script gets the table (Parquet), k and where to write: one line for each group with its labels and its size. Labels
have one form for all: a number or LOW-HIGH for ages, values joined by | for categories.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

NUMBERS = ("age",)
CATEGORIES = ("sex", "race", "marital_status", "education")
NAMES = (*NUMBERS, *CATEGORIES)
SENSITIVE = "occupation"
SUPPRESSED = 2  # percent of the rows that full-domain searches may leave out

# Hierarchies for the peers that need them: bands of ages, and sets of categories; the last level is everything.
BANDS = (5, 10, 20, 40)
SETS: dict[str, list[list[str]]] = {
    "marital_status": [
        ["Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent"],
        ["Divorced", "Never-married", "Separated", "Widowed"],
    ],
    "education": [
        ["Preschool", "1st-4th", "5th-6th", "7th-8th"],
        ["9th", "10th", "11th", "12th"],
        ["HS-grad", "Some-college"],
        ["Assoc-acdm", "Assoc-voc"],
        ["Bachelors", "Masters", "Doctorate", "Prof-school"],
    ],
}


def given() -> tuple[str, int, str]:
    table, k, out = sys.argv[1:]
    return table, int(k), out


def write(out: str, groups: Iterable[tuple[tuple[str, ...], int]]) -> None:
    """Groups with equal labels are one."""
    sizes: Counter[tuple[str, ...]] = Counter()
    for labels, size in groups:
        sizes[labels] += size
    with Path(out).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, "n"])
        writer.writerows([*labels, size] for labels, size in sizes.items())


def levels(name: str, values: list[object]) -> list[list[str]]:
    """The hierarchy of a column: for each level above the values, the label of each of the values."""
    if name in NUMBERS:
        ages = [int(str(value)) for value in values]
        bands = [[f"{age // width * width}-{age // width * width + width - 1}" for age in ages] for width in BANDS]
        return [*bands, [f"{min(ages)}-{max(ages)}"] * len(ages)]
    whole = ["|".join(sorted(map(str, values)))] * len(values)
    if name not in SETS:
        return [whole]
    label = {value: "|".join(members) for members in SETS[name] for value in members}
    return [[label[str(value)] for value in values], whole]
