"""Faults in whole runs, for every method and form: whatever call of the publication is cut off, release and run folder
belong together after the next run, nothing else is left, and the exit code and the message are true."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import anon
from anon.core import disk
from anon.release.publication import UNFINISHED
from tests.conftest import House, Outcome
from tests.helpers.faults import KILLED, Calls, Count, injected
from tests.helpers.killed import anon_run

BUCKETIZED = {"release": {"path": "out", "run": "out-run", "form": "bucketized"}}
LEVELS = {"columns__quasi_identifiers": {"age": {"intervals": [10, 20]}, "zip": {"digits": 5}}}
PRIORS = [{"r_robustness": {"r": 2, "priors": [{"estimate": ["zip"], "smoothing": 1}]}}]
DISTANCE = {"epsilon": 0.2, "delta": 0.4, "k": 2, "distance": {"kind": "ordered"}}
JOBS: dict[str, dict[str, Any]] = {
    "partition": {},
    "partition, bucketized": BUCKETIZED,
    "lattice": {"method": {"kind": "lattice"}, **LEVELS},
    "lattice, bucketized": {"method": {"kind": "lattice"}, **LEVELS, **BUCKETIZED},
    "merge": {"method": {"kind": "merge"}, "privacy": PRIORS, **BUCKETIZED},
    "colour": {"method": {"kind": "colour"}, "privacy": [{"dissimilarity": DISTANCE}], **BUCKETIZED},
    "reuse": {},
}


def people(shift: int) -> pa.Table:
    numbers = range(60)
    values = ["asthma", "cold", "flu", "ulcer"]
    return pa.table(
        {
            "age": [20 + (shift + 7 * n) % 40 for n in numbers],
            "zip": [f"0213{n % 3}" for n in numbers],
            "disease": [values[(n * n + n // 3) % 4] for n in numbers],
        }
    )


@dataclass(frozen=True)
class Job:
    """A run by the command, in a folder with a release of an earlier one."""

    house: House
    changes: dict[str, Any]

    @classmethod
    def of(cls, house: House, name: str) -> Job:
        changes = dict(JOBS[name])
        house.write(people(0))
        if name == "reuse":
            house.run(release={"path": "first", "run": "first-run"})
            changes["method"] = {"kind": "reuse", "run": str(house.folder / "first-run")}
        job = cls(house, changes)
        job.reset()
        return job

    def reset(self) -> None:
        """Make the release of the earlier run once more."""
        self.house.write(people(0))
        self.house.run(**self.changes)
        self.house.write(people(40))  # the same ages in another order

    def run(self, *options: str) -> Outcome:
        return self.house.cli("run", "--overwrite", *options, **self.changes)

    def killed(self, at: int, can_exchange: bool) -> None:
        """A run in a process of its own, which ends itself at a call."""
        config = self.house.folder / "config.yaml"
        config.write_text(json.dumps(self.house.config(**self.changes)))
        assert anon_run(config, "--overwrite", around=partial(injected, Calls(at, "kill"), can_exchange)).code == KILLED

    def published(self) -> str:
        """The id of the run whose release is in place, which must be that of its run folder."""
        manifest = json.loads((self.house.folder / "out-run" / "manifest.json").read_text())
        report = json.loads((self.house.folder / "out-run" / "report.json").read_text())
        assert disk.digests(self.house.folder / "out") == manifest["release"]
        assert report["provenance"]["run"] == manifest["run"]
        run: str = manifest["run"]
        return run


def renames(job: Job, can_exchange: bool) -> list[int]:
    """The calls of an undisturbed run that put folders in place, each with the one after it."""
    with injected(Calls(), can_exchange) as calls:
        assert job.run().code == 0
    found = [at for at, name in enumerate(calls.names) if name in ("rename", "exchange")]
    assert len(found) == (2 if can_exchange else 4)
    return sorted({*found, *(at + 1 for at in found)})


def disturbed(job: Job, calls: Calls, can_exchange: bool) -> None:
    """A run with a fault in its publication, and another one."""
    before = job.published()
    if calls.fault == "kill":
        job.killed(calls.at, can_exchange)
    else:
        outcome = _run(job, calls, can_exchange)
        if outcome.code == 0:
            assert job.published() != before
            assert not job.house.leftovers() or "warning: " in outcome.stderr
        elif UNFINISHED not in outcome.stderr:
            assert outcome.code == (130 if calls.fault == "SIGTERM" else 6)
            assert "nothing was published" in outcome.stderr
            assert job.published() == before and not job.house.leftovers()
    assert job.run().code == 0
    assert job.published() != before and not job.house.leftovers()


def _run(job: Job, calls: Calls, can_exchange: bool) -> Outcome:
    with injected(calls, can_exchange):
        return job.run()


@pytest.mark.parametrize("name", JOBS)
def test_a_run_that_is_killed_between_the_renames_is_completed_by_the_next(house: House, name: str) -> None:
    job = Job.of(house, name)
    at = renames(job, can_exchange=False)[-2]  # the last one: the old release is aside
    job.reset()
    before = job.published()
    job.killed(at, can_exchange=False)
    assert not (house.folder / "out").exists()
    again = job.run()
    assert again.code == 0 and "the publication that an earlier run began was completed" in again.stderr
    assert job.published() != before and not house.leftovers()


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("fault", ["EIO", "SIGTERM"])
def test_a_fault_in_the_last_rename_is_reported_as_it_is(house: House, fault: str, can_exchange: bool) -> None:
    job = Job.of(house, "partition")
    last = renames(job, can_exchange)[-2]
    job.reset()
    disturbed(job, Calls(last, fault), can_exchange)


@pytest.mark.long
@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("fault", ["kill", "EIO", "ENOSPC", "EINTR", "EIO after the effect", "SIGTERM"])
@pytest.mark.parametrize("name", JOBS)
def test_a_fault_at_any_rename_of_a_run(house: House, name: str, fault: str, can_exchange: bool, faults: Count) -> None:
    job = Job.of(house, name)
    for at in renames(job, can_exchange):
        job.reset()
        disturbed(job, Calls(at, fault), can_exchange)
        faults.add(1)


def test_a_release_that_was_completed_is_up_to_date(house: House) -> None:
    """The next start is for the same source and config: it completes the publication and has nothing else to do."""
    house.write(people(0))
    job = Job(house, {})
    with injected(Calls(), can_exchange=False) as calls:
        assert job.run().code == 0
    for place in (house.folder / "out", house.folder / "out-run"):
        assert not disk.remove(place)
    job.killed([number for number, name in enumerate(calls.names) if name == "rename"][-1], can_exchange=False)
    assert not (house.folder / "out").exists()
    assert anon.run(house.config()).facts["up_to_date"] and not house.leftovers()
