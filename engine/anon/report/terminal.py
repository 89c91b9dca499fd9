"""Print the results of commands on a terminal, in text and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anon.config.criteria.skyline import worst_first
from anon.config.warning_codes import HIGH
from anon.core.phrases import counted
from anon.report import together
from anon.report.attack_rows import HEAD, attack_row
from anon.report.promises import aggregated, closest, guard_words, least_loss, left_out, left_out_words, predicted
from anon.report.warnings import standing

WORST = 6  # (value, point) pairs that are shown
BAR = 20  # characters of a full bar
SINGULAR = {
    "individuals": "individual",
    "rows": "row",
    "values": "value",
    "numbers": "number",
    "folders": "folder",
    "criteria": "criterion",
    "entries": "entry",
}
DROPPED = {
    "identifier": "identifiers",
    "individual": "tells people apart",
    "row order": "chooses among the rows of a person",
    "not named": "not named in the config",
}
SERIES = {
    "new": "new in the source",
    "again": "released before and left out",
    "waiting": "waiting",
    "released": "released in all parts",
}
LOST = "Information loss (0% is as in the source, 100% is nothing left)"
UTILITY = "Utility of the release"
GUARD = "What was not cut"


def show(console: Console, facts: dict[str, Any], report: dict[str, Any], places: dict[str, str]) -> None:
    """Print the result of a run or a check: which criteria hold and how closely, what was lost, where the files are."""
    if message := _nothing_done(facts):
        console.print(Text(message, style="bold"), soft_wrap=True)
        _series(console, facts)
        return
    if "trial" in facts:
        message = f"A trial on {facts['trial']} of the individuals: this is not the release and must not be published."
        console.print(Text(message, style="bold yellow"), soft_wrap=True)
    _headline(console, facts, report, bool(places))
    section(console, "Criteria", _criteria(facts))
    if any("failed" in entry for entry in facts["criteria"]):
        section(console, "Failures", _failures(facts))
    if any("worst_labels" in entry for entry in facts["criteria"]):
        section(console, "Labels of the worst groups", _labels(facts))
    points = [point for entry in facts["criteria"] for point in entry.get("points", [])]
    if points:
        section(console, _points_title(points), _points(points))
    if exempt := [value for entry in facts["criteria"] for value in entry.get("exempt", [])]:
        console.print(Text(f"not protected, as the config says: {', '.join(exempt)}\n"), soft_wrap=True)
    if "lattice" in report:
        names = report.get("level_names", {})
        section(console, _choices_title(report["lattice"]), _choices(report["lattice"], WORST, names))
    if "utility" in report:
        section(console, LOST, _loss(report["utility"]["loss"]))
        section(console, UTILITY, _utility(report["utility"], facts["left_out"]))
        _show_guard(console, report.get("guard"))
    section(console, "Remaining risk", _risk(facts, report.get("labels") == "exact"))
    show_attacks(console, facts.get("attacks", []))
    show_warnings(console, facts)
    _series(console, facts)
    if report.get("individual") == "row":
        console.print("every row was counted as a different person (individual: row)", highlight=False)
    width = max(map(len, places), default=0)
    for name, place in places.items():
        console.print(Text.assemble((f"{name:{width}}", "bold"), "  ", _near(place)), soft_wrap=True)


def show_attacks(console: Console, attacks: list[dict[str, Any]]) -> None:
    """Print the overview of attacks, if any were carried out, and what each found."""
    if not attacks:
        return
    table = new_table(*HEAD)
    for attack in attacks:
        name, *rest = attack_row(attack)
        style = "bold red" if attack["breached"] else "" if attack["individuals"] is not None else "dim"
        table.add_row(Text(name, style=style), *rest)
    section(console, "Attacks", table)
    for attack in attacks:
        words = Text(f"{attack['name']}: {attack['found']}", style="red" * attack["breached"])
        console.print(Padding(words, (0, 0, 0, 2)))
    console.print()


def _nothing_done(facts: dict[str, Any]) -> str:
    """Return why a run published nothing; nothing if it did."""
    if facts.get("up_to_date"):
        what = "trial" if "trial" in facts else "release"
        return f"Up to date: the {what} was made from the same source by the same config; nothing was done."
    if "series" in facts and facts["series"]["part"] is None:
        return f"No part was published. {facts.get('reason', 'Nobody in the source is new, and nobody waits.')}"
    return ""


def _series(console: Console, facts: dict[str, Any]) -> None:
    """Print the counts of a night of a series."""
    if "series" not in facts:
        return
    own = facts["series"]
    words = [f"part {own['part']:,}"] if own["part"] is not None else []
    words += [f"{own[name]:,} {text}" for name, text in SERIES.items()]
    console.print(Text(f"series: {', '.join(words)}"), soft_wrap=True)


def show_warnings(console: Console, facts: dict[str, Any]) -> None:
    """Print the warnings of a result."""
    for warning in sorted(facts["warnings"], key=lambda each: "accepted" not in each and each["severity"] == HIGH):
        what, _, rest = warning["text"].partition(" ")
        what = SINGULAR.get(what, what) if warning["count"] == 1 else what
        accepted = f" (accepted: {warning['accepted']})" if "accepted" in warning else ""
        kind, style = ("accepted warning", "dim") if accepted else ("warning", "yellow")
        accepted = accepted or " (severity high)" * (warning["severity"] == HIGH)
        console.print(Text(f"{kind}: {warning['count']:,} {what} {rest}{accepted}", style=style), soft_wrap=True)


def show_criteria_and_loss(console: Console, facts: dict[str, Any]) -> None:
    """Print the criteria, the minimal combinations of levels and the loss of an explained run."""
    headline = f"{counted(facts['groups'], 'group')} by method {facts['method']['kind']}{_left_out(facts)}"
    console.print(f"{headline}\n", highlight=False)
    section(console, "Criteria", _criteria(facts))
    if "minimal" in facts:
        section(console, _all_choices_title(facts), _choices(facts, len(facts["minimal"]), facts["level_names"]))
    section(console, LOST, _loss(facts["loss"]))


def show_page(console: Console, facts: dict[str, Any]) -> None:
    """Print the path of a page."""
    console.print(Text.assemble(("report", "bold"), "  ", _near(facts["page"])), soft_wrap=True)


def show_utility(console: Console, utility: dict[str, Any]) -> None:
    """Print the utility of a release."""
    groups, mean = counted(utility["groups"], "group"), utility["average_group"]
    console.print(f"{groups} of {mean:,.1f} individuals on average\n", highlight=False)
    section(console, LOST, _loss(utility["loss"]))
    section(console, UTILITY, _utility(utility, utility["left_out"]))
    if "prediction" in utility:
        _show_prediction(console, utility["prediction"])


def _show_prediction(console: Console, found: dict[str, Any]) -> None:
    words = predicted(found)
    table = new_table("classifier", "trained on", "rows", "accuracy", "AUC")
    table.columns[1].justify = "left"
    for model in found["models"]:
        for on, rows in found["trained"].items():
            scores = model[on]
            table.add_row(model["name"], f"the {on}", f"{rows:,}", f"{scores['accuracy']:.1%}", f"{scores['auc']:.3f}")
    section(console, f"Prediction of {found['column']}", table)
    for line in (words["majority"], words["tested"], f"from {words['features']}"):
        console.print(Text(line), soft_wrap=True, highlight=False)


def show_plan(console: Console, plan: dict[str, Any]) -> None:
    """Print what a run would do."""
    _series(console, plan)
    if "columns" not in plan:
        console.print("Nobody in the source is new, and nobody waits: a run would publish no part.", highlight=False)
        return
    people = "" if plan["individuals"] == plan["rows"] else f" of {counted(plan['individuals'], 'individual')}"
    rows = f"{counted(plan['rows'], 'row')}{people}, method {plan['method']}{_left_out(plan)}"
    console.print(f"{rows}\n", highlight=False)
    section(console, "Columns in use", _planned_columns(plan))
    section(console, "Memory and disk", _resources(plan))
    if plan["criteria"]:
        section(console, "The whole table as one group", _whole_table(plan))
    show_warnings(console, plan)
    if "reason" in plan:
        console.print(Text(plan["reason"], style="bold red"), soft_wrap=True)
    elif "up_to_date" in plan:
        console.print(Text("Up to date: a run would do nothing, except with --force.", style="bold green"))
    elif all(entry["safe"] for entry in plan["criteria"]):
        there = any(warning["code"] == "release_exists" for warning in plan["warnings"])
        message = f"Nothing {'else ' * there}was found that prevents a run."
        console.print(Text(message, style="bold green"), soft_wrap=True)
    else:
        console.print("The whole table as one group is not safe, but smaller groups may be: a run searches for them.")
    for number, sql in enumerate(plan.get("sql", []), start=1):
        console.print(Text(f"-- {number}\n{sql};"), soft_wrap=True)


def show_profile(console: Console, profile: dict[str, Any]) -> None:
    """Print the profile of a table."""
    columns = profile["columns"]
    console.print(f"{counted(profile['rows'], 'row')}, {counted(len(columns), 'column')}\n", highlight=False)
    table = new_table("column", "type", "distinct", "missing", "unique rows", text=2)
    for column in columns:
        counts = (f"{column[name]:,}" for name in ("distinct", "nulls", "rows_alone"))
        cells = counts if column["kind"] else ("", "", "")
        table.add_row(Text(column["name"]), column["kind"] or Text("not usable", style="red"), *cells)
    section(console, "Columns", table)
    if profile["growing"]:
        table = new_grid()
        together = [profile["together"]] if profile["together"] else []
        for each in [*profile["pairs"][1:4], *profile["growing"], *together]:
            table.add_row(f"{each['share']:.1%}", Text(" + ".join(each["columns"])))
        section(console, "Share of rows that are unique for an adversary who knows", table)


def _planned_columns(plan: dict[str, Any]) -> Table:
    table = new_table("column", "role", "kind", "distinct", "levels", text=3)
    for column in plan["columns"]:
        distinct = f"{column['distinct']:,}" if "distinct" in column else ""
        levels = column.get("levels") or ("" if column["role"] != "quasi_identifier" else "free")
        table.add_row(Text(column["name"]), column["role"].replace("_", " "), column["kind"], distinct, str(levels))
    return table


def _resources(plan: dict[str, Any]) -> Table:
    table, records, memory = new_grid(), plan["records"], plan["memory"]
    equal = ", equal rows counted" if records["collapsed"] else ""
    table.add_row(f"{records['count']:,}", f"records of {records['bytes_each']} bytes{equal}")
    place = "stay in memory" if records["in_memory"] else "spill to disk"
    table.add_row(f"{_megabytes(records['bytes'])}", f"of records, which {place}")
    if "lattice" in plan:
        table.add_row(f"{plan['lattice']['nodes']:,}", "combinations of levels (nodes of the lattice)")
    least, all_in = _megabytes(memory["least"]), _megabytes(max(memory["for_records_in_memory"], memory["least"]))
    needed = f"of memory; at least {least} is required, with {all_in} all records stay in it"
    table.add_row(_megabytes(memory["limit"]), needed)
    table.add_row(_megabytes(plan["disk"]["total"]), "of disk, in addition to the release and what DuckDB spills")
    return table


def _whole_table(plan: dict[str, Any]) -> Table:
    table = new_table("criterion", "holds", "found", "required", text=2)
    for entry in plan["criteria"]:
        holds = Text("yes", style="green") if entry["safe"] else Text("no", style="bold red")
        table.add_row(Text(criterion_name(entry)), holds, _number(closest(entry)["figure"]), _required(entry))
    return table


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"


def section(console: Console, title: str, content: Table) -> None:
    console.print(Text(title, style="bold"))
    console.print(Padding(content, (0, 0, 1, 2)))


def new_table(*columns: str, text: int = 1) -> Table:
    """Return a table whose first `text` columns are text and whose other columns are numbers."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False, header_style="dim")
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index < text else "right", no_wrap=index >= text, overflow="fold")
    return table


