"""Warn of common mistakes: what makes a table look safer than it is although every criterion holds. All of it is seen
in what verification has counted in any case: there is no further pass over the rows. Warnings name columns, never
values. docs/traps.md lists these warnings, and the mistakes that are refused elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from anon.config import Absolute, Config, Ordered, TCloseness
from anon.config.warning_codes import LOW, STALE, WARNINGS
from anon.core.text import SPELLING, folded, meant
from anon.criteria import RRobustness
from anon.source import Source
from anon.source.column_words import names_people
from anon.source.left_out import LeftOut
from anon.verify.judge import FEW, NEARLY, Findings

HOMOGENEOUS_SHARE = 0.05
OF_ALL_KEPT = {"kept_identifies": "kept_identify_together", "kept_reveals": "kept_reveal_together"}
UNIQUE_SHARE = 0.05  # a larger share of individuals with a value that nobody else has is worth a warning
MANY_NUMBERS = 20  # distinct numbers; if there are more, they are hardly codes of categories
# Words that stand for a missing value in extracts.
NO_VALUE = {
    *("", ".", "..", "-", "--", "?", "*", "#", "n/a", "#n/a", "na", "n.a.", "nan", "nil", "none", "null"),
    *("(null)", "<null>", "missing", "not available", "not known", "not specified", "unknown", "unspecified"),
    *("undefined", "tbd", "keine angabe", "k.a.", "unbekannt", "inconnu", "desconocido"),
}
NUMBER = re.compile(r"\s*[-+]?[0-9]+([.,][0-9]+)*\s*")
DATE = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}.*")


@dataclass(frozen=True)
class Warned:
    """A warning: its code, the number of those concerned, its text, which begins with them, and the column that it is
    about, if it is about one."""

    code: str
    count: int
    text: str
    column: str | None = None
    severity: str = ""  # if it is another than that of the code

    def to_dict(self) -> dict[str, Any]:
        those, _, rest = self.text.partition(" ")  # always in the plural
        text = f"{those.removesuffix('s')} {rest}" if self.count == 1 else self.text
        severity = self.severity or WARNINGS[self.code].severity
        facts = {"code": self.code, "count": self.count, "text": text, "severity": severity}
        return facts if self.column is None else facts | {"column": self.column}


def warnings_of(config: Config, found: Findings, left_out: LeftOut) -> list[dict[str, Any]]:
    """Return what the criteria of the config do not cover, each with the number of those concerned."""
    listed: list[dict[str, Any]] = []

    def warn(code: str, count: int, text: str, column: str | None = None) -> None:
        if count:
            listed.append(Warned(code, count, text, column).to_dict())

    for column in config.columns.sensitive:
        if not any(spec.protects(column) for spec in config.privacy):
            text = f"rows with a value of {column}, which no criterion protects"
            warn("unprotected_sensitive", found.rows, text, column)
    vacuous_criteria = [spec.name for spec in config.privacy if spec.vacuous()]
    warn("vacuous_criterion", len(vacuous_criteria), f"criteria that are always true: {', '.join(vacuous_criteria)}")
    for criterion in found.criteria:
        for prior in criterion.priors if isinstance(criterion, RRobustness) else ():
            missing = len(prior.values) - len(prior.named)
            text = "that a prior does not name: it only separates each named value from the rest"
            warn("binary_prior", missing, f"values of {criterion.column} {text}", criterion.column)
    warn("homogeneous_groups", found.homogeneous_rows, "individuals in groups of one sensitive value")
    near = f"individuals in groups where at least {NEARLY:.0%} share one sensitive value that most people do not have"
    warn("nearly_homogeneous", found.nearly_homogeneous_rows, near)
    warn("groups_under_5", found.under_5, f"individuals in groups of fewer than {FEW}")
    warn("rows_dropped", left_out.rows.null, "rows dropped because of missing values")
    for each in (*_of_kept(found), *value_warnings(config, found)):
        warn(each.code, each.count, each.text, each.column)
    return listed


def _of_kept(found: Findings) -> Iterator[Warned]:
    """Yield the warnings about single kept columns, and about all of them together if no single one causes the same
    warning."""
    warned = set()
    for column, facts in found.with_kept.items():
        for warning in _knowing(found, facts, column):
            yield replace(warning, column=column)
            warned |= {warning.code} if warning.count else set()
    for warning in _knowing(found, found.with_all_kept, "all kept columns"):
        if warning.code not in warned:
            yield replace(warning, code=OF_ALL_KEPT[warning.code])


def _knowing(found: Findings, facts: dict[str, float], known: str) -> Iterator[Warned]:
    """Yield the warnings about an adversary who also knows one kept column, or all of them."""
    people = found.individuals
    if not facts:
        return
    if facts["unique_share"] > UNIQUE_SHARE:
        text = f"individuals unique in their group for an adversary who also knows {known}"
        yield Warned("kept_identifies", round(facts["unique_share"] * people), text)
    if facts["homogeneous_share"] > max(HOMOGENEOUS_SHARE, found.homogeneous_rows / people):
        text = f"individuals whose sensitive value is certain for an adversary who also knows {known}"
        yield Warned("kept_reveals", round(facts["homogeneous_share"] * people), text)


def signed_off(config: Config, warnings: list[dict[str, Any]], all_known: bool = False) -> list[dict[str, Any]]:
    """Return warnings with the reason of those that the config accepts. `all_known`: these are all the warnings of a
    run, so that an entry that accepts none of them is a warning too: what it was about has changed."""
    found, unused = [], list(config.accept)
    for warning in warnings:
        about = warning["code"], warning.get("column")
        by = [entry for entry in config.accept if entry.covers(*about)]
        unused = [entry for entry in unused if entry not in by]
        found.append(warning | {"accepted": "; ".join(dict.fromkeys(entry.reason for entry in by))} if by else warning)
    if unused and all_known:
        named = ", ".join(f"{each.warning} ({each.column})" if each.column else each.warning for each in unused)
        text = f"entries of `accept` that no warning of this run corresponds to: {named}"
        found.append(Warned(STALE, len(unused), text).to_dict())
    return found


def standing(warnings: list[dict[str, Any]], severity: str | None = None) -> list[dict[str, Any]]:
    """Return the warnings that are not accepted, all or those of one severity."""
    return [each for each in warnings if "accepted" not in each and severity in (None, each["severity"])]


@dataclass(frozen=True)
class ColumnValues:
    """The values of a sensitive column as text, and the number of individuals who have each."""

    column: str
    texts: list[str | None]
    frequency: list[int]

    def people(self, *wanted: bool) -> int:
        return sum(count for count, chosen in zip(self.frequency, wanted) if chosen)

    @cached_property
    def words(self) -> list[str]:
        """Return the values that occur, without null."""
        return [text for text, count in zip(self.texts, self.frequency) if text is not None and count]

    @property
    def numbers(self) -> bool:
        """Return whether most of the values are numbers or dates, whatever the type of their column."""
        alike = sum(bool(NUMBER.fullmatch(word) or DATE.fullmatch(word)) for word in self.words)
        return 2 * alike > len(self.words)


def value_warnings(config: Config, found: Findings) -> Iterator[Warned]:
    """Yield the warnings about the values of a table."""
    for column in config.columns.sensitive:
        if column in found.values:
            values = ColumnValues(column, found.values[column], found.frequency[column])
            yield from _missing_values(config, values)
            yield from _look_alike_values(config, values)
            yield from _identifying_values(config, values)
    yield from _criteria(config, found)
    for column, cells in found.formulas.items():
        text = f"cells of {column} that a spreadsheet may run as a formula: import the CSV file as text there"
        yield Warned("csv_formula", cells, text, column)


def people_warnings(config: Config, source: Source) -> list[dict[str, Any]]:
    """Return the warnings about who is counted as a person."""
    column = config.columns.individual
    text = (
        f"individuals whose {column} differs from another one only in spaces, dashes or case: each counts as a person"
    )
    alike = Warned("spelled_alike", source.spelled_alike, text, column)
    return _repeated(source.repeated) + ([alike.to_dict()] if alike.count else [])


def _repeated(found: Mapping[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """Return the warnings about identifiers that rows share although each row counts as a person
    (`PersonSearch.repeated_identifiers`); first and last names are shared by different people too."""
    listed = []
    for column, (rows, part) in found.items():
        sampled = f" (one row in {part:,} was compared)" if part > 1 else ""
        text = f"rows that share their {column} with another row{sampled}: `individual: row` counts each as a person"
        severity = LOW if names_people(column) else ""
        listed.append(Warned("repeated_identifier", rows, text, column, severity).to_dict())
    return listed


def _missing_values(config: Config, values: ColumnValues) -> Iterator[Warned]:
    named = set().union(*(spec.named_values() for spec in config.privacy))
    missing = values.people(*(text is None for text in values.texts))
    text = f"individuals without a value of {values.column}, which counts as a value (nulls.sensitive: value)"
    yield Warned("missing_counts_as_value", missing, text, values.column)
    blank = (word is not None and word not in named and folded(word) in NO_VALUE for word in values.texts)
    text = f"individuals whose {values.column} is a placeholder (empty, unknown, n/a, ...), which counts as a value"
    yield Warned("placeholder_values", values.people(*blank), text, values.column)


def _look_alike_values(config: Config, values: ColumnValues) -> Iterator[Warned]:
    spec, about = config.columns.sensitive[values.column], [c for c in config.privacy if c.protects(values.column)]
    alike = Counter(map(meant, values.words))
    text = f"values of {values.column} that differ only in spelling ({SPELLING})"
    several = sum(times for times in alike.values() if times > 1)
    yield Warned("look_alike_values", several, text, values.column)
    chosen = spec.as_categories or spec.round is not None or spec.builder is not None
    categorical = bool(about) and all(criterion.categorical for criterion in about)
    if categorical and not chosen and len(values.words) > MANY_NUMBERS and values.numbers:
        text = f"numbers or dates in {values.column} that count as different however close they are ({about[0].name})"
        yield Warned("numbers_as_categories", len(values.words), text, values.column)


def _identifying_values(config: Config, values: ColumnValues) -> Iterator[Warned]:
    alone, everybody = values.frequency.count(1), sum(values.frequency)
    if config.columns.multiplicity == "single" and alone > UNIQUE_SHARE * everybody:
        text = (
            f"individuals with a value of {values.column} that nobody else has: anyone who knows it can identify them"
        )
        yield Warned("sensitive_identifies", alone, text, values.column)


def _criteria(config: Config, found: Findings) -> Iterator[Warned]:
    """Yield the warnings about criteria that promise less for these values than it seems."""
    for spec in config.privacy:
        texts = found.values.get(str(spec.sensitive), [])
        if (reason := getattr(spec, "absent", None)) is not None:
            absent = len(spec.named_values() - set(texts))
            where = "in this sample has" if config.trial else "has: misspelt?"
            where = "in this release has: suppressed, or misspelt?" if reason == "suppressed" else where
            yield Warned("absent_value", absent, f"values named in {spec.name} that nobody {where}", spec.sensitive)
        words = [word for word in texts if word is not None]
        if words and set(words) <= set(getattr(spec, "dont_care", [])):
            text = f"criteria that hold for every possible group: {spec.name}, whose dont_care names all values"
            yield Warned("vacuous_criterion", 1, text)
        distance = getattr(spec, "distance", None)
        if isinstance(distance, Ordered) and distance.order is None and not all(map(NUMBER.fullmatch, words)):
            text = f"values of {spec.sensitive} that {spec.name} orders alphabetically; set `order`"
            unordered = sum(not DATE.fullmatch(word) for word in words)
            yield Warned("order_of_letters", unordered, text, spec.sensitive)
        if isinstance(spec, TCloseness) and isinstance(distance, Absolute) and words:
            numbers = [Fraction(word) for word in words]
            text = (
                "criteria that hold for every possible group: t_closeness, whose t is at least the range of all values"
            )
            yield Warned("vacuous_criterion", int(Fraction(spec.t) >= max(numbers) - min(numbers)), text)
