"""`anon attack --run`: the release of a run is attacked again, as the run itself attacked it."""

from __future__ import annotations

from typing import Any

import pytest

import anon
from anon.errors import ConfigError, SourceError
from tests.conftest import House

FREQUENT: dict[str, Any] = {"l_diversity": {"kind": "frequency", "l": 2}}
TABLE = {"age": [*range(20, 44)] * 2, "zip": ["02139", "02140", "02141"] * 16, "disease": list("aabcdbce") * 6}
COINS = {"kind": "partition", "prefer": "public", "guard": {"skip": 0.5, "below": 20}}
BUCKETS: dict[str, Any] = {"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 3, "distance": {"kind": "equal"}}}
EXACT = {"path": "out", "run": "out-run", "form": "bucketized"}


@pytest.fixture
def made(house: House) -> House:
    house.write(TABLE)
    house.run(privacy=[FREQUENT])
    return house


def attacked(house: House, table: str = "out", **changes: Any) -> list[dict[str, Any]]:
    run, held = house.folder / "out-run", changes.pop("held_with", ())
    wanted = house.config(**({"privacy": [FREQUENT]} | changes))
    found: list[dict[str, Any]] = anon.attack(wanted, house.folder / table, run=run, held_with=held).to_dict()[
        "attacks"
    ]
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": [FREQUENT]},
        {"privacy": [{"k_anonymity": 3}], "method": COINS},
        {"privacy": [FREQUENT], "method": {"kind": "lattice"}},
        {"privacy": [BUCKETS], "method": {"kind": "colour"}, "release": EXACT},
    ],
)
def test_the_attacks_are_those_of_the_run(house: House, changes: dict[str, Any]) -> None:
    house.write(TABLE)
    *own, composition = house.run(**changes).to_dict()["attacks"]
    *again, unknown = attacked(house, **changes)
    assert again == own
    assert composition["individuals"] == 0 and unknown["individuals"] is None


def test_an_earlier_release_that_is_held_as_well_is_composed_with(made: House) -> None:
    folder = made.folder
    for name in ("out", "out-run"):
        (folder / name).rename(folder / name.replace("out", "earlier"))
    made.run(privacy=[FREQUENT], method={"kind": "partition", "prefer": "balanced"})
    found = attacked(made, method={"kind": "partition", "prefer": "balanced"}, held_with=[folder / "earlier"])
    assert found[-1]["name"] == "composition" and found[-1]["individuals"] is not None


def test_other_tables_runs_and_sources_are_refused(made: House) -> None:
    with pytest.raises(ConfigError, match="not the release of the run"):
        attacked(made, "table.parquet")
    with pytest.raises(ConfigError, match="a run of another config"):
        attacked(made, privacy=[{"k_anonymity": 2}])
    with pytest.raises(ConfigError, match="no --run"):
        anon.attack(made.config(), made.folder / "out", held_with=[made.folder / "out"])
    recoding = made.folder / "out-run" / "recoding.json"
    content = recoding.read_bytes()
    recoding.write_bytes(content + b" ")
    with pytest.raises(ConfigError, match=r"a recoding\.json that is not the one"):
        attacked(made)
    recoding.write_bytes(content)
    made.write({name: values[:-1] for name, values in TABLE.items()})
    with pytest.raises(SourceError, match="has changed"):
        attacked(made)
    assert not made.leftovers()
