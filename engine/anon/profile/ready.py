"""Propose builders and hierarchies that are ready to use, where the name and the content of a column fit one: ages for
birth dates, leading zeros for postcodes, and the command that builds a hierarchy for codes of a classification."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from anon.hierarchy.code_lists.countries import regions
from anon.hierarchy.code_lists.education import Education
from anon.hierarchy.code_lists.medicines import Medicines
from anon.hierarchy.code_lists.occupations import Occupations
from anon.profile.columns import NUMBERS, ColumnProfile
from anon.source.column_words import AGES, POSTAL, words

AGE_BANDS = "bands: [[0, 18, 30, 45, 65, 80], [18, 65]]"
OLDEST = 130  # years: who is older was not born on that day
ENOUGH = 0.95  # of the sampled values, that are codes of a classification
FEWEST = 3  # different values, of fewer nothing can be said
DOTTED = re.compile(r"[A-Z][0-9][0-9A-Z]\.([0-9A-Z]{1,4}|-)[+*!†]?")
DIAGNOSIS = re.compile(r"[A-Z][0-9][0-9A-Z]\.?([0-9A-Z]{0,4}|-)[+*!†]?")
SUBSTANCE = 5  # characters: shorter codes of medicines may be diagnoses
COUNTRY = frozenset(
    """country countries nation nationality citizenship land staat herkunftsland nationalitaet staatsangehoerigkeit pays
    nationalite pais nacionalidad paese nazionalita kraj narodowosc landcode""".split()  # noqa: SIM905
)
DIAGNOSES = frozenset("icd diagnosis diagnoses diagnose diag diagnostic diagnostico diagnosi diagnoza".split())  # noqa: SIM905
OCCUPATION = frozenset("isco occupation job beruf profession profesion professione zawod beroep".split())  # noqa: SIM905
Ready = tuple[str, ...]  # the builder as YAML, its description, and notes on what to check


def ready_builder(column: ColumnProfile) -> Ready | None:
    """Return the builder that is ready for a column, or None if none fits."""
    if column.kind in ("date", "timestamp"):
        return _ages(column)
    if column.kind in NUMBERS:
        return _padded(column)
    return _classified(column) if column.kind == "text" else None


def _ages(column: ColumnProfile) -> Ready | None:
    """Return ages for a column that is called a birth date and can be one."""
    least, most = column.shape.least, column.shape.most
    if not words(column.name) & AGES or least is None:
        return None
    now = datetime.now(UTC).year
    year = max(column.last_year or now - 1, most.year)
    if year - least.year > OLDEST or year > now:
        return None
    day = date(year, 12, 31)
    note = "age_on: choose the day of your table, and keep it when you publish the same people again"
    return f"age_on: {day}, {AGE_BANDS}", "birth dates, published as ages in bands", note


def _padded(column: ColumnProfile) -> Ready | None:
    """Return the digits of a postcode that has lost leading zeros as a number."""
    shape = column.shape
    fits = words(column.name) & POSTAL and shape.whole and shape.digits == column.distinct
    if not fits or shape.shortest == shape.longest or not 3 <= shape.longest <= 10:
        return None
    note = (
        f"the code was read as a number and has lost its leading zeros: pad puts them back to {shape.longest} digits, "
        "which must be the length of the code"
    )
    how = f"a code of {shape.longest} digits, hidden one by one from the end"
    return f"digits: {shape.longest}, pad: {shape.longest}", how, note


@dataclass(frozen=True)
class Classification:
    """A classification that `anon hierarchy build` knows: its name there, its name in words, what its codes look like,
    and the words of which one must be in the name of the column, if the codes alone say too little."""

    name: str
    title: str
    fits: Callable[[str], object]
    called: frozenset[str] = frozenset()


CLASSIFICATIONS = (
    Classification("atc", "medicines (ATC)", lambda word: len(word) >= SUBSTANCE and Medicines().labels(word)),
    Classification("icd10", "diagnoses (ICD-10)", DOTTED.fullmatch),
    Classification("icd10", "diagnoses (ICD-10)", DIAGNOSIS.fullmatch, DIAGNOSES),
    Classification("country", "countries", regions().__contains__),
    Classification("country", "countries", lambda word: not word.isdigit(), COUNTRY),
    Classification("isco", "occupations (ISCO-08)", Occupations().labels, OCCUPATION),
    Classification("isced", "education (ISCED)", Education().labels, frozenset(["isced"])),
)


def _classified(column: ColumnProfile) -> Ready | None:
    """Return the digits, or the value or *, for codes of a classification, with the command that builds a hierarchy
    for them."""
    sample = column.shape.sample
    if len(sample) < FEWEST:
        return None
    for each in CLASSIFICATIONS:
        fitting = sum(bool(each.fits(word)) for word in sample)
        if fitting >= ENOUGH * len(sample) and (not each.called or words(column.name) & each.called):
            command = f"anon hierarchy build {each.name} TABLE --from {shlex.quote(column.name)} --out {each.name}.csv"
            evidence = f"{fitting:,} of {len(sample):,} sampled values look like codes of {each.title}"
            note = f"{evidence}: `{command}`, then {{hierarchy: {each.name}.csv}} keeps what they mean"
            return (*_without_hierarchy(column), note)
    return None


def _without_hierarchy(column: ColumnProfile) -> tuple[str, str]:
    shape = column.shape
    if shape.digits == column.distinct and shape.shortest == shape.longest:
        return f"digits: {shape.longest}", f"a code of {shape.longest} digits, hidden one by one from the end"
    return "suppress: true", "the value or *"
