"""One release of a series that republishes its table whole (m-invariance, search/invariant.py): the rows of the source
with their groups and the counterfeits among them take the place of the source's rows, so that the stages after it write
and verify them like any assignment of people to groups; and what makes the series safe is verified on the written
files and the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anon.config import Config
from anon.core.database import Database, literal, quote, translated
from anon.core.memory import require
from anon.cube import Cube, Encoder
from anon.errors import ConfigError, VerificationError
from anon.recoding.assignment import Assignment
from anon.recoding.outcome import Outcome
from anon.release import WrittenRelease
from anon.runs.invariant_ledger import KNOWN, LEDGER, PEOPLE, SIGNATURES, InvariantLedger
from anon.runs.members import BETWEEN, hashed, identity, value_text
from anon.search.invariant import NEW, Arrangement, arrange, bytes_for
from anon.source import Source, describe
from anon.verify.files import File, files_of

READ, VALUES, ROWS = "series_people", "series_values", "series_rows"


@dataclass(frozen=True)
class InvariantRelease:
    """A release of a series in progress."""

    config: Config
    source: Source
    ledger: InvariantLedger
    signatures: list[tuple[str, ...]]
    arrangement: Arrangement

    @classmethod
    def arranged(cls, config: Config, source: Source) -> InvariantRelease:
        """Arrange the rows of the source in groups, and put them and the counterfeits in their place. UnsafeError if
        there is no m-invariant release, ConfigError if values have changed."""
        columns = source.quasi_identifiers
        require(config.limits.memory, bytes_for(source.rows, len(columns)), "the groups of the series")
        ledger = InvariantLedger.open(config, source)
        with translated("reading the source"):
            _read_people(config, source, ledger)
            _refuse_changes(config, source)
            texts = _number_values(source, ledger)
            rows = source.query(
                f"SELECT p.*, {VALUES}.code AS code, coalesce(signature, {NEW}) AS signature FROM {READ} AS p "
                f"JOIN {VALUES} USING (v) LEFT JOIN {KNOWN} USING (name) ORDER BY i"
            ).select([*(f"r{j}" for j in range(len(columns))), "code", "signature"])
        arrays = [np.asarray(column) for column in rows.columns]
        numbers = {text: code for code, text in enumerate(texts)}
        known = [tuple(sorted(numbers[text] for text in signature)) for signature in ledger.signatures]
        found = arrange(arrays[-2], arrays[-1], known, np.stack(arrays[:-2]), ledger.settings["m"])
        named = [tuple(texts[code] for code in signature) for signature in found.signatures]
        release = cls(config, source, ledger, named, found)
        with translated("reading the source"):
            release._put_in_place()
        return release

    def _put_in_place(self) -> None:
        source, found, database = self.source, self.arrangement, self.source.database
        aliases = [column.alias for column in (*source.quasi_identifiers, *source.sensitive)]
        own = ", ".join(aliases[:-1])
        kind = describe(database, Source.VIEW)[aliases[-1]]
        database.register(
            "placed", pa.table({"i": np.arange(len(found.group)), "g": found.group, "s": found.signature})
        )
        fakes = {"g": found.fake_group, "code": found.fake_value, "i": found.fake_like}
        database.register("counterfeits", pa.table(fakes))
        value = f"CASE WHEN v = '' THEN NULL ELSE CAST(substr(v, 2) AS {kind}) END"
        database.execute(
            f"CREATE TABLE {ROWS} AS SELECT {own}, {aliases[-1]}, name, held, g, s AS signature, false AS fake "
            f"FROM {READ} JOIN placed USING (i) UNION ALL SELECT {own}, {value}, NULL, "
            f"NULL, c.g, NULL, true FROM counterfeits AS c JOIN (SELECT i, {own} FROM {READ}) USING (i) "
            f"JOIN {VALUES} USING (code)"
        )
        for name in ("placed", "counterfeits"):
            database.unregister(name)
        for view in (Source.VIEW, Source.NARROW):
            database.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT {', '.join(aliases)} FROM {ROWS}")
        source.rows += len(found.fake_group)

    def outcome(self, cube: Cube, spill: Path) -> Outcome:
        """Return the groups as the result of a search."""
        coarse = [domain.column for domain in cube.domains if not domain.single]
        if coarse:
            found = f"more than {2**16:,} different values in a series"
            raise ConfigError.at(f"columns.quasi_identifiers.{coarse[0]}", found, "fewer, such as rounded ones")
        source, assignment = self.source, Assignment("invariant", cube.domains, spill=spill)
        columns = [*source.quasi_identifiers, *source.sensitive]
        encoder = Encoder(columns, [*cube.domains, cube.domain(source.sensitive[0].name)])
        names = ", ".join(column.alias for column in columns)
        for batch in source.rows_of(f"SELECT {names}, g FROM {ROWS}"):
            assignment.add(encoder.codes(batch), np.asarray(batch.column("g")), np.ones(batch.num_rows, np.int64))
        assignment.counterfeits = np.bincount(self.arrangement.fake_group, minlength=assignment.groups)
        assignment.facts = {"m": self.ledger.settings["m"]}
        return Outcome(assignment, None, None)

    def write_ledger(self, run: Path) -> None:
        people = f"SELECT name, held, signature::BIGINT AS signature FROM {ROWS} WHERE NOT fake"
        self.ledger.write(run / LEDGER, self.source.database, people, self.signatures)

    def facts(self) -> dict[str, Any]:
        """Return the JSON of the series."""
        database = self.source.database
        new, again = database.one(
            f"SELECT count_if(k.name IS NULL), count(k.name) FROM {READ} AS p LEFT JOIN {KNOWN} AS k USING (name)"
        )
        (before,) = database.one(f"SELECT count(*) FROM {KNOWN}")
        return {
            "part": self.ledger.releases + 1,
            "new": new,
            "waiting": 0,
            "released": before + new,
            "again": again,
            "counterfeits": len(self.arrangement.fake_group),
        }

    def verify(self, written: WrittenRelease, run: Path) -> None:
        """Raise VerificationError unless the written files and the ledger are m-invariant with all earlier releases,
        and the rows that were written are those of the source and the counterfeits that are counted. What the rows
        publish is compared with the files by the verification of every release."""
        database, (_, sensitive) = self.source.database, files_of(written)
        assert written.number is not None and written.counterfeits is not None
        numbers = pa.table({"g": np.arange(len(written.number)), "published": written.number})
        database.register("numbers", numbers)
        column = list(sensitive.types)[1]
        values = f'SELECT "group" AS g, "count" AS c, {value_text(quote(column))} AS v FROM {sensitive.reader}'
        fakes = File(written.counterfeits, {"group": "BIGINT", "count": "BIGINT"}, "", []).reader
        checks = {
            "has groups that are not m-unique": _not_unique(values, self.ledger.settings["m"]),
            "counts other counterfeits than it has": _other_fakes(fakes),
            "has other people than the source": _other_people(self.config, self.source, self.ledger.key),
            "has groups with another signature than the ledger": _other_signatures(values, run / LEDGER),
            "changes the signature of somebody in an earlier release": _changed_signatures(run / LEDGER),
        }
        with translated("reading it back"):
            self._register_known(database)
            for wrong, query in checks.items():
                if count := database.one(f"SELECT count(*) FROM ({query})")[0]:
                    raise VerificationError(f"the written release {wrong} ({count:,}); nothing was published")

    def _register_known(self, database: Database) -> None:
        listed = pa.array([sorted(values) for values in self.ledger.signatures], pa.list_(pa.string()))
        database.register("known_signatures", pa.table({"signature": np.arange(len(listed)), "known": listed}))


def _read_people(config: Config, source: Source, ledger: InvariantLedger) -> None:
    """Make the table of the individuals in canonical order, i, with the ranks of their quasi-identifiers, the text of
    their value, v, and their keyed hashes."""
    columns = [column.alias for column in source.quasi_identifiers]
    (value,) = [column.alias for column in source.sensitive]
    who, text = identity(config, source), value_text(value)
    order = ", ".join(f"{alias} NULLS FIRST" for alias in [*columns, value])
    ranks = [f"dense_rank() OVER (ORDER BY {alias} NULLS FIRST) AS r{j}" for j, alias in enumerate(columns)]
    source.database.execute(
        f"CREATE TABLE {READ} AS SELECT row_number() OVER (ORDER BY {order}, {who}) - 1 AS i, {', '.join(columns)}, "
        f"{value}, {', '.join(ranks)}, {text} AS v, {hashed(who, ledger.key)} AS name, "
        f"{hashed(f'({who} || {BETWEEN} || {text})', ledger.key)} AS held FROM {source.used_rows}"
    )


def _refuse_changes(config: Config, source: Source) -> None:
    """Raise ConfigError if somebody has another value than in an earlier release: anyone holding both would know it."""
    changed = f"SELECT count(*) FROM {READ} AS p JOIN {KNOWN} AS k USING (name) WHERE p.held <> k.held"
    if count := source.database.one(changed)[0]:
        (column,) = config.columns.sensitive
        hint = "the series protects one value of everybody; leave these individuals out, or begin a new series"
        found = f"{count:,} individuals with another value than in an earlier release"
        raise ConfigError.at(f"columns.sensitive.{column}", found, "the same value in every release", hint)


def _number_values(source: Source, ledger: InvariantLedger) -> list[str]:
    """Make the table of the values of the source and of all signatures, in the order of their texts; return these."""
    found = {text for (text,) in source.database.query(f"SELECT DISTINCT v FROM {READ}").fetchall()}
    texts = sorted(found.union(*ledger.signatures))
    table = pa.table({"v": pa.array(texts, pa.string()), "code": pa.array(range(len(texts)), pa.int64())})
    source.database.register("all_values", table)
    source.database.execute(f"CREATE TABLE {VALUES} AS SELECT * FROM all_values")
    source.database.unregister("all_values")
    return texts


def _not_unique(values: str, m: int) -> str:
    return f"SELECT g FROM ({values}) GROUP BY g HAVING max(c) <> 1 OR count(*) < {m} OR count(DISTINCT v) < count(*)"


def _other_fakes(fakes: str) -> str:
    own = f"SELECT published, count_if(fake) AS fakes FROM {ROWS} JOIN numbers USING (g) GROUP BY published"
    counted = f'SELECT "group" AS published, "count" AS c FROM {fakes}'
    return f"SELECT 1 FROM ({own}) FULL JOIN ({counted}) USING (published) WHERE coalesce(c, 0) <> coalesce(fakes, -1)"


def _other_people(config: Config, source: Source, key: str) -> str:
    columns = ", ".join(column.alias for column in (*source.quasi_identifiers, *source.sensitive))
    read = f"SELECT {columns}, {hashed(identity(config, source), key)} FROM {source.used_rows}"
    placed = f"SELECT {columns}, name FROM {ROWS} WHERE NOT fake"
    return f"({read} EXCEPT ALL {placed}) UNION ALL ({placed} EXCEPT ALL {read})"


def _written_signatures(ledger: Path) -> str:
    """Return SQL for the name and the sorted values of the signature of everybody in a ledger."""
    people, signatures = (f"read_parquet({literal(str(ledger / name))})" for name in (PEOPLE, SIGNATURES))
    numbered = f'SELECT signature, list_sort("values") AS own FROM {signatures}'
    return f"SELECT name, own FROM {people} JOIN ({numbered}) USING (signature)"


def _other_signatures(values: str, ledger: Path) -> str:
    published = f"SELECT g AS published, list_sort(list(v)) AS found FROM ({values}) GROUP BY g"
    rows = f"{ROWS} JOIN numbers USING (g) JOIN ({published}) USING (published)"
    people = f"SELECT name, found FROM {rows} WHERE NOT fake"
    written = _written_signatures(ledger)
    return f"SELECT 1 FROM ({people}) LEFT JOIN ({written}) USING (name) WHERE own IS DISTINCT FROM found"


def _changed_signatures(ledger: Path) -> str:
    known = f"SELECT name, known FROM {KNOWN} JOIN known_signatures USING (signature)"
    written = _written_signatures(ledger)
    return f"SELECT 1 FROM ({known}) LEFT JOIN ({written}) USING (name) WHERE own IS DISTINCT FROM known"
