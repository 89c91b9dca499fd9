"""The questions of `anon init` on a terminal: who a row is about, what is sensitive, and with --review the role of
every column. Enter accepts the proposal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from anon.core.terminal import one_line, say

if TYPE_CHECKING:
    from anon.profile.columns import Profile
    from anon.profile.proposal import Answers, Proposed
    from anon.profile.several_rows import RowChoice

WHO = "Who is a row about? `row` if every row is a different person, or the column that identifies them"
OFFERED = 2  # columns that order the rows of a person


def ask_individual(
    found: Profile, names: list[str], proposed: str | None, rows: RowChoice | None
) -> tuple[str, RowChoice | None]:
    """Return who a row is about, and what becomes of several rows of a person, in one question."""
    from anon.profile.proposal import Answers, repeated_individuals, repeats

    offered = _offered(found, proposed, rows)
    for number, (name, way) in enumerate(offered, start=1):
        say(one_line(f"  {number}  {name}: {way.words}"), err=True)
    question = WHO if not offered else f"{WHO}; or one of these numbers"
    default = "1" if offered else proposed or ""
    while True:
        answer = _ask(question, names, default, "row", *(str(n) for n in range(1, len(offered) + 1)))
        if answer.isdigit() and answer not in names:
            return offered[int(answer) - 1]
        problems = repeated_individuals(found, Answers(answer))
        if not problems:
            if repeats(found, answer) and rows is None:
                say("people have several rows: the config says which one is used; --rows changes that", err=True)
            return answer, rows
        for problem in problems:
            say(str(problem), err=True)


def _offered(found: Profile, proposed: str | None, rows: RowChoice | None) -> list[tuple[str, RowChoice]]:
    """Return the individual and the ways with several rows that are offered, where people have several."""
    from anon.profile.proposal import repeats
    from anon.profile.several_rows import choices

    if proposed is None or rows is not None or not repeats(found, proposed):
        return []
    ways = choices(found, proposed)
    ordered = [way for way in ways if way.multiplicity == "single"]
    several = [way for way in ways if way.multiplicity != "single"]
    return [(proposed, way) for way in ordered[:OFFERED] + several]


def _ask(question: str, names: list[str], default: str, *more: str) -> str:
    while True:
        answer = str(typer.prompt(question, default=default or None, err=True)).strip()
        if answer in (*names, *more):
            return answer
        say(one_line(f"there is no column {answer!r}; the table has {', '.join(names[:12])}"), err=True)


def ask_sensitive(names: list[str], proposed: list[str]) -> list[str]:
    """Return the columns that nobody may learn about a person."""
    question = "Which columns may nobody learn about a person? (separated by commas; `none` for none)"
    while True:
        answer = str(typer.prompt(question, default=", ".join(proposed) or "none", err=True))
        if answer.strip() == "none" and "none" not in names:
            return []
        columns = [word.strip() for word in answer.split(",")]
        wrong = [word for word in columns if word and word not in names]
        if not wrong:
            return list(dict.fromkeys(filter(None, columns)))
        say(one_line(f"there is no column {wrong[0]!r}; the table has {', '.join(names[:12])}"), err=True)


def reviewed(answers: Answers, proposed: list[Proposed], found: Profile) -> Answers:
    """Return the answers with the roles that the user chooses; Enter accepts the proposed role. Roles that a run would
    refuse are reported and asked for again."""
    from anon.profile.proposal import repeated_individuals

    while problems := repeated_individuals(found, chosen := _with_roles(answers, proposed)):
        for problem in problems:
            say(str(problem), err=True)
    return chosen


def _with_roles(answers: Answers, proposed: list[Proposed]) -> Answers:
    from anon.profile.proposal import ROLES

    roles = dict(answers.roles)
    for each in proposed:
        if each.name in roles or each.name in answers.sensitive or each.column.kind is None:
            continue
        say(one_line(f"{each.name}: {each.reason}"), err=True)
        for note in each.notes:
            say(one_line(f"  {note}"), err=True)
        role = _ask_role(ROLES, each.role)
        if role != each.role:
            roles[each.name] = role
    sensitive = (*answers.sensitive, *(name for name, role in roles.items() if role == "sensitive"))
    return replace(answers, roles=roles, sensitive=sensitive)


def _ask_role(roles: tuple[str, ...], default: str) -> str:
    while True:
        answer = str(typer.prompt(f"  {' | '.join(roles)}", default=default, err=True)).strip()
        near = [role for role in roles if role.startswith(answer)]
        if len(near) == 1:
            return near[0]
        say(f"  one of {', '.join(roles)}, or an unambiguous prefix of it", err=True)
