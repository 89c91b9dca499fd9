"""`release.series`: what it accepts, and what it says about everything else."""

from __future__ import annotations

from typing import Any

import pytest

from anon.config import Append, Invariant, load
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
