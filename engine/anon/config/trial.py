"""A trial on a sample of the individuals (`anon run --sample 1%`): the same stages, written to another folder, and
marked in every file as not the release."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from anon.config import Config
from anon.config.absent import may_be_absent
from anon.config.values import parse_share
from anon.core.text import text
from anon.errors import ConfigError

SUFFIX = "-trial"
SMALLEST = Decimal("1E-9")  # share of a sample


def share_of(sample: str | float) -> Fraction:
    """Return the share of the individuals that a sample is.

    >>> share_of("1%"), share_of("0.5 %"), share_of(0.01)
    (Fraction(1, 100), Fraction(1, 200), Fraction(1, 100))
    """
    return Fraction(_share(sample))


def _share(sample: str | float) -> Decimal:
    try:
        share = parse_share(sample)
    except ValueError:
        share = Decimal(0)
    if not share.is_finite() or not SMALLEST <= share < 1:
        raise ConfigError.at("--sample", repr(sample), "a share above 0% and below 100%, such as 1% or 0.01")
    return share


def as_trial(config: Config, sample: str | float) -> Config:
    """Return the config of a trial: beside the release and its run folder, no part of a series, and with values that a
    sample may not have."""
    share = _share(sample)
    release = config.release
    path = f"{release.path}{SUFFIX}" if isinstance(release.path, str) else Path(f"{release.path}{SUFFIX}")
    places = release.model_copy(update={"path": path, "run": Path(f"{release.run}{SUFFIX}"), "series": None})
    trial = may_be_absent(config).model_copy(update={"release": places})
    trial._trial = f"{text(round(share * 100, 12))}%"
    return trial
