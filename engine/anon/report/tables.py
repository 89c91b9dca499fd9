"""Build the tables and lists of the page as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LONG = 40  # characters of a first column that leave no room for others on a phone


def table(label: str, head: list[str], rows: Iterable[Iterable[Any]], text: int = 1) -> dict[str, Any]:
    """Return a table whose first `text` columns are text and whose other columns are numbers. The cells of a wide table
    are stacked on a narrow screen."""
    cells = [[str(cell) for cell in row] for row in rows]
    long = max((len(row[0]) for row in cells), default=0)
    return {"label": label, "head": head, "rows": cells, "text": text, "wide": len(head) > 4 or long > LONG}


def few(names: list[str], most: int = 4) -> str:
    """Return the first of some names, and the number of the others."""
    more = len(names) - most
    return f"{', '.join(names[:most])} and {more:,} more" if more > 0 else ", ".join(names)
