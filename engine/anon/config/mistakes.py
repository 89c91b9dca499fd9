"""Mistakes in a config: every config model derives from `Model`, which turns what pydantic reports into mistakes with
an expected value and a hint, so that one failed load lists them all."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

Loc = tuple[int | str, ...]

EXPECTED = {
    "int_type": "a whole number",
    "string_type": "text",
    "string_unicode": "text of whole characters; write each as itself, not as two escapes",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "finite_number": "a finite number",
    "string_too_short": "text that is not empty",
    "too_short": "at least one entry",
}
BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def mistake(expected: str, hint: str = "", found: str = "") -> PydanticCustomError:
    """Return a mistake; an empty `found` is filled in from the config when the problem is written."""
    return PydanticCustomError("mistake", "{expected}", {"expected": expected, "hint": hint, "found": found})


def refusal(mistakes: Iterable[tuple[Loc, PydanticCustomError]]) -> ValidationError:
    """Return an error with several mistakes, each at its place below the value that is being validated."""
    lines = [InitErrorDetails(type=error, loc=loc, input=None) for loc, error in mistakes]
    return ValidationError.from_exception_data("config", lines)


def as_mistakes(error: ValidationError) -> list[tuple[Loc, PydanticCustomError]]:
    """Return the mistakes of an error whose lines are all mistakes already."""
    return [(line["loc"], mistake(**line["ctx"])) for line in error.errors(include_url=False)]


def closest(word: object, choices: Iterable[str]) -> str:
    """Return `did you mean ...?` for a word that is nearly one of the choices, else nothing."""
    near = difflib.get_close_matches(str(word), list(choices), n=1)
    return f"did you mean `{near[0]}`?" if near else ""


def one_of(word: object, choices: Iterable[str]) -> PydanticCustomError:
    """Return the mistake of a word that is none of the choices."""
    words = list(choices)
    return mistake(" or ".join(filter(None, [", ".join(words[:-1]), words[-1]])), closest(word, words))


def unknown_key(key: str, keys: Iterable[str]) -> PydanticCustomError:
    """Return the mistake of a key that the grammar does not have at this place."""
    known = list(keys)
    expected = f"one of the keys {', '.join(known)}" if known else "no keys here"
    return mistake(expected, closest(key, known), found="an unknown key")


def required(key: str, description: str | None) -> PydanticCustomError:
    """Return the mistake of a required key that is missing."""
    return mistake(f"the required key `{key}`: {description}", found="nothing")


def describe(value: object, length: int = 40) -> str:
    """Return a value of the config in a few words.

    >>> describe("abc"), describe(Decimal("3.5")), describe([1, 2]), describe(None)
    ('text "abc"', 'number 3.5', 'list of 2', 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'text "{_short(without_password(value), length)}"'
    if isinstance(value, int | float | Decimal):
        return f"number {_short(str(value), length)}"
    if isinstance(value, Mapping | list):
        return f"{'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    return f"a Python {type(value).__name__}"


def without_password(text: str) -> str:
    """Return a text without the password of a connection string, which may be in a wrong place.

    >>> without_password("postgresql://me:secret@host/db")
    'postgresql://me:***@host/db'
    """
    return re.sub(r"(://[^/\s:@]*:)[^@]*@", r"\1***@", re.sub(r"(password\s*=\s*).*", r"\1***", text))


def _short(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."


def below(path: str, part: int | str) -> str:
    """Return the path of an entry of a list or mapping.

    >>> below("privacy", 1), below("release", "path"), below("values", "a.b")
    ('privacy[1]', 'release.path', 'values["a.b"]')
    """
    if isinstance(part, int):
        return f"{path}[{part}]"
    if not re.fullmatch(r"[^\s.\[\]\"]+", part):
        return f"{path}[{json.dumps(part, ensure_ascii=False)}]"
    return f"{path}.{part}" if path else part


class Model(BaseModel):
    """Base of the config models: no unknown keys, no silent conversions, mistakes with what was expected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _report_as_mistakes(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            lines = error.errors(include_url=False)
        raise refusal((line["loc"], _translated(cls, line)) for line in lines if not _is_echo(line))


def _is_echo(line: ErrorDetails) -> bool:
    """Return whether an error only repeats another: a default that could not be computed because of it."""
    return line["type"] == "default_factory_not_called"


def _translated(model: type[BaseModel], line: ErrorDetails) -> PydanticCustomError:
    kind, context = line["type"], line.get("ctx", {})
    name = str(line["loc"][-1]) if line["loc"] else ""
    if kind == "mistake":
        return mistake(**context)
    if kind == "missing":
        return required(name, model.model_fields[name].description)
    if kind == "extra_forbidden":
        return unknown_key(name, model.model_fields)
    if kind == "literal_error":
        return one_of(line["input"], re.findall(r"'([^']*)'", context["expected"]) or ["true"])
    if kind in BOUNDS:
        field = model.model_fields.get(str(line["loc"][0])) if len(line["loc"]) == 1 else None
        return mistake(_range(field) or f"a number {BOUNDS[kind][1]} {context[BOUNDS[kind][0]]}")
    return mistake(EXPECTED.get(kind, line["msg"].removeprefix("Value error, ")), _type_hint(kind, line["input"]))


def _range(field: FieldInfo | None) -> str:
    """Return the whole range of a numeric field, so that the answer to `c: 0` also says that c is at most 1."""
    if field is None:
        return ""
    words = [
        f"{word} {getattr(bound, name)}"
        for bound in field.metadata
        if isinstance(bound, Gt | Ge | Lt | Le)
        for name, word in BOUNDS.values()
        if hasattr(bound, name)
    ]
    return " ".join(["a whole number" if field.annotation is int else "a number", " and ".join(words)]) if words else ""


def _type_hint(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float | Decimal):
        return "put it in quotes"
    if kind == "int_type" and isinstance(value, str) and value.strip().isdigit():
        return "write it without quotes"
    if kind == "int_type" and isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return f"write {int(value)}"
    return ""
