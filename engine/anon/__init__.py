"""anon: release a table about people that a stated adversary cannot break, and prove that the release holds.

The pipeline, one direction, each stage a function of what the one before it left:

    config  -> source  -> cube    -> search   -> release -> verify  -> report
    YAML       streamed   codes,     criteria    files in   the files  what is
    to one     rows,      domains,   decide      canonical  as an      protected,
    object     checked    records    splits      order      outsider   what was lost
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    import polars as pl

    from anon.commands.init import Proposal
    from anon.config import Config
    from anon.runs.options import Options
    from anon.runs.result import Result

    AnyConfig = str | os.PathLike[str] | Mapping[str, Any] | Config
    AnyPath = str | os.PathLike[str]
    Share = str | float
    Names = str | Iterable[str]

__all__ = ["attack", "check", "disclose", "explain", "explore", "init", "plan", "read", "run", "utility"]
P = ParamSpec("P")
R = TypeVar("R")


def _in_parameters(function: Callable[P, R]) -> Callable[P, R]:
    """Let the errors of a function speak of its parameters, where those of the command line speak of flags."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        from anon.errors import AnonError
        from anon.runs.parameters import in_parameters

        try:
            return function(*args, **kwargs)
        except AnonError as error:
            error.reword(in_parameters)
            raise

    return called


@_in_parameters
def run(
    config: AnyConfig,
    table: Any = None,
    *,
    out: AnyPath | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    force: bool = False,
    sample: Share | None = None,
    show_values: bool = False,
    strict: bool = False,
) -> Result:
    """Make a verified release of the config's source.

    `table` stands in for the source, which the config then need not have: any Arrow-speaking frame, a LazyFrame of
    Polars, which is streamed, or with backend spark a DataFrame of Spark. `memory` is in bytes or text like 1GB,
    `sample` a share like 1% or 0.01. Failures raise the classes of anon.errors.
    """
    from anon import pipeline

    options = _options(
        out=out, memory=memory, threads=threads, overwrite=overwrite, resume=resume, force=force, sample=sample,
        show_values=show_values, strict=strict,
    )  # fmt: skip
    return pipeline.run(config, table, options)


@_in_parameters
def plan(
    config: AnyConfig,
    table: Any = None,
    *,
    out: AnyPath | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    show_values: bool = False,
) -> Result:
    """Return what a run of the config would do, without searching or writing anything that stays; `table` stands in for
    the source as for `run`. `to_dict()["feasible"]` is false if no release can satisfy the criteria."""
    from anon.commands import plan as command

    return command.plan(config, table, _options(out=out, memory=memory, threads=threads, show_values=show_values))


@_in_parameters
def init(
    table: Any,
    *,
    individual: str | None = None,
    sensitive: Names | None = None,
    identifiers: Names = (),
    quasi_identifiers: Names = (),
    keep: Names = (),
    drop: Names = (),
    template: str | None = None,
    k: int | None = None,
    sheet: str | None = None,
    out: AnyPath | None = None,
    overwrite: bool = False,
    memory: int | str | None = None,
    show_values: bool = False,
) -> Proposal:
    """Profile a table, a path or any frame that `run` takes, and propose a config: `.config` is a mapping for `run`,
    `.text` the same as YAML with the reason of every role, which `out` writes to a file.

    Data cannot show who the individual is (`row`, or a column) and what is sensitive (`[]` if nothing is). Columns
    that are named nowhere get the proposed role. `template` is hospital, claims, census or hr: roles, also of
    sensitive columns, and criteria that are usual there. `k` is 5 or that of the template, or the number of people if
    that is less; `sheet` is that of a workbook."""
    from anon.commands import init as command

    others = {"identifier": identifiers, "quasi-identifier": quasi_identifiers, "keep": keep, "drop": drop}
    known = {role: _listed(names) for role, names in others.items()}
    roles = command.Roles(individual, None if sensitive is None else _listed(sensitive), known, template)
    options = _options(out=out, overwrite=overwrite, memory=memory, show_values=show_values)
    return command.init(table, roles, k, options, sheet=sheet)


@_in_parameters
def read(release: AnyPath) -> pl.LazyFrame:
    """Return a published release as a LazyFrame of Polars, with the typed bounds NAME_low and NAME_high of labels that
    are ranges. A bucketized release has a row for every individual and every sensitive value of their group, with its
    `count`."""
    from anon.release.reading import read as reading

    place = os.fspath(release)
    return reading(place if "://" in place else Path(place))


