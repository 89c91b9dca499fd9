"""Make new hierarchy files, which `anon hierarchy build` writes and a config then names. The lists that they are made
from hold data values, so messages about them give line numbers and never an entry."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from anon.core.text import text
from anon.errors import ConfigError, Problem, ResourceError
from anon.hierarchy.builders import cell_paths, masked
from anon.hierarchy.csv_files import read_records, read_text, refuse
from anon.hierarchy.files import HierarchyTable, checked, rooted
from anon.hierarchy.intervals import IntervalCells
from anon.hierarchy.label_levels import ROOT, Row

MOST_NUMBERS = 1_000_000  # far above the number of values that a column with a hierarchy may have
LIST = "LIST"  # the argument that names the list


def interval_rows(
    low: int, high: int, widths: Sequence[int], origin: int = 0, top: int | None = None, bottom: int | None = None
) -> list[Row]:
    """Return rows for the whole numbers from low to high, with one level per width, as the `intervals` builder makes
    them."""
    if low > high or high - low >= MOST_NUMBERS:
        expected = f"--from not above --to, and at most {MOST_NUMBERS:,} numbers"
        raise ConfigError.at("--from and --to", f"{low} and {high}", expected)
    if not widths or widths[0] <= 0 or any(wide <= narrow or wide % narrow for narrow, wide in pairwise(widths)):
        found = ", ".join(map(str, widths)) or "no width"
        raise ConfigError.at("--width", found, "widths above 0, each dividing the next")
    if top is not None and bottom is not None and bottom >= top:
        raise ConfigError.at("--bottom and --top", f"{bottom} and {top}", "--bottom below --top")
    values = range(low, high + 1)
    labels = cell_paths(IntervalCells.from_numbers(widths, origin, top, bottom, whole=True), values, "--width")
    return [(text(value), *above) for value, above in zip(values, labels)]


def prefix_rows(path: Path) -> list[Row]:
    """Return rows for the values of a text file, one per line (blank lines and repeats are skipped), that mask one more
    character at each level: `02139`, `0213*`, ..., `*`."""
    lines: dict[str, int] = {}
    for number, line in enumerate(io.StringIO(read_text(path, LIST), newline=None), 1):
        if value := line.rstrip("\n"):
            lines.setdefault(value, number)
    width = max(map(len, lines), default=0)
    rows = [(value, *masked(value, width)) for value in lines]
    return checked(HierarchyTable.from_list(path.name, LIST, list(lines.values()), rows)).rows()


def parent_rows(path: Path) -> list[Row]:
    """Return rows from a CSV file of pairs `value,parent`, in any order and without a header. A value that is not a
    parent is a leaf; a leaf with fewer ancestors than others is repeated at the levels that it lacks."""
    pairs = _pairs(path)
    parent = _with_one_top({value: above for _, value, above in pairs})
    inner = set(parent.values())
    chains = {value: _chain(value, parent, f"{path.name} line {line}") for line, value, _ in pairs}
    depth = max(map(len, chains.values()), default=0)
    leaves = [(line, chains[value]) for line, value, _ in pairs if value not in inner]
    rows = [(*[chain[0]] * (depth - len(chain)), *chain) for _, chain in leaves]
    return rooted(checked(HierarchyTable.from_list(path.name, LIST, [line for line, _ in leaves], rows))).rows()


def _pairs(path: Path) -> list[tuple[int, str, str]]:
    """Return line, value and parent of each pair."""
    first: dict[str, int] = {}
    problems = []
    records = list(read_records(path, LIST))
    for line, fields in records:
        if len(fields) != 2 or not all(fields):
            found = f"{path.name} line {line}: {sum(map(bool, fields))} names"
            problems.append(Problem(LIST, found, "a value and its parent"))
        elif first.setdefault(fields[0], line) != line:
            found = f"{path.name} line {line}: the value of line {first[fields[0]]} again"
            problems.append(Problem(LIST, found, "every value once"))
    refuse(problems)
    return [(line, value, above) for line, (value, above) in records]


def _with_one_top(parent: dict[str, str]) -> dict[str, str]:
    """Return the same parents, with `*` above the tops if there are several."""
    tops = dict.fromkeys(above for above in parent.values() if above not in parent)
    return parent if len(tops) < 2 else {**parent, **{top: ROOT for top in tops if top != ROOT}}


def _chain(value: str, parent: dict[str, str], place: str) -> Row:
    """Return a value and its ancestors, from the bottom up."""
    chain = [value]
    while chain[-1] in parent:
        chain.append(parent[chain[-1]])
        if len(chain) > len(parent) + 1:
            found = f"{place}: a value whose ancestors form a cycle"
            raise ConfigError.at(LIST, found, "parents that end at a top")
    return tuple(chain)


def as_csv(rows: Iterable[Row]) -> Iterator[str]:
    """Return the lines of a hierarchy file: separated by `;`, quoted where needed."""
    return (";".join(map(_quoted, row)) + "\n" for row in rows)


def write_rows(rows: Iterable[Row], path: Path, overwrite: bool = False) -> None:
    """Write rows as a hierarchy file in UTF-8; replace an existing file only with `overwrite`."""
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8", newline="") as file:
            file.writelines(as_csv(rows))
    except FileExistsError:
        raise ConfigError.at("--out", f"{path}, which exists", "a new file", "or say --overwrite") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise ResourceError(f"writing {path}: no space left on the disk") from error
        raise ConfigError.at("--out", f"{path}: {error.strerror}", "a file that can be written") from None


def _quoted(name: str) -> str:
    """Return a field with quotes where needed. The csv module of Python 3.11 does not quote a lone carriage return, and
    an unquoted byte order mark would be lost."""
    return '"' + name.replace('"', '""') + '"' if not name or any(c in name for c in ';,"\r\n\ufeff') else name
