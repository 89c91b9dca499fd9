"""Ctrl-C at every moment: a plain line and exit 130 while the command starts, and the second one ends it at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from anon.core import interrupt

# Ctrl-C at the moment when a library is imported.
INTERRUPTED_IMPORT = """
import builtins, sys
plain = builtins.__import__
def interrupted(name, *rest):
    if name == {library!r}:
        builtins.__import__ = plain
        raise KeyboardInterrupt
    return plain(name, *rest)
from anon.__main__ import main
builtins.__import__ = interrupted
main()
"""

# What takes minutes, and does not let Python hear of signals meanwhile; it says so when it is under way.
BUSY = """
import hashlib, threading
from anon.core import interrupt
with interrupt.listening():
    threading.Timer(0.3, print, ["busy"], {"flush": True}).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize("library", ["signal", "typer", "anon.commands", "numpy"])
def test_ctrl_c_while_the_command_starts_is_exit_130_in_one_line(library: str) -> None:
    with python(INTERRUPTED_IMPORT.format(library=library), "check", "none.yaml", "--on", "x", "--json") as job:
        told, said = job.communicate(timeout=60)
    assert job.returncode == 130
    assert said == "error: interrupted; nothing was published\n"
    assert json.loads(told) == {"error": "interrupted; nothing was published", "problems": [], "exit_code": 130}


@pytest.mark.parametrize("first", [[signal.SIGINT], [signal.SIGHUP, signal.SIGHUP, signal.SIGTERM]])
def test_ctrl_c_after_a_request_ends_the_process_at_once_whatever_it_does(first: list[signal.Signals]) -> None:
    with python(BUSY) as job:
        assert job.stdout is not None and job.stdout.readline() == "busy\n"
        for number in first:
            job.send_signal(number)
            with pytest.raises(subprocess.TimeoutExpired):
                job.wait(0.3)
        job.send_signal(signal.SIGINT)
        _, said = job.communicate(timeout=30)
    assert job.returncode == 130 and "ended at once" in said


def test_nobody_listens_before_and_after() -> None:
    before = [signal.getsignal(number) for number in interrupt.SIGNALS]
    with interrupt.listening():
        with interrupt.listening():
            pass
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
    assert [signal.getsignal(number) for number in interrupt.SIGNALS] == before
    with interrupt.listening():
        assert not interrupt.requested(), "an earlier request is forgotten"
