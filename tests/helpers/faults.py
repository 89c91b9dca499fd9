"""Lets system calls of `anon.core.disk` fail, one at a time: each call of a start, a publication or a cleanup can be
killed, end in an error, write less than it was given, or be interrupted by a signal. Outside the way of the data."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon.core import disk

COUNTED = (
    "open", "mkdir", "write", "fsync", "replace", "rename", "unlink", "rmdir", "chmod", "lstat", "fstat", "listdir",
    "close",
)  # fmt: skip
KILLED = 77  # the exit code of a process that ended itself

Fault = Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]  # gets the name of a call, the call, its arguments


def killed(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    os._exit(KILLED)


def failing(number: int) -> Fault:
    """An error without an effect; a handle is closed all the same, as Linux does it."""

    def fault(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if name == "close":
            call(*arguments)
        raise OSError(number, os.strerror(number))

    return fault


def failing_late(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """An error although the call had its effect, as on a file system behind a network."""
    if name == "open":
        os.close(call(*arguments))
    else:
        call(*arguments)
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def short(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A write of half of the bytes; other calls are as they are."""
    if name != "write":
        return call(*arguments)
    handle, content = arguments
    return call(handle, content[: max(len(content) // 2, 1)])


def terminated(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    signal.raise_signal(signal.SIGTERM)
    return call(*arguments)


FAULTS: dict[str, Fault] = {
    "kill": killed,
    "EIO": failing(errno.EIO),
    "ENOSPC": failing(errno.ENOSPC),
    "EINTR": failing(errno.EINTR),
    "EIO after the effect": failing_late,
    "short write": short,
    "SIGTERM": terminated,
}


class Calls:
    """The system calls that `anon.core.disk` makes, in their order; the one of a number gets the fault, or all from
    there on."""

    def __init__(self, at: int = -1, fault: str = "", lasting: bool = False) -> None:
        self.at, self.fault, self.lasting = at, fault, lasting
        self.names: list[str] = []

    @property
    def failed(self) -> str:
        """The name of the call that got the fault."""
        return self.names[self.at]

    def __call__(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.names.append(name)
        now = len(self.names) - 1
        if self.fault and (now == self.at or (self.lasting and now > self.at)):
            return FAULTS[self.fault](name, call, arguments)
        return call(*arguments)


class _Module:
    """A module some of whose functions are counted."""

    def __init__(self, module: Any, names: tuple[str, ...], calls: Calls) -> None:
        self._module, self._names, self._calls = module, names, calls

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._module, name)
        if name not in self._names:
            return own
        return lambda *arguments: self._calls(name, own, *arguments)


@contextmanager
def injected(calls: Calls, can_exchange: bool = True) -> Iterator[Calls]:
    """Count the calls while this lasts, with a file system that can exchange two folders or cannot."""
    before = disk.os, disk.fcntl, disk.exchange

    def exchange(first: Path, second: Path) -> bool:
        return bool(calls("exchange", before[2], first, second)) if can_exchange else False

    disk.os, disk.fcntl = _Module(os, COUNTED, calls), _Module(fcntl, ("flock",), calls)  # type: ignore[assignment]
    disk.exchange = exchange
    try:
        yield calls
    finally:
        disk.os, disk.fcntl, disk.exchange = before  # type: ignore[assignment]


@dataclass
class Count:
    """How many faults were injected."""

    total: int = 0

    def add(self, faults: int) -> None:
        self.total += faults


def forked(work: Callable[[], Any]) -> int:
    """Do something in a process of its own, without what Python does at the end of one; return its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)
