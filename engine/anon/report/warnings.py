"""Traps: what makes a table look safer than it is although every criterion holds, in the last stage of the way of the
data (config -> source -> cube -> search -> release -> verify -> report). All of it is read off the values of the
sensitive columns and how often each occurs, which verify has counted anyhow: no further pass over the rows. Columns are
named, values never. docs/traps.md lists these and the traps that are refused elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from anon.config import Absolute, Config, Ordered, TCloseness
from anon.core.text import SPELLING, folded, meant
from anon.verify.judge import Findings

UNIQUE_SHARE = 0.05  # of individuals with a value that nobody else has: worth a warning
Trap = tuple[str, int, str]  # a warning: its code, how many are concerned, and of what
MANY_NUMBERS = 20  # distinct numbers; more of them are hardly names of something
# Words that stand for a missing value in extracts.
NO_VALUE = {
    *("", ".", "..", "-", "--", "?", "*", "#", "n/a", "#n/a", "na", "n.a.", "nan", "nil", "none", "null"),
    *("(null)", "<null>", "missing", "not available", "not known", "not specified", "unknown", "unspecified"),
    *("undefined", "tbd", "keine angabe", "k.a.", "unbekannt", "inconnu", "desconocido"),
}
NUMBER = re.compile(r"\s*[-+]?[0-9]+([.,][0-9]+)*\s*")
DATE = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}.*")


@dataclass(frozen=True)
class Values:
    """The values of a sensitive column as text, and how many individuals have each."""

    column: str
    texts: list[str | None]
    frequency: list[int]

    def people(self, *wanted: bool) -> int:
        return sum(count for count, chosen in zip(self.frequency, wanted) if chosen)

    @cached_property
    def words(self) -> list[str]:
        """Those that occur, null aside."""
        return [text for text, count in zip(self.texts, self.frequency) if text is not None and count]

    @property
    def numbers(self) -> bool:
        """Whether most of them are numbers or dates, whatever the type of their column."""
        alike = sum(bool(NUMBER.fullmatch(word) or DATE.fullmatch(word)) for word in self.words)
        return 2 * alike > len(self.words)


def traps(config: Config, found: Findings) -> Iterator[Trap]:
    """The traps that a table has."""
    for column in config.columns.sensitive:
        if column in found.values:
            values = Values(column, found.values[column], found.frequency[column])
            yield from _values_that_are_none(config, values)
            yield from _values_that_are_not_different(config, values)
            yield from _values_that_identify(config, values)
    yield from _criteria(config, found)
    for column, cells in found.formulas.items():
        text = f"cells of {column} that a spreadsheet may run as a formula: import the CSV file as text there"
        yield "csv_formula", cells, text


def repeated(found: Mapping[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """Warnings of identifiers that rows share although each is taken for a person (`source.repeated_identifiers`)."""
    listed = []
    for column, (rows, part) in found.items():
        looked = f" (of one in {part:,} that were compared)" if part > 1 else ""
        text = f"rows that share their {column} with another row{looked}: `individual: row` counts each as a person"
        listed.append({"code": "repeated_identifier", "count": rows, "text": text})
    return listed


def _values_that_are_none(config: Config, values: Values) -> Iterator[Trap]:
    named = set().union(*(spec.named_values() for spec in config.privacy))
    missing = values.people(*(text is None for text in values.texts))
    text = f"individuals without a value of {values.column}, which is a value of its own (nulls.sensitive: value)"
    yield "missing_counts_as_value", missing, text
    blank = (word is not None and word not in named and folded(word) in NO_VALUE for word in values.texts)
    text = f"individuals whose {values.column} says nothing (empty, unknown, n/a, ...) and counts as a value of its own"
    yield "placeholder_values", values.people(*blank), text


def _values_that_are_not_different(config: Config, values: Values) -> Iterator[Trap]:
    spec, about = config.columns.sensitive[values.column], [c for c in config.privacy if c.protects(values.column)]
    alike = Counter(map(meant, values.words))
    text = f"values of {values.column} that differ only in how they are written ({SPELLING})"
    yield "look_alike_values", sum(times for times in alike.values() if times > 1), text
    chosen = spec.as_categories or spec.round is not None or spec.builder is not None
    categorical = bool(about) and all(criterion.categorical for criterion in about)
    if categorical and not chosen and len(values.words) > MANY_NUMBERS and values.numbers:
        text = f"numbers or dates in {values.column} that count as different however close they are ({about[0].name})"
        yield "numbers_as_categories", len(values.words), text


def _values_that_identify(config: Config, values: Values) -> Iterator[Trap]:
    alone, everybody = values.frequency.count(1), sum(values.frequency)
    if config.columns.multiplicity == "single" and alone > UNIQUE_SHARE * everybody:
        text = f"individuals with a value of {values.column} that nobody else has: whoever knows it knows who they are"
        yield "sensitive_identifies", alone, text


def _criteria(config: Config, found: Findings) -> Iterator[Trap]:
    """Criteria that say less of these values than it seems."""
    for spec in config.privacy:
        texts = found.values.get(str(spec.sensitive), [])
        if (reason := getattr(spec, "absent", None)) is not None:
            absent = len(spec.named_values() - set(texts))
            where = "in this sample has" if config.trial else "has: misspelt?"
            where = "in this release has: suppressed, or misspelt?" if reason == "suppressed" else where
            yield "absent_value", absent, f"values named in {spec.name} that nobody {where}"
        words = [word for word in texts if word is not None]
        if words and set(words) <= set(getattr(spec, "dont_care", [])):
            text = f"criteria that hold for every group of these values: {spec.name}, whose dont_care names all of them"
            yield "vacuous_criterion", 1, text
        distance = getattr(spec, "distance", None)
        if isinstance(distance, Ordered) and distance.order is None and not all(map(NUMBER.fullmatch, words)):
            text = f"values of {spec.sensitive} that {spec.name} takes in the order of their letters; say `order`"
            yield "order_of_letters", sum(not DATE.fullmatch(word) for word in words), text
        if isinstance(spec, TCloseness) and isinstance(distance, Absolute) and words:
            numbers = [Fraction(word) for word in words]
            text = "criteria that hold for every group of these values: t_closeness, whose t is as wide as all of them"
            yield "vacuous_criterion", int(Fraction(spec.t) >= max(numbers) - min(numbers)), text
