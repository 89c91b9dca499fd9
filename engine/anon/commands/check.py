"""`anon check`: judge a table that is already grouped."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from anon.backends import backend_for
from anon.config import Config, PriorEstimate, PriorFile, RRobustness, Withstands, load, without_secrets
from anon.config.absent import for_release
from anon.config.support import refuse_unsupported
from anon.core.database import Database, connect, translated
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.criteria import RRobustness as BoundRRobustness
from anon.criteria.priors import write_prior
from anon.criteria.value_names import Names
from anon.errors import ConfigError
from anon.report import facts
from anon.report.together import left_open
from anon.report.warnings import Warned, signed_off
from anon.risk.every_attack import attack_table
from anon.risk.overview import Attack
from anon.risk.withstanding import OF_TABLES, withstood
from anon.runs.named_files import check_files
from anon.runs.options import DEFAULTS, Options, adjusted
from anon.runs.result import Result
from anon.runs.scratch import scratch
from anon.verify.judge import Findings


@without_secrets(source=False)
def check(config: Any, table: Any, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Judge a table that is already grouped: a path, an Arrow-speaking frame, or a pair (qi, sensitive) of them for a
    bucketized one. Never reads the config's source, unless it is compared with releases whose
    people are known by another key."""
    config, progress = adjusted(load(config), options), progress or Progress()
    refuse_unsupported(config, run=False, spreads=True)
    Memory(config.limits.memory).check()
    config = for_release(config, table)
    if options.prior is not None:
        config = _with_prior(config, options.prior)
    check_files(config, run=False)
    prior_files = _prior_files(config, options.save_priors) if options.save_priors is not None else []
    with (
        scratch(config, progress) as spill,
        closing(connect(config.limits.memory, config.limits.threads, spill)) as database,
    ):
        examine = backend_for(config).examine
        found, left_out = examine(database, config, table, spill, options.show_values, progress)
        _save_priors(config, found, prior_files)
        together = _together(database, config, table, options.held_with, spill, progress)
        attacks = _attacks(config, found)
    names = Names.from_config(config, found.values, found.frequency, options.show_values)
    summary = facts.summary(config, found, names, left_out)
    _add_withstood(config, summary, attacks)
    if together:
        judged = not together["over"] and not together["contradictory"]
        summary |= {"together": together, "safe": summary["safe"] and judged}
        summary["warnings"] += left_open(together)
    summary["warnings"] = signed_off(config, summary["warnings"])
    progress.warn(summary["warnings"])
    return Result(summary, {"sizes": found.sizes})


def _together(
    database: Database, config: Config, table: Any, held_with: tuple[Path, ...], spill: Path, progress: Progress
) -> dict[str, Any]:
    """Return what somebody learns who holds the table and earlier releases; nothing if none are named."""
    if not held_with:
        return {}
    from anon.runs.held_releases import table_with

    with progress.stage("together"):
        return table_with(database, config, table, held_with, spill)


def _attacks(config: Config, found: Findings) -> list[Attack]:
    """Return the attacks that the config wants withstood and that need only the table."""
    named = {name for spec in config.privacy if isinstance(spec, Withstands) for name in spec.attacks}
    if not named & OF_TABLES or found.table is None:
        return []
    with translated("attacking the table"):
        return attack_table(config, found)


def _add_withstood(config: Config, summary: dict[str, Any], attacks: list[Attack]) -> None:
    """Add which of the attacks that the config wants withstood succeed, and a warning about those that were not carried
    out, because they need a run and its people."""
    for spec, entry in zip(config.privacy, summary["criteria"]):
        if isinstance(spec, Withstands):
            entry |= withstood(spec, attacks)
            summary["safe"] = summary["safe"] and entry["safe"]
            text = f"attacks that need a run and its people: {', '.join(entry['not_judged'])} (anon attack --run)"
            warned = Warned("attacks_not_judged", len(entry["not_judged"]), text)
            summary["warnings"] += [warned.to_dict()] if entry["not_judged"] else []


def _with_prior(config: Config, file: Path) -> Config:
    """Return the config with one prior from a file in place of its own."""
    if not any(isinstance(spec, RRobustness) for spec in config.privacy):
        raise ConfigError.at("--prior", str(file), "a config with r_robustness, whose priors it replaces")
    prior = {"priors": [PriorFile(file=file.resolve())]}
    privacy = [spec.model_copy(update=prior) if isinstance(spec, RRobustness) else spec for spec in config.privacy]
    return config.model_copy(update={"privacy": privacy})


def _prior_files(config: Config, folder: Path) -> list[Path]:
    """Return the files for the priors that the config estimates; files that exist are not overwritten."""
    listed = [prior for spec in config.privacy if isinstance(spec, RRobustness) for prior in spec.priors]
    estimated = sum(isinstance(prior, PriorEstimate) for prior in listed)
    if not estimated:
        raise ConfigError.at("--save-priors", str(folder), "a config with r_robustness that estimates a prior")
    files = [folder / f"prior-{number}.csv" for number in range(1, estimated + 1)]
    there = [file for file in files if file.exists() or file.is_symlink()]
    if there:
        raise ConfigError.at("--save-priors", f"{there[0]}, which exists", "a folder without priors")
    return files


def _save_priors(config: Config, found: Findings, files: list[Path]) -> None:
    """Write the estimated priors in the order of the config."""
    estimated = [
        bound
        for spec, criterion in zip(config.privacy, found.criteria)
        if isinstance(spec, RRobustness) and isinstance(criterion, BoundRRobustness)
        for prior, bound in zip(spec.priors, criterion.priors)
        if isinstance(prior, PriorEstimate)
    ]
    for prior, file in zip(estimated, files):
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            wrong = f"{file.parent}, which cannot be made ({error.strerror})"
            raise ConfigError.at("--save-priors", wrong, "a folder that can be written") from error
        with translated("saving priors"):
            write_prior(prior, file)
