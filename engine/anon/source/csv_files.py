"""CSV files as one table: copied once to the spill as text, and typed there by all of their values. The options of
`source.csv` say how they are written; a cell that is not of the type of its column is an error with its line."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from anon.config import Csv
from anon.core.database import Database, file_list, literal, quote, reason
from anon.errors import Problem, SourceError, UnknownColumns
from anon.source.bad_cells import BadCell, BadCells, count_in_words, nearly
from anon.source.cells import CODE, CellType, CellTypes
from anon.source.csv_layout import WORDS, header, sniff
from anon.source.csv_records import CsvLayout, bad_cells, first_malformed
from anon.source.encodings import BLOCK, UTF8, blocks, copy_as_utf8, not_in
from anon.source.many_columns import VECTOR, answers, stacked
from anon.source.tables import COMPRESSED, Registered, Take, describe, one
from anon.source.tokens import NO_TOKENS, Tokens


@dataclass(frozen=True)
class Misfit:
    """A column of which some values are not of the type that the others have, or that it is said to have."""

    column: str
    type: CellType
    bad: int
    present: int


@dataclass(frozen=True)
class CsvColumn:
    """A column of a copy: its name in the file, its name in the copy and the SQL for its text."""

    name: str
    alias: str
    text: str


@dataclass(frozen=True)
class TextCopy:
    """CSV files as text: the files in UTF-8, how they are written, and the Parquet copy of some of their columns."""

    paths: list[Path]
    layout: CsvLayout
    copy: Path
    columns: list[CsvColumn]
    nulls: tuple[str, ...]  # what stands for no value
    size: int  # bytes of the files

    @property
    def base(self) -> str:
        """The SQL for the copy."""
        return f"read_parquet({literal(str(self.copy))})"


def register_csv(
    database: Database,
    name: str,
    paths: list[Path],
    spill: Path,
    options: Csv | None = None,
    as_text: Collection[str] = (),
    take: Take = list,
    tokens: Tokens = NO_TOKENS,
) -> Registered:
    """Make a view over CSV files: without columns that are not wanted, with tokens in place of identifiers. With
    options, a column of which nearly all values are of one type must have that type."""
    csv = options or Csv()
    texts, made = in_utf8_files(paths, spill / f"{name}-text", csv.encoding)
    try:
        copied = copy_text(database, name, texts, spill, csv, take, tokens, hinted=options is None)
        kinds, misfits = column_types(database, copied, csv, as_text, strict=options is not None)
        if misfits:
            raise bad_cell_error(copied, misfits)
    finally:
        for file in made:
            file.unlink(missing_ok=True)
    return typed_view(database, name, copied, kinds, tokens)


def in_utf8_files(paths: list[Path], folder: Path, encoding: str) -> tuple[list[Path], list[Path]]:
    """Return the files as they are if they are in UTF-8, or copies of them, under the same names; and the copies."""
    read, made = [], []
    for number, path in enumerate(paths):
        if encoding in UTF8 and path.suffix.lower() not in COMPRESSED:
            read.append(path)
            continue
        own = folder / f"{number:05}"
        own.mkdir(mode=0o700, parents=True)
        made.append(own / path.name.removesuffix(path.suffix if path.suffix.lower() in COMPRESSED else ""))
        read.append(made[-1])
        copy_as_utf8(path, encoding, made[-1])
    for path in read:
        _check_bytes(path)
    return read, made


def _check_bytes(path: Path) -> None:
    """Refuse a CSV file that is empty, has zero bytes, is not UTF-8 or has a line so long that DuckDB may drop the row
    it holds.

    A file that was cut off while it was written often ends in zeros. Every line of two blocks or more leaves one block
    without a line end; DuckDB itself refuses shorter ones that are too long."""
    if not path.stat().st_size:
        raise SourceError(f"{path}: the file is empty")
    line, rest = 1, b""
    for block in blocks(path):
        ends = block.count(b"\n") or block.count(b"\r")
        try:
            rest = _undecoded(rest + block)
        except UnicodeDecodeError as error:
            raise not_in(path, line + error.object[: error.start].count(b"\n"), "utf-8") from None
        if (zero := block.find(0)) >= 0:
            line += block.count(b"\n", 0, zero)
            raise SourceError(f"{path}: line {line}: it holds zero bytes; the file is damaged or no text")
        if len(block) == BLOCK and not ends:
            raise SourceError(f"{path}: line {line}: it is too long, over {BLOCK:,} bytes")
        line += ends
    if rest:
        raise not_in(path, line, "utf-8")


def _undecoded(block: bytes) -> bytes:
    """Return the bytes of a character that a block of UTF-8 ends in the middle of; UnicodeDecodeError if it is not
    UTF-8.

    >>> _undecoded("ä€".encode()[:3])
    b'\\xe2'
    """
    try:
        block.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and len(block) - error.start < 4:
            return block[error.start :]
        raise
    return b""


def copy_text(
    database: Database,
    name: str,
    paths: list[Path],
    spill: Path,
    csv: Csv,
    take: Take = list,
    tokens: Tokens = NO_TOKENS,
    hinted: bool = False,
) -> TextCopy:
    """Copy the wanted columns of files in UTF-8 to the spill, as text. `hinted`: there are no options, so that an
    error names the delimiter that would fit."""
    layout = _layout(paths, csv, hinted)
    try:
        wanted = take(list(layout.names))
    except UnknownColumns as error:
        if hinted and (better := _better(paths[0], layout)):
            error.problems.append(Problem("source.csv", "", better))
        raise
    nulls = tuple(csv.nulls)
    used = [CsvColumn(own, f"c{at}", text_sql(f"c{at}", nulls)) for at, own in enumerate(layout.names) if own in wanted]
    listed = [column.alias for column in used]
    for number, own in enumerate(tokens.names):
        text = f"nullif({text_sql(f'c{layout.names.index(own)}', nulls)}, '')"
        listed.append(f"{tokens.sql(text)} AS t{number}")
    tokens.share_key(database)
    copied = TextCopy(paths, layout, spill / f"{name}.parquet", used, nulls, _size(paths))
    try:
        copy_rows(database, f"SELECT {', '.join(listed)} FROM {_read_csv(paths, layout)}", literal(str(copied.copy)))
    except duckdb.Error as error:
        raise _explained(paths, layout, error, hinted) from None
    return copied


def _layout(paths: list[Path], csv: Csv, complete: bool) -> CsvLayout:
    """Return the layout of all files; `complete`: their first lines must name every column."""
    first, *others = (header(path, csv.delimiter, csv.quote, csv.header, complete) for path in paths)
    other = [path.name for path, layout in zip(paths[1:], others) if layout != first]
    if other:
        raise SourceError(f"{other[0]}: its first line differs from that of {paths[0].name}; parts must agree")
    return first


def _size(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def text_sql(alias: str, nulls: Sequence[str]) -> str:
    """Return the SQL for the text of a field: null where it is one of the markers for no value."""
    if not nulls:
        return alias
    return f"CASE WHEN {alias} IN ({', '.join(map(literal, nulls))}) THEN NULL ELSE {alias} END"


def _read_csv(paths: list[Path], layout: CsvLayout) -> str:
    columns = ", ".join(f"c{index}: 'VARCHAR'" for index in range(len(layout.names)))
    mark = literal(layout.quote)
    return (
        f"read_csv({file_list(paths)}, columns = {{{columns}}}, auto_detect = false, header = {layout.header}, "
        f"delim = {literal(layout.delimiter)}, quote = {mark}, escape = {mark}, "
        "strict_mode = true, nullstr = '', allow_quoted_nulls = false)"
    )


def copy_rows(database: Database, rows: str, copy: str) -> None:
    """Copy the rows of a query to a Parquet file. Every thread holds some rows of all columns: where that is too much,
    one thread and small row groups do."""
    try:
        database.execute(f"COPY ({rows}) TO {copy} (FORMAT parquet)")
    except duckdb.OutOfMemoryException:
        (threads,) = one(database, "SELECT current_setting('threads')")
        database.execute("SET threads = 1")
        database.execute(f"COPY ({rows}) TO {copy} (FORMAT parquet, ROW_GROUP_SIZE {VECTOR})")
        database.execute(f"SET threads = {threads}")


def _explained(paths: list[Path], layout: CsvLayout, error: duckdb.Error, hinted: bool) -> Exception:
    """Return the failure to read CSV files with the line of the file: DuckDB counts records. Any other failure is
    returned as it is."""
    if "state machine" in str(error):
        ends = "its lines end in different ways, some with CR LF and some with LF; save it with one kind of line end"
        return SourceError(f"reading {paths[0]}: {ends}")
    if not (said := reason(error)).endswith("it is not well-formed CSV"):
        return error
    for path in paths:
        if found := first_malformed(path, layout):
            line, why = found
            said = f"{path.name}, line {line}: it is not well-formed CSV: {why}"
            better = _better(path, layout) if hinted else ""
            return SourceError(f"reading {path}: {said}" + (f"; {better}" if better else ""))
    return SourceError(f"reading {paths[0]}: {said}")


def _better(path: Path, layout: CsvLayout) -> str:
    """Return the options that divide a file into equal records, if others do."""
    found = sniff(path)
    other = {
        key: WORDS.get(own, own)
        for key, own in (("delimiter", found.layout.delimiter), ("quote", found.layout.quote))
        if own != getattr(layout, key)
    }
    if not other:
        return ""
    written = ", ".join(f"{key}: {json.dumps(mark)}" for key, mark in other.items())
    return f"set csv: {{{written}}}, by which {found.delimiter_evidence}"


def column_types(
    database: Database, copied: TextCopy, csv: Csv, as_text: Collection[str] = (), strict: bool = True
) -> tuple[dict[str, CellType], list[Misfit]]:
    """Return the type of each column that is not text, and the columns with values that do not fit. An empty field is
    null where it is not quoted, and in typed columns always."""
    types, kinds, misfits = CellTypes(csv), {}, []
    groups: defaultdict[tuple[tuple[CellType, ...], bool], list[CsvColumn]] = defaultdict(list)
    for column in copied.columns:
        if column.name not in as_text:
            tried, required = types.of_column(column.name)
            groups[tuple(tried), required].append(column)
    rows = int(one(database, f"SELECT count(*) FROM {copied.base}")[0])
    for (each, required), columns in groups.items():
        for column, present, codes, counts in _counted(database, copied, each, columns, rows):
            best = max(range(len(each)), key=lambda at: counts[at])
            if present and counts[best] == present:
                kinds[column.name] = each[best]
            elif present and (required or (strict and not codes and nearly(counts[best], present))):
                misfits.append(Misfit(column.name, each[best], present - counts[best], present))
    return kinds, misfits


def _counted(
    database: Database, copied: TextCopy, tried: Sequence[CellType], columns: Sequence[CsvColumn], rows: int
) -> Iterator[tuple[CsvColumn, int, int, Sequence[int]]]:
    """Yield of each column the number of values, of those with a leading zero, and of those that are of each type."""
    if not tried:
        return
    fits = ", ".join(f"count(*) FILTER ({kind.fits('v')})" for kind in tried)
    code = f"count(*) FILTER (regexp_full_match(v, {literal(CODE)}))"

    def query(part: Sequence[CsvColumn]) -> str:
        values = stacked(copied.base, [column.text for column in part])
        return f"SELECT nth, count(nullif(v, '')), {code}, {fits} FROM {values} GROUP BY nth"

    width = copied.size // max(rows * len(columns), 1)
    for column, answer in answers(database, columns, rows, query, width):
        present, codes, *counts = answer or (0,) * (len(tried) + 2)  # too large for the memory: text
        yield column, int(present), int(codes), counts


def typed_view(
    database: Database,
    name: str,
    copied: TextCopy,
    kinds: Mapping[str, CellType],
    tokens: Tokens = NO_TOKENS,
    lenient: Mapping[str, CellType] | None = None,
) -> Registered:
    """Make a view of the columns in their types. `lenient`: types of columns with cells that do not fit, which are null
    there."""
    database.execute(f"CREATE VIEW {name}_text AS SELECT * FROM {copied.base}")
    typed = [(_typed(column, kinds, lenient or {}), column.name) for column in copied.columns]
    typed += [(f"t{number}", tokens.columns[own]) for number, own in enumerate(tokens.names)]
    selected = ", ".join(f"{sql} AS {quote(column)}" for sql, column in typed)
    database.execute(f"CREATE VIEW {name} AS SELECT {selected} FROM {name}_text")
    sql = dict(zip(describe(database, name), (sql for sql, _ in typed)))
    return Registered(list(copied.layout.names), copied.base, sql)


def _typed(column: CsvColumn, kinds: Mapping[str, CellType], lenient: Mapping[str, CellType]) -> str:
    if column.name in lenient:
        kind = lenient[column.name]
        return f"CASE WHEN {kind.fits(column.text)} THEN {kind.value(column.text)} END"
    return kinds[column.name].value(column.text) if column.name in kinds else column.text


def cells_of(copied: TextCopy, misfits: Sequence[Misfit]) -> dict[str, list[BadCell]]:
    """Return the first cells of each column that do not fit."""
    text = text_sql("v", copied.nulls)
    bad = {each.column: f"nullif({text}, '') IS NOT NULL AND NOT {each.type.fits(text)}" for each in misfits}
    return bad_cells(copied.paths, copied.layout, bad)


def bad_cell_error(copied: TextCopy, misfits: Sequence[Misfit]) -> BadCells:
    """Return the error of cells that do not fit, with their number and the first lines of each column."""
    found, error = cells_of(copied, misfits), BadCells()
    for misfit in misfits:
        error.add(_problem(misfit, found[misfit.column], len(copied.paths) > 1), misfit.column, found[misfit.column])
    return error


def _problem(misfit: Misfit, cells: Sequence[BadCell], named: bool) -> Problem:
    kind = misfit.type.plural
    said = count_in_words(misfit.bad, misfit.present, kind, cells, named)
    hint = "correct them, add what stands for no value to csv.nulls, or set the type to text"
    return Problem(f"source.csv.types.{misfit.column}", said, f"{kind} only", hint)
