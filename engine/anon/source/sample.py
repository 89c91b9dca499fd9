"""Samples of the individuals of another origin. Who is in one depends on a hash of the individual, or of the row and
which of its equals it is, so that it is the same on every machine, for every layout of the input and every order of its
rows.

The sample of a trial depends on nothing but the data. That of a differentially private release (`Drawn`) is drawn by
HMAC-SHA256 under the key of the run, together with the columns, criteria and method of the config and a fingerprint of
all rows. So the same run gives the same release, but as soon as anything differs all coins are others: two releases
from the same coins could be subtracted, and their promises would not add up.

Which of several equal rows is drawn makes no difference to what is published, so with `individual: row` each of n equal
rows has a coin of its own, and without one of them the other n - 1 have the same distribution.
"""

from __future__ import annotations

import hashlib
import hmac
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from anon.config import Columns, Config, Reuse
from anon.config.columns import HierarchyFile
from anon.config.sampling import COINS, Sampling
from anon.core.database import Database, literal, quote, translated
from anon.core.disk import digest
from anon.errors import ConfigError, UnsafeError
from anon.source.origins import Origin, fingerprint, wanted
from anon.source.tables import describe, one

COIN = len(f"{COINS - 1:x}")  # hexadecimal digits
BLOCK = 64  # bytes of SHA-256's blocks, to which HMAC fills its key


class Sample(Origin):
    """Some of the individuals of another origin."""

    def __init__(self, whole: Origin) -> None:
        self.whole = whole
        self.marks, self.replaces_source = whole.marks, whole.replaces_source

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        every = f"{name}_whole"
        self.whole.register(database, every, columns, spill)
        self.marks, self.unnamed = self.whole.marks, self.whole.unnamed
        alone = columns.model_copy(update={"identifiers": []})
        names = [quote(column) for column in wanted(alone)(list(describe(database, every)))]
        who = None if columns.individual == "row" else quote(columns.individual)
        with translated("taking a sample"):
            self.take(database, name, every, names, who)
        self.whole.check_unchanged()

    @abstractmethod
    def take(self, database: Database, name: str, every: str, names: list[str], who: str | None) -> None:
        """Make a table of some columns for some of those who are in a table; `who`: the column of the individuals."""


class Sampled(Sample):
    """A share of the individuals of another origin, for a trial."""

    def __init__(self, whole: Origin, share: Fraction) -> None:
        super().__init__(whole)
        self.share = share

    def take(self, database: Database, name: str, every: str, names: list[str], who: str | None) -> None:
        limit = literal(f"{int(self.share * 2**128):032x}")
        rows = _rows(every, names, who, lambda said: f"md5({said}) < {limit}")
        database.execute(f"CREATE TABLE {name} AS {rows}")
        if not one(database, f"SELECT count(*) FROM {name}")[0]:
            raise ConfigError.at("--sample", "a sample without anybody in it", "a larger one")


class Drawn(Sample):
    """Individuals who are drawn at random, for a differentially private release."""

    def __init__(self, whole: Origin, config: Config, drawn: Sampling) -> None:
        super().__init__(whole)
        self.drawn, self.key = drawn, config.key
        settings = repr((config.columns, config.nulls, config.privacy, config.method))
        self.settings = settings, [digest(path) for path in _files(config)]

    def take(self, database: Database, name: str, every: str, names: list[str], who: str | None) -> None:
        about = repr((self.settings, fingerprint(database, every, self.whole.identifiers.values())))
        key = hmac.digest(self.key, about.encode(), hashlib.sha256).ljust(BLOCK, b"\0")
        inner, outer = (bytes(byte ^ pad for byte in key) for pad in (0x36, 0x5C))
        limit = literal(f"{self.drawn.limit:016x}")
        hashed = "sha256($outer::BLOB || unhex(sha256($inner::BLOB || encode({}))))"
        rows = _rows(every, names, who, lambda said: f"left({hashed.format(said)}, {COIN}) < {limit}")
        database.execute(f"CREATE TABLE {name} AS {rows}", {"inner": inner, "outer": outer})
        if not one(database, f"SELECT count(*) FROM {name}")[0]:
            raise UnsafeError("nobody was drawn; nothing was published")


def _files(config: Config) -> list[Path]:
    """Return the files that labels depend on."""
    builders = config.columns.quasi_identifiers.values()
    found = [builder.hierarchy for builder in builders if isinstance(builder, HierarchyFile)]
    return [*found, config.method.run / "recoding.json"] if isinstance(config.method, Reuse) else found


def _rows(table: str, names: list[str], who: str | None, chosen: Callable[[str], str]) -> str:
    """Return the SQL for the rows of a sample, given the condition on the text that stands for an individual."""
    listed = ", ".join(names)
    if who is not None:
        said = f"CAST({who} AS VARCHAR)"
        return f"SELECT {listed} FROM {table} WHERE {chosen(said)}"
    own = [f"c{index}" for index in range(len(names))]  # so that no name of a column meets one of ours
    neutral, by = ", ".join(f"{name} AS {c}" for name, c in zip(names, own)), ", ".join(own)
    parts = (f"coalesce(length(CAST({c} AS VARCHAR)) || ':' || CAST({c} AS VARCHAR), '-')" for c in own)
    text = " || ".join(parts)
    equal = f"SELECT {by}, {text} AS said, count(*) AS times FROM (SELECT {neutral} FROM {table}) GROUP BY {by}"
    numbered = f"SELECT {by}, said, unnest(range(times)) AS place FROM ({equal})"
    back = ", ".join(f"{c} AS {name}" for name, c in zip(names, own))
    condition = chosen("said || '#' || place")
    return f"SELECT {back} FROM ({numbered}) WHERE {condition}"
