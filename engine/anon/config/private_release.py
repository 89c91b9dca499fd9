"""What a differentially private release does not work with. The proof (sampling.py) is for rows that are drawn
independently, labels that depend on the values of their own row and the config alone, and nothing else that is
published: whatever else depends on the data is refused here."""

from __future__ import annotations

from collections.abc import Iterator

from anon.config.columns import Free
from anon.config.criteria.differential_privacy import DifferentialPrivacy
from anon.config.criteria.group_size import GroupSize
from anon.config.criteria.k_anonymity import KAnonymity
from anon.config.grammar import Config, Lattice, Reuse
from anon.config.mistakes import below
from anon.errors import Problem

WITH = "with differential_privacy"
TYPED = (".parquet", ".arrow", ".feather", ".ipc")


def promised(config: Config) -> DifferentialPrivacy | None:
    """Return the criterion of a differentially private release; None if the release is none."""
    return next((spec for spec in config.privacy if isinstance(spec, DifferentialPrivacy)), None)


def of_private_release(config: Config) -> Iterator[Problem]:
    """Yield what a run with differential_privacy does not work with."""
    promise = promised(config)
    if promise is None:
        return
    at = config.privacy.index(promise)
    yield from _of_other_criteria(config, at)
    yield from _of_method(config, f"privacy[{at}].differential_privacy.levels", bool(promise.levels))
    yield from _of_columns(config)
    yield from _of_source(config)
    for wrong, problem in _of_sections(config):
        if wrong:
            yield problem


def _of_other_criteria(config: Config, own: int) -> Iterator[Problem]:
    """Yield the other criteria that are not about sizes alone."""
    for at, spec in enumerate(config.privacy):
        if at != own and not isinstance(spec, KAnonymity | GroupSize):
            expected = "differential_privacy once, and beside it k_anonymity and group_size only"
            why = "which groups it drops is not covered by the proof"
            yield Problem(f"privacy[{at}].{spec.name}", f"{spec.name} {WITH}", expected, why)


def _of_method(config: Config, path: str, levels: bool) -> Iterator[Problem]:
    method = config.method
    if isinstance(method, Lattice):
        if given := sorted(method.model_fields_set - {"kind"}):
            why = "nothing is searched, and all small groups are suppressed"
            yield Problem("method", f"{', '.join(given)} {WITH}", "kind: lattice and no more", why)
        if not levels:
            why = "a level that the data suggest would reveal something about them"
            yield Problem(path, "no levels", "the level of every quasi-identifier", why)
    elif isinstance(method, Reuse) and levels:
        expected = "method lattice, or no levels"
        yield Problem(path, "levels with method reuse", expected, "they are those of the earlier run")


def _of_columns(config: Config) -> Iterator[Problem]:
    columns = config.columns
    for role, names in (("sensitive", columns.sensitive), ("keep", columns.keep)):
        if names:
            expected = "no such columns; put them among the quasi-identifiers, with a level for their labels"
            why = "values that are published beside the labels tell people apart, and the proof does not cover them"
            yield Problem(f"columns.{role}", f"{', '.join(names)} {WITH}", expected, why)
    for name, builder in columns.quasi_identifiers.items():
        path = below("columns.quasi_identifiers", name)
        if isinstance(builder, Free):
            yield Problem(path, f"a column cut freely {WITH}", "a builder with levels", "its cuts depend on the data")


def _of_source(config: Config) -> Iterator[Problem]:
    """Yield sources whose types depend on the data: one cell may turn a whole column into text."""
    source, names = config.source, list(config.columns.quasi_identifiers)
    if source.path is None or source.path.removesuffix("/").endswith(TYPED):
        return
    typed = {} if source.csv is None else source.csv.types
    if missing := [name for name in names if name not in typed]:
        why = "one cell of another kind would change the labels of a whole column"
        expected = "Parquet or Arrow files by their ending; or CSV files with a type for every quasi-identifier"
        yield Problem("source.csv.types", f"no type of {', '.join(missing)} {WITH}", expected, why)


def _of_sections(config: Config) -> Iterator[tuple[bool, Problem]]:
    """Yield settings, and whether each is there."""
    release = config.release
    once, ends = "the promise is for one release; another one costs epsilon again", "labels alone"
    yield release.series is not None, Problem("release.series", f"a series {WITH}", "no series", once)
    yield release.bounds, Problem("release.bounds", f"true {WITH}", ends, "only labels are covered by the proof")
    nulls, why = config.nulls.quasi_identifiers, "the levels of a column of which only nulls were drawn are others"
    yield nulls == "value", Problem("nulls.quasi_identifiers", f"value {WITH}", "drop or error", why)
    sampled = "the run draws a sample itself, with coins that are not public"
    yield config.trial is not None, Problem("--sample", f"a trial {WITH}", "a whole run", sampled)
    spark = config.backend.kind == "spark"
    yield spark, Problem("backend.kind", f"spark {WITH}", "backend local", "the sample is drawn on one machine")
