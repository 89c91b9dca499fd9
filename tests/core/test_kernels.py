"""Kernels refuse arguments of another type or size than their C code declares, before they access any; and the library
is refused where it would read wrong memory."""

from __future__ import annotations

import ctypes
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hatch_build
import numpy as np
import pyarrow as pa
import pytest

from anon.core import kernels as compiled
from anon.core.kernels import kernel
from anon.cube.ranges import as_numbers
from anon.errors import SourceError
from tests import sanitized


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def zeros(*shape: int, of: Any = np.int64) -> Any:
    return np.zeros(shape, of)


COUNTED = {"numbers": ints(0, 1, 2, 3), "low": 0, "counts": zeros(4, of=np.uint32)}


def test_a_kernel_takes_what_it_declares() -> None:
    assert kernel("cube_count_values")(*COUNTED.values()) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"numbers": np.arange(4, dtype=np.int16)}, "numbers (argument 1) as a contiguous array of int64_t"),
        ({"numbers": np.arange(4, dtype=">i8")}, "found >i8 with shape (4,)"),
        ({"numbers": np.arange(4).astype("m8[D]")}, "numbers"),
        ({"numbers": np.arange(8)[::2]}, "not contiguous"),
        ({"numbers": np.frombuffer(bytes(33), np.int8)[1:].view(np.int64)}, "not aligned"),
        ({"numbers": np.arange(4).reshape(2, 2)}, "found int64 with shape (2, 2)"),
        ({"numbers": 5}, "found int"),
        ({"counts": np.frombuffer(bytes(16), np.uint32)}, "a contiguous writable array of uint32_t"),
        ({"low": 0.5}, "low (argument 2) as an integer; found float"),
        ({"low": None}, "not NoneType"),
        ({"low": "0"}, "not str"),
    ],
)
def test_arguments_of_another_type_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError) as caught:
        kernel("cube_count_values")(*(COUNTED | wrong).values())
    assert words in str(caught.value)


def test_missing_and_surplus_arguments_are_refused() -> None:
    count = kernel("cube_count_values")
    with pytest.raises(TypeError, match=r"counts \(argument 3\).*found nothing"):
        count(*list(COUNTED.values())[:2])
    with pytest.raises(ValueError, match="no further arguments"):
        count(*COUNTED.values(), 1)


def test_arrays_that_came_from_another_process_are_taken() -> None:
    """Their types equal those of numpy without being the same objects."""
    import pickle

    numbers = pickle.loads(pickle.dumps(COUNTED["numbers"]))
    assert kernel("cube_count_values")(numbers, 0, zeros(4, of=np.uint32))
    assert kernel("cube_count_values")(np.arange(4, dtype=np.longlong), 0, zeros(4, of=np.uint32))


def test_numbers_of_a_table_at_odd_addresses_are_brought_into_line() -> None:
    whole = np.arange(4, dtype=np.int64)
    odd = pa.Array.from_buffers(pa.int64(), 4, [None, pa.py_buffer(b"-" + whole.tobytes())[1:]])
    assert not odd.to_numpy().flags.aligned
    counts = zeros(4, of=np.uint32)
    assert kernel("cube_count_values")(as_numbers(odd), 0, counts)
    assert counts.tolist() == [1, 1, 1, 1]


CODES = zeros(2, 5, of=np.uint16)
GROUPS = {"n": ints(2, 3), "start": ints(0, 1, 3), "value": ints(0, 0, 1), "count": ints(2, 1, 2)}
SLOTS = {"slot_start": ints(0, 1, 1), "of": ints(0), "knowledge": ints(1, 0, 0, 0).reshape(1, 4)}
RANGES = {"start": ints(0, 3), "stop": ints(3, 5), "column": ints(0, 1)}
CUTS = {"cut_start": ints(0, 1, 2), "cut": ints(1, 1)}
BITS = {"low": zeros(4, 1, of=np.uint16), "high": zeros(4, 1, of=np.uint16)}

