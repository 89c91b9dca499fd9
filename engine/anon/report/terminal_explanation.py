"""Print the explanation of a run on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anon.core.phrases import counted
from anon.report.terminal import criterion_name, new_table, section, show_criteria_and_loss


def show_explanation(console: Console, facts: dict[str, Any]) -> None:
    """Print which criteria hold and what was lost, then what prevented losing less."""
    show_criteria_and_loss(console, facts)
    if facts["binding"] is not None:
        console.print(Text(_binding(facts)), soft_wrap=True)
        console.print()
    if facts["blocking"]:
        section(console, "Criteria that keep groups from being split: groups (and individuals)", _blocking(facts))
        _legend(console, facts)
        for kind, why in (("refused", "have cuts left, of which none is safe"), ("finest", "have no cut left")):
            rest = facts["blocking"][kind]
            count = f"{counted(rest['groups'], 'group')} of {counted(rest['individuals'], 'individual')}"
            console.print(Text(f"{count} {why}"), soft_wrap=True)
        console.print()
    if facts.get("finer"):
        section(console, "Criteria that refuse one level less", _finer(facts))
    section(console, "Generalization per column", _columns(facts))
    _show_relaxing(console, facts)


def _legend(console: Console, facts: dict[str, Any]) -> None:
    last = "refused by it: a cut that is left there is refused by this criterion alone"
    if not facts["relaxing"].get("criteria"):
        last = "at most, relaxed: no other criterion rules out their cuts, so that relaxing this one might split them"
    for line in ("no cut is safe: any cut fails, by size or most frequent values alone", last):
        console.print(Padding(Text(line, style="dim"), (0, 0, 0, 2)))
    console.print()


def _binding(facts: dict[str, Any]) -> str:
    entry = facts["criteria"][facts["binding"]]
    near = "" if entry["near"] is None else f"; it is at {entry['near']:.1%} of its bound"
    if facts.get("finer"):
        count = sum(facts["binding"] in node["refused_by"] for node in facts["finer"])
        why = f"it refuses {count:,} of the {len(facts['finer']):,} combinations with one level less"
    elif (alone := _alone(facts)) is not None:
        groups, people = counted(alone["groups"], "group"), counted(alone["individuals"], "individual")
        why = f"it alone refuses cuts of {groups} of {people}"
    elif (only := _only(facts)) is not None:
        groups, people = counted(only["groups"], "group"), counted(only["individuals"], "individual")
        why = f"it alone rules out every split of {groups} of {people}"
    else:
        why = "it is closest to its bound"
    return f"{criterion_name(entry)} binds: {why}{near}."


def _alone(facts: dict[str, Any]) -> dict[str, int] | None:
    """Return the groups whose cuts the binding criterion alone refuses, if they were examined and are why it binds."""
    if not facts["relaxing"]["measured"]:
        return None
    alone: dict[str, int] = facts["relaxing"]["criteria"][facts["binding"]]["refuses_alone"]
    return alone if alone.get("groups") else None


def _only(facts: dict[str, Any]) -> dict[str, int] | None:
    """Return the groups that the binding criterion alone keeps from being split, if they are why it binds."""
    if not facts["blocking"]:
        return None
    only: dict[str, int] = facts["blocking"]["criteria"][facts["binding"]]["only"]
    return only if only["individuals"] > facts["blocking"]["refused"]["individuals"] else None


def _blocking(facts: dict[str, Any]) -> Table:
    """Return a table of groups, and in brackets the individuals in them."""
    measured = facts["relaxing"].get("criteria")
    last = "refused by it" if measured else "at most, relaxed"
    table = new_table("criterion", "no cut is safe", "only for this", last)
    for at, (entry, blocked) in enumerate(zip(facts["criteria"], facts["blocking"]["criteria"])):
        split = measured[at]["refuses_alone"] if measured else blocked["at_most"]
        counts = ((each["groups"], each["individuals"]) for each in (blocked, blocked["only"], split))
        table.add_row(Text(criterion_name(entry)), *(f"{groups:,} ({people:,})" for groups, people in counts))
    return table


def _finer(facts: dict[str, Any]) -> Table:
    table = new_table("column", "refused by", "at level", text=2)
    for node in facts["finer"]:
        names = ", ".join(criterion_name(facts["criteria"][at]) for at in node["refused_by"])
        table.add_row(Text(node["column"]), Text(names or "all of them together"), _level(facts, node))
    return table


def _show_relaxing(console: Console, facts: dict[str, Any]) -> None:
    found = facts["relaxing"]
    if not found["measured"]:
        message = f"The effect of relaxing a criterion was not measured: {found['why']}"
        console.print(Text(message), soft_wrap=True)
        return
    section(console, "Effect of relaxing one criterion, with the others unchanged", _effects(facts))
    together = found.get("refused_together")
    if together and together["groups"]:
        count = f"{counted(together['groups'], 'group')} of {counted(together['individuals'], 'individual')}"
        console.print(Text(f"{count}: several criteria at once refuse every cut that is left"), soft_wrap=True)
    note = f"measured by {found['searches']:,} searches of {counted(found['rows'], 'row')}; lets {_passing(facts)}"
    console.print(Text(note, style="dim"), soft_wrap=True)


def _passing(facts: dict[str, Any]) -> str:
    now = facts["relaxing"]["now"]
    if "levels" in now:
        where = "safe ones" if "safe_nodes" in now else "the released one"
        return f"pass: nodes just below {where} that would be safe"
    partly = any(t["refuses_alone"]["looked_at"] < t["refuses_alone"]["cuts"] for t in facts["relaxing"]["criteria"])
    return f"split: groups of the release that would be split{', at least' if partly else ''}"


def _effects(facts: dict[str, Any]) -> Table:
    found = facts["relaxing"]
    nodes = "levels" in found["now"]
    table = new_table("change", "lets pass" if nodes else "lets split", "groups", "lost")
    _add_effect(table, "unchanged", found["now"])
    for entry, tried in zip(facts["criteria"], found["criteria"]):
        table.add_section()
        table.add_row(Text(criterion_name(entry), style="bold"))
        if not tried["settings"]:
            table.add_row(f"  no looser setting would {'make a node safe' if nodes else 'split a group'}")
        for setting in tried["settings"]:
            _add_effect(table, f"  {setting['setting']}", setting)
        if tried["without"]:
            _add_effect(table, "  without it", tried["without"])
    return table


def _add_effect(table: Table, change: str, facts: dict[str, Any]) -> None:
    """Add a row with what a change would let pass at once, groups or nodes of a lattice, and the result of the search
    with it."""
    passing = facts.get("splits", facts.get("nodes"))
    measured = ["", "not measured"] if facts["groups"] is None else [f"{facts['groups']:,}", f"{facts['loss']:.2%}"]
    table.add_row(Text(change), "" if passing is None else f"{passing:,}", *measured)


def _columns(facts: dict[str, Any]) -> Table:
    if any("level" in column for column in facts["columns"]):
        table = new_table("column", "level", "lost")
        for column in facts["columns"]:
            table.add_row(Text(column["column"]), _level(facts, column), f"{column['lost']:.1%}")
        return table
    uncut = ["groups where it is *", "individuals"] if all("uncut" in column for column in facts["columns"]) else []
    table = new_table("column", "cuts", *uncut, "lost")
    for column in facts["columns"]:
        counts = (column["cuts"], *(column["uncut"].values() if uncut else ()))
        table.add_row(Text(column["column"]), *(f"{count:,}" for count in counts), f"{column['lost']:.1%}")
    return table


def _level(facts: dict[str, Any], entry: dict[str, Any]) -> str:
    """Return the level of a column in words."""
    return str(facts["level_names"][entry["column"]][entry["level"]])
