"""What `explore`, `disclose` and `attack` found, in words and tables for a person at a terminal, beside the way of the
data (config -> source -> cube -> search -> release -> verify -> report)."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from anon.core.phrases import counted, percent
from anon.report.terminal import new_grid, new_table, section, show_warnings

POINTS = 24  # that are listed; --json has all of them
SENTENCES = 5


def show_skylines(console: Console, told: dict[str, Any]) -> None:
    for skyline in told["skylines"]:
        _show_skyline(console, skyline, told["sensitive"])
    show_warnings(console, told)


def _show_skyline(console: Console, skyline: dict[str, Any], column: str) -> None:
    value, sure, points = skyline["value"], percent(skyline["confidence"]), skyline["points"]
    if not points:
        console.print(Text(f"{value}: {sure} is reached without any knowledge", style="bold red"))
        console.print(Padding(Text(skyline["witness"]["sentence"]), (0, 0, 1, 2)))
        return
    if points[0]["witness"] is None:
        said = f"{value}: no individual of this table has this value of {column}, so nothing was explored; misspelt?\n"
        console.print(Text(said, style="bold yellow"), soft_wrap=True)
        return
    table = new_table("l", "k", "m", "one l more", "one k more", "one m more", text=0)
    for point in points[:POINTS]:
        beyond = (point["beyond"].get(axis) for axis in ("l", "k", "m"))
        steps = (percent(step["breach"]) if step else "" for step in beyond)
        table.add_row(*(_amount(point[axis]) for axis in ("l", "k", "m")), *steps)
    more = f" (the first {POINTS:,} of {len(points):,})" if len(points) > POINTS else ""
    title = f"{value} below {sure}: safe up to these amounts of knowledge{more}"
    section(console, title, table)
    for point in points[:SENTENCES]:
        amount = ", ".join(_amount(point[axis]) for axis in ("l", "k", "m"))
        console.print(Padding(Text(f"beyond ({amount}): {point['witness']['sentence']}"), (0, 0, 0, 2)))
    if len(points) > SENTENCES:
        console.print(Padding(Text(f"--json tells who succeeds beyond each of the {len(points):,}"), (0, 0, 0, 2)))
    console.print()


def _amount(amount: int | str) -> str:
    return amount if isinstance(amount, str) else f"{amount:,}"


def show_disclosure(console: Console, told: dict[str, Any]) -> None:
    table = new_table("pieces", "implications", "negations", text=0)
    for k, both in enumerate(zip(told["implications"], told["negations"])):
        table.add_row(f"{k:,}", *map(percent, both))
    section(console, f"How sure of somebody's {told['sensitive']} so many pieces of knowledge can make", table)
    for kind, worst in told["worst"].items():
        console.print(Text(f"The worst {kind}", style="bold"))
        for k, each in enumerate(worst[: SENTENCES + 1]):
            console.print(Padding(Text(f"{k}: {each['sentence']}"), (0, 0, 0, 2)))
        console.print()


def show_attack(console: Console, told: dict[str, Any]) -> None:
    near, sensitive = percent(told["threshold"]), told["sensitive"]
    grid = new_grid()
    both = (("homogeneous", "everybody has one"), ("affected", f"at least {near} have one"))
    if told["multiplicity"] == "multiset":  # nobody can tell who has which occurrence of a value
        chance = f"everybody has, with a chance of at least {near}, one"
        both = (("homogeneous", "there is only one"), ("affected", chance))
    for kind, words in both:
        rows, people = told[f"{kind}_rows"], told[f"{kind}_individuals"]
        of_people = "" if rows == people else f" of {counted(people, 'individual')}"
        groups = counted(told[f"{kind}_groups"], "group")
        share = percent(rows / told["rows"])
        grid.add_row(f"{rows:,}", Text(f"rows{of_people} ({share}) in {groups} where {words} {sensitive}"))
    said = f"{counted(told['rows'], 'row')} in {counted(told['groups'], 'group')}"
    section(console, f"Homogeneity: {said}", grid)
    if "elimination" in told:
        table = new_table("values ruled out", "groups", "rows", text=0)
        for step in told["elimination"]:
            table.add_row(*(f"{step[name]:,}" for name in ("ruled_out", "affected_groups", "affected_rows")))
        section(console, f"Where {near} is reached once values of a person are ruled out", table)
    if told["beliefs"]:
        _show_beliefs(console, told["beliefs"], near, percent(1 - told["threshold"]))


def _show_beliefs(console: Console, beliefs: dict[str, Any], near: str, rest: str) -> None:
    words = {"positive": f"a value is believed with more than {near}", "negative": f"one with less than {rest}"}
    if "breaches" in beliefs:
        words["breaches"] = f"belief went from below {beliefs['rho1']:g} to above {beliefs['rho2']:g}, or as far down"
    table = new_table("of whom", "individuals", "new", "groups")
    for kind, said in words.items():
        counted = beliefs[kind]
        table.add_row(Text(said), *(f"{counted[name]:,}" for name in ("individuals", "new", "groups")))
    section(console, f"Beliefs of somebody who knows a prior over {', '.join(beliefs['attributes'])}", table)
    for kind, said in (("largest_rise", "rose"), ("largest_fall", "fell")):
        if change := beliefs[kind]:
            before, after = percent(change["before"]), percent(change["after"])
            text = f"the belief that somebody in group {change['group']:,} has {change['value']} {said} most, from "
            console.print(Text(f"{text}{before} to {after}"), soft_wrap=True)
    if beliefs["contradicted"]:
        text = f"{counted(beliefs['contradicted'], 'individual')} whose group has nothing that the prior holds possible"
        console.print(Text(text, style="yellow"), soft_wrap=True)
