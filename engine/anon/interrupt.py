"""A request to stop that cannot get lost. Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt where the
program happens to be, and Python drops an exception that is raised in a callback; so the request is also remembered,
and looked up after every stage and before anything is published. Whoever asks again by Ctrl-C does not want to wait:
that ends the process at once, also in the midst of a long query, where Python itself would not hear of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = "interrupted; nothing was published"
EXIT_CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR = b"\x1b[?25h\n"  # which a spinner hides
ENDED = b"error: ended at once; private folders .anon-* may be left in limits.temp and beside the release\n"

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
            requests += number in SIGNALS
    os.close(hear)


def requested() -> bool:
    """Whether somebody asked to stop."""
    return _requested.is_set()


def check() -> None:
    """Raises KeyboardInterrupt if somebody asked to stop."""
    if requested():
        raise KeyboardInterrupt
