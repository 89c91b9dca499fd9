"""Make the records of a source whose individuals have several sensitive values, as a set or a multiset. Equal rows are
always counted, in two ways: `people` is 1 on exactly one of an individual's records (that of their lowest value),
`values` counts occurrences, in a set at most one of a value for each individual."""

from __future__ import annotations

import numpy as np

from anon.cube.building import PEOPLE, Cube, Encoder, RecordStore
from anon.cube.records import halves
from anon.errors import SourceError
from anon.source import Source


def fill(cube: Cube, source: Source, encoder: Encoder, store: RecordStore) -> None:
    """Make the records of a cube and count its sensitive values."""
    width, columns = len(encoder.domains), len(cube.domains)
    sizes = [domain.size for domain in encoder.domains]
    place, at, people = store.place(source.rows, sizes + 2 * PEOPLE, "records"), 0, 0
    counts = [np.zeros(size, np.int64) for size in sizes]
    for batch in source.rows_of(_query(source, encoder)):
        if at + batch.num_rows > source.rows:
            raise SourceError("rows appeared while the source was being read")
        codes = encoder.codes(batch, 4)
        own, times = (batch.column(width + index).to_numpy().astype(np.int64) for index in (0, 1))
        codes[-4:-2], codes[-2:] = halves(own), halves(times)
        for index, (counted, column) in enumerate(zip(counts, codes)):
            np.add.at(counted, column, own if index < columns else times)
        place.write(at, codes)
        at, people = at + batch.num_rows, people + int(own.sum())
        store.on_progress(done=source.rows + min(at, source.rows), of=2 * source.rows)
    place.count = at
    cube.by_code, cube.totals = counts[:columns], counts[columns:]
    cube.records, cube.counted, cube.people = place, True, people


def _query(source: Source, encoder: Encoder) -> str:
    """Return the SQL for the columns of the encoder, equal rows once, with their people and values."""
    names = [f"c{index}" for index in range(len(encoder.columns))]
    own = [column.alias for column in encoder.columns]
    sensitive = source.sensitive[0].alias
    different = list(dict.fromkeys(own))
    every = ", ".join(different)
    values = f"SELECT {every} FROM kept_rows"
    if source.multiplicity == "set":
        values = f"SELECT DISTINCT who, {every} FROM kept_rows"
    lowest = ", ".join(f"{'min' if alias == sensitive else 'first'}({alias}) AS {alias}" for alias in different)
    people = f"SELECT {lowest} FROM kept_rows GROUP BY who"
    listed = ", ".join(f"{alias} AS {name}" for alias, name in zip(own, names))
    both = f"SELECT {listed}, 0 AS p, 1 AS v FROM ({values}) UNION ALL SELECT {listed}, 1, 0 FROM ({people})"
    by = ", ".join(names)
    return f"SELECT {by}, sum(p)::BIGINT, sum(v)::BIGINT FROM ({both}) GROUP BY {by}"
