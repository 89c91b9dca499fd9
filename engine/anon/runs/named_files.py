"""Read the files that a config names in addition to the source before the source itself: a hierarchy, prior, distance
or recoding that is missing or malformed is reported at once, and not after an hour of reading. Whether they fit the
values of the table is checked when these are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from anon import hierarchy
from anon.config import Config, HierarchyDistance, HierarchyFile, Matrix, PriorFile, Reuse, RRobustness
from anon.config.private_release import promised
from anon.criteria.distance_matrix import read_matrix
from anon.criteria.prior_files import read_prior
from anon.errors import ConfigError, Problem
from anon.runs.previous_release import manifest_marks
from anon.source.origins import Mark

Reading = Callable[[], Any]


def check_files(config: Config, run: bool) -> None:
    """Raise ConfigError with all mistakes in these files; `run`: also in those that only a run reads."""
    problems: list[Problem] = []
    for reading in (*_of_criteria(config), *(_of_a_run(config) if run else ())):
        try:
            reading()
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)


def _of_criteria(config: Config) -> Iterator[Reading]:
    for index, spec in enumerate(config.privacy):
        where, distance = f"privacy[{index}].{spec.name}", getattr(spec, "distance", None)
        if isinstance(distance, HierarchyDistance):
            yield partial(hierarchy.read, distance.file, f"{where}.distance.file", config.limits.memory)
        if isinstance(distance, Matrix):
            yield partial(read_matrix, distance.file, f"{where}.distance.file")
        for at, prior in enumerate(spec.priors if isinstance(spec, RRobustness) else ()):
            if isinstance(prior, PriorFile):
                yield partial(read_prior, prior.file, f"{where}.priors[{at}].file", config.limits.memory)


def _of_a_run(config: Config) -> Iterator[Reading]:
    columns = config.columns
    builders = [("quasi_identifiers", name, builder) for name, builder in columns.quasi_identifiers.items()]
    builders += [("sensitive", name, spec.builder) for name, spec in columns.sensitive.items() if spec.builder]
    for role, name, builder in builders:
        if isinstance(builder, HierarchyFile):
            where = f"columns.{role}.{name}.hierarchy"
            yield partial(hierarchy.read, builder.hierarchy, where, config.limits.memory)
    if isinstance(config.method, Reuse):
        from anon.search.reuse import EarlierRecoding

        yield partial(EarlierRecoding.from_run, config.method.run)


def check_levels_of_others(config: Config, marks: list[Mark]) -> None:
    """Raise ConfigError if a differentially private run would reuse levels that a search chose by the data of the
    run."""
    if promised(config) is None or not isinstance(config.method, Reuse):
        return
    from anon.search.reuse import FIELD, EarlierRecoding

    earlier = EarlierRecoding.from_run(config.method.run)
    same = bool(marks) and earlier.manifest.source == manifest_marks(marks, config)
    if same and not earlier.given:
        expected = "a run on other people's data, or levels in privacy and method lattice"
        why = "levels that were chosen by the data reveal something about them"
        raise ConfigError.at(FIELD, "a run that searched the same source", expected, why)
