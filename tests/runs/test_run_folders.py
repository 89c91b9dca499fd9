"""Damaged and foreign files of a run folder: `reuse`, `explain`, `report`, `plan` and the next run refuse them in one
clear sentence, also where another program wrote them with digests that are right."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import anon
from anon.artifacts.reading import VERSIONS, read_manifest, read_report, sealed, sealed_text
from anon.artifacts.recoding import TreeRecoding
from anon.artifacts.schema import Manifest, Report
from anon.commands.explain import explain as explanation_of
from anon.commands.plan import plan
from anon.core.progress import Progress
from anon.errors import ConfigError, UnsafeError
from anon.report import page, terminal, terminal_explanation
from anon.runs.options import DEFAULTS
from tests.conftest import House
from tests.search.test_reuse import METHODS, config, hierarchy, rows

FILES = ("manifest.json", "recoding.json", "report.json")
MUTATIONS = 30  # of each file of each method
OTHERS = (None, -1, 0, 10**9, 10**30, 0.5, 1e300, "x", "*", "", "\0", [], {}, True, [[]], {"a": {}})
NESTED = b'{"a":' * 3_000 + b"1" + b"}" * 3_000
FOREIGN = (b"", b"[]", b"3", b"null", b"\xff\xfe", b'{"version": 3}', b"[" * 100_000, NESTED)
SEALED = 6  # of each file of each method, with digests that are right
Json = dict[str, Any]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value that can be changed, as a container and a key."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def changed(data: Json, rng: random.Random) -> Json:
    """The data with an entry replaced, moved, renamed or removed; the fewer of a name there are, the more often."""
    data = copy.deepcopy(data)
    found = list(places(data))
    frequency = Counter(key for _, key in found)
    container, key = rng.choices(found, [1 / frequency[key] for _, key in found])[0]
    kind = rng.randrange(5)
    if kind == 0:
        del container[key]
    elif kind == 1:
        container[key] = copy.deepcopy(rng.choice(found)[0])
    elif kind == 2 and isinstance(container, dict):
        container[f"{key}s"] = container.pop(key)
    elif kind == 3 and isinstance(container, list):
        container.append(copy.deepcopy(container[key]))
    else:
        container[key] = rng.choice(OTHERS)
    return data


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with bytes changed or cut off, with an entry of its JSON changed, or something else altogether."""
    kind = rng.randrange(8)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    if kind == 1:
        at = rng.randrange(len(content))
        return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    if kind == 2:
        return rng.choice(FOREIGN)
    text = json.dumps(changed(json.loads(content), rng))
    if kind == 3:
        return text.replace("0", rng.choice(("NaN", "Infinity", "1e999", "9" * 5_000)), 1).encode()
    return text.encode()


def seal(run: Path, name: str, data: Json, indent: int | None = None) -> None:
    """Write a file of a run folder with digests that are right, as another program might."""
    own = data if name == "recoding.json" else sealed({key: value for key, value in data.items() if key != "sha256"})
    (run / name).write_text(json.dumps(own, indent=indent))
    if name == "recoding.json":
        manifest = json.loads((run / "manifest.json").read_bytes())
        manifest["recoding_sha256"] = hashlib.sha256((run / name).read_bytes()).hexdigest()
        seal(run, "manifest.json", manifest)


def explain(run: Path) -> None:
    terminal_explanation.show_explanation(Console(file=io.StringIO()), explanation_of(run, DEFAULTS, Progress()))


def run_again(made: Json) -> None:
    """Make the same run once more, which is up to date if its run folder is as it was."""
    result = anon.run(made, overwrite=True)
    terminal.show(Console(file=io.StringIO()), result.to_dict(), result.report, {"release": str(result.release)})


class Finished:
    """A run folder, the commands that read each of its files, and the files as they were."""

    def __init__(self, house: House, method: str) -> None:
        hierarchy(house)
        house.write(rows(1, 60))
        self.config, self.run = config(house, METHODS[method], "first"), house.folder / "first-run"
        anon.run(self.config)
        self.reuse = config(house, {"kind": "reuse", "run": str(self.run)}, "again")
        self.files = {name: (self.run / name).read_bytes() for name in FILES}

    def readers(self, name: str) -> list[Callable[[], object]]:
        reused = [lambda: anon.run(self.reuse, overwrite=True), lambda: plan(self.reuse)]
        return [lambda: explain(self.run), *([lambda: page.write(self.run)] if name == "report.json" else reused)]

    def restore(self) -> None:
        for name, content in self.files.items():
            (self.run / name).write_bytes(content)


@pytest.fixture(scope="module")
def finished_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finished]:
    """A run of each method, whose files tests damage."""
    return {method: Finished(House(tmp_path_factory.mktemp(method)), method) for method in METHODS}


@pytest.fixture
def finished(finished_runs: dict[str, Finished], method: str) -> Finished:
    """The run of the method of a test, with its files as they were."""
    finished_runs[method].restore()
    return finished_runs[method]


