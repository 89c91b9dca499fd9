"""What every criterion that judges groups alone must obey, for the tests of single criteria: states that merge in any
order, minima of many owners kept apart, and safety that merging keeps where it is claimed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anon.criteria.protocol import SAFE, Criterion, GroupCriterion, Groups, State, Verdict


def histograms(release: Sequence[Sequence[int]], size: int, first: int = 0) -> Groups:
    """Groups, each a list of value codes, as histograms."""
    counts = np.array([np.bincount(np.array(group), minlength=size) for group in release], np.int64)
    dense = Groups.dense(counts.reshape(len(release), size))
    return Groups(dense.n, dense.start, dense.value, dense.count, first)


def shuffled(groups: Groups, rng: random.Random) -> Groups:
    """The same histograms with the values of each group in another order."""
    order: list[int] = []
    for low, high in zip(groups.start.tolist(), groups.start.tolist()[1:]):
        order += rng.sample(range(low, high), high - low)
    return Groups(groups.n, groups.start, groups.value[order], groups.count[order], groups.first)


def judged(criterion: GroupCriterion, groups: Groups) -> Verdict:
    return criterion.verdict(criterion.state(groups))


def one_safe(criterion: GroupCriterion, group: Sequence[int], size: int) -> bool:
    return judged(criterion, histograms([group], size)).safe


def check_batches(
    criterion: Criterion, release: list[Any], batch: Callable[[list[Any], int], Groups], rng: random.Random
) -> None:
    """The state does not depend on how groups are batched or in which order states are merged. `batch` makes groups
    of a part of the release, given the number of its first group."""
    whole = criterion.state(batch(release, 0))
    cut = rng.randrange(len(release) + 1)
    parts: list[State] = [
        criterion.state(batch(part, first)) for part, first in ((release[:cut], 0), (release[cut:], cut)) if part
    ] + [criterion.state(batch([group], index)) for index, group in enumerate(release)]
    rng.shuffle(parts)
    merged = parts[0]
    for part in parts:
        merged = merged.merge(part) if rng.random() < 0.5 else part.merge(merged)
    assert np.array_equal(whole.values, merged.values)
    assert np.array_equal(whole.witness, merged.witness)


def check_owners(criterion: GroupCriterion, releases: list[list[Any]], size: int) -> None:
    """The minima of many candidates are those of each, and the floats decide as the verdict does."""
    owner = np.repeat(np.arange(len(releases)), [len(release) for release in releases])
    minima = criterion.minima(
        histograms([group for release in releases for group in release], size), owner, len(releases)
    )
    for row, release in zip(minima, releases):
        state = criterion.state(histograms(release, size))
        assert np.array_equal(row, state.values)
        assert (criterion.judge(row[None, :])[0] == SAFE) == criterion.verdict(state).safe


def check_merging(criterion: GroupCriterion, one: list[int], other: list[int], size: int) -> None:
    """Two safe groups are safe together, for a criterion that claims it; no safe group is below the least size."""
    if criterion.monotone and one_safe(criterion, one, size) and one_safe(criterion, other, size):
        assert one_safe(criterion, one + other, size)
    for group in (one, other):
        if one_safe(criterion, group, size):
            assert len(group) >= criterion.least_group
