"""The threads of a search: who helps whom, and from which state each block starts."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anon.search import budget
from anon.search.partition import block
from anon.search.partition.threads import Crew
from tests.pipeline.test_out_of_core import BLOCK, TOGETHER, published, settings


@pytest.mark.parametrize(("blocks", "hands"), [(0, 4), (1, 4), (2, 2), (3, 1), (4, 1), (5, 1)])
def test_threads_are_shared_out_among_the_blocks_under_way(blocks: int, hands: int) -> None:
    with Crew(4) as crew:
        with ExitStack() as under_way:
            for _ in range(blocks):
                under_way.enter_context(crew.block())
            assert crew.threads_per_block == hands
        assert crew.threads_per_block == 4


def test_pieces_of_work_are_done_at_the_same_time_and_told_in_order() -> None:
    together = threading.Barrier(3, timeout=60)

    def work(piece: slice) -> tuple[int, str]:
        together.wait()
        return piece.start, threading.current_thread().name

    with Crew(3) as crew:
        done = crew.do(work, [slice(at, at + 1) for at in range(3)])
    assert [start for start, _ in done] == [0, 1, 2]
    assert len({name for _, name in done}) == 3
    assert done[0][1] == threading.current_thread().name


def test_a_block_starts_from_what_the_blocks_before_it_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "BLOCK", BLOCK)
    begun: list[Any] = []
    ended: list[Any] = []
    search = block.search

    def watched(*given: Any, **other: Any) -> block.BlockResult:
        begun.append([each.copy() for each in given[4]])
        found = search(*given, **other)
        ended.append(found.state)
        return found

    monkeypatch.setattr(block, "search", watched)
    published(tmp_path, settings(tmp_path, TOGETHER), threads=1)
    assert len(begun) > 4
    for start, left in zip(begun[1:], ended):
        assert all(np.array_equal(one.values, other.values) for one, other in zip(start, left))
    assert any((one.values != other.values).any() for one, other in zip(begun[0], begun[-1]))
