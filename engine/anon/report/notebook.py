"""Show the result of a command in a notebook: the verdict, the figures of the criteria, the warnings, and two charts of
the report as plain SVG. It is one piece of HTML without scripts and styles of its own, and says no more than
report.json does: all of it is escaped, and a value is named only as the report names it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from anon.core.phrases import counted, figure, percent
from anon.report.view_groups import size_classes

Json = dict[str, Any]
BARS = 24  # of a chart
WIDTH, LINE, NAME = 420, 18, 150  # pixels
GOOD, OPEN, BAD, BAR = "#00664f", "#8a5a00", "#a93500", "#0072b2"


def summary_html(facts: Json, report: Json, short: str) -> str:
    """Return the result of a command as HTML; `short` is shown where there is no verdict."""
    if "criteria" not in facts or "safe" not in facts:
        return f"<pre>{escape(short)}</pre>"
    parts = [_verdict(facts), _numbers(facts), _criteria(facts["criteria"]), _warnings(facts.get("warnings", []))]
    if "utility" in report:
        loss = report["utility"]["loss"]["columns"]
        bars = {name: (share, percent(share)) for name, share in loss.items()}
        parts.append(_bars("Information loss per column", bars))
    if sizes := report.get("group_sizes"):
        classes = size_classes(sizes)
        bars = {each["name"]: (each["groups"], f"{each['groups']:,}") for each in classes}
        parts.append(_bars("Groups by the number of individuals in them", bars))
    return f'<div class="anon-result">{"".join(parts)}</div>'


def _verdict(facts: Json) -> str:
    grave = any(warning.get("severity") == "high" for warning in facts.get("warnings", []))
    words = "Safe: every criterion holds" if facts["safe"] else "Not safe"
    colour = (OPEN if grave else GOOD) if facts["safe"] else BAD
    more = "; read the warnings" if facts["safe"] and grave else ""
    return f'<p style="color:{colour};font-weight:600">{words}{more}</p>'


def _numbers(facts: Json) -> str:
    words = [counted(facts["rows"], "row"), counted(facts["individuals"]), counted(facts["groups"], "group")]
    if facts.get("suppressed"):
        words.append(f"{counted(facts['suppressed'])} suppressed")
    highest = facts.get("risk", {}).get("highest")
    if highest:
        words.append(f"{counted(round(1 / highest))} in the smallest group")
    return f"<p>{escape(', '.join(words))}</p>"


def _criteria(criteria: Iterable[Json]) -> str:
    rows = [
        (each["name"], _about(each), figure(each["figure"]), f"{each.get('relation', '')} {figure(each['bound'])}",
         "holds" if each["safe"] else "fails")
        for each in criteria
    ]  # fmt: skip
    return _table(("criterion", "sensitive", "figure", "bound", ""), rows)


def _about(criterion: Json) -> str:
    about = criterion.get("sensitive") or []
    return about if isinstance(about, str) else ", ".join(about)


def _warnings(warnings: list[Json]) -> str:
    if not warnings:
        return "<p>No warnings.</p>"
    items = "".join(f"<li>{escape(_warning(each))}</li>" for each in warnings)
    return f"<p>{counted(len(warnings), 'warning')}:</p><ul>{items}</ul>"


def _warning(warning: Json) -> str:
    return f"{warning['code']}: {warning['count']:,} {warning.get('text', '')}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table><tr>{heads}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _bars(title: str, bars: dict[str, tuple[float, str]]) -> str:
    """Return a chart of horizontal bars, each with its name and its figure."""
    shown = list(bars.items())[:BARS]
    longest = max((length for _, (length, _) in shown), default=0) or 1
    drawn = "".join(_bar(at, name, length / longest, text) for at, (name, (length, text)) in enumerate(shown))
    left = f" ({len(shown):,} of {len(bars):,})" if len(shown) < len(bars) else ""
    return (
        f"<p>{escape(title + left)}</p>"
        f'<svg role="img" aria-label="{escape(title)}" width="{NAME + WIDTH}" height="{LINE * len(shown)}" '
        f'font-size="12" fill="currentColor">{drawn}</svg>'
    )


def _bar(at: int, name: str, share: float, text: str) -> str:
    middle, length = at * LINE + LINE * 0.7, round(share * (WIDTH - 80))
    words = name if len(name) <= 22 else f"{name[:21]}…"
    return (
        f'<text x="{NAME - 6}" y="{middle:g}" text-anchor="end">{escape(words)}</text>'
        f'<rect x="{NAME}" y="{at * LINE + 3}" width="{length}" height="{LINE - 6}" fill="{BAR}"/>'
        f'<text x="{NAME + length + 6}" y="{middle:g}">{escape(text)}</text>'
    )
