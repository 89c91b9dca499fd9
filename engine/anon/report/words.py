"""A run or a check in words and tables, for a person at a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

WORST = 6  # (value, point) pairs that are shown


def show(console: Console, facts: dict[str, Any], report: dict[str, Any], places: dict[str, str]) -> None:
    """Prints what holds, how close it is, what was lost and where things are."""
    console.print(_headline(facts, bool(places)))
    console.print(_criteria(facts))
    if points := _points(facts):
        console.print(points)
    if "loss" in report:
        console.print(_loss(report["loss"]))
    console.print(_risk(facts))
    for warning in facts["warnings"]:
        console.print(Text(f"warning: {warning['count']:,} {warning['text']}", style="yellow"), soft_wrap=True)
    for name, place in places.items():
        console.print(f"[bold]{name}[/bold] {place}", soft_wrap=True)


def _headline(facts: dict[str, Any], written: bool) -> Panel:
    rows, groups = facts["rows"], facts["groups"]
    smallest = round(1 / facts["risk"]["highest"])
    size = f"{rows:,} rows in {groups:,} groups, smallest {smallest:,}, mean {rows / groups:,.1f}"
    if facts["safe"]:
        word = "The release was written, verified and holds." if written else "The table is safe."
        return Panel(Group(Text(word, style="bold green"), Text(size)), expand=False)
    return Panel(Group(Text("The table is not safe.", style="bold red"), Text(size)), expand=False)


def _criteria(facts: dict[str, Any]) -> Table:
    table = Table("criterion", "holds", "found", "asked", "worst group", title="What is promised", title_justify="left")
    for entry in facts["criteria"]:
        holds = "[green]yes[/green]" if entry["safe"] else "[red]no[/red]"
        sign = "< " if entry["name"] == "skyline" else ">= "
        about = f" ({entry['sensitive']})" if "sensitive" in entry else ""
        bound = "per value" if entry["name"] == "skyline" else f"{sign}{entry['bound']:g}"
        table.add_row(entry["name"] + about, holds, f"{entry['figure']:.4g}", bound, f"{entry['worst_group']:,}")
    return table


def _points(facts: dict[str, Any]) -> Table | None:
    points = [point for entry in facts["criteria"] for point in entry.get("points", [])]
    if not points:
        return None
    points.sort(key=lambda point: (point["safe"], point["c"] - point["breach"]))
    more = f"; {len(points) - WORST:,} more hold with a wider margin" if len(points) > WORST and facts["safe"] else ""
    table = Table(
        "value", "l", "k", "m", "breach", "below", title=f"Closest to their bound{more}", title_justify="left"
    )
    for p in points[:WORST]:
        style = None if p["safe"] else "red"
        table.add_row(
            p["value"], str(p["l"]), str(p["k"]), str(p["m"]), f"{p['breach']:.4f}", f"{p['c']:g}", style=style
        )
    return table


def _loss(loss: dict[str, float]) -> Table:
    table = Table(
        "column", "lost", "", title="What was lost (0% as in the source, 100% suppressed)", title_justify="left"
    )
    for column, share in loss.items():
        table.add_row(column, f"{share:.1%}", "█" * round(share * 20))
    return table


def _risk(facts: dict[str, Any]) -> Text:
    risk = facts["risk"]
    words = [f"re-identification risk at most {risk['highest']:.2%}, {risk['mean']:.2%} on average"]
    if risk["unique_before"] is not None:
        words.append(f"{risk['unique_before']:,} individuals were unique before")
    words.append(f"{risk['homogeneous_rows']:,} rows in homogeneous groups")
    return Text("; ".join(words))
