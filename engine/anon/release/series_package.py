"""Write the `datapackage.json` of a series: every part with its rows and digests, and what all parts have in common."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
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


def paths_of(resource: Json) -> list[str]:
    """Return the files of a table: one, or on a cluster those of a folder."""
    return resource["path"] if isinstance(resource["path"], list) else [resource["path"]]


def files_of_part(resource: Json, number: int) -> dict[str, str]:
    """Return the names that the files of a table get as those of a part, by the names that they have.

    >>> files_of_part({"name": "qi", "path": "qi.csv", "format": "csv"}, 3)
    {'qi.csv': 'qi-000003.csv'}
    >>> files_of_part({"name": "release", "path": ["release.parquet/a.parquet"], "format": "parquet"}, 3)
    {'release.parquet/a.parquet': 'part-000003.parquet/a.parquet'}
    """
    table = f"{part_name(resource['name'], number)}.{resource['format']}"
    return {path: str(PurePosixPath(table, *PurePosixPath(path).parts[1:])) for path in paths_of(resource)}


def digests_of(resource: Json) -> dict[str, str]:
    """Return the digests of the files of a table by their names.

    >>> digests_of({"path": "a.csv", "hash": "sha256:1"}), digests_of({"path": ["b", "c"], "hashes": ["2", "3"]})
    ({'a.csv': '1'}, {'b': '2', 'c': '3'})
    """
    hashes = resource["hashes"] if isinstance(resource["path"], list) else [resource["hash"]]
    return {path: digest.removeprefix("sha256:") for path, digest in zip(paths_of(resource), hashes, strict=True)}


def with_files(resource: Json, digests: dict[str, str]) -> Json:
    """Return a table with its files and their digests: `hash` of one file, `hashes` of those of a folder in order."""
    hashes = [f"sha256:{digest}" for digest in digests.values()]
    if isinstance(resource["path"], list):
        return resource | {"path": list(digests), "hashes": hashes}
    return resource | {"path": next(iter(digests)), "hash": hashes[0]}


def resources_of(package: Json, number: int, digests: dict[str, str]) -> list[Json]:
    """Return the tables of a release as those of a part; `digests` are those of its files under their new names."""
    about = {key: package[key] for key in ("cells", "groups", "suppressed_share", "null_share") if key in package}
    found = []
    for resource in package["resources"]:
        own = {name: digests[name] for name in files_of_part(resource, number).values()}
        named = resource | {"name": part_name(resource["name"], number)}
        found.append(with_files(named, own) | {"part": number} | about)
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
