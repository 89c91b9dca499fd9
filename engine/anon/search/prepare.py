"""Build the cube that a search works on, after the checks of the source that require no search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm

from anon import cube as cubes
from anon.config import Config, InformationGain, Reuse
from anon.config.support import IN_ORDER, exact_labels
from anon.core.text import text
from anon.criteria import check_names
from anon.cube import Combinations, Combined, Cube, RecordStore, Tuples, WidenCounts
from anon.errors import ConfigError, Problem
from anon.recoding.tree import refuse_values_like_labels
from anon.source import Column, Source
from anon.source.person_keys import refuse_person_keys

MANY_NAMES = 65_537  # distinct values, more than a cube can hold
MANY_NUMBERS = 1_000  # distinct values; more of them are unlikely to be categories
NUMBERS = ("integer", "number", "decimal")


def build_cube(config: Config, source: Source, store: RecordStore) -> Cube:
    """Return the cube that a run searches."""
    refuse_person_keys(source.persons)
    _check_names(config, source)
    builders = list(config.columns.quasi_identifiers.values())
    cube = cubes.build(source, builders, _target(config), _combined(config), store, *_widened(config, source))
    ordered, weights = _ordered(config), whole_weights([builder.weight for builder in builders])
    cube.domains[:] = [
        replace(domain, ordered=domain.column in ordered, weight=weight, capped=builder.capped)
        for domain, weight, builder in zip(cube.domains, weights, builders, strict=True)
    ]
    check_sensitive_numbers(config, source.sensitive, [domain.size for domain in cube.others])
    if not exact_labels(config):
        refuse_values_like_labels(cube.domains)
    return cube


def _check_names(config: Config, source: Source) -> None:
    """Refuse misspelt protected values before the table is read for the cube: one column of it suffices."""
    about = {spec.sensitive for spec in config.privacy if spec.named_values()}
    texts: dict[str, list[str | None]] = {}
    for column in source.sensitive:
        if column.name in about:
            values = source.distinct(column, MANY_NAMES)
            if len(values) == MANY_NAMES:
                return  # the cube refuses this number of values
            texts[column.name] = [None if value is None else text(value) for value in values.to_pylist()]
    if texts:
        check_names(config.privacy, texts)


def _target(config: Config) -> str | None:
    prefer = getattr(config.method, "prefer", None)
    return prefer.information_gain if isinstance(prefer, InformationGain) else None


def _ordered(config: Config) -> set[str]:
    """Return the columns with a hierarchy that are cut anywhere in the order of its leaves."""
    if isinstance(config.method, Reuse):
        from anon.search.reuse import EarlierRecoding

        columns = EarlierRecoding.from_run(config.method.run).columns
        return {name for name, facts in columns.items() if facts.cuts == "ordered"}
    if getattr(config.method, "cuts", "nodes") == "nodes":
        return set()
    return {name for name, builder in config.columns.quasi_identifiers.items() if builder.kind in IN_ORDER}


def whole_weights(weights: Sequence[Decimal]) -> list[int]:
    """Return weights as whole numbers in the same proportions, the smallest possible: equal ones are all 1.

    >>> whole_weights([Decimal(3), Decimal("1.5"), Decimal(1)])
    [6, 3, 2]
    """
    fractions = [Fraction(weight) for weight in weights]
    whole = [int(each * lcm(*(other.denominator for other in fractions))) for each in fractions]
    return [each // gcd(*whole) for each in whole]


def _combined(config: Config) -> list[Combined]:
    """Return the combinations of sensitive columns that criteria read."""
    found: dict[Combined, None] = {}
    for spec in config.privacy:
        if others := spec.context(config.columns.sensitive):
            found[Combinations, (*others, str(spec.sensitive))] = None
        if columns := spec.tuple_columns():
            found[Tuples, columns] = None
    return list(found)


def _widened(config: Config, source: Source) -> list[WidenCounts]:
    """Return, for a reused recoding, the function that adds its values to the domains."""
    if not isinstance(config.method, Reuse):
        return []
    from anon.search.reuse import EarlierRecoding

    earlier = EarlierRecoding.from_run(config.method.run)
    earlier.check_columns(source.quasi_identifiers)
    return [earlier.widened]


def check_not_vacuous(config: Config) -> None:
    """Raise ConfigError if no criterion of the config can fail."""
    if all(spec.always_holds() for spec in config.privacy):
        raise ConfigError.at("privacy", "only criteria that are always true", "a criterion that can fail")


def check_sensitive_numbers(config: Config, columns: list[Column], distinct: list[int]) -> None:
    """Refuse numbers under categorical criteria: numbers that differ by a cent are different values to these, so that
    every individual would seem protected. `distinct` counts the values of each sensitive column. A column that the
    config rounds, labels or declares as categories is accepted."""
    problems = []
    for column, count in zip(columns, distinct):
        spec = config.columns.sensitive[column.name]
        about = [criterion for criterion in config.privacy if criterion.protects(column.name)]
        many = column.kind == "number" or (column.kind in NUMBERS and count > MANY_NUMBERS)
        categorical = bool(about) and all(criterion.categorical for criterion in about)
        chosen = spec.as_categories or spec.round is not None or spec.builder is not None
        if many and categorical and not chosen:
            found = f"numbers with {count:,} distinct values, which {about[0].name} takes for categories"
            expected, hint = "`round`, or a criterion for numbers", "or mark it `as_categories: true`"
            problems.append(Problem(f"columns.sensitive.{column.name}", found, expected, hint))
    if problems:
        raise ConfigError(problems)