def refused(commands: list[Callable[[], object]]) -> int:
    """How many commands refuse a run folder; any other exception than ConfigError is a failure."""
    count = 0
    for command in commands:
        try:
            command()
        except ConfigError as error:
            assert "RUN" in str(error) or "method.run" in str(error)
            count += 1
    return count


@pytest.mark.parametrize("method", METHODS)
def test_a_damaged_file_of_a_run_folder_is_refused(finished: Finished, method: str) -> None:
    rng = random.Random(method)
    for name, original in finished.files.items():
        readers = finished.readers(name)
        assert refused(readers) == 0
        for _ in range(MUTATIONS):
            content = mutated(original, rng)
            if content not in (original, json.dumps(json.loads(original)).encode()):
                (finished.run / name).write_bytes(content)
                assert refused(readers) == len(readers)
        finished.restore()


@pytest.mark.parametrize("method", ["partition"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_run_is_refused(house: House, finished: Finished, name: str) -> None:
    hierarchy(house)
    anon.run(config(house, METHODS["partition"], "second", k=5), rows(2, 80))
    (finished.run / name).write_bytes((house.folder / "second-run" / name).read_bytes())
    assert refused(finished.readers(name)) == {"manifest.json": 3, "recoding.json": 3, "report.json": 1}[name]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_recoding_that_another_program_wrote_on_other_lines_is_read(finished: Finished, indent: int | None) -> None:
    seal(finished.run, "recoding.json", json.loads(finished.files["recoding.json"]), indent)
    assert refused(finished.readers("recoding.json")) == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_file_that_another_program_sealed_is_used_or_refused(finished: Finished, method: str) -> None:
    rng = random.Random(method)
    outcomes: Counter[str] = Counter()
    for name, original in finished.files.items():
        for _ in range(SEALED):
            data = changed(json.loads(original), rng)
            for command in (*finished.readers(name), lambda: run_again(finished.config)):
                finished.restore()
                seal(finished.run, name, data)
                try:
                    command()
                    outcomes["used"] += 1
                except (ConfigError, UnsafeError) as error:  # rows may have no place in another recoding
                    outcomes[type(error).__name__] += 1
    assert outcomes["ConfigError"] > outcomes["UnsafeError"]


VERSION_KEY = {"manifest.json": "version", "report.json": "version", "recoding.json": "format"}
REQUIRED = {
    "manifest.json": [name for name, info in Manifest.model_fields.items() if info.is_required()],
    "report.json": [name for name, info in Report.model_fields.items() if info.is_required()],
    "recoding.json": [name for name, info in TreeRecoding.model_fields.items() if info.is_required()],
}


def one_error(commands: list[Callable[[], object]], words: str) -> None:
    """Every command gives the same single problem, with the exit code of a mistake in the input."""
    for command in commands:
        with pytest.raises(ConfigError) as error:
            command()
        assert error.value.exit_code == 2 and len(error.value.problems) == 1
        assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("method", ["partition"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_version_is_named_with_both_versions(finished: Finished, name: str) -> None:
    known = VERSIONS[name]
    own = known[-1]
    seal(finished.run, name, json.loads(finished.files[name]) | {VERSION_KEY[name]: own + 1})
    words = (
        f"found a {name} of version {own + 1}; expected version {' or '.join(map(str, known))}, which this anon writes"
    )
    one_error(finished.readers(name), words)


@pytest.mark.parametrize("method", ["partition"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_without_a_field_that_is_read_is_refused(finished: Finished, name: str) -> None:
    for field in REQUIRED[name]:
        finished.restore()
        data = json.loads(finished.files[name])
        del data[field]
        seal(finished.run, name, data)
        one_error(finished.readers(name), f"a {name} that is damaged or that anon did not write")


@pytest.mark.parametrize("method", ["partition"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"no JSON", b'{"name": "adult", "version": "1.0", "resources": []}'])
def test_a_file_of_another_program_is_refused(finished: Finished, name: str, content: bytes) -> None:
    (finished.run / name).write_bytes(content)
    other = "a recoding.json that is not the one this run wrote"
    one_error(finished.readers(name), other if name == "recoding.json" else f"a {name} that is damaged or that anon")
    if name != "recoding.json":
        return
    manifest = json.loads(finished.files["manifest.json"])
    seal(finished.run, "manifest.json", manifest | {"recoding_sha256": hashlib.sha256(content).hexdigest()})
    one_error(finished.readers(name), f"a {name} that is damaged or that anon did not write")


@pytest.mark.parametrize("method", METHODS)
def test_a_model_is_written_as_it_was_read(finished: Finished) -> None:
    assert sealed_text(read_manifest(finished.run)).encode() == finished.files["manifest.json"]
    assert sealed_text(read_report(finished.run)).encode() == finished.files["report.json"]
