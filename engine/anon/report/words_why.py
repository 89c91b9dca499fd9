"""What `explain` found in a run folder, in words and tables for a person at a terminal: after the way of the data
(config -> source -> cube -> search -> release -> verify -> report)."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from anon.report.promises import counted
from anon.report.words import called, new_table, section, show_explanation


def show_why(console: Console, told: dict[str, Any]) -> None:
    """Prints what holds and what was lost, then what stood in the way of losing less."""
    show_explanation(console, told)
    if told["binding"] is not None:
        console.print(Text(_binding(told)), soft_wrap=True)
        console.print()
    if told["blocking"]:
        section(console, "What keeps groups from being split, wherever one would cut them", _blocking(told))
        for kind, why in (("refused", "have cuts left, of which none is safe"), ("finest", "have no cut left")):
            rest = told["blocking"][kind]
            said = f"{counted(rest['groups'], 'group')} of {counted(rest['individuals'], 'individual')}"
            console.print(Text(f"{said} {why}"), soft_wrap=True)
        console.print()
    if told.get("finer"):
        section(console, "What refuses one level less", _finer(told))
    section(console, "What was generalized", _columns(told))


def _binding(told: dict[str, Any]) -> str:
    entry = told["criteria"][told["binding"]]
    near = "" if entry["near"] is None else f"; it is at {entry['near']:.1%} of its bound"
    if told.get("finer"):
        count = sum(told["binding"] in node["refused_by"] for node in told["finer"])
        why = f"it refuses {count:,} of the {len(told['finer']):,} combinations with one level less"
    elif (only := _only(told)) is not None:
        groups, people = counted(only["groups"], "group"), counted(only["individuals"], "individual")
        why = f"it alone rules out every split of {groups} of {people}"
    else:
        why = "it is the nearest to its bound"
    return f"{called(entry)} binds: {why}{near}."


def _only(told: dict[str, Any]) -> dict[str, int] | None:
    """What the binding criterion alone keeps from being split, if that is why it binds."""
    if not told["blocking"]:
        return None
    only: dict[str, int] = told["blocking"]["criteria"][told["binding"]]["only"]
    return only if only["individuals"] > told["blocking"]["refused"]["individuals"] else None


def _blocking(told: dict[str, Any]) -> Table:
    table = new_table("criterion", "groups", "individuals", "only this: groups", "individuals", "largest")
    for entry, blocked in zip(told["criteria"], told["blocking"]["criteria"]):
        largest = blocked["largest"][:1]
        most = f"#{largest[0]['group']:,} of {largest[0]['individuals']:,}" if largest else ""
        counts = (blocked["groups"], blocked["individuals"], blocked["only"]["groups"], blocked["only"]["individuals"])
        table.add_row(Text(called(entry)), *(f"{count:,}" for count in counts), most)
    return table


def _finer(told: dict[str, Any]) -> Table:
    table = new_table("column", "refused by", "at level", text=2)
    for node in told["finer"]:
        names = ", ".join(called(told["criteria"][at]) for at in node["refused_by"])
        table.add_row(Text(node["column"]), Text(names or "all of them together"), str(node["level"]))
    return table


def _columns(told: dict[str, Any]) -> Table:
    if any("level" in column for column in told["columns"]):
        table = new_table("column", "level", "lost")
        for column in told["columns"]:
            table.add_row(Text(column["column"]), str(column["level"]), f"{column['lost']:.1%}")
        return table
    uncut = ["groups where it is *", "individuals"] if all("uncut" in column for column in told["columns"]) else []
    table = new_table("column", "cuts", *uncut, "lost")
    for column in told["columns"]:
        counts = (column["cuts"], *(column["uncut"].values() if uncut else ()))
        table.add_row(Text(column["column"]), *(f"{count:,}" for count in counts), f"{column['lost']:.1%}")
    return table
