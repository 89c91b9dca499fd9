"""A plugin for pytest that runs the compiled loops under a sanitizer, which stops at the first access outside an array:
`make sanitize` builds such a library and names it in LOOPS."""

from __future__ import annotations

import os
from pathlib import Path

from anon import compiled


def pytest_configure() -> None:
    compiled._path = lambda: Path(os.environ["LOOPS"])
