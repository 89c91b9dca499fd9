"""Keep secrets out of what anon writes: values of variables, and passwords of connection strings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from anon.errors import AnonError

LONG_ENOUGH = 4  # characters of a variable that are looked for within words
Secrets = tuple[tuple[str, str], ...]  # the variables of a config with their values


def redact(text: str, secrets: Secrets) -> str:
    """Return the text with the value of every variable replaced by its name, longest values first.

    >>> redact("user:abc", (("A", "a"), ("PASSWORD", "abc")))
    'user:${PASSWORD}'
    """
    names = {form: name for name, value in reversed(secrets) for form in _forms(value)}
    if not names:
        return text
    pattern = "|".join(_wherever(value) for value in sorted(names, key=len, reverse=True))
    return re.sub(pattern, lambda match: "${" + names[match[0]] + "}", text)


def _forms(value: str) -> Iterator[str]:
    """Yield the value of a variable as it may appear in a text: as it is, and as a path that was resolved.

    >>> list(_forms("../clients//acme/")), list(_forms(""))
    (['clients/acme', '../clients//acme/'], [])
    """
    resolved = "/".join(part for part in os.path.normpath(value).split("/") if part != "..")
    if value and len(resolved) >= LONG_ENOUGH:
        yield resolved
    if value:
        yield value


def _wherever(value: str) -> str:
    """Return a pattern that finds the value of a variable. A short value is part of many words, and a
    name in the middle of a word would reveal the value."""
    return re.escape(value) if len(value) >= LONG_ENOUGH else rf"(?<!\w){re.escape(value)}(?!\w)"


def remove_secrets(error: BaseException | None, secrets: Secrets) -> None:
    """Replace the values of variables in the words of an error."""
    if isinstance(error, AnonError):
        error.reword(lambda said: redact(said, secrets))
    elif error is not None:
        error.args = tuple(redact(said, secrets) if isinstance(said, str) else said for said in error.args)
    if isinstance(error, OSError) and error.filename is not None:
        error.filename = redact(str(error.filename), secrets)


def passwords(dsn: str) -> list[str]:
    """Return the contents of the password fields of a connection string.

    >>> passwords("postgresql://me:a%20b@host/db?sslpassword=c"), passwords("host=h password='a b' user=me")
    (['a%20b', 'c'], ["'a b'"])
    """
    before_host = re.findall(r"^\w+://[^/@:]*:([^@]*)@", dsn)
    return before_host + re.findall(r"(?:^|[\s?&])(?:ssl)?password\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]*)", dsn)
