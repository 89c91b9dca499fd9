"""The wheel as its users get it: built, installed with nothing but its own dependencies into an empty environment away
from the sources, and run over a small extract. `make wheel-test` runs it; it needs the package index. Outside the way
of the data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
ROWS = "20000"


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
        (wheel,) = folder.glob("anon_engine-*.whl")
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
    print("the wheel builds, installs into an empty environment and runs the demo's config")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


if __name__ == "__main__":
    main()
