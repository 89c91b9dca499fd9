"""Write who is in which group of a release into its run folder, so that later releases can be held against it:
members.parquet has the keyed hash of each individual, `who`, the published number of the group, `g`, and in its
metadata of which kind the hashed texts are (kinds.py); members.key has the key. The file has neither identifiers nor
values. A release that replaces another takes over its key, by which the same people are recognized.

The hash is the first 64 bits of SHA-256 over the key and the text of `columns.individual`, or where every row is
another person over the texts of the quasi-identifiers: rows with equal ones have equal hashes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon.config import Config
from anon.config.private_release import promised
from anon.core.arrays import Ints
from anon.core.database import causes, literal, translated
from anon.cube import Domain, Encoder
from anon.recoding.assignment import Assignment
from anon.recoding.levels import AnyRecoding, LevelRecoding
from anon.recoding.refined import RefinedRecoding
from anon.recoding.tree import Recoding
from anon.runs.kinds import kinds_of
from anon.source import Source
from anon.verify.content.assigned import groups_of_rows

MEMBERS, KEY = "members.parquet", "members.key"
KINDS = "kinds"  # in the metadata
SCHEMA = pa.schema([("who", pa.uint64()), ("g", pa.uint32())])
BETWEEN, NOTHING = "chr(31)", "chr(30)"  # separators of ASCII: between texts, and in place of a missing one


def are_kept(config: Config) -> bool:
    """Return whether a run of this config writes who is in which group."""
    release = config.release
    alone = release.series is None and config.trial is None and promised(config) is None
    return alone and release.members and config.columns.multiplicity == "single"


def write_members(
    run: Path,
    config: Config,
    source: Source,
    recoding: AnyRecoding | Assignment,
    sensitive: list[Domain],
    number: Ints | None,
) -> None:
    """Write the members of a release into a run folder, with the key of the run folder that it will replace, if there
    is one. `number`: the numbers of the groups in the files, if they differ from the recoding's."""
    key = read_key(config.release.run) or secrets.token_hex(32)
    who = hashed(identity(config, source), key)
    failures: list[BaseException] = []
    if isinstance(recoding, Assignment | RefinedRecoding):
        assignment = recoding if isinstance(recoding, Assignment) else recoding.assignment
        rows = groups_of_rows(source, assignment, sensitive[0], {"who": who}, failures, source.used_rows)
        groups: Iterator[pa.RecordBatch] = iter(rows)
    else:
        groups = _recoded(source, recoding, who)
    with translated("writing the run folder", disk=True), causes(failures):
        (run / KEY).write_text(key, encoding="ascii")
        with pq.ParquetWriter(run / MEMBERS, SCHEMA, compression="zstd", store_schema=False) as writer:
            writer.add_key_value_metadata({KINDS: kinds_of(config, source)})
            for batch in groups:
                group = batch.column("g").to_numpy()
                numbers = group if number is None else number[group]
                arrays = [batch.column("who"), pa.array(numbers.astype(np.uint32))]
                writer.write_batch(pa.record_batch(arrays, schema=SCHEMA))


def _recoded(source: Source, recoding: Recoding | LevelRecoding, who: str) -> Iterator[pa.RecordBatch]:
    """Yield (g, who) for the rows of the source, without suppressed ones."""
    columns = source.quasi_identifiers
    encoder = Encoder(columns, recoding.domains)
    names = ", ".join(column.alias for column in columns)
    for batch in source.rows_of(f"SELECT {names}, {who} AS who FROM {source.used_rows}"):
        group = recoding.assign(encoder.codes(batch))
        rows = pa.record_batch([pa.array(group), batch.column("who")], names=["g", "who"])
        yield rows.filter(pa.array(group < recoding.groups)) if recoding.suppressed else rows


def identity(config: Config, source: Source) -> str:
    """Return SQL for the text by which a row's individual is known."""
    if config.columns.individual != "row":
        return "CAST(who AS VARCHAR)"
    texts = [f"coalesce(CAST({column.alias} AS VARCHAR), {NOTHING})" for column in source.quasi_identifiers]
    return f"concat_ws({BETWEEN}, {', '.join(texts)})"


def hashed(text: str, key: str) -> str:
    """Return SQL for the keyed hash of a text."""
    return f"('0x' || left(sha256({literal(key)} || {text}), 16))::UBIGINT"


def value_text(value: str) -> str:
    """Return SQL for the text of a sensitive value by which releases are compared; missing is a value, and is not the
    empty text."""
    return f"coalesce('=' || CAST({value} AS VARCHAR), '')"


def read_key(run: Path) -> str:
    """Return the key of a run folder, empty if it has none."""
    try:
        key = (run / KEY).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
    return key if re.fullmatch("[0-9a-f]{64}", key) else ""


def read_kinds(run: Path) -> str:
    """Return the kinds of what the members in a run folder are known by."""
    found: bytes = (pq.read_metadata(run / MEMBERS).metadata or {}).get(KINDS.encode(), b"")
    return found.decode()
