"""A trial on a sample of the individuals (`anon run --sample 1%`): the same stages, written to another folder, and
marked in every file as not the release."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from anon.config import Config
from anon.config.absent import may_be_absent
from anon.errors import ConfigError

SUFFIX = "-trial"


def share_of(sample: str) -> Fraction:
    """Return the share of the individuals that a sample is.

    >>> share_of("1%"), share_of("0.5 %")
    (Fraction(1, 100), Fraction(1, 200))
    """
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(sample).strip())
    share = Fraction(number[1]) / 100 if number else Fraction(0)
    if not 0 < share < 1:
        raise ConfigError.at("--sample", repr(sample), "a share above 0% and below 100% with its sign, such as 1%")
    return share


def as_trial(config: Config, sample: str) -> Config:
    """Return the config of a trial: beside the release and its run folder, and with values that a sample may not
    have."""
    share_of(sample)
    release = config.release
    path = f"{release.path}{SUFFIX}" if isinstance(release.path, str) else Path(f"{release.path}{SUFFIX}")
    places = release.model_copy(update={"path": path, "run": Path(f"{release.run}{SUFFIX}")})
    trial = may_be_absent(config).model_copy(update={"release": places})
    trial._trial = sample.replace(" ", "")
    return trial
