"""A sample of what several releases reveal together (`together`), for releases that are too large to look everybody up
in all of them: some groups of the first release, chosen by a hash of their numbers, the groups of the other releases in
which their people are, and everybody in these. That takes a few passes over who is in which group, and no join of all
people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anon.core.database import Database
from anon.risk.people import MOST, taken
from anon.risk.together import GROUPS, PEOPLE, VALUES

WHOLE = "whole_groups"  # node, of the groups all of whose people are in the sample
REACHED = 2**18  # individuals of the groups of other releases in a sample, at most
SIZES, WHO = "group_sizes", "sampled_who"


@dataclass(frozen=True)
class Examined:
    """The number of groups of the first release that are examined, and of all."""

    groups: int
    every: int


def take_sample(database: Database) -> Examined | None:
    """Replace PEOPLE by a sample of them, and make the table WHOLE. Leave small releases as they are."""
    node = f"release * {GROUPS} + g"
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {SIZES} AS SELECT {node} AS node, any_value(release) AS release, "
        f"sum(c)::BIGINT AS n FROM {VALUES} GROUP BY release, g"
    )
    if database.one(f"SELECT max(n) FROM (SELECT sum(n) AS n FROM {SIZES} GROUP BY release)")[0] <= MOST:
        return None
    people = f"SELECT who, {node} AS node FROM {PEOPLE}"
    database.execute(f"CREATE OR REPLACE TEMP TABLE {WHOLE} (node BIGINT)")
    groups = _add(database, f"SELECT node, n FROM {SIZES} WHERE release = 0", MOST)
    _list_people(database, f"{people} WHERE release = 0")
    reached = f"SELECT node FROM ({people} WHERE release > 0) SEMI JOIN {WHO} USING (who)"
    _add(database, f"SELECT node, n FROM {SIZES} SEMI JOIN ({reached}) USING (node)", REACHED)
    _list_people(database, people)
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE sampled_people AS SELECT * FROM {PEOPLE} SEMI JOIN {WHO} USING (who)"
    )
    database.execute(f"CREATE OR REPLACE TEMP VIEW {PEOPLE} AS SELECT * FROM sampled_people")
    return Examined(groups, database.one(f"SELECT count(*) FROM {SIZES} WHERE release = 0")[0])


def _add(database: Database, groups: str, most: int) -> int:
    """Add to WHOLE groups (node, n) of at most some individuals together; return their number."""
    found = database.query(f"{groups} ORDER BY node").fetchnumpy()
    nodes, sizes = (np.asarray(found[name], np.int64) for name in ("node", "n"))
    database.register("added_groups", pa.table({"node": nodes[taken(nodes, sizes, most)]}))
    database.execute(f"INSERT INTO {WHOLE} SELECT node FROM added_groups")
    count = int(database.one("SELECT count(*) FROM added_groups")[0])
    database.unregister("added_groups")
    return count


def _list_people(database: Database, people: str) -> None:
    """Make the table of those who are in a whole group."""
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {WHO} AS SELECT DISTINCT who FROM ({people}) SEMI JOIN {WHOLE} USING (node)"
    )
