"""Excel workbooks (.xlsx): one sheet, whose first row with a cell has the names. Cells have types of their own; a
column has the type of all its cells. python-calamine reads the sheet into memory, so its size is compared with the
limit."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from anon.core.database import Database
from anon.errors import ConfigError, Problem, ResourceError, SourceError
from anon.source.bad_cells import LINES, BadCell, BadCells, count_in_words, nearly
from anon.source.copies import copy_batches
from anon.source.tables import Take
from anon.source.tokens import Tokens

BATCH = 20_000  # rows
EXACT = 2**53  # whole numbers that a double holds
Row = Sequence[Any]


@dataclass(frozen=True)
class _Kind:
    """A type that a column may have: in words, in Arrow, which cells are of it, and what a cell becomes."""

    plural: str
    type: pa.DataType
    fits: Callable[[Any], bool]
    value: Callable[[Any], Any] = lambda cell: cell


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _is_whole(cell: Any) -> bool:
    return _is_number(cell) and cell == int(cell) and abs(cell) < EXACT


def _moment(cell: dt.date) -> dt.datetime:
    return cell if isinstance(cell, dt.datetime) else dt.datetime.combine(cell, dt.time())


def _text(cell: Any) -> str:
    """Return a cell as text.

    >>> _text(10115.0), _text(1.5), _text("01067"), _text(dt.date(2024, 3, 9)), _text(True)
    ('10115', '1.5', '01067', '2024-03-09', 'true')
    """
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(int(cell)) if _is_whole(cell) else str(cell)


KINDS = (
    _Kind("booleans", pa.bool_(), lambda cell: isinstance(cell, bool)),
    _Kind("integers", pa.int64(), _is_whole, int),
    _Kind("numbers", pa.float64(), _is_number, float),
    _Kind("dates", pa.date32(), lambda cell: isinstance(cell, dt.date) and not isinstance(cell, dt.datetime)),
    _Kind("timestamps", pa.timestamp("us"), lambda cell: isinstance(cell, dt.date), _moment),
    _Kind("text", pa.string(), lambda cell: isinstance(cell, str), _text),
)
TEXT = KINDS[-1]


@dataclass(frozen=True)
class _Sheet:
    """The rows of a sheet below its names, each with its number in the sheet; and the columns with their places."""

    file: str
    columns: dict[str, int]
    rows: Callable[[], Iterator[tuple[int, Row]]]


def copy_excel(
    database: Database, paths: list[Path], to: Path, sheet: str | None, take: Take, tokens: Tokens
) -> tuple[list[Path], list[str]]:
    """Copy the wanted columns of a sheet; return the copy and the names of the columns that it has."""
    if len(paths) > 1:
        raise SourceError(f"{paths[0]} and {len(paths) - 1} more: only one Excel file can be read; choose one")
    with database.at_rest():
        opened = _opened(paths[0], sheet, database.memory)
        names = list(opened.columns)
        wanted = take(names)
        kinds = _kinds(opened, [*dict.fromkeys([*wanted, *tokens.names])])
        schema = pa.schema([(name, kinds[name].type) for name in wanted])
        copy_batches(_batches(opened, kinds), schema, to, tokens)
    return [to], names


def _opened(path: Path, sheet: str | None, memory: int) -> _Sheet:
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise SourceError(f"{path}: Excel files need another package: pip install 'anon-engine[excel]'") from None
    _check_size(path, memory)
    try:
        with CalamineWorkbook.from_path(str(path)) as workbook:
            chosen = _chosen(path, workbook.sheet_names, sheet)
            cells = workbook.get_sheet_by_name(chosen)
    except CalamineError:
        raise SourceError(f"{path}: it is not an Excel workbook, or it is damaged or encrypted") from None
    return _with_names(path, cells)


def _check_size(path: Path, memory: int) -> None:
    """Refuse a workbook that takes more memory than there is: about what its parts take uncompressed."""
    try:
        with zipfile.ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist() if part.filename.endswith(".xml"))
    except zipfile.BadZipFile:
        raise SourceError(f"{path}: it is not an Excel workbook (.xlsx), or it is damaged or encrypted") from None
    if size > memory:
        raise ResourceError(
            f"{path}: a workbook is read whole, and takes about {size // 10**6:,} MB; raise limits.memory, or save the "
            "sheet as CSV"
        )


def _chosen(path: Path, sheets: list[str], sheet: str | None) -> str:
    listed = ", ".join(map(repr, sheets))
    if sheet is None and len(sheets) > 1:
        raise ConfigError.at("source.sheet", "nothing", "one of the sheets", f"{path.name} has {listed}")
    if sheet is not None and sheet not in sheets:
        raise ConfigError.at("source.sheet", repr(sheet), "one of the sheets", f"{path.name} has {listed}")
    return sheet or sheets[0]


def _with_names(path: Path, cells: Any) -> _Sheet:
    """Return a sheet with the names of its columns: those of the first row with a cell, or after their places."""
    first, head = next(((at, row) for at, row in enumerate(cells.iter_rows(), 1) if any(map(_filled, row))), (0, []))
    if not first:
        raise SourceError(f"{path}: the sheet is empty")
    used = _used(cells, len(head))
    columns = {_text(head[at]) if _filled(head[at]) else f"column{at + 1}": at for at in range(len(head)) if used[at]}
    if len(columns) < sum(used):
        raise SourceError(f"{path}: row {first}: two columns have the same name")

    def rows() -> Iterator[tuple[int, Row]]:
        for number, row in enumerate(cells.iter_rows(), 1):
            if number > first and any(map(_filled, row)):
                yield number, row

    return _Sheet(path.name, columns, rows)


def _filled(cell: Any) -> bool:
    return cell is not None and cell != ""


def _used(cells: Any, width: int) -> list[bool]:
    """Return which columns have a cell at all."""
    used = [False] * width
    for row in cells.iter_rows():
        used = [one or _filled(cell) for one, cell in zip(used, row)]
        if all(used):
            break
    return used


def _kinds(sheet: _Sheet, names: list[str]) -> dict[str, _Kind]:
    """Return the type of each column; BadCells if nearly all cells of one are of a type."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for _, row in sheet.rows():
        for name in names:
            cell = row[sheet.columns[name]]
            if _filled(cell):
                counts[name].update(kind.plural for kind in KINDS if kind.fits(cell))
                counts[name]["all"] += 1
    found, wrong = {}, []
    for name, count in counts.items():
        best = max(KINDS, key=lambda kind: count[kind.plural]) if count["all"] else TEXT
        bad = count["all"] - count[best.plural]
        if bad and nearly(count[best.plural], count["all"]):
            wrong.append((name, best, bad, count["all"]))
        found[name] = TEXT if bad else best
    if wrong:
        raise _bad_cells(sheet, wrong)
    return found


