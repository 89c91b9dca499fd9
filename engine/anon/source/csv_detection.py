"""Find out how CSV files are written, each choice with its evidence: the encoding from all bytes, delimiter, quote and
header from a sample at the beginning, numbers, dates, codes and markers for no value from all cells. What the cells do
not show is not guessed: such a column stays text, and the evidence says so."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from anon.config import Csv
from anon.config.yaml_text import quoted, yaml_key, yaml_word
from anon.core.database import Database
from anon.errors import SourceError
from anon.source.bad_cells import places
from anon.source.cell_shapes import ColumnShapes, column_shapes
from anon.source.csv_files import (
    Misfit,
    TextCopy,
    cells_of,
    column_types,
    copy_text,
    in_utf8_files,
    text_sql,
    typed_view,
)
from anon.source.csv_layout import WORDS, Sniffed, sniff
from anon.source.date_formats import DateColumn, date_columns
from anon.source.encodings import UTF8, Encoding, guess
from anon.source.number_marks import Marks, number_marks
from anon.source.tables import Registered

SHOW = "line numbers with --show-values"
# markers for no value that no category is called, and those that are so only where other cells are numbers or dates
MARKERS = ("N/A", "n/a", "#N/A", "#NV", "NULL", "null", "(null)", "\\N", "k.A.", "k. A.", "n.d.", "?", "-", "--")
AMONG_VALUES = ("NA", "na", "NaN", "nan", "None", "none", ".", "*", "x", "missing", "unknown", "unbekannt", "inconnu",
                "desconocido", "keine Angabe", "#WERT!", "#VALUE!")  # fmt: skip

Line = tuple[str, str]  # of YAML, and the comment beside it


@dataclass(frozen=True)
class Detected:
    """The options of CSV files, as lines of YAML with the evidence for each."""

    csv: Csv
    yaml: list[Line]
    evidence: dict[str, str]  # by option, or option and column

    def to_dict(self) -> dict[str, object]:
        return {"options": self.csv.model_dump(exclude_unset=True), "evidence": self.evidence}


@dataclass
class _Evidence:
    """The options that are found, and what shows each."""

    choices: dict[str, object] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)  # by option
    columns: dict[tuple[str, str], str] = field(default_factory=dict)  # by option and column

    def add(self, option: str, value: object, said: str = "") -> None:
        self.choices[option], self.said[option] = value, said

    def add_column(self, option: str, column: str, value: str, said: str) -> None:
        of_columns = self.choices.setdefault(option, {})
        assert isinstance(of_columns, dict)
        of_columns[column] = value
        self.columns[option, column] = said

    @property
    def csv(self) -> Csv:
        return Csv.model_validate(self.choices)

    @property
    def by_path(self) -> dict[str, str]:
        """Return what shows each option, by its path below `csv`."""
        return self.said | {f"{option}.{column}": said for (option, column), said in self.columns.items()}


def detect(
    database: Database, name: str, paths: list[Path], spill: Path, show_values: bool = False
) -> tuple[Registered, Detected]:
    """Make a view over CSV files as `register_csv` does, with the options that the files show. A cell that is not of
    the type of its column is null there, and counted in the evidence; its line is named if values may be shown."""
    encoding = _encoding(paths)
    assert encoding.name is not None
    texts, made = in_utf8_files(paths, spill / f"{name}-text", encoding.name)
    try:
        sniffed = sniff(texts[0])
        evidence = _of_layout(encoding, sniffed)
        copied = copy_text(database, name, texts, spill, evidence.csv)
        copied = _of_cells(database, copied, evidence)
        csv = evidence.csv
        kinds, misfits = column_types(database, copied, csv)
        _of_misfits(copied, misfits, evidence, show_values)
    finally:
        for file in made:
            file.unlink(missing_ok=True)
    registered = typed_view(database, name, copied, kinds, lenient={each.column: each.type for each in misfits})
    return registered, Detected(evidence.csv, _yaml(evidence), evidence.by_path)


def _encoding(paths: list[Path]) -> Encoding:
    """Return the encoding of all files: plain ASCII is in any of them."""
    found = [guess(path) for path in paths]
    for path, encoding in zip(paths, found):
        if encoding.name is None:
            raise SourceError(f"{path}: {encoding.evidence}; save it as UTF-8, or set csv: {{encoding: ...}}")
    other = [encoding for encoding in found if encoding.name not in UTF8]
    mixed = other and any(encoding.beyond_ascii for encoding in found if encoding not in other)
    if mixed or len({encoding.name for encoding in other}) > 1:
        raise SourceError(f"{paths[0]} and {len(paths) - 1} more: they are in different encodings; save all as UTF-8")
    return other[0] if other else found[0]


def _of_layout(encoding: Encoding, sniffed: Sniffed) -> _Evidence:
    evidence, layout = _Evidence(), sniffed.layout
    evidence.add("encoding", encoding.label, encoding.evidence)
    evidence.add("delimiter", WORDS.get(layout.delimiter, layout.delimiter), sniffed.delimiter_evidence)
    evidence.add("quote", layout.quote, sniffed.quote_evidence)
    evidence.add("header", layout.header, sniffed.header_evidence)
    return evidence


def _of_cells(database: Database, copied: TextCopy, evidence: _Evidence) -> TextCopy:
    """Add the options that the cells show; return the copy with null where a cell means no value."""
    shapes = column_shapes(database, copied, (*MARKERS, *AMONG_VALUES))
    copied = _of_markers(copied, shapes, evidence)
    dates = date_columns(database, copied, shapes)
    for column in dates:
        _of_dates(column, evidence)
    dated = {column.name for column in dates}
    numbers = [each for each in shapes if each.name not in dated]
    marks = number_marks(numbers)
    _of_numbers(marks, evidence)
    for each in numbers:
        if each.codes:
            said = f"{each.codes:,} of {each.present:,} values begin with a zero, which a number would lose"
            evidence.add_column("types", each.name, "text", said)
    return copied


def _of_markers(copied: TextCopy, shapes: list[ColumnShapes], evidence: _Evidence) -> TextCopy:
    """Add the markers for no value. Those that may be categories count only beside numbers and dates."""
    counts: dict[str, int] = {}
    for each in shapes:
        for marker, count in each.markers.items():
            if marker in MARKERS or each.valued:
                counts[marker] = counts.get(marker, 0) + count
    quoted = sum(each.empty for each in shapes)
    markers = [*([""] if quoted else []), *counts]
    for each in shapes:
        each.take_out(markers)
    if not markers:
        return copied
    said = [f"{count:,} {marker}" for marker, count in counts.items()]
    said += [f"{quoted:,} empty in quotes"] if quoted else []
    evidence.add("nulls", markers, f"cells: {', '.join(said)}")
    columns = [replace(column, text=text_sql(column.alias, markers)) for column in copied.columns]
    return replace(copied, columns=columns, nulls=tuple(markers))


def _of_dates(column: DateColumn, evidence: _Evidence) -> None:
    if column.format is None:
        evidence.add_column("types", column.name, "text", column.evidence)
    else:
        evidence.add_column("dates", column.name, column.format, column.evidence)


def _of_numbers(marks: Marks, evidence: _Evidence) -> None:
    if marks.decimal != ".":
        evidence.add("decimal", marks.decimal, marks.decimal_evidence)
    if marks.thousands:
        evidence.add("thousands", marks.thousands, marks.thousands_evidence)
    for name, said in marks.unclear.items():
        evidence.add_column("types", name, "text", said)


def _of_misfits(copied: TextCopy, misfits: Sequence[Misfit], evidence: _Evidence, show_values: bool) -> None:
    """Add the columns with cells of another type: with their lines if values may be shown."""
    found = cells_of(copied, misfits) if show_values and misfits else {}
    kinds = {"BIGINT": "integer", "DOUBLE": "number", "DATE": "date", "BOOLEAN": "boolean"}
    for each in misfits:
        share = (each.present - each.bad) / each.present
        where = places(found[each.column], each.bad, len(copied.paths) > 1).removeprefix(", ") if found else SHOW
        said = f"{share:.1%} of {each.present:,} values look like {_example(each)}; {each.bad:,} do not: {where}"
        if each.type.format:
            evidence.add_column("dates", each.column, each.type.format, said)
        else:
            evidence.add_column("types", each.column, kinds.get(each.type.type, "timestamp"), said)


def _example(misfit: Misfit) -> str:
    return in_letters(misfit.type.format) if misfit.type.format else misfit.type.plural


def in_letters(written: str) -> str:
    """Return a date format as people write it.

    >>> in_letters("%d.%m.%Y %H:%M")
    'dd.mm.yyyy hh:mm'
    """
    words = {"d": "dd", "m": "mm", "Y": "yyyy", "y": "yy", "H": "hh", "M": "mm", "S": "ss", "f": "ffffff"}
    return re.sub(r"%(\w)", lambda match: words[match[1]], written)


def _yaml(evidence: _Evidence) -> list[Line]:
    """Return the options as lines of YAML, from `csv:` on, each with its evidence."""
    found: list[Line] = [("csv:", "how the file is written; change what is wrong")]
    for option in filter(evidence.choices.__contains__, Csv.model_fields):
        value = evidence.choices[option]
        if isinstance(value, dict):
            found.append((f"  {option}:", ""))
            for name, each in value.items():
                found.append((f"    {yaml_key(name)}: {_word(each)}", evidence.columns[option, name]))
        else:
            found.append((f"  {option}: {_word(value)}", evidence.said[option]))
    return found


def _word(value: object) -> str:
    """Return a value as YAML: in quotes unless it is a plain word.

    >>> _word("windows-1252"), _word(";"), _word("zip"), _word(["", "-"])
    ('windows-1252', '";"', 'zip', '["", "-"]')
    """
    if value == '"':
        return "'\"'"
    if isinstance(value, list):
        return f"[{', '.join(quoted(str(each)) for each in value)}]"
    if isinstance(value, str):
        return yaml_word(value) if value[:1].isalpha() else quoted(value.replace("${", "$${"))
    return json.dumps(value)