CALLS: dict[str, dict[str, Any]] = {
    "search_step": {
        "codes": CODES, "column": zeros(3, of=np.uint8), "edge": zeros(3, of=np.uint32),
        "child": zeros(3, of=np.uint32), "node": zeros(5, of=np.uint32),
    },
    "recoding_walk": {
        "codes": CODES, "column": ints(0, -1, -1), "cut_start": ints(0, 1, 1, 1), "cut": ints(1),
        "child": ints(1, 0, 1), "peeled": np.zeros(3, bool), "node": zeros(5, of=np.uint32),
    },
    "search_part_counts": {"codes": CODES, "people": -1, **RANGES, **CUTS, "value": 1, "counts": zeros(4, 2)},
    "search_route": {
        "codes": CODES.copy(), **RANGES, **CUTS, "peeled": np.zeros(2, bool), "run": 8, **BITS,
        "over": zeros(1, of=np.uint8), "aside": zeros(11, of=np.uint16), "part_of": zeros(0, of=np.uint16),
        "ends": zeros(3),
    },
    "skyline_fold": {
        "kind": 0, **GROUPS, "first": 0, **SLOTS, "asked": ints(0), "depth": ints(1), "memo": zeros(0, 8),
        "values": zeros(5, of=np.float64), "witness": zeros(5, 4), "top": zeros(2), "others": zeros(1),
        "integers": zeros(4), "edge": zeros(1), "named": zeros(1), "share": zeros(1, of=np.float64),
    },
    "ck_fold": {
        **GROUPS, "owner": ints(0, 0), "k": 1, "values": zeros(1, 3, of=np.float64), "witness": zeros(0, 3, 4),
        "first": 0, "integers": zeros(4), "chance": zeros(3, of=np.float64), "product": zeros(3, 3, of=np.float64),
    },
    "counts_occurring": {
        "table": ints(2, 0, 0, 3).reshape(2, 2), "start": ints(0, 1, 2), "value": zeros(3), "count": zeros(3),
    },
    "dealing_deal": {
        "order": ints(1, 0), "people": ints(2, 2), "leaf": ints(0, 2), "size": 2, "out_entry": zeros(5),
        "out_group": zeros(5), "out_people": zeros(5),
    },
    "lattice_collapse": {"words": zeros(1, 3, of=np.uint64), "people": zeros(3, of=np.uint32)},
}  # fmt: skip
SIZES: list[tuple[str, str, Any]] = [
    ("search_step", "edge", zeros(2, of=np.uint32)),
    ("search_step", "node", zeros(4, of=np.uint32)),
    ("recoding_walk", "cut_start", ints(0, 1, 1)),
    ("recoding_walk", "cut", ints()),
    ("recoding_walk", "child", ints(1, 0)),
    ("recoding_walk", "peeled", np.zeros(2, bool)),
    ("search_part_counts", "start", ints(0)),
    ("search_part_counts", "stop", ints(3, 6)),  # beyond the last record
    ("search_part_counts", "column", ints(0, 2)),  # beyond the last column
    ("search_part_counts", "cut_start", ints(0, 1, 3)),  # beyond the last cut
    ("search_part_counts", "counts", zeros(3, 2)),
    ("search_part_counts", "people", 1),  # without a column for the other half
    ("search_part_counts", "value", 2),
    ("search_route", "aside", zeros(10, of=np.uint16)),
    ("search_route", "over", zeros(0, of=np.uint8)),
    ("search_route", "high", zeros(3, 1, of=np.uint16)),
    ("search_route", "run", 12),
    ("search_route", "peeled", np.zeros(1, bool)),
    ("skyline_fold", "kind", 3),
    ("skyline_fold", "start", ints(0, 1)),
    ("skyline_fold", "value", ints(0, 0)),
    ("skyline_fold", "knowledge", ints(2, 0, 0, 0).reshape(1, 4)),  # scratch space for one other value
    ("skyline_fold", "memo", zeros(3, 8)),
    ("skyline_fold", "memo", zeros(2, 5)),
    ("skyline_fold", "witness", zeros(5, 3)),
    ("skyline_fold", "share", zeros(2, of=np.float64)),
    ("ck_fold", "k", 2),
    ("ck_fold", "owner", ints(0)),
    ("counts_occurring", "value", zeros(2)),
    ("dealing_deal", "out_entry", zeros(4)),
    ("dealing_deal", "size", 0),
    ("lattice_collapse", "people", zeros(4, of=np.uint32)),
]


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_takes_arrays_of_the_sizes_it_declares(name: str) -> None:
    kernel(name)(*CALLS[name].values())


@pytest.mark.parametrize(("name", "argument", "wrong"), SIZES)
def test_arrays_of_another_size_are_refused(name: str, argument: str, wrong: Any) -> None:
    arguments = {of: each.copy() if isinstance(each, np.ndarray) else each for of, each in CALLS[name].items()}
    before = {of: each.copy() for of, each in arguments.items() if isinstance(each, np.ndarray)}
    with pytest.raises(ValueError, match=name):
        kernel(name)(*(arguments | {argument: wrong}).values())
    assert all((arguments[of] == each).all() for of, each in before.items()), "it did some work before"


def test_the_message_names_the_sizes() -> None:
    arguments = CALLS["search_route"] | {"aside": zeros(10, of=np.uint16)}
    with pytest.raises(ValueError, match="search_route") as caught:
        kernel("search_route")(*arguments.values())
    assert str(caught.value) == (
        "the kernel search_route takes aside (argument 12) as a contiguous writable array of uint16_t "
        "with shape (at least 11); found uint16 with shape (10,)"
    )


