"""Where the command `anon` begins, before the way of the data. It listens for Ctrl-C before it imports anything that
takes time, so that an interrupt is answered with a plain line also then."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from anon.cli import streams
from anon.core import terminal, without_pandas

if TYPE_CHECKING:
    from anon.errors import AnonError


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that nothing here uses
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")  # pyarrow would keep memory that it has freed
    gc.set_threshold(100_000)  # what is imported stays, and was searched for garbage again and again while it grew
    without_pandas.refuse()
    streams.be_patient()
    _leave(_command())


def _command() -> int:
    """Runs the command that was asked for; the exit code."""
    try:
        from anon.core import interrupt

        with interrupt.listening():
            if not _stands_somewhere():
                return 2
            from anon.cli.app import app

            app()
    except KeyboardInterrupt:
        _say_stopped()
        return 130
    except SystemExit as end:
        if isinstance(end.code, str):
            terminal.say(end.code, err=True)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _stands_somewhere() -> bool:
    """Whether the folder that the command was started in is still there: every path is relative to some folder."""
    try:
        return bool(Path.cwd())
    except OSError:
        from anon.errors import ConfigError

        _say(ConfigError.at("command line", "", "change to a folder that is there: the one it was started in is gone"))
        return False


def _leave(code: int) -> NoReturn:
    """Ends the process as it is: Python would first take hundreds of modules apart, which takes longer than a small
    check. All files and folders of ours are closed by then."""
    os._exit(streams.leave(code))


def _say_stopped() -> None:
    from anon import errors
    from anon.core import interrupt

    _say(errors.Interrupted(interrupt.STOPPED))


def _say(error: AnonError) -> None:
    terminal.say(f"error: {error}", err=True)
    if "--json" in sys.argv:
        terminal.say_json(error.to_dict())


if __name__ == "__main__":
    main()
