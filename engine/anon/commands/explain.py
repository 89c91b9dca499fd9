"""Why a run came to this release, from what its run folder holds (report.json and recoding.json), after the way of the
data: how close each criterion is to its bound, which of them keep groups from being split, and what was generalized in
each column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.artifacts.reading import read_run, read_sealed
from anon.config.grammar import Limits
from anon.core.memory import require
from anon.report.promises import closest

if TYPE_CHECKING:
    from anon.core.progress import Progress
    from anon.runs.options import Options


OBJECTS = 9  # times the bytes of a recoding.json: what its nodes take as objects


def explain(run: Path, options: Options, progress: Progress) -> dict[str, Any]:
    """Why a run came to its release, and what looser criteria would come to, for which its source is read again."""
    from anon.explanation.relaxing import relaxing

    _check_memory(run, options)
    manifest, report, told = _read(run)
    found = relaxing(manifest, report, options, progress)
    return told | {"binding": _binding(told["criteria"], report, found), "relaxing": found}


def _check_memory(run: Path, options: Options) -> None:
    """Raise ResourceError if the recoding of a run takes more memory than there is."""
    limits = read_sealed(run, "manifest.json")["config"].get("limits")
    try:
        stated = Limits.model_validate(limits or {}).memory
    except ValueError:  # a variable, whose value no manifest holds
        stated = Limits().memory
    recoding = run / "recoding.json"
    if recoding.is_file():
        require(options.memory or stated, OBJECTS * recoding.stat().st_size, "the recoding.json of this run")


def _read(run: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Read the manifest and the report of a run, and what they and its recoding, which may be large, tell."""
    manifest, report, recoding = read_run(run)
    return manifest, report, _told(report, recoding)


def _told(report: dict[str, Any], recoding: dict[str, Any]) -> dict[str, Any]:
    """The method, what holds and how near it is to failing, what blocks groups, what was generalized and lost per
    column, and for a lattice every minimal combination of levels."""
    utility, criteria = report["utility"], report["summary"]["criteria"]
    found = {"method": report["method"], "groups": utility["groups"], "suppressed": utility["suppressed"]}
    found["left_out"] = report["summary"]["left_out"]
    criteria = [entry | {"near": nearness(entry)} for entry in criteria]
    found |= {"criteria": criteria, "binding": None}
    found |= {"columns": _columns(report, recoding, utility["loss"]["columns"]), "loss": utility["loss"]}
    lattice: dict[str, Any] = report.get("lattice", {})
    return found | {"blocking": report.get("blocking") or None} | lattice


def nearness(entry: dict[str, Any]) -> float | None:
    """How near a criterion is to its bound: 1 at the bound, less away from it. None where it has no one number.

    >>> nearness({"figure": 6, "bound": 5, "relation": ">="}), nearness({"figure": 0.3, "bound": 0.4, "relation": "<"})
    (0.8333333333333334, 0.7499999999999999)
    """
    worst = closest(entry)
    figure, bound = worst["figure"], worst["bound"]
    if not isinstance(figure, int | float) or not isinstance(bound, int | float):
        return None
    top, bottom = (bound, figure) if entry["relation"] in (">=", ">") else (figure, bound)
    return top / bottom if bottom else None


def _binding(criteria: list[dict[str, Any]], report: dict[str, Any], relaxing: dict[str, Any]) -> int | None:
    """The place of the criterion that binds: in a lattice that which refuses most of the nodes just below, in a tree of
    cuts that which alone refuses cuts of most individuals. Where that was not looked at, that which alone blocks most
    individuals, if that are more than have cuts left that were refused; if that tells nothing, the nearest to its
    bound."""
    weight = [0] * len(criteria)
    if relaxing["measured"] and "lattice" not in report:
        weight = [tried["refuses_alone"]["individuals"] for tried in relaxing["criteria"]]
        report = {}
    for node in report.get("lattice", {}).get("finer") or []:
        for at in node["refused_by"]:
            weight[at] += 1
    blocking = report.get("blocking") or {"criteria": [], "refused": {"individuals": 0}}
    for at, blocked in enumerate(blocking["criteria"]):
        if blocked["only"]["individuals"] > blocking["refused"]["individuals"]:
            weight[at] += blocked["only"]["individuals"]
    near = [entry["near"] or 0.0 for entry in criteria]
    places = range(len(criteria))
    return max(places, key=lambda at: (weight[at], near[at])) if criteria else None


def _columns(report: dict[str, Any], recoding: dict[str, Any], loss: dict[str, float]) -> list[dict[str, Any]]:
    """What was generalized in each column: its level (0 where people were assigned to groups one by one), or how often
    it was cut, and for whom it never was, unless the cuts are an earlier run's."""
    if "nodes" not in recoding:
        levels = recoding["chosen"]["levels"] if "chosen" in recoding else dict.fromkeys(loss, 0)
        return [{"column": name, "lost": loss[name], "level": level} for name, level in levels.items()]
    if report["method"]["kind"] == "reuse":
        cuts = {column["name"]: column["cuts"] for column in report["columns"]}
        return [{"column": name, "lost": loss[name], "cuts": cuts[name]} for name in loss]
    names = [column["name"] for column in recoding["columns"]]
    nodes, cut = recoding["nodes"], [0] * len(recoding["nodes"])  # per node the columns cut above it, as bits
    told: dict[str, dict[str, Any]] = {
        name: {"column": name, "lost": loss[name], "cuts": 0, "uncut": {"groups": 0, "individuals": 0}}
        for name in names
    }
    for number, node in enumerate(nodes):
        if "children" in node:
            told[node["column"]]["cuts"] += 1
            for child in node["children"]:
                cut[child] = cut[number] | 1 << names.index(node["column"])
            continue
        for at, name in enumerate(names):
            if not cut[number] >> at & 1:
                told[name]["uncut"]["groups"] += 1
                told[name]["uncut"]["individuals"] += node["people"]
    return list(told.values())
