"""Apply the levels that an earlier run chose for its columns to the codes of new rows: every row has a cell under them.
Cells that were suppressed in that run are suppressed again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anon.core.arrays import Codes
from anon.core.cell_index import CellIndex, combined
from anon.core.progress import ProgressCallback
from anon.cube import Cube
from anon.errors import UnsafeError
from anon.recoding.levels import ColumnLevels, LevelRecoding, canonical_order
from anon.recoding.outcome import GroupCounts
from anon.search.reuse.counting import add, batches
from anon.search.reuse.earlier_recoding import EarlierRecoding


@dataclass(frozen=True)
class ReusedLevels(LevelRecoding):
    """Levels whose recoding.json is that of the earlier run, byte for byte."""

    written: bytes = b""

    def write(self, path: Path) -> None:
        path.write_bytes(self.written)


def apply_levels(
    earlier: EarlierRecoding, cube: Cube, counts: GroupCounts, on_progress: ProgressCallback
) -> LevelRecoding:
    """Return the recoding of the new rows under earlier levels."""
    columns = [ColumnLevels(domain) for domain in cube.domains]
    chosen = tuple(earlier.level(domain.column) for domain in cube.domains)
    sizes = [column.size(level) for column, level in zip(columns, chosen)]
    occupied = _cells(cube, columns, chosen)
    dropped = _suppressed(earlier, columns, chosen)
    kept = np.ones(occupied.shape[1], bool)
    if dropped.size:
        kept = CellIndex(dropped, sizes).find(occupied) == dropped.shape[1]
    cells = occupied[:, kept]
    if not cells.shape[1]:
        raise UnsafeError("the recoding suppresses all rows; nothing was published")
    order = canonical_order(columns, chosen, cells)
    cells = cells[:, order]
    index, groups = CellIndex(cells, sizes), cells.shape[1]
    people = np.zeros(groups + 1, np.int64)
    for codes, sensitive, own_people in batches(cube, on_progress):
        group = index.find(_nodes(columns, chosen, codes))
        people += np.bincount(group, weights=own_people, minlength=groups + 1).astype(np.int64)
        inside = group < groups
        add(counts, group[inside].astype(np.int64), sensitive[:, inside], own_people[inside])
    counts.rank = np.arange(groups)
    return ReusedLevels(
        columns, chosen, cells, people[:groups], occupied[:, ~kept], int(people[groups]), {}, written=earlier.written
    )


def _nodes(columns: list[ColumnLevels], chosen: tuple[int, ...], codes: Codes) -> Codes:
    return np.stack([column.node[level][own] for column, level, own in zip(columns, chosen, codes)])


def _cells(cube: Cube, columns: list[ColumnLevels], chosen: tuple[int, ...]) -> Codes:
    """Return the cells with rows [columns, cells], each once."""
    found: list[Codes] = [np.empty((len(columns), 0), np.uint16)]
    for codes, _, _ in batches(cube, lambda **facts: None):
        found = [_once(np.concatenate([*found, _once(_nodes(columns, chosen, codes))], axis=1))]
    return found[0]


def _once(cells: Codes) -> Codes:
    first = np.unique(combined(list(cells)), return_index=True)[1]
    return cells[:, first]


def _suppressed(earlier: EarlierRecoding, columns: list[ColumnLevels], chosen: tuple[int, ...]) -> Codes:
    """Return the cells that the earlier run suppressed [columns, cells], except those with labels that no row has
    now."""
    codes = [{label: node for node, label in enumerate(column.labels(level))} for column, level in zip(columns, chosen)]
    listed = [cell for cell in earlier.suppressed_cells if all(l in known for known, l in zip(codes, cell))]
    cells = [[known[label] for known, label in zip(codes, cell)] for cell in listed]
    return np.array(cells, np.uint16).reshape(len(cells), len(columns)).T
