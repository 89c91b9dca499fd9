"""Define the result of a command, for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anon.core.terminal import one_line
from anon.errors import UnsafeError
from anon.report.warnings import standing


@dataclass(frozen=True)
class Result:
    """The result of a command. `to_dict` is what `--json` prints; `report` holds more."""

    facts: dict[str, Any]
    report: dict[str, Any]
    release: Path | str | None = None
    run: Path | None = None
    places: dict[str, str] = field(default_factory=dict)  # where a run put its files, for people to read

    @property
    def safe(self) -> bool:
        return bool(self.facts["safe"])

    def to_dict(self) -> dict[str, Any]:
        return self.facts


def refuse_warnings(summary: dict[str, Any], then: str = "") -> None:
    """Raise UnsafeError if there are warnings that the config does not accept (--strict)."""
    if warnings := standing(summary["warnings"]):
        lines = [f"  {w['code']}: {w['count']:,} {one_line(w['text'])}" for w in warnings]
        raise UnsafeError("\n".join([f"warnings count as failures (--strict){then}", *lines]))
