"""What an adversary knows beforehand: the probability of each sensitive value for people with the same attributes.
Priors come from files that the config names (`prior_files`), or are estimated from the cube."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from anon.core.cell_index import CellIndex, combined
from anon.core.text import respelt
from anon.criteria.prior_files import RESERVED, RawPrior
from anon.criteria.prior_tables import CELL, Probabilities, Ratios, Signature, SignatureTable
from anon.criteria.protocol import Ints
from anon.errors import ConfigError, Problem
from anon.hierarchy.csv_files import refuse

DIGITS = 30  # significant digits of a `p` that has no end as a decimal
CELLS = 1 << 20  # of a table of counts that are processed together


@dataclass(frozen=True, eq=False)
class Prior:
    """p[signature][value] for the signatures and values of one table; None for a value that the prior does not name.
    A prior that leaves values out is `binary`: it knows each value it names only against all others together."""

    attributes: list[str]
    signatures: SignatureTable
    values: list[str | None]
    p: Probabilities
    n: Ints | None = None  # people behind each signature

    @classmethod
    def from_rows(
        cls,
        attributes: list[str],
        signatures: Sequence[Signature],
        values: list[str | None],
        p: Sequence[Sequence[Fraction | None]],
        n: Sequence[int] | None = None,
    ) -> Prior:
        """Return a prior of a few rows."""
        people = None if n is None else np.array(n, np.int64)
        return cls(attributes, SignatureTable.from_signatures(signatures), values, Probabilities.from_rows(p), people)

    @cached_property
    def named(self) -> list[int]:
        """Return the codes of the values that the prior names."""
        found: list[int] = np.flatnonzero((self.p.place[:1] >= 0).any(axis=0)).tolist()
        return found

    @property
    def nbytes(self) -> int:
        """Return the memory that it takes while a release is judged against it."""
        return CELL * self.p.place.size

    @property
    def binary(self) -> bool:
        return len(self.named) < len(self.values)


def bind(
    raw: RawPrior, attributes: Sequence[str], signatures: SignatureTable, values: Sequence[str | None], where: str
) -> Prior:
    """Return a file's prior for the signatures (attributes in the given order) and the values that occur in a table."""
    if sorted(attributes) != sorted(raw.attributes):
        found = f"{raw.file} with columns {', '.join(raw.attributes)}"
        raise ConfigError.at(where, found, f"attributes {', '.join(attributes)}")
    _check_apart(signatures, values, where)
    rows, names = _rows(raw, list(attributes), signatures), [value or "" for value in values]
    known = rows[rows >= 0]
    if len(np.unique(known)) < len(known):
        raise _not_apart(where)
    refuse(list(_missing(raw, known, len(rows), names, where)))
    place = np.full((len(rows), len(names)), -1, np.int32)
    for at, name in enumerate(names):  # without gaps a signature has one line for each value of the file
        if name in raw.values:
            place[:, at] = raw.place[raw.start[rows] + raw.values[name]]
    n = None if raw.n is None else raw.n[rows]
    return Prior(list(attributes), signatures, list(values), Probabilities(place, raw.ratios), n)


def _rows(raw: RawPrior, attributes: list[str], signatures: SignatureTable) -> Ints:
    """Return the place of each signature of a table in a file, -1 if it is not there. A signature from a CSV table may
    have numbers and moments in another notation."""
    sizes = [len(texts) + 1 for texts in raw.texts]  # a text that the file does not have is one more
    index, found = CellIndex(raw.cells.astype(np.uint32), sizes), []
    for spelt in (str, respelt):
        codes = []
        for name, texts in zip(raw.attributes, raw.texts):
            at = attributes.index(name)
            own = np.array([texts.get(spelt(word or ""), len(texts)) for word in signatures.texts[at]], np.uint32)
            codes.append(own[signatures.codes[at]])
        place = index.find(codes).astype(np.int64)
        found.append(np.where(place == index.count, -1, place))
    return np.where(found[0] >= 0, *found)


def _check_apart(signatures: SignatureTable, values: Sequence[str | None], where: str) -> None:
    if signatures.mixes_null_and_empty() or len({value or "" for value in values}) < len(values):
        raise _not_apart(where)


def _not_apart(where: str) -> ConfigError:
    found = "a column with nulls and with empty texts, which a prior file writes alike"
    return ConfigError.at(where, found, "a column with one of them")


