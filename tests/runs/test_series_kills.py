"""Series whose runs are killed: the same parts, nobody in two, nobody lost."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.helpers.killed import anon_run
from tests.helpers.series import People, check_series, digests, extract, series_config

STAGES = ("source", "cube", "search", "release", "verify", "utility", "report")


def nights(people: People) -> list[list[dict[str, object]]]:
    sizes = [(40, "abcde"), (1, "a"), (30, "abcde"), (25, "a"), (60, "bcdef"), (0, ""), (35, "abcde")]
    return [people.some(2) + people.arrive(size, values or "a") for size, values in sizes]


def write(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(series_config(folder)))
    return folder / "config.json"


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments_leave_the_series_that_no_kill_leaves(tmp_path: Path, seed: int) -> None:
    people, own = People(seed), random.Random(seed)
    plan = nights(people)
    quiet, killed = write(tmp_path / "quiet"), write(tmp_path / "killed")
    kills = 0
    for rows in plan:
        extract(quiet.parent, rows)
        assert anon_run(quiet).code == 0
        extract(killed.parent, rows)
        for _ in range(own.randrange(7, 9)):
            before = digests(killed.parent)
            if own.random() < 0.4:
                ended = anon_run(killed, *["--resume"] * own.randrange(2), stage=own.choice(STAGES))
            else:
                ended = anon_run(killed, lifetime=own.uniform(0.05, 0.8))
            kills += ended.code < 0
            assert digests(killed.parent).items() >= before.items()
        assert anon_run(killed, *["--resume"] * own.randrange(2)).code == 0
        assert digests(killed.parent) == digests(quiet.parent)
    check_series(killed.parent, json.loads(killed.read_text()), people)
    assert kills >= 30


@pytest.mark.parametrize("call", range(40))
def test_a_kill_at_each_step_of_a_publication_is_completed_or_undone(tmp_path: Path, call: int) -> None:
    """Kills the process at the n-th operation of the publication of a second part."""
    people = People(3)
    config = write(tmp_path / "series")
    extract(config.parent, people.arrive(40))
    assert anon_run(config).code == 0
    extract(config.parent, people.arrive(30))
    from functools import partial

    ended = anon_run(config, around=partial(_Killed, call))
    after = digests(config.parent)
    assert ended.code in (0, -9)
    assert anon_run(config).code == 0
    assert len(digests(config.parent)) == 2 and digests(config.parent).items() >= after.items()
    check_series(config.parent, json.loads(config.read_text()), people)


class _Killed:
    """Ends the process before the n-th call that changes the disk in a publication."""

    NAMES = ("replace", "keep", "rename", "unlink", "sync_folder", "write_sealed", "make_folders")

    def __init__(self, call: int) -> None:
        self.left = call

    def __enter__(self) -> None:
        import os
        import signal

        from anon.core import disk
        from anon.release.publication import Publication

        carry_out = Publication.carry_out

        def counted(function):  # type: ignore[no-untyped-def]
            def work(*args, **more):  # type: ignore[no-untyped-def]
                self.left -= 1
                if self.left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **more)

            return work

        def watched(publication, *args):  # type: ignore[no-untyped-def]
            for name in self.NAMES:
                setattr(disk, name, counted(getattr(disk, name)))
            return carry_out(publication, *args)

        Publication.carry_out = watched  # type: ignore[method-assign]

    def __exit__(self, *exception: object) -> None:
        pass
