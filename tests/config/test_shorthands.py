"""What may be written in several ways means the same, and is in the manifest in one form."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from anon.config import load
from anon.config.trial import as_trial, share_of
from anon.config.values import parse_share
from anon.errors import ConfigError
from tests.helpers.config import POINT, SMALL, changed, file


@pytest.mark.parametrize("written", ["4%", "4 %", "4.0%", "0.04", ".04", " 0.040 ", 0.04, Decimal("0.04"), "4e-2"])
def test_a_share_is_a_percentage_or_a_number_of_one(written: Any) -> None:
    assert parse_share(written) == Decimal("0.04")


@pytest.mark.parametrize("written", ["", "%", "4%%", "-4%", "4e-2%", "four", "4 percent", "1,5%", "٤%"])
def test_nothing_else_is_a_share(written: str) -> None:
    with pytest.raises(ValueError, match=r"4% or 0\.04"):
        parse_share(written)


def test_a_percentage_is_exact() -> None:
    assert parse_share("0.1%") == Decimal("0.001") and parse_share("33.3333333333%") == Decimal("0.333333333333")


SHARES: list[tuple[str, Any, Any]] = [
    ("method", {"kind": "lattice", "suppress": "2.5%"}, {"kind": "lattice", "suppress": 0.025}),
    ("privacy", [{"alpha_k": {"alpha": "50%", "k": 2}}], [{"alpha_k": {"alpha": 0.5, "k": 2}}]),
    ("privacy", [{"ck_safety": {"c": "80%", "k": 2}}], [{"ck_safety": {"c": 0.8, "k": 2}}]),
    ("privacy", [{"skyline": [POINT | {"c": "50%"}]}], [{"skyline": {"points": [POINT | {"c": 0.5}]}}]),
    (
        "privacy",
        [{"skyline": {"points": [], "values": {"HIV": [POINT | {"c": "5%"}], "Flu": "exempt"}}}],
        [{"skyline": {"points": [], "values": {"HIV": [POINT | {"c": 0.05}], "Flu": "exempt"}}}],
    ),
    (
        "privacy",
        [{"dissimilarity": {"distance": {"kind": "equal"}, "epsilon": 0, "delta": "50%", "k": 2}}],
        [{"dissimilarity": {"distance": {"kind": "equal"}, "epsilon": 0, "delta": 0.5, "k": 2}}],
    ),
    (
        "privacy",
        [{"l_diversity": {"kind": "distinct", "l": 2, "keep_possible": {"values": ["Flu"], "percent": "2%"}}}],
        [{"l_diversity": {"kind": "distinct", "l": 2, "keep_possible": {"values": ["Flu"], "percent": 2}}}],
    ),
    ("privacy", [{"k_anonymity": 5}], [{"k_anonymity": {"k": 5}}]),
    ("privacy", [{"group_size": 5}], [{"group_size": {"k": 5}}]),
    (
        "privacy",
        [{"k_anonymity": 2}, {"withstands": ["homogeneity"]}],
        [{"k_anonymity": {"k": 2}}, {"withstands": {"attacks": ["homogeneity"]}}],
    ),
    ("privacy", [{"delta_disclosure": 1.5}], [{"delta_disclosure": {"delta": 1.5}}]),
    ("privacy", [{"variance": 250}], [{"variance": {"minimum": 250}}]),
]


@pytest.mark.parametrize(("place", "short", "full"), SHARES)
def test_a_shorthand_is_the_same_config_and_is_recorded_in_full(place: str, short: Any, full: Any) -> None:
    first, second = load(changed(place, short)), load(changed(place, full))
    assert first.privacy == second.privacy and first.method == second.method
    assert first.original == second.original == changed(place, full)


def test_shorthands_are_read_from_yaml(tmp_path: Any) -> None:
    text = "source: {path: t.csv}\ncolumns: {individual: row, quasi_identifiers: [age], sensitive: [illness]}\n"
    text += "privacy:\n- k_anonymity: 5\n- alpha_k: {alpha: 4%, k: 2}\n- ck_safety: {c: .04, k: 1}\n"
    loaded = load(file(tmp_path, text + "release: {path: out}\n"))
    assert loaded.original["privacy"] == [
        {"k_anonymity": {"k": 5}},
        {"alpha_k": {"alpha": 0.04, "k": 2}},
        {"ck_safety": {"c": 0.04, "k": 1}},
    ]


def test_a_variable_is_no_share_because_its_value_would_be_published() -> None:
    data = changed("privacy", [{"alpha_k": {"alpha": "${SHARE}", "k": 2}}])
    with pytest.raises(ConfigError, match=r"privacy\[0\].alpha_k.alpha: .*SHARE.* as it is") as caught:
        load(data, {"SHARE": "4%"})
    assert "4%" not in str(caught.value).replace("such as 4%", "")


@pytest.mark.parametrize("written", ["1%", "0.01", ".01", 0.01, "1.00 %"])
def test_a_sample_is_a_share_and_is_named_in_one_form(written: Any) -> None:
    assert share_of(written) == Fraction(1, 100)
    assert as_trial(load(SMALL), written).trial == "1%"


@pytest.mark.parametrize("written", ["1", "100%", "0", "0%", "2", "-1%", "one", "nan", "inf", "1e-30"])
def test_a_sample_of_nobody_or_everybody_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="above 0% and below 100%"):
        share_of(written)
