"""`anon.init`: profile a table and propose a config, without questions: what data cannot show is a parameter."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from anon.config.yaml12 import parse_yaml
from anon.core.database import connect
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.errors import ConfigError, Problem, UnknownColumns
from anon.profile import columns as profiling
from anon.profile import keys
from anon.profile.columns import Profile
from anon.profile.proposal import (
    Answers,
    Proposed,
    missing_answers,
    propose,
    proposed,
    repeated_individuals,
    repeats,
)
from anon.profile.writing import MEMORY, as_yaml
from anon.runs.options import DEFAULTS, Options
from anon.runs.result import Result
from anon.runs.scratch import spill_folder
from anon.source.checks import missing_columns

KNOWABLE = ("quasi-identifier", "keep")  # roles of columns that an adversary may know and that may be published


@dataclass(frozen=True)
class Roles:
    """The columns whose roles are known: who the individual is, what is sensitive (None: not known), and the others by
    role, as flags name these: identifier, quasi-identifier, keep, drop."""

    individual: str | None = None
    sensitive: list[str] | None = None
    others: dict[str, list[str]] = field(default_factory=dict)

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

    def knowable(self, found: Profile) -> list[str]:
        """Return the columns that an adversary may know and that may be published, as far as is known."""
        known = self.by_name | dict.fromkeys([*(self.sensitive or []), *self.key], "")
        guesses = [proposed(column, found) for column in found.columns]
        return [each.name for each in guesses if known.get(each.name, each.role) in KNOWABLE]


def profiled(
    table: Any, roles: Roles, memory: int, show_values: bool, progress: Progress, sheet: str | None = None
) -> Profile:
    """Return the profile of a table: a path, a frame or a query on a database."""
    with spill_folder(progress.alert) as folder, closing(connect(memory, None, folder)) as database:
        with progress.stage("profile"):
            found = profiling.profile(database, table, folder, partial(progress.update, "profile"), show_values, sheet)
        roles.check([column.name for column in found.columns])
        with progress.stage("keys"):
            keys.find_keys(database, found, roles.knowable(found), roles.key)
        with progress.stage("combinations"):
            profiling.combine(database, found, roles.knowable(found), partial(progress.update, "combinations"))
    return found


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
    table: Any, roles: Roles, k: int = 5, options: Options = DEFAULTS, progress: Progress | None = None
) -> Proposal:
    """Return the config that a table suggests. Every column without a role gets the proposed one."""
    progress, memory = progress or Progress(), options.memory or Options.from_user(memory=MEMORY).memory
    assert memory is not None
    Memory(memory).check()
    place = os.fspath(table) if isinstance(table, str | os.PathLike) else None
    found = profiled(place or table, roles, memory, options.show_values, progress)
    if problems := missing_answers(roles.individual, roles.sensitive, found):
        raise ConfigError(problems)
    assert roles.individual is not None and roles.sensitive is not None
    several = "multiset" if repeats(found, roles.individual) else "single"
    answers = Answers(roles.individual, tuple(roles.sensitive), roles.by_name, k, several)
    if problems := repeated_individuals(found, answers):
        raise ConfigError(problems)
    chosen = propose(found, answers)
    if not any(each.role == "quasi-identifier" for each in chosen):
        raise ConfigError.at("--quasi-identifier", "no column that others may know", "at least one")
    text = as_yaml(found, answers, chosen, place, options.out, memory=f"{memory // 1_000_000}MB")
    _write(options, text)
    return Proposal(facts(found, chosen, [], options.show_values), {}, text=text)


def _write(options: Options, text: str) -> None:
    if options.out is None:
        return
    if options.out.exists() and not options.overwrite:
        raise ConfigError.at("--out", f"{options.out}, which exists", "a new file", "or say --overwrite")
    draft = options.out.with_name(f".{options.out.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(options.out)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError.at("--out", f"{options.out}, which cannot be written ({error.strerror})", "a file") from None


def facts(found: Profile, roles: list[Proposed], unanswered: list[Problem], show_values: bool) -> dict[str, Any]:
    """Return what `--json` prints."""
    proposals = [
        {"name": each.name, "role": each.role, "reason": each.reason, "notes": list(each.notes)} for each in roles
    ]
    open_ = [problem.path for problem in unanswered]
    return {"profile": found.to_dict(show_values), "proposal": proposals, "unanswered": open_}
