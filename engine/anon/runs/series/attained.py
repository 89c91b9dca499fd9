"""Find the groups of published parts beside which later ones must be safe, when the ledger does not have them: it is
rebuilt, or the criteria are others than those that it was written under."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from anon.config import Config
from anon.core.database import connect
from anon.criteria import EarlierGroups
from anon.runs.scratch import at_hand
from anon.source import open_grouped
from anon.verify.attaining import attaining_groups
from anon.verify.grouped import Grouped
from anon.verify.judge import examine


def attained(config: Config, spill: Path) -> EarlierGroups:
    """Return the groups of all parts that attain the minima of the config's criteria about all groups together."""
    place, limits = at_hand(config.release.path, spill / "parts"), config.limits
    with closing(connect(limits.memory, limits.threads, spill)) as database:
        opened = open_grouped(database, "series_parts", config, place, spill)
        return attaining_groups(examine(Grouped.from_opened(database, opened, config.columns), config, absent=True))
