"""The `privacy` section of the config: a list of criteria, each a mapping with the criterion's name as its only key."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, create_model

from anon.config.criteria import CRITERIA
from anon.config.criterion import Criterion
from anon.config.mistakes import Model, mistake, refusal, unknown_key
from anon.config.values import as_mapping

ITEMS: dict[str, type[Model]] = {
    name: create_model(
        f"Item_{name}",
        __base__=Model,
        __doc__=model.__doc__,
        **{name: (model, Field(description=f"parameters of {name}"))},  # type: ignore[call-overload]
    )
    for name, model in CRITERIA.items()
}


def _criterion(value: Any, info: ValidationInfo) -> Criterion:
    if isinstance(value, Criterion):
        return value
    given = as_mapping(value)
    if len(given) != 1:
        raise mistake("a mapping with one key, the name of the criterion", "begin each criterion with its own `- `")
    name = next(iter(given))
    if name not in CRITERIA:
        raise refusal([((name,), unknown_key(name, CRITERIA))])
    item = ITEMS[name].model_validate(given, context=info.context)
    criterion: Criterion = getattr(item, name)
    return criterion


Item = reduce(or_, ITEMS.values())
Privacy = Annotated[SerializeAsAny[Criterion], BeforeValidator(_criterion, json_schema_input_type=Item)]
