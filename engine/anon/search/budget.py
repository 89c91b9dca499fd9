"""The resources that a search may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from anon.core.checkpoint import Checkpoint
from anon.core.memory import Memory

BLOCK = 40 * 2**20  # bytes of records; the same for every memory limit, even the lowest: groups may depend on it


@dataclass(frozen=True)
class SearchBudget:
    """The resources of a search: memory, threads, a folder for data that does not fit, and a checkpoint to resume."""

    memory: Memory = field(default_factory=lambda: Memory(2**32))
    threads: int = 1
    spill: Path | None = None
    checkpoint: Checkpoint | None = None
    block: int = field(default_factory=lambda: BLOCK)
