"""A sample of another origin, for trials. Who is in it depends on nothing but the data: on a hash of the individual, or
of the row and which of its equals it is, so that it is the same on every machine, for every layout of the input and
every order of its rows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from anon.config import Columns
from anon.core.database import Database, literal, quote, translated
from anon.errors import ConfigError
from anon.source.origins import Origin, wanted
from anon.source.tables import describe, one


class Sampled(Origin):
    """A share of the individuals of another origin."""

    def __init__(self, whole: Origin, share: Fraction) -> None:
        self.whole, self.share = whole, share
        self.marks, self.replaces_source = whole.marks, whole.replaces_source

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        every = f"{name}_whole"
        self.whole.register(database, every, columns, spill)
        self.marks, self.unnamed = self.whole.marks, self.whole.unnamed
        alone = columns.model_copy(update={"identifiers": []})
        names = [quote(column) for column in wanted(alone)(list(describe(database, every)))]
        who = None if columns.individual == "row" else quote(columns.individual)
        with translated("taking a sample"):
            database.execute(f"CREATE TABLE {name} AS {_sample(every, names, who, self.share)}")
        self.whole.check_unchanged()
        if not one(database, f"SELECT count(*) FROM {name}")[0]:
            raise ConfigError.at("--sample", "a sample without anybody in it", "a larger one")


def _sample(table: str, names: list[str], who: str | None, share: Fraction) -> str:
    """Return the SQL for the rows of the sample: those whose MD5, as text, comes before that of the share."""
    listed, limit = ", ".join(names), literal(f"{int(share * 2**128):032x}")
    if who is not None:
        return f"SELECT {listed} FROM {table} WHERE md5(CAST({who} AS VARCHAR)) < {limit}"
    own = [f"c{index}" for index in range(len(names))]  # so that no name of a column meets one of ours
    neutral, by = ", ".join(f"{name} AS {c}" for name, c in zip(names, own)), ", ".join(own)
    parts = (f"coalesce(length(CAST({c} AS VARCHAR)) || ':' || CAST({c} AS VARCHAR), '-')" for c in own)
    said = " || ".join(parts)
    equal = f"SELECT {by}, {said} AS said, count(*) AS times FROM (SELECT {neutral} FROM {table}) GROUP BY {by}"
    numbered = f"SELECT {by}, said, unnest(range(times)) AS place FROM ({equal})"
    back = ", ".join(f"{c} AS {name}" for name, c in zip(names, own))
    return f"SELECT {back} FROM ({numbered}) WHERE md5(said || '#' || place) < {limit}"
