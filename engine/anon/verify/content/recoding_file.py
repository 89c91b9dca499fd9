"""Read recoding.json as a head and a list of nodes or of suppressed cells, which grows with the number of groups: anon
writes each entry on its own line, so that the list can be read some lines at a time. The file of an earlier run may
have passed through another program, and is then read as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anon.artifacts.recoding import parse_head

CHUNK = 1_000_000  # bytes that are read at a time
LISTS = ("nodes", "suppressed_cells")


class RecodingFile:
    """A recoding.json. `head`: its content without the list."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole: bytes | None = None  # the list, if the file was read as a whole
        with path.open("rb") as file:
            first = file.readline().rstrip()
        if first.endswith(b"["):
            head: dict[str, Any] = json.loads(first + b"]}")
        else:
            head = json.loads(path.read_bytes())
            listed = head[next(name for name in LISTS if name in head)]
            self.whole = b"\n".join(json.dumps(each).encode() for each in listed)
        self.head = parse_head({name: value for name, value in head.items() if name not in LISTS})

    def chunks(self) -> Iterator[bytes]:
        """Yield the entries of the list as JSON, one per line, some at a time."""
        if self.whole is not None:
            yield from [self.whole] if self.whole else []
            return
        with self.path.open("rb") as file:
            file.readline()
            while text := file.read(CHUNK) + file.readline():
                lines = text.removesuffix(b"]}\n").replace(b",\n", b"\n").strip()
                if lines:
                    yield lines
