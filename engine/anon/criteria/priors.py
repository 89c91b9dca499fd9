"""What an adversary knows beforehand: the probability of each sensitive value for people with the same attributes.
Priors come from files that the config names, or are estimated from the cube, and go to the criteria that search and
verify ask (config -> source -> cube -> search -> release -> verify -> report). A file has a line per signature (the
tuple of the attributes) and value:

    sex,value,p,n
    m,flu,0.1,4100
    f,flu,0.003,3900

`n`, the people behind a signature, may be left out. `p_exact` holds fractions that no decimal of `p` can express.
An empty field is a null. What is missing is a mistake, not a probability of zero. Messages count, or name lines; they
quote no values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

from anon.criteria.protocol import Ints
from anon.errors import ConfigError, Problem
from anon.hierarchy.records import read_records, refuse
from anon.values import respelt

Signature = tuple[str | None, ...]

RESERVED = ("value", "p", "p_exact", "n")
ROUNDING = Fraction(1, 10**9)  # how far the probabilities of a signature may be from summing to 1
DIGITS = 30  # significant digits of a `p` that has no end as a decimal
_DECIMAL = re.compile(r"\d+(\.\d*)?([eE][+-]?\d{1,3})?|\.\d+([eE][+-]?\d{1,3})?")
_FRACTION = re.compile(r"\d+(/0*[1-9]\d*)?")


@dataclass(frozen=True)
class RawPrior:
    """A prior as its file has it, texts with nulls as empty texts."""

    file: str
    attributes: list[str]
    p: dict[tuple[str, ...], dict[str, Fraction]]
    n: dict[tuple[str, ...], int]  # empty without a column n


@dataclass(frozen=True)
class Prior:
    """p[signature][value] for the signatures and values of one table; None for a value that the prior does not name.
    A prior that leaves values out is `binary`: it knows each value it names only against all others together."""

    attributes: list[str]
    signatures: list[Signature]
    values: list[str | None]
    p: list[list[Fraction | None]]
    n: list[int] | None = None  # people behind each signature

    @property
    def named(self) -> list[int]:
        """The codes of the values that the prior names."""
        return [code for code, p in enumerate(self.p[0]) if p is not None] if self.p else []

    @property
    def binary(self) -> bool:
        return len(self.named) < len(self.values)


@dataclass(frozen=True)
class _Line:
    """A record by the names of its columns."""

    number: int
    fields: dict[str, str]
    signature: tuple[str, ...]

    @property
    def p(self) -> Fraction | None:
        """A probability, or None."""
        exact = self.fields.get("p_exact", "").strip()
        text, form = (exact, _FRACTION) if exact else (self.fields["p"].strip(), _DECIMAL)
        number = Fraction(text) if form.fullmatch(text) else None
        return number if number is not None and number <= 1 else None


def read_prior(path: Path, where: str) -> RawPrior:
    """A prior file, refused with the lines at fault. `where` is the field that names it."""
    records = list(read_records(path, where))
    if not records:
        raise ConfigError.at(where, f"{path.name} without a line", "a line of columns, then one for each probability")
    header = [name.strip() if name.strip() in RESERVED else name for name in records[0][1]]
    _check_header(header, f"{path.name} line {records[0][0]}", where)
    refuse([_at(where, path, *wrong) for wrong in _ragged(header, records[1:])])
    attributes = [name for name in header if name not in RESERVED]
    lines = []
    for number, fields in records[1:]:
        named = dict(zip(header, fields))
        lines.append(_Line(number, named, tuple(named[name] for name in attributes)))
    refuse([_at(where, path, *wrong) for wrong in _wrong_lines(lines)])
    raw = _collect(path.name, attributes, lines)
    refuse([_at(where, path, *wrong) for wrong in _above_one(raw, lines)])
    return raw


Wrong = tuple[int, str, str]  # line, found, expected


def _at(where: str, path: Path, line: int, found: str, expected: str) -> Problem:
    return Problem(where, f"{path.name} line {line}: {found}", expected)


def _check_header(header: list[str], place: str, where: str) -> None:
    expected = "columns for the attributes, then value, p and perhaps n"
    missing = [name for name in ("value", "p") if name not in header]
    if missing:
        raise ConfigError.at(where, f"{place}: no column {' and no column '.join(missing)}", expected)
    if len(set(header)) < len(header) or "" in header:
        raise ConfigError.at(where, f"{place}: a column without a name, or two of one name", expected)
    if len(header) == sum(name in RESERVED for name in header):
        raise ConfigError.at(where, f"{place}: no attribute", expected)


def _ragged(header: list[str], records: list[tuple[int, list[str]]]) -> Iterator[Wrong]:
    for line, fields in records:
        if len(fields) != len(header):
            yield line, f"{len(fields)} fields", f"{len(header)} fields, as the first line has"


def _wrong_lines(lines: list[_Line]) -> Iterator[Wrong]:
    first: dict[tuple[tuple[str, ...], str], int] = {}
    people: dict[tuple[str, ...], tuple[int, str]] = {}
    for line in lines:
        if line.p is None:
            yield line.number, "no probability", "p as a decimal number from 0 to 1"
        before = first.setdefault((line.signature, line.fields["value"]), line.number)
        if before != line.number:
            yield line.number, f"the attributes and the value of line {before} again", "every value once"
        n = line.fields.get("n", "0").strip()
        if not re.fullmatch(r"\d+", n):
            yield line.number, "no number of people", "n as a whole number"
        number, other = people.setdefault(line.signature, (line.number, n))
        if other != n:
            yield line.number, f"another n than line {number}", "one n for the same attributes"


def _collect(file: str, attributes: list[str], lines: list[_Line]) -> RawPrior:
    p: dict[tuple[str, ...], dict[str, Fraction]] = {}
    n = {line.signature: int(line.fields["n"]) for line in lines if "n" in line.fields}
    for line in lines:
        p.setdefault(line.signature, {})[line.fields["value"]] = line.p or Fraction(0)
    return RawPrior(file, attributes, p, n)


def _above_one(raw: RawPrior, lines: list[_Line]) -> Iterator[Wrong]:
    above = {signature for signature, row in raw.p.items() if sum(row.values()) > 1 + ROUNDING}
    for line in lines:
        if line.signature in above:
            above.remove(line.signature)
            yield line.number, "the probabilities of these attributes sum to more than 1", "a sum of at most 1"


def bind(
    raw: RawPrior, attributes: Sequence[str], signatures: Sequence[Signature], values: Sequence[str | None], where: str
) -> Prior:
    """A file's prior for the signatures (attributes in the given order) and the values that occur in a table."""
    if sorted(attributes) != sorted(raw.attributes):
        found = f"{raw.file} with columns {', '.join(raw.attributes)}"
        raise ConfigError.at(where, found, f"attributes {', '.join(attributes)}")
    place = [list(attributes).index(name) for name in raw.attributes]
    keys = [_key(raw, tuple(signature[i] or "" for i in place)) for signature in signatures]
    names = [value or "" for value in values]
    _check_apart(keys, names, where)
    named = {name for row in raw.p.values() for name in row}
    refuse(list(_missing(raw, keys, names, named, where)))
    p = [[raw.p[key].get(name) for name in names] for key in keys]
    n = [raw.n[key] for key in keys] if raw.n else None
    return Prior(list(attributes), list(signatures), list(values), p, n)


