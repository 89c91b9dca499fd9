"""What only asks for words must answer at once, without the libraries that do the work."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("duckdb", "numba", "numpy", "polars", "pyarrow")

PROBE = """
import sys
from anon.cli import app
try:
    app(sys.argv[1:])
finally:
    print(*[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["schema"],
        ["hierarchy", "--help"],
        ["hierarchy", "test", "--help"],
        ["init", "--help"],
        ["plan", "--help"],
    ],
)
def test_words_need_no_heavy_library(command: list[str]) -> None:
    probe = PROBE.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", probe, *command], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    assert done.stdout


def test_the_probe_sees_a_heavy_library() -> None:
    probe = PROBE.format(heavy=HEAVY).replace("from anon.cli", "import numpy\nfrom anon.cli")
    done = subprocess.run([sys.executable, "-c", probe, "--help"], capture_output=True, text=True, check=True)
    assert done.stderr.split() == ["numpy"]
