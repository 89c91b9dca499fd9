"""anon: a release of a table about people that a stated adversary cannot break, and the proof that it holds.

The way of the data, one direction, each stage a function of what the one before left:

    config  -> source  -> cube    -> search   -> release -> verify  -> report
    YAML       streamed   codes,     criteria    files in   the files  what is
    to one     rows,      domains,   decide      canonical  as an      protected,
    object     checked    records    splits      order      outsider   what was lost
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anon.config import Config
    from anon.pipeline import Result

    AnyConfig = str | os.PathLike[str] | Mapping[str, Any] | Config

__all__ = ["attack", "check", "disclose", "explain", "explore", "run", "utility"]


def run(config: AnyConfig, table: Any = None, **options: Any) -> Result:
    """Source to verified release. Options: out, memory (bytes or like 1GB), threads, overwrite, force, sample (like
    1%), show_values, strict.

    `table`, any Arrow-speaking frame, or with backend spark a DataFrame of Spark, stands in for the config's source.
    Failures raise the classes of anon.errors.
    """
    from anon import pipeline

    return pipeline.run(config, table, pipeline.Options.of(**options))


def check(config: AnyConfig, table: Any, **options: Any) -> Result:
    """The config's criteria on a table that is already grouped: a path or any Arrow-speaking frame; for a
    bucketized one a folder or the pair (qi, sensitive).

    Options: memory, threads, show_values, strict, prior (a file that stands in for the priors of the config),
    save_priors (a folder for those that are estimated).
    """
    from anon import pipeline

    result = pipeline.check(config, table, pipeline.Options.of(**options))
    if options.get("strict"):
        pipeline.refuse_warnings(result.facts)
    return result


def utility(config: AnyConfig, table: Any, **options: Any) -> Result:
    """How much of the config's source a release of it still tells: a path or any Arrow-speaking frame; for a bucketized
    one a folder or the pair (qi, sensitive). Options: memory, threads."""
    from anon import pipeline

    return pipeline.utility(config, table, pipeline.Options.of(**options))


def explore(config: AnyConfig, table: Any, values: str | Iterable[str], confidences: Any, **options: Any) -> Result:
    """Knowledge skylines of a table that is already grouped, as for `check`: for each value and confidence all maximal
    safe amounts of knowledge (l, k, m), and who succeeds just beyond each. One of either need not be in a list.

    Options: sensitive (the column, where there are several), memory, threads, show_values, strict.
    """
    from anon.commands import explore as commands

    return _looked(commands.explore, config, table, options, values, confidences)


def disclose(config: AnyConfig, table: Any, max_k: int, **options: Any) -> Result:
    """The maximum disclosure of a table that is already grouped, for 0..max_k pieces of knowledge. Options as for
    `explore`."""
    from anon.commands import explore as commands

    return _looked(commands.disclose, config, table, options, max_k)


def attack(
    config: AnyConfig, table: Any, threshold: Any = "0.95", prior: Any = None, rho1: Any = None, rho2: Any = None,
    **options: Any,
) -> Result:  # fmt: skip
    """Homogeneity attacks on a table that is already grouped, and with a prior file how far it moves beliefs. Options
    as for `explore`."""
    from anon.commands import explore as commands

    return _looked(commands.attack, config, table, options, threshold, prior, rho1, rho2)


def _looked(look: Callable[..., Result], config: AnyConfig, table: Any, options: dict[str, Any], *asked: Any) -> Result:
    from anon import pipeline

    sensitive = options.pop("sensitive", None)
    result = look(config, table, *asked, sensitive, pipeline.Options.of(**options))
    if options.get("strict"):
        pipeline.refuse_warnings(result.facts)
    return result


def explain(run: str | os.PathLike[str], **options: Any) -> Result:
    """Why a run came to its release, from its run folder, and what looser criteria would come to, from its source.
    Options: memory, threads."""
    from anon import pipeline
    from anon.commands.explain import explained
    from anon.core.progress import Progress

    told = explained(Path(run), pipeline.Options.of(**options), Progress())
    return pipeline.Result(told, {"explanation": told})
