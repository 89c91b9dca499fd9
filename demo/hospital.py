"""Generate the table that the demo releases: a synthetic hospital extract, one row per patient, which is the source of
configs/hospital.yaml. Every row depends only on its row number, so any range of rows can be generated separately and
all machines generate the same table. People, codes and figures are invented; only the shape is that of a hospital.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

ROW_GROUP = 1 << 17
GOLDEN = 0x9E3779B97F4A7C15
AGES = np.arange(105)
SEXES = ("F", "M", "X")
FIRST_DAY, LAST_DAY = date(2023, 1, 1), date(2024, 12, 31)

# One independent stream of random numbers per decision about a row.
STREAMS = ("age", "sex", "zip", "diagnosis", "ward", "admitted", "stay", "cost", "first", "last")

SCHEMA = pa.schema(
    {
        "patient_id": pa.string(),
        "name": pa.string(),
        "age": pa.int32(),
        "sex": pa.string(),
        "zip": pa.string(),
        "admitted": pa.date32(),
        "ward": pa.string(),
        "diagnosis": pa.string(),
        "cost": pa.int32(),
        "length_of_stay": pa.int32(),
    }
)

# Anchors (age, weight) of a curve over age: straight lines between them, level beyond the first and the last.
Curve = tuple[tuple[int, float], ...]

YOUNG_AND_OLD: Curve = ((0, 5), (4, 3), (12, 1), (50, 1), (70, 2.5), (90, 5), (104, 5))
CHILDREN_FIRST: Curve = ((0, 6), (5, 8), (14, 5), (25, 2), (50, 1), (104, 0.6))
TEENS_FIRST: Curve = ((0, 0), (3, 0.5), (12, 6), (20, 5), (40, 2), (70, 0.8), (104, 0.5))
MOTHERS: Curve = ((14, 0), (18, 1), (24, 5), (31, 9), (36, 6), (42, 1.2), (50, 0.02), (51, 0))
GROWN_UP: Curve = ((15, 0), (22, 1), (35, 2), (60, 3), (80, 2), (104, 1))
MIDDLE_AGED: Curve = ((14, 0), (20, 2), (35, 4), (55, 4), (70, 1.5), (90, 0.6), (104, 0.3))
PAST_FIFTY: Curve = ((30, 0), (40, 0.2), (50, 1), (65, 5), (80, 5), (104, 2.5))
PAST_SIXTY: Curve = ((25, 0), (45, 0.15), (60, 1.2), (75, 4), (90, 8), (104, 9))
PAST_22: Curve = ((22, 0), (45, 3), (65, 5), (104, 3))
PAST_45: Curve = ((45, 0), (46, 0.5), (60, 4), (104, 5))
MIDLIFE: Curve = ((16, 0), (20, 1), (35, 5), (50, 4), (70, 0.8), (85, 0))
UNDER_65: Curve = ((0, 4), (10, 5), (30, 3), (50, 0.5), (65, 0))
VERY_OLD: Curve = ((40, 0), (60, 0.15), (70, 1), (80, 4), (90, 9), (104, 12))


PLANNED, EMERGENCY, WINTER = range(3)


@dataclass(frozen=True)
class Diagnosis:
    """One diagnosis: its share of all patients in percent, whom it affects, where it is treated, and what that costs.

    `sexes` weighs F, M, X; `wards` weighs the wards for adults; `stay` is the median in days; a patient costs about
    `base + stay * per_day` euro; `season` is the distribution over the week and the
    year; `elsewhere` is the share in any ward with a free bed.
    """

    name: str
    share: float
    ages: Curve
    sexes: tuple[float, float, float]
    wards: dict[str, float]
    stay: float
    base: int
    per_day: int
    season: int = EMERGENCY
    elsewhere: float = 0.15


# Weights of F, M and X.
BOTH, MORE_MEN, MORE_WOMEN = (1, 1, 1), (1, 1.6, 1.3), (1.6, 1, 1.3)
WOMEN, MEN = (1, 0, 0), (0, 1, 0)
INTERNAL, CARDIOLOGY, PNEUMOLOGY = "Internal medicine", "Cardiology", "Pneumology"
INFECTIOUS, ONCOLOGY = "Infectious diseases", "Oncology"
SURGERY, TRAUMA, UROLOGY = "General surgery", "Trauma surgery", "Urology"
GYNAECOLOGY, PAEDIATRICS = "Obstetrics and gynaecology", "Paediatrics"
NEUROLOGY, PSYCHIATRY = "Neurology", "Psychiatry"
MEDICINE = (INTERNAL, CARDIOLOGY, PNEUMOLOGY, INFECTIOUS, ONCOLOGY)
WARDS = (*MEDICINE, SURGERY, TRAUMA, UROLOGY, GYNAECOLOGY, PAEDIATRICS, NEUROLOGY, PSYCHIATRY)

DIAGNOSES = (
    Diagnosis("Heart failure", 12.0, PAST_SIXTY, BOTH, {CARDIOLOGY: 6, INTERNAL: 4}, 8, 900, 420),
    Diagnosis("Childbirth", 7.6, MOTHERS, WOMEN, {GYNAECOLOGY: 1}, 3, 1400, 480, elsewhere=0.01),
    Diagnosis("Coronary heart disease", 7.3, PAST_FIFTY, MORE_MEN, {CARDIOLOGY: 9, INTERNAL: 1}, 4, 4200, 560),
    Diagnosis("Pneumonia", 5.7, YOUNG_AND_OLD, BOTH, {PNEUMOLOGY: 5, INTERNAL: 4, INFECTIOUS: 2}, 7, 500, 430, WINTER),
    Diagnosis("Gastroenteritis", 5.1, YOUNG_AND_OLD, BOTH, {INTERNAL: 6, INFECTIOUS: 4}, 3, 300, 380, WINTER),
    Diagnosis("Osteoarthritis of the knee", 4.9, PAST_FIFTY, MORE_WOMEN, {TRAUMA: 1}, 7, 6300, 410, PLANNED),
    Diagnosis("Stroke", 4.8, PAST_SIXTY, BOTH, {NEUROLOGY: 9, INTERNAL: 1}, 9, 2600, 610),
    Diagnosis("COPD", 4.6, PAST_FIFTY, MORE_MEN, {PNEUMOLOGY: 7, INTERNAL: 3}, 7, 400, 410, WINTER),
    Diagnosis("Urinary infection", 4.5, YOUNG_AND_OLD, MORE_WOMEN, {UROLOGY: 5, INTERNAL: 4}, 5, 250, 370),
    Diagnosis("Gallstones", 4.3, GROWN_UP, MORE_WOMEN, {SURGERY: 9, INTERNAL: 1}, 4, 3100, 440, PLANNED),
    Diagnosis("Atrial fibrillation", 4.3, PAST_FIFTY, BOTH, {CARDIOLOGY: 8, INTERNAL: 2}, 4, 2300, 520),
    Diagnosis("Head injury", 3.7, YOUNG_AND_OLD, MORE_MEN, {TRAUMA: 6, NEUROLOGY: 4}, 2, 600, 520),
    Diagnosis("Diabetes", 4.1, GROWN_UP, BOTH, {INTERNAL: 1}, 6, 500, 360),
    Diagnosis("Fracture of the hip", 3.3, VERY_OLD, MORE_WOMEN, {TRAUMA: 1}, 12, 6900, 430),
    Diagnosis("Inguinal hernia", 2.8, GROWN_UP, (1, 4, 2), {SURGERY: 1}, 2, 2200, 420, PLANNED),
    Diagnosis("Appendicitis", 2.6, TEENS_FIRST, BOTH, {SURGERY: 1}, 4, 3000, 420),
    Diagnosis("Depression", 2.5, MIDDLE_AGED, MORE_WOMEN, {PSYCHIATRY: 9, INTERNAL: 1}, 24, 300, 290),
    Diagnosis("Asthma", 2.3, CHILDREN_FIRST, BOTH, {PNEUMOLOGY: 8, INTERNAL: 2}, 3, 300, 400, WINTER),
    Diagnosis("Kidney stones", 2.2, MIDDLE_AGED, MORE_MEN, {UROLOGY: 1}, 3, 1700, 430),
    Diagnosis("Prostate disorder", 2.2, PAST_45, MEN, {UROLOGY: 1}, 5, 2900, 420, PLANNED),
    Diagnosis("Alcohol dependence", 2.0, MIDDLE_AGED, (1, 2.5, 1.6), {PSYCHIATRY: 7, INTERNAL: 3}, 10, 200, 310),
    Diagnosis("Bowel cancer", 1.6, PAST_FIFTY, MORE_MEN, {ONCOLOGY: 5, SURGERY: 5}, 11, 8200, 560, PLANNED),
    Diagnosis("Breast cancer", 1.5, PAST_22, (1, 0.008, 0.4), {GYNAECOLOGY: 1, ONCOLOGY: 1}, 5, 5900, 540, PLANNED),
    Diagnosis("Lung cancer", 1.2, PAST_FIFTY, MORE_MEN, {ONCOLOGY: 6, PNEUMOLOGY: 4}, 9, 7400, 580),
    Diagnosis("Epilepsy", 1.1, YOUNG_AND_OLD, BOTH, {NEUROLOGY: 1}, 4, 700, 470),
    Diagnosis("Schizophrenia", 0.8, MIDDLE_AGED, MORE_MEN, {PSYCHIATRY: 1}, 30, 300, 300),
    Diagnosis("HIV", 0.4, MIDLIFE, (1, 3, 3), {INFECTIOUS: 6, INTERNAL: 4}, 8, 2400, 520),
    Diagnosis("Multiple sclerosis", 0.3, MIDLIFE, (2.4, 1, 1.6), {NEUROLOGY: 1}, 6, 3800, 480),
    Diagnosis("Tuberculosis", 0.2, GROWN_UP, MORE_MEN, {INFECTIOUS: 5, PNEUMOLOGY: 5}, 21, 900, 440),
    Diagnosis("Cystic fibrosis", 0.1, UNDER_65, BOTH, {PNEUMOLOGY: 1}, 10, 3300, 510),
)

# Newborns and small children, few schoolchildren, many old people; the young women who come to give birth are added.
PATIENTS: Curve = ((0, 14), (2, 6), (8, 3), (20, 5), (40, 6), (60, 12), (78, 22), (86, 15), (95, 3), (104, 0.2))
SHARE_X = 0.002
ADULT = 15  # years; younger patients lie in paediatrics

# Region: first two digits of the postcode, number of postcodes, share of the patients.
REGIONS = (("01", 130, 0.34), ("02", 70, 0.11), ("04", 110, 0.36), ("10", 90, 0.19))

WOMEN_NAMES = """Alva Bentje Carlina Dorthe Elwine Fenna Gesine Hanka Ilvy Jette Karla Levke Malin Nele Oda Paula
Rieke Svea Tilda Ulla Vesna Wiebke Yara Zita Amira Leyla Noor Sanem""".split()  # noqa: SIM905
MEN_NAMES = """Arvid Bosse Claas Detlef Eike Falko Gero Henrik Ivo Jannik Kilian Lasse Malte Niels Ole Piet Ruben
Sönke Tjark Uwe Veit Wanja Yannis Zeno Karim Emre Tarik Bilal""".split()  # noqa: SIM905
FAMILY_NAMES = """Abendrath Birkmoor Claasholm Dornfelder Ehrwald Farnkamp Grothus Hallenstein Immerfeld Jorkmann
Kesselau Lindquell Mohnhaupt Nordhagen Ostertal Pfahlmeier Quellbrink Rabenhorst Sandvoss Tannert Uhlenbrok Vossbeck
Wiesengrund Yorckfeld Zellmann Ahlquist Brandhof Demirsoy Eschweg Fahrenbach Goldammer Heidloh Kaltwasser Lohmühl
Moorkamp Okafira Petrossian Rosenau Steinquist Weidenfels""".split()  # noqa: SIM905


def words(numbers: Words) -> Words:
    """Apply the output function of splitmix64: one well-mixed 64-bit word per input word."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class Dice:
    """The random numbers of a range of rows: a row number seeds splitmix64, and a stream is one of its steps."""

    def __init__(self, start: int, stop: int) -> None:
        self.seeds = words(np.arange(start, stop, dtype=np.uint64) + np.uint64(GOLDEN))

    def words(self, stream: str) -> Words:
        step = GOLDEN * (STREAMS.index(stream) + 1) % 2**64
        return words(self.seeds + np.uint64(step))

    def uniform(self, stream: str) -> Floats:
        """Return multiples of 2**-32 in [0, 1): adding a small integer to one is exact, which `pick` needs."""
        return (self.words(stream) >> np.uint64(32)).astype(np.float64) * 2.0**-32

    def normal(self, stream: str) -> Floats:
        """Return roughly standard normal numbers, never beyond 3.47: sums of four uniforms from quarters of a word."""
        quarters = self.words(stream).view(np.uint16).reshape(-1, 4)
        centred: Floats = quarters.sum(axis=1) / 65536 - 2
        return centred * math.sqrt(3)


