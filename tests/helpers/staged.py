"""A release as it was written, before verification, and a place to write others like it: shared by the tests of
verification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from anon.config import Config
from anon.core.database import Database, connect
from anon.release import WrittenRelease
from anon.verify import judge
from anon.verify.content import Content, published
from anon.verify.files import files_of, open_written

Tables = Sequence[pa.Table]


@dataclass
class Staged:
    """What verification was given, and the tables of the release: one, or two of a bucketized one."""

    config: Config
    written: WrittenRelease
    expected: Content
    tables: list[pa.Table]
    database: Database
    folder: Path

    def write(self, tables: Tables) -> WrittenRelease:
        """Other tables in the place of the release."""
        places = [self.folder / file.path.name for file in files_of(self.written)]
        for table, path in zip(tables, places):
            if path.suffix == ".csv":
                pyarrow.csv.write_csv(table, path)
            else:
                pq.write_table(table, path, store_schema=table.schema.metadata is not None)
        values = self.written.values and replace(self.written.values, path=places[-1])
        return replace(self.written, path=places[0], values=values)

    def verify(self, tables: Tables, **changes: Any) -> judge.Findings:
        """What verification finds in other tables; `changes`: in what it was given beside them."""
        given = {"config": self.config, "expected": self.expected} | changes
        return judge.verify(self.database, self.write(tables), given["config"], given["expected"])

    def content(self, tables: Tables) -> Content:
        """What other tables hold, so that nothing but their safety can be wrong."""
        files = files_of(self.write(tables))
        for file in files:
            file.open(self.database)
        return published(open_written(self.database, files, self.config.columns), bool(self.written.labelled))


@contextmanager
def staged(copy: Path, run: Callable[[], Any]) -> Iterator[Staged]:
    """What a run gives to verification; `copy` is the folder for other releases like its own."""
    caught: list[tuple[Config, WrittenRelease, Content, list[pa.Table]]] = []
    original = judge.verify

    def watched(
        database: Any, written: WrittenRelease, config: Config, expected: Content, earlier: Any = None
    ) -> judge.Findings:
        tables = [database.query(f"SELECT * FROM {file.reader}").to_arrow_table() for file in files_of(written)]
        caught.append((config, written, expected, tables))
        return original(database, written, config, expected, earlier)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "verify", watched)
        run()
    (copy / "datapackage.json").write_text("{}")
    with closing(connect(1_000_000_000, 1, copy.parent)) as database:
        yield Staged(*caught[0], database, copy)
