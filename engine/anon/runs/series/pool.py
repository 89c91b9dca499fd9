"""The rows that a night of a series can publish: those of the source whose individuals were in no earlier part, and
those of individuals who waited. An individual who waited and is in the source again has the rows of the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anon.artifacts.ledger import Ledger
from anon.config import Columns
from anon.core.database import Database, file_list, literal, quote, translated
from anon.errors import ConfigError
from anon.runs.kinds import individual_kind
from anon.runs.series import hashes
from anon.runs.series.rows import IDS, NEW_ROWS, ON_DISK, WAITING_ROWS, DatabaseRows, NightRows
from anon.source.checks import individual_sql
from anon.source.origins import Origin, wanted
from anon.source.tables import describe, one

# Tables of the texts of individuals: in the source; released before; who waited.
HERE, AGAIN, WAITED = f"{ON_DISK}.here", f"{ON_DISK}.again", f"{ON_DISK}.waited"
LOOKING = "looking up individuals in the ledger"


class NobodyNew(Exception):
    """Nobody of the source is new, and nobody waits."""


@dataclass(frozen=True)
class PoolCounts:
    """Individuals of a night: in the source for the first time; who waited; and who were released before."""

    new: int = 0
    waited: int = 0
    again: int = 0


class Pool(Origin):
    """The rows of another origin, and those that waited, without the individuals that a ledger has. `alone`: without
    those who waited."""

    rows: NightRows  # once they are read

    def __init__(self, whole: Origin, ledger: Ledger, folder: Path, alone: bool = False) -> None:
        self.whole, self.ledger, self.folder, self.alone = whole, ledger, folder, alone
        self.marks, self.replaces_source = whole.marks, whole.replaces_source
        self.counts, self.kind = PoolCounts(), ""  # of the column that says who a row is about

    @property
    def size(self) -> int:
        """The number of individuals that can be published."""
        return self.counts.new + (0 if self.alone else self.counts.waited)

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        source = f"{name}_of_source"
        attach(database, spill)
        self.whole.register(database, source, columns, spill)
        self.marks, self.unnamed, self.types = self.whole.marks, self.whole.unnamed, self.whole.types
        types = describe(database, source)
        self.check_kind(types[columns.individual])
        names = wanted(columns.model_copy(update={"identifiers": []}))(list(types))
        listed, who = ", ".join(map(quote, names)), f"CAST({individual_sql(columns, types)} AS VARCHAR)"
        waiting = self.waiting(names, types)
        with translated(LOOKING):
            self._look_up(database, f"SELECT {who} FROM {source}", f"SELECT {who} FROM {waiting}")
            before, known = f"{who} IN (SELECT who FROM {AGAIN})", f"{who} IN (SELECT who FROM {WAITED})"
            new = f"SELECT {listed} FROM {source} WHERE ({before} OR {known}) IS NOT TRUE"
            again = f"SELECT {listed} FROM {source} WHERE {known}"
            others = f"SELECT {listed} FROM {waiting} WHERE {known} AND {who} NOT IN (SELECT who FROM {HERE})"
            database.execute(f"CREATE TABLE {NEW_ROWS} AS {new}")
            database.execute(f"CREATE TABLE {WAITING_ROWS} AS {again} UNION ALL {others}")
            tables = [NEW_ROWS] if self.alone else [NEW_ROWS, WAITING_ROWS]
            database.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(f'SELECT * FROM {t}' for t in tables)}")
        self.whole.check_unchanged()
        self.rows, self.counts = DatabaseRows(database, columns.individual, self.ledger.key), _counts(database)
        if not one(database, f"SELECT count(*) FROM {name}")[0]:
            raise NobodyNew

    def check_kind(self, type_name: str) -> None:
        """Raise ConfigError if ids of a DuckDB type cannot be compared with those of the nights before."""
        self.kind = individual_kind(type_name)
        if self.ledger.individual not in ("", self.kind):
            expected = f"{self.ledger.individual}, as in the nights before, so that ids can be compared"
            raise ConfigError.at("columns.individual", f"values of type {self.kind}", expected)

    def waiting(self, names: list[str], types: dict[str, str]) -> str:
        """Return SQL for the rows that waited, in the types of the source."""
        columns = [f"CAST({quote(name)} AS {types[name]}) AS {quote(name)}" for name in names]
        if self.ledger.waiting.individuals:
            file = file_list([self.folder / self.ledger.waiting.name])
            return f"(SELECT {', '.join(columns)} FROM read_parquet({file}))"
        nothing = [f"CAST(NULL AS {types[name]}) AS {quote(name)}" for name in names]
        return f"(SELECT {', '.join(nothing)} LIMIT 0)"

    @property
    def known(self) -> str:
        """The SQL of the halves of the hashes of everybody who is not to be released again."""
        files = [self.folder / file.name for file in self.ledger.known if file.individuals]
        if not files:
            return "SELECT NULL::UBIGINT AS hi, NULL::UBIGINT AS lo LIMIT 0"
        return f"SELECT hi, lo FROM read_parquet({file_list(files)})"

    def _look_up(self, database: Database, source: str, waiting: str) -> None:
        """Create the tables of individuals. Of everybody the hash is computed once; those of the ledger are streamed
        beside the hashes of the night, which are few."""
        hashes.set_key(database, self.ledger.key)
        database.execute(f"CREATE TABLE {HERE} AS SELECT DISTINCT who FROM ({source}) AS t(who) WHERE who IS NOT NULL")
        everybody = f"SELECT who FROM {HERE} UNION SELECT who FROM ({waiting}) AS t(who)"
        digests = f"SELECT who, {hashes.hashed('who')} AS digest FROM ({everybody})"
        database.execute(f"CREATE TABLE {IDS} AS SELECT who, {hashes.halves('digest')} FROM ({digests})")
        again = f"SELECT DISTINCT who FROM {IDS} JOIN ({self.known}) USING (hi, lo)"
        database.execute(f"CREATE TABLE {AGAIN} AS {again}")
        waited = f"SELECT DISTINCT who FROM ({waiting}) AS t(who) WHERE who NOT IN (SELECT who FROM {AGAIN})"
        database.execute(f"CREATE TABLE {WAITED} AS {waited}")


def attach(database: Database, spill: Path) -> None:
    """Make the file of the spill that tables of individuals are in."""
    database.execute(f"ATTACH {literal(str(spill / f'{ON_DISK}.duckdb'))} AS {ON_DISK}")


def _counts(database: Database) -> PoolCounts:
    here = f"SELECT who FROM {HERE} EXCEPT SELECT who FROM {AGAIN} EXCEPT SELECT who FROM {WAITED}"
    again = f"SELECT count(*) FROM {AGAIN} WHERE who IN (SELECT who FROM {HERE})"
    row = one(database, f"SELECT (SELECT count(*) FROM ({here})), (SELECT count(*) FROM {WAITED}), ({again})")
    return PoolCounts(*map(int, row))
