"""The small values of the config grammar: exact numbers, names, sizes, paths relative to the config, and the choice of
a model by its `kind`."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from anon.config.mistakes import Loc, Model, mistake, one_of, refusal, required

Mistakes = Iterator[tuple[Loc, PydanticCustomError]]
LONGEST_NAME = 255  # bytes, on nearly every file system
PERCENTAGE = r"(?:[0-9]{1,12}\.?[0-9]{0,12}|\.[0-9]{1,12})\s*%"
STORES = ("s3://", "gs://", "az://")  # object stores, by how their places begin


def number(value: Any) -> int | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        quoted = isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]+", value)
        raise mistake("a number", "write it without quotes" if quoted else "")
    if isinstance(value, Decimal) and not value.is_finite():
        raise mistake("a finite number")
    return value


def parse_share(written: object) -> Decimal:
    """Return a share as people write it: as a percentage or as a number of 1, exactly; ValueError if it is neither.

    >>> parse_share("4%"), parse_share(" 0.04"), parse_share(".04"), parse_share(0.5)
    (Decimal('0.04'), Decimal('0.04'), Decimal('0.04'), Decimal('0.5'))
    """
    text = str(written).strip()
    try:
        return Decimal(f"{text[:-1].strip()}E-2" if re.fullmatch(PERCENTAGE, text) else text)
    except InvalidOperation as error:
        raise ValueError("a share such as 4% or 0.04") from error


class PercentageAllowed:
    """Marks a field that is also accepted as a percentage, in its JSON schema and for `canonical`."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "string", "pattern": f"^{PERCENTAGE}$"}]}


def share(value: Any) -> Decimal:
    """Return a share of the config: a number, or text such as 4%."""
    if isinstance(value, str) and re.fullmatch(PERCENTAGE, value.strip()):
        return parse_share(value)
    if isinstance(value, str):
        quoted = re.fullmatch(r"[-+]?[0-9.]+", value)
        raise mistake("a number such as 0.04, or 4%", "write it without quotes" if quoted else "")
    return Decimal(number(value))


def day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        written = isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value)
        return date.fromisoformat(value if written else "")
    except ValueError:
        raise mistake("a day of the calendar such as 2024-12-31") from None


def nonempty(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise mistake("text that is not empty", "put it in quotes" if isinstance(value, int | Decimal) else "")
    return value


def listed(value: Any) -> Any:
    """Return a single text as a list of it; anything else as it is."""
    return [value] if isinstance(value, str) else value


def base_folder(info: ValidationInfo) -> Path:
    """Return the folder that relative paths of the config are relative to."""
    return (info.context or {}).get("base") or Path.cwd()


def absolute_path(value: Any, info: ValidationInfo) -> Path:
    if isinstance(value, Path):
        return value
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", nonempty(value)):
        raise mistake("a local path", "a release may also be on s3://, gs:// and az://, in small letters")
    try:
        found = Path(base_folder(info), nonempty(value)).resolve()
    except (OSError, RuntimeError) as error:
        raise mistake("a path that can be followed") from error
    if any(len(os.fsencode(name)) > LONGEST_NAME for name in found.parts):
        raise mistake(f"names of files and folders of at most {LONGEST_NAME} bytes", found="a longer one")
    return found


def is_store(path: object) -> bool:
    """Return whether a path is one of an object store, such as s3://bucket/folder."""
    return isinstance(path, str) and path.startswith(STORES)


def store_place(value: Any) -> str:
    """Return a place in an object store. Credentials come from the environment of the process, never from a config."""
    text = nonempty(value)
    scheme, _, rest = text.partition("://")
    bucket, _, key = rest.partition("/")
    if "@" in bucket or not bucket:
        found = "a place with credentials in it" if bucket else f"{scheme}:// without a bucket"
        expected = f"{scheme}://bucket/folder; credentials come from the environment (docs/sources.md)"
        raise mistake(expected, found=found)
    if any(part in (".", "..") for part in key.split("/")):
        raise mistake(f"{scheme}://bucket/folder without . and ..")
    return text.rstrip("/")


def local_or_store(value: Any, info: ValidationInfo) -> Path | str:
    return store_place(value) if is_store(value) else absolute_path(value, info)


def absolute_glob(value: Any, info: ValidationInfo) -> str:
    """Return an absolute path or glob; only what the user wrote is a pattern, not the folder of the config. Other
    addresses, such as hdfs://..., stay as they are."""
    if is_store(value):
        return store_place(value)
    text, base = nonempty(value), str(base_folder(info))
    if "://" in text:
        return text
    folder = glob.escape(base) if glob.has_magic(text) else base
    return os.path.normpath(Path(folder, text))


Number = Annotated[int | Decimal, BeforeValidator(number, json_schema_input_type=Decimal)]
Exact = Annotated[Decimal, BeforeValidator(lambda value: Decimal(number(value)))]
Share = Annotated[Decimal, BeforeValidator(share), PercentageAllowed()]  # of 1
Percent = Annotated[  # of 100: 2 and 2% are the same
    Decimal,
    BeforeValidator(lambda value: share(value) * 100 if isinstance(value, str) else share(value)),
    PercentageAllowed(),
]
Day = Annotated[date, BeforeValidator(day)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]
ONE_OR_MORE = BeforeValidator(listed, json_schema_input_type=Name | list[Name])
NameList = Annotated[list[Name], ONE_OR_MORE]
Names = Annotated[list[Name], Field(min_length=1), ONE_OR_MORE]
File = Annotated[Path, BeforeValidator(absolute_path, json_schema_input_type=Name)]
Place = Annotated[Path | str, BeforeValidator(local_or_store, json_schema_input_type=Name)]
Absent = Annotated[
    Literal["ok"] | None,
    Field(description="`ok`: a value named here need not occur in the data; otherwise that is an error"),
]

UNITS = {"B": 1} | {
    f"{prefix}{middle}B": base**power
    for middle, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("KMGT", start=1)
}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 2GB (powers of 1000) or 512MiB (powers of 1024); ValueError if it is none.

    >>> parse_size("1.5GB"), parse_size("512 MiB")
    (1500000000, 536870912)
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]+)", text.strip())
    unit = next((size for name, size in UNITS.items() if match and name.lower() == match[2].lower()), None)
    size = int(Decimal(match[1]) * unit) if match and unit else 0
    if size < 1:
        raise ValueError("a size of at least one byte, such as 2GB or 512MiB")
    return size


def as_mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise mistake("a mapping")
    return value


def by_kind(*models: type[Model], default: str | None = None) -> BeforeValidator:
    """Return a validator that chooses the model by the word under `kind`."""
    kinds = {get_args(model.model_fields["kind"].annotation)[0]: model for model in models}

    def parse(value: Any, info: ValidationInfo) -> Model:
        if isinstance(value, models):
            return value
        kind = as_mapping(value).get("kind", default)
        if kind is None:
            raise refusal([(("kind",), required("kind", f"one of {', '.join(kinds)}"))])
        if kind not in list(kinds):
            raise refusal([(("kind",), one_of(kind, kinds))])
        return kinds[kind].model_validate(value, context=info.context)

    return BeforeValidator(parse, json_schema_input_type=reduce(or_, models))


class SchemaGenerator(GenerateJsonSchema):
    """The grammar as users write it in YAML: exact numbers are plain numbers; titles that repeat keys are left out."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        written: JsonSchemaValue = {"type": "number"}
        self.update_with_validations(written, schema, self.ValidationsMapping.numeric)
        return written

    def encode_default(self, dft: Any) -> Any:
        return int(dft) if isinstance(dft, Decimal) and dft == int(dft) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False
