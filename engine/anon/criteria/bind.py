"""Bind the criteria of the config to the sensitive values of one table. Named values become codes, and a name that is
no value of the data is a mistake, because a misspelt value would go unprotected."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any

from anon.config import Criterion as Spec
from anon.core.text import SPELLING, meant
from anon.criteria.earlier import EarlierGroups
from anon.criteria.prior_tables import Counting, SignatureTable
from anon.criteria.protocol import Criterion, Ints
from anon.errors import ConfigError, Problem

CrossTable = Callable[[tuple[str, ...], str], tuple[SignatureTable, Counting | None]]
TuplesOf = Callable[[tuple[str, ...]], Ints]


@dataclass(frozen=True)
class Values:
    """The sensitive values of one table, per column in code order, and the number of individuals that have each.
    `cross_table` gives the signatures over some columns, and what counts people by signature and sensitive value (None
    for a bucketized table, which does not say that). `tuples` gives those of several sensitive columns that occur, as
    codes [tuples, columns]; `objects` are the values as they are in the table, `earlier` groups that are published
    already."""

    texts: dict[str, list[str | None]]
    frequency: dict[str, list[int]]
    cross_table: CrossTable | None = None
    tuples: TuplesOf | None = None
    objects: dict[str, list[Any]] = field(default_factory=dict)
    multiplicity: str = "single"  # sensitive values per individual
    earlier: EarlierGroups = field(default_factory=EarlierGroups)


@dataclass
class Binder:
    """Binds the criteria of one config to one table, each by the `bind` of its class. `shared`: only verdicts matter,
    not each finding. `absent`: a named value may be missing, as from a release that lost it."""

    values: Values
    shared: bool = False
    absent: bool = False
    problems: list[Problem] = field(default_factory=list)

    def bind(self, privacy: list[Spec]) -> list[Criterion]:
        """Return the bound criteria; ConfigError lists the mistakes of all of them."""
        bound: list[Criterion] = []
        for index, spec in enumerate(privacy):
            try:
                bound.append(criterion_class(spec).bind(spec, self, f"privacy[{index}].{spec.name}"))
            except ConfigError as error:
                self.problems += error.problems
        if self.problems:
            raise ConfigError(self.problems)
        return bound

    def texts(self, spec: Spec) -> list[str | None]:
        """Return the values of the sensitive column as text, in code order."""
        return self.values.texts[str(spec.sensitive)]

    def frequency(self, spec: Spec) -> list[int]:
        """Return the number of individuals of the table that have each value of the sensitive column."""
        return self.values.frequency[str(spec.sensitive)]

    def numbers(self, spec: Spec, where: str) -> list[Fraction | None]:
        """Return the values of the sensitive column as numbers, exactly as they are written."""
        return self.numbers_of(str(spec.sensitive), spec.name, f"{where}.sensitive")

    def numbers_of(self, column: str, user: str, where: str) -> list[Fraction | None]:
        """Return the values of a column as numbers. `user` is what needs them, `where` the field to blame."""
        try:
            return [None if text is None else Fraction(text) for text in self.values.texts[column]]
        except ValueError:
            expected = f"a column of numbers for {user}"
            raise ConfigError.at(where, f"{column!r}, which has other values", expected) from None

    def codes(self, names: Iterable[str], spec: Any, where: str) -> list[int | None]:
        """Return the codes of named values, None for one that is missing and may be."""
        texts = self.texts(spec)
        found = {text: code for code, text in enumerate(texts) if text is not None}
        listed = list(names)
        if not self.absent:
            self.problems += _unknown(listed, found, where, may_be_absent=spec.absent is not None)
        return [found.get(name) for name in listed]


def criterion_class(spec: Spec) -> type[Criterion]:
    """Return the class with the mathematics of a criterion: that of the same name, in the module named after it."""
    found: type[Criterion] = getattr(import_module(f"anon.criteria.{spec.name}"), type(spec).__name__)
    return found


def bind(privacy: list[Spec], values: Values, shared: bool = False, absent: bool = False) -> list[Criterion]:
    """Return the criteria of a config for a table; those about all groups together with the state of the groups that
    are published already."""
    bound = Binder(values, shared, absent).bind(privacy)
    return [_beside(values, spec, each, shared) for spec, each in zip(privacy, bound)]


def _beside(values: Values, spec: Spec, bound: Criterion, shared: bool) -> Criterion:
    """Return a criterion with the state of the groups that are published already, if it is about all groups
    together."""
    if bound.column not in values.earlier.groups:
        return bound
    wider = values.earlier.widened(values)
    (criterion,) = Binder(wider, shared, absent=True).bind([spec])
    criterion.earlier = values.earlier.state(criterion, wider.texts[str(bound.column)])
    return bound if criterion.earlier is None else criterion


def check_names(privacy: list[Spec], texts: dict[str, list[str | None]]) -> None:
    """Raise ConfigError for the values that criteria name and the table does not have, before more of it is read."""
    binder = Binder(Values(texts, {}))
    for index, spec in enumerate(privacy):
        if spec.named_values():
            criterion_class(spec).bind(spec, binder, f"privacy[{index}].{spec.name}")
    if binder.problems:
        raise ConfigError(binder.problems)


def _unknown(names: list[str], known: dict[str, int], path: str, may_be_absent: bool) -> Iterator[Problem]:
    """Yield names that are no values of the data; those that may be absent only where the data has the value in another
    spelling that no other name stands for. A near miss is named only where a reader may take it for the value: naming
    any other value would quote the data."""
    there, named = {meant(value) for value in known}, {meant(name) for name in names if name in known}
    for name in names:
        alike = meant(name) in there
        if name in known or (may_be_absent and (not alike or meant(name) in named)):
            continue
        others = difflib.get_close_matches(name, [n for n in names if n in known], n=1)
        hint = f"{others[0]!r} is there" if others else "set `absent: ok` if it may be missing"
        hint = f"a value differs from it only in how it is written ({SPELLING})" if alike else hint
        yield Problem(f"{path}.{name}", f"{name!r}", "a value that occurs in the data", hint)
