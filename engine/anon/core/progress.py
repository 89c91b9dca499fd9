"""Report the progress of a run behind one small interface: not at all, as bars on a terminal, as periodic lines
elsewhere, or as JSON events. Messages go to stderr."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anon.core import interrupt, terminal
from anon.errors import AnonError

ProgressCallback = Callable[..., None]  # takes named numbers about the current stage, as Progress.update does


class Progress:
    """Reports nothing and measures the time of each stage; the base of the other classes."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex[:12]  # the id of the run
        self.seconds: dict[str, float] = {}
        self.rows: int | None = None  # of the current stage, once their number is known
        self.began = time.perf_counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time and report a stage of the pipeline, e.g. `search`."""
        self.began = began = time.perf_counter()
        self.begin(name)
        failed = True
        try:
            yield
            interrupt.check()
            failed = False
        finally:
            self.seconds[name] = time.perf_counter() - began
            self.end(name, self.seconds[name], failed)

    def begin(self, name: str) -> None:
        pass

    def update(self, name: str, done: int = 0, of: int = 0, **facts: int) -> None:
        """Report facts about the current stage, e.g. level=3, and the rows done of all that there are to do; a stage
        that processes rows several times counts them each time."""
        self.show(name, facts | self._pace(done, of))

    def _pace(self, done: int, of: int) -> dict[str, int]:
        """Return the per cent done, the rows per second, and the estimated seconds left."""
        if not done or not of:
            return {}
        rate = done / max(time.perf_counter() - self.began, 1e-6)
        return {"percent": 100 * done // of, "rows_a_second": round(rate), "seconds_left": round((of - done) / rate)}

    def show(self, name: str, facts: dict[str, int]) -> None:
        pass

    def end(self, name: str, seconds: float, failed: bool) -> None:
        pass

    def note(self, name: str, words: str, **facts: Any) -> None:
        """Report something that a waiting user should know, by a name, in words and in facts."""

    def alert(self, words: str) -> None:
        """Report something that the user has to take care of, on stderr."""
        terminal.say(f"warning: {terminal.one_line(words)}", err=True)

    def warn(self, warnings: list[dict[str, Any]]) -> None:
        """Report the warnings of a run, for programs that do not read what it prints."""

    def done(self, **facts: Any) -> None:
        """Report the end of a run that did not fail, with facts about it."""

    def failed(self, error: AnonError) -> None:
        """Report the end of a run that failed."""

    def close(self) -> None:
        pass


class Lines(Progress):
    """Prints a line when a stage ends, and at most one every few seconds in between."""

    every = 5.0  # seconds

    def __init__(self) -> None:
        super().__init__()
        self.last = time.perf_counter()

    def show(self, name: str, facts: dict[str, int]) -> None:
        if time.perf_counter() - self.last >= self.every:
            self.last = time.perf_counter()
            self.say(f"{name}: {_listed(facts)}")

    def end(self, name: str, seconds: float, failed: bool) -> None:
        self.last = time.perf_counter()
        self.say(f"{name}: {'failed after' if failed else 'done in'} {seconds:.2f} s")

    def note(self, name: str, words: str, **facts: Any) -> None:
        self.say(f"{name}: {words}")

    def say(self, line: str) -> None:
        terminal.say(line, err=True)


class Events(Progress):
    """Prints one JSON object per line."""

    def event(self, **event: Any) -> None:
        terminal.say(json.dumps({"run": self.run, **event}), err=True)

    def begin(self, name: str) -> None:
        self.event(event="begin", stage=name)

    def show(self, name: str, facts: dict[str, int]) -> None:
        self.event(event="progress", stage=name, **facts)

    def end(self, name: str, seconds: float, failed: bool) -> None:
        rows = {} if self.rows is None else {"rows": self.rows}
        self.event(event="end", stage=name, seconds=round(seconds, 3), **rows, **({"failed": True} if failed else {}))

    def note(self, name: str, words: str, **facts: Any) -> None:
        self.event(event=name, text=words, **facts)

    def alert(self, words: str) -> None:
        self.event(event="alert", text=words)

    def warn(self, warnings: list[dict[str, Any]]) -> None:
        for warning in warnings:
            self.event(event="warning", **warning)

    def failed(self, error: AnonError) -> None:
        self.event(event="failed", **error.to_dict())
        error.reported = True

    def done(self, **facts: Any) -> None:
        self.event(event="done", seconds=round(sum(self.seconds.values()), 3), **facts)


class Bars(Progress):
    """Shows a bar with the facts of the current stage, a spinner where the remaining work is unknown, and a line for
    each stage that is done."""

    width = 20  # characters

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console

        self.console = Console(stderr=True)
        self.status = self.console.status("starting")
        self.status.start()

    def begin(self, name: str) -> None:
        self.status.update(name)

    def show(self, name: str, facts: dict[str, int]) -> None:
        full = self.width * facts.get("percent", 0) // 100
        bar = f" {'━' * full}[dim]{'━' * (self.width - full)}[/dim]" if "percent" in facts else ""
        self.status.update(f"{name}{bar}  {_listed(facts)}")

    def end(self, name: str, seconds: float, failed: bool) -> None:
        mark = "[red]✗[/red]" if failed else "[green]✓[/green]"
        self.console.print(f"{mark} {name} [dim]{seconds:.2f} s[/dim]")

    def note(self, name: str, words: str, **facts: Any) -> None:
        self.console.print(f"{name}: {terminal.one_line(words)}", highlight=False, markup=False)

    def alert(self, words: str) -> None:
        self.console.print(f"warning: {terminal.one_line(words)}", highlight=False, markup=False)

    def close(self) -> None:
        self.status.stop()


def _listed(facts: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in facts.items())
