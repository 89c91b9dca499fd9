"""`anon init`: from a table to a first config, before the way of the data (config -> source -> cube -> search ->
release -> verify -> report). Asks on a terminal; elsewhere flags answer, and what they leave open is exit 2."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.cli.options import Debug, Json, LogJson, ShowValues, Strict, guarded, telling
from anon.core.terminal import one_line, say, say_json
from anon.errors import ConfigError, Problem, UnknownColumns

if TYPE_CHECKING:
    from anon.config import Limits
    from anon.profile.columns import Profile
    from anon.profile.proposal import Answers, Proposed
    from anon.source.databases import Query

DEFAULT_OUT = "anon.yaml"
FLAGS = ("identifier", "quasi-identifier", "keep", "drop")  # each a role, as is `sensitive`


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    table: str
    query: str | None
    out: Path | None
    individual: str | None
    sensitive: list[str] | None  # None: not said
    roles: dict[str, list[str]]
    k: int
    yes: bool
    overwrite: bool
    as_json: bool
    show_values: bool
    log_json: bool
    memory: str

    @property
    def interactive(self) -> bool:
        return not self.yes and not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()


Columns = list[str] | None


def init(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Parquet, CSV, a folder of either, or a glob; with --query postgresql://... or a DuckDB file.",
        ),
    ],
    query: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="A query on the database TABLE, whose password stands there as '${NAME}'."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The config to write; without it, it goes to stdout.")
    ] = None,
    individual: Annotated[
        str | None,
        typer.Option(metavar="row|COLUMN", help="`row`: every row is another person; or the column that says who."),
    ] = None,
    sensitive: Annotated[
        Columns, typer.Option(metavar="COLUMN", help="What nobody may learn; may be repeated.")
    ] = None,
    no_sensitive: Annotated[bool, typer.Option("--no-sensitive", help="No column is sensitive.")] = False,
    identifier: Annotated[Columns, typer.Option(metavar="COLUMN", help="Points at one person; never leaves.")] = None,
    quasi_identifier: Annotated[
        Columns, typer.Option(metavar="COLUMN", help="Others can know it; published coarser.")
    ] = None,
    keep: Annotated[Columns, typer.Option(metavar="COLUMN", help="Published as it is, on your word.")] = None,
    drop: Annotated[Columns, typer.Option(metavar="COLUMN", help="Left out.")] = None,
    k: Annotated[int, typer.Option(min=2, metavar="N", help="Nobody is one of fewer than k.")] = 5,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take the proposed role of every column that no flag names.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory of the whole process, and of the config. At least 400MB.")
    ] = "1GB",
    as_json: Json = False,
    show_values: ShowValues = False,
    strict: Strict = False,
    log_json: LogJson = False,
    debug: Debug = False,
) -> None:
    """Looks at a table and writes a first config, with the reason for every role beside it.

    Counts types, distinct and missing values, and how many rows each column and combination of columns tells apart.
    Who the individual is and what is sensitive cannot be seen in data: answer on the terminal, or by --individual and
    --sensitive. What the data speaks for is proposed, and taken with --yes or when you agree. --json gives the profile.
    """

    def work() -> int:
        said = None if sensitive is None and not no_sensitive else sensitive or []
        roles = dict(zip(FLAGS, (identifier or [], quasi_identifier or [], keep or [], drop or [])))
        if sensitive and no_sensitive:
            raise ConfigError.at("--no-sensitive", "--sensitive as well", "one of the two")
        asked = Asked(table, query, out, individual, said, roles, k, yes, overwrite, as_json, show_values, log_json,
                      memory)  # fmt: skip
        _check_out(asked)
        return _init(asked)

    guarded(work, as_json, debug, show_values)


def _check_out(asked: Asked) -> None:
    if asked.out is None:
        return
    if asked.out.is_dir():
        raise ConfigError.at("--out", f"{asked.out}, a folder", "a file")
    if (asked.out.exists() or asked.out.is_symlink()) and not asked.overwrite:
        raise ConfigError.at("--out", f"{asked.out}, which exists", "a new file", "or say --overwrite")


def _init(asked: Asked) -> int:
    from anon.profile.proposal import propose, repeated_individuals
    from anon.profile.writing import as_yaml

    found = _profiled(asked)
    if asked.as_json and asked.out is None and not _complete(asked):
        say_json(_told(asked, found, None))
        return 0
    if asked.interactive or (asked.out and not asked.as_json):
        _show(found, asked)
    answers = _answers(asked, found)
    if problems := repeated_individuals(found, answers):
        raise ConfigError(problems)
    chosen = propose(found, answers)
    if asked.interactive:
        answers, chosen = _agreed(answers, chosen, found)
        asked = _ask_out(asked)
    if not any(each.role == "quasi-identifier" for each in chosen):
        raise ConfigError.at("--quasi-identifier", "no column that others may know", "at least one")
    _give(asked, as_yaml(found, answers, chosen, asked.table, asked.out, asked.query, asked.memory), found, chosen)
    return 0


def _profiled(asked: Asked) -> Profile:
    from anon.core.database import connect
    from anon.profile import columns as profiling
    from anon.profile import keys
    from anon.runs.scratch import spill_folder

    limits, table = _limits(asked), _table(asked)
    with (
        telling(asked.as_json, asked.log_json) as progress,
        spill_folder(progress.alert) as folder,
        closing(connect(limits.memory, limits.threads, folder)) as con,
    ):
        with progress.stage("profile"):
            found = profiling.profile(con, table, folder, partial(progress.update, "profile"), asked.show_values)
        _check_named(asked, [column.name for column in found.columns])
        with progress.stage("keys"):
            said = [asked.individual] if asked.individual not in (None, "row") else []
            keys.find_keys(con, found, _knowable(asked, found), [str(name) for name in said])
        with progress.stage("combinations"):
            profiling.combine(con, found, _knowable(asked, found), partial(progress.update, "combinations"))
    return found


def _limits(asked: Asked) -> Limits:
    from pydantic import ValidationError

    from anon.config import Limits
    from anon.core.memory import Memory

    try:
        limits = Limits(memory=asked.memory)  # type: ignore[arg-type]
    except ValidationError:
        raise ConfigError.at("--memory", repr(asked.memory), "a size such as 1GB or 512MiB") from None
    Memory(limits.memory).check()
    return limits


def _table(asked: Asked) -> str | Query:
    """The files, or the query, which a config describes: variables are put in and passwords kept out as there."""
    from anon.profile.writing import is_dsn

    if asked.query is None:
        if is_dsn(asked.table):
            raise ConfigError.at("--query", "nothing", "the query on the database", "such as --query 'SELECT * FROM t'")
        return asked.table
    from anon.config import load
    from anon.source.databases import Query
    from anon.source.origins import origin_of

    at = {"postgres": {"dsn": asked.table}} if is_dsn(asked.table) else {"duckdb": {"file": asked.table}}
    for place in at.values():
        place["query"] = asked.query
    columns = {"individual": "row", "quasi_identifiers": ["not known yet"]}
    rest = {"columns": columns, "privacy": [{"k_anonymity": {"k": 2}}], "release": {"path": "release"}}
    origin = origin_of(load({"source": at, **rest}), None)
    assert isinstance(origin, Query)
    return origin


def _first_guess(found: Profile) -> list[Proposed]:
    from anon.profile.proposal import proposed

    return [proposed(column, found) for column in found.columns]


def _knowable(asked: Asked, found: Profile) -> list[str]:
    """The columns that an adversary may know and that may leave the house, as far as can be told before the answers."""
    said = {name: role for role, given in asked.roles.items() for name in given}
    said |= dict.fromkeys([*(asked.sensitive or []), str(asked.individual)], "")
    return [each.name for each in _first_guess(found) if said.get(each.name, each.role) in ("quasi-identifier", "keep")]


def _complete(asked: Asked) -> bool:
    return asked.individual is not None and asked.sensitive is not None and asked.yes


def _check_named(asked: Asked, names: list[str]) -> None:
    """Columns that flags name are there, and have one role each."""
    from anon.source.checks import missing_columns

    individual = [asked.individual] if asked.individual not in (None, "row") else []
    given = {"individual": individual, "sensitive": asked.sensitive or [], **asked.roles}
    wanted = [(f"--{flag}", str(column)) for flag, columns in given.items() for column in columns]
    problems, seen = missing_columns(wanted, names, quotable=True), set()
    for flag, column in wanted:
        if column in seen and column in names:
            problems.append(Problem(flag, f"column {column!r} a second time", "one role for each column"))
        seen.add(column)
    if problems:
        raise UnknownColumns(problems, names)


def _answers(asked: Asked, found: Profile) -> Answers:
    """From the flags, and on a terminal from whoever sits there."""
    from anon.profile.proposal import Answers, missing_answers, repeats

    individual, sensitive = asked.individual, asked.sensitive
    names = [column.name for column in found.columns]
    if asked.interactive:
        if individual is None:
            individual = _ask_individual(found, names)
        if sensitive is None:
            sensitive = _ask_list("Which columns may nobody learn about a person? (commas between; empty: none)", names)
    if asked.yes and individual is None:
        individual = found.persons.best(found)
    problems = missing_answers(individual, sensitive, found)
    if not asked.yes and not asked.interactive:
        told = {individual, *(sensitive or []), *(name for given in asked.roles.values() for name in given)}
        if open_ := [name for name in names if name not in told]:
            expected = "--yes to take the proposed role of each, or a flag for every column"
            hint = "`anon init TABLE --json` shows what the data looks like"
            problems.append(Problem("--yes", f"{len(open_):,} columns without a role", expected, hint))
    if problems:
        raise ConfigError(problems)
    assert individual is not None and sensitive is not None
    roles = {name: role for role, given in asked.roles.items() for name in given}
    several = "multiset" if repeats(found, individual) else "single"
    return Answers(individual, tuple(sensitive), roles, asked.k, several)


def _ask_individual(found: Profile, names: list[str]) -> str:
    from anon.profile.proposal import Answers, repeated_individuals

    while True:
        question = "Who is a row about? `row` if every row is another person, or the column that says who"
        said = _ask(question, names, "row")
        problems = repeated_individuals(found, Answers(said))
        if not problems:
            return said
        for problem in problems:
            say(str(problem), err=True)


def _ask(question: str, names: list[str], *more: str) -> str:
    while True:
        said = str(typer.prompt(question, err=True)).strip()
        if said in (*names, *more):
            return said
        say(one_line(f"there is no column {said!r}; the table has {', '.join(names[:12])}"), err=True)


def _ask_list(question: str, names: list[str]) -> list[str]:
    while True:
        said = [
            word.strip() for word in str(typer.prompt(question, default="", show_default=False, err=True)).split(",")
        ]
        wrong = [word for word in said if word and word not in names]
        if not wrong:
            return list(dict.fromkeys(filter(None, said)))
        say(one_line(f"there is no column {wrong[0]!r}; the table has {', '.join(names[:12])}"), err=True)


def _agreed(answers: Answers, chosen: list[Proposed], found: Profile) -> tuple[Answers, list[Proposed]]:
    """The roles as whoever is asked wants them; the proposal is what Enter stands for."""
    from anon.profile.proposal import ROLES, propose

    roles = dict(answers.roles)
    for each in chosen:
        if each.name in roles or each.name in answers.sensitive or each.column.kind is None:
            continue
        say(one_line(f"{each.name}: {each.reason}"), err=True)
        for note in each.notes:
            say(one_line(f"  {note}"), err=True)
        said = _ask_role(ROLES, each.role)
        if said != each.role:
            roles[each.name] = said
    sensitive = (*answers.sensitive, *(name for name, role in roles.items() if role == "sensitive"))
    answers = replace(answers, roles=roles, sensitive=sensitive)
    return answers, propose(found, answers)


def _ask_role(roles: tuple[str, ...], default: str) -> str:
    while True:
        said = str(typer.prompt(f"  {' | '.join(roles)}", default=default, err=True)).strip()
        near = [role for role in roles if role.startswith(said)]
        if len(near) == 1:
            return near[0]
        say(f"  one of {', '.join(roles)}, or as many letters as tell it from the others", err=True)


def _ask_out(asked: Asked) -> Asked:
    """Where to write, unless it was said or stdout goes somewhere."""
    while asked.out is None and sys.stdout.isatty():
        out = Path(str(typer.prompt("Write the config to", default=DEFAULT_OUT, err=True)).strip())
        try:
            _check_out(replace(asked, out=out))
        except ConfigError as error:
            say(str(error), err=True)
            continue
        return replace(asked, out=out)
    return asked


def _give(asked: Asked, text: str, found: Profile, chosen: list[Proposed]) -> None:
    if asked.out is not None:
        _write(asked.out, text)
    if asked.as_json:
        told = _told(asked, found, chosen) | ({"config": text} if asked.out is None else {"file": str(asked.out)})
        say_json(told)
    elif asked.out is None:
        sys.stdout.write(text)
    else:
        say(one_line(f"{asked.out} was written. Next: anon plan {asked.out}"))


def _write(path: Path, text: str) -> None:
    """In one step, so that nothing half-written is ever there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError.at(
            "--out", f"{path}, which cannot be written ({error.strerror})", "a file that can"
        ) from None


def _told(asked: Asked, found: Profile, chosen: list[Proposed] | None) -> dict[str, Any]:
    from anon.profile.proposal import missing_answers

    roles = _first_guess(found) if chosen is None else chosen
    proposals = [
        {"name": each.name, "role": each.role, "reason": each.reason, "notes": list(each.notes)} for each in roles
    ]
    unanswered = [problem.path for problem in missing_answers(asked.individual, asked.sensitive, found)]
    return {"profile": found.to_dict(asked.show_values), "proposal": proposals, "unanswered": unanswered}


def _show(found: Profile, asked: Asked) -> None:
    """The profile in tables: on stdout, or on stderr where the config goes to stdout."""
    from rich.console import Console

    from anon.report.words import show_profile

    show_profile(Console(stderr=asked.out is None), one_line(found.to_dict(asked.show_values)))
