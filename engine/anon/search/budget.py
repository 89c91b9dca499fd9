"""What a search may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from anon.core.checkpoint import Checkpoint
from anon.core.memory import Memory

BLOCK = 40 * 2**20  # bytes of records; one size for every memory, and for the least, because groups may depend on it


@dataclass(frozen=True)
class SearchBudget:
    """What a search may use: memory, threads, a folder for what does not fit, and a checkpoint to go on from."""

    memory: Memory = field(default_factory=lambda: Memory(2**32))
    threads: int = 1
    spill: Path | None = None
    checkpoint: Checkpoint | None = None
    block: int = field(default_factory=lambda: BLOCK)
