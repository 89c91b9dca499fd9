"""Priors through `check`: those it estimates are saved and read again, and those that leave values out are told of."""

from __future__ import annotations

import stat
from datetime import datetime
from typing import Any

import pyarrow as pa

import anon
from tests.conftest import House


def robust(house: House, **more: Any) -> dict[str, Any]:
    criterion = {"r": 1.2, "priors": [{"estimate": ["sex"], "smoothing": 1}]} | more
    return house.config(columns__keep=["sex"], privacy=[{"r_robustness": criterion}])


PEOPLE = pa.table(
    {
        "age": [1, 1, 1, 2, 2, 2, 2],
        "zip": ["02139"] * 7,
        "sex": ["m", "f", "f", "m", "m", "f", None],
        "disease": ["flu", "hiv", "flu", "flu", "hiv", "ulcer", "flu"],
    }
)


def test_a_saved_prior_read_back_gives_the_same_verdict_exactly(house: House) -> None:
    folder = house.folder / "new" / "priors"
    told = anon.check(robust(house), PEOPLE, save_priors=folder)
    file = folder / "prior-1.csv"
    assert [path.name for path in folder.iterdir()] == ["prior-1.csv"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert anon.check(robust(house), PEOPLE, prior=file).to_dict() == told.to_dict()
    named = anon.check(robust(house, priors=[{"file": str(file)}]), PEOPLE)
    assert named.to_dict() == told.to_dict()


def test_estimated_priors_are_numbered_in_the_order_of_the_config(house: House) -> None:
    even = [f"{sex},{disease},0.25\n" for sex in ("m", "f", "") for disease in ("flu", "hiv", "ulcer", "gout")]
    (house.folder / "given.csv").write_text("".join(["sex,value,p\n", *even]))
    first, second = {"estimate": ["sex"]}, {"estimate": ["age", "sex"], "smoothing": 0.5}
    wanted = robust(house, priors=[first, {"file": str(house.folder / "given.csv")}])
    wanted["privacy"].append({"r_robustness": {"r": 1.5, "priors": [second]}})
    anon.check(wanted, PEOPLE, save_priors=str(house.folder / "saved"))
    headers = {path.name: path.read_text().split("\n")[0] for path in (house.folder / "saved").iterdir()}
    assert headers == {"prior-1.csv": "sex,value,p,n,p_exact", "prior-2.csv": "age,sex,value,p,n,p_exact"}


def test_saved_priors_are_not_written_over_and_must_be_there_to_save(house: House) -> None:
    house.write(PEOPLE)
    wanted = {"columns__keep": ["sex"], "privacy": robust(house)["privacy"]}
    on, to = str(house.folder / "table.parquet"), str(house.folder / "saved")
    first = house.cli("check", "--on", on, "--save-priors", to, "--json", **wanted)
    assert first.code in (0, 3) and first.json["criteria"]
    before = (house.folder / "saved" / "prior-1.csv").read_text()
    again = house.cli("check", "--on", on, "--save-priors", to, **wanted)
    assert again.code == 2 and "prior-1.csv, which exists" in again.stderr
    assert (house.folder / "saved" / "prior-1.csv").read_text() == before
    nothing = house.cli("check", "--on", on, "--save-priors", to)
    assert nothing.code == 2 and "estimates a prior" in nothing.stderr
    replaced = house.cli("check", "--on", on, "--prior", f"{to}/prior-1.csv", "--save-priors", to, **wanted)
    assert replaced.code == 2
    blocked = house.cli("check", "--on", on, "--save-priors", on, **wanted)
    assert blocked.code == 2 and "--save-priors" in blocked.stderr


def test_a_prior_that_leaves_values_of_the_data_out_is_a_warning(house: House) -> None:
    file = house.folder / "prior.csv"
    lines = {value: f"m,{value},0.3\nf,{value},0.3\n,{value},0.3\n" for value in ("flu", "hiv", "gout")}
    for named, missing in ((["flu"], 2), (["flu", "hiv", "gout"], 1)):
        file.write_text("sex,value,p\n" + "".join(lines[value] for value in named))
        told = anon.check(robust(house, priors=[{"file": str(file)}, {"estimate": ["sex"]}]), PEOPLE).to_dict()
        (warning,) = [warning for warning in told["warnings"] if warning["code"] == "binary_prior"]
        assert warning["count"] == missing and "ulcer" not in warning["text"]


def test_a_prior_that_a_run_saved_knows_moments_and_large_numbers_of_both_formats(house: House) -> None:
    """CSV files have them with a space and with an exponent."""
    moments, sizes = [datetime(2024, 3, 9, hour, 30) for hour in (7, 8)], [1e20, 2.5e-9]
    house.write({"at": moments * 12, "size": sizes * 12, "age": list(range(24)), "disease": list("abcd") * 6})
    columns = {
        "individual": "row",
        "quasi_identifiers": {"at": {}, "size": {}, "age": {}},
        "sensitive": ["disease"],
    }
    prior = {"estimate": ["at", "size"], "smoothing": 5}
    told = []
    for form in ("parquet", "csv"):
        asked = {
            "columns": columns,
            "privacy": [{"r_robustness": {"r": 1.2, "priors": [prior]}}],
            "method": {"kind": "merge"},
            "release": {"path": form, "run": f"{form}-run", "form": "bucketized", "format": form},
        }
        house.run(**asked)
        saved = house.folder / f"{form}-run" / "prior-1.csv"
        told.append(anon.check(house.config(**asked), house.folder / form, prior=saved).to_dict()["criteria"])
    assert told[0] == told[1] and told[0][0]["safe"]