def _headline(console: Console, facts: dict[str, Any], report: dict[str, Any], written: bool) -> None:
    rows, people, groups = facts["rows"], facts["individuals"], facts["groups"]
    of_people = "" if people == rows else f" of {counted(people, 'individual')}"
    smallest, high = round(1 / facts["risk"]["highest"]), len(standing(facts["warnings"], HIGH))
    style = "bold yellow" if high else "bold green"
    if not facts["safe"]:
        verdict = Text("The table is not safe.", style="bold red")
    elif written:
        what = "trial" if "trial" in facts else "release"
        verdict = Text(f"The {what} is written and verified: every criterion holds.", style=style)
    else:
        verdict = Text("The table is safe: every criterion holds.", style=style)
    console.print(verdict)
    console.print(f"{counted(rows, 'row')}{of_people} in {counted(groups, 'group')}; the smallest has {smallest:,}, "
                  f"the mean is {people / groups:,.1f}{_left_out(facts)}", highlight=False)  # fmt: skip
    for role, words in DROPPED.items():
        if names := [each["name"] for each in report.get("roles", []) if each["role"] == role]:
            console.print(Text(f"not published: {', '.join(names)} ({words})"), soft_wrap=True)
    if high and facts["safe"]:
        message = f"Not everybody is protected: {counted(high, 'warning')} of severity high below"
        console.print(Text(message, style="bold yellow"), soft_wrap=True)
    console.print()


