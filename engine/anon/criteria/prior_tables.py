"""What priors are kept in: tables of numbers instead of objects, since a prior may have millions of probabilities. The
probabilities are exact all the same: every different one is kept once, as a numerator and a denominator."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon.core.cell_index import combined
from anon.core.memory import require
from anon.core.text import text
from anon.criteria.protocol import Floats, Ints

Signature = tuple[str | None, ...]
Counting = Callable[[], Ints]  # counts people by signature and sensitive value when it is called
Places = NDArray[np.int32]
CELL = 40  # bytes that a probability takes: a count, a place, floats, and what comes and goes with them
EXACT = 2**53  # whole numbers below it are floats
LARGEST = 2**62  # numbers of signatures stay below


def check_room(memory: int | None, signatures: int, values: int) -> None:
    """Raise ResourceError if a prior over as many signatures and values does not fit in the memory of the process."""
    if memory is not None:
        what = f"a prior over {signatures:,} combinations of attributes and {values:,} values"
        require(memory, CELL * signatures * values, what)


@dataclass(frozen=True)
class SignatureTable:
    """The tuples of attributes that occur in a table: per attribute its different texts, and the place of each
    signature's text among them."""

    texts: list[list[str | None]]
    codes: NDArray[Any]  # [attributes, signatures]

    @classmethod
    def from_signatures(cls, signatures: Sequence[Signature]) -> SignatureTable:
        texts = [list(dict.fromkeys(parts)) for parts in zip(*signatures)]
        known = [{word: code for code, word in enumerate(words)} for words in texts]
        codes = [[numbers[part] for numbers, part in zip(known, parts)] for parts in signatures]
        return cls(texts, np.array(codes, np.int32).reshape(len(signatures), len(texts)).T)

    @classmethod
    def from_columns(cls, columns: Sequence[pa.ChunkedArray]) -> SignatureTable:
        """Return the signatures of a table with one column per attribute."""
        encoded = [column.combine_chunks().dictionary_encode() for column in columns]
        texts = [[*(text(value) for value in each.dictionary.to_pylist()), None] for each in encoded]
        codes = [np.asarray(each.indices.fill_null(len(words) - 1)) for each, words in zip(encoded, texts)]
        return cls(texts, np.stack(codes).astype(np.int32))

    def mixes_null_and_empty(self) -> bool:
        """Return whether two signatures are the same but for a null in place of an empty text."""
        both = [None in words and "" in words for words in self.texts]
        codes = [
            np.where(own == words.index(None), words.index(""), own) if mixed else own
            for words, own, mixed in zip(self.texts, self.codes, both)
        ]
        return any(both) and len(np.unique(combined(codes))) < len(self)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __iter__(self) -> Iterator[Signature]:
        for cell in self.codes.T.tolist():
            yield tuple(words[code] for words, code in zip(self.texts, cell))


@dataclass(frozen=True)
class Ratios:
    """Different fractions from 0 to 1. Those with 63 bits are in arrays, `large` has the others."""

    numerator: Ints
    denominator: Ints
    large: dict[int, Fraction]

    @classmethod
    def from_fractions(cls, fractions: Iterable[Fraction]) -> tuple[Ratios, Places]:
        """Return the different ones of some fractions, and the place of each among them."""
        listed = ListedRatios()
        for each in fractions:
            listed.add(each)
        return listed.different()

    def __getitem__(self, place: int) -> Fraction:
        return self.large.get(place) or Fraction(int(self.numerator[place]), int(self.denominator[place]))

    @cached_property
    def floats(self) -> Floats:
        """Return each as the nearest float."""
        return self._nearest(self.numerator, lambda p: p)

    @cached_property
    def complements(self) -> Floats:
        """Return 1 - p for each, as the nearest float."""
        return self._nearest(self.denominator - self.numerator, lambda p: 1 - p)

    def _nearest(self, numerator: Ints, exactly: Any) -> Floats:
        found: Floats = numerator / self.denominator
        rounded = set(np.flatnonzero(self.denominator >= EXACT).tolist()) | self.large.keys()
        for place in rounded:
            found[place] = float(exactly(self[place]))
        return found


class ListedRatios:
    """Collects fractions from 0 to 1."""

    def __init__(self) -> None:
        self._top, self._bottom = array("q"), array("q")
        self._large: dict[Fraction, int] = {}

    def add(self, fraction: Fraction) -> int:
        """Add a fraction; return its number."""
        numerator, denominator = fraction.as_integer_ratio()
        if denominator >= LARGEST:
            numerator, denominator = self._large.setdefault(fraction, len(self._large)), 0
        self._top.append(numerator)
        self._bottom.append(denominator)
        return len(self._top) - 1

    def different(self) -> tuple[Ratios, Places]:
        """Return the different ones, and by its number the place of each among them."""
        pairs = np.stack([np.array(self._top, np.int64), np.array(self._bottom, np.int64)])
        order = np.lexsort(pairs)
        new = np.append(True, (np.diff(pairs[:, order]) != 0).any(axis=0))[: len(order)]
        places = np.empty(len(order), np.int32)
        places[order] = np.cumsum(new, dtype=np.int32) - 1
        numerator, denominator = pairs[:, order[new]]
        large = {int(at): each for at, each in zip(np.flatnonzero(denominator == 0), self._large)}
        return Ratios(np.where(denominator == 0, 0, numerator), np.maximum(denominator, 1), large), places


@dataclass(frozen=True)
class Probabilities:
    """p[signature][value] as the place of each among the different ones, -1 for a value that a prior does not name."""

    place: Places  # [signatures, values]
    ratios: Ratios

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Fraction | None]]) -> Probabilities:
        ratios, places = Ratios.from_fractions(p for row in rows for p in row if p is not None)
        named = np.array([[p is not None for p in row] for row in rows], bool)
        place = np.full(named.shape, -1, np.int32)
        place[named] = places
        return cls(place, ratios)

    def __len__(self) -> int:
        return len(self.place)

    def __getitem__(self, signature: int) -> list[Fraction | None]:
        return [None if place < 0 else self.ratios[place] for place in self.place[signature].tolist()]

    def __iter__(self) -> Iterator[list[Fraction | None]]:
        return map(self.__getitem__, range(len(self)))

    def floats(self, unnamed: float, rows: Any = slice(None)) -> Floats:
        """Return the probabilities of some signatures, or of all, as floats."""
        found: Floats = np.append(self.ratios.floats, unnamed)[self.place[rows]]
        return found

    def complements(self, unnamed: float, rows: Any = slice(None)) -> Floats:
        """Return the probabilities of not having each value."""
        found: Floats = np.append(self.ratios.complements, unnamed)[self.place[rows]]
        return found
