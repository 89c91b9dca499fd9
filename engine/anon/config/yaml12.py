"""Parse YAML for the config: only the types of the YAML 1.2 core schema, so that `No` and `2024-01-01` stay text and
0.1 is exactly 0.1; no aliases, no custom tags, no key twice."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import yaml

from anon.config.mistakes import below
from anon.core.terminal import printable
from anon.errors import Problem

TAG = "tag:yaml.org,2002:"
LONGEST_NUMBER = 1000  # characters; Python refuses to read much longer whole numbers
WIDTH = 100  # characters of a line that are shown
# Words of lines that may hold a secret, such as the connection string of a database
PRIVATE = re.compile(r"dsn|://|@|pass|pwd|secret|token|credential|key", re.IGNORECASE)
SPECIAL = {".inf": "Infinity", "+.inf": "Infinity", "-.inf": "-Infinity", ".nan": "NaN"}
SCALARS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "null": (re.compile(r"(?:~|null|Null|NULL|)"), lambda text: None),
    "bool": (re.compile(r"(?:true|True|TRUE|false|False|FALSE)"), lambda text: text.lower() == "true"),
    "int": (re.compile(r"[-+]?[0-9]+"), int),
    "float": (
        re.compile(
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
        ),
        lambda text: Decimal(SPECIAL.get(text.lower(), text)),
    ),
    "str": (re.compile(r".*", re.DOTALL), str),
}


class _Loader(yaml.SafeLoader):
    """Composes the nodes of one document with the scalar types above."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - PyYAML starts without YAML 1.1 this way

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not supported", mark)
        return super().compose_node(parent, index)


for _name in ("null", "bool", "int", "float"):
    _Loader.add_implicit_resolver(TAG + _name, re.compile(rf"(?:{SCALARS[_name][0].pattern})\Z"), None)


def parse_yaml(text: str, problems: list[Problem]) -> Any:
    """Return the plain data of a YAML text; mistakes that do not stop the reading are added to the problems."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    return None if node is None else _value(node, "", problems)


def excerpt_at(text: str, line: int, column: int) -> str:
    """Return a line of a file with a caret below a column, both counted from 0. A line that may hold a password is
    cut off behind its key, because a broken line does not show where a password ends.

    >>> print(excerpt_at("a: 1\\nb: [1, 2\\n", 1, 3))
    b: [1, 2
       ^
    >>> excerpt_at("postgres: {dsn: postgresql://me:secret@host/db}", 0, 40)
    'postgres: ***'
    """
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines) - 1)]
    if PRIVATE.search(shown):
        key = re.match(r"\s*(?:- )?\w+:(?=\s)", shown)
        return f"{key[0] if key else ''} ***"
    column = min(column, len(shown))
    start = max(0, column - WIDTH + 20)
    shown = printable(shown[start : start + WIDTH]).rstrip()
    return f"{shown}\n{' ' * len(printable(lines[min(line, len(lines) - 1)][start:column]))}^"


def _value(node: yaml.Node, path: str, problems: list[Problem]) -> Any:
    if isinstance(node, yaml.MappingNode) and node.tag == f"{TAG}map":
        return _mapping(node, path, problems)
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{TAG}seq":
        return [_value(item, below(path, index), problems) for index, item in enumerate(node.value)]
    try:
        return _scalar(node)
    except ValueError as error:
        problems.append(Problem(path or "config", f"an unreadable value on line {_line(node)}", str(error)))
        return None


def _mapping(node: yaml.MappingNode, path: str, problems: list[Problem]) -> dict[Any, Any]:
    data: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            problems.append(
                Problem(path or "config", f"a list or mapping as a key on line {_line(key_node)}", "text as a key")
            )
            continue
        place = below(path, key_node.value)
        key = _value(key_node, place, problems)
        if key in data:
            problems.append(
                Problem(place, f"the same key again on line {_line(key_node)}", "each key once in a mapping")
            )
        data[key] = _value(value_node, place, problems)
    return data


def _scalar(node: yaml.Node) -> Any:
    tag = node.tag.removeprefix(TAG)
    if tag not in SCALARS or not isinstance(node, yaml.ScalarNode):
        raise ValueError("a value without a custom tag")
    pattern, convert = SCALARS[tag]
    if not pattern.fullmatch(node.value):
        raise ValueError(f"a value that fits its tag {tag}")
    if convert is not str and len(node.value) > LONGEST_NUMBER:
        raise ValueError(f"a number of at most {LONGEST_NUMBER} characters")
    return convert(node.value)


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1
