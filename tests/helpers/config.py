"""Small configs and what is wrong with them, shared by the tests of the config stage. Outside the way of the data."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from anon.config import load
from anon.errors import ConfigError, Problem

CONTRACT = """
source: {path: extract/*.parquet}        # file, glob, folder
columns:
  identifiers: [name]
  individual: row
  multiplicity: single
  quasi_identifiers:
    age: {intervals: [5, 10, 20], origin: 1, top: 85}
    sex: {suppress: true}
    education: {hierarchy: ../hierarchies/adult/education.csv}
    zipcode: {digits: 5}
    admitted: {calendar: [day, month, quarter, year]}
    income: {}
  sensitive: [occupation]
  keep: [hours]
nulls: {quasi_identifiers: value, sensitive: error}
privacy:
  - k_anonymity: {k: 5}
  - group_size: {k: 5}
  - l_diversity: {kind: distinct, l: 3}
  - l_diversity: {kind: recursive, c: 3, l: 4, dont_care: [Healthy], keep_possible: {values: [Flu], percent: 2}}
  - skyline:
      points: [{l: 1, k: 5, m: 2, c: 0.5}, {l: 2, k: 1, m: 1, c: 0.5}]
      values: {HIV: [{l: 3, k: 50, m: 5, c: 0.2}], Flu: exempt}
  - ck_safety: {c: 0.8, k: 3}
  - dissimilarity: {epsilon: 0.1, delta: 0.5, k: 5, distance: {kind: absolute}}
  - r_robustness: {r: 4, priors: [{file: prior.csv}, {estimate: [sex], smoothing: 1}]}
  - t_closeness: {t: 0.2, distance: {kind: equal}}
  - alpha_k: {alpha: 0.5, k: 5}
  - epsilon_m: {epsilon: 1000, m: 2}
  - k_e: {k: 3, e: 5000}
  - variance: {minimum: 250000}
  - delta_disclosure: {delta: 1.0}
method: {kind: partition, prefer: widest}
#method: {kind: lattice, suppress: 0.02, choose: loss, exhaustive: false}
release: {path: out, run: out-run, form: generalized, format: parquet}
limits: {memory: 1GB, threads: 2, temp: spill}
backend: {kind: local}
"""

SMALL: dict[str, Any] = {
    "source": {"path": "t.csv"},
    "columns": {
        "individual": "row",
        "quasi_identifiers": {"age": {}, "sex": {"suppress": True}},
        "sensitive": ["illness"],
    },
    "privacy": [{"k_anonymity": {"k": 2}}],
    "release": {"path": "out"},
}
POINT = {"l": 1, "k": 5, "m": 2, "c": 0.5}
REMOVE = object()


def changed(path: str, value: Any) -> dict[str, Any]:
    """The small config with one value replaced, e.g. at `columns.keep`."""
    data = copy.deepcopy(SMALL)
    *parents, last = path.split(".")
    target = data
    for part in parents:
        target = target.setdefault(part, {})
    if value is REMOVE:
        del target[last]
    else:
        target[last] = value
    return data


def problems(data: Any, **options: Any) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        load(data, {}, **options)
    return caught.value.problems


def file(folder: Path, text: str | bytes, name: str = "anon.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def criterion(name: str, **parameters: Any) -> list[dict[str, Any]]:
    return [{name: parameters}]
