"""Decide whether a run that was stopped may be resumed: what must be the same."""

from __future__ import annotations

import hashlib
from importlib.metadata import version

from anon.config import Config, redact
from anon.core.checkpoint import RunIdentity
from anon.errors import ConfigError
from anon.search import budget
from anon.source import Source

STEPS = 4  # the form of the steps of a search that a checkpoint holds; those of another form are not resumed


def same_run(config: Config, source: Source, resume: bool, files: dict[str, str]) -> RunIdentity:
    """Return what must not have changed when a run that was stopped is resumed; `files`: digests of those that the
    config names."""
    if resume and not source.marks:
        raise ConfigError.at("resume", "a table in memory", "a source with a path, which can be compared")
    marks: list[list[str | int]] = [
        [redact(name, config.secrets), size, changed] for name, size, changed in source.marks
    ]
    made_by = f"{version('anon-engine')}, steps {STEPS}, block {budget.BLOCK}"
    settings = f"{config.digest}, {_digest_of_settings(config)}"
    return RunIdentity(config=settings, files=files, source=marks, version=made_by, trial=config.trial)


def _digest_of_settings(config: Config) -> str:
    """Return a digest of what a search depends on, with the values of variables, which may have changed. It is slow to
    compute on purpose, so that a short value cannot be guessed from it."""
    settings = repr((config.columns, config.nulls, config.privacy, config.method))
    return hashlib.pbkdf2_hmac("sha256", settings.encode(), config.digest.encode(), 10_000).hex()
