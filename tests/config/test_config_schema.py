"""The JSON Schema of the config accepts and refuses what the loader does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from anon.config import json_schema, load
from tests.helpers.config import CONTRACT, POINT, REMOVE, SMALL, changed, criterion, file, problems


def fits(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """The few words of JSON Schema that ours uses."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            count = sum(fits(option, value, root) for option in schema[word])
            if count == 0 or (word == "oneOf" and count > 1):
                return False
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "pattern" in schema and (not isinstance(value, str) or re.search(schema["pattern"], value) is None):
        return False
    return of_type(schema.get("type"), value) and in_range(schema, value) and inside(schema, value, root)


def of_type(name: str | None, value: Any) -> bool:
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
    if name in ("number", "integer") and isinstance(value, bool):
        return False
    if name == "number":
        return isinstance(value, int | float)
    return name is None or isinstance(value, types[name])


def in_range(schema: dict[str, Any], value: Any) -> bool:
    if isinstance(value, str | list | dict):
        prefix = {str: "Length", list: "Items", dict: "Properties"}[type(value)]
        return schema.get(f"min{prefix}", 0) <= len(value) <= schema.get(f"max{prefix}", 10**9)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low = value >= schema.get("minimum", value) and value > schema.get("exclusiveMinimum", value - 1)
        return low and value <= schema.get("maximum", value)
    return True


def inside(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    if isinstance(value, list):
        return all(fits(schema.get("items", {}), item, root) for item in value)
    if not isinstance(value, dict):
        return True
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if set(schema.get("required", [])) - set(value) or (others is False and set(value) - set(known)):
        return False
    rest = others if isinstance(others, dict) else {}
    return all(fits(known.get(key, rest), item, root) for key, item in value.items())


def valid(value: Any) -> bool:
    return fits(json_schema(), value, json_schema())


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every part of the schema that has properties."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if isinstance(schema.get("properties"), dict) else []
    return own + [found for item in schema.values() for found in objects(item)]


def test_the_schema_accepts_the_example_of_the_contract(tmp_path: Path) -> None:
    example = load(file(tmp_path, CONTRACT), {}).original
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert valid(example)
    assert valid(SMALL)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("columns.sensitive", {"cost": {"round": 100}, "day": {"calendar": ["month"], "as_categories": True}, "x": {}}),
        ("columns.quasi_identifiers", {"age": None, "zip": {"digits": 5}}),
        ("columns.quasi_identifiers", ["age"]),
        ("method", {"prefer": {"information_gain": "age"}}),
        ("method", {"kind": "lattice", "suppress": 0.02, "choose": "loss"}),
        ("method", {"kind": "lattice", "suppress": "2.5 %"}),
        ("privacy", [{"k_anonymity": 5}, {"skyline": [POINT | {"c": "50%"}]}, {"delta_disclosure": 1.5}]),
        ("source", {"postgres": {"dsn": "${DSN}", "query": "select 1"}}),
        ("backend", {"kind": "spark", "master": "local", "conf": {"a": "1"}}),
        ("columns.quasi_identifiers.age", {"bands": [0, 18, 65.5]}),
        ("columns.quasi_identifiers.age", {"bands": [[0, 18, 65], [18]], "age_on": "2024-12-31"}),
        ("columns.quasi_identifiers.age", {"age_on": "2024-12-31"}),
        ("columns.quasi_identifiers.age", {"digits": 5, "pad": 5}),
        ("columns.quasi_identifiers.age", {"calendar": ["year", "decade", "century"]}),
        ("columns.quasi_identifiers.age", {"weight": 3}),
        ("columns.quasi_identifiers.age", {"digits": 5, "weight": 0.5}),
        ("columns.sensitive", {"born": {"age_on": "2024-12-31"}}),
        ("columns.sensitive", {"born": {"age_on": "2024-12-31", "bands": [18]}}),
    ],
)
def test_the_schema_and_the_loader_accept_the_same_forms(place: str, value: Any) -> None:
    data = changed(place, value)
    load(data, {"DSN": "x"})
    assert valid(data)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("colums", {}),
        ("release.fromat", "csv"),
        ("columns.individual", REMOVE),
        ("columns.quasi_identifiers.age", {"intervals": [5], "digits": 2}),
        ("columns.quasi_identifiers", {}),
        ("columns.quasi_identifiers.age", {"weight": 0}),
        ("columns.sensitive", {"cost": {"round": 1, "digits": 2}}),
        ("columns.sensitive", {"cost": {"weight": 2}}),
        ("columns.sensitive", {"cost": {"digits": 2, "weight": 2}}),
        ("source", {"path": "a", "table": "b"}),
        ("privacy", []),
        ("privacy", [{"k_anonymity": {"k": 2}, "group_size": {"k": 2}}]),
        ("privacy", criterion("k_anonymity", k="5")),
        ("privacy", criterion("skyline", points=[POINT | {"c": 1.5}])),
        ("privacy", criterion("skyline", points=[POINT | {"c": "0.5"}])),
        ("privacy", criterion("skyline", points=[POINT], values={"HIV": "no"})),
        ("privacy", [{"k_anonymity": 0}]),
        ("privacy", [{"l_diversity": 3}]),
        ("privacy", criterion("alpha_k", alpha="4 percent", k=2)),
        ("method", {"prefer": "widst"}),
        ("method", {"kind": "merge", "prefer": "widest"}),
    ],
)
def test_the_schema_and_the_loader_refuse_the_same_mistakes(place: str, value: Any) -> None:
    data = changed(place, value)
    assert problems(data)
    assert not valid(data)


def test_every_field_of_the_schema_has_a_description_and_no_object_takes_unknown_keys() -> None:
    found = objects(json_schema())
    assert len(found) > 40
    bare = [key for item in found for key, field in item["properties"].items() if not field.get("description")]
    assert bare == []
    assert [item for item in found if item.get("additionalProperties") is not False] == []