READ_ONLY = zeros(3)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "change",
    [
        lambda data, dimensions, flags, shape: (data + 8, dimensions, flags, shape),
        lambda data, dimensions, flags, shape: (data, dimensions + 1, flags, shape),
        lambda data, dimensions, flags, shape: (data, dimensions, flags ^ 0x400, shape),
        lambda data, dimensions, flags, shape: (data, dimensions, flags, [*shape[:-1], shape[-1] + 1]),
    ],
    ids=["data", "dimensions", "flags", "shape"],
)
@pytest.mark.parametrize("array", [zeros(2, 3), zeros(8)[::2], READ_ONLY], ids=["matrix", "gaps", "read-only"])
def test_a_field_that_is_read_wrong_is_noticed(array: Any, change: Callable[..., Any]) -> None:
    read_correctly = compiled._library().kernels_read_correctly
    facts = array.__array_interface__["data"][0], array.ndim, array.flags.num, list(array.shape)
    for given, correct in ((facts, True), (change(*facts), False)):
        data, dimensions, flags, shape = given
        assert bool(read_correctly(array, data, dimensions, flags, (ctypes.c_int64 * 4)(*shape))) == correct


class OtherLayout:
    """A library that reads wrong fields of arrays."""

    @staticmethod
    def kernels_read_correctly(*_: Any) -> int:
        return 0


def test_a_numpy_with_other_array_objects_is_refused() -> None:
    with pytest.raises(SourceError, match=f"numpy {np.__version__}"):
        compiled._verify_layout(OtherLayout)  # type: ignore[arg-type]


def test_a_free_threaded_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "abiflags", "t")
    with pytest.raises(SourceError, match="free-threaded"):
        compiled._library.__wrapped__()


def test_a_copy_without_its_library_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiled, "_path", lambda: tmp_path / "kernels.so")
    with pytest.raises(SourceError, match="pip install"):
        compiled._library.__wrapped__()


def test_a_library_that_is_older_than_the_package_says_what_to_do() -> None:
    with pytest.raises(SourceError, match=r"brand_new is missing.*pip install"):
        kernel("brand_new")


@pytest.mark.parametrize(
    ("flags", "name"), [("fpu avx2 bmi1 bmi2 popcnt abm", "kernels-avx2.so"), ("fpu", "kernels.so")]
)
def test_the_library_fits_the_processor(flags: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    for library in ("kernels.so", "kernels-avx2.so"):
        (tmp_path / library).touch()
    monkeypatch.setattr(compiled, "CPU", facts)
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    assert compiled._path().name == name


def test_a_symbol_that_no_library_defines_stops_the_build(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "kernels.c"
    body = "void nowhere(void);\nKERNEL(lost) { nowhere(); (void)call; return 0; }\n"
    source.write_text(f'#include "core/kernels.h"\n{body}')
    with pytest.raises(SystemExit, match="cannot be compiled"):
        hatch_build.build(tmp_path, (source,))
    assert "nowhere" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("target", "libraries"), [("x86_64", ["kernels.so", "kernels-avx2.so"]), ("aarch64", ["kernels.so"])]
)
def test_a_wheel_for_another_machine_is_compiled_for_the_oldest_glibc_that_its_tag_names(
    target: str, libraries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANON_TARGET", target)
    build: Any = runpy.run_path(hatch_build.__file__)
    assert list(build["VARIANTS"]) == libraries
    assert build["compiler"]()[1:] == ["-m", "ziglang", "cc", "-target", f"{target}-linux-gnu.2.17"]
    assert build["_platform"]() == f"manylinux_2_17_{target}"


FAULTY = """
#include "core/kernels.h"
static int64_t sum_of(ARRAY(const int64_t) numbers, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += numbers[i];
    return sum;
}
KERNEL(faulty_sum)
{
    IN(int64_t, numbers, ANY);
    INTEGER(from);
    INTEGER(to);
    return sum_of(numbers + 1, from - 1, to - 1);
}
"""
CALL_FAULTY = """
import ctypes, sys
import numpy as np
from anon.core.kernels import kernel
from anon.cube.ranges import as_numbers
print(kernel("faulty_sum", ctypes.CDLL(sys.argv[1]))(np.ones(8, np.int64), *map(int, sys.argv[2:])))
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_checked_kernels_stop_at_an_access_outside_an_array(tmp_path: Path) -> None:
    source, library = tmp_path / "kernels.c", tmp_path / "kernels.so"
    source.write_text(FAULTY)
    sanitized.compile_checked(library, [source])
    for bounds, answer in (((0, 8), None), ((0, 9), "numbers[8]"), ((-1, 3), "numbers[-1]")):
        command = [sys.executable, "-c", CALL_FAULTY, str(library), *map(str, bounds)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if answer is None:
            assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
        else:
            assert done.returncode != 0
            assert f"sum_of, line 7: {answer} is outside of its 8 numbers" in done.stderr
