"""Read a recoding.json as a recoding that can be applied to the source's rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anon import hierarchy
from anon.artifacts.recoding import LatticeHead
from anon.config import Builder, Config
from anon.core.text import text
from anon.recoding.levels import AnyRecoding
from anon.search.reuse.tree import ReusedTree
from anon.source import Column, Source
from anon.verify.content.applied import AppliedLevels, AppliedRecoding, AppliedTree, wrong
from anon.verify.content.keys import Keys, looked_up
from anon.verify.content.labels import HIGHEST, Grammar, HierarchyLabels, ListedLabels, Row, grammar_of, outside_labels
from anon.verify.content.levels import LevelLabels, check_cut_labels, suppressed_cells
from anon.verify.content.recoding_file import RecodingFile
from anon.verify.content.tree_groups import GroupLabels, WrittenTree
from anon.verify.content.tree_reading import read_tree

Rows = dict[str | None, Row]


def read_recoding(path: Path, source: Source, config: Config, recoding: AnyRecoding) -> AppliedRecoding:
    """Read the recoding that a run has written. Of the one in memory only the labels of a reused tree are taken: the
    recoding.json of an earlier run does not have the present labels of its groups."""
    try:
        file = RecodingFile(path)
        if isinstance(file.head, LatticeHead):
            return _levels(file, file.head, source, config)
        return _tree(file, source, config, recoding)
    except (KeyError, ValueError, TypeError) as error:
        raise wrong("comes with a recoding.json that cannot be applied") from error


def _tree(file: RecodingFile, source: Source, config: Config, recoding: AnyRecoding) -> AppliedRecoding:
    grammars = [grammar_of(column) for column in file.head.columns]
    tree = read_tree(file, grammars)
    if isinstance(recoding, ReusedTree):
        tree = _relabelled(tree, recoding, grammars)
    return AppliedTree(keys_under(source, config, grammars), tree)


def keys_under(source: Source, config: Config, grammars: list[Grammar]) -> Keys:
    """Return the reader of the keys of quasi-identifiers whose labels have these grammars."""
    tables: dict[str, pa.Table] = {}
    for column, grammar in zip(source.quasi_identifiers, grammars):
        if isinstance(grammar, HierarchyLabels):
            tables |= looked_up(source, column, partial(_places, grammar, config, column))
        elif isinstance(grammar, ListedLabels):
            tables |= looked_up(source, column, partial(_listed_places, grammar))
    return Keys(source.quasi_identifiers, tables)


def _listed_places(grammar: ListedLabels, values: list[Any]) -> list[int]:
    return [grammar.place.get(_text(value), HIGHEST) for value in values]


def _places(grammar: HierarchyLabels, config: Config, column: Column, values: list[Any]) -> list[int]:
    return [grammar.place(row) for row in _rows(grammar.rows, config, column, values)]


def _relabelled(tree: WrittenTree, recoding: ReusedTree, grammars: list[Grammar]) -> WrittenTree:
    """Return the tree with the labels that its groups have now; those without people have none."""
    labels = []
    for own, grammar in zip(recoding.labels, grammars):
        words = pa.concat_arrays([own.labels, pa.nulls(1, pa.string())])
        codes = np.full(tree.groups, len(own.labels), np.int64)
        codes[recoding.was] = own.of_group
        labels.append(GroupLabels.from_codes(words, codes, grammar))
    return replace(tree, labels=labels)


def _levels(file: RecodingFile, head: LatticeHead, source: Source, config: Config) -> AppliedRecoding:
    tables: dict[str, pa.Table] = {}
    levels, constant = [], set()
    for column, recoded in zip(source.quasi_identifiers, head.columns):
        labels = LevelLabels(recoded, head.chosen.levels[column.name])
        if recoded.cut:
            check_cut_labels(recoded, labels.level)
        levels.append(labels)
        if labels.constant:
            constant.add(column.alias)
            labels.code([None])
        else:
            tables |= looked_up(source, column, partial(_codes, labels, config, column))
    keys = Keys(source.quasi_identifiers, tables, frozenset(constant))
    return AppliedLevels(keys, levels, suppressed_cells(file, levels))


def _codes(labels: LevelLabels, config: Config, column: Column, values: list[Any]) -> list[int]:
    return [labels.code(row) for row in _rows(labels.rows, config, column, values)]


def _rows(rows: Rows, config: Config, column: Column, values: list[Any]) -> list[Row]:
    """Return the labels upwards of each value: those of recoding.json, and for values that are new to a reused recoding
    those of the config."""
    texts = [_text(value) for value in values]
    new = [value for value, word in zip(values, texts) if rows and word is not None and word not in rows]
    builder: Builder = config.columns.quasi_identifiers[column.name]
    paths = iter(hierarchy.paths(builder, new, column.name)) if new else iter(())
    known = rows | {_text(value): [_text(value), *path] for value, path in zip(new, paths)}
    found = [known.get(word, [word]) for word in texts]
    if builder.kind in ("intervals", "bands"):
        _check_ranges(column, found)
    return found


def _check_ranges(column: Column, rows: list[Row]) -> None:
    """Raise VerificationError if a number is not in the ranges that its labels say."""
    pairs = [(row[0], label) for row in rows for label in row[1:] if row[0] is not None and label is not None]
    words, labels = ([pair[at] for pair in pairs] for at in (0, 1))
    if outside := outside_labels(column.kind, words, labels):
        raise wrong(f"has {outside:,} labels of {column.name!r} that do not cover the value they stand for")


def _text(value: Any) -> str | None:
    return None if value is None else text(value)
