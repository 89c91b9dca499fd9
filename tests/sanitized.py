"""Run tests with kernels that check every array access: `make sanitize`, or `python -m tests.sanitized [TESTS]`.

The kernels are compiled as C++ (kernels_checked.h) with the address and undefined behavior sanitizers, once for every
processor and once with wide vectors. Each library stands in a copy of the package that precedes the installed one, so
that processes which tests start use it too. An access outside an array ends the process with the function, the line,
the array and the index. Needs g++."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import hatch_build

from anon import compiled

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "sanitized"
FLAGS = (
    "-x", "c++", "-std=gnu++17", "-DANON_BOUNDS", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g",
    "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra",
    "-Wno-ignored-attributes",
)  # fmt: skip


def compile_checked(library: Path, sources: list[Path], flags: tuple[str, ...] = ()) -> None:
    """Compile kernels that check every array access into a library."""
    include = f"-I{hatch_build.PACKAGE}"
    subprocess.run(["g++", *FLAGS, *flags, include, *map(str, sources), "-lm", "-o", str(library)], check=True)


def environment(packages: Path | None = None) -> dict[str, str]:
    """Return the environment of a process that loads such a library."""
    names = ("libasan.so", "libstdc++.so")  # DuckDB throws exceptions, which libasan forwards to libstdc++
    found = [subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip() for name in names]
    options = "detect_leaks=0:verify_asan_link_order=0:handle_segv=0:detect_stack_use_after_return=0"
    path = {"PYTHONPATH": str(packages)} if packages else {}
    return os.environ | {"LD_PRELOAD": " ".join(found), "ASAN_OPTIONS": options} | path


def run_tests(variant: str, tests: list[str]) -> int:
    """Run tests on the checked kernels of one kind of processor; return the exit code."""
    packages = FOLDER / Path(variant).stem
    shutil.rmtree(packages, ignore_errors=True)
    shutil.copytree(hatch_build.PACKAGE, packages / "anon", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    sources = sorted((packages / "anon").rglob("*.c"))
    compile_checked(packages / "anon" / "kernels.so", sources, hatch_build.VARIANTS[variant])
    command = [sys.executable, "-m", "pytest", *(tests or [str(ROOT / "tests")])]
    return subprocess.run(command, check=False, env=environment(packages), cwd=ROOT).returncode


def main() -> None:
    usable = [name for name in hatch_build.VARIANTS if "avx2" not in name or compiled._has_wide_vectors()]
    failed = [name for name in usable if run_tests(name, sys.argv[1:])]
    if failed:
        raise SystemExit(f"failed with the checked kernels of {', '.join(failed)}")


if __name__ == "__main__":
    main()
