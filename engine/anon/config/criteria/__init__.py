"""The criteria of the config, one module each: grammar, supported methods, sentences, and what else `Criterion`
declares. A module that is added here becomes a criterion; nothing else lists them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from anon.config.criterion import Criterion


def _criteria() -> Iterator[type[Criterion]]:
    for module in iter_modules(__path__):
        defined = vars(import_module(f"{__name__}.{module.name}")).values()
        models = [each for each in defined if isinstance(each, type) and issubclass(each, Criterion)]
        yield next(model for model in models if getattr(model, "name", None) == module.name)


CRITERIA: dict[str, type[Criterion]] = {
    model.name: model for model in sorted(_criteria(), key=lambda model: (model.position, model.name))
}
