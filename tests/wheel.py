"""Check the wheels in dist/ (`make wheel-test` builds them first; it needs the package index).

Each has a platform tag that auditwheel confirms, and libraries for its processor, of which the ELF header is read. The
one for this machine is installed with nothing but its own dependencies into an empty environment away from the sources,
and run over a small extract."""

from __future__ import annotations

import platform
import struct
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
ROWS = "20000"
MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of an ELF header
LIBRARIES = {"x86_64": {"anon/kernels.so", "anon/kernels-avx2.so"}, "aarch64": {"anon/kernels.so"}}


def main() -> None:
    wheels = {machine: the_wheel(machine) for machine in MACHINES}
    for machine, wheel in wheels.items():
        check_tag(wheel)
        check_libraries(wheel, machine)
    run_in_an_empty_environment(wheels[platform.machine()])
    print("the wheels have correct tags; the native one installs into an empty environment and runs the demo's config")


def the_wheel(machine: str) -> Path:
    (wheel,) = DIST.glob(f"anon_engine-*-py3-none-*_{machine}.whl")
    return wheel


def check_tag(wheel: Path) -> None:
    """Fail unless the libraries run on the platform that the wheel's name promises."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    promised = wheel.stem.rpartition("-")[2]
    if f'consistent with the following platform tag: "{promised}"' not in " ".join(report.split()):
        raise SystemExit(f"{wheel.name} is not for {promised}:\n{report}")


def check_libraries(wheel: Path, machine: str) -> None:
    """Fail unless the wheel has the libraries of a processor, compiled for it, and no C code."""
    with ZipFile(wheel) as files:
        names = [name for name in files.namelist() if name.endswith((".so", ".c", ".h"))]
        found = {name: files.read(name) for name in names}
    if found.keys() != LIBRARIES[machine]:
        raise SystemExit(f"{wheel.name} has {sorted(found)}, not {sorted(LIBRARIES[machine])}")
    for name, content in found.items():
        magic, bits, order, compiled_for = struct.unpack_from("<4sBB12xH", content)
        if (magic, bits, order, compiled_for) != (b"\x7fELF", 2, 1, MACHINES[machine]):
            raise SystemExit(f"{name} of {wheel.name} is not a library for {machine}")


def run_in_an_empty_environment(wheel: Path) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "venv", folder / "venv")
        run(folder / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        anon = folder / "venv/bin/anon"
        run(anon, "--version", cwd=folder)
        config = folder / "house" / "configs" / "hospital.yaml"
        config.parent.mkdir(parents=True)
        config.write_text((ROOT / "configs" / "hospital.yaml").read_text(encoding="utf-8"), encoding="utf-8")
        (folder / "house" / "hierarchies").symlink_to(ROOT / "hierarchies")
        extract = folder / "house" / "demo" / "out" / "extract.parquet"
        run(sys.executable, ROOT / "demo" / "hospital.py", "--rows", ROWS, "--out", extract)
        run(anon, "run", config, cwd=folder)
        run(folder / "venv/bin/pip", "check")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


if __name__ == "__main__":
    main()
