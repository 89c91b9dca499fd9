"""Passes the settings of `backend.conf` to Spark's driver process in a private file. PySpark would put each of them
into the command line of Java, where every user of the machine can read them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from anon.core.progress import Progress
from anon.errors import SourceError
from anon.runs.scratch import spill_folder

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"  # environment variable with PySpark's own arguments of spark-submit
OPTION = "--properties-file"
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"} | {mark: f"\\{mark}" for mark in "\\ =:#!"}


@contextmanager
def submitted(conf: Mapping[str, str]) -> Iterator[None]:
    """Make a driver process that starts meanwhile read these settings from a file of mode 0600."""
    before = os.environ.get(ARGUMENTS)
    if before is not None and OPTION in shlex.split(before):
        raise SourceError(f"backend: {ARGUMENTS} names a {OPTION}; put its settings into backend.conf instead")
    with spill_folder(Progress().alert) as folder:  # which a later start removes if this process is killed
        file = folder / "spark.properties"
        text = "".join(f"{escaped(name)}={escaped(value)}\n" for name, value in conf.items())
        with open(file, "x", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            out.write(text)
        options = f"{OPTION} {shlex.quote(str(file))} --load-spark-defaults"
        os.environ[ARGUMENTS] = f"{options} {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            os.environ.pop(ARGUMENTS)
            if before is not None:
                os.environ[ARGUMENTS] = before


def escaped(text: str) -> str:
    r"""Write a key or a value as a Java properties file has it.

    >>> print(escaped("a=b c\\d é"))
    a\=b\ c\\d\ \u00e9
    """
    return "".join(_ESCAPES.get(letter) or _in_ascii(letter) for letter in text)


def _in_ascii(letter: str) -> str:
    if letter.isascii():
        return letter
    units = letter.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
