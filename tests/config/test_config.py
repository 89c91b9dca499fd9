"""The config stage: what a config means, where it is read from, and what this version can run of it."""

from __future__ import annotations

import glob
import json
from decimal import Decimal
from pathlib import Path

import pytest

from anon.config import Config, load, parse_size
from anon.errors import ConfigError
from tests.helpers.config import CONTRACT, POINT, SMALL, changed, criterion, file, problems


def test_the_only_sensitive_column_is_filled_in_where_values_matter() -> None:
    data = changed("privacy", [{"k_anonymity": {"k": 2}}, {"skyline": {"points": [POINT]}}])
    assert [item.sensitive for item in load(data, {}).privacy] == [None, "illness"]


def test_the_example_of_the_contract_parses(tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    config = load(file(folder, CONTRACT), {})
    assert config.source.path == f"{folder}/extract/*.parquet"
    assert config.source.kind == "path"
    builders = config.columns.quasi_identifiers
    assert [builder.kind for builder in builders.values()] == [
        "intervals",
        "suppress",
        "hierarchy",
        "digits",
        "calendar",
        "free",
    ]
    assert builders["education"].hierarchy == tmp_path / "hierarchies/adult/education.csv"
    assert builders["age"].intervals == [5, 10, 20]
    assert (builders["age"].origin, builders["age"].top, builders["age"].bottom) == (1, 85, None)
    assert [item.name for item in config.privacy][:5] == [
        "k_anonymity",
        "group_size",
        "l_diversity",
        "l_diversity",
        "skyline",
    ]
    assert config.privacy[4].values["Flu"] == "exempt"
    assert config.privacy[4].values["HIV"][0].c == Decimal("0.2")
    assert config.privacy[3].keep_possible.values == ["Flu"]
    assert config.privacy[7].priors[0].file == folder / "prior.csv"
    assert config.privacy[7].priors[1].smoothing == 1
    assert {item.sensitive for item in config.privacy[2:]} == {"occupation"}
    assert (config.release.path, config.release.run) == (folder / "out", folder / "out-run")
    assert (config.limits.memory, config.limits.threads, config.limits.temp) == (10**9, 2, folder / "spill")
    assert config.base == folder


def test_a_loaded_config_is_taken_as_it_is() -> None:
    config = load(changed("source", {"table": "db.t"}), {})
    assert load(config) is config


def test_a_mistake_is_reported_before_what_is_not_available() -> None:
    data = changed("privacy", criterion("variance", minimum=-1))
    data["method"] = {"kind": "colour"}
    assert [problem.path for problem in problems(data)] == ["privacy[0].variance.minimum"]


def test_a_loaded_config_is_returned_as_it_is() -> None:
    config = load(SMALL, {})
    assert isinstance(config, Config)
    assert load(config) is config


def test_defaults_are_those_of_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load(SMALL, {})
    assert config.source.path == str(tmp_path / "t.csv")
    assert (config.nulls.quasi_identifiers, config.nulls.sensitive) == ("value", "error")
    assert (config.columns.multiplicity, config.columns.keep, config.columns.identifiers) == ("single", [], [])
    assert (config.method.kind, config.method.prefer) == ("partition", "widest")
    assert (config.release.run, config.release.form, config.release.format) == (
        tmp_path / "out-run",
        "generalized",
        "parquet",
    )
    assert (config.limits.memory, config.limits.threads, config.limits.temp) == (2 * 10**9, None, None)
    assert config.backend.kind == "local"
    assert list(config.columns.quasi_identifiers) == ["age", "sex"]
    assert config.columns.sensitive["illness"].builder is None


def test_names_may_be_lists_and_the_individual_an_identifier() -> None:
    data = changed("columns.quasi_identifiers", ["zip", "age"])
    data["columns"] |= {"individual": "who", "identifiers": ["who"]}
    columns = load(data, {}).columns
    assert [(name, builder.kind) for name, builder in columns.quasi_identifiers.items()] == [
        ("zip", "free"),
        ("age", "free"),
    ]


def test_a_sensitive_column_takes_rounding_or_a_builder() -> None:
    sensitive = {"cost": {"round": 0.1, "as_categories": True}, "day": {"calendar": ["month"]}, "illness": None}
    columns = load(changed("columns.sensitive", sensitive), {}).columns
    assert (columns.sensitive["cost"].round, columns.sensitive["cost"].as_categories) == (Decimal("0.1"), True)
    assert columns.sensitive["day"].builder.calendar == ["month"]
    assert columns.sensitive["illness"].builder is None


def test_thresholds_are_the_decimals_as_written(tmp_path: Path) -> None:
    points = "[{l: 1, k: 1, m: 0, c: 0.1}, {l: 1, k: 1, m: 0, c: 0.30000000000000004000}, {l: 1, k: 0, m: 0, c: 1e-1}]"
    text = json.dumps(SMALL | {"privacy": "POINTS"}).replace('"POINTS"', f"[{{skyline: {{points: {points}}}}}]")
    cs = [point.c for point in load(file(tmp_path, text), {}).privacy[0].points]
    assert [str(c) for c in cs] == ["0.1", "0.30000000000000004000", "0.1"]
    by_dict = load(changed("privacy", criterion("skyline", points=[POINT | {"c": 0.1}])), {})
    assert by_dict.privacy[0].points[0].c == Decimal("0.1")


def test_widths_that_floats_would_confuse_divide_exactly() -> None:
    data = changed("columns.quasi_identifiers.age", {"intervals": [0.1, 0.3]})
    assert load(data, {}).columns.quasi_identifiers["age"].intervals == [Decimal("0.1"), Decimal("0.3")]


def test_words_of_old_yaml_stay_text(tmp_path: Path) -> None:
    names = ["No", "on", "yes", "2024-01-01", "1:30", "0x1F", "1_000", "<<", "NULL_"]
    text = json.dumps(SMALL)[:-1] + ", method: {kind: partition}}"
    text = text.replace('["illness"]', "[illness], keep: [" + ", ".join(names) + "]")
    assert load(file(tmp_path, text), {}).columns.keep == names


def test_numbers_with_a_leading_zero_are_decimal(tmp_path: Path) -> None:
    assert load(file(tmp_path, json.dumps(SMALL).replace('"k": 2', '"k": 010')), {}).privacy[0].k == 10


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: [1, 2\nb: 3\n", "anon.yaml:2:", "not valid YAML"),
        ("a: 1\n b: 2\n", "anon.yaml:2:", "not valid YAML"),
        ("a: &x 1\nb: *x\n", "anon.yaml:2:4", "aliases are not supported"),
        ("a: &x [*x]\n", "anon.yaml:1:", "aliases are not supported"),
        ("a: 1\n---\nb: 2\n", "anon.yaml:2:", "not valid YAML"),
        ("a: 'x", "anon.yaml:1:", "not valid YAML"),
        ("", "anon.yaml", "the file is empty"),
        ("# nothing\n", "anon.yaml", "the file is empty"),
        ("- a\n- b\n", "anon.yaml", "expected a mapping"),
        ("just text", "anon.yaml", "expected a mapping"),
        ("a: \x01\n", "anon.yaml", "not text"),
        (b"PAR1\x00\xff\xfe\x80", "anon.yaml", "not UTF-8"),
        ("[" * 5000, "config", "nested too deeply"),
    ],
)
def test_a_file_that_is_no_config_is_refused_plainly(tmp_path: Path, text: str | bytes, place: str, words: str) -> None:
    (found,) = problems(file(tmp_path, text))
    assert place in found.path
    assert words in str(found)


