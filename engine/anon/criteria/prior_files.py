"""Prior files, which have a line per signature (the tuple of the attributes) and value:

    sex,value,p,n
    m,flu,0.1,4100
    f,flu,0.003,3900

`n`, the people behind a signature, may be left out. `p_exact` holds fractions that no decimal of `p` can express.
An empty field is a null. What is missing is a mistake, not a probability of zero. Messages count, or name lines; they
quote no values. A file may have millions of lines, so that a line is kept as a few small numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.core.cell_index import combined
from anon.core.memory import LIBRARIES, require
from anon.criteria.prior_tables import ListedRatios, Places, Ratios
from anon.criteria.protocol import Ints
from anon.errors import ConfigError, Problem
from anon.hierarchy.csv_files import BATCH, Problems, Record, read_records, refuse

Numbers = NDArray[Any]  # as narrow as they can be
RESERVED = ("value", "p", "p_exact", "n")
ROUNDING = Fraction(1, 10**9)  # how far the probabilities of a signature may be from summing to 1
NEAR = 1e-11  # how far off a sum of floats is at most
LINE, TEXT = 45, 200  # bytes that a line takes, and a different text
CACHED = 1 << 17  # texts of probabilities that are known when they come again
_DECIMAL = re.compile(r"\d+(\.\d*)?([eE][+-]?\d{1,3})?|\.\d+([eE][+-]?\d{1,3})?")
_FRACTION = re.compile(r"\d+(/0*[1-9]\d*)?")
_PEOPLE = re.compile(r"\d{1,18}")


@dataclass(frozen=True)
class RawPrior:
    """A prior as its file has it, texts with nulls as empty texts. The lines of a signature follow each other, in the
    order of their values."""

    file: str
    attributes: list[str]
    texts: list[dict[str, int]]  # per attribute its different texts, numbered
    cells: Numbers  # [attributes, signatures] the number of each one's text
    values: dict[str, int]  # its different values, numbered
    start: Ints  # [signatures + 1] the first line of each signature
    place: Places  # per line the place of its probability in `ratios`
    ratios: Ratios
    n: Ints | None  # people behind each signature; None without a column n

    def total(self, signature: int) -> Fraction:
        """Return the sum of the probabilities of a signature."""
        own = self.place[self.start[signature] : self.start[signature + 1]].tolist()
        return sum(map(self.ratios.__getitem__, own), Fraction(0))

    @cached_property
    def beyond(self) -> Ints:
        """Return per signature whether its probabilities sum to 1 within rounding (0), to less (-1) or to more (1)."""
        off = np.add.reduceat(self.ratios.floats[self.place], self.start[:-1]) - 1
        found: Ints = np.where(np.abs(off) > float(ROUNDING), np.sign(off), 0).astype(np.int64)
        for at in np.flatnonzero(np.abs(np.abs(off) - float(ROUNDING)) < NEAR).tolist():
            exactly = self.total(at) - 1
            found[at] = 0 if abs(exactly) <= ROUNDING else 1 if exactly > 0 else -1
        return found


def read_prior(path: Path, where: str, memory: int | None = None) -> RawPrior:
    """Return the contents of a prior file; ConfigError names the lines at fault. `where` is the field that names it;
    `memory`: of the whole process, which a large file may exceed."""
    records, wrong = read_records(path, where), Problems()
    first = next(records, None)
    if first is None:
        raise ConfigError.at(where, f"{path.name} without a line", "a line of columns, then one for each probability")
    header = [name.strip() if name.strip() in RESERVED else name for name in first[1]]
    _check_header(header, f"{path.name} line {first[0]}", where)
    lines = _Lines(header, inf if memory is None else memory - LIBRARIES)
    lines.fill(_as_wide(records, len(header), wrong, path.name, where))
    wrong.refuse()
    if memory is not None:
        require(memory, lines.taken, path.name)
    table = lines.table()
    refuse(Problem(where, f"{path.name} line {line}: {found}", expected) for line, found, expected in table.wrong())
    raw = table.prior(path.name)
    above = sorted(table.line[table.first][raw.beyond > 0].tolist())
    found = "the probabilities of these attributes sum to more than 1"
    refuse(Problem(where, f"{path.name} line {line}: {found}", "a sum of at most 1") for line in above)
    return raw


def _check_header(header: list[str], place: str, where: str) -> None:
    expected = "columns for the attributes, then value, p and perhaps n"
    missing = [name for name in ("value", "p") if name not in header]
    if missing:
        raise ConfigError.at(where, f"{place}: no column {' and no column '.join(missing)}", expected)
    if len(set(header)) < len(header) or "" in header:
        raise ConfigError.at(where, f"{place}: a column without a name, or two of one name", expected)
    if len(header) == sum(name in RESERVED for name in header):
        raise ConfigError.at(where, f"{place}: no attribute", expected)


def _as_wide(records: Iterable[Record], width: int, wrong: Problems, name: str, where: str) -> Iterator[Record]:
    """Yield the records with the same number of fields as the first line; the others are `wrong`."""
    for line, fields in records:
        if len(fields) == width:
            yield line, fields
        else:
            expected = f"{width} fields, as the first line has"
            wrong.add(Problem(where, f"{name} line {line}: {len(fields)} fields", expected))


class _Texts:
    """The different texts of a column, numbered as they come, and the number of each line's."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self._numbers: list[Numbers] = [np.empty(0, np.uint16)]

    def add(self, words: Iterable[str], count: int) -> None:
        known = self.known
        numbers = np.fromiter((known.setdefault(word, len(known)) for word in words), np.int32, count)
        self._numbers.append(numbers if len(known) > 1 << 16 else numbers.astype(np.uint16))

    def pop(self) -> Numbers:
        """Return the numbers of all lines and forget them."""
        numbers, self._numbers = np.concatenate(self._numbers), []
        return numbers


