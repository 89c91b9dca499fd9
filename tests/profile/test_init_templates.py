"""`anon init --template`: each template is a valid config by itself, runs on a table of its sector, and never publishes
what identifies people, whatever the columns are called."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner, Result

import anon as engine
from anon.cli.app import app
from anon.cli.init import TEMPLATE_NAMES
from anon.config import load
from anon.errors import ConfigError
from anon.profile.templates import TEMPLATES

DISEASES = ["Flu", "Cold", "HIV", "Asthma", "Burn", "Gout"]
Row = dict[str, Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def anon(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def person(draw: random.Random, number: int, key: str) -> Row:
    names = [f"{first} {last}" for first in ("Anna", "Paul", "Jan") for last in ("Weber", "Rossi", "Nowak", "Silva")]
    about = {key: f"P{number:05}", "name": draw.choice(names), "age": draw.randrange(18, 95), "sex": draw.choice("fm")}
    return about | {"zip": f"{draw.randrange(40) + 10_000}"}


def day(draw: random.Random) -> date:
    return date(2023, 1, 1) + timedelta(draw.randrange(500))


def stays(draw: random.Random) -> Row:
    return {"admitted": day(draw), "ward": draw.choice("ABCD"), "diagnosis": draw.choice(DISEASES)}


def claims(draw: random.Random) -> Row:
    about = {"billed_on": day(draw), "plan": draw.choice("XYZ"), "provider": f"H{draw.randrange(30)}"}
    return about | {"diagnosis": draw.choice(DISEASES), "amount": draw.randrange(50, 9_000)}


def census(draw: random.Random) -> Row:
    about = {"region": draw.choice("NSEW"), "marital": draw.choice(["single", "married", "widowed"])}
    about |= {"education": draw.choice(["low", "middle", "high"]), "occupation": draw.choice(["cook", "clerk", "none"])}
    return about | {"religion": draw.choice(["a", "b", "c", "d"]), "income": draw.randrange(9_000, 90_000)}


def staff(draw: random.Random) -> Row:
    about = {"entered": date(2000, 1, 1) + timedelta(draw.randrange(8_000)), "department": draw.choice("ABC")}
    about |= {"position": draw.choice(["cook", "clerk", "head"]), "education": draw.choice(["low", "middle", "high"])}
    about |= {"salary": draw.randrange(20_000, 90_000), "rating": draw.choice([1, 2, 3, 4, 5])}
    return about | {"sick_days": draw.randrange(60)}


SECTORS: dict[str, tuple[str, Callable[[random.Random], Row], int]] = {
    "hospital": ("patient_id", stays, 4),
    "claims": ("insured_id", claims, 4),
    "census": ("person_id", census, 1),
    "hr": ("employee_id", staff, 1),
}


def table(template: str, people: int = 500) -> pa.Table:
    key, row, most = SECTORS[template]
    draw, rows = random.Random(6), []
    for number in range(people):
        about = person(draw, number, key)
        rows += [about | row(draw) for _ in range(draw.randint(1, most))]
    draw.shuffle(rows)
    return pa.Table.from_pylist(rows)


def test_every_template_is_offered() -> None:
    assert set(TEMPLATE_NAMES) == set(TEMPLATES) == set(SECTORS)


@pytest.mark.parametrize("template", TEMPLATE_NAMES)
def test_a_template_by_itself_is_a_config_that_runs_on_such_a_table(here: Path, template: str) -> None:
    done = anon("init", "--template", template, "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    config = load(here / "c.yaml")
    assert list(config.columns.quasi_identifiers) == [f.name for f in TEMPLATES[template].of_role("quasi-identifier")]
    pa.csv.write_csv(table(template), "extract.csv")
    ran = anon("run", "c.yaml", "--json")
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["individuals"] == 500
    assert anon("init", "--template", template).stdout == Path("c.yaml").read_text().replace("c.yaml", "CONFIG")


@pytest.mark.parametrize("template", TEMPLATE_NAMES)
def test_the_columns_of_a_table_are_matched_and_the_config_runs(here: Path, template: str) -> None:
    pa.csv.write_csv(table(template), "table.csv")
    done = anon("init", "table.csv", "--template", template, "--yes", "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    config, wanted = load(here / "c.yaml"), TEMPLATES[template]
    columns = config.columns
    assert columns.individual == SECTORS[template][0] and "name" in columns.identifiers
    assert columns.rows.by == (wanted.by or None)
    assert list(columns.sensitive) == [field.name for field in wanted.of_role("sensitive")]
    assert set(columns.published()) <= {"zip", *(field.name for field in wanted.fields)} - {"provider"}
    assert config.privacy[0].model_dump()["k"] == wanted.k
    assert f"{template} template: " in Path("c.yaml").read_text()
    ran = anon("run", "c.yaml")
    assert ran.exit_code == 0, ran.stderr


def test_columns_in_another_language_are_matched(here: Path) -> None:
    renamed = {"admitted": "Aufnahmedatum", "ward": "Abteilung", "diagnosis": "Diagnose", "age": "Alter"}
    renamed |= {"sex": "Geschlecht", "zip": "PLZ", "name": "Name", "patient_id": "Patient_Nr"}
    found = table("hospital")
    pa.csv.write_csv(found.rename_columns([renamed[name] for name in found.column_names]), "table.csv")
    assert anon("init", "table.csv", "--template", "hospital", "--yes", "--out", "c.yaml").exit_code == 0
    columns = load(here / "c.yaml").columns
    assert (columns.individual, columns.rows.by) == ("Patient_Nr", "Aufnahmedatum")
    assert list(columns.sensitive) == ["Diagnose"] and "Name" in columns.identifiers
    assert anon("run", "c.yaml").exit_code == 0


def test_a_column_that_identifies_people_keeps_that_role_under_any_name(here: Path) -> None:
    """Names in a column called ward, and numbers of people called plan, are not published because of a template."""
    found = table("claims")
    names = pa.array([f"{['Anna', 'Paul', 'Jan'][n % 3]} {'ABCDEFGH'[n % 8]}rrod" for n in range(len(found))])
    numbers = pa.array([f"7{n:08}" for n in range(len(found))])
    found = found.set_column(found.column_names.index("plan"), "plan", numbers)
    pa.csv.write_csv(found.append_column("station", names), "table.csv")
    for template in TEMPLATE_NAMES:
        done = anon("init", "table.csv", "--template", template, "--yes", "--out", f"{template}.yaml")
        assert done.exit_code == 0, done.stderr
        assert not {"plan", "station", "name"} & set(load(here / f"{template}.yaml").columns.published())


def test_a_common_value_gets_a_criterion_that_can_hold(here: Path) -> None:
    found = table("hospital")
    common = pa.array(["Healthy" if n % 10 else DISEASES[n % 3] for n in range(len(found))])
    pa.csv.write_csv(found.set_column(found.column_names.index("diagnosis"), "diagnosis", common), "table.csv")
    assert anon("init", "table.csv", "--template", "hospital", "--yes", "--out", "c.yaml").exit_code == 0
    assert [spec.name for spec in load(here / "c.yaml").privacy] == ["k_anonymity", "l_diversity"]
    assert anon("run", "c.yaml").exit_code == 0


@pytest.mark.parametrize(("arguments", "words"), [(["--template", "school"], "hospital, claims"), ([], "--template")])
def test_neither_a_table_nor_a_template_is_exit_2(here: Path, arguments: list[str], words: str) -> None:
    done = anon("init", *arguments)
    assert done.exit_code == 2 and words in done.stderr


def test_flags_overrule_a_template(here: Path) -> None:
    pa.csv.write_csv(table("claims"), "table.csv")
    flags = ["--drop", "plan", "--k", "7", "--sensitive", "diagnosis"]
    done = anon("init", "table.csv", "--template", "claims", "--yes", *flags, "--out", "c.yaml")
    assert done.exit_code == 0, done.stderr
    config = load(here / "c.yaml")
    assert "plan" not in config.columns.published() and list(config.columns.sensitive) == ["diagnosis"]
    assert config.privacy[0].model_dump()["k"] == 7


@pytest.mark.parametrize("template", TEMPLATE_NAMES)
def test_python_proposes_the_config_of_the_command(here: Path, template: str) -> None:
    pa.csv.write_csv(table(template), "table.csv")
    assert anon("init", "table.csv", "--template", template, "--yes", "--out", "c.yaml").exit_code == 0
    written, proposed = (
        load(here / "c.yaml"),
        engine.init("table.csv", individual=SECTORS[template][0], template=template),
    )
    found = load(proposed.config)
    assert found.columns == written.columns and found.privacy == written.privacy


def test_a_template_that_there_is_not_is_named_as_a_parameter(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"^template: found 'school'; expected one of hospital, claims"):
        engine.init(table("hospital"), individual="row", template="school")
