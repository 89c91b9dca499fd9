"""Write text as YAML, for configs that anon makes."""

from __future__ import annotations

import re

from anon.config.yaml12 import SCALARS

PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")


def yaml_key(word: str) -> str:
    """Return text as a key of YAML: as it is if it cannot be taken for anything else, otherwise in quotes."""
    other = any(pattern.fullmatch(word) for kind, (pattern, _) in SCALARS.items() if kind != "str")
    return word if PLAIN.fullmatch(word) and not other else quoted(word)


def yaml_word(word: str) -> str:
    """Return text as a value, in which ${ would be a variable."""
    return yaml_key(word.replace("${", "$${"))


def quoted(word: str) -> str:
    """Return text in double quotes and on one line."""
    return '"' + "".join(f"\\{c}" if c in '"\\' else _escaped(c) for c in word) + '"'


def printable(comment: str) -> str:
    """Return text for a comment: on one line, without characters that end one."""
    return "".join(map(_escaped, comment))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
