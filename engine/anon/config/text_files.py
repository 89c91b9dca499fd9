"""The grammar of `source.csv`: how the text files of a source are written. What is not said is as `anon` itself writes
CSV: UTF-8, double quotes, a decimal point, dates as 2024-12-31."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from anon.config.mistakes import Model, mistake, refusal
from anon.config.values import Mistakes, Name, nonempty

# by the names that Python gives them: those of Unicode, and the 8-bit ones of Europe
UNICODE = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
EIGHT_BITS = re.compile(r"cp125[0-8]|cp437|cp85[0-8]|iso8859-1?[0-9]|koi8-[ru]|mac-[a-z0-9]+")
DIRECTIVES = {
    "d": "[0-9]{1,2}",
    "m": "[0-9]{1,2}",
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "H": "[0-9]{1,2}",
    "M": "[0-9]{2}",
    "S": "[0-9]{2}",
    "f": "[0-9]{1,6}",
}
TIME = set("HMSf")
DATE_EXAMPLE = "a format of %d, %m, %Y or %y, and perhaps %H, %M, %S and %f, such as %d.%m.%Y"
THOUSANDS = {"": "nothing", ".": "a point", ",": "a comma", " ": "a space", "\u00a0": "a space that does not break",
             "\u202f": "a narrow space", "'": "an apostrophe", "\u2019": "a typographic apostrophe"}  # fmt: skip
CellKind = Literal["text", "integer", "number", "date", "timestamp", "boolean"]


def _encoding(value: Any) -> str:
    """Return the name of an encoding as Python spells it."""
    expected = "an encoding such as utf-8, utf-16, windows-1252, iso-8859-1 or iso-8859-15"
    try:
        found = codecs.lookup(nonempty(value)).name
    except (LookupError, UnicodeError):
        raise mistake(expected) from None
    if found not in UNICODE and not EIGHT_BITS.fullmatch(found):
        raise mistake(expected)
    return found


def _delimiter(value: Any) -> str:
    text = {"tab": "\t", "\\t": "\t", "space": " "}.get(nonempty(value), value)
    if len(text) != 1 or len(text.encode()) > 1 or text in "\r\n\"'" or text.isalnum():
        raise mistake("one character that is no letter and no digit, such as ; , | or tab")
    return str(text)


def _quote(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 1 or len(value.encode()) > 1 or (value and value in "\r\n;,\t|"):
        raise mistake("one character, or empty if no field is quoted")
    return value


def _thousands(value: Any) -> str:
    if not isinstance(value, str) or value not in THOUSANDS:
        raise mistake("a point, a comma, a space or an apostrophe, in quotes; or empty")
    return value


def _format(value: Any) -> str:
    """Return a date format that says which part is the day, the month and the year."""
    text = nonempty(value)
    used = re.findall(r"%(.?)", text)
    unknown = set(used) - set(DIRECTIVES)
    whole = {"d", "m"} <= set(used) and len({"Y", "y"} & set(used)) == 1
    if unknown or not whole or len(used) != len(set(used)) or re.search(r"%\w%\w", text.replace("%Y%m%d", "")):
        raise mistake(DATE_EXAMPLE, "" if "%" in text else "dd.mm.yyyy is written %d.%m.%Y")
    return text


Format = Annotated[str, BeforeValidator(_format, json_schema_input_type=Name)]
FormatByColumn = dict[Name, Format]


def _dates(value: Any) -> str | FormatByColumn:
    if not isinstance(value, Mapping):
        return _format(value)
    found, wrong = {}, []
    for column, written in value.items():
        try:
            found[nonempty(column)] = _format(written)
        except PydanticCustomError as error:
            wrong.append(((str(column),), error))
    if wrong:
        raise refusal(wrong)
    return found


def _nulls(value: Any) -> list[str]:
    """Return the markers; one that is not in a list is one marker."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(marker, str) for marker in value):
        numbers = isinstance(value, list) and any(isinstance(marker, int) for marker in value)
        raise mistake('a list of texts, such as ["", "N/A", "-"]', "put numbers in quotes" if numbers else "")
    return value


class Csv(Model):
    """How CSV files are written."""

    encoding: Annotated[str, BeforeValidator(_encoding, json_schema_input_type=Name)] = Field(
        "utf-8", description="encoding: utf-8, utf-16, windows-1252, iso-8859-15 and other 8-bit ones"
    )
    delimiter: Annotated[str, BeforeValidator(_delimiter, json_schema_input_type=Name)] | None = Field(
        None, description="character between fields; when absent the one of , ; tab | that divides the first line most"
    )
    quote: Annotated[str, BeforeValidator(_quote, json_schema_input_type=str)] = Field(
        '"', description="character around fields, doubled inside them; empty: none"
    )
    decimal: Literal[".", ","] = Field(".", description="character before the decimals of a number")
    thousands: Annotated[str, BeforeValidator(_thousands, json_schema_input_type=str)] = Field(
        "", description="character between groups of three digits: a point, a comma, a space or an apostrophe"
    )
    dates: Annotated[
        str | FormatByColumn | None, BeforeValidator(_dates, json_schema_input_type=Name | dict[Name, Name])
    ] = Field(
        None,
        description="format of dates such as %d.%m.%Y, or one for each column in a mapping; 2024-12-31 is always read",
    )
    nulls: Annotated[list[str], BeforeValidator(_nulls, json_schema_input_type=list[str] | str)] = Field(
        [], description="fields that mean no value, such as N/A; an empty field without quotes always does"
    )
    types: dict[Name, CellKind] = Field(
        {}, description="types of columns: text, integer, number, date, timestamp, boolean; text keeps leading zeros"
    )
    header: bool = Field(True, description="false: the first line is data, and the columns are column1, column2, ...")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if wrong := list(self._contradictions()):
            raise refusal(wrong)
        return self

    def _contradictions(self) -> Mistakes:
        if self.decimal == self.thousands:
            yield ("thousands",), mistake("another character than csv.decimal")
        if self.delimiter is not None and self.delimiter == self.quote:
            yield ("quote",), mistake("another character than csv.delimiter")
        for column, kind in self.types.items():
            if column in self.formats and kind not in ("date", "timestamp"):
                yield ("types", column), mistake("date, because csv.dates has a format for it")

    @property
    def formats(self) -> FormatByColumn:
        """The date formats of single columns."""
        return self.dates if isinstance(self.dates, dict) else {}

    @property
    def format(self) -> str | None:
        """The date format of every column."""
        return self.dates if isinstance(self.dates, str) else None


def format_pattern(written: str) -> str:
    """Return the regular expression of a date format.

    >>> format_pattern("%d.%m.%Y")
    '[0-9]{1,2}\\\\.[0-9]{1,2}\\\\.[0-9]{4}'
    """
    return "".join(_pattern_parts(written))


def _pattern_parts(written: str) -> Iterator[str]:
    packed = "%Y%m%d" in written  # where nothing else shows where the month begins
    for directive, other in re.findall(r"%(\w)|(.)", written, re.DOTALL):
        pattern = DIRECTIVES[directive] if directive else re.escape(other)
        yield "[0-9]{2}" if packed and directive in ("d", "m") else pattern


def has_time(written: str) -> bool:
    """Return whether a date format has a time of day."""
    return bool(TIME & set(re.findall(r"%(\w)", written)))
