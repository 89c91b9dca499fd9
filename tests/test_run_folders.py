"""Damaged and foreign files of a run folder: `reuse`, `explain` and `report` refuse them in one clear sentence."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anon
from anon.errors import ConfigError
from anon.pipeline import DEFAULTS
from anon.progress import Progress
from anon.report import page
from anon.report.explain import explained
from tests.conftest import House
from tests.test_reuse import METHODS, config, first, rows

FILES = ("manifest.json", "recoding.json", "report.json")
MUTATIONS = 30  # of each file of each method
OTHERS = (None, -1, 10**9, 0.5, "x", "*", [], {}, True)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value that can be changed, as a container and a key."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with bytes changed or cut off, or with an entry of its JSON changed, moved or removed."""
    kind = rng.randrange(6)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    if kind == 1:
        at = rng.randrange(len(content))
        return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    data = json.loads(content)
    found = list(places(data))
    container, key = rng.choice(found)
    if kind == 2:
        del container[key]
    elif kind == 3:
        container[key] = copy.deepcopy(rng.choice(found)[0])
    else:
        container[key] = rng.choice(OTHERS)
    return json.dumps(data).encode()


def refused(house: House, run: Path) -> int:
    """How many of the three commands refuse a run folder; any other exception than ConfigError is a failure."""
    table, method = rows(1, 60), {"kind": "reuse", "run": str(run)}
    commands = (
        lambda: anon.run(config(house, method, "again"), table, overwrite=True),
        lambda: explained(run, DEFAULTS, Progress()),
        lambda: page.write(run),
    )
    count = 0
    for command in commands:
        try:
            command()
        except ConfigError as error:
            assert "RUN" in str(error) or "method.run" in str(error)
            count += 1
    return count


@pytest.mark.parametrize("method", METHODS)
def test_a_damaged_file_of_a_run_folder_is_refused(house: House, method: str) -> None:
    first(house, rows(1, 60), method)
    run, rng = house.folder / "first-run", random.Random(method)
    assert refused(house, run) == 0
    for name in FILES:
        original = (run / name).read_bytes()
        for _ in range(MUTATIONS):
            changed = mutated(original, rng)
            if changed != original and changed != json.dumps(json.loads(original)).encode():
                (run / name).write_bytes(changed)
                assert refused(house, run) == 2  # the page needs the report alone, and reuse does not need it
        (run / name).write_bytes(original)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_run_is_refused(house: House, name: str) -> None:
    first(house, rows(1, 60))
    anon.run(config(house, METHODS["partition"], "second", k=5), rows(2, 80))
    run, other = house.folder / "first-run", house.folder / "second-run"
    (run / name).write_bytes((other / name).read_bytes())
    assert refused(house, run) == {"manifest.json": 2, "recoding.json": 2, "report.json": 1}[name]
