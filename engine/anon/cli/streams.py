"""Standard output and standard error of the command, outside the way of the data. A run whose release is published has
not failed because nobody can be told of it: a stream that is closed, full, gone or short of letters does not end it."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

from anon.core import terminal


class Patient(io.RawIOBase):
    """What a stream writes to. It takes everything, and keeps the first failure in mind."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.failure: int | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self.raw.fileno())

    def isatty(self) -> bool:
        return bool(self.raw.isatty())

    def write(self, data: Any) -> int | None:
        if self.failure is None:
            try:
                written: int | None = self.raw.write(data)
                return written
            except OSError as error:
                self.failure = error.errno
        return len(data)


def be_patient() -> None:
    """Puts streams in place of the standard ones that never fail."""
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)


def _patient(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed before the command began
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 (it stays open until the end)
    raw = getattr(stream.buffer, "raw", stream.buffer)
    buffered = io.BufferedWriter(Patient(raw))
    return io.TextIOWrapper(buffered, stream.encoding, "backslashreplace", line_buffering=bool(stream.line_buffering))


def leave(code: int) -> int:
    """Writes out what is left to be told; the exit code. A reader who has gone needs no telling."""
    sys.stdout.flush()
    failure = _failure(sys.stdout)
    if failure not in (None, errno.EPIPE):
        why = os.strerror(failure or 0)
        terminal.say(f"error: standard output cannot be written ({why}); what the command did was done", err=True)
        code = code or 6
    sys.stderr.flush()
    return code


def _failure(stream: TextIO) -> int | None:
    raw = getattr(stream.buffer, "raw", None)
    return raw.failure if isinstance(raw, Patient) else None
