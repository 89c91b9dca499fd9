"""Which criterion works with which method, form and multiplicity: one table, a row for each criterion (`Support`), that
the config is judged by and the docs print; and what the backends support."""

from __future__ import annotations

from collections.abc import Iterator

from anon.config.criteria import CRITERIA
from anon.config.criterion import CHECKED, ENFORCED, EXHAUSTIVE_ONLY, ONE_VALUE, SEVERAL_EXHAUSTIVE, Criterion
from anon.config.grammar import NO_SOURCE, Config, Lattice, Method, Partition, Reuse
from anon.config.mistakes import below
from anon.config.values import is_store
from anon.errors import ConfigError, Problem

METHODS = ("partition", "lattice", "merge", "colour")
ASSIGNING = ("merge", "colour")  # those that put equal quasi-identifiers into different groups
SUPPORT = {name: model.support for name, model in CRITERIA.items()}

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
    if run and config.release.one_level:
        yield from _of_one_level(config)
    if run and config.method.kind in ASSIGNING:
        yield from _without_cells(config)
    if run and (reason := _without_weights(config.method)):
        yield from _weighted(config, reason)
    for index, spec in enumerate(config.privacy):
        yield from _of_criterion(config, spec, f"privacy[{index}].{spec.name}", run)


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
        monotone = spec.support.lattice == ENFORCED
        if not monotone or (several and spec.support.several_values == SEVERAL_EXHAUSTIVE):
            found, why = f"{spec.name} with release.one_level", "groups are merged, and merging safe ones may be unsafe"
            yield Problem(f"privacy[{index}].{spec.name}", found, "criteria that are monotone", why)


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
        return "" if method.prefer in ("widest", "loss") else "only prefer: widest and loss compare columns by it"
    if isinstance(method, Lattice):
        return "" if method.choose == "loss" else "only choose: loss compares columns by it"
    if isinstance(method, Reuse):
        return "the cuts of the earlier run are applied as they are"
    return f"method {method.kind} publishes quasi-identifiers as they are"


def _weighted(config: Config, reason: str) -> Iterator[Problem]:
    """Yield the weights of quasi-identifiers, which would have no effect."""
    for name, builder in config.columns.quasi_identifiers.items():
        if "weight" in builder.model_fields_set:
            path = below("columns.quasi_identifiers", name)
            yield Problem(f"{path}.weight", "a weight that would have no effect", "no weight", reason)


def exact_labels(config: Config) -> bool:
    """Return whether quasi-identifiers are published as they are, which merge and colour always do."""
    release = config.release
    by_default = "exact" if config.method.kind in ASSIGNING else "generalized"
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