def _key(raw: RawPrior, signature: tuple[str, ...]) -> tuple[str, ...]:
    """What a file calls a signature: one from a CSV table may have numbers and moments in another notation."""
    return signature if signature in raw.p else tuple(map(respelt, signature))


def _check_apart(keys: Sequence[tuple[str, ...]], names: Sequence[str], where: str) -> None:
    if len(set(keys)) < len(keys) or len(set(names)) < len(names):
        found = "a column with nulls and with empty texts, which a prior file writes alike"
        raise ConfigError.at(where, found, "a column with one of them")


def _missing(
    raw: RawPrior, keys: Sequence[tuple[str, ...]], names: Sequence[str], named: set[str], where: str
) -> Iterator[Problem]:
    known = [key for key in keys if key in raw.p]
    if len(known) < len(keys):
        found = f"{raw.file}: no line for {len(keys) - len(known)} of the {len(keys)} combinations of "
        yield Problem(where, f"{found}{', '.join(raw.attributes)} in the data", "probabilities for each of them")
    if not named.intersection(names):
        yield Problem(where, f"{raw.file}: none of the {len(names)} values of the data", "a value that occurs")
    gaps = sum(len(named - raw.p[key].keys()) for key in known)
    if gaps:
        expected = "a line for every combination of attributes with every value that the file names"
        yield Problem(where, f"{raw.file}: {gaps} such lines missing", expected, "no line does not mean p = 0")
    elif named.issuperset(names):
        short = sum(abs(sum(raw.p[key].values(), Fraction(-1))) > ROUNDING for key in known)
        if short:
            found = f"{raw.file}: all values named, and {short} combinations of attributes that do not sum to 1"
            yield Problem(where, found, "probabilities that sum to 1 within 1e-9")


