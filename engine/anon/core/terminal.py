"""Print all output of the command: results, messages and JSON, on standard output and standard error. Names of columns
and files and values of the data may contain characters that move the cursor, change colours, hide text or reverse its
direction; they are shown as escapes, so that only the command itself can write a line."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Any

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of characters that are not shown as themselves
JOINERS = "\u200c\u200d"  # parts of words in some languages, and of emoji
LINES = "\n\t"
SEVERAL_LINES = ("sql", "reason")  # facts that are text of several lines


def printable(text: str, keep: str = LINES) -> str:
    r"""Return text with control characters, direction marks and other invisible characters as escapes.

    >>> printable("zip\x1b[2K\x9bA\u202e"), printable("two\nlines"), printable("two\nlines", keep="")
    ('zip\\x1b[2K\\x9bA\\u202e', 'two\nlines', 'two\\nlines')
    """
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if _is_hidden(c) and c not in keep else c for c in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in HIDDEN and character not in JOINERS


def one_line(facts: Any, keep: str = "") -> Any:
    r"""Return facts with every text in them, names included, printable on one line.

    >>> one_line({"a\nb": ["c\x07", 3, None], "sql": ["SELECT\n1"]})
    {'a\\nb': ['c\\x07', 3, None], 'sql': ['SELECT\n1']}
    """
    if isinstance(facts, str):
        return printable(facts, keep)
    if isinstance(facts, dict):
        return {
            one_line(name): one_line(part, LINES if name in SEVERAL_LINES else keep) for name, part in facts.items()
        }
    return type(facts)(one_line(part, keep) for part in facts) if isinstance(facts, list | tuple) else facts


def json_text(facts: Any, indent: int | None = None) -> str:
    r"""Return facts as JSON that is printable and reads back as the same facts.

    >>> print(json_text({"zip\x9b": "é\u202e"}))
    {"zip\u009b": "é\u202e"}
    """
    written = json.dumps(facts, indent=indent, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(json.dumps(c)[1:-1] if _is_hidden(c) and c != "\n" else c for c in written)


def say(text: str, err: bool = False) -> None:
    """Print lines of text, on standard error if `err`."""
    print(printable(text), file=sys.stderr if err else sys.stdout, flush=err)


def say_json(facts: Any, indent: int | None = None) -> None:
    """Print facts as JSON on standard output: on one line without `indent`, in ASCII where the stream lacks letters."""
    written = json_text(facts, indent)
    try:
        written.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        written = json.dumps(facts, indent=indent)
    print(written)
