"""Why a run came to this release, from what its run folder holds, after the way of the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anon.errors import ConfigError

EXPECTED = "the run folder of an earlier `anon run` (release.run), with its report.json"


def explained(run: Path) -> dict[str, Any]:
    """The method, what holds, what was lost per column, and for a lattice every minimal combination of levels."""
    try:
        report = json.loads((run / "report.json").read_text(encoding="utf-8"))
        utility, criteria = report["utility"], report["summary"]["criteria"]
        found = {"method": report["method"], "groups": utility["groups"], "suppressed": utility["suppressed"]}
        return found | {"criteria": criteria, "loss": utility["loss"]} | report.get("lattice", {})
    except FileNotFoundError:
        raise ConfigError.at("RUN", "no report.json there", EXPECTED) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError.at("RUN", "a report.json that cannot be read", EXPECTED) from None
