"""Build SQL for order-free sums over rows and groups, which the source's side and the release's side share. The sum of
the hashes of a group's rows depends only on the multiset of these rows; the sum of the hashes of the groups, only on
the multiset of the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WRAP = 2**64
FLOATS = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Content:
    """The sums over the groups of a release, which do not depend on the order of groups and of rows."""

    groups: int
    labels: int  # over the labels and the size of each group
    whole: int  # over the same with the rows and the sensitive values of each group

    def __add__(self, other: Content) -> Content:
        sums = (self.labels + other.labels) % WRAP, (self.whole + other.whole) % WRAP
        return Content(self.groups + other.groups, *sums)


EMPTY = Content(0, 0, 0)


def row_hash(columns: Mapping[str, str]) -> str:
    """Return SQL for a hash of some columns, given as SQL with their DuckDB types. It distinguishes -0.0 from 0.0, as
    readers do.

    >>> row_hash({"s0": "VARCHAR", "k0": "DOUBLE"})
    'hash(hash(s0, k0, signbit(k0)))'
    """
    parts = [part for sql, kind in columns.items() for part in (sql, *([f"signbit({sql})"] if kind in FLOATS else []))]
    return f"hash(hash({', '.join(parts)}))" if parts else "0::UBIGINT"


def total(hashes: str) -> str:
    """Return SQL for the sum of some hashes modulo 2^64; 0 if there are none."""
    return f"CAST(coalesce(sum({hashes}), 0) % {WRAP}::HUGEINT AS UBIGINT)"


def content_of(groups: str, labels: Sequence[str], sums: Sequence[str]) -> str:
    """Return SQL for the fields of a `Content`, from a table that has a row for every group with its size n."""
    by_label = f"hash({', '.join([*labels, 'n'])})"
    by_all = f"hash({', '.join([*labels, 'n', *sums])})"
    return f"SELECT count(*), {total(by_label)}, {total(by_all)} FROM ({groups})"
