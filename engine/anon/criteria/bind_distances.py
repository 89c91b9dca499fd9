"""Bind the distances of the config to the sensitive values of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon import config as grammar
from anon.criteria import distances
from anon.criteria.arithmetic import Units
from anon.errors import ConfigError

if TYPE_CHECKING:
    from anon.criteria.bind import Binder


def bind_distance(binder: Binder, spec: grammar.Dissimilarity | grammar.TCloseness, where: str) -> distances.Distance:
    """Return the distance of a criterion between the values of its column, or between their tuples."""
    kind, place = spec.distance, f"{where}.distance"
    if isinstance(kind, grammar.Absolute):
        return distances.absolute(binder.numbers(spec, where), place)
    if isinstance(kind, grammar.Equal):
        return distances.equal(len(binder.texts(spec)))
    if isinstance(kind, grammar.Ordered):
        return _ordered(binder, spec, kind, place)
    if isinstance(kind, grammar.HierarchyDistance):
        return distances.hierarchy_file(binder.texts(spec), kind.file, f"{place}.file")
    if isinstance(kind, grammar.Matrix):
        return distances.matrix_file(binder.texts(spec), kind.file, f"{place}.file")
    if isinstance(kind, grammar.Variational):
        return _variational(binder, tuple(kind.columns), f"{place}.columns")
    return distances.by_function(binder.values.objects[str(spec.sensitive)], kind, place)


def _ordered(binder: Binder, spec: grammar.Criterion, kind: grammar.Ordered, place: str) -> distances.Distance:
    try:
        numbers = binder.numbers(spec, place)
    except ConfigError:
        numbers = None
    return distances.ordered(binder.texts(spec), kind.order, numbers, place)


def _variational(binder: Binder, columns: tuple[str, ...], place: str) -> distances.Distance:
    numbers = [binder.numbers_of(name, "variational", f"{place}[{i}]") for i, name in enumerate(columns)]
    for index, column in enumerate(numbers):
        Units.exactly(column, f"{place}[{index}]")
    if len(columns) == 1:
        return distances.variational([[number] for number in numbers[0]], place)
    assert binder.values.tuples is not None, "tuples are bound to a table that was opened"
    tuples = binder.values.tuples(columns).tolist()
    return distances.variational([[n[code] for n, code in zip(numbers, codes)] for codes in tuples], place)
