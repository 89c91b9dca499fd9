"""Object stores (s3://, gs://, az://) through the file systems of pyarrow: listing, reading and writing. As a source
(config -> source -> cube -> search -> release -> verify -> report) the files of a place are copied once to the private
spill, Parquet without the columns that are not used; publish.py writes a verified release here. Credentials come from
the environment of the process, where the client library of each store looks for them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from anon import interrupt
from anon.config import Columns
from anon.errors import SourceError
from anon.source.origins import CHANGED, Mark, Origin, wanted
from anon.source.tables import FORMATS, PARQUET_BEGINS, Take, register_files

BATCH = 65_536  # rows
CHUNK = 4_000_000  # bytes
WORDS = {
    "NO_SUCH_BUCKET": "there is no such bucket",
    "NO_SUCH_KEY": "there is no such object",
    "ACCESS_DENIED": "access was denied",
    "INVALID_ACCESS_KEY_ID": "the access key is not known there",
    "SIGNATURE_DOES_NOT_MATCH": "the secret of the access key is wrong",
    "ContainerNotFound": "there is no such container",
    "AuthenticationFailed": "the credentials were refused",
    "AuthorizationFailure": "access was denied",
    "Parquet magic bytes": "it is not a Parquet file, or it is cut off",
    "Parquet file size": "it is not a Parquet file, or it is cut off",
    "NETWORK_CONNECTION": "the store does not answer",
    "Couldn't connect": "the store does not answer",
    "could not connect": "the store does not answer",
}


class Store:
    """A place in an object store, and the file system that reaches it."""

    def __init__(self, uri: str) -> None:
        self.uri, (scheme, _, self.path) = uri, uri.partition("://")
        with reaching(uri):
            self.files = _azure() if scheme == "az" else fs.FileSystem.from_uri(f"{scheme}://{self.bucket}")[0]

    @property
    def bucket(self) -> str:
        return self.path.partition("/")[0]

    def list(self, folder: str | None = None) -> list[fs.FileInfo]:
        """The objects below a folder, in the order of their names; none if it is not there."""
        below = fs.FileSelector(self.path if folder is None else folder, recursive=True, allow_not_found=True)
        with reaching(self.uri):
            found = [info for info in self.files.get_file_info(below) if info.type == fs.FileType.File]
        return sorted(found, key=lambda info: info.path)

    def get(self, path: str, to: Path) -> None:
        """Copies an object to a file."""
        with reaching(path), self.files.open_input_stream(path) as stream, to.open("xb") as file:
            while chunk := stream.read(CHUNK):
                file.write(chunk)
                interrupt.check()

    def put(self, file: Path, name: str) -> None:
        """Copies a file to an object of the place, which can be seen when it is whole."""
        path = f"{self.path}/{name}"
        with reaching(path), file.open("rb") as data, self.files.open_output_stream(path) as stream:
            while chunk := data.read(CHUNK):
                stream.write(chunk)

    def delete(self, name: str) -> None:
        """Removes an object of the place if it is there."""
        path = f"{self.path}/{name}"
        with reaching(path):
            if self.files.get_file_info(path).type == fs.FileType.File:
                self.files.delete_file(path)


def _azure() -> fs.FileSystem:
    """The account that the environment names, as Azure's own tools find it."""
    said = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    given = dict(part.split("=", 1) for part in said.split(";") if "=" in part)
    account = given.get("AccountName") or os.environ.get("AZURE_STORAGE_ACCOUNT")
    if not account:
        raise SourceError("az://: no account; set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING")
    key = given.get("AccountKey") or os.environ.get("AZURE_STORAGE_KEY")
    token = given.get("SharedAccessSignature") or os.environ.get("AZURE_STORAGE_SAS_TOKEN")
    options: dict[str, Any] = {"account_key": key} if key else {"sas_token": token} if token else {}
    if endpoint := re.match(r"(https?)://([^/]+)", given.get("BlobEndpoint", "")):
        scheme, authority = endpoint.groups()
        options |= {"blob_storage_scheme": scheme, "blob_storage_authority": authority}
        options |= {"dfs_storage_scheme": scheme, "dfs_storage_authority": authority}
    return fs.AzureFileSystem(account, **options)


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Failures of a store in words of our own: what its libraries say may hold more than a log should."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        said = str(error)
        code = re.search(r"AWS Error (\w+)|ErrorCode: (\w+)", said)
        reason = next((words for mark, words in WORDS.items() if mark in said), "")
        named = next(filter(None, code.groups()), "") if code else type(error).__name__
        raise SourceError(f"{what}: {reason or f'the store refused it ({named})'}") from None


