"""The encodings of text files: which one the bytes of a file are in, and a copy of it in UTF-8, both as a stream."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anon.core import interrupt
from anon.core.arrays import Ints
from anon.core.database import translated
from anon.errors import SourceError
from anon.source.tables import COMPRESSED

BLOCK = 8 * 2**20  # bytes; under half of the 32 MB from which on DuckDB drops an unquoted last line without an error
UTF8 = ("utf-8", "utf-8-sig")
LABELS = {  # as users write them
    "cp1250": "windows-1250", "cp1252": "windows-1252", "iso8859-1": "iso-8859-1", "iso8859-2": "iso-8859-2",
    "iso8859-15": "iso-8859-15",
}  # fmt: skip
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
C1 = slice(0x80, 0xA0)  # control characters of ISO 8859, letters and signs of Windows
UNDEFINED = [0x81, 0x8D, 0x8F, 0x90, 0x9D]  # in Windows-1252
EURO = 0xA4  # of ISO 8859-15
LETTER = rb"[A-Za-z\xc0-\xff]"
CENTRAL = re.compile(LETTER + rb"[\x9d\xa3\xa5\xaf\xb1\xb3\xb6\xb9\xba\xbf]" + LETTER)  # signs in Western Europe
LATIN_2 = re.compile(LETTER + rb"[\xb1\xb6]" + LETTER)  # letters of ISO 8859-2, signs in Windows-1250
HACEKS = [0x8A, 0x8E, 0x9A, 0x9E]  # letters of Windows-1250 and -1252 that are rare in Western Europe
SHARE = 0.08  # of the bytes beyond ASCII that show Central Europe
FRENCH = re.compile(LETTER + rb"[\xa6\xa8\xb4\xb8\xbc-\xbe]" + LETTER)  # letters of ISO 8859-15, signs in the others


@dataclass(frozen=True)
class Encoding:
    """The encoding that a file is in, and what shows it; `name` is None if it is none that is known."""

    name: str | None
    evidence: str
    beyond_ascii: int = 0  # bytes that are other characters in other encodings

    @property
    def label(self) -> str | None:
        """The name as a config writes it."""
        return LABELS.get(self.name, self.name) if self.name else None


def blocks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks, decompressed if its name says that it is compressed."""
    with translated(f"reading {path}"), closing(open_file(path)) as file:
        while block := file.read(BLOCK):
            interrupt.check()
            yield bytes(block)


def open_file(path: Path) -> Any:
    """Open a file for reading bytes, decompressed if its name says that it is compressed."""
    compression = COMPRESSED.get(path.suffix.lower())
    return path.open("rb") if compression is None else pa.input_stream(str(path), compression=compression)


def copy_as_utf8(path: Path, encoding: str, to: Path) -> None:
    """Write a copy of a text file in UTF-8, decompressed; SourceError with the line if its bytes are in another
    encoding."""
    decoder, line, start = codecs.getincrementaldecoder(encoding)("strict"), 1, True
    with translated(f"reading {path}"), to.open("xb") as file:
        try:
            for block in blocks(path):
                text = decoder.decode(block)
                file.write(text.removeprefix("\ufeff").encode() if start else text.encode())
                line, start = line + text.count("\n"), start and not text
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "replace")
            raise not_in(path, line + before.count("\n"), encoding) from None


def not_in(path: Path, line: int, encoding: str) -> SourceError:
    """Return the error of a file that is not in an encoding, with the one that it is in."""
    found, label = guess(path), LABELS.get(encoding, encoding).upper()
    said = f"{path}: line {line}: it is not {label}"
    if found.label is None or found.name == encoding:
        return SourceError(f"{said}; {found.evidence}")
    return SourceError(f"{said} but {found.label}, it seems ({found.evidence}); set csv: {{encoding: {found.label}}}")


def guess(path: Path) -> Encoding:
    """Return the encoding of a file, from all of its bytes."""
    begin = next(blocks(path), b"")
    for mark, name in MARKS:
        if begin.startswith(mark):
            return Encoding(name, "it begins with the byte order mark of " + ("UTF-8" if name == "utf-8" else "UTF-16"))
    if (zeros := begin[:4096].count(0)) > 0:
        return _without_mark(begin[:4096], zeros)
    return _of_bytes(path)


def _without_mark(begin: bytes, zeros: int) -> Encoding:
    """Return UTF-16 if half of the bytes are zero, all at odd or all at even places; otherwise nothing is known."""
    for name, places in (("utf-16-le", begin[1::2]), ("utf-16-be", begin[0::2])):
        if places.count(0) == zeros and 2 * zeros > len(places):
            return Encoding(name, "every second byte at its beginning is zero")
    return Encoding(None, "it has zero bytes and no byte order mark: it is damaged or no text")


def _of_bytes(path: Path) -> Encoding:
    """Return the encoding of a file without zero bytes: UTF-8 if all of it is, or the 8-bit one that its bytes are
    letters and signs in."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    utf8, counts, found = True, np.zeros(256, np.int64), Counter[re.Pattern[bytes]]()
    for block in blocks(path):
        utf8 = utf8 and _decodes(decoder, block)
        counts += np.bincount(np.frombuffer(block, np.uint8), minlength=256)
        if not utf8:
            found.update({pattern: len(pattern.findall(block)) for pattern in (CENTRAL, LATIN_2, FRENCH)})
    beyond = int(counts[128:].sum())
    if utf8 and _decodes(decoder, b"", final=True):
        return Encoding("utf-8", f"{beyond:,} bytes beyond ASCII, all UTF-8" if beyond else "plain ASCII", beyond)
    return _of_counts(counts, beyond, found)


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _of_counts(counts: Ints, beyond: int, found: Counter[re.Pattern[bytes]]) -> Encoding:
    haceks, french = int(counts[HACEKS].sum()), found[FRENCH]
    central = max(found[CENTRAL], haceks if haceks > 1 else 0)  # one may be a foreign name
    if central and central >= SHARE * beyond:
        name = "iso8859-2" if found[LATIN_2] and not counts[C1].any() else "cp1250"
        return Encoding(name, f"{central:,} of {beyond:,} bytes beyond ASCII are letters of Central Europe there")
    if undefined := int(counts[UNDEFINED].sum()):
        return Encoding(None, f"{undefined:,} bytes are no character in Windows-1252, ISO-8859-1 and ISO-8859-15")
    if windows := int(counts[C1].sum()):
        return Encoding("cp1252", f"{windows:,} of {beyond:,} bytes beyond ASCII are characters only there")
    if counts[EURO] or french:
        what = f"{counts[EURO]:,} euro signs" if counts[EURO] else f"{french:,} letters"
        return Encoding("iso8859-15", f"{what} that only ISO-8859-15 has at these bytes")
    return Encoding("cp1252", f"{beyond:,} bytes beyond ASCII, the same characters in ISO-8859-1")