@_in_parameters
def check(
    config: AnyConfig,
    table: Any,
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    show_values: bool = False,
    strict: bool = False,
    prior: AnyPath | None = None,
    save_priors: AnyPath | None = None,
    held_with: AnyPath | Sequence[AnyPath] = (),
) -> Result:
    """Check the config's criteria on a table that is already grouped: a path or any Arrow-speaking frame; for a
    bucketized one a folder or the pair (qi, sensitive).

    `prior` is a file that replaces the priors of the config, `save_priors` a folder for those that are estimated.
    `held_with` are folders of earlier releases that somebody holds as well, each with its run folder beside it; the
    table is then a folder of a release, too.
    """
    from anon.commands import check as command

    others = [held_with] if isinstance(held_with, str | os.PathLike) else held_with
    options = _options(
        memory=memory,
        threads=threads,
        show_values=show_values,
        strict=strict,
        prior=prior,
        save_priors=save_priors,
        held_with=tuple(map(Path, others)),
    )
    return _strictly(command.check(config, table, options), strict)


@_in_parameters
def utility(
    config: AnyConfig,
    table: Any,
    *,
    predict: str | None = None,
    run: str | Path | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
) -> Result:
    """Measure how much of the config's source a release of it keeps: a path or any Arrow-speaking frame; for a
    bucketized one a folder or the pair (qi, sensitive).

    `predict` is a sensitive or kept column: also measure how well classifiers that are trained on the release predict
    it. `run` is the run folder of the release, whose report then shows that, too.
    """
    from anon.commands import utility as command

    options = _options(memory=memory, threads=threads)
    return command.utility(config, table, options, predict=predict, run=None if run is None else Path(run))


@_in_parameters
def explore(
    config: AnyConfig,
    table: Any,
    values: str | Iterable[str],
    confidences: Share | Iterable[Share],
    *,
    sensitive: str | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    show_values: bool = False,
    strict: bool = False,
) -> Result:
    """Compute the knowledge skylines of a table that is already grouped, as for `check`: for each value and confidence
    all maximal safe amounts of knowledge (l, k, m), and who succeeds just beyond each. A single value or confidence
    need not be in a list. `sensitive` is the column, where there are several."""
    from anon.commands import explore as command

    options = _options(memory=memory, threads=threads, show_values=show_values, strict=strict)
    return _strictly(command.explore(config, table, values, confidences, sensitive, options), strict)


@_in_parameters
def disclose(
    config: AnyConfig,
    table: Any,
    max_k: int,
    *,
    sensitive: str | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    show_values: bool = False,
    strict: bool = False,
) -> Result:
    """Compute the maximum disclosure of a table that is already grouped, for 0 to `max_k` pieces of knowledge."""
    from anon.commands import explore as command

    options = _options(memory=memory, threads=threads, show_values=show_values, strict=strict)
    return _strictly(command.disclose(config, table, max_k, sensitive, options), strict)


@_in_parameters
def attack(
    config: AnyConfig,
    table: Any,
    threshold: Share = "0.95",
    prior: AnyPath | None = None,
    rho1: Share | None = None,
    rho2: Share | None = None,
    *,
    sensitive: str | None = None,
    run: AnyPath | None = None,
    held_with: Sequence[AnyPath] = (),
    memory: int | str | None = None,
    threads: int | None = None,
    show_values: bool = False,
    strict: bool = False,
) -> Result:
    """Attack a table that is already grouped: homogeneity, and with a prior file how far the table moves beliefs. With
    the folder of the `run` that made it, its source is read again and every attack is carried out; `held_with` names
    releases that somebody holds as well."""
    from anon.commands import explore as command

    held = tuple(map(Path, held_with))
    options = _options(memory=memory, threads=threads, show_values=show_values, strict=strict, held_with=held)
    made = None if run is None else Path(run)
    return _strictly(command.attack(config, table, threshold, prior, rho1, rho2, sensitive, made, options), strict)


@_in_parameters
def explain(run: AnyPath, *, memory: int | str | None = None, threads: int | None = None) -> Result:
    """Explain why a run came to its release, from its run folder, and what looser criteria would give, from its
    source."""
    from anon.commands import explain as command
    from anon.core.progress import Progress
    from anon.runs.result import Result

    explanation = command.explain(Path(run), _options(memory=memory, threads=threads), Progress())
    return Result(explanation, {"explanation": explanation})


def _listed(names: Names) -> list[str]:
    """Return names as a list; a single one need not be in a list."""
    return [names] if isinstance(names, str) else list(names)


def _options(**given: Any) -> Options:
    from anon.runs.options import Options

    return Options.from_user(**given)


def _strictly(result: Result, strict: bool) -> Result:
    if strict:
        from anon.runs.result import refuse_warnings

        refuse_warnings(result.facts)
    return result
