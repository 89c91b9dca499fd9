"""What users are told of a criterion that fails or holds: both figures of (k, e)-anonymity, refusals in one form of
words, and the risk of the whole table where a search found nothing."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anon.errors import UnsafeError
from tests.conftest import House


def people(values: list[Any]) -> pa.Table:
    count = len(values)
    return pa.table({"age": [30] * count, "zip": ["02139"] * count, "disease": values})


def test_k_e_tells_both_figures_and_both_bounds(house: House) -> None:
    house.write(people([1, 1, 4]))
    wanted = {"privacy": [{"k_e": {"k": 3, "e": 2500}}]}
    on = str(house.folder / "table.parquet")
    (told,) = house.cli("check", "--on", on, "--json", **wanted).json["criteria"]
    assert told["figure"] == {"distinct": 2, "range": 3}
    assert told["bound"] == {"distinct": 3, "range": 2500}
    shown = house.cli("check", "--on", on, **wanted).stdout
    assert "2 and 3" in shown and ">= 3 and 2,500" in shown


@pytest.mark.parametrize(
    ("criterion", "values", "said"),
    [
        ({"k_anonymity": {"k": 9}}, "aab", "k_anonymity: 3 individuals, asked for at least 9; would hold: k = 3"),
        ({"alpha_k": {"alpha": 0.5, "k": 1}}, "aab", "a value with the share 0.666667, asked for at most 0.5"),
        ({"l_diversity": {"kind": "distinct", "l": 3}}, "aab", "2 different values, asked for at least 3"),
        (
            {"l_diversity": {"kind": "frequency", "l": 2}},
            "aab",
            "a value with the share 0.666667, asked for at most 0.5",
        ),
        ({"l_diversity": {"kind": "entropy", "l": 2}}, "aab", "exp(entropy) 1.88988, asked for at least 2"),
        (
            {"l_diversity": {"kind": "recursive", "c": 2, "l": 2}},
            "aab",
            "the most frequent value is 2 times the tail, asked for less than 2",
        ),
        (
            {"l_diversity": {"kind": "distinct", "l": 1, "keep_possible": {"values": ["b"], "percent": 50}}},
            "aab",
            "33.3333% of b, asked for at least 50%",
        ),
        ({"variance": {"minimum": 5}}, [1, 1, 4], "variance (disease): variance 2, asked for at least 5"),
        ({"k_e": {"k": 1, "e": 5}}, [1, 1, 4], "a range of 3, asked for at least 5; would hold: e = 3"),
        ({"ck_safety": {"c": 0.5, "k": 0}}, "aab", "maximum disclosure 0.666667, asked for less than 0.5"),
    ],
)
def test_refusals_say_what_was_found_and_what_was_asked_for(
    house: House, criterion: Any, values: Any, said: str
) -> None:
    with pytest.raises(UnsafeError) as error:
        house.run(people(list(values)), privacy=[criterion])
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        (
            {"dissimilarity": {"epsilon": 0, "delta": 0.75, "k": 2, "distance": {"kind": "equal"}}},
            "dissimilarity (disease): risk 0.5, asked for at most 0.25; would hold: delta = 0.5",
        ),
        ({"epsilon_m": {"epsilon": 0, "m": 2}}, "epsilon_m (disease): the share 0.666667 within epsilon of a value"),
    ],
)
def test_where_nothing_was_found_the_figure_of_the_whole_table_is_told(house: House, criterion: Any, said: str) -> None:
    with pytest.raises(UnsafeError) as error:
        house.run(people([1, 1, 4]), privacy=[criterion])
    first, second = str(error.value).split("\n")
    assert first.startswith("no safe release was found: 1 group that cannot be split further does not satisfy")
    assert second.startswith(f"  the whole table as one group: {said}")


HOLDS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}
ONE_FIGURE: list[dict[str, Any]] = [
    {"k_anonymity": {"k": 3}},
    {"group_size": {"k": 3}},
    {"l_diversity": {"kind": "distinct", "l": 2}},
    {"l_diversity": {"kind": "frequency", "l": 1.5}},
    {"l_diversity": {"kind": "entropy", "l": 1.8}},
    {"l_diversity": {"kind": "recursive", "c": 1.5, "l": 2}},
    {"skyline": {"points": [{"l": 0, "k": 0, "m": 1, "c": 0.9}]}},
    {"ck_safety": {"c": 0.9, "k": 1}},
    {"dissimilarity": {"epsilon": 1, "delta": 0.4, "k": 1, "distance": {"kind": "absolute"}}},
    {"r_robustness": {"r": 1.4, "priors": [{"estimate": ["age"]}]}},
    {"t_closeness": {"t": 0.1, "distance": {"kind": "equal"}}},
    {"alpha_k": {"alpha": 0.6, "k": 1}},
    {"epsilon_m": {"epsilon": 1, "m": 2}},
    {"variance": {"minimum": 1.5}},
]


@pytest.mark.parametrize("criterion", ONE_FIGURE, ids=lambda one: "-".join(map(str, next(iter(one.values())).values())))
def test_figure_relation_and_bound_say_whether_it_holds(house: House, criterion: Any) -> None:
    """One table that has every criterion of the list, and one that has none of them."""
    for values, safe in (([1, 3, 5, 1, 3, 5], True), ([1, 1, 1, 2, 2], False)):
        ages = [30] * 3 + [40] * (len(values) - 3)
        table = pa.table({"age": ages, "zip": ["*"] * len(values), "disease": values})
        (told,) = house.check(table, privacy=[criterion]).to_dict()["criteria"]
        assert told["safe"] is safe
        assert HOLDS[told["relation"]](float(told["figure"]), told["bound"]) is safe


@pytest.mark.parametrize(
    ("criterion", "figure", "said"),
    [
        ({"alpha_k": {"alpha": 0.7, "k": 4}}, 2 / 3, "3 individuals, asked for at least 4"),
        (
            {"dissimilarity": {"epsilon": 0, "delta": 0.5, "k": 4, "distance": {"kind": "equal"}}},
            0.5,
            "3 individuals, asked for at least 4",
        ),
        (
            {
                "l_diversity": {
                    "kind": "recursive",
                    "c": 3,
                    "l": 2,
                    "keep_possible": {"values": ["b"], "percent": 40},
                }
            },
            2,
            "33.3333% of b, asked for at least 40%",
        ),
    ],
)
def test_what_fails_beside_the_figure_is_told_in_words(house: House, criterion: Any, figure: float, said: str) -> None:
    path = str(house.write(people(list("aab"))))
    (told,) = house.cli("check", "--on", path, "--json", privacy=[criterion]).json["criteria"]
    assert not told["safe"] and told["figure"] == pytest.approx(figure)
    assert HOLDS[told["relation"]](told["figure"], told["bound"])
    assert [failure["text"] for failure in told["failed"]] == [said]
    assert said.split(",", maxsplit=1)[0] in house.cli("check", "--on", path, privacy=[criterion]).stdout


def test_every_prior_that_fails_is_told_by_its_number(house: House, tmp_path: Path) -> None:
    (tmp_path / "even.csv").write_text("age,value,p\n30,a,0.5\n30,b,0.5\n")
    priors = [{"file": str(tmp_path / "even.csv")}, {"estimate": ["age"]}]
    told = house.check(people(list("aab")), privacy=[{"r_robustness": {"r": 2, "priors": priors}}]).to_dict()
    assert [failure["text"] for failure in told["criteria"][0]["failed"]] == [
        f"posterior 0.666667 by prior {number}, asked for at most 0.5" for number in (1, 2)
    ]


def test_points_are_not_called_failing_where_something_else_fails(house: House) -> None:
    path = str(house.write(people(list("ab"))))
    asked = [{"k_anonymity": {"k": 3}}, {"skyline": {"points": [{"l": 0, "k": 0, "m": 0, "c": 0.9}]}}]
    shown = house.cli("check", "--on", path, privacy=asked).stdout
    assert "The table is not safe." in shown
    assert "Closest to the bound" in shown and "Worst against the bound" not in shown
