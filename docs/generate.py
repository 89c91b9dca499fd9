"""Writes docs/reference/cli.md and docs/reference/config.md from the code: the commands as typer has them, the config
as its schema has it. A test holds the committed pages to what this writes.

    python docs/generate.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- Made by docs/generate.py from the code; `make docs` writes it again. -->"


def cell(text: str) -> str:
    """Text in a cell of a table, on one line."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |"]
    lines.append("|" + "---|" * lines[0].count(" | ") + "---|")
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


# The command line


def cli_page() -> str:
    import typer

    from anon.cli.app import app

    command = typer.main.get_command(app)
    lines = [MADE, "", "# Commands", "", *_paragraphs(command.help), *_paragraphs(command.epilog)]
    lines += [
        "Results go to stdout, messages and progress to stderr. What each exit code asks for is in "
        "[Operating it](../operating.md#exit-codes).",
        "",
        *_options(command),
    ]
    for path, each in commands(command, "anon"):
        lines += _command(path, each)
    return "\n".join(lines).rstrip() + "\n"


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, with how it is called."""
    for name, each in sorted(getattr(command, "commands", {}).items()):
        yield f"{path} {name}", each
        yield from commands(each, f"{path} {name}")


def _command(path: str, command: Any) -> list[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join([path, *(each.metavar or each.name.upper() for each in arguments)])
    usage += " COMMAND" if hasattr(command, "commands") else ""
    needed = [f"{each.opts[0]} {_metavar(each)}" for each in command.params if each not in arguments and each.required]
    usage = " ".join([usage, *needed, "[OPTIONS]"])
    lines = [f"## {path}", "", f"    {usage}", "", *_paragraphs(command.help)]
    if arguments:
        lines += table(("argument", "meaning"), [(f"`{each.metavar}`", cell(each.help or "")) for each in arguments])
    return lines + _options(command) + _paragraphs(command.epilog)


def _options(command: Any) -> list[str]:
    found = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    if not found:
        return []
    rows = [(_named(each), _default(each), cell(each.help or "")) for each in found]
    return table(("option", "default", "meaning"), rows)


def _named(option: Any) -> str:
    names = ", ".join(option.opts)
    return f"`{names}`" if option.is_flag else f"`{names} {_metavar(option)}`"


def _metavar(option: Any) -> str:
    return str(option.metavar or option.opts[0].strip("-").upper())


def _default(option: Any) -> str:
    if option.required:
        return "required"
    return "" if option.is_flag or option.default in (None, []) else f"`{option.default}`"


def _paragraphs(text: str | None) -> list[str]:
    return [line for part in (text or "").split("\n\n") if part.strip() for line in (" ".join(part.split()), "")]


# The config


def config_page() -> str:
    from anon.config import json_schema

    return _ConfigPage(json_schema()).text()


class _ConfigPage:
    """Each mapping of the config becomes a table, under the place where it is first written."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema, self.models = schema, schema["$defs"]
        self.places: dict[str, str] = {}  # of each model, as the heading says it
        self.tables: list[str] = []

    def text(self) -> str:
        self._mapping("the config", [self.schema], "")
        intro = (
            "The config is one YAML file. Relative paths are relative to it, `${NAME}` takes an environment variable, "
            "and a key that is not listed here is an error. `anon schema` prints a JSON Schema of it for editors. "
            "Every mapping has a table; what it holds is linked."
        )
        return "\n".join([MADE, "", "# Config", "", intro, "", *self.tables]).rstrip() + "\n"

    def _mapping(self, place: str, variants: list[dict[str, Any]], path: str) -> None:
        """A table of the keys of a mapping, then what they hold."""
        fields = {key: field for each in variants for key, field in each["properties"].items()}
        needed = set(variants[0].get("required", [])) if len(variants) == 1 else set()
        inside: list[tuple[str, dict[str, Any]]] = []
        for key, field in fields.items():
            inside += self._find(f"{path}.{key}".lstrip("."), field)
        about = variants[0].get("description", "") if place != "the config" else "Its sections:"
        heading = [f"## {place}", ""] if place != "the config" else []
        if place.count(".") == 1 and place.startswith("privacy."):
            about += f" [Its page](../criteria/{place.split('.')[1]}.md) has an example."
        rows = [
            (f"`{key}`", self._type(field), self._default(field, key in needed), cell(field.get("description", "")))
            for key, field in fields.items()
        ]
        self.tables += [*heading, *([about, ""] if about else [])]
        self.tables += table(("field", "type", "default", "meaning"), rows) if rows else []
        for found, model in inside:
            self._mapping(found, _variants(model), found.split(": ")[0])

    def _find(self, path: str, field: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The mappings that a field may hold and that have no table yet, each with its place."""
        if "$ref" in field:
            name = field["$ref"].rsplit("/", 1)[1]
            if name in self.places:
                return []
            model = self.models[name]
            if name.startswith("Item_"):  # one entry of `privacy`: a mapping whose only key is the criterion's name
                self.places[name] = path
                return [each for key, item in model["properties"].items() for each in self._find(f"{path}.{key}", item)]
            self.places[name] = path + _variant(model)
            return [(self.places[name], model)]
        parts = [*field.get("anyOf", []), *field.get("oneOf", [])]
        if isinstance(field.get("additionalProperties"), dict):
            parts.append(field["additionalProperties"])
            path = f"{path}.NAME"
        if "items" in field:
            parts.append(field["items"])
        return [found for part in parts for found in self._find(path, part)]

    def _type(self, field: dict[str, Any]) -> str:
        if "$ref" in field:
            return self._link(field["$ref"].rsplit("/", 1)[1])
        if "const" in field or "enum" in field:
            return ", ".join(f"`{_yaml(each)}`" for each in field.get("enum", [field.get("const")]))
        if "anyOf" in field or "oneOf" in field:
            parts = [part for part in field.get("anyOf", field.get("oneOf")) if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(map(self._type, parts)))
        if field.get("type") == "array":
            return f"list of {self._type(field['items'])}"
        if field.get("type") == "object":
            return f"mapping of names to {self._type(field['additionalProperties'])}"
        words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`"}
        return words[field["type"]] + _bounds(field)

    def _link(self, name: str) -> str:
        if name.startswith("Item_"):
            criterion = name.removeprefix("Item_")
            return self._type(self.models[name]["properties"][criterion])
        place = self.places[name]
        word = place.rsplit(": ")[-1] if ": " in place else place.removesuffix(".NAME").split(".")[-1]
        return f"[{word}](#{_slug(place)})"

    def _default(self, field: dict[str, Any], needed: bool) -> str:
        if needed:
            return "required"
        return "" if field.get("default") is None else f"`{_yaml(field['default'])}`"


def _variants(model: dict[str, Any]) -> list[dict[str, Any]]:
    """The shapes that a mapping may have: one, or those that its keys choose between."""
    if "properties" in model:
        return [model]
    return [each | {"description": model["description"]} for each in model["anyOf"]]


def _variant(model: dict[str, Any]) -> str:
    """What tells a mapping from others in the same place: its kind, or the key that it must have."""
    fields = model.get("properties")
    if fields is None:
        return ""
    if "kind" in fields and "const" in fields["kind"]:
        return f": {fields['kind']['const']}"
    if model["title"] in ("Intervals", "Suppress", "HierarchyFile", "Digits", "Calendar", "PriorFile", "PriorEstimate"):
        return f": {next(iter(fields))}"
    return ": nothing" if not fields else ""


def _slug(place: str) -> str:
    return "".join(letter for letter in place.lower().replace(" ", "-") if letter.isalnum() or letter in "_-")


def _bounds(field: dict[str, Any]) -> str:
    words = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "&lt;"}
    found = [f"{sign} {field[key]:,}".replace("<=", "&lt;=") for key, sign in words.items() if key in field]
    return f" {' and '.join(found)}" if found else ""


def _yaml(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


PAGES = {"cli.md": cli_page, "config.md": config_page}

if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (REFERENCE / name).write_text(make(), encoding="utf-8")
