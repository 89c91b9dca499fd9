"""The Adult table and the lattice search on it, as several figures use them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from demo import adult

import anon
from anon.errors import UnsafeError
from measure import ROOT

COLUMNS = ("age", "sex", "race", "marital_status", "education", "native_country", "workclass")
TREES = (
    "hierarchies/adult: heights as in Figure 7 of the paper, age in intervals of 5, 10 and 20 years; the taxonomy "
    "trees of marital status, education, country and work class are ours, since the paper's are not published"
)
SAMPLE_SEED = 2007


@cache
def people() -> pa.Table:
    """Return the 45,222 people without missing values, downloading the table the first time."""
    try:
        return adult.load(adult.fetch())
    except adult.Unavailable as error:
        raise SystemExit(str(error)) from None


def sample(share: float) -> pa.Table:
    """Return a Bernoulli sample of the people, the same each time."""
    chosen = np.random.default_rng(SAMPLE_SEED).random(people().num_rows) < share
    return people().filter(pa.array(chosen))


def hierarchy(column: str) -> dict[str, str]:
    return {"hierarchy": str(ROOT / f"hierarchies/adult/{column}.csv")}


def minimal(
    table: pa.Table, columns: Sequence[str], sensitive: str, privacy: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return all minimal safe generalizations with their utility as the lattice search finds them; none if even the
    most general table is unsafe."""
    with TemporaryDirectory() as folder:
        config = {
            "columns": {
                "individual": "row",
                "quasi_identifiers": {name: hierarchy(name) for name in columns},
                "sensitive": [sensitive],
            },
            "privacy": list(privacy),
            "method": {"kind": "lattice"},
            "release": {"path": str(Path(folder) / "release")},
        }
        try:
            found: list[dict[str, Any]] = anon.run(config, table).recoding["minimal"]
        except UnsafeError:
            return []
        return found
