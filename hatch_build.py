"""Compile the library of kernels when the package is installed or a wheel is built: every C file of the package, with
the C compiler of the machine (`CC` or `cc`), or without one with `ziglang` from the package index.

`ANON_TARGET=x86_64` or `aarch64` builds a wheel for any Linux of that processor since glibc 2.17, with ziglang, on any
machine (`make wheels`)."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent / "engine" / "anon"
# Sums of products are rounded twice everywhere, so that figures are the same on all processors.
FLAGS = (
    "-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno", "-Wall",
    "-Wextra", "-g0",
)  # fmt: skip
LINK = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-lm", "-Wl,-z,defs")  # after the files
AVX2 = ("-mavx2", "-mbmi", "-mbmi2", "-mpopcnt", "-mlzcnt")
GLIBC = 2, 17  # the oldest that wheels for other machines run on
TARGETS = ("x86_64", "aarch64")
TARGET = os.environ.get("ANON_TARGET", "")  # "": this machine
VARIANTS: dict[str, tuple[str, ...]] = {"kernels.so": ()}
if (TARGET or platform.machine()) in ("x86_64", "AMD64"):
    VARIANTS["kernels-avx2.so"] = AVX2


def compiler() -> list[str]:
    """Return the command of a C compiler."""
    zig = [sys.executable, "-m", "ziglang", "cc"]
    if TARGET:
        return [*zig, "-target", f"{TARGET}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"]
    named = shlex.split(os.environ.get("CC", "")) or ["cc"]
    return named if shutil.which(named[0]) else zig


def build(into: Path = PACKAGE, sources: tuple[Path, ...] = ()) -> list[Path]:
    """Compile the kernels of some files, or all of the package, once for each kind of processor, in parallel. Each
    library appears in one step."""
    files = [str(path) for path in sources or sorted(PACKAGE.rglob("*.c"))]
    made = {into / name: (into / f"{name}.part", extra) for name, extra in VARIANTS.items()}
    running = [
        subprocess.Popen([*compiler(), *FLAGS, *extra, f"-I{PACKAGE}", *files, *LINK, "-o", str(part)])
        for part, extra in made.values()
    ]
    ended = [process.wait() for process in running]
    if any(ended):
        raise SystemExit("the kernels of anon cannot be compiled, see the compiler's messages; CC selects another one")
    for path, (part, _) in made.items():
        part.rename(path)
    return list(made)


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # started by hand
    pass
else:

    class Kernels(BuildHookInterface):  # type: ignore[type-arg]
        """The hook that hatchling calls."""

        PLUGIN_NAME = "custom"

        def dependencies(self) -> list[str]:
            return ["ziglang>=0.15,<1"] if "ziglang" in compiler() else []

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if TARGET and TARGET not in TARGETS:
                raise SystemExit(f"ANON_TARGET: found {TARGET!r}; expected one of {', '.join(TARGETS)}")
            if self.target_name == "wheel":
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{_platform()}"
                if version == "editable":  # loads them from where the sources are
                    build()
                    return
                self.made = tempfile.TemporaryDirectory()  # the sources may belong to somebody else
                libraries = build(Path(self.made.name))
                build_data["force_include"] |= {str(path): f"anon/{path.name}" for path in libraries}

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            if hasattr(self, "made"):
                self.made.cleanup()


def _platform() -> str:
    """Return the platform that a wheel is for: the oldest glibc for ANON_TARGET, this machine's otherwise."""
    if TARGET:
        return f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{TARGET}"
    from packaging.tags import platform_tags

    return next(iter(platform_tags()))


if __name__ == "__main__":
    build()
