"""Match the people of a source with the published rows of a series. Labels do not say whose a row is, so a person is
linked to every row that fits: its labels cover the quasi-identifiers, and values that are published as they are agree.

Every row is somebody's, and nobody has two. So if the number of people who fit some equal rows of a group is the
number of these rows, the rows are theirs, and their links to other rows are removed; this is repeated while it
removes any. People and rows that are then linked, directly or through others, make a cluster. If a cluster has equal
numbers of both, all of its people were released, whichever rows are theirs; in other clusters they may have been:
they are ambiguous. With fewer people than rows, the source does not hold everybody who was released."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from anon.artifacts.ledger import PublishedPart
from anon.config import Config
from anon.core.database import Database, causes, fed, quote, translated
from anon.core.phrases import counted
from anon.errors import SourceError
from anon.release.series_package import paths_of
from anon.runs.members import value_text
from anon.runs.series.boxes import BoxTree
from anon.runs.series.covers import Covers
from anon.runs.series.rows import ON_DISK
from anon.source import Source
from anon.source.tables import describe
from anon.verify.files import File
from anon.verify.grouped import same_in

PEOPLE = f"{ON_DISK}.people"  # number i, the text `who`, and the values under the names of the source's view
ROWS = f"{ON_DISK}.published"  # equal rows of a group: number, part, g, values, and their count c
VALUES = f"{ON_DISK}.published_values"  # of bucketized parts: the count c of the value v, as text, in a group
LINKS = f"{ON_DISK}.links"  # person i may have a row of `published`
PART, FOUND = f"{ON_DISK}.part_rows", f"{ON_DISK}.found_groups"  # of the part that is read: rows; who is in which group
LINKED = f"{ON_DISK}.linked"  # links, with the first row of their cluster
ROUNDS = 100  # at most, of removing links; what is not decided then stays ambiguous
READ = 131_072
WHAT = "comparing the source with the parts"
SCHEMA = pa.schema([("i", pa.int64()), ("g", pa.int64())])


class Matching:
    """The links between the people of a source and the rows of parts."""

    def __init__(self, database: Database, source: Source, config: Config) -> None:
        self.database, self.source, self.config = database, source, config
        self.bucketized = config.release.form == "bucketized"
        self.types = describe(database, source.VIEW)
        self.covers: Covers | None = None

    @property
    def exact(self) -> dict[str, str]:
        """Return the columns that rows publish as they are: their names by those of the source's view."""
        columns = [] if self.covers else [*self.source.quasi_identifiers]
        columns += [each for each in self.source.keep if each.name not in self.config.columns.means]
        columns += [] if self.bucketized else self.source.sensitive
        return {column.alias: column.name for column in columns}

    def prepare(self, labelled: bool) -> None:
        """Make the tables. `labelled`: quasi-identifiers are published as labels."""
        self.covers = Covers(self.source, self.config) if labelled else None
        own = [column.alias for column in (*self.source.quasi_identifiers, *self.source.keep)]
        own += [] if self.bucketized else [column.alias for column in self.source.sensitive]
        columns = [f"first({name}) AS {name}" for name in own]
        if self.bucketized:
            columns.append(f"list({value_text('s0')}) AS own")
        rows = f"{self.source.used_rows} GROUP BY who"
        people = f"SELECT CAST(who AS VARCHAR) AS who, {', '.join(columns)} FROM {rows}"
        exact = "".join(f", {alias} {self.types[alias]}" for alias in self.exact)
        with translated(WHAT):
            self.database.execute(f"CREATE TABLE {PEOPLE} AS SELECT row_number() OVER () AS i, * FROM ({people})")
            self.database.execute(f"CREATE TABLE {ROWS} (row BIGINT, part INTEGER, g BIGINT, c BIGINT{exact})")
            self.database.execute(f"CREATE TABLE {LINKS} (i BIGINT, row BIGINT)")
            if self.bucketized:
                self.database.execute(f"CREATE TABLE {VALUES} (part INTEGER, g BIGINT, v VARCHAR, c BIGINT)")

    def add(self, part: PublishedPart, place: Path) -> list[int]:
        """Link people to the rows of a part; return the numbers of its groups."""
        with translated(WHAT):
            first = _opened(self.database, part, place, 0)
            groups = self._read_rows(part, first)
            if self.bucketized:
                self._read_values(part, _opened(self.database, part, place, 1))
        found = f"SELECT i, row FROM {PEOPLE} AS p JOIN ({self._rows_of(part)}) AS r ON {self._same('true')}"
        if self.covers:
            self._locate(part)
            pairs = f"{FOUND} AS f JOIN {PEOPLE} AS p USING (i)"
            found = f"SELECT p.i, row FROM {pairs} JOIN ({self._rows_of(part)}) AS r ON {self._same('r.g = f.g')}"
        if self.bucketized:
            lists = f"SELECT g, list(v) AS held FROM {VALUES} WHERE part = {part.number} GROUP BY g"
            found += f" JOIN ({lists}) AS h ON h.g = r.g WHERE list_has_all(h.held, p.own)"
        with translated(WHAT):
            self.database.execute(f"INSERT INTO {LINKS} {found}")
        return groups

    def _same(self, condition: str) -> str:
        return f"{condition} AND {same_in(list(self.exact), 'p', 'r')}" if self.exact else condition

    def _rows_of(self, part: PublishedPart) -> str:
        return f"SELECT * FROM {ROWS} WHERE part = {part.number}"

    def _read_rows(self, part: PublishedPart, table: str) -> list[int]:
        """Read the rows of a part, and the labels of its groups into a table; return the numbers of its groups, for
        which a table with labels alone has their order."""
        labels = [quote(column.name) for column in self.source.quasi_identifiers]
        group = '"group"'
        if not self.bucketized:
            group = f"dense_rank() OVER (ORDER BY {', '.join(f'{name} NULLS FIRST' for name in labels)}) - 1"
        named = [f"CAST({quote(name)} AS {self.types[alias]}) AS {alias}" for alias, name in self.exact.items()]
        named += [f"{name} AS l{at}" for at, name in enumerate(labels if self.covers else [])]
        self.database.execute(
            f"CREATE OR REPLACE TABLE {PART} AS SELECT {group} AS g, {', '.join(named) or '0 AS none'} FROM {table}"
        )
        exact = ", ".join(["g", *self.exact])
        first = f"(SELECT coalesce(max(row) + 1, 0) FROM {ROWS})"
        self.database.execute(
            f"INSERT INTO {ROWS} BY NAME SELECT {first} + row_number() OVER () AS row, {part.number} AS part, * FROM "
            f"(SELECT {exact}, count(*) AS c FROM {PART} GROUP BY {exact})"
        )
        numbers = self.database.query(f"SELECT DISTINCT g FROM {PART}").fetchnumpy()["g"]
        return [int(number) for number in numbers]

    def _read_values(self, part: PublishedPart, table: str) -> None:
        """Read the counts of the values in the groups of a bucketized part."""
        (column,) = self.source.sensitive
        value = value_text(f"CAST({quote(column.name)} AS {self.types[column.alias]})")
        self.database.execute(f'INSERT INTO {VALUES} SELECT {part.number}, "group", {value}, "count" FROM {table}')

    def _locate(self, part: PublishedPart) -> None:
        """Make a table of who is covered by the labels of which groups of a part."""
        assert self.covers is not None
        names = ", ".join(f"l{at}" for at in range(len(self.source.quasi_identifiers)))
        with translated(WHAT):
            boxes = self.database.query(f"SELECT DISTINCT g, {names} FROM {PART}").to_arrow_table()
        low, high, numbers = self.covers.boxes([column.combine_chunks() for column in boxes.columns[1:]])
        group = boxes.column(0).to_numpy()[numbers]
        tree, keys, failures = BoxTree.from_boxes(low, high), self.covers.keys, list[BaseException]()

        def batches() -> Iterator[pa.RecordBatch]:
            rows = keys.select(PEOPLE, {"i": "i"})
            for batch in self.source.rows_of(rows, READ, keys.tables):
                person, box = tree.find(keys.read(batch))
                i = np.asarray(batch.column(batch.num_columns - 1))[person]
                yield pa.record_batch([pa.array(i), pa.array(group[box].astype(np.int64))], schema=SCHEMA)

        with causes(failures), translated(WHAT):
            self.database.register("found_stream", fed(SCHEMA, batches(), failures))
            self.database.execute(f"CREATE OR REPLACE TABLE {FOUND} AS SELECT DISTINCT i, g FROM found_stream")

    def settle(self) -> tuple[int, int]:
        """Remove links that cannot be; return how many people are certain to have been released, and how many may have
        been. SourceError if the source does not hold those who were."""
        with translated(WHAT):
            for _ in range(ROUNDS):
                self._check()
                before = self._one(f"SELECT count(*) FROM {LINKS}")
                self._remove_links()
                if self._one(f"SELECT count(*) FROM {LINKS}") == before:
                    break
            self._check()
            certain = self._certain()
            return certain, self._one(f"SELECT count(DISTINCT i) FROM {LINKS}") - certain

    def _one(self, sql: str) -> int:
        return int(self.database.one(sql)[0])

    def _check(self) -> None:
        """Raise SourceError if fewer people fit rows than there are."""
        fitting = f"SELECT row, count(*) AS f FROM {LINKS} GROUP BY row"
        missing = self._one(
            f"SELECT coalesce(sum(greatest(c - coalesce(f, 0), 0)), 0) FROM {ROWS} LEFT JOIN ({fitting}) USING (row)"
        )
        if missing := max(missing, self._missing_values() if self.bucketized else 0):
            what = f"{counted(missing, 'published row')} that fit nobody in the source"
            expected = "it must hold everybody who was released, with the values of then"
            raise SourceError(f"{what}; {expected}; nothing was written")

    def _missing_values(self) -> int:
        """Return the number of sensitive values in the groups of bucketized parts that nobody linked to them has."""
        own = f"SELECT DISTINCT part, g, i FROM {LINKS} JOIN {ROWS} USING (row)"
        values = f"SELECT i, unnest(own) AS v FROM {PEOPLE}"
        held = f"SELECT part, g, v, count(*) AS f FROM ({own}) JOIN ({values}) USING (i) GROUP BY ALL"
        joined = f"{VALUES} AS a LEFT JOIN ({held}) AS b ON {same_in(['part', 'g', 'v'], 'a', 'b')}"
        return self._one(f"SELECT coalesce(sum(greatest(a.c - coalesce(f, 0), 0)), 0) FROM {joined}")

    def _remove_links(self) -> None:
        """Remove the other links of people who must have one of some equal rows."""
        full = f"SELECT row FROM {ROWS} JOIN {LINKS} USING (row) GROUP BY row, c HAVING count(*) = c"
        decided = f"SELECT i, min(row) AS own FROM {LINKS} WHERE row IN ({full}) GROUP BY i"
        self.database.execute(
            f"CREATE OR REPLACE TABLE {LINKS} AS SELECT i, row FROM {LINKS} LEFT JOIN ({decided}) USING (i) "
            "WHERE own IS NULL OR own = row"
        )

    def _certain(self) -> int:
        """Return the number of people in clusters with equal numbers of people and rows."""
        self.database.execute(f"CREATE OR REPLACE TABLE {LINKED} AS SELECT i, row, row AS first FROM {LINKS}")
        for _ in range(ROUNDS):
            before = self._one(f"SELECT coalesce(sum(first), 0) FROM {LINKED}")
            for by in ("i", "row"):
                self.database.execute(
                    f"CREATE OR REPLACE TABLE {LINKED} AS SELECT i, row, min(first) OVER (PARTITION BY {by}) AS first "
                    f"FROM {LINKED}"
                )
            if self._one(f"SELECT coalesce(sum(first), 0) FROM {LINKED}") == before:
                break
        else:
            return 0
        places = f"SELECT DISTINCT first, row FROM {LINKED}"
        rows = f"SELECT first, sum(c) AS c FROM ({places}) JOIN {ROWS} USING (row) GROUP BY first"
        people = f"SELECT first, count(DISTINCT i) AS n FROM {LINKED} GROUP BY first"
        return self._one(f"SELECT coalesce(sum(n), 0) FROM ({people}) JOIN ({rows}) USING (first) WHERE n = c")


def _opened(database: Database, part: PublishedPart, place: Path, at: int) -> str:
    """Make a view of one of the tables of a part, in a file or on a cluster in several; return its name."""
    resource = part.resources[at]
    kinds = {"quasi-identifier": "VARCHAR", "group": "BIGINT", "count": "BIGINT", "bound": "VARCHAR"}
    fields = {field["name"]: kinds.get(field["role"], "VARCHAR") for field in resource["schema"]["fields"]}
    view = f"published_{at}"
    rows = [f"SELECT * FROM {File(place / path, fields, view, []).reader}" for path in paths_of(resource)]
    database.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {' UNION ALL '.join(rows)}")
    return view