def pick(weights: Floats, stratum: Ints, uniform: Floats) -> Ints:
    """Choose for every row by the weights of its stratum, a line of `weights`; weight 0 is never chosen."""
    bounds = np.cumsum(weights, axis=1)
    bounds /= bounds[:, -1:]
    bounds += np.arange(len(weights))[:, None]
    return np.searchsorted(bounds.ravel(), stratum + uniform, side="right") - stratum * weights.shape[1]


def curve(anchors: Curve) -> Floats:
    """Return the curve's weight at every age."""
    ages, weights = zip(*anchors, strict=True)
    return np.interp(AGES, ages, weights)


@cache
def patients() -> Floats:
    """Return the weight of every (sex, age) among the patients: women, men and X in this order."""
    everyone = curve(PATIENTS)
    women = np.interp(AGES, [0, 50, 70, 90, 104], [0.46, 0.47, 0.5, 0.62, 0.8]) * everyone + 0.9 * curve(MOTHERS)
    men = everyone * np.interp(AGES, [0, 50, 70, 90, 104], [0.54, 0.53, 0.5, 0.38, 0.2])
    both = np.stack([women, men])
    grown = np.where(AGES < 12, 0.2, 1.0)
    return np.concatenate([both, SHARE_X * both.sum(axis=0, keepdims=True) * grown])


