"""Replace standard output and standard error by streams that do not fail. A run whose release is published has not
failed because its result cannot be printed: a stream that is closed, full, gone or lacks characters does not end it."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

from anon.core import terminal
from anon.errors import ResourceError


class SafeStream(io.RawIOBase):
    """A raw stream that accepts all output, and remembers the first failure of the stream behind it."""

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


def install() -> None:
    """Replace the standard streams by ones that never fail."""
    sys.stdout, sys.stderr = _safe(sys.stdout), _safe(sys.stderr)


def _safe(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed before the command began
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 (it stays open until the end)
    raw = getattr(stream.buffer, "raw", stream.buffer)
    buffered = io.BufferedWriter(SafeStream(raw))
    return io.TextIOWrapper(buffered, stream.encoding, "backslashreplace", line_buffering=bool(stream.line_buffering))


def finish(code: int) -> int:
    """Flush the streams; return the exit code, that of ResourceError if standard output could not be written. A pipe
    whose reader is gone is no failure."""
    sys.stdout.flush()
    failure = _failure(sys.stdout)
    if failure not in (None, errno.EPIPE):
        why = os.strerror(failure or 0)
        terminal.say(f"error: standard output cannot be written ({why}); the command itself is done", err=True)
        code = code or ResourceError.exit_code
    sys.stderr.flush()
    return code


def _failure(stream: TextIO) -> int | None:
    raw = getattr(stream.buffer, "raw", None)
    return raw.failure if isinstance(raw, SafeStream) else None
