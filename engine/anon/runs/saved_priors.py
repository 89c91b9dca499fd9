"""Estimate the priors of a run and save them. They cannot be estimated from a bucketized release, which does not show
who has which value: they are estimated from the cube once and saved in the run folder as prior-1.csv, prior-2.csv, ...
in the order of the config. Search and verification both read them from there."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from anon.config import Config, PriorEstimate, PriorFile, RRobustness
from anon.core.database import translated
from anon.criteria import exact
from anon.criteria.priors import Prior, estimated, write_prior
from anon.cube import Cube
from anon.search.cross_tables import CrossTables


def save_estimates(config: Config, cube: Cube, folder: Path) -> Config:
    """Return the config with files in place of estimated priors."""
    crossed, numbers = CrossTables(cube, config.limits.memory), count(1)

    def saved(spec: RRobustness) -> RRobustness:
        priors: list[PriorFile | PriorEstimate] = []
        for prior in spec.priors:
            if isinstance(prior, PriorEstimate):
                file = folder / f"prior-{next(numbers)}.csv"
                with translated("saving priors", disk=True):
                    write_prior(_estimated(prior, str(spec.sensitive), cube, crossed), file)
                prior = PriorFile(file=file)
            priors.append(prior)
        return spec.model_copy(update={"priors": priors})

    privacy = [saved(spec) if isinstance(spec, RRobustness) else spec for spec in config.privacy]
    return config.model_copy(update={"privacy": privacy})


def _estimated(spec: PriorEstimate, column: str, cube: Cube, crossed: CrossTables) -> Prior:
    signatures, counting = crossed(tuple(spec.estimate), column)
    texts = cube.domain(column).texts
    return estimated(list(spec.estimate), signatures, texts, counting(), exact(spec.smoothing))
