"""Excel workbooks for tests, as few parts as a reader accepts. Outside the way of the data."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DAY_ZERO = dt.datetime(1899, 12, 30)
TYPES = (
    f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>'
)
STYLES = (  # the general form, a date, and a date with a time
    f'<styleSheet xmlns="{MAIN}"><cellXfs count="3">'
    '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/></cellXfs></styleSheet>'
)


def write_workbook(path: Path, sheets: Mapping[str, Iterable[Sequence[Any]]], first_row: int = 1) -> None:
    """Write sheets of rows; None is no cell."""
    numbered = list(enumerate(sheets, start=1))
    named = "".join(f'<sheet name="{escape(name)}" sheetId="{at}" r:id="s{at}"/>' for at, name in numbered)
    targets = {f"s{at}": ("worksheet", f"worksheets/sheet{at}.xml") for at, _ in numbered}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("[Content_Types].xml", TYPES)
        parts.writestr("_rels/.rels", links({"r1": ("officeDocument", "xl/workbook.xml")}))
        parts.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{named}</sheets></workbook>'
        )
        parts.writestr("xl/_rels/workbook.xml.rels", links(targets | {"st": ("styles", "styles.xml")}))
        parts.writestr("xl/styles.xml", STYLES)
        for (at, _), rows in zip(numbered, sheets.values()):
            body = "".join(row_of(number, row) for number, row in enumerate(rows, start=first_row))
            parts.writestr(
                f"xl/worksheets/sheet{at}.xml", f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>'
            )


def links(targets: Mapping[str, tuple[str, str]]) -> str:
    each = (f'<Relationship Id="{own}" Type="{OFFICE}/{kind}" Target="{to}"/>' for own, (kind, to) in targets.items())
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(each)}</Relationships>'


def row_of(number: int, row: Sequence[Any]) -> str:
    cells = "".join(cell_of(f"{chr(65 + at)}{number}", value) for at, value in enumerate(row))
    return f'<row r="{number}">{cells}</row>'


def cell_of(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, dt.datetime):
        return f'<c r="{place}" s="2"><v>{(value - DAY_ZERO).total_seconds() / 86400!r}</v></c>'
    if isinstance(value, dt.date):
        return f'<c r="{place}" s="1"><v>{(value - DAY_ZERO.date()).days}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