def test_a_syntax_error_shows_its_line_with_a_caret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file(tmp_path, "source: {path: a}\ncolumns:\n  individual: row\n   sensitive: [illness]\n"))
    lines = str(caught.value).split("\n")
    assert lines[0].startswith("anon.yaml:4:13: not valid YAML: mapping values are not allowed here")
    assert lines[1:] == ["     sensitive: [illness]", "  " + " " * 12 + "^"]
    (problem,) = caught.value.to_dict()["problems"]
    assert problem["excerpt"].split("\n")[1].index("^") == 12


def test_a_syntax_error_says_where_the_open_bracket_is(tmp_path: Path) -> None:
    (found,) = problems(file(tmp_path, "a:\n  - [1, 2\nb: 3\n"))
    assert "that began on line 2" in str(found) and str(found).endswith("  b: 3\n   ^")


@pytest.mark.parametrize(
    "line",
    [
        "  postgres: {dsn: postgresql://me:hunter2@host/db, query: select 1",
        "  dsn: 'host=h password=hunter2 user=me",
        "  dsn: [hunter2",
        "  postgresql://me:hunter2 : @host : x",
        "hunter2@host]",
        "  password: [hunter2",
    ],
)
def test_a_line_that_may_hold_a_password_is_not_shown(tmp_path: Path, line: str) -> None:
    (found,) = problems(file(tmp_path, f"source:\n{line}\nrelease: ]\n"))
    assert "hunter2" not in str(found)
    (found,) = problems(file(tmp_path, f"source: [\n{line}\n: : ]\n"))
    assert "hunter2" not in str(found)


def test_a_long_or_unprintable_line_is_cut(tmp_path: Path) -> None:
    (found,) = problems(file(tmp_path, f"a: [{'x, ' * 300}]]\n"))
    shown, caret = str(found).split("\n")[1:]
    assert len(shown) < 110 and shown[caret.index("^")] == "]"
    (found,) = problems(file(tmp_path, "a:\n\tb: 1\n"))
    assert str(found).split("\n")[1:] == ["  \\tb: 1", "  ^"]


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    assert "no such file" in str(problems(tmp_path / "none.yaml")[0])
    assert "a folder" in str(problems(str(tmp_path))[0])
    assert "not a path" in str(problems("a\0b")[0])
    assert "a path, a mapping or a Config" in str(problems(3)[0])


def test_a_key_twice_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = "source: {path: a}\nrelease:\n  path: a\n  path: b\ncolumns: {}\n"
    found = problems(file(tmp_path, text))
    assert found[0].path == "release.path"
    assert "line 4" in found[0].found
    assert {problem.path for problem in found} >= {"columns.individual", "privacy"}


