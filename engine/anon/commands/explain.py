"""`anon explain`: explain the release of a run from its run folder (report.json and recoding.json): how close each
criterion is to its bound, which of them keep groups from being split, and what was generalized in each column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon.artifacts.reading import read_manifest, read_run
from anon.artifacts.recoding import AnyRecodingFile, LatticeRecoding, TreeRecoding
from anon.artifacts.schema import Manifest, Report
from anon.config.grammar import Limits
from anon.core.memory import require
from anon.report.promises import closest

if TYPE_CHECKING:
    from anon.core.progress import Progress
    from anon.runs.options import Options


OBJECTS = 9  # times the bytes of a recoding.json: what its nodes take as objects


def explain(run: Path, options: Options, progress: Progress) -> dict[str, Any]:
    """Return why a run came to its release, and what looser criteria would give, for which its source is read again."""
    from anon.explanation.loosening_effects import relaxing

    _check_memory(run, options)
    manifest, report, facts = _read(run)
    found = relaxing(manifest, report, options, progress)
    return facts | {"binding": _binding(facts["criteria"], report, found), "relaxing": found}


def _check_memory(run: Path, options: Options) -> None:
    """Raise ResourceError if the recoding of a run takes more memory than there is."""
    limits = read_manifest(run).config.get("limits")
    try:
        stated = Limits.model_validate(limits or {}).memory
    except ValueError:  # a variable, whose value no manifest holds
        stated = Limits().memory
    recoding = run / "recoding.json"
    if recoding.is_file():
        require(options.memory or stated, OBJECTS * recoding.stat().st_size, "the recoding.json of this run")


def _read(run: Path) -> tuple[Manifest, Report, dict[str, Any]]:
    """Read the manifest and the report of a run, and what they and its recoding, which may be large, say."""
    manifest, report, recoding = read_run(run)
    return manifest, report, _facts(report, recoding)


def _facts(report: Report, recoding: AnyRecodingFile) -> dict[str, Any]:
    """Return the method, the criteria and how close each is to its bound, what blocks groups, what was generalized and
    lost per column, and for a lattice the minimal combinations of levels that were found."""
    utility, entries = report.utility, [entry.to_dict() for entry in report.summary.criteria]
    return {
        "method": report.method.to_dict(),
        "groups": utility.groups,
        "suppressed": utility.suppressed,
        "left_out": report.summary.left_out.to_dict(),
        "criteria": [entry | {"near": nearness(entry)} for entry in entries],
        "binding": None,
        "columns": _columns(report, recoding, utility.loss.columns),
        "loss": utility.loss.to_dict(),
        "blocking": None if report.blocked is None else report.blocked.to_dict(),
        "level_names": report.level_names,
        **({} if report.lattice is None else report.lattice.to_dict()),
    }


def nearness(entry: dict[str, Any]) -> float | None:
    """Return how close a criterion is to its bound: 1 at the bound, less away from it. None if its figure is not one
    number.

    >>> nearness({"figure": 6, "bound": 5, "relation": ">="}), nearness({"figure": 0.3, "bound": 0.4, "relation": "<"})
    (0.8333333333333334, 0.7499999999999999)
    """
    worst = closest(entry)
    figure, bound = worst["figure"], worst["bound"]
    if not isinstance(figure, int | float) or not isinstance(bound, int | float):
        return None
    top, bottom = (bound, figure) if entry["relation"] in (">=", ">") else (figure, bound)
    return top / bottom if bottom else None


def _binding(criteria: list[dict[str, Any]], report: Report, relaxing: dict[str, Any]) -> int | None:
    """Return the index of the criterion that binds: in a lattice the one that refuses most of the nodes just below, in
    a tree of cuts the one that alone refuses the cuts of most individuals. If that was not measured, the one that alone
    blocks most individuals, if these are more than those who have cuts left that were refused; otherwise the one that
    is closest to its bound."""
    if relaxing["measured"] and report.lattice is None:
        weight = [tried["refuses_alone"]["individuals"] for tried in relaxing["criteria"]]
    else:
        weight = _weights(report)
    near = [entry["near"] or 0.0 for entry in criteria]
    places = range(len(criteria))
    return max(places, key=lambda at: (weight[at], near[at])) if criteria else None


def _weights(report: Report) -> list[int]:
    """Return for each criterion the number of nodes just below that it refuses, or of individuals that it alone
    blocks, if these are more than those who have cuts left that were refused."""
    weight = [0] * len(report.privacy)
    for node in (report.lattice and report.lattice.finer) or []:
        for at in node.refused_by:
            weight[at] += 1
    for at, blocked in enumerate(report.blocked.criteria if report.blocked else []):
        assert report.blocked is not None
        if blocked.only.individuals > report.blocked.refused.individuals:
            weight[at] += blocked.only.individuals
    return weight


def _columns(report: Report, recoding: AnyRecodingFile, loss: dict[str, float]) -> list[dict[str, Any]]:
    """Return what was generalized in each column: its level (0 if people were assigned to groups one by one), or the
    number of its cuts and, unless the cuts are those of an earlier run, the groups in which it is uncut."""
    if not isinstance(recoding, TreeRecoding):
        levels = recoding.chosen.levels if isinstance(recoding, LatticeRecoding) else dict.fromkeys(loss, 0)
        return [{"column": name, "lost": loss[name], "level": level} for name, level in levels.items()]
    if report.method.kind == "reuse":
        cuts = {column.name: column.cuts for column in report.columns}
        return [{"column": name, "lost": loss[name], "cuts": cuts[name]} for name in loss]
    names = [column.name for column in recoding.columns]
    nodes, cut = recoding.nodes, [0] * len(recoding.nodes)  # per node the columns cut above it, as bits
    facts: dict[str, dict[str, Any]] = {
        name: {"column": name, "lost": loss[name], "cuts": 0, "uncut": {"groups": 0, "individuals": 0}}
        for name in names
    }
    for number, node in enumerate(nodes):
        if "children" in node:
            facts[node["column"]]["cuts"] += 1
            for child in node["children"]:
                cut[child] = cut[number] | 1 << names.index(node["column"])
            continue
        for at, name in enumerate(names if "group" in node else ()):
            if not cut[number] >> at & 1:
                facts[name]["uncut"]["groups"] += 1
                facts[name]["uncut"]["individuals"] += node["people"]
    return list(facts.values())
