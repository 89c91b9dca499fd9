"""Generate visits for the tutorial: a CSV file with several rows per patient, made of the synthetic hospital extract
(hospital.py). All machines generate the same file. People, codes and figures are invented."""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

import hospital

MOST = 6  # visits of a patient
ABOUT_A_PATIENT = ("patient_id", "name", "sex", "zip")
ABOUT_A_VISIT = ("ward", "diagnosis", "cost")


def visits(patients: int) -> pa.Table:
    """Return one to six visits of each patient, in the order of their dates. Sex, zip code and date of birth
    are the same in all visits of a patient; now and then somebody moves."""
    extract = hospital.rows(0, patients * MOST).to_pylist()
    found = []
    for number in range(patients):
        person = extract[number]
        born = person["admitted"] - timedelta(days=365 * person["age"] + number % 365)
        for visit in range(1 + number * 7 % MOST):
            other = extract[number + visit * patients]
            moved = {"zip": other["zip"]} if visit == 3 and number % 11 == 0 else {}
            about = {name: person[name] for name in ABOUT_A_PATIENT} | moved | {"born": born}
            found.append(about | {"visited": other["admitted"]} | {name: other[name] for name in ABOUT_A_VISIT})
    found.sort(key=lambda row: row["visited"])
    return pa.Table.from_pylist(found)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a CSV file of synthetic visits.")
    parser.add_argument("--patients", type=int, default=3_000, metavar="N", help="patients (default 3000)")
    parser.add_argument("--out", type=Path, default=Path("visits.csv"), help="the file (default visits.csv)")
    options = parser.parse_args()
    table = visits(options.patients)
    pyarrow.csv.write_csv(table, options.out)
    print(f"wrote {len(table):,} visits of {options.patients:,} patients to {options.out}")


if __name__ == "__main__":
    main()