@pytest.mark.parametrize("key", ["1", "1.5", "true", "null"])
def test_a_key_that_is_not_text_must_be_quoted(tmp_path: Path, key: str) -> None:
    text = json.dumps(changed("privacy", [{"skyline": {"points": [POINT], "values": {"KEY": "exempt"}}}]))
    (found,) = problems(file(tmp_path, text.replace('"KEY"', key)))
    assert found.path.startswith("privacy[0].skyline.values")
    assert "quotes" in found.hint
    assert load(file(tmp_path, text.replace('"KEY"', f'"{key}"')), {}).privacy[0].values == {key: "exempt"}


@pytest.mark.parametrize("value", ["!!python/name:os.system x", "!mine x", "!!int x", "!!set {a}", "? [a]\n: b"])
def test_tags_and_nested_keys_are_refused(tmp_path: Path, value: str) -> None:
    found = problems(file(tmp_path, f"source:\n  {value}\n".replace("\n:", "\n  :")))
    assert found[0].path.startswith("source")
    assert "line 2" in found[0].found


def test_numbers_that_would_stop_exact_arithmetic_are_refused(tmp_path: Path) -> None:
    text = json.dumps(SMALL).replace('"age": {}', '"age": {"intervals": [1, 1e999999999]}')
    (found,) = problems(file(tmp_path, text))
    assert found.path == "columns.quasi_identifiers.age.intervals[1]"
    long = json.dumps(SMALL).replace('"k": 2', '"k": ' + "9" * 10_000)
    assert [problem.path for problem in problems(file(tmp_path, long))] == ["privacy[0].k_anonymity.k"]


def test_the_original_is_plain_json_and_loads_again() -> None:
    data = changed("privacy", criterion("skyline", points=[POINT | {"c": Decimal("0.3")}]))
    data["release"]["path"] = Path("out")
    first = load(data, {})
    again = load(json.loads(json.dumps(first.original)), {})
    assert again.privacy == first.privacy
    assert again.release == first.release


def test_paths_are_relative_to_the_folder_of_the_file_wherever_it_is_called_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "configs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "configs")
    data = changed("source.path", "../data/*.csv")
    data["columns"]["quasi_identifiers"]["age"] = {"hierarchy": "../data/age.csv"}
    file(tmp_path / "link", json.dumps(data))
    monkeypatch.chdir(tmp_path)
    config = load("link/anon.yaml", {})
    assert config.source.path == f"{tmp_path}/real/data/*.csv"
    assert config.columns.quasi_identifiers["age"].hierarchy == tmp_path / "real/data/age.csv"


def test_only_what_the_user_wrote_is_a_glob(tmp_path: Path) -> None:
    folder = tmp_path / "year[1]"
    folder.mkdir()
    text = json.dumps(SMALL)
    assert load(file(folder, text), {}).source.path == f"{folder}/t.csv"
    (folder / "a.csv").touch()
    pattern = load(file(folder, text.replace("t.csv", "*.csv")), {}).source.path
    assert glob.glob(pattern) == [f"{folder}/a.csv"]  # noqa: PTH207 - the absolute pattern as it stands


@pytest.mark.parametrize("name", ["group", "Count"])
def test_names_of_bucketized_columns_are_reserved_in_that_form_only(name: str) -> None:
    data = changed("columns.keep", ["a", name])
    assert load(data, {}).columns.keep == ["a", name]
    data["release"]["form"] = "bucketized"
    assert [problem.path for problem in problems(data)] == ["columns.keep[1]"]


def test_the_bucketized_form_takes_one_sensitive_column() -> None:
    data = changed("columns.sensitive", ["a", "b"])
    data["release"]["form"] = "bucketized"
    (found,) = problems(data)
    assert (found.path, "one sensitive column" in found.expected) == ("release.form", True)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1B", 1),
        ("2KB", 2000),
        ("1GB", 10**9),
        ("1.5 GB", 15 * 10**8),
        ("3TB", 3 * 10**12),
        ("1KiB", 1024),
        ("2gib", 2**31),
    ],
)
def test_sizes_are_in_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert load(changed("limits", {"memory": text}), {}).limits.memory == size


@pytest.mark.parametrize("text", ["", "5", "GB", "-1GB", "1e3GB", "1XB", "0.1B", "1GB!"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="2GB"):
        parse_size(text)


def test_lists_may_be_tuples_and_paths_may_be_paths(tmp_path: Path) -> None:
    data = changed("columns.keep", ("a", "b"))
    data["source"]["path"] = tmp_path / "t.csv"
    config = load(data, {})
    assert (config.columns.keep, config.source.path) == (["a", "b"], str(tmp_path / "t.csv"))


def test_a_tuple_of_sensitive_values_needs_no_single_column() -> None:
    data = changed("columns.sensitive", ["a", "b"])
    tuples = {"kind": "variational", "columns": ["a", "b"]}
    data["privacy"] = criterion("dissimilarity", epsilon=0.1, delta=0.5, k=2, distance=tuples)
    assert load(data, {}).privacy[0].sensitive is None