def _left_out(facts: dict[str, Any]) -> str:
    phrase = left_out_words(facts["left_out"])
    return f"; {phrase}" if phrase else ""


def _criteria(facts: dict[str, Any]) -> Table:
    table = new_table("criterion", "holds", "found", "required", "worst group", text=2)
    for entry in facts["criteria"]:
        holds = Text("yes", style="green") if entry["safe"] else Text("no", style="bold red")
        worst = closest(entry)
        cells = _number(worst["figure"]), _required(entry), _group(worst)
        table.add_row(Text(criterion_name(entry)), holds, *cells)
    return table


def _group(entry: dict[str, Any]) -> str:
    """Return where a group is: its rows in the release, or its number in the order of the groups."""
    if "worst_rows" not in entry:
        return "" if entry["worst_group"] is None else f"#{entry['worst_group']:,}"
    first, last = entry["worst_rows"]
    return f"row {first:,}" if first == last else f"rows {first:,}-{last:,}"


def criterion_name(entry: dict[str, Any]) -> str:
    kind = f" {entry['kind']}" if "kind" in entry else ""
    about = f" ({_listed(entry['sensitive'])})" if "sensitive" in entry else ""
    return f"{entry['name']}{kind}{about}"


def _failures(facts: dict[str, Any]) -> Table:
    """Return the failures in words, because a criterion may demand more than its figure shows: a size, or a value that
    stays possible."""
    table = new_table("criterion", "found", "group", text=2)
    for entry in facts["criteria"]:
        for failure in entry.get("failed", []):
            table.add_row(Text(criterion_name(entry)), Text(failure["text"]), _group(failure))
    return table