def _bad_cells(sheet: _Sheet, wrong: list[tuple[str, _Kind, int, int]]) -> BadCells:
    error = BadCells()
    for name, kind, bad, present in wrong:
        place = sheet.columns[name]
        others = ((at, row[place]) for at, row in sheet.rows() if _filled(row[place]) and not kind.fits(row[place]))
        first = [BadCell(sheet.file, at, _text(cell)) for (at, cell), _ in zip(others, range(LINES))]
        said = count_in_words(bad, present, kind.plural, first, named=False, unit="row")
        problem = Problem(f"source.path: {name}", said, f"{kind.plural} only", "correct them in the sheet")
        error.add(problem, name, first, unit="row")
    return error


def _batches(sheet: _Sheet, kinds: dict[str, _Kind]) -> Iterator[pa.RecordBatch]:
    rows: list[Row] = []
    for _, row in sheet.rows():
        rows.append(row)
        if len(rows) == BATCH:
            yield _batch(sheet, kinds, rows)
            rows = []
    if rows:
        yield _batch(sheet, kinds, rows)


def _batch(sheet: _Sheet, kinds: dict[str, _Kind], rows: list[Row]) -> pa.RecordBatch:
    arrays = []
    for name, kind in kinds.items():
        cells = (row[sheet.columns[name]] for row in rows)
        arrays.append(pa.array([kind.value(cell) if _filled(cell) else None for cell in cells], kind.type))
    return pa.record_batch(arrays, names=list(kinds))
