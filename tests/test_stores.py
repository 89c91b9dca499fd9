"""Parquet and CSV on an object store as the source, and a release on one, against an S3 server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import anon
from anon import publish_store
from anon.errors import ConfigError, SourceError
from anon.source import stores
from tests.conftest import House
from tests.helpers_source import as_csv
from tests.services import SECRET_KEY, azure_server, s3_server

ROWS = pa.table(
    {
        "name": [f"Person {i}" for i in range(240)],
        "age": [20 + i % 7 for i in range(240)],
        "zip": [f"0213{i % 5}" for i in range(240)],
        "disease": ["Flu" if i % 3 else "HIV" for i in range(240)],
    }
)


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    yield from s3_server()


@pytest.fixture
def bucket(server: dict[str, str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A bucket for this test, in the environment that finds the server."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{abs(hash(request.node.name))}"
    files, _ = fs.FileSystem.from_uri("s3://any-bucket")
    fs.S3FileSystem(allow_bucket_creation=True, endpoint_override=server["AWS_ENDPOINT_URL"]).create_dir(name)
    assert files is not None
    return name


def put(place: str, content: bytes) -> None:
    files, path = fs.FileSystem.from_uri(f"s3://{place}")
    with files.open_output_stream(path) as stream:
        stream.write(content)


def get(place: str) -> bytes:
    files, path = fs.FileSystem.from_uri(f"s3://{place}")
    with files.open_input_stream(path) as stream:
        found: bytes = stream.read()
    return found


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=50)
    return sink.getvalue().to_pybytes()


def config(house: House, source: str, **changes: Any) -> dict[str, Any]:
    made = house.config(**({"columns__identifiers": ["name"]} | changes))
    made["source"] = {"path": source}
    return made


def from_file(house: House) -> bytes:
    house.write(ROWS)
    house.run(columns__identifiers=["name"])
    return house.bytes()


def fill(bucket: str) -> None:
    put(f"{bucket}/all.parquet", parquet(ROWS))
    put(f"{bucket}/all.csv", as_csv(ROWS))
    for part in range(3):
        put(f"{bucket}/parts/day={part}/part-{part}.parquet", parquet(ROWS.slice(80 * part, 80)))
        put(f"{bucket}/csv/part-{part}.csv", as_csv(ROWS.slice(80 * part, 80)))
    put(f"{bucket}/parts/_SUCCESS", b"")
    put(f"{bucket}/parts/_temporary/0/junk.parquet", b"not for us")


@pytest.mark.parametrize(
    "place",
    ["all.parquet", "all.csv", "parts", "parts/", "parts/*/*.parquet", "parts/**/part-?.parquet", "parts/day=*", "csv"],
)
def test_objects_give_the_release_of_a_file(house: House, bucket: str, place: str) -> None:
    fill(bucket)
    expected = from_file(house)
    anon.run(config(house, f"s3://{bucket}/{place}"), overwrite=True)
    assert house.bytes() == expected
    assert house.leftovers() == []
    listed = json.loads((house.folder / "out-run" / "manifest.json").read_text())["source"]
    assert all(part["file"].startswith(f"{bucket}/") and part["bytes"] > 0 for part in listed)


def test_identifiers_are_not_fetched_into_the_spill(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket)
    seen: list[list[str]] = []
    register = stores.register_files

    def look(con: Any, name: str, paths: list[Path], *more: Any, **rest: Any) -> Any:
        seen.extend(pq.read_schema(path).names for path in paths)
        return register(con, name, paths, *more, **rest)

    monkeypatch.setattr(stores, "register_files", look)
    anon.run(config(house, f"s3://{bucket}/parts"))
    assert seen == [["age", "zip", "disease"]] * 3


def test_an_object_that_changes_while_it_is_copied_is_exit_5(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket)
    copy = stores._copy

    def changing(parquet_file: Any, schema: Any, to: Path) -> None:
        copy(parquet_file, schema, to)
        put(f"{bucket}/all.parquet", parquet(ROWS.slice(0, 200)))

    monkeypatch.setattr(stores, "_copy", changing)
    with pytest.raises(SourceError, match="the source changed while it was being read"):
        anon.run(config(house, f"s3://{bucket}/all.parquet"))
    assert not (house.folder / "out").exists()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nothing.parquet", "no object there"),
        ("broken.parquet", "not a Parquet file, or it is cut off"),
        ("words.parquet", "neither a Parquet file nor named .csv"),
        ("mixed", "some objects are CSV and some are not"),
        ("differ", "not the same columns and types"),
    ],
)
def test_objects_that_cannot_be_read_are_exit_5(house: House, bucket: str, place: str, words: str) -> None:
    put(f"{bucket}/broken.parquet", parquet(ROWS)[:-9])
    put(f"{bucket}/words.parquet", b"some words")
    put(f"{bucket}/mixed/a.csv", as_csv(ROWS))
    put(f"{bucket}/mixed/b.parquet", parquet(ROWS))
    put(f"{bucket}/differ/a.parquet", parquet(ROWS))
    put(f"{bucket}/differ/b.parquet", parquet(ROWS.set_column(1, "age", ROWS["age"].cast(pa.string()))))
    with pytest.raises(SourceError, match=words):
        anon.run(config(house, f"s3://{bucket}/{place}"))


def test_a_bucket_that_is_not_there_is_exit_5(house: House, bucket: str) -> None:
    with pytest.raises(SourceError, match="no such bucket"):
        anon.run(config(house, "s3://nowhere-at-all/x.parquet"))


def test_credentials_in_a_place_are_refused_without_being_shown(house: House) -> None:
    with pytest.raises(ConfigError, match="a place with credentials in it") as caught:
        anon.run(config(house, "s3://key:written@bucket/x.parquet"))
    assert "written" not in str(caught.value)


def on_store(house: House, place: str) -> dict[str, Any]:
    made = house.config(columns__identifiers=["name"])
    made["release"] = {"path": f"s3://{place}", "run": str(house.folder / "out-run")}
    return made


def names(place: str) -> list[str]:
    return sorted(publish_store.names_at(f"s3://{place}"))


def test_a_release_on_a_store_has_the_bytes_of_one_in_a_folder(house: House, bucket: str) -> None:
    expected, package = from_file(house), (house.folder / "out" / "datapackage.json").read_bytes()
    result = anon.run(on_store(house, f"{bucket}/out"), overwrite=True)
    assert result.release == f"s3://{bucket}/out"
    assert names(f"{bucket}/out") == ["datapackage.json", "release.parquet"]
    assert get(f"{bucket}/out/release.parquet") == expected
    assert get(f"{bucket}/out/datapackage.json") == package
    assert house.leftovers() == []


def test_a_release_on_a_store_is_replaced_only_when_told_to(house: House, bucket: str) -> None:
    house.write(ROWS)
    anon.run(on_store(house, f"{bucket}/out"))
    house.write(ROWS.slice(0, 200))
    with pytest.raises(ConfigError, match="which exists"):
        anon.run(on_store(house, f"{bucket}/out"))
    csv = on_store(house, f"{bucket}/out")
    csv["release"]["format"] = "csv"
    anon.run(csv, overwrite=True)
    assert names(f"{bucket}/out") == ["datapackage.json", "release.csv"]
    put(f"{bucket}/out/notes.txt", b"mine")
    with pytest.raises(ConfigError, match="which holds what no run wrote"):
        anon.run(csv, overwrite=True, force=True)


@pytest.mark.parametrize("failing", ["release.parquet", "datapackage.json"])
def test_an_upload_that_breaks_off_leaves_no_release(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    house.write(ROWS)
    put_whole = stores.Store.put

    def broken(self: stores.Store, file: Path, name: str) -> None:
        put_whole(self, file, name)
        if name == failing:
            raise SourceError("the network broke")

    monkeypatch.setattr(stores.Store, "put", broken)
    with pytest.raises(SourceError, match="the network broke"):
        anon.run(on_store(house, f"{bucket}/out"))
    assert names(f"{bucket}/out") == []
    assert not (house.folder / "out-run").exists()


def test_the_marker_is_there_only_while_the_whole_release_is(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(ROWS)
    anon.run(on_store(house, f"{bucket}/out"))
    seen: list[tuple[str, bool]] = []
    put_whole = stores.Store.put

    def look(self: stores.Store, file: Path, name: str) -> None:
        seen.append((name, "datapackage.json" in names(f"{bucket}/out")))
        put_whole(self, file, name)

    monkeypatch.setattr(stores.Store, "put", look)
    anon.run(on_store(house, f"{bucket}/out"), overwrite=True, force=True)
    assert seen == [("release.parquet", False), ("datapackage.json", False)]


def test_what_a_store_changed_on_the_way_is_not_a_release(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(ROWS)
    put_whole = stores.Store.put

    def changed(self: stores.Store, file: Path, name: str) -> None:
        put_whole(self, file, name)
        if name == "release.parquet":
            put(f"{bucket}/out/{name}", b"other bytes")

    monkeypatch.setattr(stores.Store, "put", changed)
    with pytest.raises(anon.errors.VerificationError, match="is not what was written"):
        anon.run(on_store(house, f"{bucket}/out"))
    assert names(f"{bucket}/out") == []


def test_a_release_on_a_store_is_up_to_date_until_it_is_changed(house: House, bucket: str) -> None:
    house.write(ROWS)
    made = on_store(house, f"{bucket}/out")
    anon.run(made)
    assert anon.run(made).facts["up_to_date"]
    put(f"{bucket}/out/release.parquet", b"other bytes")
    with pytest.raises(ConfigError, match="which exists"):
        anon.run(made)


def test_the_run_folder_of_a_release_on_a_store_is_local(house: House) -> None:
    made = house.config()
    made["release"] = {"path": "s3://bucket/out"}
    with pytest.raises(ConfigError, match=r"release\.run: found nothing; expected a local folder"):
        anon.run(made)
    made["release"] = {"path": "s3://bucket/out", "run": str(house.folder / "out-run")}
    made["source"] = {"path": "s3://bucket/out/*.parquet"}
    with pytest.raises(ConfigError, match="folders that do not contain the source"):
        anon.run(made)


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for environment in azure_server():
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


def test_azure_is_read_and_written_too(house: House, azure: None) -> None:
    expected = from_file(house)
    place = stores.Store("az://house/extract")
    place.files.create_dir("house")
    place.put(house.folder / "table.parquet", "table.parquet")
    made = on_store(house, "")
    made["source"], made["release"]["path"] = {"path": "az://house/extract/*.parquet"}, "az://house/out"
    anon.run(made, overwrite=True)
    with stores.Store("az://house/out").files.open_input_stream("house/out/release.parquet") as stream:
        assert stream.read() == expected
    assert anon.run(made).facts["up_to_date"]


def test_an_azure_account_must_be_named(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SourceError, match="set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING"):
        anon.run(config(house, "az://house/x.parquet"))


def test_out_names_a_local_folder(house: House) -> None:
    house.write(ROWS)
    with pytest.raises(ConfigError, match="--out: found a place on a store"):
        anon.run(house.config(), out="s3://bucket/out")


def test_the_secret_key_is_in_nothing_that_a_run_leaves(house: House, bucket: str) -> None:
    fill(bucket)
    made = on_store(house, f"{bucket}/out")
    made["source"] = {"path": f"s3://{bucket}/parts"}
    anon.run(made)
    left = [path.read_bytes() for path in house.folder.rglob("*") if path.is_file()]
    assert left
    assert not any(SECRET_KEY.encode() in content for content in left)
