"""`anon check` agrees with pycanon, an independent checker, on a real table. Its figures were recorded by
bench/agreement.py, which also installs it: it pins older versions of what anon runs on."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from bench import agreement

RECORDED = json.loads((agreement.RESULTS / "pycanon.json").read_text(encoding="utf-8"))


def named(grouping: dict[str, Any]) -> str:
    return "-".join([*grouping["quasi_identifiers"], grouping["sensitive"]])


@pytest.fixture(scope="module")
def banded(adult: pa.Table) -> pa.Table:
    assert adult.num_rows == RECORDED["rows"]
    return agreement.banded(adult)


def test_every_grouping_is_recorded_with_this_version_of_pycanon() -> None:
    assert RECORDED["by"] == agreement.PEER
    recorded = [(tuple(table["quasi_identifiers"]), table["sensitive"]) for table in RECORDED["tables"]]
    assert recorded == agreement.GROUPINGS


@pytest.mark.parametrize("theirs", RECORDED["tables"], ids=named)
def test_k_l_t_and_alpha_are_those_of_pycanon(banded: pa.Table, theirs: dict[str, Any]) -> None:
    ours = agreement.by_anon(banded, tuple(theirs["quasi_identifiers"]), theirs["sensitive"])
    assert agreement.differences(ours, theirs) == []


def test_a_difference_is_seen(banded: pa.Table) -> None:
    theirs = RECORDED["tables"][2]
    ours = agreement.by_anon(banded, tuple(theirs["quasi_identifiers"]), theirs["sensitive"])
    for name, by in (("k", 1), ("l", 1), ("t", 1e-8), ("alpha", 1e-8)):
        assert agreement.differences(ours | {name: ours[name] + by}, theirs) == [name]