@cache
def diagnosis_weights() -> Floats:
    """Return the weight of every diagnosis in every stratum (sex, age), fitted to the shares among all patients."""
    share = np.array([diagnosis.share for diagnosis in DIAGNOSES]) / 100
    profile = np.stack([np.outer(diagnosis.sexes, curve(diagnosis.ages)).ravel() for diagnosis in DIAGNOSES], axis=1)
    people = patients().ravel() / patients().sum()
    factor = share
    for _ in range(100):
        chance = profile * factor
        chance /= chance.sum(axis=1, keepdims=True)
        factor = factor * share / (people @ chance)
    return profile * factor


@cache
def ward_weights() -> Floats:
    """Return the weight of every ward by (diagnosis, sex, child or adult): mostly the right ward, or any free bed."""
    weights = np.zeros((len(DIAGNOSES), len(SEXES), 2, len(WARDS)))
    for number, diagnosis in enumerate(DIAGNOSES):
        weights[number] += diagnosis.elsewhere / len(WARDS)
        for ward, weight in diagnosis.wards.items():
            share = (1 - diagnosis.elsewhere) * weight / sum(diagnosis.wards.values())
            weights[number, ..., WARDS.index(ward)] += share
    weights[:, SEXES.index("M"), :, WARDS.index(GYNAECOLOGY)] = 0
    weights[:, :, 0, WARDS.index(PAEDIATRICS)] = 0
    weights[:, :, 1, WARDS.index(PAEDIATRICS)] = 8
    weights[:, :, 1, WARDS.index(GYNAECOLOGY)] = 0
    return weights.reshape(-1, len(WARDS))


