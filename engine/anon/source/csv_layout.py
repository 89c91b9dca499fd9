"""Find out how the fields of a CSV file are divided: the delimiter, the quote, and whether the first line names the
columns. From a sample at its beginning, in UTF-8."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from anon.errors import SourceError
from anon.source.cells import like_value
from anon.source.csv_records import CsvLayout, reader

SEPARATORS = ",;\t|"
QUOTES = ('"', "'")
SAMPLE = 1_000_000  # characters
RECORDS = 1_000
WORDS = {"\t": "tab", " ": "space"}


@dataclass(frozen=True)
class Sniffed:
    """The layout of a file and what shows it."""

    layout: CsvLayout
    delimiter_evidence: str
    quote_evidence: str
    header_evidence: str


def header(path: Path, delimiter: str | None, quote: str, named: bool = True, complete: bool = False) -> CsvLayout:
    """Return the layout of a file by its first line, which has the names of the columns or is data. Without a
    delimiter it is the one that divides the line into most fields. `complete`: a column without a name is an error,
    and not named after its place."""
    try:
        used = delimiter or max(SEPARATORS, key=lambda mark: len(_first(path, mark, quote)))
        fields = _first(path, used, quote)
    except csv.Error:
        raise SourceError(f"{path}: line 1: it is not well-formed CSV") from None
    if not named:
        return CsvLayout(used, quote, numbered(len(fields)), header=False)
    if not any(fields) or (complete and not all(fields)):
        raise SourceError(f"{path}: line 1: it does not name every column")
    return CsvLayout(used, quote, _named(fields))


def numbered(width: int) -> tuple[str, ...]:
    """Return the names of the columns of a file that has none."""
    return tuple(f"column{number}" for number in range(1, width + 1))


def _named(fields: list[str]) -> tuple[str, ...]:
    """Return the names of columns; one without a name is named after its place.

    >>> _named(["age", ""])
    ('age', 'column2')
    """
    return tuple(field or own for field, own in zip(fields, numbered(len(fields))))


def _first(path: Path, delimiter: str, quote: str) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(reader(file, delimiter, quote, strict=False), [])


def sniff(path: Path) -> Sniffed:
    """Return the layout that the beginning of a file shows: the delimiter and quote by which most records have the
    same number of fields, and the names of the columns."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = file.read(SAMPLE)
    lines, whole = list(io.StringIO(text, newline="")), len(text) < SAMPLE
    quote, quote_evidence = _quote(lines)
    sampled = {mark: _sample(lines, mark, quote, whole) for mark in SEPARATORS}
    delimiter = max(SEPARATORS, key=lambda mark: _agreement(sampled[mark]))
    found = sampled[delimiter] or [[""]]
    width, agreeing = _widths(found)
    said = f"{agreeing:,} of the first {len(found):,} records have {width:,} fields"
    named, header_evidence = _has_header(found[0], found[1:])
    names = _named(found[0]) if named else numbered(len(found[0]))
    return Sniffed(CsvLayout(delimiter, quote, names, named), said, quote_evidence, header_evidence)


def _quote(lines: list[str]) -> tuple[str, str]:
    """Return the character that most fields begin or end with, of those that quote."""
    counts = {mark: sum(_quoted(line, mark) for line in lines) for mark in QUOTES}
    best = max(QUOTES, key=lambda mark: counts[mark])
    if not counts[best]:
        return '"', "no field is quoted"
    return best, f"{counts[best]:,} lines have fields in these quotes"


def _quoted(line: str, mark: str) -> bool:
    """Return whether a field of a line begins and one ends with a quote.

    >>> _quoted("a;'b c';d", "'"), _quoted("it's;o'clock", "'")
    (True, False)
    """
    text = line.strip("\r\n")
    opens = text.startswith(mark) or any(f"{separator}{mark}" in text for separator in SEPARATORS)
    return opens and (text.endswith(mark) or any(f"{mark}{separator}" in text for separator in SEPARATORS))


def _sample(lines: list[str], delimiter: str, quote: str, whole: bool) -> list[list[str]]:
    """Return the first records; without the last one, which may have been cut off, unless the lines are all there
    are."""
    records: list[list[str]] = []
    try:
        for record in reader(iter(lines), delimiter, quote, strict=False):
            if record:
                records.append(record)
            if len(records) > RECORDS:
                break
    except csv.Error:
        pass
    return records[:RECORDS] if whole or len(records) > RECORDS else records[:-1]


def _widths(records: list[list[str]]) -> tuple[int, int]:
    """Return the number of fields that most records have, and how many have it."""
    return Counter(map(len, records)).most_common(1)[0]


def _agreement(records: list[list[str]]) -> tuple[float, int]:
    """Return how good a delimiter is: the share of records with the usual number of fields, if that is more than one,
    and that number."""
    if not records:
        return 0.0, 0
    width, agreeing = _widths(records)
    return (agreeing / len(records) if width > 1 else 0.0), width


def _has_header(first: list[str], rest: list[list[str]]) -> tuple[bool, str]:
    """Return whether the first record names the columns: fewer than a quarter of its fields look like values or are
    values of their own columns."""
    own = [{record[at] for record in rest if len(record) > at} for at in range(len(first))]
    values = sum(bool(name) and (like_value(name) or name in own[at]) for at, name in enumerate(first))
    if values and 4 * values >= len(first):
        return False, f"{values:,} of the {len(first):,} fields of the first line look like values"
    return True, f"the {len(first):,} fields of the first line look like names"
