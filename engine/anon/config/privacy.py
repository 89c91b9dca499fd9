"""The `privacy` section of the config: a list of criteria, each a mapping with the criterion's name as its only key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, ValidationInfo, create_model

from anon.config.criteria import CRITERIA
from anon.config.criterion import Criterion
from anon.config.mistakes import Model, as_mistakes, mistake, refusal, unknown_key
from anon.config.values import as_mapping


def only_parameter(model: type[Criterion]) -> str | None:
    """Return the parameter whose value may stand for all of a criterion's: the only one that is required."""
    required = [name for name, info in model.model_fields.items() if info.is_required()]
    return required[0] if len(required) == 1 else None


def parameters(model: type[Criterion], written: Any) -> Any:
    """Return the parameters of a criterion as a mapping: `k_anonymity: 5` means `k_anonymity: {k: 5}`."""
    name = only_parameter(model)
    return written if name is None or written is None or isinstance(written, Mapping | Criterion) else {name: written}


def _input_type(model: type[Criterion]) -> Any:
    """Return the type of what users write for a criterion."""
    name = only_parameter(model)
    if name is None:
        return model
    info = model.model_fields[name]
    alone = Annotated[info.annotation, *info.metadata, Field(description=info.description)]  # type: ignore[name-defined]
    return Annotated[model, BeforeValidator(lambda value: value, json_schema_input_type=model | alone)]


ITEMS: dict[str, type[Model]] = {
    name: create_model(
        f"Item_{name}",
        __base__=Model,
        __doc__=model.__doc__,
        **{name: (_input_type(model), Field(description=f"parameters of {name}"))},  # type: ignore[call-overload]
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
    written = parameters(CRITERIA[name], given[name])
    try:
        item = ITEMS[name].model_validate({name: written}, context=info.context)
    except ValidationError as error:
        if written is given[name]:
            raise
        raise refusal(((loc[0], *loc[2:]), each) for loc, each in as_mistakes(error)) from None
    criterion: Criterion = getattr(item, name)
    return criterion


Item = reduce(or_, ITEMS.values())
Privacy = Annotated[SerializeAsAny[Criterion], BeforeValidator(_criterion, json_schema_input_type=Item)]
