"""Define the options that a caller may set in addition to the config, and apply them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon.config import MOST_THREADS, Config, Release, parse_size
from anon.config.trial import as_trial
from anon.errors import ConfigError, Problem


@dataclass(frozen=True)
class Options:
    """The options that a caller may set in addition to the config."""

    out: Path | None = None
    memory: int | None = None
    threads: int | None = None
    overwrite: bool = False
    resume: bool = False
    force: bool = False
    sample: str | float | None = None  # of `run`: a trial on this share of the individuals, such as 1%
    show_values: bool = False
    strict: bool = False
    prior: Path | None = None  # of `check`: replaces the priors of the config
    held_with: tuple[Path, ...] = ()  # of `check`: earlier releases that somebody holds as well
    save_priors: Path | None = None  # of `check`: the folder for the priors that it estimates

    @classmethod
    def from_user(cls, **given: Any) -> Options:
        """Return options as users give them: paths and sizes may be text."""
        problems = []
        threads, memory = given.get("threads"), given.get("memory")
        if threads is not None and (not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS):
            problems.append(Problem("--threads", repr(threads), f"a whole number of 1 to {MOST_THREADS:,}"))
        if isinstance(memory, str):
            try:
                given["memory"] = parse_size(memory)
            except ValueError:
                problems.append(Problem("--memory", repr(memory), "a size such as 512MB or 4GB"))
        if problems:
            raise ConfigError(problems)
        paths = {name: Path(given[name]) for name in ("out", "prior", "save_priors") if given.get(name) is not None}
        return cls(**(given | paths))


DEFAULTS = Options()


def adjusted(config: Config, options: Options) -> Config:
    """Return the config with the settings that options override."""
    limits = {name: value for name in ("memory", "threads") if (value := getattr(options, name)) is not None}
    places = config.release if options.out is None else _places(config, options.out.resolve())
    changed = config.model_copy(update={"limits": config.limits.model_copy(update=limits), "release": places})
    return changed if options.sample is None else as_trial(changed, options.sample)


def _places(config: Config, out: Path) -> Release:
    """Return the release at another place, which like the config's own may not hold what the run needs."""
    if any(part in ("s3:", "gs:", "az:") for part in out.parts):  # the command line takes one of the slashes away
        raise ConfigError.at("--out", "a place on a store", "a local folder; release.path names one on a store")
    release = config.release.model_copy(update={"path": out, "run": Path(f"{out}-run")})
    needed = [config.base, config.limits.temp, config.source.path]
    if any(path is not None and release.contains(Path(path)) for path in needed):
        expected = "a folder without the config, the source and the spill; it is replaced as a whole"
        raise ConfigError.at("--out", str(out), expected)
    return release