@cache
def day_weights() -> Floats:
    """Return the weight of every day by season: planned stays start on working days, infections occur in winter."""
    day = np.arange((LAST_DAY - FIRST_DAY).days + 1)
    weekday = (day + FIRST_DAY.weekday()) % 7
    winter = np.cos(2 * np.pi * (day - 20) / 365.25)
    planned = np.array([1.5, 1.4, 1.3, 1.2, 0.8, 0.1, 0.4])[weekday] * (1 - 0.15 * np.cos(4 * np.pi * day / 365.25))
    emergency = np.array([1.15, 1.05, 1.0, 1.0, 1.05, 0.9, 0.85])[weekday] * (1 + 0.04 * winter)
    infection = np.array([1.2, 1.05, 1.0, 1.0, 1.0, 0.85, 0.85])[weekday] * (1 + 0.45 * winter)
    return np.stack([planned, emergency, infection])


@cache
def postcodes() -> tuple[list[str], Floats]:
    """Return the postcodes and their weights: low numbers are towns, high numbers the country around them."""
    codes: list[str] = []
    weights: list[Floats] = []
    for prefix, count, share in REGIONS:
        place = np.arange(count)
        codes += [f"{prefix}{67 + 7 * number:03d}" for number in place]
        size = (0.3 + Dice(int(prefix) * 1000, int(prefix) * 1000 + count).uniform("zip")) / (place + 8) ** 0.7
        weights.append(share * size / size.sum())
    return codes, np.concatenate(weights)[None, :]


