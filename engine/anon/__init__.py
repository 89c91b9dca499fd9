"""anon: release a table about people that a stated adversary cannot break, and prove that the release holds.

The pipeline, one direction, each stage a function of what the one before it left:

    config  -> source  -> cube    -> search   -> release -> verify  -> report
    YAML       streamed   codes,     criteria    files in   the files  what is
    to one     rows,      domains,   decide      canonical  as an      protected,
    object     checked    records    splits      order      outsider   what was lost
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anon.config import Config
    from anon.runs.options import Options
    from anon.runs.result import Result

    AnyConfig = str | os.PathLike[str] | Mapping[str, Any] | Config
    AnyPath = str | os.PathLike[str]
    Share = str | float

__all__ = ["attack", "check", "disclose", "explain", "explore", "run", "utility"]


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

    `table`, any Arrow-speaking frame, or with backend spark a DataFrame of Spark, stands in for the source. `memory` is
    in bytes or text like 1GB, `sample` a share like 1% or 0.01. Failures raise the classes of anon.errors.
    """
    from anon import pipeline

    options = _options(
        out=out, memory=memory, threads=threads, overwrite=overwrite, resume=resume, force=force, sample=sample,
        show_values=show_values, strict=strict,
    )  # fmt: skip
    return pipeline.run(config, table, options)


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
) -> Result:
    """Check the config's criteria on a table that is already grouped: a path or any Arrow-speaking frame; for a
    bucketized one a folder or the pair (qi, sensitive).

    `prior` is a file that replaces the priors of the config, `save_priors` a folder for those that are estimated.
    """
    from anon.commands import check as command

    options = _options(
        memory=memory, threads=threads, show_values=show_values, strict=strict, prior=prior, save_priors=save_priors
    )
    return _strictly(command.check(config, table, options), strict)


def utility(config: AnyConfig, table: Any, *, memory: int | str | None = None, threads: int | None = None) -> Result:
    """Measure how much of the config's source a release of it keeps: a path or any Arrow-speaking frame; for a
    bucketized one a folder or the pair (qi, sensitive)."""
    from anon.commands import utility as command

    return command.utility(config, table, _options(memory=memory, threads=threads))


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


def attack(
    config: AnyConfig,
    table: Any,
    threshold: Share = "0.95",
    prior: AnyPath | None = None,
    rho1: Share | None = None,
    rho2: Share | None = None,
    *,
    sensitive: str | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    show_values: bool = False,
    strict: bool = False,
) -> Result:
    """Run homogeneity attacks on a table that is already grouped, and with a prior file measure how far the table moves
    beliefs."""
    from anon.commands import explore as command

    options = _options(memory=memory, threads=threads, show_values=show_values, strict=strict)
    return _strictly(command.attack(config, table, threshold, prior, rho1, rho2, sensitive, options), strict)


def explain(run: AnyPath, *, memory: int | str | None = None, threads: int | None = None) -> Result:
    """Explain why a run came to its release, from its run folder, and what looser criteria would give, from its
    source."""
    from anon.commands import explain as command
    from anon.core.progress import Progress
    from anon.runs.result import Result

    explanation = command.explain(Path(run), _options(memory=memory, threads=threads), Progress())
    return Result(explanation, {"explanation": explanation})


def _options(**given: Any) -> Options:
    from anon.runs.options import Options

    return Options.from_user(**given)


def _strictly(result: Result, strict: bool) -> Result:
    if strict:
        from anon.runs.result import refuse_warnings

        refuse_warnings(result.facts)
    return result
