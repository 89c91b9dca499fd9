"""`python -m tests.fuzz`: cases by consecutive seeds, or one of them again."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz import generate, run
from tests.fuzz.cases import Case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--seed", type=int, help="repeat the case of this seed and print it")
    given = parser.parse_args()
    if given.seed is not None:
        return _again(given.seed)
    start, found = time.monotonic(), 0
    for difference in run.many(given.first, given.cases, given.processes):
        found += 1
        print(f"seed {difference.seed} ({difference.family}): {'; '.join(difference.told)}")
        print(f"  to repeat: make fuzz SEED={difference.seed}", flush=True)
    seconds = time.monotonic() - start
    print(f"{given.cases:,} cases from seed {given.first} in {seconds:.0f} s: {found:,} differences")
    return 1 if found else 0


def _again(seed: int) -> int:
    case = generate.case(seed)
    with TemporaryDirectory() as folder:
        told = run.differences(case, Path(folder))
        print(shown(case) + ("\n".join(told) or "no difference"))
        if told:
            small = run.smaller(case, Path(folder))
            print("\nwithout the people and criteria that make no difference to it:\n" + shown(small), end="")
            print("\n".join(run.differences(small, Path(folder))))
    return 1 if told else 0


def shown(case: Case) -> str:
    """Return a case as text, a line for each person."""
    people = "".join(f"  {number}: {dict(person)}\n" for number, person in enumerate(case.people))
    rest = {name: value for name, value in case.__dict__.items() if name != "people" and value}
    return f"people\n{people}" + "".join(f"{name} {value}\n" for name, value in rest.items())


if __name__ == "__main__":
    sys.exit(main())
