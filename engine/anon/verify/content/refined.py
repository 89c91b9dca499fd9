"""Compute the expected content of a generalized release in which people with equal quasi-identifiers may be in
different groups. Every row of the source is followed to its group (assigned.py), and the labels of this group are
parsed by their grammar: they must be true for the row's own values and, being tight, reach no further than to the
lowest and the highest value of the group's rows. The keys of the rows come from the source, not from the codes of the
search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from anon.config import Config
from anon.core.arrays import Ints
from anon.core.database import causes, fed
from anon.core.phrases import counted
from anon.cube import Domain
from anon.recoding.assignment import Assignment
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import recoded_column
from anon.source import Source
from anon.verify.content.applied import wrong
from anon.verify.content.assigned import groups_of_rows
from anon.verify.content.fingerprint import Content, content_of, total
from anon.verify.content.keys import Keys
from anon.verify.content.labels import grammar_of
from anon.verify.content.reading import keys_under
from anon.verify.content.tree_groups import GroupLabels, untrue


def refined_content(
    source: Source, config: Config, recoding: RefinedRecoding, sensitive: Domain, hashes: dict[str, str]
) -> Content:
    """Return the expected content of the release; `hashes` are SQL on the rows of the source."""
    columns = [recoded_column(domain) for domain in recoding.domains]
    grammars = [grammar_of(column) for column in columns]
    of_columns = zip(recoding.labels, grammars)
    labels = [GroupLabels.from_codes(own.labels, own.of_group, grammar) for own, grammar in of_columns]
    keys = keys_under(source, config, grammars)
    groups = _groups(source, keys, labels, recoding.assignment, sensitive, hashes)
    for j, (column, own) in enumerate(zip(columns, labels)):
        of_group = own.of_group[groups["g"].to_numpy()]
        if not column.binned:  # labels reach to the ends of bins, which hold several values
            ends = (groups[f"{end}{j}"].to_numpy() for end in ("low", "high"))
            _check_tight(column.name, keys.present(source, j), own.ranges[of_group], *ends)
        groups = groups.append_column(f"l{j}", own.words.take(pa.array(of_group)))
    query = content_of("SELECT * FROM grouped", [f"l{j}" for j in range(len(labels))], list(hashes))
    (batch,) = source.stream(query, {"grouped": groups})
    return Content(*(column[0].as_py() for column in batch.columns))


def _groups(
    source: Source,
    keys: Keys,
    labels: list[GroupLabels],
    assignment: Assignment,
    sensitive: Domain,
    hashes: dict[str, str],
) -> pa.Table:
    """Return the groups g with their size n, the sums of hashes, and in each column j the lowest and the highest key,
    lowj and highj; raise VerificationError if a label does not cover a row."""
    failures: list[BaseException] = []
    followed = groups_of_rows(source, assignment, sensitive, hashes, failures, kept=source.quasi_identifiers)
    selected = keys.select("followed", {name: name for name in ("g", *hashes)})
    rows = source.rows_of(selected, tables=keys.tables | {"followed": followed})
    kinds = {f"k{j}": pa.int64() for j in range(len(labels))} | {"g": pa.uint32()} | dict.fromkeys(hashes, pa.uint64())
    checked = fed(pa.schema(list(kinds.items())), _true(rows, keys, labels), failures)
    ends = "".join(f", min(k{j}) AS low{j}, max(k{j}) AS high{j}" for j in range(len(labels)))
    sums = ", ".join(f"{total(name)} AS {name}" for name in hashes)
    query = f"SELECT g, count(*) AS n, {sums}{ends} FROM checked GROUP BY g"
    with causes(failures):
        return pa.Table.from_batches(source.stream(query, {"checked": checked}))


def _true(rows: Iterable[pa.RecordBatch], keys: Keys, labels: list[GroupLabels]) -> Iterator[pa.RecordBatch]:
    """Yield the keys of rows, their groups and hashes; raise VerificationError if a label does not cover its row."""
    for batch in rows:
        own, rest = keys.read(batch), batch.columns[len(labels) :]
        if false := untrue(labels, rest[0].to_numpy(), own):
            raise wrong(f"has labels that are not true for {counted(false, 'row')} of the source")
        names = [f"k{j}" for j in range(len(labels))]
        yield pa.record_batch([*map(pa.array, own), *rest], [*names, *batch.schema.names[len(labels) :]])


def _check_tight(column: str, present: Ints, ranges: Ints, low: Ints, high: Ints) -> None:
    """Raise VerificationError if labels cover keys of a column outside those of their groups, low..high."""
    below = np.searchsorted(present, ranges[:, 0]) < np.searchsorted(present, low)
    above = np.searchsorted(present, ranges[:, 1], "right") > np.searchsorted(present, high, "right")
    if wide := int((below | above).sum()):
        raise wrong(f"has labels of {column!r} that reach further than the values of {counted(wide, 'group')}")
