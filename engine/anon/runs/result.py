"""Define the result of a command, for the command line and for Python."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.core.phrases import counted
from anon.core.terminal import one_line
from anon.errors import UnsafeError
from anon.report.warnings import standing

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, repr=False)
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

    @property
    def recoding(self) -> dict[str, Any]:
        """The content of recoding.json, which a run leaves in its run folder."""
        if self.run is None:
            raise AttributeError("only the result of a run has a recoding")
        content: dict[str, Any] = json.loads((self.run / "recoding.json").read_text(encoding="utf-8"))
        return content

    def scan(self, table: str | None = None) -> pl.LazyFrame:
        """Return the published table as a LazyFrame of Polars, which reads it when it is collected. A bucketized
        release has two tables, `qi` (the default) and `sensitive`."""
        if self.release is None:
            raise AttributeError("only the result of a run has a release")
        from anon.release.reading import scan

        return scan(self.release, table)

    def to_dict(self) -> dict[str, Any]:
        return self.facts

    def __repr__(self) -> str:
        """Return the verdict and the size on one line.

        >>> Result({"safe": True, "rows": 6, "groups": 2, "warnings": []}, {}, Path("out"))
        Result(safe, 6 rows in 2 groups, release='out')
        """
        words = [] if "safe" not in self.facts else ["safe" if self.safe else "not safe"]
        if {"rows", "groups"} <= self.facts.keys():
            words.append(f"{counted(self.facts['rows'], 'row')} in {counted(self.facts['groups'], 'group')}")
        if self.facts.get("warnings"):
            words.append(counted(len(self.facts["warnings"]), "warning"))
        place = self.places.get("release") or self.places.get("trial") or self.release
        words += [f"release={str(place)!r}"] if place is not None else []
        return f"Result({', '.join(words or self.facts)})"

    def _repr_html_(self) -> str:
        """Return the verdict, the figures and the charts of the report for a notebook."""
        from anon.report.notebook import summary_html

        return summary_html(self.facts, self.report, repr(self))


def refuse_warnings(summary: dict[str, Any], then: str = "") -> None:
    """Raise UnsafeError if there are warnings that the config does not accept (--strict)."""
    if warnings := standing(summary["warnings"]):
        lines = [f"  {w['code']}: {w['count']:,} {one_line(w['text'])}" for w in warnings]
        raise UnsafeError("\n".join([f"warnings count as failures (--strict){then}", *lines]))


def refuse_breaches(summary: dict[str, Any], then: str = "") -> None:
    """Raise UnsafeError if an attack gives more confidence than the criteria of the config promise (--strict)."""
    if breached := [attack for attack in summary["attacks"] if attack["breached"]]:
        lines = [f"  {attack['name']}: {one_line(attack['found'])}" for attack in breached]
        words = f"attacks that break the promise of the criteria count as failures (--strict){then}"
        raise UnsafeError("\n".join([words, *lines]))
