"""What a run tells while it works, behind one small interface: nothing, bars on a terminal, periodic lines elsewhere,
or JSON events. Messages go to stderr."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anon.core import interrupt, terminal
from anon.errors import AnonError

Tell = Callable[..., None]  # takes named numbers about a stage under way, as Progress.update does


class Progress:
    """Says nothing and keeps the time of each stage; the base of the other ways to tell."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex[:12]  # the run that this is about
        self.seconds: dict[str, float] = {}
        self.rows: int | None = None  # that the stage under way is about, once they are known
        self.began = time.perf_counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage of the way of the data, e.g. `search`."""
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
        """Facts about a stage under way, e.g. level=3; rows done, of those there are to do, which a stage that takes
        them several times counts as often."""
        self.tell(name, facts | self._pace(done, of))

    def _pace(self, done: int, of: int) -> dict[str, int]:
        """Per cent done, rows a second, and the seconds that the rest may take."""
        if not done or not of:
            return {}
        rate = done / max(time.perf_counter() - self.began, 1e-6)
        return {"percent": 100 * done // of, "rows_a_second": round(rate), "seconds_left": round((of - done) / rate)}

    def tell(self, name: str, facts: dict[str, int]) -> None:
        pass

    def end(self, name: str, seconds: float, failed: bool) -> None:
        pass

    def note(self, name: str, words: str, **facts: Any) -> None:
        """Something that whoever waits should know, by a name, in words and in facts."""

    def alert(self, words: str) -> None:
        """Report something that the user has to look after, on stderr."""
        terminal.say(f"warning: {terminal.one_line(words)}", err=True)

    def warn(self, warnings: list[dict[str, Any]]) -> None:
        """What a run warns of, for those who do not read what it prints."""

    def done(self, **facts: Any) -> None:
        """The end of a run that did not fail, and facts about it."""

    def failed(self, error: AnonError) -> None:
        """The end of a run that failed."""

    def close(self) -> None:
        pass


class Lines(Progress):
    """A line when a stage ends, and at most one every few seconds in between."""

    every = 5.0  # seconds

    def __init__(self) -> None:
        super().__init__()
        self.last = time.perf_counter()

    def tell(self, name: str, facts: dict[str, int]) -> None:
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
    """One JSON object per line."""

    def event(self, **event: Any) -> None:
        terminal.say(json.dumps({"run": self.run, **event}), err=True)

    def begin(self, name: str) -> None:
        self.event(event="begin", stage=name)

    def tell(self, name: str, facts: dict[str, int]) -> None:
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
        error.told = True

    def done(self, **facts: Any) -> None:
        self.event(event="done", seconds=round(sum(self.seconds.values()), 3), **facts)


class Bars(Progress):
    """A bar with the facts of the stage under way, a spinner where nobody knows how much is left, and a line for each
    stage that is done."""

    width = 20  # characters

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console

        self.console = Console(stderr=True)
        self.status = self.console.status("starting")
        self.status.start()

    def begin(self, name: str) -> None:
        self.status.update(name)

    def tell(self, name: str, facts: dict[str, int]) -> None:
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
