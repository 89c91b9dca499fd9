"""`release.series`: what it accepts, and what it says about everything else."""

from __future__ import annotations

from typing import Any

import pytest

from anon.config import Append, Invariant, load
from anon.config.support import refuse_unsupported
from anon.config.tightening import loosened
from anon.errors import ConfigError
from tests.helpers.config import changed


@pytest.mark.parametrize(
    ("written", "series"),
    [
        (None, None),
        ("append", Append()),
        ({"kind": "append"}, Append()),
        ({"kind": "invariant", "m": 3}, Invariant(kind="invariant", m=3)),
    ],
)
def test_a_series_is_a_word_or_a_mapping_with_its_kind(written: Any, series: Any) -> None:
    assert load(changed("release.series", written)).release.series == series


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("apend", 'release.series: found text "apend"; expected append or {kind: invariant, m: NUMBER} (did you mean'),
        ({"kind": "invariant"}, "release.series.m: found nothing; expected the required key `m`"),
        ({"kind": "invariant", "m": 1}, "release.series.m: found number 1; expected a whole number at least 2"),
        ({"kind": "other"}, 'release.series.kind: found text "other"; expected append or invariant'),
        ({"kind": "append", "m": 3}, "release.series.m: found"),
        (3, "release.series: found number 3; expected a mapping"),
    ],
)
def test_other_series_are_refused(written: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(changed("release.series", written))
    assert problem in str(refused.value)


@pytest.mark.parametrize("section", ["columns", "privacy"])
def test_a_variable_is_refused_where_nights_are_compared(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "disease")
    config = changed("release.series", "append")
    config["columns"] = config["columns"] | {"individual": "person", "sensitive": ["disease"]}
    config["privacy"] = [{"l_diversity": {"kind": "distinct", "l": 2, "sensitive": "disease"}}]
    refuse_unsupported(load(config), run=True)
    if section == "columns":
        config["columns"]["sensitive"] = ["${NAME}"]
    else:
        config["privacy"][0]["l_diversity"]["sensitive"] = "${NAME}"
    with pytest.raises(ConfigError, match=f"{section}: found a variable with series append"):
        refuse_unsupported(load(config), run=True)


def test_criteria_are_compared_one_by_one() -> None:
    config = changed("privacy", [{"k_anonymity": {"k": 3}}])
    now = load(config).original["privacy"]
    unreadable = {"of_another_version": {"x": 1}}
    assert loosened([{"k_anonymity": {"k": 5}}, unreadable], now, load(config)) == ["k_anonymity", "of_another_version"]
    assert loosened([{"k_anonymity": {"k": 2}}], now, load(config)) == []
    assert loosened([unreadable], [unreadable], load(config)) == []
