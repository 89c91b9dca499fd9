"""A real browser for tests: Debian's chromium without a window, spoken to in its DevTools protocol over two pipes, so
that nothing has to be installed but chromium itself."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT = 60.0  # seconds for an answer
QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--mute-audio",
         "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync", "--disable-extensions",
         "--remote-debugging-pipe"]  # fmt: skip


def installed() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in one browser. `said` has what it wrote to its console or failed with, `asked` the addresses that it
    wanted to load."""

    def __init__(self) -> None:
        path = installed()
        assert path is not None, "chromium is not installed"
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours, theirs = os.pipe(), os.pipe()  # what we write, what they write
        # The browser reads from 3 and writes to 4.
        command = f'exec "$0" "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, path, *QUIET, f"--user-data-dir={self.home.name}", "about:blank"],
            pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        self.write_to, self.read_from = ours[1], theirs[0]
        self.said: list[str] = []
        self.asked: list[str] = []
        self.loaded = False
        self._count, self._rest, self._session = 0, b"", ""
        target = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        self.process.wait(WAIT)
        os.close(self.write_to)
        os.close(self.read_from)
        self.home.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol and waits for its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self.write_to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        found: dict[str, Any] = answer["result"]
        return found

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + WAIT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.read_from], [], [], max(until - time.monotonic(), 0))
            piece = os.read(self.read_from, 1 << 16) if ready else b""
            if not piece:
                raise RuntimeError("the browser does not answer")
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.said.append(" ".join(str(each.get("value")) for each in told["args"]))
            case "Runtime.exceptionThrown":
                detail = told["exceptionDetails"]
                self.said.append(detail.get("exception", {}).get("description") or detail["text"])
            case "Log.entryAdded":
                self.said.append(told["entry"]["text"])
            case "Network.requestWillBeSent":
                self.asked.append(told["request"]["url"])
            case "Page.loadEventFired":
                self.loaded = True

    def open(self, path: Path) -> None:
        self.said.clear()
        self.asked.clear()
        self.loaded = False
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not self.loaded:
            self._note(self._next())
        self.settle()

    def settle(self) -> None:
        """Waits until what was asked for is drawn."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def js(self, expression: str) -> Any:
        told = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"]["exception"].get("description", "the script failed"))
        return told["result"].get("value")

    def screen(self, width: int, height: int = 900) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, kind: str = "", dark: bool = False) -> None:
        """Emulates print, or a dark colour scheme."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", media=kind, features=scheme)

    def key(self, name: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def mouse(self, kind: str, x: float, y: float) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def controls(self) -> list[tuple[str, str]]:
        """The role and the name of everything that can have the focus, as a screen reader is told."""
        found = []
        for node in self.send("Accessibility.getFullAXTree")["nodes"]:
            properties = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
            if not node.get("ignored") and properties.get("focusable") and node["role"]["value"] != "RootWebArea":
                found.append((node["role"]["value"], node.get("name", {}).get("value", "")))
        return found

    def screenshot(self, path: Path, whole: bool = True) -> None:
        told = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
