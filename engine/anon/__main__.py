"""Where the command `anon` begins, before the way of the data. It listens for Ctrl-C before it imports anything that
takes time, so that an interrupt is answered with a plain line also then."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    gc.set_threshold(100_000)  # what is imported stays, and was searched for garbage again and again while it grew
    try:
        from anon import interrupt

        with interrupt.listening():
            from anon.cli import app

            app()
    except KeyboardInterrupt:
        _say_stopped()
        sys.exit(130)


def _say_stopped() -> None:
    import json

    from anon import errors, interrupt

    error = errors.Interrupted(interrupt.STOPPED)
    print(f"error: {error}", file=sys.stderr)
    if "--json" in sys.argv:
        print(json.dumps(error.to_dict()))


if __name__ == "__main__":
    main()
