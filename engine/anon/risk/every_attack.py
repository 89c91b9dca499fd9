"""Carry out every attack on the release of a run, for its overview."""

from __future__ import annotations

from anon.config import Config
from anon.config.examined import NO_PEOPLE
from anon.core.database import translated
from anon.core.memory import release_unused
from anon.cube import Cube
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding
from anon.risk import definetti, minimality
from anon.risk.downcoding import downcoding
from anon.risk.overview import Attack, Promise
from anon.risk.people import SampledPeople
from anon.risk.published import kept_columns, shares_of_values
from anon.verify.judge import Findings


def attack_run(
    config: Config, found: Findings, recoding: AnyRecoding | Assignment, people: SampledPeople | None, cube: Cube
) -> list[Attack]:
    """Return the results of all attacks on a release that was examined; `people`: those of some of its groups with
    their own quasi-identifiers, if they are at hand."""
    with translated("attacking the release"):
        attacks = attack_table(config, found)
    release_unused()  # of the histograms
    return [*attacks, downcoding(config, recoding), *_informed(config, found, recoding, people, cube)]


def attack_table(config: Config, found: Findings) -> list[Attack]:
    """Return the results of the attacks that need only the table that was examined."""
    table = found.table
    assert table is not None
    attacks = []
    for column in table.sensitive:
        promise = Promise.from_config(config.privacy, column, found.values[column])
        attacks += shares_of_values(table, column, promise)
    return [*attacks, *kept_columns(found.with_kept, found.with_all_kept, found.individuals)]


def _informed(
    config: Config, found: Findings, recoding: AnyRecoding | Assignment, people: SampledPeople | None, cube: Cube
) -> list[Attack]:
    """Return the attacks of an adversary who knows everybody's quasi-identifiers."""
    if people is None:
        return [Attack(each.NAME, each.ASSUMES, f"not examined: {NO_PEOPLE}") for each in (minimality, definetti)]
    people = people.coded_by(found.values[people.column])
    promise = Promise.from_config(config.privacy, people.column, people.texts)
    return [
        minimality.minimality(config, recoding, people, cube, found.criteria, promise),
        definetti.definetti(people, promise),
    ]
