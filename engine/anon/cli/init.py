"""`anon init`: propose a first config for a table. On a terminal it asks two questions; elsewhere flags answer them, or
--yes accepts what is proposed, and a question without an answer is exit 2."""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anon.cli.command import NO_WARNINGS, CommonFlags, command
from anon.cli.init_questions import ask_individual, ask_sensitive, reviewed
from anon.core.terminal import one_line, say, say_json
from anon.errors import ConfigError, Problem

if TYPE_CHECKING:
    from anon.commands.init import Roles
    from anon.config import Limits
    from anon.core.database import Database
    from anon.profile.columns import Profile
    from anon.profile.proposal import Answers, Proposed
    from anon.source.databases import Query

DEFAULT_OUT = "anon.yaml"
TEMPLATE_NAMES = ("hospital", "claims", "census", "hr")
FLAGS = ("identifier", "quasi-identifier", "keep", "drop")  # each a role, as is `sensitive`


@dataclass(frozen=True)
class InitOptions:
    """The arguments of `anon init`."""

    table: str
    query: str | None
    out: Path | None
    individual: str | None
    rows: str | None
    sensitive: list[str] | None  # None: not answered by a flag
    roles: dict[str, list[str]]
    template: str | None
    k: int | None
    yes: bool
    review: bool
    overwrite: bool
    memory: str
    flags: CommonFlags
    sheet: str | None = None

    @property
    def known(self) -> Roles:
        from anon.commands.init import Roles

        return Roles(self.individual, self.sensitive, self.roles, self.template)

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
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="Parquet, CSV, JSON lines, Arrow or Excel, a folder, or a glob; with --query, postgresql://... or a "
            "DuckDB file. May be left out with --template.",
            show_default=False,
        ),
    ] = None,
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
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="last:COLUMN|first:COLUMN|set|multiset",
            help="If people have several rows: use one of each by a column of dates, or publish all of their values.",
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
    template: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(TEMPLATE_NAMES),
            help="Criteria and roles that fit a sector; columns of TABLE are matched by name and content.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(min=2, metavar="N", help="The minimum group size; by default 5, or that of the template."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: accept what is proposed wherever no flag says otherwise.")
    ] = False,
    review: Annotated[
        bool, typer.Option("--review", help="Ask for the role of every column as well, with the proposal as default.")
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
    On a terminal it asks who a row is about and what is sensitive, each with a proposal; elsewhere --individual and
    --sensitive say so, or --yes accepts the proposals. Roles of other columns are proposed. --json prints the profile.
    """
    named = None if sensitive is None and not no_sensitive else sensitive or []
    roles = dict(zip(FLAGS, (identifier or [], quasi_identifier or [], keep or [], drop or [])))
    if sensitive and no_sensitive:
        raise ConfigError.at("--no-sensitive", "--sensitive as well", "one of the two")
    if table is None and template is None:
        raise ConfigError.at("TABLE", "nothing", "a table, or --template", f"templates: {', '.join(TEMPLATE_NAMES)}")
    options = InitOptions(
        table or "",
        query,
        out,
        individual,
        rows,
        named,
        roles,
        template,
        k,
        yes,
        review,
        overwrite,
        memory,
        flags,
        sheet,
    )
    from anon.commands.init import check_out, check_template

    check_template(template)
    check_out(out, overwrite)
    return _init(options) if table is not None else _template_alone(options)


def _template_alone(options: InitOptions) -> int:
    """Write the config of a template as it is, without a table."""
    from anon.commands.init import write_config
    from anon.profile.templates import TEMPLATES
    from anon.profile.writing import from_template

    text = from_template(TEMPLATES[str(options.template)], options.out)
    if options.out is not None:
        write_config(options.out, text)
    if options.flags.as_json:
        say_json({"config": text} if options.out is None else {"file": str(options.out)})
    elif options.out is None:
        sys.stdout.write(text)
    else:
        say(one_line(f"{options.out} was written. Replace its source and columns by those of your table."))
    return 0


def _init(options: InitOptions) -> int:
    from anon.commands.init import profiled, profiling_database

    limits, table = _limits(options), _table(options)
    with (
        options.flags.progress() as progress,
        profiling_database(limits.memory, limits.threads, progress) as (database, folder),
    ):
        found = profiled(database, table, folder, options.known, options.flags.show_values, progress, options.sheet)
        if options.flags.as_json and options.out is None and not options.yes:
            say_json(_facts(options, found, None))
            return 0
        if options.interactive or (options.out and not options.flags.as_json):
            _show(found, options)
        answers = _answers(options, found, database)
    return _written(options, found, answers)


def _written(options: InitOptions, found: Profile, answers: Answers) -> int:
    """Write the config that follows from a profile and the answers."""
    from anon.commands.init import check_knowable, roles_of
    from anon.profile.writing import as_yaml

    chosen = roles_of(found, answers)
    if options.interactive and options.out is None and sys.stdout.isatty():
        options = replace(options, out=_free_place())
    check_knowable(chosen)
    text = as_yaml(found, answers, chosen, options.table, options.out, options.query, options.memory)
    _output(options, text, found, chosen)
    return 0


def _free_place() -> Path:
    """Return the first of anon.yaml, anon-2.yaml, ... that does not exist."""
    places = (Path(DEFAULT_OUT if n == 1 else f"anon-{n}.yaml") for n in itertools.count(1))
    return next(place for place in places if not place.exists() and not place.is_symlink())


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


def _answers(options: InitOptions, found: Profile, database: Database) -> Answers:
    """Return the answers that the flags give and, on a terminal, the user; with --yes those that are proposed."""
    from anon.commands.init import answered, roles_of, with_shares
    from anon.profile.proposal import proposed_individual
    from anon.profile.several_rows import RowChoice

    individual, sensitive, rows = options.individual, options.sensitive, None
    names = [column.name for column in found.columns]
    if options.rows is not None:
        rows = RowChoice.parse(options.rows, names)
    if individual is None and (options.interactive or options.yes):
        individual = proposed_individual(found)
        if options.interactive:
            individual, rows = ask_individual(found, names, individual, rows)
    if sensitive is None and (options.interactive or options.yes):
        sensitive = options.known.proposed_sensitive(found, individual)
        if options.interactive:
            sensitive = ask_sensitive(names, sensitive)
    problems = _open_roles(options, individual, sensitive, names)
    asked = options.interactive and options.sensitive is None
    answers = answered(database, found, options.known, individual, sensitive, options.k, rows, asked, problems)
    if not (options.interactive and options.review):
        return answers
    return with_shares(reviewed(answers, roles_of(found, answers), found), found, database)


def _open_roles(
    options: InitOptions, individual: str | None, sensitive: list[str] | None, names: list[str]
) -> list[Problem]:
    """Return the problem that columns have no role, where neither --yes nor a person says which."""
    if options.yes or options.interactive:
        return []
    named = {individual, *(sensitive or []), *(name for columns in options.roles.values() for name in columns)}
    if not (open_ := [name for name in names if name not in named]):
        return []
    expected = "--yes to accept the proposed role of each, or a flag for every column"
    hint = "`anon init TABLE --json` prints a profile of the data"
    return [Problem("--yes", f"{len(open_):,} columns without a role", expected, hint)]


def _output(options: InitOptions, text: str, found: Profile, chosen: list[Proposed]) -> None:
    """Write or print the config."""
    if options.out is not None:
        from anon.commands.init import write_config

        write_config(options.out, text)
    if options.flags.as_json:
        place = {"config": text} if options.out is None else {"file": str(options.out)}
        say_json(_facts(options, found, chosen) | place)
    elif options.out is None:
        sys.stdout.write(text)
    else:
        say(one_line(f"{options.out} was written. Next: anon plan {options.out}"))


def _facts(options: InitOptions, found: Profile, chosen: list[Proposed] | None) -> dict[str, Any]:
    """Return what --json prints."""
    from anon.commands.init import facts
    from anon.profile.proposal import missing_answers

    roles = _first_guess(found) if chosen is None else chosen
    missing = [] if chosen is not None else missing_answers(options.individual, options.sensitive, found)
    return facts(found, roles, missing, options.flags.show_values)


def _show(found: Profile, options: InitOptions) -> None:
    """Print the profile in tables: on stdout, or on stderr if the config goes to stdout."""
    from rich.console import Console

    from anon.report.terminal import show_profile

    show_profile(Console(stderr=options.out is None), one_line(found.to_dict(options.flags.show_values)))
