"""Find the boxes that points lie in: boxes are the labels of groups as ranges of keys, points the people of the source.
The boxes of a part, of which few overlap, are divided again and again at one end of a box in one column; a point takes
the side that it is on, and is compared with the few boxes that are left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
FEW = 16  # boxes that are compared one by one


@dataclass(frozen=True)
class BoxTree:
    """Boxes [boxes, columns], ends included, and the nodes that lead to them: of an inner one the column, the key from
    which on the right side begins, and the two sides; of a leaf (column -1) where its boxes begin and end in
    `members`."""

    low: Keys
    high: Keys
    column: Keys
    cut: Keys
    sides: Keys
    members: Keys

    @classmethod
    def from_boxes(cls, low: Keys, high: Keys) -> BoxTree:
        nodes: list[tuple[int, int, int, int]] = [(-1, 0, 0, 0)]
        members: list[Keys] = []
        pending, stored = [(0, np.arange(len(low)))], 0
        while pending:
            node, own = pending.pop()
            found = _best_cut(low[own], high[own]) if len(own) > FEW else None
            if found is None:
                nodes[node] = (-1, 0, stored, stored + len(own))
                members.append(own)
                stored += len(own)
                continue
            column, cut = found
            nodes[node] = (column, cut, len(nodes), len(nodes) + 1)
            pending += [(len(nodes), own[low[own, column] < cut]), (len(nodes) + 1, own[high[own, column] >= cut])]
            nodes += [(-1, 0, 0, 0)] * 2
        table = np.array(nodes, np.int64)
        return cls(low, high, table[:, 0], table[:, 1], table[:, 2:], np.concatenate(members))

    def find(self, points: Keys) -> tuple[Keys, Keys]:
        """Return, for points [columns, points], every pair of a point and a box that it lies in."""
        leaf = self._leaves(points)
        begin, end = self.sides[leaf].T
        count = end - begin
        point = np.repeat(np.arange(points.shape[1]), count)
        place = np.arange(len(point)) - np.repeat(np.cumsum(count) - count, count)
        box = self.members[np.repeat(begin, count) + place]
        for keys, low, high in zip(points, self.low.T, self.high.T):
            inside = (low[box] <= keys[point]) & (keys[point] <= high[box])
            point, box = point[inside], box[inside]
        return point, box

    def _leaves(self, points: Keys) -> Keys:
        """Return the leaf of each point."""
        node = np.zeros(points.shape[1], np.int64)
        moving = np.arange(points.shape[1])
        while len(moving := moving[self.column[node[moving]] >= 0]):
            own = node[moving]
            right = points[self.column[own], moving] >= self.cut[own]
            node[moving] = self.sides[own, right.astype(np.int64)]
        return node


def _best_cut(low: Keys, high: Keys) -> tuple[int, int] | None:
    """Return the column and the key of the cut that leaves the fewest boxes on its larger side; None if no cut leaves
    fewer than there are."""
    cuts = list(_middle_cuts(low))
    sizes = [max((low[:, c] < cut).sum(), (high[:, c] >= cut).sum()) for c, cut in cuts]
    if not cuts or min(sizes) > 0.9 * len(low):
        return None
    return cuts[int(np.argmin(sizes))]


def _middle_cuts(low: Keys) -> Iterator[tuple[int, int]]:
    """Yield for each column in which boxes begin at different keys the beginning that is nearest to the middle."""
    for column, keys in enumerate(low.T):
        begins = np.unique(keys)
        middle = np.sort(keys)[len(keys) // 2]
        if len(begins) > 1:
            yield column, int(begins[max(np.searchsorted(begins, middle), 1)])
