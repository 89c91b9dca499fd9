"""Which compiled loops a run loads, and that they are there whatever becomes of the second process that compiles."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import anon
from anon import loops
from anon.config import load

ROOT = Path(anon.__file__).parent
SHARED = {"anon.cube.kernels", "anon.criteria.kernels_counts"}  # loaded by every run, and by other modules of loops


def _holding_loops() -> set[str]:
    files = [path for path in ROOT.rglob("*.py") if re.search("^@compiled", path.read_text(), re.MULTILINE)]
    return {".".join(["anon", *path.relative_to(ROOT).with_suffix("").parts]) for path in files}


def test_every_module_of_loops_is_known():
    assert set(loops.MODULES) | SHARED == _holding_loops()


@pytest.mark.parametrize(
    ("privacy", "method", "expected"),
    [
        ({"k_anonymity": {"k": 2}}, "partition", {"anon.search.kernels"}),
        ({"k_anonymity": {"k": 2}}, "lattice", {"anon.search.lattice.kernels"}),
        ({"skyline": {"points": [{"l": 0, "k": 1, "m": 1, "c": 0.9}]}}, "partition",
         {"anon.search.kernels", "anon.criteria.kernels"}),
        ({"l_diversity": {"kind": "distinct", "l": 2}}, "partition", {"anon.search.kernels"}),
        ({"l_diversity": {"kind": "entropy", "l": 2}}, "lattice",
         {"anon.search.lattice.kernels", "anon.criteria.kernels_l_diversity"}),
        ({"ck_safety": {"c": 0.9, "k": 1}}, "partition", {"anon.search.kernels", "anon.criteria.kernels_ck"}),
    ],
)  # fmt: skip
def test_a_run_loads_the_loops_of_its_search_and_criteria(privacy, method, expected):
    config = {
        "source": {"path": "people.csv"},
        "columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["illness"]},
        "privacy": [privacy],
        "method": {"kind": method},
        "release": {"path": "release"},
    }
    assert loops.needed(load(config)) == expected | {loops.QUERIES, loops.SKYLINES, loops.CRITERIA["ck_safety"]}


@pytest.mark.parametrize("modules", [1, 2, 3, 8])
def test_the_two_processes_share_all_modules(modules):
    own, others = loops._halves(list(loops.MODULES[:modules]))
    assert sorted(own + others) == sorted(loops.MODULES[:modules])
    assert abs(len(own) - len(others)) <= 1


WITH_A_SECOND = """
import json, subprocess, sys
from anon import loops
SECOND
loops._compiles_first = lambda: True
started = []
loops.subprocess.Popen = lambda *a, **k: started.append(a) or second(*a, **k)
wanted = {"anon.explore.kernels", "anon.search.lattice.kernels"}
loops.load(wanted)
print(json.dumps([len(started), wanted <= set(sys.modules)]))
"""


@pytest.mark.parametrize(
    "second",
    [
        "second = subprocess.Popen",
        "real = subprocess.Popen\nsecond = lambda c, **k: real([sys.executable, '-c', 'raise SystemExit(1)'], **k)",
        "def second(*a, **k): raise OSError",
    ],
    ids=["works", "fails", "cannot be started"],
)
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core compiles alone")
def test_loops_are_loaded_whatever_becomes_of_the_second_process(second):
    code = WITH_A_SECOND.replace("\nSECOND\n", f"\n{second}\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [1, True]


def test_a_failure_beside_the_loading_does_not_wait_for_it(monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(loops, "load", lambda wanted: release.wait(60))
    with pytest.raises(ValueError, match="beside"), loops.loading(set()):
        raise ValueError("beside")
    release.set()


def test_what_goes_wrong_in_the_loading_is_raised_at_its_end(monkeypatch):
    def broken(wanted):
        raise ImportError("no loops")

    done = []
    monkeypatch.setattr(loops, "load", broken)
    with pytest.raises(ImportError, match="no loops"), loops.loading(set()):
        done.append(True)
    assert done == [True]


def test_the_loops_are_there_when_the_work_beside_has_ended(monkeypatch):
    loaded = []
    monkeypatch.setattr(loops, "load", lambda wanted: (time.sleep(0.05), loaded.extend(wanted)))
    with loops.loading({"anon.search.kernels"}):
        pass
    assert loaded == ["anon.search.kernels"]
