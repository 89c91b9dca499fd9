"""Write the files of a release: a second stream over the source assigns every row its group, DuckDB sorts the rows into
canonical order, and the files are written in row groups of a fixed size. Their bytes are a function of the published
content: they contain no metadata of the source, and dictionaries have only the values that occur. A release has one of
two forms, `generalized` and `bucketized`."""

from __future__ import annotations

from pathlib import Path

from anon.config import Config
from anon.cube import Domain
from anon.recoding.outcome import Outcome
from anon.release import bucketized, generalized
from anon.release.files import WrittenRelease, WrittenValues
from anon.release.rows import left_out
from anon.source import Source

__all__ = ["WrittenRelease", "WrittenValues", "left_out", "write"]


def write(
    source: Source, found: Outcome, sensitive: list[Domain], config: Config, folder: Path, spill: Path
) -> WrittenRelease:
    """Write the release in the form that the config sets, with its description, into the folder; return its form."""
    if config.release.form == "generalized":
        return generalized.write(source, found, sensitive, config, folder, spill)
    return bucketized.write(source, found, sensitive[0], config, folder, spill)
