"""`explore`, `disclose` and `attack` as users call them: what they read, print and refuse."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import anon
from anon.errors import ConfigError, SourceError, UnsafeError
from tests.conftest import House

ROWS = [("1", "flu", 5), ("1", "hiv", 1), ("1", "cold", 4), ("2", "flu", 3), ("2", "hiv", 2), ("2", "cold", 9)]
AGES = [age for age, _, count in ROWS for _ in range(count)]
DISEASES = [disease for _, disease, count in ROWS for _ in range(count)]
TABLE = pa.table({"age": AGES, "zip": ["*"] * 24, "disease": DISEASES})
ASK = ("--value", "hiv", "--confidence", "0.5")
COMMANDS: list[tuple[str, tuple[str, ...]]] = [
    ("explore", ASK), ("disclose", ("--max-k", "2")), ("attack", ("--threshold", "0.5"))
]  # fmt: skip


def bucketized() -> tuple[pa.Table, pa.Table]:
    qi = pa.table({"age": AGES, "zip": ["*"] * 24, "group": [int(age) for age in AGES]})
    held = sorted(Counter(zip(AGES, DISEASES)).items())
    columns = {
        "group": [int(age) for (age, _), _ in held],
        "disease": [disease for (_, disease), _ in held],
        "count": [count for _, count in held],
    }
    return qi, pa.table(columns)


def points(skyline: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    return [(point["l"], point["k"], point["m"]) for point in skyline["points"]]


def test_skylines_come_for_each_value_at_each_confidence(house: House) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    more = ("--value", "flu", "--confidence", "0.9", "--json")
    told = house.cli("explore", "--on", on, *ASK, *more).json
    asked = [(skyline["value"], skyline["confidence"]) for skyline in told["skylines"]]
    assert asked == [("hiv", 0.5), ("hiv", 0.9), ("flu", 0.5), ("flu", 0.9)]
    for skyline in told["skylines"]:
        for point in skyline["points"]:
            assert point["breach_beyond"] >= skyline["confidence"]
            assert {"l", "k", "m", "breach_beyond", "witness"} <= point.keys()


def test_the_points_are_the_limit_for_check(house: House) -> None:
    """The skyline criterion holds at every point, and no step beyond it."""
    (skyline,) = anon.explore(house.config(), TABLE, ["hiv"], [0.5]).to_dict()["skylines"]
    assert len(skyline["points"]) > 2
    for l, k, m in points(skyline):
        for step, safe in (((l, k, m), True), ((l + 1, k, m), False), ((l, k + 1, m), False), ((l, k, m + 1), False)):
            amount = dict(zip("lkm", step)) | {"c": 0.5}
            privacy = [{"skyline": {"points": [], "values": {"hiv": [amount], "flu": "exempt", "cold": "exempt"}}}]
            assert house.check(TABLE, privacy=privacy).safe is safe, step


def test_values_are_shown_only_to_those_who_ask(house: House) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    hidden = house.cli("explore", "--on", on, *ASK, "--json").stdout
    assert "cold" not in hidden and "value #1 by frequency" in hidden and '"hiv"' in hidden
    assert "cold" in house.cli("explore", "--on", on, *ASK, "--json", "--show-values").stdout
    assert "cold" not in house.cli("disclose", "--on", on, "--max-k", "2").stdout
    assert "cold" in house.cli("disclose", "--on", on, "--max-k", "2", "--show-values").stdout


def test_a_value_that_is_not_there_is_one_infinite_point_and_a_warning(house: House) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    ask = ("--on", on, "--value", "measles", "--confidence", "0.5", "--json")
    told = house.cli("explore", *ask)
    assert told.code == 0 and points(told.json["skylines"][0]) == [("inf", "inf", "inf")]
    assert told.json["warnings"][0]["code"] == "absent_value"
    assert house.cli("explore", *ask, "--strict").code == 3
    with pytest.raises(UnsafeError):
        anon.explore(house.config(), TABLE, ["measles"], [0.5], strict=True)


def test_a_value_that_nobody_has_is_said_to_be_so(house: House) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    said = house.cli("explore", "--on", on, "--value", "measles", "--confidence", "0.5").stdout
    assert "measles: nobody in this table has this value of disease, so nothing was explored" in said
    assert "warning: 1 value given by --value that nobody has as disease" in said


def test_one_value_and_one_confidence_need_no_list(house: House) -> None:
    listed = anon.explore(house.config(), TABLE, ["hiv"], [0.5]).to_dict()
    assert anon.explore(house.config(), TABLE, "hiv", 0.5).to_dict() == listed
    assert anon.explore(house.config(), TABLE, "hiv", "0.5").to_dict() == listed
    assert anon.explore(house.config(), TABLE, ("hiv",), iter(["0.5"])).to_dict() == listed


@pytest.mark.parametrize("value", [b"hiv", [b"hiv"], None, ["hiv", None]])
def test_what_is_no_name_of_a_value_is_refused(house: House, value: Any) -> None:
    """Its letters or its text would be values that nobody has."""
    with pytest.raises(ConfigError, match=r"^values: found a value of type (bytes|NoneType)"):
        anon.explore(house.config(), TABLE, value, 0.5)


@pytest.mark.parametrize("written", ["HIV", " hiv", "hi\u200bv"])
def test_a_value_in_another_spelling_is_exit_2_and_quoted_only_where_it_may_be(house: House, written: str) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    ask = ("--on", on, "--value", written, "--confidence", "0.5", "--json")
    named = [{"skyline": {"points": [], "values": {"hiv": [{"l": 0, "k": 0, "m": 0, "c": 1}]}}}]
    for options, changes, hint in (
        (
            (),
            {},
            "did you mean 'hiv'?"
            if written == "HIV"
            else "one differs only in spelling (case, space, Unicode, 1 or 1.0 or 01)",
        ),
        (("--show-values",), {}, "did you mean 'hiv'?"),
        ((), {"privacy": named}, "did you mean 'hiv'?"),
    ):
        told = house.cli("explore", *ask, *options, **changes)
        assert told.code == 2 and told.json["problems"][0]["hint"] == hint


def test_a_misspelt_value_is_suggested_only_where_values_may_be_shown(house: House) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    ask = ("explore", "--on", on, "--value", "hvi", "--confidence", "50%", "--json")
    assert "mean" not in house.cli(*ask).json["warnings"][0]["text"]
    assert "did you mean `hiv`?" in house.cli(*ask, "--show-values").json["warnings"][0]["text"]


def test_a_number_is_found_however_it_is_written(house: House) -> None:
    table = TABLE.set_column(TABLE.column_names.index("disease"), "disease", [[i % 3 for i in range(len(TABLE))]])
    with pytest.raises(ConfigError, match="expected a value as it is written in the table"):
        anon.explore(house.config(), table, "1.0", 0.5)
    assert not anon.explore(house.config(), table, 1, 0.5).to_dict()["warnings"]


@pytest.mark.parametrize(("command", "options"), COMMANDS)
def test_every_form_of_a_table_is_read_and_the_source_is_not(
    house: House, command: str, options: tuple[str, ...]
) -> None:
    """The config's source does not exist. Groups are told by their numbers, which are the table's own if it has any."""
    qi, sensitive = bucketized()
    pa.csv.write_csv(TABLE, house.folder / "given.csv")
    house.write(TABLE, "parts/a.parquet")
    house.write(TABLE, "given.parquet")
    house.write(qi, "pair/qi.parquet")
    house.write(sensitive, "pair/sensitive.parquet")
    told = {}
    for on in ("given.parquet", "given.csv", "parts", "pair"):
        form = {"release__form": "bucketized"} if on == "pair" else {}
        done = house.cli(command, "--on", str(house.folder / on), *options, "--json", **form)
        assert done.code == 0, done.stderr
        told[on] = done.stdout
    assert told["given.parquet"] == told["given.csv"] == told["parts"]
    expected = json.dumps(json.loads(told["given.parquet"]))
    for key in ("group", "target"):
        expected = expected.replace(f'"{key}": 1', f'"{key}": 2').replace(f'"{key}": 0', f'"{key}": 1')
    assert json.loads(told["pair"].replace("group 1", "G").replace("group 2", "G")) == json.loads(
        expected.replace("group 0", "G").replace("group 1", "G")
    )


@pytest.mark.parametrize(("command", "options"), COMMANDS)
def test_words_and_progress_go_their_own_ways(house: House, command: str, options: tuple[str, ...]) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    words = house.cli(command, "--on", on, *options)
    assert words.code == 0 and words.stdout.strip() and "done in" in words.stderr
    logged = house.cli(command, "--on", on, *options, "--json", "--log-json")
    json.loads(logged.stdout)
    assert all(json.loads(line) for line in logged.stderr.splitlines())


@pytest.mark.parametrize(("command", "options", "field"), [
    ("explore", ("--value", "hiv", "--confidence", "0"), "--confidence"),
    ("explore", ("--value", "hiv", "--confidence", "1.5"), "--confidence"),
    ("explore", ("--value", "hiv", "--confidence", "much"), "--confidence"),
    ("explore", ("--value", "hiv", "--confidence", "1e-999999999"), "--confidence"),
    ("explore", (*ASK, "--sensitive", "zip"), "--sensitive"),
    ("attack", ("--threshold", "95"), "--threshold"),
    ("attack", ("--threshold", "1e-999999999"), "--threshold"),
    ("attack", ("--rho1", "1e-999999999", "--rho2", "0.5"), "--rho1"),
    ("attack", ("--rho1", "0.1", "--rho2", "0.5"), "--rho1"),
])  # fmt: skip
def test_mistakes_are_told_with_their_field(house: House, command: str, options: tuple[str, ...], field: str) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    done = house.cli(command, "--on", on, *options, "--json")
    assert done.code == 2 and field in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize(("command", "options"), [("explore", ASK[:2]), ("explore", ASK[2:]), ("disclose", ())])
def test_what_must_be_said_is_asked_for(house: House, command: str, options: tuple[str, ...]) -> None:
    on = str(house.write(TABLE, "given.parquet"))
    assert house.cli(command, "--on", on, *options, "--json").code == 2


@pytest.mark.parametrize("empty", [{"age": [], "zip": [], "disease": []}])
def test_an_empty_table_has_nothing_to_attack(house: House, empty: dict[str, list[str]]) -> None:
    table = pa.table({name: pa.array(values, pa.string()) for name, values in empty.items()})
    for look, asked in ((anon.explore, (["hiv"], [0.5])), (anon.disclose, (2,)), (anon.attack, ())):
        with pytest.raises(SourceError, match="no rows"):
            look(house.config(), table, *asked)


def test_frames_of_other_libraries_are_tables_too(house: House) -> None:
    frame = pl.from_arrow(TABLE)
    assert anon.disclose(house.config(), frame, 3).to_dict() == anon.disclose(house.config(), TABLE, 3).to_dict()
    form = house.config(release__form="bucketized")
    pair = anon.disclose(form, bucketized(), 3).to_dict()
    assert pair["implications"] == anon.disclose(house.config(), TABLE, 3).to_dict()["implications"]


@pytest.mark.parametrize("kind", ["set", "multiset"])
def test_several_values_per_individual(house: House, kind: str) -> None:
    """Four people with cold three times and flu twice: (n - s - k) / s (n - o) / n is 1/8 > 1/9 at k = 1 of a set."""
    qi = pa.table({"age": ["*"] * 4, "zip": ["*"] * 4, "group": [7] * 4})
    held = pa.table({"group": [7, 7], "disease": ["cold", "flu"], "count": [3, 2]})
    columns = {"columns__individual": "id", "columns__multiplicity": kind, "release__form": "bucketized"}
    config = house.config(**columns)
    (skyline,) = anon.explore(config, (qi, held), ["flu"], ["0.9"]).to_dict()["skylines"]
    assert (
        points(skyline)
        == {
            "set": [(0, 0, 1), ("inf", 1, 0)],
            "multiset": [(0, 0, 2), (0, 1, 1), ("inf", 0, 1), ("inf", 2, 0)],
        }[kind]
    )
    assert all(point["witness"]["target"]["group"] == 7 for point in skyline["points"])
    told = anon.attack(config, (qi, held), threshold=0.5).to_dict()
    assert told["affected_groups"] == 1 and "elimination" not in told
    with pytest.raises(ConfigError, match="multiplicity"):
        anon.disclose(config, (qi, held), 2)


def test_one_of_several_sensitive_columns_is_looked_at(house: House) -> None:
    table = TABLE.append_column("job", [["a", "b"] * 12])
    config = house.config(columns__sensitive=["disease", "job"])
    with pytest.raises(ConfigError, match="2 sensitive columns"):
        anon.disclose(config, table, 1)
    assert anon.disclose(config, table, 1, sensitive="job").to_dict()["implications"][0] == 0.5


def test_the_adult_case_study_is_unsafe_beyond_four_known_people(house: House, adult: pa.Table) -> None:
    """Section 7.3 of the skyline paper: (3, 6)-diversity, seen at 95% for Exec-managerial. The paper's first point is
    (0, 4, 0) as well, with quasi-identifiers that it does not name."""
    columns = ["age", "sex", "race", "marital_status", "education", "native_country", "workclass", "occupation"]
    config = house.config(
        columns__quasi_identifiers={name: {} for name in columns[:-1]},
        columns__sensitive=["occupation"],
        privacy=[{"skyline": {"points": [{"l": 4, "k": 0, "m": 0, "c": 0.75}]}}],
    )
    anon.run(config, adult.select(columns))
    released = house.folder / "out" / "release.parquet"
    (skyline,) = anon.explore(config, released, ["Exec-managerial"], [0.95]).to_dict()["skylines"]
    assert points(skyline) == [
        (0, 0, 4), (0, 4, 0), (1, 1, 3), (1, 3, 1), (2, 2, 2), (3, 0, 3), (3, 1, 2), (4, 0, 2),
    ]  # fmt: skip
    sentence = skyline["points"][1]["beyond"]["k"]["sentence"]
    assert sentence.startswith("An adversary who learns the values of 5 other people in group ")