def _missing(raw: RawPrior, known: Ints, signatures: int, names: Sequence[str], where: str) -> Iterator[Problem]:
    """Yield what a file lacks for a table with this number of signatures, given the rows of those it has."""
    if len(known) < signatures:
        found = f"{raw.file}: no line for {signatures - len(known)} of the {signatures} combinations of "
        yield Problem(where, f"{found}{', '.join(raw.attributes)} in the data", "probabilities for each of them")
    named = set(raw.values)
    if not named.intersection(names):
        yield Problem(where, f"{raw.file}: none of the {len(names)} values of the data", "a value that occurs")
    gaps = len(known) * len(named) - int(np.diff(raw.start)[known].sum())
    if gaps:
        expected = "a line for every combination of attributes with every value that the file names"
        yield Problem(where, f"{raw.file}: {gaps} such lines missing", expected, "no line does not mean p = 0")
    elif named.issuperset(names) and (short := int(np.count_nonzero(raw.beyond[known]))):
        found = f"{raw.file}: all values named, and {short} combinations of attributes that do not sum to 1"
        yield Problem(where, found, "probabilities that sum to 1 within 1e-9")


def estimate(counts: Ints, smoothing: Fraction) -> Probabilities:
    """Return the prior of counts[signature, value], with `smoothing` people added to each of them.

    >>> [str(p) for p in estimate(np.array([[2, 0, 1]]), Fraction(1))[0]]
    ['1/2', '1/6', '1/3']
    """
    signatures, values = counts.shape
    n, place = counts.sum(axis=1), np.empty(counts.shape, np.int32)
    known: dict[tuple[int, int], int] = {}  # the count of a value and of everybody behind a probability
    step = max(CELLS // max(values, 1), 1)
    for first in range(0, signatures, step):
        some = counts[first : first + step]
        pairs = np.stack([some.ravel(), np.repeat(n[first : first + step], values)])
        _, at, same = np.unique(combined(list(pairs)), return_index=True, return_inverse=True)
        own = [known.setdefault(pair, len(known)) for pair in zip(*pairs[:, at].tolist())]
        place[first : first + step] = np.array(own, np.int32)[same].reshape(some.shape)
    ratios, places = Ratios.from_fractions((count + smoothing) / (all_ + smoothing * values) for count, all_ in known)
    return Probabilities(places[place], ratios)


def estimated(
    attributes: list[str], signatures: SignatureTable, values: list[str | None], counts: Ints, smoothing: Fraction
) -> Prior:
    """Return the prior that the people of a table suggest."""
    return Prior(attributes, signatures, values, estimate(counts, smoothing), counts.sum(axis=1))


def write_prior(prior: Prior, path: Path) -> None:
    """Save a prior so that reading the file and binding it to the same table gives the same prior. The file is new and
    for its owner alone."""
    where = path.name
    taken = [name for name in prior.attributes if name in RESERVED]
    if taken:
        raise ConfigError.at(where, f"attribute {', '.join(taken)}", "attributes of other names than a prior's columns")
    _check_apart(prior.signatures, prior.values, where)
    with open(path, "x", encoding="utf-8", newline="", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.writelines(",".join(map(_quoted, record)) + "\n" for record in _records(prior))


def _records(prior: Prior) -> Iterator[list[str | None]]:
    """Yield the lines of a prior file, the first of which names its columns."""
    ratios, place = prior.p.ratios, prior.p.place
    endless = any(_decimal(ratios[at])[1] for at in np.unique(place[place >= 0]).tolist())
    people, fractions = ["n"] * (prior.n is not None), ["p_exact"] * endless
    yield [*prior.attributes, "value", "p", *people, *fractions]
    for at, signature in enumerate(prior.signatures):
        n = [str(prior.n[at])] if prior.n is not None else []
        for code in prior.named:
            text, fraction = _decimal(ratios[int(place[at, code])])
            yield [*signature, prior.values[code], text, *n, *[fraction] * endless]


def _quoted(field: str | None) -> str:
    """Return a field of a CSV file. Unlike the `csv` module it quotes `;` and every line break, as the reader needs."""
    text = field or ""
    return '"' + text.replace('"', '""') + '"' if re.search('[,;"\r\n]', text) else text


def _decimal(p: Fraction) -> tuple[str, str]:
    """Return a probability as a decimal and, where that is rounded, as a fraction.

    >>> _decimal(Fraction(1, 8)), _decimal(Fraction(1, 3))
    (('0.125', ''), ('0.333333333333333333333333333333', '1/3'))
    """
    number = Context(prec=DIGITS).divide(Decimal(p.numerator), Decimal(p.denominator))
    return format(number, "f"), "" if Fraction(number) == p else str(p)
