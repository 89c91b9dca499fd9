"""Compare the criteria of two configs: whether those of the second are kept or tightened, and nowhere looser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from anon.config.criteria.skyline import Point, Skyline
from anon.config.criterion import Criterion
from anon.config.grammar import Config
from anon.config.loosening import Number
from anon.config.privacy import Privacy
from anon.errors import ConfigError

Written = dict[str, Any]
_PRIVACY: TypeAdapter[list[Criterion]] = TypeAdapter(list[Privacy])


def loosened(before: list[Written], now: list[Written], config: Config) -> list[str]:
    """Return the names of the criteria of an earlier config that none of a config implies. `before` and `now` are both
    written as plain data. One that cannot be read is implied by the same one only."""
    others = [written for written in before if written not in now]
    found = [(next(iter(written), "criterion"), _read(written, config)) for written in others]
    return [name for name, old in found if old is None or not any(implies(new, old) for new in config.privacy)]


def _read(written: Written, config: Config) -> Criterion | None:
    """Return a criterion from the plain data of a config."""
    exact = json.loads(json.dumps(written), parse_float=Decimal)
    try:
        (found,) = _PRIVACY.validate_python([exact], strict=True, context={"base": config.base})
        return found.on(config.columns)
    except (ValidationError, ConfigError):
        return None


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
