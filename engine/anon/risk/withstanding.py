"""Whether a release withstands the attacks that its config names (`withstands`), given the results of attacks. One that
could not be carried out is not withstood, nor is one that leaves people undecided: nobody knows what they reveal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from anon.config import Config, Withstands
from anon.core.terminal import one_line
from anon.errors import UnsafeError
from anon.risk.overview import Attack

OF_TABLES = {"homogeneity", "kept_columns"}  # attacks that need only the table
TO_NOBODY = {"downcoding", *OF_TABLES}  # attacks that must affect nobody, whatever is promised


def refuse_successful(config: Config, attacks: Sequence[Attack]) -> None:
    """Raise UnsafeError if a release does not withstand an attack that its config names."""
    specs = [spec for spec in config.privacy if isinstance(spec, Withstands)]
    if failed := [f"  {line}" for spec in specs for line in _successes(spec, attacks)]:
        raise UnsafeError("\n".join(["attacks that the release must withstand; nothing was published", *failed]))


def withstood(spec: Withstands, attacks: Sequence[Attack]) -> dict[str, Any]:
    """Return facts about a table that was attacked by those that need nothing else."""
    lines = [*_successes(spec, attacks)]
    failed = [{"text": line, "figure": 1, "bound": 0, "worst_group": None} for line in lines]
    names = {attack.name for attack in attacks}
    not_judged = [name for name in spec.attacks if name not in names]
    return {"safe": not lines, "figure": len(lines), "not_judged": not_judged, **({"failed": failed} if failed else {})}


def _successes(spec: Withstands, attacks: Sequence[Attack]) -> Iterator[str]:
    """Yield in words what attacks achieved that they must not, or why that is not known."""
    for name in dict.fromkeys(spec.attacks):
        for attack in attacks:
            if attack.name == name and not _is_withstood(attack):
                yield f"{name}: {one_line(attack.found)}" + (f" (helps: {attack.helps})" if attack.helps else "")


def _is_withstood(attack: Attack) -> bool:
    """Return whether an attack achieves nothing that it must not, as far as that is known of everybody."""
    known = attack.individuals is not None and not attack.details.get("undecided")
    return known and not attack.breached and not (attack.name in TO_NOBODY and attack.individuals)
