"""Loads the compiled loops that a run needs, before any stage asks for them. The first time after an installation they
have to be compiled, which takes a core some seconds; then a second process compiles half of the modules into the same
cache."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module

from anon import interrupt
from anon.config import Config
from anon.config.privacy import Criterion

SKYLINES = "anon.explore.kernels_skylines"  # of knowledge skylines, which the report shows
QUERIES = "anon.explore.kernels"  # of random COUNT queries, by which utility is measured
SEARCHES: dict[str, set[str]] = {
    "partition": {"anon.search.kernels"},
    "lattice": {"anon.search.lattice.kernels"},
    "merge": {"anon.search.kernels_dealing", "anon.search.kernels_merge"},
    "colour": {"anon.search.kernels_dealing", "anon.search.kernels_colour"},
    "reuse": {"anon.search.kernels"},
}
CRITERIA = {
    "skyline": "anon.criteria.kernels",
    "ck_safety": "anon.criteria.kernels_ck",
    "l_diversity": "anon.criteria.kernels_l_diversity",
    "t_closeness": "anon.criteria.kernels_proximity",
    "dissimilarity": "anon.criteria.kernels_proximity",
    "epsilon_m": "anon.criteria.kernels_proximity",
    "variance": "anon.criteria.kernels_proximity",
    "r_robustness": "anon.criteria.kernels_robustness",
}
# All but those of the cube, which every run needs, and of the modules that these import. By how long they take to
# compile, the longest first.
MODULES = (
    "anon.search.kernels", "anon.criteria.kernels", "anon.criteria.kernels_robustness",
    "anon.criteria.kernels_proximity", "anon.explore.kernels", "anon.search.lattice.kernels",
    "anon.search.kernels_merge", "anon.search.kernels_dealing", "anon.search.kernels_colour",
    "anon.explore.kernels_skylines", "anon.criteria.kernels_ck", "anon.criteria.kernels_l_diversity",
)  # fmt: skip


def needed(config: Config) -> set[str]:
    """The modules that a run needs."""
    criteria = {CRITERIA[spec.name] for spec in config.privacy if _has_loops(spec)}
    told = {SKYLINES, QUERIES} | ({CRITERIA["ck_safety"]} if config.columns.multiplicity == "single" else set())
    return SEARCHES[config.method.kind] | criteria | told


def _has_loops(spec: Criterion) -> bool:
    return spec.name in CRITERIA and getattr(spec, "kind", "") not in ("distinct", "frequency")


@contextmanager
def loading(wanted: set[str]) -> Iterator[None]:
    """Loads modules beside what is done meanwhile, which mostly waits for DuckDB; they are there at the end. A failure
    of what is done meanwhile does not wait for them."""
    loaded: Future[None] = Future()

    def work() -> None:
        try:
            load(wanted)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            loaded.set_exception(error)
        else:
            loaded.set_result(None)

    threading.Thread(target=work, name="loops", daemon=True).start()
    yield
    loaded.result()


def load(wanted: set[str]) -> None:
    """Loads these of the MODULES, or compiles them. Requests to stop wait until it is done."""
    modules = [name for name in MODULES if name in wanted and name not in sys.modules]
    with interrupt.held():
        if _compiles_first() and len(modules) > 1 and (os.cpu_count() or 1) > 1:
            own, others = _halves(modules)
            second = _compiling(others)
            for name in own:
                import_module(name)
            if second is not None:
                second.wait()
        for name in modules:
            import_module(name)


def _compiles_first() -> bool:
    """Whether the loops of the first module were not in the cache."""
    from anon.cube.kernels import count_values

    return bool(count_values.stats.cache_misses)


def _halves(modules: list[str]) -> tuple[list[str], list[str]]:
    """Two shares that take about as long: the longest in turn, the two sides changing places after each pair."""
    own, others = modules[:1], modules[1:2]
    for place, name in enumerate(modules[2:]):
        (others if place % 4 in (0, 3) else own).append(name)
    return own, others


def _compiling(modules: list[str]) -> subprocess.Popen[bytes] | None:
    """Another process that loads some modules; None if it cannot be started. What it leaves undone is done here."""
    command = [sys.executable, "-c", f"import {', '.join(modules)}"]
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return None