def _labels(facts: dict[str, Any]) -> Table:
    table = new_table("group", "labels", text=2)
    worst = map(closest, facts["criteria"])
    shown = {e["worst_group"]: (_group(e), e["worst_labels"]) for e in worst if "worst_labels" in e}
    for _, (group, labels) in sorted(shown.items()):
        text = ", ".join(f"{column} {'null' if label is None else label}" for column, label in labels.items())
        table.add_row(group, Text(text))
    return table


def _required(entry: dict[str, Any]) -> str:
    """Return the bound of a criterion; of a skyline that of the point that is closest to its bound."""
    return f"{entry['relation']} {_number(closest(entry)['bound'])}"


def _listed(columns: str | list[str]) -> str:
    return columns if isinstance(columns, str) else ", ".join(columns)


def _number(value: float | str | dict[str, float]) -> str:
    if isinstance(value, dict):
        return " and ".join(map(_number, value.values()))
    return value if isinstance(value, str) else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _points_title(points: list[dict[str, Any]]) -> str:
    failed = sum(not point["safe"] for point in points)
    if failed:
        return f"Worst against the bound ({failed:,} of {len(points):,} fail)"
    more = f" ({len(points) - WORST:,} more are further from it)" if len(points) > WORST else ""
    return f"Closest to the bound{more}"


def _points(points: list[dict[str, Any]]) -> Table:
    table = new_table("value", "l", "k", "m", "breach", "below")
    for p in worst_first(points)[:WORST]:
        knowledge = (f"{p[name]:,}" for name in ("l", "k", "m"))
        style = None if p["safe"] else "red"
        table.add_row(Text(p["value"]), *knowledge, f"{p['breach']:.4f}", _number(p["c"]), style=style)
    return table


LEVELS_GIVEN = "The combination of levels that the config names"


def _all_choices_title(facts: dict[str, Any]) -> str:
    if facts["choose"] == "given":
        return LEVELS_GIVEN
    some = "All minimal" if facts.get("all_minimal", True) else "Some minimal"
    return f"{some} combinations of levels, the released one first, then by {facts['choose']}"


