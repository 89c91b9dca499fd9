"""The Python API as people expect it: no source for a table that is passed, one name in place of a list of one, results
that show themselves, and errors in the words of Python."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anon
from anon.errors import AnonError, ConfigError, UnsafeError
from anon.runs.result import Result
from tests.conftest import House

ROWS = {"age": [20, 21, 22, 30, 31, 32] * 20, "zip": ["02139", "02138"] * 60, "disease": ["Flu", "Cold", "HIV"] * 40}


@pytest.fixture
def frame() -> pl.DataFrame:
    return pl.DataFrame(ROWS)


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    columns = {"individual": "row", "quasi_identifiers": {"age": {}, "zip": {"digits": 5}}, "sensitive": ["disease"]}
    return {
        "columns": columns,
        "privacy": [{"k_anonymity": {"k": 5}}],
        "release": {"path": str(folder / "out")},
    } | changes


def test_a_table_needs_no_source_in_the_config(tmp_path: Path, frame: pl.DataFrame) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(settings(tmp_path)))
    for config in (settings(tmp_path), tmp_path / "config.yaml"):
        found = anon.run(config, frame, overwrite=True, force=True)
        assert anon.plan(config, frame).to_dict()["feasible"]
        assert anon.check(config, found.release).safe
        explained = anon.explain(found.run or "").to_dict()
        assert "a table in memory" in str(explained)


@pytest.mark.parametrize("work", [anon.run, anon.plan, lambda config: anon.utility(config, pl.DataFrame(ROWS))])
def test_without_a_table_the_source_is_required(tmp_path: Path, work: Any) -> None:
    with pytest.raises(ConfigError, match=r"source: found nothing; expected the required key `source`.*pass a table"):
        work(settings(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_requires_a_source_with_all_other_mistakes(house: House) -> None:
    path = house.folder / "config.yaml"
    path.write_text(json.dumps(settings(house.folder, privacy=[{"k_anonymity": {"k": 0}}])))
    from typer.testing import CliRunner

    from anon.cli.app import app

    said = CliRunner().invoke(app, ["run", str(path)])
    assert said.exit_code == 2
    assert "source: found nothing" in said.stderr and "privacy[0].k_anonymity.k" in said.stderr


ONE = {
    "columns": {
        "individual": "row", "identifiers": "name", "quasi_identifiers": "age", "sensitive": "disease", "keep": "stay",
    },
    "privacy": [
        {"l_diversity": {"kind": "recursive", "c": 3, "l": 2, "dont_care": "Flu",
                         "keep_possible": {"values": "Flu", "percent": 0}}},
        {"alpha_k": {"alpha": 0.9, "k": 2, "values": "Flu"}},
        {"r_robustness": {"r": 1.1, "priors": [{"estimate": "age", "smoothing": 1}]}},
        {"t_closeness": {"t": 0.9, "distance": {"kind": "ordered", "order": "Flu"}}},
    ],
}  # fmt: skip


def listed(value: Any, keys: tuple[str, ...]) -> Any:
    """The same config with lists of one."""
    if isinstance(value, dict):
        return {
            key: [item] if key in keys and isinstance(item, str) else listed(item, keys) for key, item in value.items()
        }
    return [listed(item, keys) for item in value] if isinstance(value, list) else value


def test_a_text_where_a_list_is_meant_is_one_entry(tmp_path: Path) -> None:
    from anon.config import load

    keys = ("identifiers", "quasi_identifiers", "sensitive", "keep", "dont_care", "values", "estimate", "order")
    config = ONE | {"release": {"path": str(tmp_path / "out")}}
    assert load(config, source=False).model_dump() == load(listed(config, keys), source=False).model_dump()
    columns = load(config, source=False).columns
    assert (columns.identifiers, list(columns.quasi_identifiers), columns.keep) == (["name"], ["age"], ["stay"])


def test_a_single_calendar_unit_needs_no_list(tmp_path: Path) -> None:
    from anon.config import Calendar, load

    columns = {"individual": "row", "quasi_identifiers": {"seen": {"calendar": "month"}}, "sensitive": "disease"}
    built = load(settings(tmp_path, columns=columns), source=False).columns.quasi_identifiers["seen"]
    assert isinstance(built, Calendar) and built.calendar == ["month"]


def test_a_single_value_and_confidence_need_no_list(tmp_path: Path, frame: pl.DataFrame) -> None:
    found = anon.explore(settings(tmp_path), frame, "Flu", "0.9").to_dict()
    assert found == anon.explore(settings(tmp_path), frame, ["Flu"], ["0.9"]).to_dict()


@pytest.fixture
def result(tmp_path: Path, frame: pl.DataFrame) -> Result:
    return anon.run(settings(tmp_path), frame)


def test_a_result_of_a_run_gives_its_tables_its_report_and_its_recoding(tmp_path: Path, result: Result) -> None:
    table = result.scan().collect()
    assert table.columns == ["age", "zip", "disease"] and table.height == len(ROWS["age"])
    assert result.recoding == json.loads((tmp_path / "out-run" / "recoding.json").read_text())
    assert result.report["summary"]["groups"] == result.to_dict()["groups"] == table.select("age", "zip").n_unique()


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_the_tables_of_a_bucketized_release_are_scanned_by_name(
    tmp_path: Path, frame: pl.DataFrame, format: str
) -> None:
    release = {"path": str(tmp_path / "out"), "form": "bucketized", "format": format}
    result = anon.run(settings(tmp_path, release=release), frame)
    qi, sensitive = result.scan().collect(), result.scan("sensitive").collect()
    assert qi.columns == ["age", "zip", "group"] and sensitive.columns == ["group", "disease", "count"]
    assert sensitive["count"].sum() == qi.height == len(ROWS["age"])
    with pytest.raises(ConfigError, match="one of qi, sensitive"):
        result.scan("release")


def test_only_a_run_has_a_release_and_a_recoding(tmp_path: Path, frame: pl.DataFrame) -> None:
    found = anon.check(settings(tmp_path), frame)
    with pytest.raises(AttributeError, match="result of a run"):
        found.scan()
    assert not hasattr(found, "recoding")


def test_the_repr_of_a_result_is_one_short_line(tmp_path: Path, frame: pl.DataFrame, result: Result) -> None:
    assert re.fullmatch(r"Result\(safe, 120 rows in \d+ groups, \d warnings, release='.*out'\)", repr(result))
    assert repr(anon.disclose(settings(tmp_path), frame, 1)).startswith("Result(")
    assert len(repr(anon.check(settings(tmp_path), frame))) < 100


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        assert not any(name.startswith("on") or "script" in str(value) for name, value in attrs)

    def handle_data(self, data: str) -> None:
        self.open.append(data)


def test_a_notebook_shows_the_verdict_the_figures_and_the_charts_without_scripts(result: Result) -> None:
    html = result._repr_html_()
    tags = Tags(html)
    assert tags.seen.count("svg") == 2 and "table" in tags.seen and not {"script", "style", "link"} & set(tags.seen)
    assert tags.open[0].startswith("Safe: every criterion holds") and "k_anonymity" in tags.open
    assert not any(value in html for value in ("Flu", "Cold", "HIV", "02139"))


def test_a_notebook_escapes_names_of_columns(tmp_path: Path, frame: pl.DataFrame) -> None:
    odd = "<script>alert(1)</script>"
    columns = {"individual": "row", "quasi_identifiers": [odd], "sensitive": "disease"}
    html = anon.run(settings(tmp_path, columns=columns), frame.rename({"age": odd}))._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html


def test_a_notebook_shows_what_is_not_safe_and_results_without_a_verdict(tmp_path: Path, frame: pl.DataFrame) -> None:
    config = settings(tmp_path, privacy=[{"k_anonymity": {"k": 100}}])
    assert "Not safe" in anon.check(config, frame)._repr_html_()
    assert anon.disclose(config, frame, 1)._repr_html_().startswith("<pre>Result(")


def test_errors_speak_of_parameters(tmp_path: Path, frame: pl.DataFrame, result: Result) -> None:
    config = settings(tmp_path)
    with pytest.raises(ConfigError) as wrong:
        anon.run(config, frame, memory="3XB", threads=0)
    assert [problem.path for problem in wrong.value.problems] == ["threads", "memory"]
    failures = {
        "overwrite=True": lambda: anon.run(config, frame),
        "sample: found": lambda: anon.run(config, frame, sample="200%"),
        "values: found": lambda: anon.explore(config, frame, [], 0.5),
        "max_k: found": lambda: anon.disclose(config, frame, -1),
        "rho1: found one of rho1= and rho2=": lambda: anon.attack(config, frame, rho1=0.2),
        "prior: found": lambda: anon.check(config, frame, prior="prior.csv"),
        'individual="row"': lambda: anon.init(frame, sensitive=[]),
        "strict=True": lambda: anon.check(config, frame, strict=True),
    }
    for words, work in failures.items():
        with pytest.raises(AnonError) as failed:
            work()
        assert words in str(failed.value) and "--" not in str(failed.value), str(failed.value)


def test_errors_of_the_command_line_speak_of_flags(house: House) -> None:
    house.write(ROWS)
    assert "--memory: found '3XB'" in house.cli("run", "--memory", "3XB").stderr
    house.run()
    assert "--overwrite" in house.cli("run", privacy=[{"k_anonymity": {"k": 3}}]).stderr


def test_strict_is_the_same_failure_in_python(tmp_path: Path, frame: pl.DataFrame) -> None:
    with pytest.raises(UnsafeError, match=r"\(strict=True\)"):
        anon.run(settings(tmp_path), frame, strict=True)


def test_a_proposed_config_runs_on_the_frame_it_was_made_from(tmp_path: Path, frame: pl.DataFrame) -> None:
    for table in (frame, frame.lazy()):
        found = anon.init(table, individual="row", sensitive="disease", quasi_identifiers=["age"], drop="zip")
        config = found.config
        assert "source" not in config and list(config["columns"]["quasi_identifiers"]) == ["age"]
        assert repr(found) == found.text and "as you said" in found.text
        config["release"] = {"path": str(tmp_path / "out")}
        assert anon.run(config, table, overwrite=True, force=True).safe


def test_a_proposed_config_of_a_file_is_written_where_it_is_asked_for(house: House) -> None:
    path, out = house.write(ROWS), house.folder / "anon.yaml"
    found = anon.init(path, individual="row", sensitive="disease", out=out)
    assert found.config["source"] == {"path": str(path)} and out.read_text() == found.text
    assert anon.plan(out).to_dict()["feasible"]
    with pytest.raises(ConfigError, match="overwrite=True"):
        anon.init(path, individual="row", sensitive="disease", out=out)
    with pytest.raises(ConfigError, match="identifiers: found"):
        anon.init(path, individual="row", sensitive="disease", identifiers="nobody")
