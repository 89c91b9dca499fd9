"""anon: a release of a table about people that a stated adversary cannot break, and the proof that it holds.

The way of the data, one direction, each stage a function of what the one before left:

    config  -> source  -> cube    -> search   -> release -> verify  -> report
    YAML       streamed   codes,     criteria    files in   the files  what is
    to one     rows,      domains,   decide      canonical  as an      protected,
    object     checked    records    splits      order      outsider   what was lost
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anon.config import Config
    from anon.pipeline import Result

    AnyConfig = str | os.PathLike[str] | Mapping[str, Any] | Config

__all__ = ["check", "run", "utility"]


def run(config: AnyConfig, table: Any = None, **options: Any) -> Result:
    """Source to verified release. Options: out, memory (bytes or like 1GB), threads, overwrite, show_values, strict.

    `table`, any Arrow-speaking frame, stands in for the config's source. Failures raise the classes of anon.errors.
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
