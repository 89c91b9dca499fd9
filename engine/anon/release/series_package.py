"""Write the `datapackage.json` of a series: every part with its rows and digests, and what all parts have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anon.core.database import translated

NAME = "datapackage.json"
NOTE = (
    "A series: every part has the individuals of one night, none of whom is in another part. Groups of different parts "
    "are different groups, also where their labels (or their numbers) are the same: tell them apart by the part."
)
OF_ALL = ("profile", "labels", "ages_on", "bounds", "criteria")  # what all parts have in common
Json = dict[str, Any]


def part_name(table: str, number: int) -> str:
    """Return the name of a table of a release as that of a part.

    >>> part_name("release", 1), part_name("qi", 12)
    ('part-000001', 'qi-000012')
    """
    return f"{'part' if table == 'release' else table}-{number:06d}"


def read_package(folder: Path) -> Json:
    """Return the description that a run wrote."""
    found: Json = json.loads((folder / NAME).read_text(encoding="utf-8"))
    return found


def resources_of(package: Json, number: int, digests: dict[str, str]) -> list[Json]:
    """Return the tables of a release as those of a part; `digests` are those of its files under their new names."""
    about = {key: package[key] for key in ("cells", "groups", "suppressed_share", "null_share") if key in package}
    found = []
    for resource in package["resources"]:
        name = part_name(resource["name"], number)
        path = f"{name}.{resource['format']}"
        found.append(resource | {"name": name, "path": path, "hash": f"sha256:{digests[path]}", "part": number} | about)
    return found


def write_series_package(folder: Path, package: Json, parts: list[list[Json]]) -> None:
    """Write the description of a series. `package` is that of its newest part, `parts` are the tables of each."""
    rows = sum(part[0]["rows"] for part in parts)
    content = {
        "name": "series",
        **{key: package[key] for key in OF_ALL if key in package},
        "series": {"kind": "append", "parts": len(parts), "rows": rows, "note": NOTE},
        "resources": [resource for part in parts for resource in part],
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with translated("writing the release", disk=True):
        (folder / NAME).write_text(text, encoding="utf-8")
