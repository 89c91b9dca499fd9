"""Write numbers as people read them: percentages, figures and counts."""

from __future__ import annotations

from typing import Any


def percent(share: float) -> str:
    """Return a share as a percentage with the digits that distinguish it from 0% and 100%, and one more of those.

    >>> percent(1), percent(0.9501), percent(0.99996), percent(1 / 3), percent(0.0004)
    ('100%', '95%', '99.996%', '33.3%', '0.04%')
    """
    digits, from_either = 1, 100 * min(share, 1 - share)
    while from_either > 0 and digits < 12 and from_either < 10**-digits:
        digits += 1
    number = f"{100 * share:.{digits + (digits > 1)}f}"
    return f"{number.rstrip('0').rstrip('.')}%"


def below(share: float, bound: float) -> str:
    """Return a share as a percentage with the digits that distinguish it from its bound.

    >>> below(0.19998, 0.2), below(0.75, 0.8)
    ('19.998%', '75%')
    """
    text = percent(share)
    for digits in range(2, 8):
        if text not in (percent(bound), f"{bound:.{digits - 1}%}") or share == bound:
            return text
        text = f"{share:.{digits}%}"
    return text


def figure(value: Any) -> str:
    """Return a figure of a criterion with four significant digits, or a whole number from 1,000 on."""
    if isinstance(value, dict):
        return " and ".join(map(figure, value.values()))
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def counted(count: int, word: str = "individual", plural: str = "") -> str:
    """Return a count with its noun, in the singular or plural.

    >>> counted(1, "row"), counted(1_000, "row"), counted(2, "row that repeats", "rows that repeat")
    ('1 row', '1,000 rows', '2 rows that repeat')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {plural or word + 's'}"
