"""The loops of the engine in machine code: the C files beside the modules that declare them (kernels*.c and
kernels*.py), one library made of all when the package is installed (hatch_build.py). Loops take whole numbers, floats
and numpy arrays, allocate nothing, and run without the interpreter's lock. Loading the library takes no time, so that
any module may declare loops."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from anon.errors import SourceError

FOLDER = Path(__file__).parent
CPU = Path("/proc/cpuinfo")
WIDE = {"avx2", "bmi1", "bmi2", "popcnt", "abm"}  # what the wide library takes for granted
CONTIGUOUS, WRITEABLE = 0x1, 0x400  # numpy's flags of an array
HEAD = 16  # bytes of every object before its own fields, as loops.h takes for granted


@dataclass(frozen=True)
class Array:
    """An argument that is an array, C-contiguous, of a type and so many dimensions."""

    type: np.dtype[Any]
    dimensions: int = 1
    written: bool = False

    @property
    def flags(self) -> int:
        """Those of numpy that it must have."""
        return CONTIGUOUS | (WRITEABLE if self.written else 0)


Kind = Array | type[int] | type[float]  # of an argument; truth values are whole numbers
_PLAIN = {int: ctypes.c_int64, float: ctypes.c_double}


def read(type: DTypeLike, dimensions: int = 1) -> Array:
    """An array that a loop reads."""
    return Array(np.dtype(type), dimensions)


def written(type: DTypeLike, dimensions: int = 1) -> Array:
    """An array that a loop writes to."""
    return Array(np.dtype(type), dimensions, written=True)


def loop(
    name: str, *kinds: Kind, returns: type[int | float] | None = None, library: ctypes.CDLL | None = None
) -> Callable[..., Any]:
    """A loop of the engine's library, or of another one, by its name there; what it is called with is checked against
    the kinds of its arguments."""
    function = getattr(library or _library(), name)
    function.argtypes = [ctypes.py_object if isinstance(kind, Array) else _PLAIN[kind] for kind in kinds]
    function.restype = None if returns is None else _PLAIN[returns]
    arrays = [(at, k.type, k.dimensions, k.flags) for at, k in enumerate(kinds) if isinstance(k, Array)]

    def call(*given: Any) -> Any:
        for at, kind, dimensions, flags in arrays:
            array = given[at]
            if array.dtype != kind or array.ndim != dimensions or array.flags.num & flags != flags:
                raise TypeError(f"argument {at} of the loop {name} is not {kinds[at]}")
        return function(*given)

    call.kinds, call.returns, call.__name__ = kinds, returns, name  # type: ignore[attr-defined]
    return call


@cache
def _library() -> ctypes.CDLL:
    assert object.__basicsize__ == HEAD
    path = _path()
    if not path.exists():
        raise SourceError(
            "the compiled loops of anon are missing: this copy of the package was not installed. pip makes them: "
            "pip install anon-engine, or pip install -e . in a clone"
        )
    return ctypes.CDLL(str(path))


def _path() -> Path:
    """The library for this processor: one with wide vectors, where there is one and the processor has them."""
    wide = FOLDER / "loops-avx2.so"
    return wide if wide.exists() and _has_wide_vectors() else FOLDER / "loops.so"


def _has_wide_vectors() -> bool:
    try:
        told = CPU.read_text(errors="replace")
    except OSError:
        return False
    flags = next((line.split() for line in told.splitlines() if line.startswith("flags")), [])
    return set(flags) >= WIDE
