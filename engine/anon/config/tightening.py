"""Compare the criteria of two configs: whether those of the second are kept or tightened, and nowhere looser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from anon.config.columns import Columns
from anon.config.criteria.skyline import Point, Skyline
from anon.config.criterion import Criterion
from anon.config.loosening import Number
from anon.config.privacy import Privacy

_PRIVACY: TypeAdapter[list[Criterion]] = TypeAdapter(list[Privacy])


def read_criteria(written: list[dict[str, Any]], columns: Columns, base: Path) -> list[Criterion]:
    """Return criteria from the plain data of a config; none if this version does not know them."""
    exact = json.loads(json.dumps(written), parse_float=Decimal)
    try:
        found = _PRIVACY.validate_python(exact, strict=True, context={"base": base})
    except ValidationError:
        return []
    return [criterion.on(columns) for criterion in found]


def loosened(before: list[Criterion], now: list[Criterion]) -> list[str]:
    """Return the names of the criteria of `before` that no criterion of `now` implies."""
    return [old.name for old in before if not any(implies(new, old) for new in now)]


def implies(new: Criterion, old: Criterion) -> bool:
    """Return whether a criterion is another one, or the same with numbers that demand more. Each number of a criterion
    has a loosest end (`loosening`): moving away from it, with everything else the same, demands more.

    >>> from anon.config import CRITERIA
    >>> ck = CRITERIA["ck_safety"]
    >>> implies(ck(c=Decimal("0.5"), k=3), ck(c=Decimal("0.6"), k=2)), implies(ck(c=Decimal("0.5"), k=1), ck(c=1, k=2))
    (True, False)
    """
    if isinstance(new, Skyline) and isinstance(old, Skyline):
        return new.sensitive == old.sensitive and all(_covers(new, value, point) for value, point in _demands(new, old))
    if type(new) is not type(old):
        return False
    numbers, earlier = list(new.numbers()), list(old.numbers())
    if len(numbers) != len(earlier) or any(_looser(*both) for both in zip(numbers, earlier)):
        return False
    for at, number in enumerate(earlier):
        new = list(new.numbers())[at].change(number.now)
    return _without_absent(new) == _without_absent(old)


def _looser(new: Number, old: Number) -> bool:
    """Return whether a number moved towards its loosest end."""
    return new.now > old.now if old.loosest > old.now or new.loosest > new.now else new.now < old.now


def _without_absent(spec: Criterion) -> Criterion:
    return spec.model_copy(update={"absent": None}) if "absent" in type(spec).model_fields else spec


def _demands(new: Skyline, old: Skyline) -> Iterator[tuple[str | None, Point]]:
    """Yield the points that a skyline demanded: for values that one of the two names, and for all others (None)."""
    for value in (None, *{**old.values, **new.values}):
        points = old.points if value is None else old.values.get(value, old.points)
        for point in [] if isinstance(points, str) else points:
            yield value, point


def _covers(new: Skyline, value: str | None, point: Point) -> bool:
    """Return whether a skyline has a point for a value that demands at least as much."""
    points = new.points if value is None else new.values.get(value, new.points)
    own = [] if isinstance(points, str) else points
    return any(p.l >= point.l and p.k >= point.k and p.m >= point.m and p.c <= point.c for p in own)