class _Probabilities:
    """The probabilities of lines as numbers of fractions, -1 where there is none. A text that comes again is parsed
    again at times: that is cheaper than to keep all of them."""

    def __init__(self) -> None:
        self.fractions = ListedRatios()
        self._cache: dict[tuple[str, str], int] = {}
        self._numbers: list[Places] = [np.empty(0, np.int32)]

    def add(self, p: Iterable[str], exact: Iterable[str], count: int) -> None:
        self._numbers.append(np.fromiter(map(self._number, p, exact), np.int32, count))

    def _number(self, p: str, exact: str) -> int:
        """Return the probability of a line; a fraction in `p_exact` replaces the decimal."""
        if (number := self._cache.get((p, exact))) is None:
            text, form = (exact.strip(), _FRACTION) if exact.strip() else (p.strip(), _DECIMAL)
            fraction = Fraction(text) if form.fullmatch(text) else None
            number = self.fractions.add(fraction) if fraction is not None and fraction <= 1 else -1
            if len(self._cache) == CACHED:
                self._cache.clear()
            self._cache[p, exact] = number
        return number

    def places(self) -> tuple[Ratios, Places]:
        """Return the different probabilities, and the place of each line's, -1 where there is none."""
        ratios, places = self.fractions.different()
        places = np.append(places, np.int32(-1))
        found, self._numbers = np.concatenate([places[numbers] for numbers in self._numbers]), []
        return ratios, found


class _Lines:
    """The lines of a prior file by column. Where they would take more than there is room for, they are only counted:
    `taken` is what they take, or would."""

    def __init__(self, header: list[str], room: float) -> None:
        self.header, self.room, self.taken = header, room, 0
        self.texts = {name: _Texts() for name in header if name not in ("p", "p_exact")}
        self.p = _Probabilities()
        self._line: list[Numbers] = [np.empty(0, np.int32)]

    def fill(self, records: Iterator[Record]) -> None:
        """Take records, all as wide as the header."""
        while batch := list(islice(records, BATCH)):
            self.taken += LINE * len(batch)
            if self.taken <= self.room:
                known = self._known
                self._add(batch)
                self.taken += TEXT * (self._known - known)

    @property
    def _known(self) -> int:
        """Return the number of different texts so far."""
        return sum(len(texts.known) for texts in self.texts.values())

    def _add(self, batch: list[Record]) -> None:
        self._line.append(np.array([line for line, _ in batch], np.int32))
        columns = dict(zip(self.header, zip(*(fields for _, fields in batch))))
        for name, texts in self.texts.items():
            words = columns[name]
            texts.add((word.strip() for word in words) if name == "n" else words, len(batch))
        self.p.add(columns["p"], columns.get("p_exact", ("",) * len(batch)), len(batch))

    def table(self) -> _Table:
        """Return the lines by signature and value."""
        (ratios, place), line = self.p.places(), np.concatenate(self._line)
        numbers = {name: texts.pop() for name, texts in self.texts.items()}
        known = {name: texts.known for name, texts in self.texts.items()}
        codes = {name: numbers[name] for name in self.header if name in numbers and name not in RESERVED}
        signature, value = _in_runs(combined(list(codes.values()))), numbers["value"]
        n, of_n = known.get("n"), numbers.get("n", np.zeros(len(line), np.uint16))
        if not _in_order(signature, value):
            order = np.lexsort((value, signature))
            codes = {name: numbers[order] for name, numbers in codes.items()}
            line, signature, value, place, of_n = (each[order] for each in (line, signature, value, place, of_n))
        start = np.append(np.flatnonzero(_begins(signature)), len(signature))
        cells = np.stack([numbers[start[:-1]] for numbers in codes.values()])
        attributes = {name: known[name] for name in codes}
        return _Table(line, value, start, attributes, cells, known["value"], ratios, place, n, of_n)


