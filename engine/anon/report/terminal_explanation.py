"""What `explain` found in a run folder, in words and tables for a person at a terminal: after the way of the data
(config -> source -> cube -> search -> release -> verify -> report)."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anon.core.phrases import counted
from anon.report.terminal import called, new_table, section, show_criteria_and_loss


def show_explanation(console: Console, told: dict[str, Any]) -> None:
    """Prints what holds and what was lost, then what stood in the way of losing less."""
    show_criteria_and_loss(console, told)
    if told["binding"] is not None:
        console.print(Text(_binding(told)), soft_wrap=True)
        console.print()
    if told["blocking"]:
        section(console, "What keeps groups from being split: groups (and individuals)", _blocking(told))
        _legend(console, told)
        for kind, why in (("refused", "have cuts left, of which none is safe"), ("finest", "have no cut left")):
            rest = told["blocking"][kind]
            said = f"{counted(rest['groups'], 'group')} of {counted(rest['individuals'], 'individual')}"
            console.print(Text(f"{said} {why}"), soft_wrap=True)
        console.print()
    if told.get("finer"):
        section(console, "What refuses one level less", _finer(told))
    section(console, "What was generalized", _columns(told))
    _show_relaxing(console, told)


def _legend(console: Console, told: dict[str, Any]) -> None:
    last = "refused by it: a cut that is left there is refused by this criterion alone"
    if not told["relaxing"].get("criteria"):
        last = "at most, relaxed: no other criterion rules their cuts out, so that relaxing this one might divide them"
    for line in ("no cut is safe: wherever one would cut, by size or most frequent values alone", last):
        console.print(Padding(Text(line, style="dim"), (0, 0, 0, 2)))
    console.print()


def _binding(told: dict[str, Any]) -> str:
    entry = told["criteria"][told["binding"]]
    near = "" if entry["near"] is None else f"; it is at {entry['near']:.1%} of its bound"
    if told.get("finer"):
        count = sum(told["binding"] in node["refused_by"] for node in told["finer"])
        why = f"it refuses {count:,} of the {len(told['finer']):,} combinations with one level less"
    elif (alone := _alone(told)) is not None:
        groups, people = counted(alone["groups"], "group"), counted(alone["individuals"], "individual")
        why = f"it alone refuses cuts of {groups} of {people}"
    elif (only := _only(told)) is not None:
        groups, people = counted(only["groups"], "group"), counted(only["individuals"], "individual")
        why = f"it alone rules out every split of {groups} of {people}"
    else:
        why = "it is the nearest to its bound"
    return f"{called(entry)} binds: {why}{near}."


def _alone(told: dict[str, Any]) -> dict[str, int] | None:
    """What the binding criterion alone refuses cuts of, if that was looked at and is why it binds."""
    if not told["relaxing"]["measured"]:
        return None
    alone: dict[str, int] = told["relaxing"]["criteria"][told["binding"]]["refuses_alone"]
    return alone if alone.get("groups") else None


def _only(told: dict[str, Any]) -> dict[str, int] | None:
    """What the binding criterion alone keeps from being split, if that is why it binds."""
    if not told["blocking"]:
        return None
    only: dict[str, int] = told["blocking"]["criteria"][told["binding"]]["only"]
    return only if only["individuals"] > told["blocking"]["refused"]["individuals"] else None


def _blocking(told: dict[str, Any]) -> Table:
    """Groups, and in brackets the individuals in them."""
    measured = told["relaxing"].get("criteria")
    last = "refused by it" if measured else "at most, relaxed"
    table = new_table("criterion", "no cut is safe", "only for this", last)
    for at, (entry, blocked) in enumerate(zip(told["criteria"], told["blocking"]["criteria"])):
        split = measured[at]["refuses_alone"] if measured else blocked["at_most"]
        counts = ((each["groups"], each["individuals"]) for each in (blocked, blocked["only"], split))
        table.add_row(Text(called(entry)), *(f"{groups:,} ({people:,})" for groups, people in counts))
    return table


def _finer(told: dict[str, Any]) -> Table:
    table = new_table("column", "refused by", "at level", text=2)
    for node in told["finer"]:
        names = ", ".join(called(told["criteria"][at]) for at in node["refused_by"])
        table.add_row(Text(node["column"]), Text(names or "all of them together"), str(node["level"]))
    return table


def _show_relaxing(console: Console, told: dict[str, Any]) -> None:
    found = told["relaxing"]
    if not found["measured"]:
        said = f"What relaxing a criterion would buy was not measured: {found['why']}"
        console.print(Text(said), soft_wrap=True)
        return
    section(console, "What relaxing one criterion would buy, the others as they are", _bought(told))
    together = found.get("refused_together")
    if together and together["groups"]:
        said = f"{counted(together['groups'], 'group')} of {counted(together['individuals'], 'individual')}"
        console.print(Text(f"{said}: every cut that is left is refused by several criteria at once"), soft_wrap=True)
    said = f"measured by {found['searches']:,} searches of {counted(found['rows'], 'row')}; lets {_passing(told)}"
    console.print(Text(said, style="dim"), soft_wrap=True)


def _passing(told: dict[str, Any]) -> str:
    if "safe_nodes" in told["relaxing"]["now"]:
        return "pass: nodes just below safe ones that would be safe"
    partly = any(t["refuses_alone"]["looked_at"] < t["refuses_alone"]["cuts"] for t in told["relaxing"]["criteria"])
    return f"split: groups of now that would{', at least' if partly else ''}"


def _bought(told: dict[str, Any]) -> Table:
    found = told["relaxing"]
    nodes = "safe_nodes" in found["now"]
    table = new_table("change", "lets pass" if nodes else "lets split", "groups", "lost")
    _add_bought(table, "as it is", found["now"])
    for entry, tried in zip(told["criteria"], found["criteria"]):
        table.add_section()
        table.add_row(Text(called(entry), style="bold"))
        if not tried["settings"]:
            table.add_row(f"  no looser setting would {'make a node safe' if nodes else 'split a group'}")
        for setting in tried["settings"]:
            _add_bought(table, f"  {setting['setting']}", setting)
        if tried["without"]:
            _add_bought(table, "  without it", tried["without"])
    return table


def _add_bought(table: Table, change: str, facts: dict[str, Any]) -> None:
    """What would be told in more detail at once: groups, or nodes of a lattice; and what the search then comes to."""
    passing = facts.get("splits", facts.get("nodes"))
    measured = ["", "not measured"] if facts["groups"] is None else [f"{facts['groups']:,}", f"{facts['loss']:.2%}"]
    table.add_row(Text(change), "" if passing is None else f"{passing:,}", *measured)


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
