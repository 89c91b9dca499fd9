"""Print what the ledger of a series holds."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from anon.core.phrases import counted
from anon.report.terminal import new_table


def show_status(console: Console, facts: dict[str, Any]) -> None:
    """Print the parts of a series and the counts of individuals."""
    table = new_table("part", "rows", "individuals", "groups", "withdrawn groups")
    for part in facts["parts"]:
        columns = ("part", "rows", "individuals", "groups", "withdrawn_groups")
        table.add_row(*(f"{part[name]:,}" for name in columns))
    if facts["parts"]:
        console.print(table)
    words = f"{facts['released']:,} released, {facts['waiting']:,} waiting, {facts['withdrawn']:,} withdrawn"
    console.print(f"{words}, after {counted(facts['nights'], 'night')}", highlight=False)


def show_withdrawal(console: Console, facts: dict[str, Any]) -> None:
    """Print what was, or would be, taken out of a series."""
    groups, others = counted(facts["groups"], "group"), counted(facts["others"], "other member")
    words = (
        f"{counted(facts['individuals'], 'individual')}: {facts['in_parts']:,} in parts, {facts['waiting']:,} waiting, "
        f"{facts['withdrawn_before']:,} withdrawn before, {facts['unknown']:,} not known. {groups} with {others} "
        f"{'went' if facts['done'] else 'would go'} with them."
    )
    console.print(words, highlight=False)
    if facts["unknown"]:
        unknown, were = counted(facts["unknown"], "id"), "was" if facts["done"] else "would be"
        text = f"{unknown} of the list fit nobody in the series: nothing {were} taken out for them. Compare them with"
        console.print(Text(f"{text} the ids of the source.", style="bold"))
    if not facts["done"]:
        console.print(Text("Nothing was changed. --yes does it; it cannot be undone.", style="bold"))


def show_rebuilding(console: Console, facts: dict[str, Any]) -> None:
    """Print what a rebuilt ledger knows."""
    parts, released = counted(facts["parts"], "part"), counted(facts["released"], "individual")
    words = (
        f"{parts} with {released}. In the source {facts['certain']:,} are certain to be among them, and "
        f"{facts['ambiguous']:,} may be: none of these is released again, so {facts['left_out']:,} never are."
    )
    console.print(words, highlight=False)
    if facts["withdrawn"]:
        gone = counted(facts["withdrawn"], "other individual")
        console.print(f"Groups were withdrawn: {gone} may have been in them, and are never released.", highlight=False)
    console.print("Those who waited are new again. Repeat all withdrawals: the parts do not show whose they were.")