@cache
def names() -> list[str]:
    return [f"{family}, {first}" for first in WOMEN_NAMES + MEN_NAMES for family in FAMILY_NAMES]


def name_numbers(sex: Ints, dice: Dice) -> Ints:
    """Return indexes into `names`: women's first names, men's, or for X any of them."""
    first_name = np.array([0, len(WOMEN_NAMES), 0])[sex]
    choices = np.array([len(WOMEN_NAMES), len(MEN_NAMES), len(WOMEN_NAMES) + len(MEN_NAMES)])[sex]
    first = first_name + (dice.uniform("first") * choices).astype(np.int64)
    return first * len(FAMILY_NAMES) + (dice.uniform("last") * len(FAMILY_NAMES)).astype(np.int64)


def stay_and_cost(diagnosis: Ints, age: Ints, dice: Dice) -> tuple[Ints, Ints]:
    """Return days (1 to 120) and euro: both skewed to the right, both growing with age."""
    stay, base, per_day = np.array([(item.stay, item.base, item.per_day) for item in DIAGNOSES]).T
    frail = 1 + np.maximum(age - 60, 0) / 100
    days = np.clip(np.rint(stay[diagnosis] * frail * np.exp(0.5 * dice.normal("stay"))), 1, 120)
    euro = (base[diagnosis] + per_day[diagnosis] * days) * (0.9 + age / 500) * np.exp(0.25 * dice.normal("cost"))
    return days.astype(np.int64), np.rint(euro).astype(np.int64)


def patient_ids(start: int, stop: int) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(np.arange(start + 1, stop + 1)).cast(pa.string()), width=8, padding="0")
    return pc.binary_join_element_wise("P", digits, "")


