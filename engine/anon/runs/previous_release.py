"""Examine the release that an earlier run left at the same place: whether the same source and the same config would
only make it again, and what anyone holding both releases could do with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from anon.artifacts.parts import SourcePart
from anon.artifacts.reading import read_manifest, read_report
from anon.artifacts.schema import Dependencies, Manifest, PreviousRun, Report
from anon.config import Config, redact
from anon.core import disk
from anon.errors import ConfigError, SourceError
from anon.report.together import warning_text
from anon.report.warnings import Warned
from anon.source.origins import Mark, Origin

Json = dict[str, Any]
QUERIES = ("duckdb", "postgres")  # kinds of sources that are known by their rows


@dataclass(frozen=True)
class PreviousRelease:
    """The release at the place of a new one: manifest and report of the run that made it; None if there is none."""

    config: Config  # of the new run
    dependencies: Dependencies  # of the new run, when it began
    manifest: Manifest | None = None
    report: Report | None = None
    digest: str = ""  # of the manifest

    @classmethod
    def read(cls, config: Config, show_values: bool) -> PreviousRelease:
        """Return the release that is at the place of the config's release."""
        own = dependencies(config, show_values)
        run = config.release.run
        try:
            manifest, report = read_manifest(run), read_report(run)
        except ConfigError:
            return cls(config, own)
        return cls(config, own, manifest, report, digest(run / "manifest.json"))

    @property
    def is_trial(self) -> bool:
        """Return whether there is a release, and it is a trial."""
        return self.manifest is not None and bool(self.manifest.trial)

    def may_be_current(self, origin: Origin) -> bool:
        """Return whether a run might only make the same release again: the config is the same, and the release is
        still there. The contents of a database are known only when it has been read."""
        return not origin.marks and origin.frame is None and self._same_but_for_the_source()

    def _same_but_for_the_source(self) -> bool:
        return (
            self.manifest is not None
            and not _has_variables(self.config)
            and not any(callable(getattr(spec, "distance", None)) for spec in self.config.privacy)
            and self.dependencies == self.manifest.dependencies
            and self.manifest.release == released_files(self.config)
        )

    def is_current(self, origin: Origin) -> bool:
        """Return whether a run would only make the same release again. A frame cannot be recognized as the same."""
        if self.manifest is None:
            return False
        marks = manifest_marks(origin.marks, self.config)
        return bool(marks) and self.manifest.source == marks and self._same_but_for_the_source()

    def previous(self) -> Json:
        """Return what the manifest of the next run says about this release."""
        if self.manifest is None:
            return {}
        return {"previous": PreviousRun(run=self.manifest.run, manifest_sha256=self.digest)}

    def differs_from(self, released: dict[str, str]) -> bool:
        """Return whether there is a release, which is not a trial and has other files than these."""
        return self.manifest is not None and not self.is_trial and self.manifest.release != released

    def warnings(self, released: dict[str, str], recoding: str, individuals: int, together: Json) -> list[Json]:
        """Return the warning that a second release of a changed source can be compared with the first, with what both
        reveal together if that is known; equal files add nothing."""
        if self.manifest is None or not self.differs_from(released) or self.config.release.series is not None:
            return []
        same = self.manifest.recoding_sha256 == recoding
        use = "subtract one from the other" if same else "intersect them"
        # a sample without anybody in both, or rows that cannot be told apart, do not say that nobody is
        unknown = "groups_examined" in together or together.get("not_compared", 0) > 0
        if together and (together["individuals"] or not unknown):
            both, text = together["individuals"], warning_text(together, use)
            return [Warned("intersection", both, text).to_dict()] if both else []
        what = "with the groups of the one before" if same else "that replaces another of the same people"
        text = f"individuals in a release {what}: anyone holding both can {use}"
        return [Warned("intersection", individuals, text).to_dict()]


def manifest_marks(marks: list[Mark], config: Config) -> list[SourcePart]:
    """Return the parts of the source as the manifest lists them."""
    what, unit = ("query", "rows") if config.source.kind in QUERIES else ("file", "bytes")
    names = [(redact(name, config.secrets), size, changed) for name, size, changed in marks]
    listed = [{what: name, unit: size, "changed": changed} for name, size, changed in names]
    return [SourcePart.model_validate(each) for each in listed]


def dependencies(config: Config, show_values: bool) -> Dependencies:
    """Return what a release and its report depend on in addition to the source."""
    return Dependencies(
        anon=version("anon-engine"),
        config_sha256=config.digest,
        files={redact(str(path), config.secrets): digest(path) for path in sorted(set(_files(config)))},
        values_shown=show_values,
        trial=config.trial,
    )


def _files(config: Config) -> Iterator[Path]:
    """Yield the files that the config names in addition to the source: hierarchies, priors, distances, a recoding."""
    for part in (config.columns, config.privacy, config.method):
        yield from _paths_in(part)


def _paths_in(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value / "recoding.json" if value.is_dir() else value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _paths_in(getattr(value, name))
    elif isinstance(value, dict):
        for each in value.values():
            yield from _paths_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _paths_in(each)


def _has_variables(config: Config) -> bool:
    """Return whether the release depends on variables: their values are not stored, so they may have changed."""
    parts = [config.original.get(name) for name in ("columns", "nulls", "privacy", "method", "backend")]
    places = {key: value for key, value in config.original["release"].items() if key not in ("path", "run")}
    return "${" in json.dumps([*parts, places, _of_files(config)])


def _of_files(config: Config) -> list[Any]:
    """Return what the config says about how the files of the source are read."""
    return [config.original["source"].get(name) for name in ("csv", "sheet")]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, empty for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def released_files(config: Config) -> dict[str, str]:
    """Return the digests of the files that are now at the place of the release."""
    from anon.release.stores import digests_at

    place = config.release.path
    try:
        return disk.digests(place) if isinstance(place, Path) else digests_at(place)
    except (OSError, SourceError):
        return {}