class StoredFiles(Origin):
    """Parquet or CSV objects: one, a glob, or all below a folder."""

    def __init__(self, uri: str) -> None:
        self.store = Store(uri)
        self.marks = self._listed()

    def _listed(self) -> list[Mark]:
        """Name, size and time of change of the objects; their names begin with the bucket."""
        path = self.store.path
        fixed = next((at for at, letter in enumerate(path) if letter in "*?["), None)
        folder = path if fixed is None else path[:fixed].rpartition("/")[0]
        if fixed is not None and not folder:
            raise SourceError(f"{self.store.uri}: a pattern in place of the bucket; name one")
        infos = self.store.list(folder)
        if fixed is None:
            with reaching(self.store.uri):
                own = self.store.files.get_file_info(path)
            chosen = [own] if own.type == fs.FileType.File else [i for i in infos if _is_table(i.path, folder)]
        else:
            chosen = [info for info in infos if _chosen(info.path, path)]
        if not chosen:
            with reaching(self.store.uri):
                if self.store.files.get_file_info(self.store.bucket).type == fs.FileType.NotFound:
                    raise SourceError(f"{self.store.uri}: there is no such bucket, or no access to it")
            raise SourceError(f"{self.store.uri}: no object there, or none that is named .parquet or .csv")
        return [(info.path, int(info.size), int(info.mtime_ns or 0)) for info in chosen]

    def register(self, con: duckdb.DuckDBPyConnection, name: str, columns: Columns, spill: Path) -> None:
        take, paths = wanted(columns), [path for path, _, _ in self.marks]
        kinds = {PurePosixPath(path).suffix.lower() == ".csv" for path in paths}
        if len(kinds) > 1:
            raise SourceError(f"{self.store.uri}: some objects are CSV and some are not; choose one kind")
        if kinds == {True}:
            self._register_csv(con, name, paths, take, spill)
        else:
            register_files(con, name, self._copied(paths, take, spill / name), spill)
        self.check_unchanged()

    def check_unchanged(self) -> None:
        if self._listed() != self.marks:
            raise SourceError(CHANGED)

    def _register_csv(
        self, con: duckdb.DuckDBPyConnection, name: str, paths: list[str], take: Take, spill: Path
    ) -> None:
        """Fetches the objects for as long as DuckDB makes Parquet of what is wanted of them."""
        files = []
        for number, path in enumerate(paths):
            folder = spill / f"{name}-{number:05}"
            folder.mkdir(mode=0o700)
            files.append(folder / PurePosixPath(path).name)
            self.store.get(path, files[-1])
        register_files(con, name, files, spill, take=take)
        for file in files:
            file.unlink()

    def _copied(self, paths: list[str], take: Take, folder: Path) -> list[Path]:
        """The wanted columns of the objects as files of the spill."""
        folder.mkdir(mode=0o700)
        first: pa.Schema | None = None
        copies = []
        for number, path in enumerate(paths):
            with reaching(path), self.store.files.open_input_file(path) as file:
                if file.read(len(PARQUET_BEGINS)) != PARQUET_BEGINS:
                    raise SourceError(f"{path}: neither a Parquet file nor named .csv, and no other kind can be read")
                parquet = pq.ParquetFile(file, pre_buffer=True)
                names = take(parquet.schema_arrow.names) if first is None else first.names
                schema = _part_of(parquet.schema_arrow, names)
                first = schema if first is None else first
                if schema is None or not schema.equals(first):
                    raise SourceError(f"{path}: not the same columns and types as {paths[0]}; parts must agree")
                copies.append(folder / f"{number:05}.parquet")
                _copy(parquet, schema, copies[-1])
        return copies


def _part_of(schema: pa.Schema, names: list[str]) -> pa.Schema | None:
    """Some columns of a schema, without what is noted beside them."""
    if any(len(schema.get_all_field_indices(name)) != 1 for name in names):
        return None
    return pa.schema([schema.field(name).remove_metadata() for name in names])


def _copy(parquet: pq.ParquetFile, schema: pa.Schema, to: Path) -> None:
    with pq.ParquetWriter(to, schema, compression="lz4", store_schema=False) as writer:
        for group in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(BATCH, row_groups=[group], columns=schema.names):
                interrupt.check()
                writer.write_batch(pa.record_batch([batch.column(name) for name in schema.names], schema=schema))


def _is_table(path: str, folder: str) -> bool:
    """Whether an object below a folder is a table. Names that begin with a dot or an underscore are others' notes."""
    parts = path.removeprefix(folder).strip("/").split("/")
    return path.lower().endswith(FORMATS) and not any(part.startswith((".", "_")) for part in parts)


def _chosen(path: str, pattern: str) -> bool:
    """Whether an object matches a pattern, or is a table in a folder that does.

    >>> _chosen("b/2024/x.parquet", "b/*/*.parquet"), _chosen("b/2024/x.parquet", "b/*.parquet")
    (True, False)
    >>> _chosen("b/2024/part/x.parquet", "b/20*"), _chosen("b/1/2/x.parquet", "b/**/x.parquet")
    (True, True)
    """
    parts, wanted_parts = path.split("/"), pattern.split("/")
    if _matches(parts, wanted_parts):
        return True
    folders = ("/".join(parts[:end]) for end in range(1, len(parts)) if _matches(parts[:end], wanted_parts))
    return any(_is_table(path, folder) for folder in folders)


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """As a pattern of files: `*` stays within a name, `**` is any number of folders."""
    if not pattern or not parts:
        return not parts and all(part == "**" for part in pattern)
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    hidden = parts[0].startswith(".") and not pattern[0].startswith(".")
    return not hidden and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
