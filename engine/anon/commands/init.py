"""`anon.init`: profile a table and propose a config, without questions: what data cannot show is a parameter."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from anon.config.yaml12 import parse_yaml
from anon.core.database import Database, connect
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.errors import ConfigError, Problem, ResourceError, UnknownColumns
from anon.profile import columns as profiling
from anon.profile import keys, wide
from anon.profile.columns import Profile
from anon.profile.proposal import (
    Answers,
    Proposed,
    missing_answers,
    propose,
    proposed,
    proposed_sensitive,
    repeated_individuals,
    repeats,
    with_possible_rows,
)
from anon.profile.several_rows import RowChoice, largest_share
from anon.profile.templates import TEMPLATES, matched, reasons
from anon.profile.writing import MEMORY, as_yaml
from anon.runs.options import DEFAULTS, Options
from anon.runs.result import Result
from anon.runs.scratch import spill_folder
from anon.source.checks import missing_columns

DEFAULT_K = 5
KNOWABLE = ("quasi-identifier", "keep")  # roles of columns that an adversary may know and that may be published


@dataclass(frozen=True)
class Roles:
    """The columns whose roles are known: who the individual is, what is sensitive (None: not known), and the others by
    role, as flags name these: identifier, quasi-identifier, keep, drop."""

    individual: str | None = None
    sensitive: list[str] | None = None
    others: dict[str, list[str]] = field(default_factory=dict)
    template: str | None = None

    @property
    def by_name(self) -> dict[str, str]:
        return {name: role for role, names in self.others.items() for name in names}

    @property
    def key(self) -> list[str]:
        return [] if self.individual in (None, "row") else [str(self.individual)]

    def check(self, names: list[str]) -> None:
        """Check that a table has the columns, and that each has one role."""
        by_flag = {"individual": self.key, "sensitive": self.sensitive or [], **self.others}
        wanted = [(f"--{flag}", column) for flag, columns in by_flag.items() for column in columns]
        problems, seen = missing_columns(wanted, names, quotable=True), set()
        for flag, column in wanted:
            if column in seen and column in names:
                problems.append(Problem(flag, f"column {column!r} a second time", "one role for each column"))
            seen.add(column)
        if problems:
            raise UnknownColumns(problems, names)

    def guessed(self, found: Profile, individual: str | None) -> dict[str, tuple[str, str]]:
        """Return the roles that a template or the names of columns give, with the reasons, where none is known."""
        guessed = dict.fromkeys(proposed_sensitive(found, individual), ("sensitive", "by its name; check it"))
        if self.template is not None:
            template = TEMPLATES[self.template]
            fields = matched(template, found, individual)
            why = reasons(template, fields)
            own = {name: (field.role, why[name]) for name, field in fields.items()}
            quasi = [column.name for column in found.columns if proposed(column, found).role == "quasi-identifier"]
            own = {name: each for name, each in own.items() if each[0] != "quasi-identifier" or name in quasi}
            guessed = own if any(role == "sensitive" for role, _ in own.values()) else guessed | own
        named = {*self.by_name, *(self.sensitive or [])}
        return {name: each for name, each in guessed.items() if name not in named}

    def proposed_sensitive(self, found: Profile, individual: str | None) -> list[str]:
        return [name for name, (role, _) in self.guessed(found, individual).items() if role == "sensitive"]

    def knowable(self, found: Profile) -> list[str]:
        """Return the columns that an adversary may know and that may be published, as far as is known."""
        sensitive = self.sensitive
        if sensitive is None:
            sensitive = self.proposed_sensitive(found, self.individual)
        known = self.by_name | dict.fromkeys([*sensitive, *self.key], "")
        guesses = [proposed(column, found) for column in found.columns]
        return [each.name for each in guesses if known.get(each.name, each.role) in KNOWABLE]


@contextmanager
def profiling_database(memory: int, threads: int | None, progress: Progress) -> Iterator[tuple[Database, Path]]:
    """Open a database for a profile, with its spill folder. What is too large for it is a matter of --memory: there is
    no config yet."""
    try:
        with (
            spill_folder(progress.alert) as folder,
            closing(connect(memory, threads, folder)) as database,
        ):
            yield database, folder
    except ResourceError as error:
        said = str(error).replace("limits.memory", "--memory").replace("limits.temp", "TMPDIR")
        raise ResourceError(said) from None


def profiled(
    database: Database,
    table: Any,
    folder: Path,
    roles: Roles,
    show_values: bool,
    progress: Progress,
    sheet: str | None = None,
) -> Profile:
    """Return the profile of a table: a path, a frame or a query on a database."""
    with progress.stage("profile"):
        found = profiling.profile(database, table, folder, partial(progress.update, "profile"), show_values, sheet)
    roles.check([column.name for column in found.columns])
    with progress.stage("keys"):
        keys.find_keys(database, found, roles.knowable(found), roles.key)
    with progress.stage("combinations"):
        known = roles.knowable(found)
        wide.leave_out(database, found, [name for name in known if name not in roles.by_name])
        known = [name for name in known if name not in found.left_out]
        profiling.combine(database, found, known, partial(progress.update, "combinations"))
    return found


def answered(
    database: Database,
    found: Profile,
    roles: Roles,
    individual: str | None,
    sensitive: list[str] | None,
    k: int | None = None,
    rows: RowChoice | None = None,
    asked: bool = False,
    problems: Iterable[Problem] = (),
) -> Answers:
    """Return the answers that a config needs, with what becomes of several rows of a person; ConfigError if some are
    missing. `asked`: whether a person was asked what is sensitive; `problems` are those that are known already."""
    if listed := [*missing_answers(individual, sensitive, found), *problems]:
        raise ConfigError(listed)
    assert individual is not None and sensitive is not None
    guessed, template = roles.guessed(found, individual), None if roles.template is None else TEMPLATES[roles.template]
    why = {name: reason for name, (_, reason) in guessed.items() if not (asked and name in sensitive)}
    own = {name: role for name, (role, _) in guessed.items() if role != "sensitive" and name not in sensitive}
    people = found.rows if individual == "row" else found.column(individual).distinct
    least = k or min(template.k if template else DEFAULT_K, max(2, people))
    answers = Answers(individual, tuple(sensitive), own | roles.by_name, least, why, template=template)
    if repeats(found, individual):
        keys.find_varying(database, found, individual)
        answers = with_possible_rows(found, replace(answers, rows=rows))
    return with_shares(answers, found, database)


def with_shares(answers: Answers, found: Profile, database: Database) -> Answers:
    """Return the answers with the share of the commonest value of sensitive columns, if a criterion depends on it."""
    if answers.multiplicity == "single" and answers.template is None:
        return answers
    shares = {name: largest_share(database, found, answers.individual, name) for name in answers.sensitive}
    return replace(answers, shares=shares)


@dataclass(frozen=True, repr=False)
class Proposal(Result):
    """The result of `anon.init`: `config`, a mapping that `anon.run` takes, and `text`, the same as YAML with the
    reason of every role."""

    text: str = ""

    @property
    def config(self) -> dict[str, Any]:
        problems: list[Problem] = []
        parsed: dict[str, Any] = parse_yaml(self.text, problems)
        return parsed

    def __repr__(self) -> str:
        return self.text


def init(
    table: Any,
    roles: Roles,
    k: int | None = None,
    options: Options = DEFAULTS,
    progress: Progress | None = None,
    sheet: str | None = None,
) -> Proposal:
    """Return the config that a table suggests. Every column without a role gets the proposed one."""
    progress, memory = progress or Progress(), options.memory or Options.from_user(memory=MEMORY).memory
    assert memory is not None
    Memory(memory).check()
    check_template(roles.template)
    check_out(options.out, options.overwrite)
    place = os.fspath(table) if isinstance(table, str | os.PathLike) else None
    with profiling_database(memory, None, progress) as (database, folder):
        found = profiled(database, place or table, folder, roles, options.show_values, progress, sheet)
        sensitive = roles.sensitive
        if sensitive is None and roles.template is not None:
            sensitive = roles.proposed_sensitive(found, roles.individual)
        answers = answered(database, found, roles, roles.individual, sensitive, k)
    chosen = roles_of(found, answers)
    check_knowable(chosen)
    text = as_yaml(found, answers, chosen, place, options.out, memory=f"{memory // 1_000_000}MB")
    if options.out is not None:
        write_config(options.out, text)
    return Proposal(facts(found, chosen, [], options.show_values), {}, text=text)


def roles_of(found: Profile, answers: Answers) -> list[Proposed]:
    """Return the role of every column; ConfigError for rows of individuals that a run would refuse."""
    if problems := repeated_individuals(found, answers):
        raise ConfigError(problems)
    return propose(found, answers)


def check_knowable(chosen: list[Proposed]) -> None:
    """Raise ConfigError if no column is one that others may know."""
    if not any(each.role == "quasi-identifier" for each in chosen):
        raise ConfigError.at("--quasi-identifier", "no column that others may know", "at least one")


def check_template(name: str | None) -> None:
    """Raise ConfigError if there is no template of this name."""
    if name is not None and name not in TEMPLATES:
        raise ConfigError.at("--template", repr(name), f"one of {', '.join(TEMPLATES)}")


def check_out(out: Path | None, overwrite: bool) -> None:
    """Raise ConfigError if a config cannot be written to a place."""
    if out is None:
        return
    if out.is_dir():
        raise ConfigError.at("--out", f"{out}, a folder", "a file")
    if (out.exists() or out.is_symlink()) and not overwrite:
        raise ConfigError.at("--out", f"{out}, which exists", "a new file", "or say --overwrite")


def write_config(path: Path, text: str) -> None:
    """Write a file in one step, so that it is never there half-written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        found = f"{path}, which cannot be written ({error.strerror})"
        raise ConfigError.at("--out", found, "a file that can be written") from None


def facts(found: Profile, roles: list[Proposed], unanswered: list[Problem], show_values: bool) -> dict[str, Any]:
    """Return what `--json` prints."""
    proposals = [
        {"name": each.name, "role": each.role, "reason": each.reason, "notes": list(each.notes)} for each in roles
    ]
    open_ = [problem.path for problem in unanswered]
    return {"profile": found.to_dict(show_values), "proposal": proposals, "unanswered": open_}
