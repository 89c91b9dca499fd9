"""Propose a role for every column from the profile of a table, with the reason for it in words. What only people can
know is left to be answered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from anon.core.phrases import counted
from anon.core.text import text
from anon.cube.domain import CODES
from anon.errors import ConfigError, Problem
from anon.profile.columns import NUMBERS, ColumnProfile, Profile, few_enough
from anon.profile.ready import ready_builder
from anon.profile.recognition import direct_identifier, doubtful, identifies_as_value
from anon.profile.several_rows import RowChoice, choices
from anon.profile.templates import Template
from anon.source.column_words import POSTAL, names_sensitive, numbers_people, words

IDENTIFIER, QUASI, SENSITIVE, KEEP, DROP = "identifier", "quasi-identifier", "sensitive", "keep", "drop"
ROLES = (IDENTIFIER, QUASI, SENSITIVE, KEEP, DROP)
FEW = 20  # distinct numbers that are cut freely
FEW_WORDS = 5  # distinct values, for which a hierarchy is of little use
ID = frozenset({"id"})
MOST_SENSITIVE = 3  # columns that are proposed
MANY_NUMBERS = 1_000  # distinct values; a number with more is a measurement rather than a trait
INTERVALS = 20  # the approximate number of intervals of the narrowest width
ROUNDED = 200  # the approximate number of values of a rounded sensitive column


@dataclass(frozen=True)
class Proposed:
    """The proposed role of one column, the builder of its coarser values (as YAML), and the reason."""

    column: ColumnProfile
    role: str
    reason: str
    builder: str = ""
    notes: tuple[str, ...] = ()  # what a person should check

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Answers:
    """The answers of the user: who a row is about, what is sensitive, and the roles of other columns."""

    individual: str = "row"
    sensitive: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    k: int = 5
    reasons: Mapping[str, str] = field(default_factory=dict)  # of roles that the user did not choose, by column
    rows: RowChoice | None = None  # of people who have several
    shares: Mapping[str, float] = field(default_factory=dict)  # of individuals with the commonest value, by column
    template: Template | None = None

    @property
    def multiplicity(self) -> str:
        return "single" if self.rows is None else self.rows.multiplicity


def propose(profile: Profile, answers: Answers) -> list[Proposed]:
    """Return a role for every column but the individual."""
    chosen = dict(answers.roles) | dict.fromkeys(answers.sensitive, SENSITIVE)
    several = answers.multiplicity != "single"
    varying = profile.persons.varying.get(answers.individual, frozenset()) if several else frozenset()
    return [
        _as_chosen(column, chosen[column.name], profile.rows, answers.reasons.get(column.name, "as you said"))
        if column.name in chosen
        else _unless_left_out(proposed(column, profile), varying, profile)
        for column in profile.columns
        if column.name != answers.individual
    ]


def _unless_left_out(each: Proposed, varying: frozenset[str], profile: Profile) -> Proposed:
    """Return a column as proposed, unless it differs between the rows of a person, who is published once, or a wide
    table has others that matter more."""
    if each.role == QUASI and each.name in varying:
        return Proposed(each.column, DROP, "differs between rows of one person, who is published once")
    if each.role == QUASI and each.name in profile.left_out:
        return Proposed(each.column, DROP, profile.left_out[each.name])
    return each


def proposed_individual(profile: Profile) -> str | None:
    """Return who a row is about as far as the data show it: the key of people with several rows, a column that numbers
    people by its name, also if they are too few to compare their rows, or `row`; None if people have several rows and
    no key is in all of them."""
    if profile.persons.names:
        return profile.persons.best(profile)
    named = [
        c for c in profile.columns if c.kind and c.distinct > 1 and (numbers_people(c.name) or words(c.name) == ID)
    ]
    whole = [column for column in named if not column.nulls]
    if not named:
        return "row"
    return max(whole, key=lambda column: (numbers_people(column.name), column.distinct)).name if whole else None


def proposed_sensitive(profile: Profile, individual: str | None) -> list[str]:
    """Return the columns whose names say that nobody may learn their values."""
    found = [
        column.name
        for column in profile.columns
        if names_sensitive(column.name)
        and column.name not in (individual, *profile.persons.names)
        and column.distinct > 1
        and not _useless(column)
        and (few_enough(column) or column.kind in NUMBERS)
        and not identifies_as_value(column, profile.rows)
    ]
    return found[:MOST_SENSITIVE]


def proposed(column: ColumnProfile, profile: Profile) -> Proposed:
    """Return the role that the data suggests for a column."""
    rows = profile.rows
    if why := _useless(column):
        return Proposed(column, DROP, why)
    if why := profile.persons.reason(column.name) or direct_identifier(column, rows):
        return Proposed(column, IDENTIFIER, why)
    if column.kind in NUMBERS and column.distinct > MANY_NUMBERS and not words(column.name) & POSTAL:
        why = f"a measurement: {column.distinct:,} distinct values{_share(column, rows)}, which single people out"
        return Proposed(column, DROP, why, notes=("if others can know it: quasi_identifiers; or sensitive",))
    if not _can_be_coarsened(column):
        return Proposed(column, DROP, f"text with {column.distinct:,} distinct values, more than can be generalized")
    if why := doubtful(column, rows):
        return Proposed(
            column, DROP, why, notes=("if others can know it, and it is safe in itself: quasi_identifiers",)
        )
    return _quasi(column, rows)


def _can_be_coarsened(column: ColumnProfile) -> bool:
    """Return whether a column can be coarsened. Numbers and moments can be cut freely, however many they are."""
    return column.kind in (*NUMBERS, "date", "timestamp") or few_enough(column)


def _useless(column: ColumnProfile) -> str:
    """Return why a column can have no role or no information, or ""."""
    if column.kind is None:
        return f"cannot be used: {column.unusable}"
    if not column.name or "${" in column.name or "\0" in column.name:
        return "cannot be named in a config"
    if column.distinct == 0:
        return "has no value in any row"
    if column.distinct == 1 and not column.nulls:
        return "has the same value in every row"
    return ""


def _as_chosen(column: ColumnProfile, role: str, rows: int, reason: str) -> Proposed:
    """Return a column with the role that was chosen for a reason; ConfigError for a role that it cannot have."""
    why = _useless(column)
    if role != DROP and why.startswith("cannot be"):
        raise ConfigError.at(f"--{role}", f"column {column.name!r}", "a column that can be used", f"it {why}")
    many = not few_enough(column) and column.kind not in NUMBERS
    if (role == QUASI and not _can_be_coarsened(column)) or (role == SENSITIVE and many):
        found = f"column {column.name!r} with {column.distinct:,} distinct values"
        raise ConfigError.at(f"--{role}", found, f"at most {CODES:,} of them")
    doubt = direct_identifier(column, rows) if role in (QUASI, KEEP) else ""
    doubt = identifies_as_value(column, rows) if role == SENSITIVE else doubt
    notes = (f"check it before you publish it: {doubt}",) if doubt else ()
    if role == QUASI:
        each = _quasi(column, rows, reason)
    else:
        each = _sensitive(column, reason) if role == SENSITIVE else Proposed(column, role, reason)
    return replace(each, notes=(*notes, *each.notes))


def _sensitive(column: ColumnProfile, why: str) -> Proposed:
    reason = f"{why}; {column.distinct:,} distinct values"
    measured = column.kind == "number" or (column.kind in NUMBERS and column.distinct > MANY_NUMBERS)
    width = _nice(_range(column) / ROUNDED, whole=column.shape.whole) if measured else 0
    notes = (
        (f"{counted(column.nulls, 'row without a value is', 'rows without a value are')} dropped (nulls)",)
        if column.nulls
        else ()
    )
    if not measured or not width:
        return Proposed(column, SENSITIVE, reason, "as_categories: true" if measured else "", notes)
    rounded = "rounded: the last digit must not distinguish people, or make them look protected"
    return Proposed(column, SENSITIVE, reason, f"round: {plain(width)}", (rounded, *notes))


def _quasi(column: ColumnProfile, rows: int, why: str = "") -> Proposed:
    builder, how, *notes = _builder(column)
    counts = f"{column.distinct:,} distinct values{_share(column, rows)}"
    reason = f"{why}; {counts}" if why else f"others may know it; {counts}"
    if column.nulls:
        notes.append(f"{counted(column.nulls, 'row')} without a value: missing counts as a value")
    return Proposed(column, QUASI, f"{reason}; {how}", builder, tuple(notes))


def _builder(column: ColumnProfile) -> tuple[str, ...]:
    """Return the builder of coarser values as YAML, its description, and notes on what to check."""
    if ready := ready_builder(column):
        return ready
    free = ("", "ordered: cut freely")
    if column.kind in NUMBERS:
        return _of_numbers(column, free)
    if column.kind in ("date", "timestamp"):
        fits = few_enough(column)
        return ("calendar: [day, month, quarter, year]", "day, month, quarter, year") if fits else free
    shape = column.shape
    if shape.digits == column.distinct and shape.shortest == shape.longest and 2 <= shape.longest <= 32:
        return f"digits: {shape.longest}", f"a code of {shape.longest} digits, hidden one by one from the end"
    hint = "a hierarchy keeps more than the value or *: see `anon hierarchy build --help`"
    notes = [hint] if column.distinct > FEW_WORDS else []
    if shape.digits == column.distinct and shape.zeros:
        notes.insert(0, "digits of different lengths, some with a leading zero: a truncated code?")
    if 2 * shape.dates > column.distinct:
        notes.insert(
            0, "looks like dates, but not all are like 2024-03-09 (ISO 8601): as dates they could be coarsened"
        )
    return "suppress: true", "the value or *", *notes


def _of_numbers(column: ColumnProfile, free: tuple[str, str]) -> tuple[str, ...]:
    shape = column.shape
    if words(column.name) & POSTAL and shape.whole and shape.digits == column.distinct and shape.longest <= 10:
        return _of_code(column)
    if column.distinct <= FEW or not few_enough(column):
        return free
    width = _nice(_range(column) / INTERVALS, shape.whole)
    if not width or (shape.whole and width <= 1):
        return free
    widths = ", ".join(plain(width * times) for times in (1, 2, 4))
    return f"intervals: [{widths}]", f"intervals of {widths}"


def _of_code(column: ColumnProfile) -> tuple[str, ...]:
    """Return the builder for a code that was read as a number. Intervals of tens, hundreds, ... group the same values
    as the digits of the code would, whatever became of its leading zeros."""
    shape = column.shape
    if column.kind == "integer" and shape.shortest == shape.longest:
        return f"digits: {shape.longest}", f"a code of {shape.longest} digits, hidden one by one from the end"
    widths = ", ".join(str(10**power) for power in range(1, max(shape.longest, 2)))
    lost = (
        "the code was read as a number and has lost its leading zeros: write the column as text in the source, then "
        f"use {{digits: {shape.longest}}}"
    )
    return f"intervals: [{widths}]", "intervals in place of its last digits", lost


def _share(column: ColumnProfile, rows: int) -> str:
    return f", {column.alone:,} unique rows ({column.alone / rows:.1%})" if column.alone else ""


def _range(column: ColumnProfile) -> float:
    shape = column.shape
    return 0.0 if shape.low is None or shape.high is None else shape.high - shape.low


def _nice(width: float, whole: bool) -> float:
    """Return a round number (1, 2 or 5 times a power of ten) near a width; 0 if there is none.

    >>> _nice(4.1, True), _nice(0.3, True), _nice(0.3, False), _nice(0, False)
    (5.0, 1.0, 0.2, 0.0)
    """
    if not width > 0 or math.isinf(width):
        return 0.0
    power = math.floor(math.log10(width))
    round_numbers = [float(f"{times}e{power}") for times in (1, 2, 5, 10)]
    nice = min(round_numbers, key=lambda number: abs(math.log(number / width)))
    return max(nice, 1.0) if whole else nice


def plain(number: float) -> str:
    return text(int(number) if number == int(number) else float(f"{number:.12g}"))


def missing_answers(individual: str | None, sensitive: Iterable[str] | None, profile: Profile) -> list[Problem]:
    """Return the questions that data cannot answer and that have no answer yet, with the flags that answer them."""
    problems = []
    if individual is None:
        keys = [c.name for c in profile.columns if c.kind and c.distinct and c.distinct == c.alone and not c.nulls]
        hint = f"different in every row: {', '.join(map(repr, keys[:5]))}" if keys else ""
        expected = "--individual row if every row is a different person, or --individual COLUMN that identifies them"
        gaps = [name for name in profile.persons.names if profile.column(name).nulls]
        problems += [_with_gaps(profile.column(name)) for name in gaps]
        problems += [] if gaps else [Problem("--individual", "nothing", expected, hint)]
    if sensitive is None:
        expected = "--sensitive COLUMN for what nobody may learn about a person (several: once each), or --no-sensitive"
        problems.append(Problem("--sensitive", "nothing", expected))
    return problems


def _with_gaps(column: ColumnProfile) -> Problem:
    """Return the problem of a column that says who a row is about, but not in every row."""
    found = f"column {column.name!r}, which says who a row is about and is missing in {counted(column.nulls, 'row')}"
    expected = "a value in every row: complete these rows or leave them out of the extract, then run init again"
    return Problem("--individual", found, expected, f"--drop {column.name} if it does not identify people")


def repeated_individuals(profile: Profile, answers: Answers) -> list[Problem]:
    """Return the problems of rows that repeat an individual or have none, which a run would refuse."""
    individual = answers.individual
    if individual == "row":
        return _not_rows(profile, answers)
    column = profile.column(individual)
    if column.kind is None:
        found = f"column {individual!r}, which cannot be used: {column.unusable}"
        return [Problem("--individual", found, "another column, or row")]
    repeated = repeats(profile, individual)
    found = f"{counted(repeated, 'row that repeats', 'rows that repeat')} an individual"
    hint = "or one row per person, by a query or in the extract"
    problems, several = [], repeated and answers.multiplicity != "single"
    if several and not any(each.role == QUASI for each in propose(profile, answers)):
        expected = "--rows last:COLUMN to use one row of each, because rows of a person agree on no column to publish"
        problems.append(Problem("--rows", found, expected, hint))
    if several and len(answers.sensitive) != 1:
        expected = "one --sensitive column to publish all values of each, or --rows last:COLUMN to use one row of each"
        problems.append(Problem("--sensitive", f"{len(answers.sensitive)} columns, and {found}", expected, hint))
    if column.nulls:
        problems.append(_with_gaps(column))
    return problems


def with_possible_rows(profile: Profile, answers: Answers) -> Answers:
    """Return the answers with the best way with several rows of a person that gives a config which can run; the first
    of several sensitive columns alone, if only their names say so and they stand in the way."""
    if answers.rows is not None:
        return answers
    first = [answers]
    if answers.sensitive and all(name in answers.reasons for name in answers.sensitive):
        first.append(replace(answers, sensitive=answers.sensitive[:1]))
    ways = choices(profile, answers.individual)
    possible = (replace(each, rows=way) for each in first for way in ways)
    return next((each for each in possible if not repeated_individuals(profile, each)), replace(answers, rows=ways[0]))


def repeats(profile: Profile, individual: str) -> int:
    """Return the number of rows beyond the first of each individual."""
    if individual == "row":
        return 0
    column = profile.column(individual)
    return profile.rows - column.nulls - column.distinct if column.kind else 0


def _not_rows(profile: Profile, answers: Answers) -> list[Problem]:
    """Return a problem for each column that shows that several rows belong to one person, if each row would count as a
    person."""
    dropped = [name for name, role in answers.roles.items() if role == DROP]
    problems = [
        Problem(
            "--individual",
            f"row, and column {name!r} with {profile.persons.reason(name)}",
            f"--individual {name}, or one row per person",
            f"--drop {name} if it does not identify people",
        )
        for name in profile.persons.names
        if name not in dropped and name not in answers.sensitive
    ]
    together = profile.persons.namesakes
    if not problems and together and not set(together) & set(dropped):
        found = f"row, and {profile.persons.different:,} combinations of {', '.join(together)} in {profile.rows:,} rows"
        expected = "a column that numbers people, or one row per person by a query"
        problems.append(Problem("--individual", found, expected, f"--drop {together[0]} if these are different people"))
    return problems