def _choices_title(lattice: dict[str, Any]) -> str:
    if lattice["choose"] == "given":
        return LEVELS_GIVEN
    count = len(lattice["minimal"])
    more = f"; {count - WORST:,} more have a higher {lattice['choose']}" if count > WORST else ""
    ended = "" if lattice.get("all_minimal", True) else "; the search ended with the best"
    return f"Minimal combinations of levels, the released one first (found {count:,}{more}{ended})"


def _choices(lattice: dict[str, Any], count: int, names: dict[str, list[str]]) -> Table:
    """Return a table of the best minimal nodes by the metric of the config, the chosen one first."""
    table = new_table("what is coarser", "groups", "loss", "divergence", "suppressed")
    metric = "average_group" if lattice["choose"] == "average" else lattice["choose"]
    rest = [choice for choice in lattice["minimal"] if choice != lattice["chosen"]]
    for choice in [lattice["chosen"], *sorted(rest, key=lambda c: (c[metric], c["height"]))][:count]:
        above = [(column, level) for column, level in choice["levels"].items() if level]
        levels = ", ".join(f"{column}: {names[column][level]}" for column, level in above)
        cells = (_number(choice[name]) for name in ("groups", "loss", "divergence", "suppressed"))
        table.add_row(Text(levels or "nothing"), *cells)
    return table


def _loss(loss: dict[str, Any]) -> Table:
    table = new_table("column", "lost", "")
    table.columns[2].justify = "left"
    for column, share in loss["columns"].items():
        table.add_row(Text(column), f"{share:.1%}", "█" * round(share * BAR))
    table.add_section()
    table.add_row("all", f"{loss['all']:.1%}", "█" * round(loss["all"] * BAR))
    return table


def _utility(utility: dict[str, Any], absent: dict[str, dict[str, int]]) -> Table:
    error, divergence, height = utility["query_error"], utility["divergence"], utility["height"]
    table = new_grid()
    least = utility["lower_bound"]
    if least is not None:
        table.add_row(f"{least['all']:.1%}", f"lower bound of the loss: {least_loss(least)}")
    if error is not None:
        meaning = f"median error of {error['queries']:,} random COUNT queries; {error['mean']:.1%} on average"
        table.add_row(f"{error['median']:.1%}", meaning)
    if divergence is not None:
        table.add_row(_number(divergence), "divergence from the source (KL, in nats; 0 means identical)")
    table.add_row(_number(utility["discernibility"]), "discernibility: the sum of the squared sizes of the groups")
    for share, meaning in aggregated(utility):
        table.add_row(share, Text(meaning))
    if height is not None:
        table.add_row(f"{height:,}", "steps of generalization in all columns together (height)")
    for count, what, why in left_out(absent):
        table.add_row(f"{count:,}", f"{what}s are not in the release{f': {why}' if why else ''}")
    return table


def _show_guard(console: Console, guard: dict[str, Any] | None) -> None:
    """Print what a guarded search reveals, if the search was guarded."""
    if guard is not None:
        table = new_grid()
        for people, meaning in guard_words(guard):
            table.add_row(people, meaning)
        section(console, GUARD, table)


def new_grid() -> Table:
    """Return a grid of numbers and their meanings."""
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    return table


def _risk(facts: dict[str, Any], exact: bool) -> Table:
    """Return the remaining risk; `exact`: quasi-identifiers are published as they are."""
    risk, unique = facts["risk"], facts["risk"]["unique_before"]
    table = new_grid()
    guess = "probability of a correct guess at which value of the smallest group is whose"
    meaning = guess if exact else "highest re-identification risk"
    table.add_row(f"{risk['highest']:.2%}", f"{meaning}; {risk['mean']:.2%} on average")
    if unique is not None:
        table.add_row(f"{unique:,}", "can be recognized by what is published" if exact else "were unique in the source")
    table.add_row(f"{risk['under_5']:,}", "are in groups of fewer than 5")
    table.add_row(f"{risk['homogeneous_rows']:,}", "are in groups where all have the same sensitive value")
    for column, kept in facts["with_kept"].items():
        meaning = f"are unique in their group for an adversary who also knows {column}"
        table.add_row(f"{kept['unique_share']:.1%}", Text(meaning))
    for figure, meaning in together.figures(facts["together"]) if "together" in facts else ():
        table.add_row(figure, meaning)
    return table


def _near(place: str) -> str:
    """Return a path relative to the working directory if it is inside it."""
    path = Path(place)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else place
