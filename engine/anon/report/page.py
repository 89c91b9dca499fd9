"""Render report.json as report.html, one file for people to open.

The charts are a few hundred lines of our own plain SVG: a library that draws three dimensions brings megabytes of
script and WebGL, which prints badly and is invisible to a screen reader, and other libraries do not draw a skyline at
all. Text and tables are in the file itself, so that it can be read without any script. Data is never HTML: the template
escapes all of it, and a content security policy lets nothing run but the one script that belongs to the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.artifacts.reading import read_report
from anon.artifacts.schema import Report
from anon.core.database import translated
from anon.errors import ConfigError
from anon.report.view import view

if TYPE_CHECKING:
    from jinja2 import Environment

PARTS = Path(__file__).parent / "assets"
SCRIPTS = ("svg.js", "charts.js", "skyline.js", "map.js", "lattice.js", "main.js")


def write(run: Path, out: Path | None = None, show_values: bool = False) -> dict[str, Any]:
    """Render the page of a run folder again; return its path and its size in bytes."""
    report, out = read_report(run), out or run / "report.html"
    text = render(report)
    if show_values and not report.shows_values:
        raise ConfigError.at("--show-values", "a run that did not record values", "a run made with --show-values")
    if out.is_dir() or not out.parent.is_dir():
        found = f"{out}, which is a folder" if out.is_dir() else f"{out.parent}, which is not there"
        raise ConfigError.at("--out", found, "a file to write, in a folder that exists")
    with translated("writing the page"), open(out, "w", encoding="utf-8", opener=_private) as file:
        file.write(text)
    return {"page": str(out), "bytes": len(text.encode())}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def render(report: Report) -> str:
    """Return the page of a report."""
    from markupsafe import Markup

    style = (PARTS / "style.css").read_text(encoding="utf-8")
    script = "\n".join((PARTS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    return (
        _environment()
        .get_template("template.html")
        .render(
            view(report),
            policy=f"default-src 'none'; style-src {_hashed(style)}; script-src {_hashed(script)}; base-uri 'none'; "
            "form-action 'none'",
            style=Markup(style),  # noqa: S704 - our own files, without data
            script=Markup(script),  # noqa: S704
            privacy=json.dumps(report.privacy, indent=2, ensure_ascii=False),
        )
    )


@cache
def _environment() -> Environment:
    """Return the template environment, cached for the next page: compiling the template takes a good part of a small
    run."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(PARTS, encoding="utf-8")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def _hashed(text: str) -> str:
    """Return the hash by which a content security policy allows one text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
