"""Parquet and CSV on an object store as the source, and a release on one: the same on S3, on Google's store and on
Azure's, against servers on loopback."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import anon
from anon.commands import series
from anon.errors import ConfigError, SourceError
from anon.release import stores as publish_store
from anon.source import stores
from tests.conftest import House
from tests.helpers.series import People, extract, series_config
from tests.helpers.services import STORE_SERVERS, StoreServer
from tests.helpers.source import as_csv

ROWS = pa.table(
    {
        "name": [f"Person {i}" for i in range(240)],
        "age": [20 + i % 7 for i in range(240)],
        "zip": [f"0213{i % 5}" for i in range(240)],
        "disease": ["Flu" if i % 3 else "HIV" for i in range(240)],
    }
)


@pytest.fixture(scope="module", params=STORE_SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    yield from STORE_SERVERS[request.param]()


@pytest.fixture
def bucket(server: StoreServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A bucket for this test, in the environment that finds the server."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    scheme, name = request.node.callspec.params["server"], f"bucket-{abs(hash(request.node.name))}"
    may_create = fs.FileSystem.from_uri("s3://any?allow_bucket_creation=true")[0] if scheme == "s3" else None
    (may_create or stores.Store(f"{scheme}://{name}").files).create_dir(name)
    return f"{scheme}://{name}"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run makes of the rows in a file: the bytes of its release."""
    house = House(tmp_path_factory.mktemp("house"))
    house.write(ROWS)
    house.run(columns__identifiers=["name"])
    return {path.name: path.read_bytes() for path in (house.folder / "out").iterdir()}


def put(place: str, content: bytes) -> None:
    store = stores.Store(place)
    with store.files.open_output_stream(store.path) as stream:
        stream.write(content)


def get(place: str) -> bytes:
    store = stores.Store(place)
    with store.files.open_input_stream(store.path) as stream:
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


def fill(bucket: str) -> None:
    put(f"{bucket}/all.parquet", parquet(ROWS))
    put(f"{bucket}/all.csv", as_csv(ROWS))
    put(f"{bucket}/all.csv.gz", gzip.compress(as_csv(ROWS)))
    for part in range(3):
        put(f"{bucket}/parts/day={part}/part-{part}.parquet", parquet(ROWS.slice(80 * part, 80)))
        put(f"{bucket}/csv/part-{part}.csv", as_csv(ROWS.slice(80 * part, 80)))
    put(f"{bucket}/parts/_SUCCESS", b"")
    put(f"{bucket}/parts/_temporary/0/junk.parquet", b"not for us")
    put(f"{bucket}/odd/ä b+c%20#&;=.parquet", parquet(ROWS))
    folder = stores.Store(f"{bucket}/parts/nothing.parquet")
    folder.files.create_dir(folder.path)


@pytest.mark.parametrize(
    "place",
    [
        "all.parquet",
        "all.csv",
        "all.csv.gz",
        "parts",
        "parts/",
        "parts/*/*.parquet",
        "parts/**/part-?.parquet",
        "parts/day=*",
        "csv",
        "odd",
        "odd/ä b+c%20#&;=.parquet",
    ],
)
def test_objects_give_the_release_of_a_file(house: House, bucket: str, released: dict[str, bytes], place: str) -> None:
    fill(bucket)
    anon.run(config(house, f"{bucket}/{place}"))
    assert house.bytes() == released["release.parquet"]
    assert house.leftovers() == []
    listed = json.loads((house.folder / "out-run" / "manifest.json").read_text())["source"]
    begin = bucket.partition("://")[2]
    assert all(part["file"].startswith(f"{begin}/") and part["bytes"] > 0 for part in listed)


def test_identifiers_are_not_fetched_into_the_spill(house: House, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bucket)
    seen: list[list[str]] = []
    register = stores.register_files

    def look(con: Any, name: str, paths: list[Path], *more: Any, **rest: Any) -> Any:
        seen.extend(pq.read_schema(path).names for path in paths)
        return register(con, name, paths, *more, **rest)

    monkeypatch.setattr(stores, "register_files", look)
    anon.run(config(house, f"{bucket}/parts"))
    assert seen == [["age", "zip", "disease", "token of name"]] * 3


def test_people_who_have_several_rows_are_found(house: House, bucket: str) -> None:
    """Equal names have equal tokens, also in different objects and next to rows without one."""
    names = [None if i % 60 == 7 else f"Person {i % 60}" for i in range(240)]
    table = ROWS.set_column(ROWS.column_names.index("name"), "name", [names])
    for part in range(3):
        put(f"{bucket}/parts/{part}.parquet", parquet(table.slice(80 * part, 80)))
    told = anon.run(config(house, f"{bucket}/parts")).to_dict()
    assert {warning["code"]: warning["count"] for warning in told["warnings"]}["repeated_identifier"] == 236