def estimate(counts: Ints, smoothing: Fraction) -> list[list[Fraction | None]]:
    """The prior of counts[signature, value], with `smoothing` people added to each of them.

    >>> import numpy as np
    >>> [str(p) for p in estimate(np.array([[2, 0, 1]]), Fraction(1))[0]]
    ['1/2', '1/6', '1/3']
    """
    return [[(count + smoothing) / (sum(row) + smoothing * len(row)) for count in row] for row in counts.tolist()]


def write_prior(prior: Prior, path: Path) -> None:
    """Saves a prior so that reading the file and binding it to the same table gives the same prior. The file is new and
    for its owner alone."""
    where = path.name
    taken = [name for name in prior.attributes if name in RESERVED]
    if taken:
        raise ConfigError.at(where, f"attribute {', '.join(taken)}", "attributes of other names than a prior's columns")
    named = prior.named
    _check_apart(
        [tuple(text or "" for text in key) for key in prior.signatures], [v or "" for v in prior.values], where
    )
    endless = any(_decimal(p)[1] for row in prior.p for p in row if p is not None)
    people, fractions = ["n"] * (prior.n is not None), ["p_exact"] * endless
    records: list[list[str | None]] = [[*prior.attributes, "value", "p", *people, *fractions]]
    for i, (signature, row) in enumerate(zip(prior.signatures, prior.p)):
        n = [str(prior.n[i])] if prior.n is not None else []
        for code in named:
            text, fraction = _decimal(row[code] or Fraction(0))
            records.append([*signature, prior.values[code], text, *n, *[fraction] * endless])
    lines = [",".join(map(_quoted, record)) + "\n" for record in records]
    with open(path, "x", encoding="utf-8", newline="", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.writelines(lines)


def _quoted(field: str | None) -> str:
    """A field of a CSV file. Unlike the `csv` module it quotes `;` and every line break, which the reader asks for."""
    text = field or ""
    return '"' + text.replace('"', '""') + '"' if re.search('[,;"\r\n]', text) else text


def _decimal(p: Fraction) -> tuple[str, str]:
    """A probability as a decimal and, where that is rounded, as a fraction.

    >>> _decimal(Fraction(1, 8)), _decimal(Fraction(1, 3))
    (('0.125', ''), ('0.333333333333333333333333333333', '1/3'))
    """
    number = Context(prec=DIGITS).divide(Decimal(p.numerator), Decimal(p.denominator))
    return format(number, "f"), "" if Fraction(number) == p else str(p)
