"""The compiled loops are called with what their C code takes: Python's declarations are held against the C files, and
arguments of another kind are refused before any machine code sees them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import anon
from anon import compiled
from anon.compiled import Array
from anon.errors import SourceError

ROOT = Path(anon.__file__).parent
C_TYPES = {"bool": "bool", "float": "float32", "double": "float64"}
PLAIN = {"int64_t": int, "double": float, "void": None}


@dataclass(frozen=True)
class InC:
    """A loop as its C code has it: the kinds of its arguments, and what it returns."""

    kinds: tuple[Any, ...]
    returns: Any


def without_macros(source: str) -> str:
    """The source with the loops that it makes several times from one text written out."""
    source = source.replace("\\\n", "\n")
    for name, names, body in re.findall(r"#define ([A-Z_]+)\(([^)]*)\)(.*?\n\s*\}\n)(?=\n\w)", source, re.DOTALL):
        for given in re.findall(rf"^{name}\(([^)]*)\)", source, re.MULTILINE):
            text = body
            for one, other in zip(names.split(", "), given.split(", ")):
                text = re.sub(rf"\b{one}\b", other, text)
            source += text
    return re.sub(r"^#define.*?\n\n", "", source, flags=re.MULTILINE | re.DOTALL)


def dtype(c_type: str) -> np.dtype[Any]:
    return np.dtype(C_TYPES.get(c_type) or c_type.removesuffix("_t"))


def loops_in(source: str) -> Iterator[tuple[str, InC]]:
    for returns, name, given, body in re.findall(
        r"LOOP (\w+) (\w+)\(([^)]*)\)\s*\{(.*?)(?=\n *LOOP|\Z)", without_macros(source), re.DOTALL
    ):
        arrays = {of: (way, kind) for way, kind, of in re.findall(r"\b(IN|OUT)\((\w+), (\w+)\);", body)}
        kinds: list[Any] = []
        for argument in re.split(r",\s*", given):
            c_type, _, of = argument.rpartition(" ")
            if c_type == "const Array":
                way, kind = arrays[of.removeprefix("*of_")]
                kinds.append((dtype(kind), way == "OUT"))
            else:
                kinds.append(PLAIN[c_type])
        yield name, InC(tuple(kinds), PLAIN[returns])


def declared_in(module: ModuleType) -> dict[str, InC]:
    found = {}
    for each in vars(module).values():
        if hasattr(each, "kinds"):
            kinds = tuple((kind.type, kind.written) if isinstance(kind, Array) else kind for kind in each.kinds)
            found[each.__name__] = InC(kinds, each.returns)
    return found


FILES = sorted(ROOT.rglob("*.c"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_loops_are_declared_as_they_are_written(path: Path) -> None:
    module = importlib.import_module(".".join(["anon", *path.relative_to(ROOT).with_suffix("").parts]))
    assert declared_in(module) == dict(loops_in(path.read_text()))


def test_the_files_of_loops_are_found() -> None:
    names = [name for path in FILES for name, _ in loops_in(path.read_text())]
    assert len(FILES) > 10 and len(names) > 40 and "search_walk_narrow" in names
    assert len(names) == len(set(names))


GOOD = {"numbers": np.arange(4), "low": 0, "counts": np.zeros(4, np.uint32)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"numbers": np.arange(4, dtype=np.int16)},
        {"numbers": np.arange(8)[::2]},
        {"numbers": np.arange(4).reshape(2, 2)},
        {"counts": np.frombuffer(bytes(16), np.uint32)},
    ],
    ids=["other type", "not contiguous", "two dimensions", "read only"],
)
def test_arrays_that_a_loop_does_not_take_are_refused(wrong: dict[str, Any]) -> None:
    from anon.cube.kernels import count_values

    assert count_values(*GOOD.values())
    with pytest.raises(TypeError, match="cube_count_values"):
        count_values(*(GOOD | wrong).values())


def test_a_copy_without_its_library_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiled, "_path", lambda: tmp_path / "loops.so")
    with pytest.raises(SourceError, match="pip install"):
        compiled._library.__wrapped__()


@pytest.mark.parametrize(("flags", "name"), [("fpu avx2 bmi1 bmi2 popcnt abm", "loops-avx2.so"), ("fpu", "loops.so")])
def test_the_library_fits_the_processor(
    flags: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    for library in ("loops.so", "loops-avx2.so"):
        (tmp_path / library).touch()
    monkeypatch.setattr(compiled, "CPU", told)
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    assert compiled._path().name == name
