"""Measure what a classifier learns from a release: predict a column, trained on the release and tested on rows of the
source that were held out, beside the same trained on the source (`anon utility --predict`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anon.config import Columns
from anon.core.arrays import Floats, Ints
from anon.core.memory import Memory
from anon.errors import ConfigError, SourceError
from anon.loss.cells import read_cells, values_below
from anon.loss.prediction.classifiers import MODELS, Examples, require_classifiers, scores
from anon.loss.prediction.features import MOST, LabelFeatures, PublishedColumn, stacked
from anon.loss.prediction.held_out import ReleasedRows, Shape, split
from anon.loss.utility import Original
from anon.source import Source
from anon.verify.grouped import Grouped

CLASSES = 50  # at most
TRAINED = 40_000  # rows at most
EXTENSION = 12  # bytes of a feature of a row while a model is trained
OUTCOME = 48  # bytes of a class of a row
FIELD = "--predict"


def check_target(column: str, columns: Columns) -> None:
    """Raise ConfigError if the column cannot be predicted with a release of these columns."""
    require_classifiers()
    kept = [name for name in columns.keep if name not in columns.aggregate or columns.aggregate[name].mean is None]
    able = [*columns.sensitive, *kept]
    if column not in able:
        found = f"{column!r}, " + _why_not(column, columns)
        expected = f"a sensitive or kept column: {', '.join(able) or 'the config has none'}"
        raise ConfigError.at(FIELD, found, expected)
    if columns.multiplicity != "single":
        found = f"multiplicity: {columns.multiplicity}"
        raise ConfigError.at(FIELD, found, "multiplicity: single, where everybody has one value to predict")


def _why_not(column: str, columns: Columns) -> str:
    if column in columns.quasi_identifiers:
        return "a quasi-identifier, whose labels stand for several values"
    return "whose values are replaced by means" if column in columns.keep else "which is not published"


def prediction(original: Original, grouped: Grouped, columns: Columns, column: str, memory: Memory) -> dict[str, Any]:
    """Return the accuracy and the AUC of classifiers that predict a column."""
    source = original.source
    shape = _shape(source, grouped, columns, column)
    classes = _classes(source, shape.target)
    distinct = original.distinct()
    cells = read_cells(grouped, original.quasi_identifiers, distinct)
    features = [LabelFeatures(domain) for domain in original.quasi_identifiers]
    width = sum(each.of_codes.shape[1] for each in features) + sum(each.width for each in shape.columns)
    most = min(TRAINED, memory.free // 2 // (EXTENSION * width + OUTCOME * len(classes)))
    train, test = split(source, shape, most)
    codes, own = (_codes(original, part) for part in (test, train))
    tables = [each.of_codes for each in features]
    tested = _examples(tables, codes, shape, test, classes)
    rows = ReleasedRows(grouped, cells, values_below(distinct), shape)
    matched = rows.take_out(test, codes)
    released = rows.training(most)
    labels = [released[name].to_numpy() for name in rows.labels]
    of_labels = [each.of_labels(cell) for each, cell in zip(features, cells)]
    examples = {
        "release": _examples(of_labels, labels, shape, released, classes),
        "source": _examples(tables, own, shape, train, classes),
    }
    _check_enough(examples | {"test": tested})
    return {
        "column": column,
        "classes": len(classes),
        "features": [*columns.quasi_identifiers, *(each.name for each in shape.columns)],
        "tested": len(tested.classes),
        "matched": matched,
        "trained": {name: len(each.classes) for name, each in examples.items()},
        "majority": _majority(examples["source"].classes, tested.classes),
        "models": [
            {"name": name} | {on: scores(name, each, tested, len(classes)) for on, each in examples.items()}
            for name in MODELS
        ],
    }


def _shape(source: Source, grouped: Grouped, columns: Columns, column: str) -> Shape:
    """Return the target and the columns to learn from beside the quasi-identifiers. Of a bucketized release, sensitive
    columns are not among them, since nobody's value is known."""
    means = {name for name, how in columns.aggregate.items() if how.mean is not None}
    kept = [
        PublishedColumn.from_column(each, grouped.alias(each.name), each.name not in means)
        for each in source.keep
        if each.name in grouped.keep
    ]
    sensitive = [PublishedColumn.from_column(each, each.alias) for each in source.sensitive]
    target = next((each for each in (*kept, *sensitive) if each.name == column), None)
    if target is None:
        raise ConfigError.at(FIELD, f"{column!r}, which the table does not have", "a column of the release")
    rest = kept if grouped.bucketized else [*kept, *sensitive]
    known = [_with_values(source, each) for each in rest if each is not target]
    return Shape(known, target.as_text(), grouped.bucketized and target in sensitive)


def _with_values(source: Source, column: PublishedColumn) -> PublishedColumn:
    """Return a column with what its features need of the source."""
    value = f"SELECT {column.in_source} AS v FROM {source.VIEW}"
    if column.number:
        return replace(column, mean=float(source.query(f"SELECT coalesce(avg(v), 0) FROM ({value})")[0][0].as_py()))
    counted = f"SELECT v FROM ({value}) WHERE v IS NOT NULL GROUP BY v ORDER BY count(*) DESC, v LIMIT {MOST}"
    return replace(column, values=tuple(source.query(counted)[0].to_pylist()))


def _classes(source: Source, target: PublishedColumn) -> pa.Array:
    """Return the values of the target in order; ConfigError if they are too few or too many to be classes."""
    value = f"SELECT DISTINCT {target.in_source} AS v FROM {source.VIEW}"
    found = source.query(f"SELECT v FROM ({value}) WHERE v IS NOT NULL ORDER BY v LIMIT {CLASSES + 1}")[0]
    if not 2 <= len(found) <= CLASSES:
        many = f"more than {CLASSES}" if len(found) > CLASSES else str(len(found))
        expected = f"a column of 2 to {CLASSES} different values, which are the classes"
        raise ConfigError.at(FIELD, f"{target.name!r} with {many} different values", expected)
    return found.combine_chunks()


def _codes(original: Original, rows: pa.Table) -> list[Ints]:
    """Return the codes of some rows of the source in each quasi-identifier."""
    aliases = [column.alias for column in original.source.quasi_identifiers]
    values = (rows[alias].combine_chunks() for alias in aliases)
    return [domain.encode(own).astype(np.int64) for domain, own in zip(original.quasi_identifiers, values)]


def _examples(tables: list[Floats], numbers: list[Ints], shape: Shape, rows: pa.Table, classes: pa.Array) -> Examples:
    """Return rows as features and classes. Numbers are codes of values or of labels, whose features the tables have."""
    found = stacked(tables, numbers, shape.columns, [rows[name] for name in shape.names])
    own = np.asarray(pc.index_in(rows["y"], classes).fill_null(-1)).astype(np.int64)
    weights = rows["weight"].to_numpy() if shape.by_group and "weight" in rows.column_names else None
    return Examples(found, own, weights)


def _check_enough(examples: dict[str, Examples]) -> None:
    """Raise SourceError if there is nothing to train or to test with, or a class that the source does not have."""
    for name, each in examples.items():
        if not len(each.classes):
            raise SourceError(f"{FIELD}: there are no rows to {'test' if name == 'test' else 'train'} with ({name})")
        if unknown := int((each.classes < 0).sum()):
            raise SourceError(f"{FIELD}: {unknown:,} values that the source does not have: it is not a release of it")


def _majority(trained: Ints, tested: Ints) -> float:
    """Return the accuracy of always predicting the most frequent class."""
    return float((tested == np.bincount(trained).argmax()).mean())
