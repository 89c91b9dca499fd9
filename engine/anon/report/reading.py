"""What a run folder holds, as `report` and `explain` read it, after the way of the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anon.errors import ConfigError
from anon.report import VERSION

EXPECTED = "the run folder of an earlier `anon run` (release.run), with its report.json"


def read_json(run: Path, name: str) -> dict[str, Any]:
    """One of the files of a run folder; ConfigError if there is none that can be read."""
    try:
        found = json.loads((run / name).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError.at("RUN", f"{run}, where no {name} is", EXPECTED) from None
    except (OSError, ValueError, RecursionError):
        raise unreadable(name) from None
    if not isinstance(found, dict):
        raise unreadable(name)
    return found


def unreadable(name: str) -> ConfigError:
    return ConfigError.at("RUN", f"a {name} that cannot be read", EXPECTED)


def read_report(run: Path) -> dict[str, Any]:
    """The report.json of a run folder, of the version that this anon writes."""
    report = read_json(run, "report.json")
    if "version" not in report:
        raise unreadable("report.json")
    if report["version"] != VERSION:
        found = f"a report of version {report['version']}"
        raise ConfigError.at("RUN", found, f"version {VERSION}, which this anon writes; run it again")
    return report
