"""Write a data value, or a range of whole values, as text, in the one form that the whole engine uses: values named in
a config, leaves of hierarchies and published labels are all compared and written in this form. Numbers never use an
exponent, so that the same number has the same text whatever the type of its column."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

EXPONENT = re.compile(r"-?[0-9](\.[0-9]{1,16})?e[-+][0-9]{1,3}")
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}")
PLAIN_NUMBER = re.compile(r"[-+]?[0-9]{1,30}([.][0-9]{1,30})?")
SPELLING = "case, space, Unicode, 1 or 1.0 or 01"  # differences that do not change the word for a reader: see `meant`
Value = bool | int | float | Decimal | date | datetime | str
CUTTABLE = ("integer", "number", "date", "timestamp")  # kinds that may be binned when they have too many values


def text(value: Value) -> str:
    """Return the text of a data value.

    Whole numbers are decimal digits:

    >>> text(42), text(-7)
    ('42', '-7')

    Floats are the shortest decimal that reads back as the same float, in plain notation without trailing zeros:

    >>> text(2.0), text(0.1), text(-0.0), text(1e20), text(1.5e-7), text(float("-inf"))
    ('2', '0.1', '0', '100000000000000000000', '0.00000015', '-inf')

    Decimals are exact, in the same notation:

    >>> from decimal import Decimal
    >>> text(Decimal("1.50")), text(Decimal("1E+3")), text(Decimal("-0.00"))
    ('1.5', '1000', '0')

    Dates are ISO 8601; a time with a zone is converted to UTC:

    >>> from datetime import timedelta, timezone
    >>> text(date(2024, 3, 9)), text(datetime(2024, 3, 9, 7, 30, 0, 250000))
    ('2024-03-09', '2024-03-09T07:30:00.25')
    >>> text(datetime(2024, 3, 9, 0, 30, tzinfo=timezone(timedelta(hours=1))))
    '2024-03-08T23:30:00Z'

    Booleans are `true` and `false`, text stays as it is, and nothing else has a text:

    >>> text(True), text("02139 ")
    ('true', '02139 ')
    >>> text(b"02139")
    Traceback (most recent call last):
    TypeError: a value of type bytes has no text form
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _plain(Decimal(float.__repr__(value)))
    if isinstance(value, Decimal):
        return _plain(value)
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a value of type {type(value).__name__} has no text form")


def respelt(word: str) -> str:
    """Return a number or timestamp in the notation of CSV files as `text` writes it; any other word unchanged.

    >>> respelt("1e+20"), respelt("2024-03-09 07:30:00.250000"), respelt("02139"), respelt("2024-03-09")
    ('100000000000000000000', '2024-03-09T07:30:00.25', '02139', '2024-03-09')
    """
    try:
        if EXPONENT.fullmatch(word):
            return text(Decimal(word))
        return text(datetime.fromisoformat(word)) if MOMENT.fullmatch(word) else word
    except ValueError:
        return word


def span(low: str, high: str) -> str:
    """Return the label of the whole numbers or dates from low to high, both given as text and inclusive.

    >>> span("20", "34"), span("7", "7"), span("-5", "3"), span("2024-01-01", "2024-03-31")
    ('20-34', '7', '-5..3', '2024-01-01..2024-03-31')
    """
    if low == high:
        return low
    return f"{low}..{high}" if "-" in low + high else f"{low}-{high}"


def _plain(number: Decimal) -> str:
    if number.is_nan():
        return "nan"
    if number.is_infinite():
        return "inf" if number > 0 else "-inf"
    digits = format(number, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def _moment(moment: datetime) -> str:
    zone = "" if moment.utcoffset() is None else "Z"
    written = (moment.astimezone(UTC) if zone else moment).replace(tzinfo=None).isoformat()
    return (written.rstrip("0") if "." in written else written) + zone


def folded(word: str) -> str:
    """Return a word without the differences that a reader does not see or care about: case, leading, trailing and
    repeated spaces, marks of zero width, and whether letters are composed. Words with equal results are most probably
    the same word.

    >>> folded("Cafe\u0301  Royal ") == folded("caf\u00e9 royal"), folded("HIV\u200b") == folded("hiv")
    (True, True)
    """
    seen = "".join(letter for letter in unicodedata.normalize("NFKC", word) if unicodedata.category(letter) != "Cf")
    return " ".join(seen.casefold().split())


def meant(word: str) -> str | Fraction:
    """Return what a word means to a reader: 1, 1.0 and 01 are one number.

    >>> meant("01") == meant(" 1.0"), meant("HIV") == meant("hiv "), meant("1") == meant("1a")
    (True, True, False)
    """
    seen = folded(word)
    return Fraction(seen) if PLAIN_NUMBER.fullmatch(seen) else seen
