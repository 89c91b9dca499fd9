"""`withstands`: a release is published only if the attacks that the config names were carried out and failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anon
from anon.config import Withstands
from anon.errors import ConfigError, UnsafeError
from anon.risk.overview import Attack
from anon.risk.withstanding import withstood
from tests.conftest import House

FREQUENT: dict[str, Any] = {"l_diversity": {"kind": "frequency", "l": 2}}
PEOPLE = {"age": [20, 21, 22, 23, 40, 41, 42, 43], "zip": ["02139"] * 8, "disease": list("abcdabcd")}
FORCED = {"age": [30] * 14 + [31, 32], "zip": ["02139"] * 16, "disease": list("xy") * 8}  # 8 of 16 share an age


def withstands(*names: str) -> dict[str, Any]:
    return {"withstands": list(names)}


def config(folder: Path, privacy: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "columns": {"individual": "row", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]},
        "privacy": privacy,
        "release": {"path": str(folder / "out"), "run": str(folder / "run")},
    } | more


def test_a_release_that_withstands_is_published_and_says_so(house: House) -> None:
    house.write(PEOPLE)
    found = house.run(privacy=[FREQUENT, withstands("minimality", "composition", "homogeneity")])
    entry = found.to_dict()["criteria"][1]
    assert (entry["name"], entry["safe"], entry["figure"], entry["worst_group"]) == ("withstands", True, 0, None)
    page = (house.folder / "out-run" / "report.html").read_text()
    assert "The release withstands 3 attacks: minimality, composition, homogeneity." in page


def test_the_groups_are_those_without_it(tmp_path: Path) -> None:
    releases = []
    for name, privacy in (("a", [FREQUENT]), ("b", [withstands("homogeneity"), FREQUENT])):
        anon.run(config(tmp_path / name, privacy), pa.table(PEOPLE))
        releases.append((tmp_path / name / "out" / "release.parquet").read_bytes())
    assert releases[0] == releases[1]


def test_forced_cells_are_refused_and_coins_allow_them(tmp_path: Path) -> None:
    table, privacy = pa.table(FORCED), [{"k_anonymity": 5}, withstands("downcoding")]
    with pytest.raises(UnsafeError, match=r"downcoding: .*16 to at least 50%"):
        anon.run(config(tmp_path, privacy), table)
    assert not (tmp_path / "out").exists() and not (tmp_path / "run").exists()
    guarded = {"kind": "partition", "prefer": "public", "guard": {"skip": 0.5, "below": 17}}
    assert anon.run(config(tmp_path, privacy, method=guarded), table).to_dict()["criteria"][1]["safe"]


def test_people_who_are_undecided_are_not_withstood() -> None:
    spec = Withstands(attacks=["minimality"])
    facts = {"individuals": 0, "bound": 0.5}
    assert withstood(spec, [Attack("minimality", "", "fine", **facts, details={"undecided": 0})])["safe"]
    unknown = withstood(spec, [Attack("minimality", "", "3 undecided", **facts, details={"undecided": 3})])
    assert not unknown["safe"] and unknown["failed"][0]["text"] == "minimality: 3 undecided"
    assert not withstood(spec, [Attack("minimality", "", "not examined: why")])["safe"]


def test_a_second_release_that_reveals_values_with_the_first_is_refused(tmp_path: Path) -> None:
    """One person less: the other one of its group is left with the value that both releases have."""
    columns = {"individual": "id", "quasi_identifiers": {"age": {}}, "sensitive": ["disease"]}
    wanted = config(tmp_path, [FREQUENT, withstands("composition")], columns=columns)
    table = pa.table(PEOPLE | {"id": list(range(8))})
    assert anon.run(wanted, table).to_dict()["attacks"][-1]["individuals"] == 0
    other = table.set_column(0, "age", pa.array([20, 40, 22, 23, 21, 41, 42, 43]))
    with pytest.raises(UnsafeError, match="composition"):
        anon.run(wanted, other, overwrite=True)
    assert anon.check(wanted, tmp_path / "out").safe  # the first release is still there


LATTICE = {"method": {"kind": "lattice"}}
PUBLIC = {"kind": "partition", "prefer": "public"}


@pytest.mark.parametrize(
    ("privacy", "more", "message"),
    [
        ([{"k_anonymity": 2}, withstands("minimality")], {}, "without a promise that it could break"),
        ([{"k_anonymity": 2}, withstands("homogeneity")], {}, None),
        ([FREQUENT, withstands("minimality")], LATTICE, "the decisions of lattice are not repeated"),
        ([FREQUENT, withstands("minimality")], {"method": PUBLIC | {"guard": {}}}, "coins of the guard"),
        ([FREQUENT, withstands("minimality")], {"method": PUBLIC | {"guard": {"enforce": True}}}, None),
        ([{"ck_safety": {"c": 0.9, "k": 1}}, withstands("minimality")], {}, "what ck_safety refused"),
        ([FREQUENT, withstands("downcoding")], {}, "refused by l_diversity"),
        ([{"k_anonymity": 2}, withstands("downcoding")], LATTICE, "not about lattice"),
        ([FREQUENT, withstands("kept_columns")], {}, "keeps no columns"),
        ([withstands("homogeneity")], {}, "only criteria that are always true"),
        ([FREQUENT, withstands("magic")], {}, "expected minimality, definetti"),
    ],
)
def test_what_would_not_be_known_is_refused_before_anything_is_read(
    tmp_path: Path, privacy: list[dict[str, Any]], more: dict[str, Any], message: str | None
) -> None:
    if message is None:
        anon.run(config(tmp_path, privacy, **more), pa.table(PEOPLE))
        return
    with pytest.raises(ConfigError, match=message):
        anon.run(config(tmp_path, privacy, **more), pa.table(PEOPLE))


def test_check_judges_what_the_table_shows_and_warns_about_the_rest(tmp_path: Path) -> None:
    wanted = config(tmp_path, [{"k_anonymity": 2}, FREQUENT, withstands("homogeneity", "definetti")])
    safe = pa.table({"age": ["1"] * 2 + ["2"] * 2, "disease": ["a", "b", "a", "b"]})
    found = anon.check(wanted, safe).to_dict()
    assert found["safe"] and found["criteria"][2]["not_judged"] == ["definetti"]
    assert [(w["code"], w["count"]) for w in found["warnings"]][-1] == ("attacks_not_judged", 1)
    alike = config(tmp_path, [{"k_anonymity": 2}, withstands("homogeneity")])
    unsafe = anon.check(alike, safe.set_column(1, "disease", pa.array(list("aabc")))).to_dict()
    assert not unsafe["safe"] and unsafe["criteria"][1]["figure"] == 1
    assert "2 individuals in groups with one value" in unsafe["criteria"][1]["failed"][0]["text"]
