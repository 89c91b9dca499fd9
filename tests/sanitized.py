"""Run tests with kernels that check every array access: `make sanitize`, or `python -m tests.sanitized [TESTS]`.

The kernels are compiled as C++ (kernels_checked.h) with the undefined behavior sanitizer, once for every processor and
once with wide vectors. All tests run on each library; those of searches, criteria and releases also with the address
sanitizer, whose memory would be taken for the engine's by tests that measure it. Each library stands in a copy of the
package that precedes the installed one, so that processes which tests start use it too. An access outside an array ends
the process with the function, the line, the array and the index. Needs g++."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import hatch_build

from anon.core import kernels as compiled

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "sanitized"
FLAGS = (
    "-x", "c++", "-std=gnu++17", "-DANON_BOUNDS", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-g", "-O2",
    "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra",
    "-Wno-ignored-attributes",
)  # fmt: skip
ADDRESS = "-fsanitize=address"
ALL = ("-n", "auto", "--dist", "loadgroup", "tests")
OF_KERNELS = (
    "test_kernels", "test_search_kernels", "test_partition", "test_lattice_places", "test_every_criterion",
    "test_bucketized_methods", "test_utility", "test_skylines", "test_skyline_memo", "test_ck_safety", "test_proximity",
    "test_r_robustness", "test_merge", "test_colour",
)  # fmt: skip


def compile_checked(library: Path, sources: list[Path], *flags: str) -> None:
    """Compile kernels that check every array access into a library."""
    include = f"-I{hatch_build.PACKAGE}"
    subprocess.run(["g++", *FLAGS, *flags, include, *map(str, sources), "-lm", "-o", str(library)], check=True)


def with_address_sanitizer() -> dict[str, str]:
    """Return the variables of a process that loads a library with the address sanitizer."""
    names = ("libasan.so", "libstdc++.so")  # DuckDB throws exceptions, which libasan forwards to libstdc++
    found = [subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip() for name in names]
    return {"LD_PRELOAD": " ".join(found), "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:handle_segv=0"}


def run_tests(variant: str, tests: tuple[str, ...], address: bool = False) -> bool:
    """Run tests on the checked kernels of one kind of processor; return whether they pass."""
    packages = FOLDER / (Path(variant).stem + ("-address" if address else ""))
    shutil.rmtree(packages, ignore_errors=True)
    shutil.copytree(hatch_build.PACKAGE, packages / "anon", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    sources, flags = sorted((packages / "anon").rglob("*.c")), hatch_build.VARIANTS[variant]
    compile_checked(packages / "anon" / "kernels.so", sources, *flags, *([ADDRESS] if address else []))
    variables = {"PYTHONPATH": str(packages)} | (with_address_sanitizer() if address else {})
    command = [sys.executable, "-m", "pytest", *tests]
    return subprocess.run(command, check=False, env=os.environ | variables, cwd=ROOT).returncode == 0


def main() -> None:
    asked = tuple(sys.argv[1:])
    of_kernels = asked or tuple(str(path) for name in OF_KERNELS for path in (ROOT / "tests").rglob(f"{name}.py"))
    usable = [name for name in hatch_build.VARIANTS if "avx2" not in name or compiled._has_wide_vectors()]
    passed = [run_tests(name, *given) for name in usable for given in ((asked or ALL, False), (of_kernels, True))]
    if not all(passed):
        raise SystemExit("tests failed with checked kernels")


if __name__ == "__main__":
    main()
