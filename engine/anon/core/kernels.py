"""Call the engine's kernels: functions in C (kernels*.c beside the modules that use them), compiled into one library
when the package is installed (hatch_build.py).

A kernel takes numpy arrays, integers and floats. Its C code declares their types and sizes (kernels.h) and refuses
anything else before it does any work. Kernels allocate nothing and run without the interpreter lock."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from numpy import ndarray

from anon.errors import SourceError

FOLDER = Path(__file__).parents[1]  # of the package
CPU = Path("/proc/cpuinfo")
WIDE = {"avx2", "bmi1", "bmi2", "popcnt", "abm"}  # what the library for wide vectors requires of the processor
INTEGER, NUMBER, UNKNOWN = "#.!"  # kinds of arguments beside arrays, as in kernels.h
ARRAYS = {np.dtype(code): code for code in "?bBhHiIqQfd"}
FREE = -(2**63)  # sizes from here on are lower limits: AT_LEAST of kernels.h


class Refusal(ctypes.Structure):
    """The reason why a kernel refused its arguments, as kernels.h fills it in."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("place", ctypes.c_int64),
        ("dimensions", ctypes.c_int64),
        ("shape", ctypes.c_int64 * 4),
        ("is_size", ctypes.c_int64),  # the type is right, the size is not
        ("is_written", ctypes.c_int64),
    )


def kernel(name: str, library: ctypes.CDLL | None = None) -> Callable[..., int]:
    """Return a kernel of the engine's library, or of another one. Calling it raises TypeError or ValueError if an
    argument does not have the type or the size that the C code declares."""
    function = _function(library or _library(), name)
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.c_int64

    def call(*arguments: Any) -> int:
        kinds, pack = _layout(tuple([x.dtype if isinstance(x, ndarray) else type(x) for x in arguments]))
        words = pack(*[id(x) if isinstance(x, ndarray) else x for x in arguments])
        result: int = function(kinds, words, None)
        if result < 0:
            refusal = Refusal()
            function(kinds, words, ctypes.addressof(refusal))
            raise _error(name, refusal, arguments)
        return result

    call.__name__ = name
    return call


def _function(library: ctypes.CDLL, name: str) -> Any:
    try:
        return getattr(library, name)
    except AttributeError:
        raise SourceError(
            f"the compiled kernels of anon are older than the package: {name} is missing. Compile them again: "
            "pip install anon-engine, or pip install -e . in a clone"
        ) from None


@cache
def _layout(types: tuple[Any, ...]) -> tuple[bytes, Callable[..., bytes]]:
    """Return a letter for each argument, and the function that packs the arguments into eight bytes each."""
    kinds = "".join(map(_kind, types))
    codes = {INTEGER: "q", NUMBER: "d"}
    return kinds.encode(), Struct("=" + "".join(codes.get(kind, "Q") for kind in kinds)).pack


def _kind(type_: Any) -> str:
    if isinstance(type_, np.dtype):
        return ARRAYS.get(type_, UNKNOWN)
    if issubclass(type_, float):
        return NUMBER
    if issubclass(type_, int | np.integer):
        return INTEGER
    raise TypeError(f"kernels take arrays, integers and floats, not {type_.__name__}")


def _error(kernel: str, refusal: Refusal, arguments: tuple[Any, ...]) -> TypeError | ValueError:
    name, wanted, place = refusal.name.decode(), refusal.type.decode(), refusal.place
    if not name:
        return ValueError(f"the kernel {kernel} requires: {wanted}")
    if refusal.dimensions:
        sizes = ", ".join(_size(size) for size in refusal.shape[: refusal.dimensions])
        wanted = f"a contiguous {'writable ' if refusal.is_written else ''}array of {wanted} with shape ({sizes})"
    found = _described(arguments[place]) if place < len(arguments) else "nothing"
    error = ValueError if refusal.is_size else TypeError
    return error(f"the kernel {kernel} takes {name} (argument {place + 1}) as {wanted}; found {found}")


def _size(declared: int) -> str:
    if declared >= FREE // 2:
        return str(declared)
    return f"at least {declared - FREE}" if declared > FREE else "any"


def _described(argument: Any) -> str:
    if not isinstance(argument, ndarray):
        return type(argument).__name__
    flags = argument.flags
    words = [word for word, holds in (("read-only", not flags.writeable), ("not contiguous", not flags.c_contiguous),
                                      ("not aligned", not flags.aligned)) if holds]  # fmt: skip
    return ", ".join([f"{argument.dtype} with shape {argument.shape}", *words])


@cache
def _library() -> ctypes.CDLL:
    path = _path()
    if "t" in sys.abiflags:
        raise SourceError(
            "this is a free-threaded build of Python, which anon does not support: its threads rely on the interpreter "
            "lock. Run it with the ordinary build of the same version"
        )
    if not path.exists():
        raise SourceError(
            "the compiled kernels of anon are missing: this copy of the package was not installed. pip compiles them: "
            "pip install anon-engine, or pip install -e . in a clone"
        )
    library = ctypes.CDLL(str(path))
    _verify_layout(library)
    return library


def _verify_layout(library: ctypes.CDLL) -> None:
    """Refuse a numpy whose array objects the library does not read correctly."""
    read_correctly = library.kernels_read_correctly
    read_correctly.argtypes = ctypes.py_object, *[ctypes.c_int64] * 3, ctypes.POINTER(ctypes.c_int64)
    read_only = np.zeros(4, np.int8)
    read_only.flags.writeable = False
    for array in (np.zeros((3, 5), np.uint16), np.zeros(7)[::2], read_only, np.zeros((2, 3, 4))):
        data, shape = array.__array_interface__["data"][0], (ctypes.c_int64 * array.ndim)(*array.shape)
        if not read_correctly(array, data, array.ndim, array.flags.num, shape):
            raise SourceError(
                f"the compiled kernels of anon cannot read the arrays of numpy {np.__version__}: install numpy 2"
            )


def _path() -> Path:
    """Return the library for this processor: the one with wide vectors where it exists and the processor has them."""
    wide = FOLDER / "kernels-avx2.so"
    return wide if wide.exists() and _has_wide_vectors() else FOLDER / "kernels.so"


def _has_wide_vectors() -> bool:
    try:
        facts = CPU.read_text(errors="replace")
    except OSError:
        return False
    flags = next((line.split() for line in facts.splitlines() if line.startswith("flags")), [])
    return set(flags) >= WIDE
