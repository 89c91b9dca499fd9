"""Object stores (s3://, gs://, az://) through the file systems of pyarrow: listing, reading and writing. As a source
the files of a place are copied once to the private spill, Parquet without the columns that are not used;
release/stores.py writes a verified release here. Credentials come from the environment of the process, where the client
library of each store looks for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from anon.config import Columns
from anon.core import interrupt
from anon.core.database import Database
from anon.errors import SourceError
from anon.source.azure import azure_files
from anon.source.copies import BATCH, copy_batches, part_of
from anon.source.files import NO_OPTIONS, FileOptions, register_files
from anon.source.origins import CHANGED, Mark, Origin, wanted
from anon.source.tables import KINDS, PARQUET_BEGINS, Take, kind_of
from anon.source.tokens import Tokens

CHUNK = 4_000_000  # bytes
OTHERS = ", ".join(end for end, kind in KINDS.items() if kind != "Parquet")
PATIENCE = timedelta(minutes=1)  # for a store that fails; Google's library tries again for 15 minutes by itself
WORDS = {  # the first that is in what a library says, in small letters
    "no_such_bucket": "there is no such bucket",
    "no_such_key": "there is no such object",
    "containernotfound": "there is no such container",
    "no such file": "there is no such bucket or object",
    "access_denied": "access was denied",
    "permission_denied": "access was denied",
    "[authorization": "access was denied",
    "[authenticationfailed": "the credentials were refused",
    "unauthenticated": "the credentials were refused",
    "oauth2 access token": "there are no credentials, or they were refused",
    "authenticationexception": "there are no credentials, or they were refused",
    "base64 encoded string": "the account key is not one",
    "invalid_access_key_id": "the access key is not known there",
    "signature_does_not_match": "the secret of the access key is wrong",
    "parquet magic bytes": "it is not a Parquet file, or it is cut off",
    "parquet file size": "it is not a Parquet file, or it is cut off",
    "network_connection": "the store does not answer",
    "could not connect": "the store does not answer",
    "couldn't connect": "the store does not answer",
    "could not resolve host": "the store does not answer",
    "timeout was reached": "the store does not answer",
}


class Store:
    """A place in an object store, and the file system that reaches it."""

    def __init__(self, uri: str) -> None:
        self.uri, (self.scheme, _, self.path) = uri, uri.partition("://")
        with reaching(uri):
            self.files = _files(self.scheme, self.bucket)

    @property
    def bucket(self) -> str:
        return self.path.partition("/")[0]

    def list(self, folder: str | None = None) -> list[fs.FileInfo]:
        """Return the objects below a folder, in the order of their names; none if it is not there. This is the first
        thing to ask: without credentials pyarrow fails here, but ends the process when it opens an object of
        Azure's."""
        below = fs.FileSelector(self.path if folder is None else folder, recursive=True, allow_not_found=True)
        with reaching(self.uri):
            found = [info for info in self.files.get_file_info(below) if info.type == fs.FileType.File]
        return sorted(found, key=lambda info: info.path)

    def get(self, path: str, to: Path) -> None:
        """Copy an object to a file."""
        with reaching(path), self.files.open_input_stream(path) as stream, to.open("xb") as file:
            while chunk := stream.read(CHUNK):
                file.write(chunk)
                interrupt.check()

    def put(self, file: Path, name: str, via: str | None = None) -> None:
        """Copy a file to an object of the place. Azure shows an object, empty, from the moment it is opened: one that
        may be seen only when it is whole is put there via another name."""
        if via is None or self.scheme != "az":
            self._write(file, f"{self.path}/{name}")
            return
        self._write(file, f"{self.path}/{via}")
        with reaching(f"{self.path}/{name}"):
            self.files.copy_file(f"{self.path}/{via}", f"{self.path}/{name}")
        with suppress(SourceError):  # the object is in place, whatever becomes of its other name
            self.delete(via)

    def _write(self, file: Path, path: str) -> None:
        with reaching(path), file.open("rb") as data, self.files.open_output_stream(path) as stream:
            while chunk := data.read(CHUNK):
                stream.write(chunk)

    def delete(self, name: str) -> None:
        """Remove an object of the place if it is there."""
        path = f"{self.path}/{name}"
        with reaching(path):
            if self.files.get_file_info(path).type == fs.FileType.File:
                self.files.delete_file(path)