def spell(labels: Sequence[str], numbers: Ints) -> pa.Array:
    return pa.array(labels, pa.string()).take(pa.array(numbers))


def rows(start: int, stop: int) -> pa.Table:
    """Return the rows from number `start` (from 0) up to but not including `stop`, the same for any range."""
    if not 0 <= start <= stop:
        raise ValueError(f"rows: found {start} to {stop}; expected 0 <= start <= stop")
    dice = Dice(start, stop)
    one = np.zeros(stop - start, dtype=np.int64)
    age = pick(patients().sum(axis=0)[None, :], one, dice.uniform("age"))
    sex = pick(patients().T, age, dice.uniform("sex"))
    codes, sizes = postcodes()
    diagnosis = pick(diagnosis_weights(), sex * len(AGES) + age, dice.uniform("diagnosis"))
    ward = pick(ward_weights(), (diagnosis * len(SEXES) + sex) * 2 + (age < ADULT), dice.uniform("ward"))
    season = np.array([item.season for item in DIAGNOSES])[diagnosis]
    day = pick(day_weights(), season, dice.uniform("admitted")) + (FIRST_DAY - date(1970, 1, 1)).days
    days, euro = stay_and_cost(diagnosis, age, dice)
    columns = [
        patient_ids(start, stop),
        spell(names(), name_numbers(sex, dice)),
        pa.array(age, pa.int32()),
        spell(SEXES, sex),
        spell(codes, pick(sizes, one, dice.uniform("zip"))),
        pa.array(day.astype(np.int32)).cast(pa.date32()),
        spell(WARDS, ward),
        spell([item.name for item in DIAGNOSES], diagnosis),
        pa.array(euro, pa.int32()),
        pa.array(days, pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def batches(count: int) -> Iterator[pa.Table]:
    for start in range(0, count, ROW_GROUP):
        yield rows(start, min(start + ROW_GROUP, count))


def write(count: int, out: Path, as_csv: bool) -> None:
    """Write the first `count` rows, with one row group in memory at a time."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with pa.csv.CSVWriter(out, SCHEMA) if as_csv else pq.ParquetWriter(out, SCHEMA) as writer:
        for table in batches(count):
            writer.write_table(table)


def row_count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError("expected a whole number of rows, at least 1")
    return int(text)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Write a synthetic hospital extract for trying anon: one row per patient, all of them invented.",
        epilog="""columns:
  patient_id       unique                              (individual)
  name             family name, first name             (identifier)
  age sex zip      what a neighbour knows              (quasi-identifiers)
  admitted ward    what a visitor knows                (quasi-identifiers)
  diagnosis        what nobody else should learn       (sensitive)
  cost             euro
  length_of_stay   days

The same row number always gives the same row, so a table of 1000 rows is the start of a table of a million.

  python demo/hospital.py                              a million rows where configs/hospital.yaml expects them
  python demo/hospital.py --rows 20000                 a small table
  python demo/hospital.py --csv --out extract.csv
  anon run configs/hospital.yaml                       then release it""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    here = Path(__file__).parent
    parser.add_argument("--rows", type=row_count, default=1_000_000, metavar="N", help="patients (default 1000000)")
    parser.add_argument(
        "--out",
        type=Path,
        default=here / "out" / "extract.parquet",
        metavar="FILE",
        help="file to write, replaced if it exists (default demo/out/extract.parquet)",
    )
    parser.add_argument("--csv", action="store_true", help="write CSV instead of Parquet")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments(argv)
    begun = time.perf_counter()
    write(options.rows, options.out, options.csv)
    size, seconds = options.out.stat().st_size / 1e6, time.perf_counter() - begun
    print(f"wrote {options.rows:,} rows, {len(SCHEMA)} columns to {options.out} ({size:.1f} MB, {seconds:.1f} s)")


if __name__ == "__main__":
    main()
