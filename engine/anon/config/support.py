"""Which criterion works with which method, form and multiplicity: one table, a row for each criterion (`Support`), that
the config is judged by and the docs print; and what the backends support."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction

from anon.config.columns import Free
from anon.config.criteria import CRITERIA
from anon.config.criterion import CHECKED, ENFORCED, EXHAUSTIVE_ONLY, ONE_VALUE, SEVERAL_EXHAUSTIVE, Criterion
from anon.config.examined import refused_attacks
from anon.config.grammar import NO_SOURCE, Config, Lattice, Method, Partition, Reuse
from anon.config.mistakes import below
from anon.config.private_release import of_private_release
from anon.config.series import Invariant
from anon.config.values import is_store
from anon.errors import ConfigError, Problem

METHODS = ("partition", "lattice", "merge", "colour")
CUTTING = ("partition", "reuse")  # methods whose labels are ranges between cuts
COMPARING = ("widest", "loss", "public")  # preferences that compare columns by their weighted widths or losses
IN_ORDER = ("hierarchy", "suppress", "digits")  # builders of columns that may be cut in the order of their leaves
_LEVELS = ("intervals", "calendar", "bands")  # builders of columns that are always cut into the nodes of levels
ASSIGNING = ("merge", "colour")  # those that put equal quasi-identifiers into different groups
SUPPORT = {name: model.support for name, model in CRITERIA.items()}

VARIABLE = re.compile(r"(?<!\$)\$\{")
_NO_CELLS = "people with the same quasi-identifiers are in different groups, which have no labels of their own"


def refuse_unsupported(config: Config, run: bool, spreads: bool = False) -> None:
    """Raise ConfigError with the reason for everything that cannot work together; `run`: also with the method.
    `spreads`: a command that only reads a release, but can do so on a cluster."""
    if config.backend.kind == "spark" and not run and not spreads:
        expected = "backend local, which reads any Parquet or CSV table"
        raise ConfigError.at("backend.kind", "spark with a command that works on one machine", expected)
    problems = [*_refusals(config, run), *(_aimless(config) if run else ())]
    if problems:
        raise ConfigError(problems)


def require_source(config: Config) -> None:
    """Raise ConfigError if the config has no source."""
    if not config.source.kind:
        raise ConfigError.at("source", "nothing", NO_SOURCE, "or pass a table in Python")


def _of_backend(config: Config, run: bool) -> Iterator[Problem]:
    """Yield what the backend cannot do."""
    source, method = config.source.kind, config.method.kind
    if config.backend.kind == "local":
        if run and source == "table":
            yield Problem("source.table", "a table of Spark with backend local", "backend: {kind: spark}")
        return
    if run:
        yield from _of_spark(config, source, method)


def _of_spark(config: Config, source: str, method: str) -> Iterator[Problem]:
    release = config.release
    if source not in ("path", "table", ""):
        yield Problem(f"source.{source}", f"{source} with backend spark", "path or table", "or a DataFrame in Python")
    if config.trial is not None:
        yield Problem("--sample", "a trial with backend spark", "backend local", "a sample is drawn on one machine")
    if config.columns.multiplicity != "single":
        found, expected = f"{config.columns.multiplicity} with backend spark", "single"
        yield Problem("columns.multiplicity", found, expected, "individuals with several values need backend local")
    if exact_labels(config):
        found, hint = "exact with backend spark", "exact values are put in order on one machine: backend local"
        yield Problem("release.labels", found, "generalized", hint)
    if method not in ("partition", "lattice"):
        expected = "partition or lattice"
        yield Problem("method.kind", f"{method} with backend spark", expected, "backend local has the others")
    if is_store(release.path):
        expected = "a folder of a file system that driver and executors share; copy the release from there"
        yield Problem("release.path", "the address of a store", expected)
    if release.format != "parquet":
        yield Problem("release.format", f"{release.format} with backend spark", "parquet", "backend local writes CSV")


def _refusals(config: Config, run: bool) -> Iterator[Problem]:
    yield from _of_backend(config, run)
    several = config.columns.multiplicity != "single"
    if several and config.columns.individual == "row":
        found = f"row with multiplicity {config.columns.multiplicity}"
        yield Problem("columns.individual", found, "the column that says who has several values")
    if run and several and config.method.kind == "reuse":
        found = f"reuse with multiplicity {config.columns.multiplicity}"
        yield Problem("method.kind", found, "partition or lattice", "a recoding is applied to one value per individual")
    if run and config.release.bounds and exact_labels(config):
        found, expected = "true with exact labels", "labels: generalized; values as they are have no bounds"
        yield Problem("release.bounds", found, expected)
    if run:
        yield from _of_means(config)
        yield from _of_refinement(config, config.method)
        yield from _of_guard(config)
        yield from of_private_release(config)
        yield from _of_suppression(config, config.method)
    if run and config.release.one_level:
        yield from _of_one_level(config)
    yield from _of_peel(config.method)
    if run and config.release.series is not None:
        yield from _of_series(config)
    if run and config.method.kind in ASSIGNING:
        yield from _without_cells(config)
    if run and (reason := _without_weights(config.method)):
        yield from _weighted(config, reason)
    if run and (config.method.kind not in CUTTING or exact_labels(config)):
        yield from _without_ends(config)
    yield from _of_caps(config) if run else ()
    for index, spec in enumerate(config.privacy):
        yield from _of_criterion(config, spec, f"privacy[{index}].{spec.name}", run)
    yield from refused_attacks(config, run)


def _of_peel(method: Method) -> Iterator[Problem]:
    """Yield what splits that are peeled do not work with."""
    if isinstance(method, Partition) and method.peel and method.prefer == "public":
        why = "which parts of a split leave depends on the people in them"
        yield Problem("method.peel", "true with prefer public", "prefer widest, loss or balanced", why)


def _of_caps(config: Config) -> Iterator[Problem]:
    """Yield the caps of quasi-identifiers that a method cannot keep."""
    ordered = isinstance(config.method, Partition) and config.method.cuts == "ordered"
    for name, builder in config.columns.quasi_identifiers.items():
        path = f"{below('columns.quasi_identifiers', name)}.at_most"
        if builder.capped and ordered and builder.kind in IN_ORDER:
            why = "labels list all nodes between two cuts, whatever their level"
            yield Problem(path, "a level with cuts: ordered", "cuts: nodes", why)
        if builder.capped and exact_labels(config):
            yield Problem(path, "a level with exact labels", "no at_most", "values are published as they are")


def _of_means(config: Config) -> Iterator[Problem]:
    """Yield what means of groups do not work with."""
    for name, spec in config.columns.means.items():
        path, found = f"columns.aggregate.{name}.mean", str(spec.mean)
        if config.release.form == "bucketized":
            expected = "form generalized, or round"
            yield Problem(path, f"{found} with form bucketized", expected, "means belong to rows that share labels")
        if config.backend.kind == "spark":
            yield Problem(path, f"{found} with backend spark", "backend local, or round", "one machine takes the means")


def _of_criterion(config: Config, spec: Criterion, path: str, run: bool) -> Iterator[Problem]:
    """Yield what one criterion does not work with."""
    method, several = config.method.kind, config.columns.multiplicity != "single"
    exhaustive = isinstance(config.method, Lattice) and config.method.exhaustive
    if run:
        reason = getattr(spec.support, method)
        if several and spec.support.several_values == SEVERAL_EXHAUSTIVE and method == "lattice":
            reason = EXHAUSTIVE_ONLY
        if reason not in (ENFORCED, CHECKED) and not (exhaustive and reason == EXHAUSTIVE_ONLY):
            yield Problem(path, f"{spec.name} with method {method}", "another method", reason)
    if several and spec.support.several_values == ONE_VALUE:
        found = f"{spec.name} with multiplicity {config.columns.multiplicity}"
        yield Problem(path, found, "a criterion for several values per individual", ONE_VALUE)
    if spec.support.exact_labels != ENFORCED and exact_labels(config):
        yield Problem(path, f"{spec.name} with exact labels", "group_size", spec.support.exact_labels)


def _of_one_level(config: Config) -> Iterator[Problem]:
    """Yield what one level per column does not work with. It merges groups, so criteria must be monotone, which is what
    the lattice requires of them too."""
    if config.method.kind != "partition":
        hint = "the lattice publishes one level per column anyway" if config.method.kind == "lattice" else ""
        found = f"true with method {config.method.kind}"
        yield Problem("release.one_level", found, "method partition, or no one_level", hint)
        return
    several = config.columns.multiplicity != "single"
    for index, spec in enumerate(config.privacy):
        if not spec.merges_safely() or (several and spec.support.several_values == SEVERAL_EXHAUSTIVE):
            found, why = f"{spec.name} with release.one_level", "groups are merged, and merging safe ones may be unsafe"
            yield Problem(f"privacy[{index}].{spec.name}", found, "criteria that are monotone", why)


def _of_series(config: Config) -> Iterator[Problem]:
    """Yield what a series does not work with."""
    series = config.release.series
    if isinstance(series, Invariant):
        yield from _of_invariant(config, series.m)
        return
    if config.columns.individual == "row":
        expected = "the column that says who a row is about"
        yield Problem("columns.individual", "row with series append", expected, "nobody may be in two parts")
    for section in ("columns", "privacy"):
        if VARIABLE.search(json.dumps(config.original[section])):
            hint = "they are compared from night to night, and what a variable stands for is not stored"
            yield Problem(section, "a variable with series append", "names and numbers as they are", hint)
    if config.method.kind != "partition":
        hint = "the search starts from what earlier parts leave, which only partition does"
        yield Problem("method.kind", f"{config.method.kind} with series append", "partition", hint)
    for index, spec in enumerate(config.privacy):
        if reason := spec.in_series():
            where = f"privacy[{index}].{spec.name}"
            yield Problem(where, f"{spec.name} with series append", "a criterion about groups alone", reason)


def _of_invariant(config: Config, m: int) -> Iterator[Problem]:
    """Yield what a series that republishes its table whole does not work with."""
    columns, release, what = config.columns, config.release, "with series invariant"
    refused = [
        (
            release.form != "bucketized",
            Problem("release.form", f"{release.form} {what}", "bucketized", "groups are made by values, not by cells"),
        ),
        (
            release.labels == "generalized",
            Problem("release.labels", f"generalized {what}", "exact", _NO_CELLS),
        ),
        (
            "method" in config.original,
            Problem("method", f"a method {what}", "no method", "the series makes its own groups"),
        ),
        (
            config.backend.kind != "local",
            Problem("backend.kind", f"{config.backend.kind} {what}", "local", "groups are made in its memory"),
        ),
        (
            config.trial is not None,
            Problem("--sample", f"a trial {what}", "a whole run", "a sample has no history"),
        ),
        (
            columns.individual == "row",
            Problem("columns.individual", f"row {what}", "the column that says who", "people must be recognized"),
        ),
        (
            columns.multiplicity != "single",
            Problem("columns.multiplicity", f"{columns.multiplicity} {what}", "single", "a signature is for one"),
        ),
        (
            len(columns.sensitive) != 1,
            Problem("columns.sensitive", f"{len(columns.sensitive)} columns {what}", "one sensitive column"),
        ),
        (
            bool(columns.keep),
            Problem("columns.keep", f"kept columns {what}", "none", "counterfeits have no kept values"),
        ),
    ]  # fmt: skip
    yield from (problem for wrong, problem in refused if wrong)
    for index, spec in enumerate(config.privacy):
        if not spec.follows_from_unique(m):
            expected = f"l_diversity, group_size or alpha_k as they follow from m = {m}"
            why = "groups are made for the series and for no other criterion"
            yield Problem(f"privacy[{index}].{spec.name}", f"{spec.name} {what}", expected, why)


def _of_refinement(config: Config, method: Method) -> Iterator[Problem]:
    """Yield what the post-pass of the partition does not work with."""
    if not isinstance(method, Partition) or not method.refine:
        return
    columns, release = config.columns, config.release
    why = "groups are measured from the lowest to the highest value of their members"
    if method.labels != "tight":
        yield Problem("method.refine", "true with labels: cells", "labels: tight", why)
    for name, builder in columns.quasi_identifiers.items():
        if builder.kind in _LEVELS or (builder.kind != "free" and method.cuts == "nodes"):
            path, expected = below("columns.quasi_identifiers", name), "a column cut freely, or cuts: ordered"
            if builder.kind in _LEVELS:
                expected = "a column cut freely, perhaps with ends"
            yield Problem(path, "labels of hierarchy nodes with method.refine", expected, why)
    sensitive, several = len(columns.sensitive), columns.multiplicity != "single"
    for path, found, wrong, expected, why in (
        ("method.prefer", "public", method.prefer == "public", "prefer: loss, or no refine",
         "divisions depend on the members of groups, and public cuts may not"),
        ("release.form", release.form, release.form != "generalized", "generalized, or no refine",
         "a bucketized release has one group for equal quasi-identifiers"),
        ("release.series", "a series", release.series is not None, "no series, or no refine",
         "the parts of a series share the cuts of a tree"),
        ("release.one_level", "true", release.one_level, "no one_level, or no refine",
         "at one level, groups would be merged again"),
        ("backend.kind", "spark", config.backend.kind == "spark", "local, or no refine",
         "one machine divides the groups"),
        ("columns.multiplicity", columns.multiplicity, several, "single, or no refine",
         "somebody with several values would be in several groups"),
        ("columns.sensitive", f"{sensitive} columns", sensitive != 1, "one sensitive column, or no refine",
         "groups are divided by the values of one column"),
        ("columns.aggregate", "means", bool(columns.means), "round instead of mean, or no refine",
         "means are taken of the cells of a tree"),
    ):  # fmt: skip
        if wrong:
            yield Problem(path, f"{found} with method.refine", expected, why)
    for index, spec in enumerate(config.privacy):
        if reason := spec.with_overlaps():
            expected = "another criterion, or no refine"
            yield Problem(f"privacy[{index}].{spec.name}", f"{spec.name} with method.refine", expected, reason)


def _of_suppression(config: Config, method: Method) -> Iterator[Problem]:
    """Yield what a partition that drops people does not work with."""
    if not isinstance(method, Partition) or not method.suppress:
        return
    for path, found, wrong, hint in (
        ("method.prefer", "public", method.prefer == "public", "who is dropped depends on the members of groups"),
        ("method.refine", "true", method.refine, "it divides groups of which everybody stays"),
        ("release.one_level", "true", config.release.one_level, "levels would merge groups with those who are dropped"),
        ("release.series", "a series", config.release.series is not None, "those who are not released wait in it"),
    ):
        if wrong:
            yield Problem(path, f"{found} with method.suppress", "another setting, or no suppress", hint)
    for index, spec in enumerate(config.privacy):
        if reason := spec.when_suppressed():
            path, found = f"privacy[{index}].{spec.name}", f"{spec.name} with method.suppress"
            yield Problem(path, found, "method lattice, which suppresses at the end, or no suppress", reason)


def _of_guard(config: Config) -> Iterator[Problem]:
    """Yield what coins do not work with."""
    guard = config.method.guard if isinstance(config.method, Partition) else None
    if guard is None:
        return
    if config.release.one_level:
        hint = "groups are merged, and what counts against the merged ones is not known"
        yield Problem("release.one_level", "true with method.guard", "no guard, or no one_level", hint)
    if config.release.series is not None:
        hint = "the bound is proved for one release"
        yield Problem("release.series", "a series with method.guard", "no guard, or no series", hint)
    if not guard.enforce:
        return
    if config.columns.multiplicity != "single":
        found = f"{config.columns.multiplicity} with method.guard.enforce"
        yield Problem("columns.multiplicity", found, "single", "the bound is proved for one value per individual")
    for index, spec in enumerate(config.privacy):
        if spec.tightened(Fraction(2)) is None:
            path, expected = f"privacy[{index}].{spec.name}", "criteria that bound a confidence, or no enforce"
            yield Problem(path, f"{spec.name} with method.guard.enforce", expected, spec.unguarded)
    if not any(spec.about_values for spec in config.privacy):
        expected = "a criterion that bounds the confidence in a value, or no enforce"
        yield Problem("method.guard.enforce", "true with criteria about sizes alone", expected)


def _without_cells(config: Config) -> Iterator[Problem]:
    """Yield what merge and colour cannot publish: they cut no column, so their groups have no cells for labels."""
    method, release = config.method.kind, config.release
    if release.form == "generalized":
        yield Problem("release.form", f"generalized with method {method}", "bucketized", _NO_CELLS)
    if release.labels == "generalized":
        yield Problem("release.labels", f"generalized with method {method}", "exact", _NO_CELLS)


def _without_weights(method: Method) -> str:
    """Return why the weights of columns have no effect on what a method chooses; nothing if they have one."""
    if isinstance(method, Partition):
        return "" if method.prefer in COMPARING else "only prefer: widest, loss and public compare columns by it"
    if isinstance(method, Lattice):
        return "" if method.choose == "loss" else "only choose: loss compares columns by it"
    if isinstance(method, Reuse):
        return "the cuts of the earlier run are applied as they are"
    return f"method {method.kind} publishes quasi-identifiers as they are"


def _without_ends(config: Config) -> Iterator[Problem]:
    """Yield the ends of labels where labels are levels or values."""
    for name, builder in config.columns.quasi_identifiers.items():
        if isinstance(builder, Free) and builder.ends is not None:
            found = f"ends with {'exact labels' if exact_labels(config) else f'method {config.method.kind}'}"
            path = below("columns.quasi_identifiers", name)
            yield Problem(f"{path}.ends", found, "method partition with generalized labels; or intervals for levels")


def _weighted(config: Config, reason: str) -> Iterator[Problem]:
    """Yield the weights of quasi-identifiers, which would have no effect."""
    for name, builder in config.columns.quasi_identifiers.items():
        if "weight" in builder.model_fields_set:
            path = below("columns.quasi_identifiers", name)
            yield Problem(f"{path}.weight", "a weight that would have no effect", "no weight", reason)


def exact_labels(config: Config) -> bool:
    """Return whether quasi-identifiers are published as they are, which merge and colour always do."""
    release = config.release
    by_default = "exact" if config.method.kind in ASSIGNING or isinstance(release.series, Invariant) else "generalized"
    return release.form == "bucketized" and (release.labels or by_default) == "exact"


def _aimless(config: Config) -> Iterator[Problem]:
    """Yield what merge and colour lack: they make groups for one kind of criterion, which must be there."""
    reason = "the method makes groups for it"
    method, names = config.method.kind, [spec.name for spec in config.privacy]
    if method == "merge" and "r_robustness" not in names:
        yield Problem("method.kind", "merge without r_robustness", "r_robustness among the criteria", reason)
    if method == "colour" and names.count("dissimilarity") != 1:
        found = f"colour with {names.count('dissimilarity')} criteria dissimilarity"
        yield Problem("method.kind", found, "one dissimilarity among the criteria", reason)


def markdown() -> str:
    """Return the table for the docs."""
    head = ("criterion", *METHODS, "bucketized", "set and multiset")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, s in SUPPORT.items():
        cells = [name, *(getattr(s, method) for method in METHODS), s.bucketized, s.several_values]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
