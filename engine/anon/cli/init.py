"""`anon init`: propose a first config for a table. On a terminal it asks questions; elsewhere flags answer them, and a
question without an answer is exit 2."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.cli.command import NO_WARNINGS, CommonFlags, command
from anon.core.terminal import one_line, say, say_json
from anon.errors import ConfigError, Problem

if TYPE_CHECKING:
    from anon.commands.init import Roles
    from anon.config import Limits
    from anon.profile.columns import Profile
    from anon.profile.proposal import Answers, Proposed
    from anon.source.databases import Query

DEFAULT_OUT = "anon.yaml"
FLAGS = ("identifier", "quasi-identifier", "keep", "drop")  # each a role, as is `sensitive`


@dataclass(frozen=True)
class InitOptions:
    """The arguments of `anon init`."""

    table: str
    query: str | None
    out: Path | None
    individual: str | None
    sensitive: list[str] | None  # None: not answered by a flag
    roles: dict[str, list[str]]
    k: int
    yes: bool
    overwrite: bool
    memory: str
    flags: CommonFlags
    sheet: str | None = None

    @property
    def known(self) -> Roles:
        from anon.commands.init import Roles

        return Roles(self.individual, self.sensitive, self.roles)

    @property
    def interactive(self) -> bool:
        return not self.yes and not self.flags.as_json and sys.stdin.isatty() and sys.stderr.isatty()


Columns = list[str] | None


@command(
    "Example: `anon init extract.csv --individual row --sensitive diagnosis --yes --out c.yaml`",
    show_values="Show data values in the profile and in error messages.",
    strict=NO_WARNINGS,
)
def init(
    flags: CommonFlags,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Parquet, CSV, JSON lines, Arrow or Excel, a folder, or a glob; with --query, postgresql://... or a "
            "DuckDB file.",
        ),
    ],
    query: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="A query on the database TABLE, in which '${NAME}' stands for the password."),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="The sheet of an Excel file that has several.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The config to write; by default it goes to stdout.")
    ] = None,
    individual: Annotated[
        str | None,
        typer.Option(
            metavar="row|COLUMN", help="`row` if every row is a different person, or the column that identifies them."
        ),
    ] = None,
    sensitive: Annotated[
        Columns, typer.Option(metavar="COLUMN", help="A column that nobody may learn about a person; may be repeated.")
    ] = None,
    no_sensitive: Annotated[bool, typer.Option("--no-sensitive", help="No column is sensitive.")] = False,
    identifier: Annotated[
        Columns, typer.Option(metavar="COLUMN", help="A column that identifies a person directly; never published.")
    ] = None,
    quasi_identifier: Annotated[
        Columns, typer.Option(metavar="COLUMN", help="A column that others may know; published in a coarser form.")
    ] = None,
    keep: Annotated[
        Columns, typer.Option(metavar="COLUMN", help="A column to publish as it is, on your responsibility.")
    ] = None,
    drop: Annotated[Columns, typer.Option(metavar="COLUMN", help="A column to leave out.")] = None,
    k: Annotated[int, typer.Option(min=2, metavar="N", help="The minimum group size.")] = 5,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the proposed role of every column that no flag names.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
    memory: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Memory limit of the whole process, also written to the config. At least 400MB is required.",
        ),
    ] = "1GB",
) -> int:
    """Profile a table and write a first config, with the reason for every role as a comment.

    Counts types, distinct and missing values, and the rows that each column and combination of columns singles out.
    Data cannot show who the individual is and what is sensitive: answer on the terminal, or with --individual and
    --sensitive. Other roles are proposed, and taken with --yes or when you agree. --json prints the profile.
    """
    named = None if sensitive is None and not no_sensitive else sensitive or []
    roles = dict(zip(FLAGS, (identifier or [], quasi_identifier or [], keep or [], drop or [])))
    if sensitive and no_sensitive:
        raise ConfigError.at("--no-sensitive", "--sensitive as well", "one of the two")
    options = InitOptions(table, query, out, individual, named, roles, k, yes, overwrite, memory, flags, sheet)
    _check_out(options)
    return _init(options)


def _check_out(options: InitOptions) -> None:
    if options.out is None:
        return
    if options.out.is_dir():
        raise ConfigError.at("--out", f"{options.out}, a folder", "a file")
    if (options.out.exists() or options.out.is_symlink()) and not options.overwrite:
        raise ConfigError.at("--out", f"{options.out}, which exists", "a new file", "or say --overwrite")


def _init(options: InitOptions) -> int:
    from anon.profile.proposal import propose, repeated_individuals
    from anon.profile.writing import as_yaml

    found = _profiled(options)
    if options.flags.as_json and options.out is None and not _complete(options):
        say_json(_facts(options, found, None))
        return 0
    if options.interactive or (options.out and not options.flags.as_json):
        _show(found, options)
    answers = _answers(options, found)
    if problems := repeated_individuals(found, answers):
        raise ConfigError(problems)
    chosen = propose(found, answers)
    if options.interactive:
        answers, chosen = _agreed(answers, chosen, found)
        options = _ask_out(options)
    if not any(each.role == "quasi-identifier" for each in chosen):
        raise ConfigError.at("--quasi-identifier", "no column that others may know", "at least one")
    _output(
        options,
        as_yaml(found, answers, chosen, options.table, options.out, options.query, options.memory),
        found,
        chosen,
    )
    return 0


def _profiled(options: InitOptions) -> Profile:
    from anon.commands.init import profiled

    limits, table = _limits(options), _table(options)
    with options.flags.progress() as progress:
        return profiled(table, options.known, limits.memory, options.flags.show_values, progress, options.sheet)


def _limits(options: InitOptions) -> Limits:
    from pydantic import ValidationError

    from anon.config import Limits
    from anon.core.memory import Memory

    try:
        limits = Limits(memory=options.memory)  # type: ignore[arg-type]
    except ValidationError:
        raise ConfigError.at("--memory", repr(options.memory), "a size such as 1GB or 512MiB") from None
    Memory(limits.memory).check()
    return limits


def _table(options: InitOptions) -> str | Query:
    """Return the files, or the query as a config would describe it: variables are replaced by their values, and
    passwords are redacted."""
    from anon.profile.writing import is_dsn

    if options.query is None:
        if is_dsn(options.table):
            raise ConfigError.at("--query", "nothing", "the query on the database", "such as --query 'SELECT * FROM t'")
        return options.table
    from anon.config import load
    from anon.source.databases import Query
    from anon.source.origins import origin_of

    at = {"postgres": {"dsn": options.table}} if is_dsn(options.table) else {"duckdb": {"file": options.table}}
    for place in at.values():
        place["query"] = options.query
    columns = {"individual": "row", "quasi_identifiers": ["not known yet"]}
    rest = {"columns": columns, "privacy": [{"k_anonymity": {"k": 2}}], "release": {"path": "release"}}
    origin = origin_of(load({"source": at, **rest}), None)
    assert isinstance(origin, Query)
    return origin


def _first_guess(found: Profile) -> list[Proposed]:
    from anon.profile.proposal import proposed

    return [proposed(column, found) for column in found.columns]


def _complete(options: InitOptions) -> bool:
    return options.individual is not None and options.sensitive is not None and options.yes


def _answers(options: InitOptions, found: Profile) -> Answers:
    """Return the answers that the flags give and, on a terminal, the user."""
    from anon.profile.proposal import Answers, missing_answers, repeats

    individual, sensitive = options.individual, options.sensitive
    names = [column.name for column in found.columns]
    if options.interactive:
        if individual is None:
            individual = _ask_individual(found, names)
        if sensitive is None:
            question = "Which columns may nobody learn about a person? (separated by commas; empty: none)"
            sensitive = _ask_list(question, names)
    if options.yes and individual is None:
        individual = found.persons.best(found)
    problems = missing_answers(individual, sensitive, found)
    if not options.yes and not options.interactive:
        named = {individual, *(sensitive or []), *(name for columns in options.roles.values() for name in columns)}
        if open_ := [name for name in names if name not in named]:
            expected = "--yes to accept the proposed role of each, or a flag for every column"
            hint = "`anon init TABLE --json` prints a profile of the data"
            problems.append(Problem("--yes", f"{len(open_):,} columns without a role", expected, hint))
    if problems:
        raise ConfigError(problems)
    assert individual is not None and sensitive is not None
    roles = {name: role for role, columns in options.roles.items() for name in columns}
    several = "multiset" if repeats(found, individual) else "single"
    return Answers(individual, tuple(sensitive), roles, options.k, several)


def _ask_individual(found: Profile, names: list[str]) -> str:
    from anon.profile.proposal import Answers, repeated_individuals

    while True:
        question = "Who is a row about? `row` if every row is a different person, or the column that identifies them"
        answer = _ask(question, names, "row")
        problems = repeated_individuals(found, Answers(answer))
        if not problems:
            return answer
        for problem in problems:
            say(str(problem), err=True)


def _ask(question: str, names: list[str], *more: str) -> str:
    while True:
        answer = str(typer.prompt(question, err=True)).strip()
        if answer in (*names, *more):
            return answer
        say(one_line(f"there is no column {answer!r}; the table has {', '.join(names[:12])}"), err=True)


def _ask_list(question: str, names: list[str]) -> list[str]:
    while True:
        answer = str(typer.prompt(question, default="", show_default=False, err=True))
        columns = [word.strip() for word in answer.split(",")]
        wrong = [word for word in columns if word and word not in names]
        if not wrong:
            return list(dict.fromkeys(filter(None, columns)))
        say(one_line(f"there is no column {wrong[0]!r}; the table has {', '.join(names[:12])}"), err=True)


def _agreed(answers: Answers, chosen: list[Proposed], found: Profile) -> tuple[Answers, list[Proposed]]:
    """Return the roles that the user chooses; Enter accepts the proposed role."""
    from anon.profile.proposal import ROLES, propose

    roles = dict(answers.roles)
    for each in chosen:
        if each.name in roles or each.name in answers.sensitive or each.column.kind is None:
            continue
        say(one_line(f"{each.name}: {each.reason}"), err=True)
        for note in each.notes:
            say(one_line(f"  {note}"), err=True)
        role = _ask_role(ROLES, each.role)
        if role != each.role:
            roles[each.name] = role
    sensitive = (*answers.sensitive, *(name for name, role in roles.items() if role == "sensitive"))
    answers = replace(answers, roles=roles, sensitive=sensitive)
    return answers, propose(found, answers)


def _ask_role(roles: tuple[str, ...], default: str) -> str:
    while True:
        answer = str(typer.prompt(f"  {' | '.join(roles)}", default=default, err=True)).strip()
        near = [role for role in roles if role.startswith(answer)]
        if len(near) == 1:
            return near[0]
        say(f"  one of {', '.join(roles)}, or an unambiguous prefix of it", err=True)


def _ask_out(options: InitOptions) -> InitOptions:
    """Ask where to write the config, unless --out says so or stdout is redirected."""
    while options.out is None and sys.stdout.isatty():
        out = Path(str(typer.prompt("Write the config to", default=DEFAULT_OUT, err=True)).strip())
        try:
            _check_out(replace(options, out=out))
        except ConfigError as error:
            say(str(error), err=True)
            continue
        return replace(options, out=out)
    return options


def _output(options: InitOptions, text: str, found: Profile, chosen: list[Proposed]) -> None:
    """Write or print the config."""
    if options.out is not None:
        _write(options.out, text)
    if options.flags.as_json:
        place = {"config": text} if options.out is None else {"file": str(options.out)}
        say_json(_facts(options, found, chosen) | place)
    elif options.out is None:
        sys.stdout.write(text)
    else:
        say(one_line(f"{options.out} was written. Next: anon plan {options.out}"))


def _write(path: Path, text: str) -> None:
    """Write a file in one step, so that it is never there half-written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError.at(
            "--out", f"{path}, which cannot be written ({error.strerror})", "a file that can"
        ) from None


def _facts(options: InitOptions, found: Profile, chosen: list[Proposed] | None) -> dict[str, Any]:
    """Return what --json prints."""
    from anon.commands.init import facts
    from anon.profile.proposal import missing_answers

    roles = _first_guess(found) if chosen is None else chosen
    return facts(found, roles, missing_answers(options.individual, options.sensitive, found), options.flags.show_values)


def _show(found: Profile, options: InitOptions) -> None:
    """Print the profile in tables: on stdout, or on stderr if the config goes to stdout."""
    from rich.console import Console

    from anon.report.terminal import show_profile

    show_profile(Console(stderr=options.out is None), one_line(found.to_dict(options.flags.show_values)))
