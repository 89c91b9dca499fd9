"""Choose the published bound between two neighbouring values of a column that is cut freely: the roundest number, day
or timestamp between them, so that a label does not begin or end at an individual's value where another bound is
possible. A bound is a function of the two values alone, so it is the same on every backend and for every memory
limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from typing import Any

DIGITS = 17  # significant digits that distinguish every float from its neighbours
DAY = timedelta(days=1)


def between(lower: Any, upper: Any) -> Any:
    """Return the bound b of two neighbouring values: values from b on are above the cut, the others below.

    Numbers and timestamps: lower < b < upper, with the fewest significant digits possible, near the middle. Zero has
    none.

    >>> between(1234.5, 2345.25), between(0.11, 0.12), between(-3.0, 8.0)
    (2000.0, 0.115, 0.0)
    >>> between(datetime(2024, 1, 31, 23), datetime(2024, 2, 1, 7)), between(datetime(2023, 5, 1), datetime(2026, 5, 1))
    (datetime.datetime(2024, 2, 1, 0, 0), datetime.datetime(2025, 1, 1, 0, 0))

    Whole numbers and days: the cell below ends one before b. Where possible, neither that end nor b is one of the two
    values; in a gap of two, b is the number between them, and the cell below ends at the lower one:

    >>> between(19, 27), between(1999, 3500), between(19, 22), between(19, 21)
    (23, 3000, 21, 20)
    >>> between(date(2023, 12, 15), date(2024, 1, 20))
    datetime.date(2024, 1, 1)

    Where no value lies between them, the bound is the upper value:

    >>> between(19, 20), between(1.0, 1.0000000000000002)
    (20, 1.0000000000000002)
    """
    if isinstance(upper, datetime):
        return next(_inside(lower, upper, MOMENTS), upper)
    if isinstance(upper, date):
        return _day(lower, upper)
    return _number(lower, upper) if isinstance(upper, float) else _whole(lower, upper)


def _whole(lower: int, upper: int) -> int:
    if upper - lower > 2:
        lower += 1
    if lower < 0 < upper:
        return 0
    twice = lower + upper
    step: int = 10 ** (len(str(abs(twice) // 2)) - 1)
    while step:
        nearest = -((step - twice) // (2 * step)) * step
        if lower < nearest < upper:
            return nearest
        step //= 10
    return upper


def _number(lower: float, upper: float) -> float:
    if lower < 0 < upper:
        return 0.0
    middle = lower + (upper - lower) / 2  # lies between them unless no float does: both have the same sign
    shorter = (float(f"{middle:.{digits}e}") for digits in range(DIGITS))
    return next((number for number in shorter if lower < number < upper), upper)


def _day(lower: date, upper: date) -> date:
    if upper - lower > 2 * DAY:
        lower += DAY
    begins = _inside(_midnight(lower), _midnight(upper), DAYS)
    return next((moment.date() for moment in begins), upper)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min)


Unit = Callable[[datetime], list[datetime]]  # the beginnings of the unit nearest to a moment, before and after it


def _inside(lower: datetime, upper: datetime, units: list[Unit]) -> Iterator[datetime]:
    """Yield for each unit, the longest first, its beginning between two moments that is nearest to their middle."""
    middle = lower + (upper - lower) / 2
    for unit in units:
        begins = [moment for moment in unit(middle) if lower < moment < upper]
        if begins:
            yield min(begins, key=lambda moment: abs(moment - middle))


def _years(count: int) -> Unit:
    def begins(moment: datetime) -> list[datetime]:
        first = moment.year // count * count
        return [_midnight(date(year, 1, 1)) for year in (first, first + count) if MINYEAR <= year <= MAXYEAR]

    return begins


def _months(moment: datetime) -> list[datetime]:
    year, month = moment.year + moment.month // 12, moment.month % 12 + 1
    following = [] if year > MAXYEAR else [_midnight(date(year, month, 1))]
    return [_midnight(date(moment.year, moment.month, 1)), *following]


def _times(length: timedelta) -> Unit:
    def begins(moment: datetime) -> list[datetime]:
        first = moment - (moment - _midnight(date.min)) % length
        last = datetime.combine(date.max, time.max)
        return [first] if last - first < length else [first, first + length]

    return begins


DAYS: list[Unit] = [*map(_years, (1000, 100, 10, 1)), _months, _times(DAY)]
MOMENTS: list[Unit] = [
    *DAYS,
    *(_times(timedelta(seconds=seconds)) for seconds in (3600, 60, 1)),
    *(_times(timedelta(microseconds=10**power)) for power in range(5, -1, -1)),
]
