"""Variables in a config: their values are put in, and are told nowhere."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from anon.cli.app import app
from anon.config import load, redact
from anon.core.checkpoint import Checkpoint
from anon.errors import ClusterLost, ConfigError
from tests.conftest import House
from tests.helpers.backends import each_on_every_backend
from tests.helpers.config import POINT, SMALL, changed, criterion, file, problems

SECRET = "s3cr\"et\\pass'word"


def with_secret() -> dict[str, Any]:
    return changed("source", {"postgres": {"dsn": "postgresql://u:${PW}@${HOST}/db", "query": "select $${x}"}})


def test_variables_are_put_in_and_kept_as_secrets() -> None:
    config = load(with_secret(), {"PW": SECRET, "HOST": "db.example", "OTHER": "x"})
    assert config.source.postgres.dsn == f"postgresql://u:{quote(SECRET)}@db.example/db"
    assert config.source.postgres.query == "select ${x}"
    assert config.secrets == (("PW", SECRET), ("HOST", "db.example"))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("postgresql://u:${PW}@h/db", "postgresql://u:a%40b%2Fc%23d%25@h/db"),
        ("postgresql://${PW}:${PW}@${HOST}/x", "postgresql://a%40b%2Fc%23d%25:a%40b%2Fc%23d%25@[::1]:5/x"),
        ("postgresql://${HOST}/db?options=a@b", "postgresql://[::1]:5/db?options=a@b"),
        ("${URL}", "postgresql://u:a%40b@h/db"),
        ("host=h password=${PW}", "host=h password=a@b/c#d%"),
    ],
)
def test_a_password_in_a_connection_url_may_have_any_character(written: str, read: str) -> None:
    data = changed("source", {"postgres": {"dsn": written, "query": "select 1 as ${PW}"}})
    known = {"PW": "a@b/c#d%", "HOST": "[::1]:5", "URL": "postgresql://u:a%40b@h/db"}
    source = load(data, known).source.postgres
    assert (source.dsn, source.query) == (read, "select 1 as a@b/c#d%")


def test_variables_come_from_the_environment_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANON_TEST_COLUMN", "hours")
    data = changed("columns.keep", ["${ANON_TEST_COLUMN}", "$${x}"])
    assert load(data).columns.keep == ["hours", "${x}"]
    assert [problem.path for problem in problems(data)] == ["columns.keep[0]"]


def test_a_secret_is_in_no_representation_of_the_config() -> None:
    config = load(with_secret(), {"PW": "s3cret", "HOST": "db.example"})
    shown = [repr(config), str(config), repr(config.source), config.text, json.dumps(config.original), config.digest]
    assert [text for text in shown if "s3cret" in text] == []
    assert "secrets" not in config.model_dump()
    assert "${PW}" in repr(config)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("release.form", "${PW}"),
        ("release.path", ["${PW}"]),
        ("limits", {"memory": "${PW}"}),
        ("columns.keep", ["a", "${PW}", "${PW}"]),
        ("columns.sensitive", ["${PW}", "${PW}"]),
        ("columns.sensitive", ["${PW}", "age", "illness"]),
        ("columns.quasi_identifiers.age", {"calendar": ["${PW}"]}),
        ("privacy", criterion("skyline", points=[POINT], sensitive="${PW}")),
        ("privacy", criterion("skyline", points=[POINT], values={"HIV": "${PW}"})),
        ("method", {"kind": "${PW}"}),
        ("method", {"prefer": "${PW}"}),
        ("method", {"prefer": {"information_gain": "${PW}x"}}),
        ("backend", {"kind": "spark", "conf": "${PW}"}),
    ],
)
@pytest.mark.parametrize(
    "secret", ["s3cret-and-long-enough-to-be-cut-somewhere-in-the-middle", SECRET, "widestt", "agee"]
)
def test_an_error_shows_the_name_of_a_variable_and_never_its_value(place: str, value: Any, secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(changed(place, value), {"PW": secret})
    shown = str(caught.value) + repr(caught.value)
    assert secret not in shown
    assert secret[:20] not in shown
    assert caught.value.__context__ is None


def test_a_near_miss_hint_does_not_give_a_secret_column_away() -> None:
    data = changed("columns.sensitive", ["${COLUMN}"])
    data["privacy"] = criterion("skyline", points=[POINT], sensitive="diagnosys")
    with pytest.raises(ConfigError) as caught:
        load(data, {"COLUMN": "diagnosis"})
    assert caught.value.problems[0].hint == "did you mean `${COLUMN}`?"


def test_redaction_takes_the_longest_value_first_and_skips_empty_ones() -> None:
    secrets = (("SHORT", "abcd"), ("LONG", "abcdef"), ("EMPTY", ""))
    assert redact("abcdefabcd x", secrets) == "${LONG}${SHORT} x"
    assert redact("nothing", (("EMPTY", ""),)) == "nothing"
    assert redact("HORT", (("A", "HORT"), ("B", "A"))) == "${A}"


def test_text_and_digest_are_those_before_variables(tmp_path: Path) -> None:
    text = json.dumps(SMALL).replace('"out"', '"${OUT}"') + "\n"
    one, two = (load(file(tmp_path, text), {"OUT": out}) for out in ("a", "b"))
    assert one.text == text
    assert one.digest == two.digest == hashlib.sha256(text.encode()).hexdigest()
    assert (one.release.path, one.original["release"]) == (tmp_path / "a", {"path": "${OUT}"})


def test_the_text_of_a_mapping_is_its_json_in_its_own_order() -> None:
    config = load(SMALL, {})
    assert config.text == json.dumps(SMALL)
    assert config.original == SMALL


def test_a_short_value_is_not_told_by_a_name_in_the_midst_of_a_word() -> None:
    assert redact("found 'sex', x and x=1", (("PW", "x"),)) == "found 'sex', ${PW} and ${PW}=1"
    assert redact("unexpected", (("PW", "xpec"),)) == "une${PW}ted"


@pytest.mark.parametrize("written", ["very-secret-client", "./very-secret-client//", "x/../very-secret-client"])
def test_a_variable_in_the_place_of_a_release_is_not_printed(
    house: House, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("CLIENT", written)
    house.write({"age": [20] * 4, "zip": ["02139"] * 4, "disease": ["Flu"] * 4})
    config = house.config(release={"path": "${CLIENT}/out", "run": "${CLIENT}/run"})
    config["limits"] = {"memory": "1GB"}
    (house.folder / "config.yaml").write_text(json.dumps(config))

    def outputs(*command: str, code: int) -> None:
        said = CliRunner().invoke(app, [*command, str(house.folder / "config.yaml")])
        assert (said.exit_code, "very-secret-client" in said.output) == (code, False), said.output

    for way in ([], ["--json"], ["--log-json"]):
        outputs("run", "--force", *way, code=0)
        outputs("run", *way, code=0)
        outputs("plan", *way, code=0)
    house.write({"age": [20] * 5, "zip": ["02139"] * 5, "disease": ["Flu"] * 5})
    outputs("run", "--json", code=2)
    monkeypatch.setattr(Checkpoint, "steps", lambda self: 3)
    for failure, code in ((KeyboardInterrupt(), 130), (ClusterLost("the cluster is gone"), 5)):
        monkeypatch.setattr("anon.search.dispatch.searched", Mock(side_effect=failure))
        for way in ([], ["--json"], ["--log-json"]):
            outputs("run", "--overwrite", *way, code=code)


@each_on_every_backend("field", ["release.path", "release.run", "limits.temp"], gaps={})
def test_a_traceback_does_not_show_a_variable(house: House, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    """The failure of the disk, from which ours came, names the whole path."""
    monkeypatch.setenv("CLIENT", "very-secret-client")
    house.write({"age": [20] * 4, "zip": ["02139"] * 4, "disease": ["Flu"] * 4})
    section, name = field.split(".")
    config = house.config()
    config[section][name] = str(house.folder / "table.parquet" / "${CLIENT}" / "out")
    (house.folder / "config.yaml").write_text(json.dumps(config))
    said = CliRunner().invoke(app, ["run", "--debug", str(house.folder / "config.yaml")])
    assert said.exit_code == 2 and "NotADirectoryError" in said.output
    assert "very-secret-client" not in said.output and "${CLIENT}" in said.output
