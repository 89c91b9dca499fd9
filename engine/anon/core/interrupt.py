"""A request to stop that cannot get lost. Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt where the
program happens to be, and Python drops an exception that is raised in a callback; so the request is also remembered,
and looked up after every stage and before anything is published. Whoever asks again by Ctrl-C does not want to wait:
that ends the process at once, also in the midst of a long query, where Python itself would not hear of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

STOPPED = "interrupted; nothing was published"
EXIT_CODE = 130
AGAIN = 0.2  # seconds after which work is cancelled once more
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR = b"\x1b[?25h\n"  # which a spinner hides
PATIENCE = 1.0  # seconds after which whoever sits there is told why nothing happens
STOPPING = b"\nstopping at the next safe place; Ctrl-C again ends it at once\n"
ENDED = b"error: ended at once; the next start for the same release removes the private folders .anon-* that are left\n"

T = TypeVar("T")

_requested = threading.Event()
_listening = threading.Event()


@contextmanager
def listening() -> Iterator[None]:
    """Signals to stop are taken for requests while this lasts. Within another one it changes nothing."""
    if _listening.is_set():
        yield
        return
    _listening.set()
    _requested.clear()
    before = {number: signal.signal(number, _request) for number in SIGNALS}
    hear, tell = os.pipe()
    os.set_blocking(tell, False)
    other_fd = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    threading.Thread(target=_end_at_the_second, args=(hear,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(other_fd)
        os.close(tell)
        for number, handler in before.items():
            signal.signal(number, handler)
        _listening.clear()
        _requested.clear()  # it was about what has ended


def _request(number: int, frame: FrameType | None) -> None:
    _requested.set()
    raise KeyboardInterrupt


def _end_at_the_second(hear: int) -> None:
    """Reads the numbers of signals as they come in, until nobody listens any more. Only Ctrl-C ends the process: a
    terminal that closes may say so twice."""
    requests = 0
    while numbers := os.read(hear, 64):
        for number in numbers:
            if requests and number == signal.SIGINT:
                os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + ENDED)
                os._exit(EXIT_CODE)
            if number in SIGNALS:
                requests += 1
                waiting = threading.Timer(PATIENCE, _say_stopping)
                waiting.daemon = True
                waiting.start()
    os.close(hear)


def _say_stopping() -> None:
    if _listening.is_set() and os.isatty(2):
        os.write(2, STOPPING)


def requested() -> bool:
    """Whether somebody asked to stop."""
    return _requested.is_set()


def check() -> None:
    """Raises KeyboardInterrupt if somebody asked to stop."""
    if requested():
        raise KeyboardInterrupt


class Deferral:
    """Signals to stop that wait while files are put in place or removed."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._came: list[int] = []

    def begin(self) -> None:
        """Let signals wait from now on; again changes nothing. Only the main thread gets any."""
        if not self._before and threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in SIGNALS}
            for number in SIGNALS:
                signal.signal(number, lambda number, frame: self._came.append(number))

    def end(self, published: bool = False) -> None:
        """Deliver what came. A command that has published has nothing left to stop: there signals go on waiting."""
        if published and _listening.is_set():
            return
        self._restore()
        came, self._came = self._came, []
        for number in came[:1]:
            signal.raise_signal(number)

    def _restore(self) -> None:
        try:
            while self._before:
                number = next(iter(self._before))
                signal.signal(number, self._before[number] or signal.SIG_DFL)
                del self._before[number]
        finally:  # a signal may come in between
            if self._before:
                self._restore()


@contextmanager
def taken_back() -> Iterator[None]:
    """Around the import of a library that takes Ctrl-C for itself: afterwards Python hears of it again."""
    yield
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, signal.getsignal(number))


def heard(work: Callable[[], T], cancel: Callable[[], bool]) -> T:
    """Does work that hears no signal in another thread, so that a request to stop is heard at once. `cancel` makes it
    end, and says whether it could; what it cannot end is left behind."""
    doing: Future[T] = Future()

    def do() -> None:
        try:
            doing.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            doing.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    try:
        return doing.result()
    except KeyboardInterrupt:
        while cancel() and wait([doing], AGAIN).not_done:
            pass  # what was just about to begin has not heard of it
        raise
