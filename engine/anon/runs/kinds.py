"""The kinds of what individuals are known by. Ids are recognized by their texts, which are comparable within a kind: 3
is not 3.0."""

from __future__ import annotations

from anon.config import Config
from anon.source import Source, describe

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


def individual_kind(type_name: str) -> str:
    """Return the kind of ids of a DuckDB type: those of one kind have the same text in every release.

    >>> individual_kind("UINTEGER"), individual_kind("VARCHAR"), individual_kind("DOUBLE")
    ('whole numbers', 'text', 'DOUBLE')
    """
    if type_name.removeprefix("U") in WHOLE:
        return "whole numbers"
    return "text" if type_name == "VARCHAR" else type_name


def kinds_of(config: Config, source: Source) -> str:
    """Return the kind of the ids of a source, or where every row is another person those of its quasi-identifiers."""
    types = describe(source.database, source.used_rows)
    if config.columns.individual != "row":
        return individual_kind(types["who"])
    return ", ".join(individual_kind(types[column.alias]) for column in source.quasi_identifiers)