def _files(scheme: str, bucket: str) -> fs.FileSystem:
    if scheme == "az":
        return azure_files()
    if scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=PATIENCE)
    return fs.FileSystem.from_uri(f"{scheme}://{bucket}")[0]


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Translate failures of a store into our own words: what its libraries say may hold more than a log should."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        said = str(error)
        code = re.search(r"AWS Error (\w+)|Azure Error: \[(\w+)|google::cloud::Status\((\w+)", said)
        reason = next((words for mark, words in WORDS.items() if mark in said.lower()), "")
        named = next(filter(None, code.groups()), "") if code else type(error).__name__
        raise SourceError(f"{what}: {reason or f'the store refused it ({named})'}") from None


class StoredFiles(Origin):
    """Parquet or CSV objects: one, a glob, or all below a folder."""

    def __init__(self, uri: str, options: FileOptions = NO_OPTIONS) -> None:
        self.store, self.options = Store(uri), options
        self.marks = self._listed()

    def _listed(self) -> list[Mark]:
        """Return name, size and time of change of the objects; their names begin with the bucket."""
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
            raise SourceError(f"{self.store.uri}: no object there, or none that is named {', '.join(KINDS)}")
        return [(info.path, int(info.size), str(info.mtime_ns or 0)) for info in chosen]

    def register(self, database: Database, name: str, columns: Columns, spill: Path) -> None:
        take, paths = wanted(columns, self), [path for path, _, _ in self.marks]
        kinds = sorted({kind_of(PurePosixPath(path)) or "Parquet" for path in paths})
        if len(kinds) > 1:
            raise SourceError(f"{self.store.uri}: some objects are {kinds[0]} and some {kinds[1]}; choose one kind")
        self.options.check(kinds[0], PurePosixPath(paths[0]))
        tokens = Tokens.from_columns(columns)
        if kinds == ["Parquet"]:
            register_files(database, name, self._copied(paths, take, tokens, spill / name), spill)
        else:
            self._register_fetched(database, name, paths, take, tokens, spill)
        self.identifiers = tokens.columns
        self.check_unchanged()

    def check_unchanged(self) -> None:
        if self._listed() != self.marks:
            raise SourceError(CHANGED)

    def _register_fetched(
        self, database: Database, name: str, paths: list[str], take: Take, tokens: Tokens, spill: Path
    ) -> None:
        """Fetch the objects and keep them until DuckDB has written what is wanted of them as Parquet."""
        files = []
        for number, path in enumerate(paths):
            folder = spill / f"{name}-{number:05}"
            folder.mkdir(mode=0o700)
            files.append(folder / PurePosixPath(path).name)
            self.store.get(path, files[-1])
        register_files(database, name, files, spill, take=take, tokens=tokens, options=self.options)
        for file in files:
            file.unlink()

    def _copied(self, paths: list[str], take: Take, tokens: Tokens, folder: Path) -> list[Path]:
        """Copy the wanted columns of the objects, and tokens of identifiers, to files of the spill."""
        folder.mkdir(mode=0o700)
        first: pa.Schema | None = None
        copies = []
        for number, path in enumerate(paths):
            with reaching(path), self.store.files.open_input_file(path) as file:
                if file.read(len(PARQUET_BEGINS)) != PARQUET_BEGINS:
                    raise SourceError(f"{path}: it is no Parquet file, and is not named {OTHERS}")
                parquet = pq.ParquetFile(file, pre_buffer=True)
                names = take(parquet.schema_arrow.names) if first is None else first.names
                schema = part_of(parquet.schema_arrow, names)
                first = schema if first is None else first
                identified = part_of(parquet.schema_arrow, list(tokens.names)) is not None
                if schema is None or not schema.equals(first) or not identified:
                    raise SourceError(f"{path}: not the same columns and types as {paths[0]}; parts must agree")
                copies.append(folder / f"{number:05}.parquet")
                read = [*dict.fromkeys([*schema.names, *tokens.names])]
                copy_batches(_batches(parquet, read), schema, copies[-1], tokens)
        return copies


def _batches(parquet: pq.ParquetFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    for group in range(parquet.num_row_groups):
        yield from parquet.iter_batches(BATCH, row_groups=[group], columns=columns)


def _is_table(path: str, folder: str) -> bool:
    """Return whether an object below a folder is a table. Names that begin with a dot or an underscore are others'
    notes."""
    parts = path.removeprefix(folder).strip("/").split("/")
    return kind_of(PurePosixPath(path)) is not None and not any(part.startswith((".", "_")) for part in parts)


def _chosen(path: str, pattern: str) -> bool:
    """Return whether an object matches a pattern, or is a table in a folder that does.

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
    """Match as a pattern of files does: `*` stays within a name, `**` is any number of folders."""
    if not pattern or not parts:
        return not parts and all(part == "**" for part in pattern)
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    hidden = parts[0].startswith(".") and not pattern[0].startswith(".")
    return not hidden and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
