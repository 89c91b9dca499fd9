"""JSON lines (.jsonl, .ndjson), perhaps compressed: one object per line, whose keys are the columns. A column has the
type of all its values; text that is written like dates is a column of dates, as in CSV."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from anon.core.database import Database, file_list, literal, quote
from anon.errors import Problem, SourceError
from anon.source.bad_cells import LINES, BadCell, BadCells, count_in_words, nearly
from anon.source.cells import CSV_TYPES, CellType
from anon.source.csv_files import copy_rows
from anon.source.encodings import open_file
from anon.source.many_columns import batches, stacked
from anon.source.tables import Take, one
from anon.source.tokens import Tokens

TYPES = {"integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
DATES = [CellType(name, CSV_TYPES[name], f"TRY_CAST({{v}} AS {name})") for name in ("DATE", "TIMESTAMP", "TIMESTAMPTZ")]
PYTHON: dict[str, Callable[[Any], bool]] = {
    "integers": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "numbers": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "booleans": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
}


@dataclass(frozen=True)
class _JsonKey:
    """A key of the objects: its name, and the SQL for the value as JSON and as text."""

    name: str

    @property
    def pointer(self) -> str:
        return literal("/" + self.name.replace("~", "~0").replace("/", "~1"))

    @property
    def text(self) -> str:
        return f"json_extract_string(json, {self.pointer})"

    @property
    def kind(self) -> str:
        """SQL for the kind of the value; whole numbers that 64 bits do not hold are `long`."""
        fits = f"TRY_CAST({self.text} AS BIGINT) IS NOT NULL"
        whole = f"CASE WHEN {fits} THEN 'integer' ELSE 'long' END"
        number = f"CASE WHEN regexp_full_match({self.text}, '-?[0-9]+') THEN 'long' ELSE 'number' END"
        return (
            f"CASE json_type(json, {self.pointer}) WHEN 'BIGINT' THEN {whole} WHEN 'UBIGINT' THEN {whole} "
            f"WHEN 'DOUBLE' THEN {number} WHEN 'BOOLEAN' THEN 'boolean' WHEN 'VARCHAR' THEN 'text' "
            "WHEN 'OBJECT' THEN 'nested' WHEN 'ARRAY' THEN 'nested' END"
        )


def copy_json(
    database: Database, paths: list[Path], to: Path, take: Take, tokens: Tokens
) -> tuple[list[Path], list[str]]:
    """Copy the wanted columns of all files; return the copy and the names of the columns that the files have."""
    base = f"read_json_objects({file_list(paths)}, format = 'newline_delimited', maximum_object_size = 16777216)"
    try:
        names = _names(database, base)
        wanted = [_JsonKey(name) for name in take(names)]
        kinds = _kinds(database, base, wanted)
        _check_kinds(paths, kinds)
        selected = [f"{_value(database, base, key, kinds[key.name])} AS {quote(key.name)}" for key in wanted]
        selected += [f"{tokens.sql(_JsonKey(own).text)} AS {quote(token)}" for own, token in tokens.columns.items()]
        tokens.share_key(database)
        copy_rows(database, f"SELECT {', '.join(selected)} FROM {base}", literal(str(to)))
    except duckdb.InvalidInputException as error:
        raise _explained(paths, error) from None
    return [to], names


def _names(database: Database, base: str) -> list[str]:
    """Return the keys of all objects; SourceError if a line is something else."""
    other = int(database.one(f"SELECT count(*) FILTER (json_type(json) <> 'OBJECT') FROM {base}")[0])
    if other:
        raise SourceError(f"{other:,} lines are no JSON objects; every line must be one, with the columns as its keys")
    found = database.query(f"SELECT DISTINCT unnest(json_keys(json)) AS k FROM {base} ORDER BY k").fetchall()
    return [name for (name,) in found]


def _kinds(database: Database, base: str, keys: Sequence[_JsonKey]) -> dict[str, dict[str, int]]:
    """Return how many values of each kind every column has."""
    rows = int(one(database, f"SELECT count(*) FROM {base}")[0])
    found: dict[str, dict[str, int]] = {key.name: {} for key in keys}
    for part in batches(keys, rows):
        kinds = stacked(base, [key.kind for key in part])
        sql = f"SELECT nth, v, count(*) FROM {kinds} WHERE v IS NOT NULL GROUP BY ALL"
        for nth, kind, count in database.query(sql).fetchall():
            found[part[nth].name][kind] = int(count)
    return found


def _check_kinds(paths: list[Path], kinds: dict[str, dict[str, int]]) -> None:
    """Refuse a column of which nearly all values are of one kind: the others are mistakes."""
    error = BadCells()
    for name, counts in kinds.items():
        numbers = counts.get("integer", 0) + counts.get("number", 0)
        by_kind = {"numbers": numbers, "booleans": counts.get("boolean", 0), "text": counts.get("text", 0)}
        kind, most = max(by_kind.items(), key=lambda each: each[1])
        present = sum(counts.values())
        if most == present or counts.get("long") or not nearly(most, present):
            continue
        found = list(_others(paths, name, PYTHON[kind]))
        said = count_in_words(present - most, present, kind, found, len(paths) > 1)
        error.add(Problem(f"source.path: {name}", said, f"{kind} only", "correct them in the file"), name, found)
    if error.problems:
        raise error


def _others(paths: list[Path], name: str, fits: Callable[[Any], bool]) -> Iterator[BadCell]:
    """Yield the first values of a column that are not as the others."""
    found = 0
    for path in paths:
        for line, text in _lines(path):
            value = json.loads(text).get(name)
            if value is not None and not fits(value):
                yield BadCell(path.name, line, json.dumps(value, ensure_ascii=False))
                found += 1
            if found == LINES:
                return


def _value(database: Database, base: str, key: _JsonKey, counts: dict[str, int]) -> str:
    """Return the SQL for the values of a column in their type. Objects and lists are kept from being used."""
    kinds = set(counts)
    if "nested" in kinds:
        return f"CASE WHEN {key.text} IS NOT NULL THEN [{key.text}] END"
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if len(kinds) == 1 and kinds < set(TYPES):
        return f"CAST({key.text} AS {TYPES[kinds.pop()]})"
    if kinds == {"text"}:
        fits = ", ".join(f"count(*) FILTER ({kind.fits('v')})" for kind in DATES)
        found = database.one(f"SELECT count(v), {fits} FROM (SELECT {key.text} AS v FROM {base})")
        for kind, count in zip(DATES, found[1:]):
            if count == found[0]:
                return kind.value(key.text)
    return key.text


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with io.TextIOWrapper(open_file(path), encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line


def _explained(paths: list[Path], error: duckdb.Error) -> Exception:
    """Return the failure to read JSON with the line that is not: DuckDB names the one after it."""
    if "JSON" not in str(error):
        return error
    for path in paths:
        for line, text in _lines(path):
            try:
                json.loads(text)
            except ValueError:
                return SourceError(f"reading {path}: {path.name}, line {line}: it is not JSON")
    return error
