"""Print the results of `explore`, `disclose` and `attack` on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from anon.core.phrases import counted, percent
from anon.report.terminal import new_grid, new_table, section, show_attacks, show_warnings

POINTS = 24  # that are listed; --json has all of them
SENTENCES = 5


def show_skylines(console: Console, facts: dict[str, Any]) -> None:
    """Print knowledge skylines."""
    for skyline in facts["skylines"]:
        _show_skyline(console, skyline, facts["sensitive"])
    show_warnings(console, facts)


def _show_skyline(console: Console, skyline: dict[str, Any], column: str) -> None:
    value, sure, points = skyline["value"], percent(skyline["confidence"]), skyline["points"]
    if not points:
        console.print(Text(f"{value}: {sure} is reached without any knowledge", style="bold red"))
        console.print(Padding(Text(skyline["witness"]["sentence"]), (0, 0, 1, 2)))
        return
    if points[0]["witness"] is None:
        message = f"{value}: nobody in this table has this value of {column}, so nothing was explored; misspelt?\n"
        console.print(Text(message, style="bold yellow"), soft_wrap=True)
        return
    table = new_table("l", "k", "m", "one l more", "one k more", "one m more", text=0)
    for point in points[:POINTS]:
        beyond = (point["beyond"].get(axis) for axis in ("l", "k", "m"))
        steps = (percent(step["breach"]) if step else "" for step in beyond)
        table.add_row(*(_amount(point[axis]) for axis in ("l", "k", "m")), *steps)
    more = f" (the first {POINTS:,} of {len(points):,})" if len(points) > POINTS else ""
    title = f"{value} below {sure}: the maximal safe amounts of knowledge{more}"
    section(console, title, table)
    for point in points[:SENTENCES]:
        amount = ", ".join(_amount(point[axis]) for axis in ("l", "k", "m"))
        console.print(Padding(Text(f"beyond ({amount}): {point['witness']['sentence']}"), (0, 0, 0, 2)))
    if len(points) > SENTENCES:
        console.print(
            Padding(Text(f"--json has an adversary who succeeds for each of the {len(points):,}"), (0, 0, 0, 2))
        )
    console.print()


def _amount(amount: int | str) -> str:
    return amount if isinstance(amount, str) else f"{amount:,}"


def show_disclosure(console: Console, facts: dict[str, Any]) -> None:
    """Print the maximum disclosure given pieces of knowledge."""
    table = new_table("pieces", "implications", "negations", text=0)
    for k, both in enumerate(zip(facts["implications"], facts["negations"])):
        table.add_row(f"{k:,}", *map(percent, both))
    most = len(facts["implications"]) - 1
    section(console, f"Maximum disclosure of {facts['sensitive']} given 0 to {most:,} pieces of knowledge", table)
    for kind, worst in facts["worst"].items():
        console.print(Text(f"{kind.capitalize()} that reach the maximum", style="bold"))
        for k, each in enumerate(worst[: SENTENCES + 1]):
            console.print(Padding(Text(f"{k}: {each['sentence']}"), (0, 0, 0, 2)))
        console.print()


def show_attack(console: Console, facts: dict[str, Any]) -> None:
    """Print the results of the homogeneity attack, of elimination, and the beliefs before and after."""
    near, sensitive = percent(facts["threshold"]), facts["sensitive"]
    grid = new_grid()
    both = (("homogeneous", "everybody has one"), ("affected", f"at least {near} have one"))
    if facts["multiplicity"] == "multiset":  # which individual has an occurrence of a value is unknown
        chance = f"everybody has, with a probability of at least {near}, one"
        both = (("homogeneous", "there is only one"), ("affected", chance))
    for kind, words in both:
        rows, people = facts[f"{kind}_rows"], facts[f"{kind}_individuals"]
        of_people = "" if rows == people else f" of {counted(people, 'individual')}"
        groups = counted(facts[f"{kind}_groups"], "group")
        share = percent(rows / facts["rows"])
        grid.add_row(f"{rows:,}", Text(f"rows{of_people} ({share}) in {groups} where {words} {sensitive}"))
    size = f"{counted(facts['rows'], 'row')} in {counted(facts['groups'], 'group')}"
    section(console, f"Homogeneity: {size}", grid)
    if "elimination" in facts:
        table = new_table("values ruled out", "groups", "rows", text=0)
        for step in facts["elimination"]:
            table.add_row(*(f"{step[name]:,}" for name in ("ruled_out", "affected_groups", "affected_rows")))
        section(console, f"Groups where {near} is reached once values of a person are ruled out", table)
    show_attacks(console, facts["attacks"])
    if facts["beliefs"]:
        _show_beliefs(console, facts["beliefs"], near, percent(1 - facts["threshold"]))


def _show_beliefs(console: Console, beliefs: dict[str, Any], near: str, rest: str) -> None:
    rows = {"positive": f"belief in a value is above {near}", "negative": f"belief in a value is below {rest}"}
    if "breaches" in beliefs:
        rho1, rho2 = beliefs["rho1"], beliefs["rho2"]
        rows["breaches"] = f"belief rose from below {rho1:g} to above {rho2:g}, or fell as far"
    table = new_table("after the release", "individuals", "new", "groups")
    for kind, meaning in rows.items():
        counts = beliefs[kind]
        table.add_row(Text(meaning), *(f"{counts[name]:,}" for name in ("individuals", "new", "groups")))
    section(console, f"Beliefs of an adversary with a prior over {', '.join(beliefs['attributes'])}", table)
    for kind, moved in (("largest_rise", "rose"), ("largest_fall", "fell")):
        if change := beliefs[kind]:
            before, after = percent(change["before"]), percent(change["after"])
            text = f"the belief that somebody in group {change['group']:,} has {change['value']} {moved} most, from "
            console.print(Text(f"{text}{before} to {after}"), soft_wrap=True)
    if beliefs["contradicted"]:
        people = counted(beliefs["contradicted"], "individual")
        text = f"{people} whose group has only values that the prior considers impossible"
        console.print(Text(text, style="yellow"), soft_wrap=True)
