"""Copy the files of a part without the rows of some groups. The roles of the columns in datapackage.json say how a row
shows its group, so that a published column may have any name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon.artifacts.ledger import PublishedPart
from anon.errors import VerificationError
from anon.release.files import write_tables

CELL = re.compile(r'(?:^|,)("[^"]*(?:""[^"]*)*"|[^,"]*)')  # as it is written


class KeptRows:
    """Says which rows of a table of a part stay, file after file. Rows of a bucketized part have the number of the
    group; in a generalized part groups are the runs of equal labels, in the order of their numbers."""

    def __init__(self, part: PublishedPart, gone: set[int], fields: list[dict[str, Any]]) -> None:
        by_role = {role: [f["name"] for f in fields if f["role"] == role] for role in ("group", "count")}
        self.labels = [f["name"] for f in fields if f["role"] == "quasi-identifier"]
        self.group, self.count = (next(iter(names), None) for names in by_role.values())
        self.gone = gone
        self.remaining = [group for group in range(part.groups) if group not in set(part.withdrawn_groups)]
        self.run, self.last = -1, None  # type: int, tuple[Any, ...] | None
        self.left_out = self.removed = 0  # rows that do not stay, and the individuals in them

    @property
    def shown(self) -> list[str]:
        """The columns that show the group of a row, and that of its number of individuals, if there is one."""
        return [*([self.group] if self.group else self.labels), *([self.count] if self.count else [])]

    def stay(self, rows: Iterator[tuple[Any, ...]]) -> list[bool]:
        """Return which rows stay, of which the columns `shown` are given."""
        found = []
        for row in rows:
            shown, people = (row[:-1], int(row[-1])) if self.count else (row, 1)
            stays = (int(shown[0]) if self.group else self._number(shown)) not in self.gone
            self.left_out += not stays
            self.removed += 0 if stays else people
            found.append(stays)
        return found

    def _number(self, labels: tuple[Any, ...]) -> int:
        """Return the number of the group of the next row."""
        self.run += labels != self.last
        self.last = labels
        if self.run >= len(self.remaining):
            raise VerificationError("a part has more groups than its ledger says; nothing was changed")
        return self.remaining[self.run]

    def check(self) -> None:
        """Raise VerificationError if groups are missing, once all files were copied."""
        if not self.group and self.run + 1 != len(self.remaining):
            raise VerificationError("a part has fewer groups than its ledger says; nothing was changed")


def copy_kept(file: Path, to: Path, kept: KeptRows) -> None:
    """Copy the rows of a file that stay."""
    (_copy_csv if file.suffix == ".csv" else _copy_parquet)(file, to, kept)


def _copy_parquet(file: Path, to: Path, kept: KeptRows) -> None:
    source = pq.ParquetFile(file)

    def tables() -> Iterator[pa.Table]:
        for at in range(source.num_row_groups):
            table = source.read_row_group(at)
            stays = kept.stay(zip(*(table.column(name).to_pylist() for name in kept.shown)))
            left = table.filter(pa.array(np.array(stays, bool)))
            if left.num_rows:
                yield left.combine_chunks()

    write_tables(to, source.schema_arrow, kept.labels, tables())


def _copy_csv(file: Path, to: Path, kept: KeptRows) -> None:
    """Copy the lines that stay as they are. Cells are compared as they are written, so that a missing one is not the
    empty text."""
    with file.open(encoding="utf-8", newline="") as source, to.open("w", encoding="utf-8", newline="") as target:
        records = _records(source)
        header = next(records)
        target.write(header)
        names = [_text(cell) for cell in _cells(header)]
        places = [names.index(name) for name in kept.shown]
        for record in records:
            cells = _cells(record)
            (stays,) = kept.stay(iter([tuple(cells[place] for place in places)]))
            target.write(record if stays else "")


def _cells(record: str) -> list[str]:
    """Return the cells of a record as they are written.

    >>> _cells('a,,"","b ""c"",\\n"\\n')
    ['a', '', '""', '"b ""c"",\\n"']
    """
    return CELL.findall(record.rstrip("\r\n"))


def _text(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def _records(lines: TextIO) -> Iterator[str]:
    """Yield the records of a CSV file as they are written; a quoted cell may have line breaks."""
    record, open_quote = list[str](), False
    for line in lines:
        record.append(line)
        open_quote ^= line.count('"') % 2 == 1
        if not open_quote:
            yield "".join(record)
            record = []
