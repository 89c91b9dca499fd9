"""What a config may change from one night of a series to the next: criteria may be tightened or kept, and everything
that does not decide what is published may change; columns and the form of the release may not."""

from __future__ import annotations

from typing import Any

from anon.artifacts.ledger import Settings
from anon.config import Config
from anon.config.support import exact_labels
from anon.config.tightening import loosened
from anon.errors import ConfigError, Problem

NEW_SERIES = "or begin a new series with other folders, which the same people must not be in"


def settings_of(config: Config) -> Settings:
    """Return what a ledger keeps of a config."""
    original = config.original
    return Settings(columns=original["columns"], release=_form(config), privacy=original["privacy"])


def _form(config: Config) -> dict[str, Any]:
    release = config.release
    labels = "exact" if exact_labels(config) else "generalized"
    return {"form": release.form, "labels": labels, "format": release.format, "bounds": release.bounds}


def check_settings(config: Config, before: Settings) -> None:
    """Raise ConfigError if the config changes what a series cannot change."""
    now = settings_of(config)
    problems = [
        Problem(f"columns.{name}", "another setting than in the nights before", "the same", NEW_SERIES)
        for name in sorted({*now.columns, *before.columns})
        if now.columns.get(name) != before.columns.get(name)
    ]
    problems += [
        Problem(f"release.{name}", str(now.release[name]), f"{value}, as in the nights before", NEW_SERIES)
        for name, value in before.release.items()
        if now.release.get(name) != value
    ]
    if now.privacy != before.privacy:
        for name in loosened(before.privacy, now.privacy, config):
            expected = "criteria that are kept or tightened"
            problems.append(Problem("privacy", f"a looser {name} than in the nights before", expected, NEW_SERIES))
    if problems:
        raise ConfigError(problems)
