"""How many jobs a cluster runs before the cube: each passes over the rows, so their number is kept small, whatever is
asked about the rows and about the people they are of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon import pipeline
from anon.core.progress import Progress
from anon.runs.options import Options
from tests.conftest import House
from tests.helpers.backends import only_spark

pytestmark = only_spark
MOST = 5
ROWS = 1_200


class ReadOnly(Progress):
    """Stops a run before the cube."""

    def stage(self, name: str) -> Any:
        if name == "cube":
            raise KeyboardInterrupt
        return super().stage(name)


def visits() -> pa.Table:
    """Rows of machines, each of which has one place and one kind, so that the search for persons asks everything it can
    ask; a column that nearly all rows agree on; and missing values."""
    draw = np.random.default_rng(4)
    machine = draw.integers(0, 100, ROWS)
    return pa.table(
        {
            "id": [f"p{row}" for row in range(ROWS)],
            "name": [f"n{row // 2}" for row in range(ROWS)],
            "machine": machine,
            "site": (machine * 7) % 11,
            "model": (machine * 5) % 13,
            "age": pa.array(draw.integers(0, 90, ROWS), mask=draw.random(ROWS) < 0.1),
            "usual": draw.random(ROWS) < 0.02,
            "disease": draw.choice(["a", "b", "c"], ROWS).tolist(),
        }
    )


@pytest.mark.parametrize("individual", ["row", "id"])
def test_the_source_is_read_in_a_few_jobs(cluster: Any, house: House, individual: str) -> None:
    for part in range(2):
        house.write(visits().slice(part * ROWS // 2, ROWS // 2), f"parts/{part}.parquet")
    columns = {
        "identifiers": ["name"],
        "individual": individual,
        "quasi_identifiers": {name: {} for name in ("site", "model", "age", "usual")},
        "sensitive": ["disease"],
        "keep": ["machine"],
    }
    config = house.config(columns=columns, source={"path": "parts"}, nulls={"quasi_identifiers": "drop"})
    jobs = cluster.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    before = jobs()
    with pytest.raises(KeyboardInterrupt):
        pipeline.run(config, None, Options(), ReadOnly())
    assert jobs() - before <= MOST
