"""The config as manifest and report hold it: as written, but with one form for what may be written in several. `4%` is
0.04 there, and `k_anonymity: 5` is `k_anonymity: {k: 5}`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from anon.config.criterion import Criterion
from anon.config.grammar import Config
from anon.config.mistakes import Model, below, describe
from anon.config.privacy import parameters
from anon.config.values import PercentageAllowed
from anon.errors import ConfigError


def canonical(config: Config, original: dict[str, Any]) -> dict[str, Any]:
    """Return the plain data of a config in its one form. `original` has the names of variables in place of their
    values, which stay names."""
    found = _mapping(config, original, "")
    found["privacy"] = [
        _item(spec, item, below("privacy", at)) for at, (spec, item) in enumerate(zip(config.privacy, found["privacy"]))
    ]
    return found


def _item(spec: Criterion, item: dict[str, Any], path: str) -> dict[str, Any]:
    written = parameters(type(spec), item[spec.name])
    return {spec.name: _mapping(spec, written, below(path, spec.name))}


def _mapping(model: Model, written: dict[str, Any], path: str) -> dict[str, Any]:
    fields = type(model).model_fields
    return {
        key: _share(getattr(model, key), value, below(path, key))
        if any(isinstance(each, PercentageAllowed) for each in fields[key].metadata)
        else _value(getattr(model, key), value, below(path, key))
        for key, value in written.items()
    }


def _value(typed: Any, written: Any, path: str) -> Any:
    if isinstance(typed, Model) and isinstance(written, dict) and written.keys() <= type(typed).model_fields.keys():
        return _mapping(typed, written, path)
    if isinstance(typed, list) and isinstance(written, list):
        return [_value(*both, below(path, at)) for at, both in enumerate(zip(typed, written))]
    if isinstance(typed, dict) and isinstance(written, dict):
        return {key: _value(typed[key], value, below(path, key)) for key, value in written.items()}
    return written


def _share(typed: Decimal, written: Any, path: str) -> Any:
    if not isinstance(written, str):
        return written
    if "${" in written:  # its value would be in the manifest and in the description of the release
        raise ConfigError.at(path, describe(written), "a share as it is, such as 4% or 0.04")
    if typed == int(typed):
        return int(typed)
    return float(typed) if Decimal(repr(float(typed))) == typed else str(typed)
