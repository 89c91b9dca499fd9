"""Runs cases: one seed, or many of them in several processes."""

from __future__ import annotations

import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz import assigning, checking, generate, lattice, partition, whole
from tests.fuzz.cases import Case

FAMILIES: Mapping[str, Callable[[Case, Path], list[str]]] = {
    "partition": partition.differences,
    "lattice": lattice.differences,
    "merge": assigning.differences,
    "colour": assigning.differences,
    "judge": checking.judged,
    "check": checking.differences,
    "whole": whole.differences,
}
CHUNK = 50  # seeds that a process takes at a time
PAUSE = 20.0  # seconds between two reports of progress


@dataclass(frozen=True)
class Difference:
    """A case in which the engine and a definition differ, or which ended in an error."""

    seed: int
    family: str
    told: list[str]


def differences(case: Case, folder: Path) -> list[str]:
    """Return where the engine and the definitions differ on a case; an error counts as a difference."""
    try:
        return FAMILIES[case.family](case, folder)
    except Exception as error:  # noqa: BLE001
        places = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[-3:]]
        return [f"{type(error).__name__}: {error} ({' '.join(places)})"]


def chunk(first: int, last: int) -> list[Difference]:
    """Return the differences in the cases of some seeds."""
    found = []
    with TemporaryDirectory() as folder:
        for seed in range(first, last):
            case = generate.case(seed)
            if told := differences(case, Path(folder)):
                found.append(Difference(seed, case.family, told))
    return found


def _chunk(ends: tuple[int, int]) -> tuple[int, list[Difference]]:
    return ends[1] - ends[0], chunk(*ends)


def many(first: int, cases: int, processes: int) -> Iterator[Difference]:
    """Yield the differences in the cases of consecutive seeds as they are found, and print progress to stderr."""
    last, start, done = first + cases, time.monotonic(), 0
    ends = [(low, min(low + CHUNK, last)) for low in range(first, last, CHUNK)]
    told = start
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for count, found in pool.imap_unordered(_chunk, ends):
            done += count
            yield from found
            if time.monotonic() - told > PAUSE or done == cases:
                told = time.monotonic()
                print(f"{done:,} of {cases:,} cases, {told - start:.0f} s", file=sys.stderr, flush=True)


def smaller(case: Case, folder: Path) -> Case:
    """Return the case without the people and criteria that can be left out one by one while it still differs."""
    if case.priors:
        return case  # what is known of people depends on all of them
    for person in reversed(range(len(case.people))):
        fewer = _without(case, person)
        if fewer.people and differences(fewer, folder):
            case = fewer
    for item in reversed(range(len(case.privacy))):
        fewer = replace(case, privacy=[*case.privacy[:item], *case.privacy[item + 1 :]])
        if fewer.privacy and differences(fewer, folder):
            case = fewer
    return case


def _without(case: Case, person: int) -> Case:
    rest = [tuple(p - (p > person) for p in group if p != person) for group in case.groups]
    people = [*case.people[:person], *case.people[person + 1 :]]
    return replace(case, people=people, groups=[group for group in rest if group])
