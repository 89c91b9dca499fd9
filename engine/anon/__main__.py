"""The entry point of the command `anon`. It handles Ctrl-C before it imports anything that takes time, so that an
interrupt during the imports also ends with one line."""

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
    gc.set_threshold(100_000)  # imports only allocate: with the default, garbage was searched for again and again
    without_pandas.refuse()
    streams.install()
    _exit(_command())


def _command() -> int:
    """Run the command; return the exit code."""
    try:
        from anon.core import interrupt

        with interrupt.listening():
            if not _has_working_directory():
                return _report(_no_working_directory())
            from anon.cli.app import app

            app()
    except KeyboardInterrupt:
        return _report(_stopped())
    except SystemExit as end:
        if isinstance(end.code, str):
            terminal.say(end.code, err=True)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _has_working_directory() -> bool:
    """Return whether the working directory still exists, which relative paths need."""
    try:
        return bool(Path.cwd())
    except OSError:
        return False


def _exit(code: int) -> NoReturn:
    """End the process at once: Python would first take hundreds of modules apart, which takes longer than a small
    check. All files and folders of ours are closed by then."""
    os._exit(streams.finish(code))


def _no_working_directory() -> AnonError:
    from anon.errors import ConfigError

    return ConfigError.at("command line", "", "the working directory is gone; change to one that exists")


def _stopped() -> AnonError:
    from anon.core import interrupt
    from anon.errors import Interrupted

    return Interrupted(interrupt.STOPPED)


def _report(error: AnonError) -> int:
    """Report a failure on stderr, and with --json on stdout; return its exit code."""
    terminal.say(f"error: {error}", err=True)
    if "--json" in sys.argv:
        terminal.say_json(error.to_dict())
    return error.exit_code


if __name__ == "__main__":
    main()
