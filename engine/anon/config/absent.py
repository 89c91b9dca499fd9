"""Named values that a table may not have: those that a sample misses, and those that a release has suppressed. A named
value that does not occur is otherwise a mistake, because a misspelt one would not be protected."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

from anon.config import Config, Reuse

Reason = Literal["ok", "suppressed"]  # the first is what a config says


def may_be_absent(config: Config, reason: Reason = "ok") -> Config:
    """Return the config with criteria whose named values may be absent from the table."""
    changed = {"absent": reason}
    privacy = [
        spec.model_copy(update=changed) if getattr(spec, "absent", reason) is None else spec for spec in config.privacy
    ]
    return config.model_copy(update={"privacy": privacy})


def for_release(config: Config, table: Any) -> Config:
    """Return the config to check a table by: if the table is a release that has suppressed rows, or may be one, the
    named values may be among these. The datapackage.json of a release says so; without one, the method does."""
    share = _suppressed_share(table)
    suppressed = _suppresses(config) if share is None else share > 0
    return may_be_absent(config, "suppressed") if suppressed else config


def _suppresses(config: Config) -> bool:
    """Return whether the method of a config may suppress rows; a reused recoding may be that of a lattice."""
    return isinstance(config.method, Reuse) or getattr(config.method, "suppress", 0) > 0


def _suppressed_share(table: Any) -> float | None:
    """Return the share of individuals that the datapackage.json of a release says are suppressed; None without one."""
    first = table[0] if isinstance(table, tuple) and table else table
    if not isinstance(first, (str, os.PathLike)):
        return None
    path = Path(first)
    for folder in (path, path.parent):
        try:
            package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
            if folder == path or _lists(package, path.name):
                return float(package["suppressed_share"])
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            continue
    return None


def _lists(package: dict[str, Any], name: str) -> bool:
    """Return whether a datapackage.json describes a file, or a folder of parts, of this name."""
    paths = [path for resource in package["resources"] for path in _as_list(resource["path"])]
    return any(Path(path).parts[0] == name for path in paths)


def _as_list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]
