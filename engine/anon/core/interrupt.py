"""Handle requests to stop so that none is lost. Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt where the
program happens to be, and Python drops an exception that is raised in a callback; so the request is also recorded, and
checked after every stage and before anything is published. A second Ctrl-C ends the process at once, even in the middle
of a long query, during which Python itself runs no signal handler."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from anon.errors import Interrupted

STOPPED = "interrupted; nothing was published"
RETRY = 0.2  # seconds after which work is cancelled once more
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR = b"\x1b[?25h\n"  # which a spinner hides
PATIENCE = 1.0  # seconds after which a user at the terminal is informed that the command is stopping
STOPPING = b"\nstopping at the next safe place; Ctrl-C again ends it at once\n"
ENDED = b"error: ended at once; the next start for the same release removes the private folders .anon-* that are left\n"

T = TypeVar("T")

_requested = threading.Event()
_listening = threading.Event()


@contextmanager
def listening() -> Iterator[None]:
    """Treat signals to stop as requests within this context. Nested within another one it changes nothing."""
    if _listening.is_set():
        yield
        return
    _listening.set()
    _requested.clear()
    before = {number: signal.signal(number, _request) for number in SIGNALS}
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    other_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_end_at_second_request, args=(reader,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(other_fd)
        os.close(writer)
        for number, handler in before.items():
            signal.signal(number, handler)
        _listening.clear()
        _requested.clear()  # the request concerned what has ended


def _request(number: int, frame: FrameType | None) -> None:
    _requested.set()
    raise KeyboardInterrupt


def _end_at_second_request(reader: int) -> None:
    """Read the numbers of signals as they arrive, until the context ends. Only Ctrl-C ends the process: a terminal that
    closes may send its signal twice."""
    requests = 0
    while numbers := os.read(reader, 64):
        for number in numbers:
            if requests and number == signal.SIGINT:
                os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + ENDED)
                os._exit(Interrupted.exit_code)
            if number in SIGNALS:
                requests += 1
                waiting = threading.Timer(PATIENCE, _print_stopping)
                waiting.daemon = True
                waiting.start()
    os.close(reader)


def _print_stopping() -> None:
    if _listening.is_set() and os.isatty(2):
        os.write(2, STOPPING)


def requested() -> bool:
    """Return whether a request to stop has arrived."""
    return _requested.is_set()


def check() -> None:
    """Raise KeyboardInterrupt if a request to stop has arrived."""
    if requested():
        raise KeyboardInterrupt


class Deferral:
    """Defers signals to stop while files are put in place or removed."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._deferred: list[int] = []

    def begin(self) -> None:
        """Defer signals from now on; a second call changes nothing. Only the main thread receives signals."""
        if not self._before and threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in SIGNALS}
            for number in SIGNALS:
                signal.signal(number, lambda number, frame: self._deferred.append(number))

    def end(self, published: bool = False) -> None:
        """Deliver the deferred signals. A command that has published has nothing left to stop: there signals stay
        deferred."""
        if published and _listening.is_set():
            return
        self._restore()
        deferred, self._deferred = self._deferred, []
        for number in deferred[:1]:
            signal.raise_signal(number)

    def _restore(self) -> None:
        try:
            while self._before:
                number = next(iter(self._before))
                signal.signal(number, self._before[number] or signal.SIG_DFL)
                del self._before[number]
        finally:  # a signal may arrive in between
            if self._before:
                self._restore()


@contextmanager
def restored_handlers() -> Iterator[None]:
    """Restore Python's signal handlers after the import of a library that installs its own for Ctrl-C."""
    yield
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, signal.getsignal(number))


def run_interruptible(work: Callable[[], T], cancel: Callable[[], bool]) -> T:
    """Return the result of work that does not react to signals. It runs in another thread, so that a request to stop
    takes effect at once. `cancel` ends the work and returns whether it could; work that it cannot end is abandoned."""
    future: Future[T] = Future()

    def target() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            future.set_exception(error)

    threading.Thread(target=target, daemon=True).start()
    try:
        return future.result()
    except KeyboardInterrupt:
        while cancel() and wait([future], RETRY).not_done:
            pass  # work that was about to begin missed the cancellation
        raise
