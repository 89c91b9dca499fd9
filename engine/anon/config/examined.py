"""Which attacks cannot be carried out on the releases of a config, as far as the config says: their results are not
known, so `withstands` refuses them (docs/attacks.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anon.config.criteria.group_size import GroupSize
from anon.config.criteria.k_anonymity import KAnonymity
from anon.config.criteria.withstands import Withstands
from anon.config.grammar import Config, InformationGain, Partition
from anon.errors import Problem

OF_PROMISES = ("minimality", "definetti", "composition")  # attacks that are held against a promised confidence
NO_PEOPLE = "needs one value of one sensitive column per individual, on one machine (backend local)"


def refused_attacks(config: Config, run: bool) -> Iterator[Problem]:
    """Yield the attacks that `withstands` names in vain; `run`: they are carried out as well."""
    promised = any(_promises(config, column) for column in config.columns.sensitive)
    for index, spec in enumerate(config.privacy):
        for name in spec.attacks if isinstance(spec, Withstands) else ():
            path = f"privacy[{index}].withstands"
            if name in OF_PROMISES and not promised:
                expected = "a criterion that bounds the confidence in a value, such as l_diversity of kind frequency"
                yield Problem(path, f"{name} without a promise that it could break", expected)
            elif run and (reason := not_examined(config, name)):
                yield Problem(path, f"{name}, which would not be carried out", "attacks that are", reason)


def _promises(config: Config, column: str) -> bool:
    """Return whether some criterion bounds the confidence in some value of a column."""
    about = [spec for spec in config.privacy if spec.protects(column)]
    values = {None, *(value for spec in about for value in spec.named_values())}
    bounds = [spec.confidence(value) for spec in about for value in values]
    return any(bound is not None and bound.share < 1 for bound in bounds)


def not_examined(config: Config, attack: str) -> str:
    """Return why an attack is not carried out on the releases of a config; nothing if it is."""
    reasons: dict[str, Callable[[Config], str]] = {
        "minimality": _minimality,
        "definetti": people_unknown,
        "composition": _composition,
        "downcoding": _downcoding,
        "kept_columns": lambda config: "" if config.columns.keep else "the config keeps no columns",
    }
    return reasons[attack](config) if attack in reasons else ""


def people_unknown(config: Config) -> str:
    """Return why the people of a release are not at hand for attacks that need them."""
    single = config.columns.multiplicity == "single" and len(config.columns.sensitive) == 1
    return "" if single and config.backend.kind == "local" else NO_PEOPLE


def _minimality(config: Config) -> str:
    return people_unknown(config) or unrepeated(config)


def unrepeated(config: Config) -> str:
    """Return why the decisions of the search are not repeated by the attack of minimality."""
    method = config.method
    if others := [spec.name for spec in config.privacy if spec.links_groups() or not spec.merges_safely()]:
        return f"what {', '.join(others)} refused does not follow from the groups alone"
    if not isinstance(method, Partition):
        return f"the decisions of {method.kind} are not repeated"
    if method.refine or config.release.one_level:
        return f"groups are changed after the cuts ({'refine' if method.refine else 'one_level'})"
    if isinstance(method.prefer, InformationGain):
        return "the order of cuts may depend on the values (prefer: information_gain)"
    if method.peel:
        return "which parts of a split leave depends on the values (peel)"
    if method.suppress:
        return "who is left out depends on the values (suppress)"
    if method.guard is not None and not method.guard.enforce:
        return "the coins of the guard are not repeated; the report has the bound that they give"
    return ""


def _composition(config: Config) -> str:
    if config.release.series is not None:
        return "the releases of a series are made to be safe together"
    if config.columns.multiplicity != "single" or config.backend.kind != "local":
        return "needs one value per individual, on one machine (backend local)"
    return "" if config.release.members else "release.members is false, so nobody can be recognized in two releases"


def _downcoding(config: Config) -> str:
    if config.release.labels == "exact":
        return "quasi-identifiers are published as they are"
    if not isinstance(config.method, Partition):
        return f"the argument is about the cuts of partition, not about {config.method.kind}"
    if config.method.refine or config.release.one_level:
        return "groups are changed after the cuts, so that these do not decide who is in which"
    others = not_about_sizes(config)
    return f"cuts may have been refused by {', '.join(others)}; minimality examines these" if others else ""


def not_about_sizes(config: Config) -> list[str]:
    """Return the criteria that may refuse a cut for another reason than a size."""
    return [s.name for s in config.privacy if s.about_groups and not isinstance(s, KAnonymity | GroupSize)]
