"""Series whose runs are killed: the same parts, nobody in two, nobody lost. A publication is cut off before each of its
system calls, whole runs before each of their stages, and in the long variant at random moments."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

import anon
from anon.commands import series
from anon.config import load
from anon.core import disk
from anon.core.progress import Progress
from anon.release.publication import Publication
from anon.runs.workspace import CHECKPOINT, locked_release
from tests.helpers.faults import KILLED, Calls, forked, injected
from tests.helpers.killed import anon_run
from tests.helpers.series import People, check_series, digests, extract, series_config

STAGES = ("source", "cube", "search", "release", "verify", "utility", "report")


# A publication.


class Stopped(Exception):
    """A run came to its publication."""


@dataclass
class Staged:
    """A publication that is about to begin, and a copy of the folder as it is then."""

    folder: Path
    copy: Path
    config: dict[str, Any]
    publication: Publication
    obsolete: Path

    def restore(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)

    def publish(self, calls: Calls) -> None:
        with injected(calls):
            self.publication.carry_out(lambda: None, self.obsolete)

    def recover(self, calls: Calls) -> None:
        """Do what every start does first."""
        with injected(calls), locked_release(load(self.config), Progress()):
            pass

    def state(self) -> dict[str, dict[str, str]]:
        """Return the digests of what is in place."""
        places = {name: self.folder / name for name in ("out", "run")}
        return {name: disk.digests(place) for name, place in places.items() if place.exists()}


def staged(folder: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> Staged:
    """Let a command come to its publication."""
    found: list[Staged] = []

    def stop(publication: Publication, _: object, obsolete: Path) -> None:
        shutil.copytree(folder, copy := folder.with_name("copy"))
        found.append(Staged(folder, copy, config, publication, obsolete))
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Publication, "carry_out", stop)
        with pytest.raises(Stopped):
            work()
    return found[0]


def first_night(config: dict[str, Any], people: People, folder: Path) -> None:
    anon.run(config)


def next_night(config: dict[str, Any], people: People, folder: Path) -> None:
    extract(folder, people.arrive(30))
    anon.run(config)


def night_without_part(config: dict[str, Any], people: People, folder: Path) -> None:
    extract(folder, people.arrive(1))
    anon.run(config)


def withdrawal(config: dict[str, Any], people: People, folder: Path) -> None:
    (folder / "ids.txt").write_text("p0\n")
    series.withdraw(config, folder / "ids.txt", yes=True)


def rebuilding(config: dict[str, Any], people: People, folder: Path) -> None:
    (folder / "run" / "ledger" / "ids-000001.parquet").write_bytes(b"damaged")
    series.rebuild(config)


@pytest.mark.parametrize("work", [first_night, next_night, night_without_part, withdrawal, rebuilding])
def test_a_kill_before_any_system_call_of_a_publication_is_completed_or_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[..., None]
) -> None:
    folder, own = tmp_path / "series", random.Random(1)
    folder.mkdir()
    config, people = series_config(folder), People(3)
    extract(folder, people.arrive(40))
    if work is not first_night:
        anon.run(config)
    place = staged(folder, config, monkeypatch, partial(work, config, people, folder))
    place.restore()
    before, calls = place.state(), Calls()
    place.publish(calls)
    after, outcomes = place.state(), set()
    assert after != before and len(calls.names) > 20
    for at in range(len(calls.names)):
        place.restore()
        assert forked(partial(place.publish, Calls(at, "kill"))) == KILLED
        forked(partial(place.recover, Calls(own.randrange(60), "kill")))  # the start after it is killed as well
        place.recover(Calls())
        assert place.state() in (before, after), calls.names[at]
        left = {path.name for path in folder.glob(".anon-*/*")}
        assert left <= {disk.LOCK, CHECKPOINT}, "only the checkpoint of a run that was killed may be left"
        outcomes.add(json.dumps(place.state()))
    assert outcomes == {json.dumps(before), json.dumps(after)}
    assert series.status(config).facts["released"] > 0


# Whole runs.


def write(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(series_config(folder)))
    return folder / "config.json"


def test_a_kill_before_each_stage_leaves_the_series_that_no_kill_leaves(tmp_path: Path) -> None:
    people, quiet, killed = People(1), write(tmp_path / "quiet"), write(tmp_path / "killed")
    plan = [(people.arrive(40), STAGES[::2]), (people.arrive(1), STAGES[:2]), (people.arrive(30), STAGES[1::2])]
    for at, (rows, stages) in enumerate(plan):
        for folder in (quiet.parent, killed.parent):
            extract(folder, rows)
        anon.run(quiet)
        before = digests(killed.parent)
        for stage in stages:
            assert anon_run(killed, *["--resume"] * (at % 2), stage=stage).code == -9
            assert digests(killed.parent) == before
        assert anon_run(killed, "--resume").code == 0
        assert digests(killed.parent) == digests(quiet.parent)
    check_series(killed.parent, json.loads(killed.read_text()), people)


@pytest.mark.long
def test_a_hundred_kills_at_random_moments_leave_the_series_that_no_kill_leaves(tmp_path: Path) -> None:
    people, own = People(2), random.Random(2)
    quiet, killed = write(tmp_path / "quiet"), write(tmp_path / "killed")
    kills = nights = 0
    while kills < 100:
        rows = people.some(2) + people.arrive(own.choice([1, 25, 40, 60]), own.choice(["abcde", "a", "bcdef"]))
        for folder in (quiet.parent, killed.parent):
            extract(folder, rows)
        began = perf_counter()
        assert anon_run(quiet).code == 0
        lasts, code = perf_counter() - began, -9
        for _ in range(8):
            before = digests(killed.parent)
            code = anon_run(killed, *["--resume"] * own.randrange(2), lifetime=own.uniform(0, lasts)).code
            assert code in (0, -9) and digests(killed.parent).items() >= before.items()
            kills += code == -9
            if code == 0:
                break
        assert code == 0 or anon_run(killed, *["--resume"] * own.randrange(2)).code == 0
        assert digests(killed.parent) == digests(quiet.parent)
        nights += 1
    check_series(killed.parent, json.loads(killed.read_text()), people)
    print(f"{kills} kills in {nights} nights")