def _begins(numbers: Numbers) -> NDArray[np.bool_]:
    """Return where other numbers begin."""
    return np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]


def _in_order(signature: Numbers, value: Numbers) -> bool:
    """Return whether lines ascend by signature and value, without a pair that comes again."""
    new, rising = signature[1:] > signature[:-1], value[1:] > value[:-1]
    return bool((new | (rising & (signature[1:] == signature[:-1]))).all())


def _in_runs(key: Ints) -> Numbers:
    """Return a number for each different key, by where it comes first. Equal keys mostly follow each other."""
    begins = np.flatnonzero(_begins(key))
    _, first, same = np.unique(key[begins], return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int32)
    place[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return np.repeat(place[same.reshape(-1)], np.diff(begins, append=len(key)))


@dataclass(frozen=True)
class _Table:
    """The lines of a prior file in the order of their signatures and values."""

    line: Numbers  # of the file
    value: Numbers
    start: Ints  # [signatures + 1] the first line of each signature
    attributes: dict[str, dict[str, int]]
    cells: Numbers  # [attributes, signatures]
    values: dict[str, int]
    ratios: Ratios
    place: Places
    n: dict[str, int] | None  # its different texts, numbered; None without a column n
    of_n: Numbers

    @cached_property
    def first(self) -> Ints:
        """Return where the line of each signature is that comes first in the file."""
        if (self.line[1:] > self.line[:-1]).all():
            return self.start[:-1]
        signature = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        return np.lexsort((self.line, signature))[self.start[:-1]]

    def wrong(self) -> Iterator[tuple[int, str, str]]:
        """Yield what is wrong with lines, in their order: line, found, expected."""
        counts = np.array([_PEOPLE.fullmatch(text) is not None for text in self.n or ["0"]], bool)
        again = ~_begins(self.value)
        again[self.start[:-1]] = False
        pairs = np.flatnonzero(~again) if again.any() else self.start[:0]  # where each pair comes first
        other = self.of_n != np.repeat(self.of_n[self.first], np.diff(self.start))
        bad = np.flatnonzero((self.place < 0) | again | ~counts[self.of_n] | other)
        for at in bad[np.argsort(self.line[bad])].tolist():
            line = int(self.line[at])
            if self.place[at] < 0:
                yield line, "no probability", "p as a decimal number from 0 to 1"
            if again[at]:
                before = self.line[pairs[np.searchsorted(pairs, at) - 1]]
                yield line, f"the attributes and the value of line {before} again", "every value once"
            if not counts[self.of_n[at]]:
                yield line, "no number of people", "n as a whole number of at most 18 digits"
            if other[at]:
                same = self.first[np.searchsorted(self.start, at, "right") - 1]
                yield line, f"another n than line {self.line[same]}", "one n for the same attributes"

    def prior(self, file: str) -> RawPrior:
        first = self.start[:-1]
        n = None if self.n is None else np.array([int(text) for text in self.n], np.int64)[self.of_n[first]]
        attributes, texts = list(self.attributes), list(self.attributes.values())
        return RawPrior(file, attributes, texts, self.cells, self.values, self.start, self.place, self.ratios, n)
