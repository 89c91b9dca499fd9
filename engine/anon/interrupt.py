"""A request to stop that cannot get lost. Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt where the
program happens to be, and Python drops an exception that is raised in a callback; so the request is also remembered,
and looked up after every stage and before anything is published."""

from __future__ import annotations

import signal
import threading
from types import FrameType

_requested = threading.Event()


def listen() -> None:
    """From now on signals to stop are taken for requests; earlier ones are forgotten."""
    _requested.clear()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _request)


def _request(number: int, frame: FrameType | None) -> None:
    _requested.set()
    raise KeyboardInterrupt


def check() -> None:
    """Raises KeyboardInterrupt if somebody asked to stop."""
    if _requested.is_set():
        raise KeyboardInterrupt
