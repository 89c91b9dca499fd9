"""Writes what may be published (config -> source -> cube -> search -> release -> verify -> report): a second stream
over the source puts every row in its group, DuckDB brings the rows into canonical order, and the files are written in
row groups of a fixed size. Their bytes are a function of what is published: no metadata of the source, and dictionaries
with only the values that occur. A release has one of two forms, `generalized` and `bucketized`."""

from __future__ import annotations

from pathlib import Path

from anon.config import Config
from anon.cube import Domain
from anon.recoding.outcome import Outcome
from anon.release import bucketized, generalized
from anon.release.files import Written, WrittenValues
from anon.release.rows import left_out
from anon.source import Source

__all__ = ["Written", "WrittenValues", "left_out", "write"]


def write(
    source: Source, found: Outcome, sensitive: list[Domain], config: Config, folder: Path, spill: Path
) -> Written:
    """Writes the release in the form that the config asks for, with its description, into the folder."""
    if config.release.form == "generalized":
        return generalized.write(source, found, sensitive, config, folder)
    return bucketized.write(source, found, sensitive[0], config, folder, spill)