def test_an_object_that_changes_while_it_is_copied_is_exit_5(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket)
    copy = stores.copy_batches

    def changing(*about: Any) -> None:
        copy(*about)
        put(f"{bucket}/all.parquet", parquet(ROWS.slice(0, 200)))

    monkeypatch.setattr(stores, "copy_batches", changing)
    with pytest.raises(SourceError, match="the source changed while it was being read"):
        anon.run(config(house, f"{bucket}/all.parquet"))
    assert not (house.folder / "out").exists()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nothing.parquet", "no object there"),
        ("broken.parquet", "not a Parquet file, or it is cut off"),
        ("words.parquet", "it is no Parquet file, and is not named .csv"),
        ("mixed", "some objects are CSV and some Parquet"),
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
        anon.run(config(house, f"{bucket}/{place}"))


def test_a_bucket_that_is_not_there_is_exit_5(house: House, bucket: str) -> None:
    nowhere = f"{bucket.partition('://')[0]}://nowhere-at-all"
    with pytest.raises(SourceError, match="no such bucket"):
        anon.run(config(house, f"{nowhere}/x.parquet"))
    house.write(ROWS)
    with pytest.raises(SourceError, match="there is no such"):
        anon.run(on_store(house, f"{nowhere}/out"))


def test_objects_of_many_parts_come_back_as_they_were(bucket: str, tmp_path: Path) -> None:
    """Uploads in several requests, reads that begin and end anywhere."""
    content = os.urandom(3_000_000) * 3
    (tmp_path / "there").write_bytes(content)
    store = stores.Store(f"{bucket}/large")
    store.put(tmp_path / "there", "object")
    store.get(f"{store.path}/object", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    with store.files.open_input_file(f"{store.path}/object") as file:
        assert file.read_at(1_000, 7_000_000) == content[7_000_000:7_001_000]
        assert file.read(4) == content[:4]


def test_a_store_that_does_not_answer_is_exit_5(
    house: House, bucket: str, server: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "PATIENCE", timedelta(seconds=1))
    for name, value in server.environment.items():
        monkeypatch.setenv(name, re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9", value))
    with pytest.raises(SourceError, match="the store does not answer"):
        anon.run(config(house, f"{bucket}/x.parquet"))


def test_credentials_in_a_place_are_refused_without_being_shown(house: House) -> None:
    with pytest.raises(ConfigError, match="a place with credentials in it") as caught:
        anon.run(config(house, "s3://key:written@bucket/x.parquet"))
    assert "written" not in str(caught.value)


def on_store(house: House, place: str) -> dict[str, Any]:
    made = house.config(columns__identifiers=["name"])
    made["release"] = {"path": place, "run": str(house.folder / "out-run")}
    return made


def names(place: str) -> list[str]:
    return sorted(publish_store.names_at(place))


def test_a_release_on_a_store_has_the_bytes_of_one_in_a_folder(
    house: House, bucket: str, released: dict[str, bytes]
) -> None:
    house.write(ROWS)
    result = anon.run(on_store(house, f"{bucket}/out"))
    assert result.release == f"{bucket}/out"
    assert names(f"{bucket}/out") == ["datapackage.json", "release.parquet"]
    assert {name: get(f"{bucket}/out/{name}") for name in names(f"{bucket}/out")} == released
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

    def broken(self: stores.Store, file: Path, name: str, via: str | None = None) -> None:
        put_whole(self, file, name, via)
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

    def look(self: stores.Store, file: Path, name: str, via: str | None = None) -> None:
        seen.append((name, "datapackage.json" in names(f"{bucket}/out")))
        put_whole(self, file, name, via)

    monkeypatch.setattr(stores.Store, "put", look)
    anon.run(on_store(house, f"{bucket}/out"), overwrite=True, force=True)
    assert seen == [("release.parquet", False), ("datapackage.json", False)]


def test_the_marker_is_seen_only_when_it_is_whole(bucket: str) -> None:
    store, seen = stores.Store(f"{bucket}/out"), []

    class Marker:
        def open(self, mode: str) -> io.BytesIO:
            return Looking(b"{}")

    class Looking(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            seen.append(names(f"{bucket}/out"))
            return super().read(size)

    store.put(Marker(), publish_store.MARKER, via=publish_store.PENDING)
    assert seen == [[], []]
    assert get(f"{bucket}/out/datapackage.json") == b"{}"
    assert [info.base_name for info in store.list()] == ["datapackage.json"]


def test_what_a_store_changed_on_the_way_is_not_a_release(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(ROWS)
    put_whole = stores.Store.put

    def changed(self: stores.Store, file: Path, name: str, via: str | None = None) -> None:
        put_whole(self, file, name, via)
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


def test_out_names_a_local_folder(house: House) -> None:
    house.write(ROWS)
    with pytest.raises(ConfigError, match=r"^out: found a place on a store"):
        anon.run(house.config(), out="s3://bucket/out")


def test_the_secret_key_is_in_nothing_that_a_run_leaves(house: House, bucket: str, server: StoreServer) -> None:
    fill(bucket)
    made = on_store(house, f"{bucket}/out")
    made["source"] = {"path": f"{bucket}/parts"}
    anon.run(made)
    left = [path.read_bytes() for path in house.folder.rglob("*") if path.is_file()]
    assert left
    assert not any(server.secret.encode() in content for content in left)


def series_on_store(house: House, bucket: str) -> dict[str, Any]:
    """Publish two parts of a series on a store."""
    made = series_config(house.folder)
    made["release"]["path"] = f"{bucket}/out"
    people = People(21)
    for size in (40, 30):
        extract(house.folder, people.arrive(size))
        anon.run(made)
    extract(house.folder, list(people.known.values()))
    return made


def fetched(bucket: str, folder: Path) -> Path:
    """Return a folder with a copy of the objects of a series."""
    publish_store.copy_release(f"{bucket}/out", folder)
    return folder


def test_a_series_on_a_store_is_added_to_and_made_again(house: House, bucket: str) -> None:
    made = series_on_store(house, bucket)
    parts = ["part-000001.parquet", "part-000002.parquet"]
    assert names(f"{bucket}/out") == ["datapackage.json", *parts]
    assert anon.check(made, fetched(bucket, house.folder / "copy")).facts["individuals"] == 70
    assert anon.run(made).to_dict()["series"]["again"] == 70
    shutil.rmtree(house.folder / "run")
    with pytest.raises(ConfigError, match="without a ledger"):
        anon.run(made)
    assert series.rebuild(made).facts["certain"] == 70
    before = {name: get(f"{bucket}/out/{name}") for name in parts}
    extract(house.folder, People(99).arrive(1))
    tighter = made | {"privacy": [*made["privacy"], {"ck_safety": {"c": 0.99, "k": 1}}]}  # looks back at the parts
    assert anon.run(tighter).to_dict()["series"]["released"] == 70
    assert {name: get(f"{bucket}/out/{name}") for name in parts} == before


def test_a_withdrawal_on_a_store_replaces_its_objects(house: House, bucket: str) -> None:
    made = series_on_store(house, bucket)
    (house.folder / "ids.txt").write_text("p0\n")
    before = get(f"{bucket}/out/part-000002.parquet")
    gone = series.withdraw(made, house.folder / "ids.txt", yes=True).facts
    assert anon.check(made, fetched(bucket, house.folder / "copy")).facts["individuals"] == 69 - gone["others"]
    assert get(f"{bucket}/out/part-000002.parquet") == before
    package = json.loads(get(f"{bucket}/out/datapackage.json"))
    assert [each["rows"] for each in package["resources"]] == [39 - gone["others"], 30]
    assert anon.run(made).to_dict()["series"] == {"part": None, "new": 0, "waiting": 0, "released": 69 - gone["others"],
                                                  "again": 70}  # fmt: skip


@pytest.mark.parametrize("failing", ["", "part-000001.parquet", "datapackage.json"])
def test_a_withdrawal_on_a_store_that_breaks_off_is_completed_by_the_next_start(
    house: House, bucket: str, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The description is away until the withdrawal is complete; one that has not begun is undone."""
    made = series_on_store(house, bucket)
    (house.folder / "ids.txt").write_text("p0\n")
    put_whole, delete = stores.Store.put, stores.Store.delete

    def broken(self: stores.Store, file: Path, name: str, via: str | None = None) -> None:
        if name == failing:
            raise SourceError("the network broke")
        put_whole(self, file, name, via)

    def unreachable(self: stores.Store, name: str) -> None:
        raise SourceError("the network broke")

    with monkeypatch.context() as patched:
        patched.setattr(stores.Store, "put", broken)
        patched.setattr(stores.Store, "delete", delete if failing else unreachable)
        with pytest.raises(SourceError, match="not finished" if failing else "nothing was published"):
            series.withdraw(made, house.folder / "ids.txt", yes=True)
    assert ("datapackage.json" in names(f"{bucket}/out")) == (not failing)
    status = series.status(made).facts
    assert (status["withdrawn"], status["released"] < 70) == ((1, True) if failing else (0, False))
    assert "datapackage.json" in names(f"{bucket}/out") and house.leftovers() == []
