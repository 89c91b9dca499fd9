"""`anon plan`: show what a run would do, without searching or writing anything that stays. It executes the first stages
of `pipeline.run`, up to the search, which is prepared to know its size. A reuse, which has no search, is tried up to
its verification. Files that it writes are removed at the end."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from anon import release
from anon.backends import backend_for
from anon.backends.local import LocalBackend
from anon.config import Config, Lattice, Partition, Reuse, load, redact, without_secrets
from anon.config.support import refuse_unsupported
from anon.core.checkpoint import Checkpoint
from anon.core.database import connect
from anon.core.disk import digest, digests, errors_at, make_private
from anon.core.memory import LIBRARIES, Memory
from anon.core.progress import Progress
from anon.criteria import EarlierGroups, Values, bind
from anon.criteria.value_names import number
from anon.cube import Cube, RecordStore, records
from anon.errors import UnsafeError
from anon.recoding.levels import ColumnLevels
from anon.report.warnings import Warned, people_warnings, signed_off, warnings_of
from anon.runs.named_files import check_files
from anon.runs.options import DEFAULTS, Options, adjusted
from anon.runs.previous_release import PreviousRelease
from anon.runs.result import Result
from anon.runs.run_folder import check_places
from anon.runs.scratch import scratch
from anon.runs.series.night import Night
from anon.runs.series.pool import NobodyNew
from anon.runs.workspace import RunFolders, check_available
from anon.search import dispatch
from anon.search.prepare import build_cube, check_not_vacuous
from anon.source import Source, open_source
from anon.source.origins import Origin, origin_of
from anon.verify.judge import Findings


@dataclass
class DiskUsage:
    """Makes record stores as a run does, and notes the disk space that they take."""

    memory: int
    spill: Path
    on_disk: dict[str, int] = field(default_factory=dict)  # bytes by name

    def make(self, count: int, sizes: list[int], name: str) -> records.Records:
        self.note(count, sizes, name)
        return records.make(self.memory, self.spill, count, sizes, name)

    def note(self, count: int, sizes: list[int], name: str, memory: int | None = None) -> None:
        if records.bytes_in_memory(count, sizes) > (self.memory if memory is None else memory):
            self.on_disk[name] = records.bytes_on_disk(count, sizes)


@without_secrets(source=True, replaced=True)
def plan(config: Any, table: Any = None, options: Options = DEFAULTS, progress: Progress | None = None) -> Result:
    """Return what a run of the config would do; `report["sql"]` holds the queries that its first stages send to DuckDB,
    in order. Mistakes raise what a run would raise; criteria that no release can satisfy, or that the release of a
    reused recoding does not satisfy, give `feasible`: false."""
    config, progress = adjusted(load(config), options), progress or Progress()
    refuse_unsupported(config, run=True)
    backend_for(config).check_plan(config, table)
    if config.release.series is None:
        check_places(config, overwrite=True)
    check_available(config)
    check_not_vacuous(config)
    check_files(config, run=True)
    limits = config.limits
    Memory(limits.memory).check()
    with scratch(config, progress) as spill, closing(connect(limits.memory, limits.threads, spill)) as database:
        database.record()
        places = DiskUsage(Memory(limits.memory).records, spill)
        with progress.stage("source"):
            origin = origin_of(config, table)
            night = None if config.release.series is None else Night.begin(config, origin, tidy=False)
            if night is not None:
                config, origin = night.config, night.pool
            try:
                source = open_source(database, config, origin, spill)
            except NobodyNew:
                return Result(_of_night(night, options) | {"feasible": True, "rows": 0, "warnings": []}, {"sql": []})
            copied = sum(file.stat().st_size for file in spill.glob("*.parquet"))
        with progress.stage("cube"):
            room = RecordStore(places.make, dispatch.threads_of(config), partial(progress.update, "cube"))
            cube = build_cube(config, source, room)
            dispatch.memory_of(config, cube).check("values")
        earlier = None if night is None else night.look_back(spill)
        facts = _facts(config, source, cube, options, places, copied, earlier)
        facts |= _up_to_date(config, options, origin) if night is None else _of_night(night, options)
        sql = [redact(sql, config.secrets) for sql in database.queries]
        if isinstance(config.method, Reuse) and facts["feasible"] and "up_to_date" not in facts:
            facts |= _reuse(config, source, cube, spill, options, progress)
        facts["warnings"] = signed_off(config, facts["warnings"] + _existing_folders(config, facts))
        source.check_unchanged()
        cube.records.close()
    return Result(facts, {"sql": sql})


def _reuse(
    config: Config, source: Source, cube: Cube, spill: Path, options: Options, progress: Progress
) -> dict[str, Any]:
    """Apply the recoding and verify the release that it gives, in the spill folder. A reuse has no search, and whether
    an earlier recoding is safe for new rows shows in the release only."""
    with errors_at("limits.temp", spill):
        folder = make_private(spill / "release", "limits.temp")
    folders = RunFolders(spill, folder, spill)
    backend = LocalBackend(config, options.show_values, folders, progress, source.database)
    try:
        with progress.stage("reuse"):
            on_progress = partial(progress.update, "reuse")
            outcome = dispatch.searched(config, cube, spill, Checkpoint(spill), options.show_values, on_progress)
            written = backend.write(source, cube, outcome)
            recoding = spill / "recoding.json"
            outcome.recoding.write(recoding)
        with progress.stage("verify"), closing(backend.verify(config, source, cube, outcome, written)) as found:
            left_out = release.left_out(source, outcome.recoding)
            individuals, judged = found.individuals, warnings_of(config, found, left_out)
    except UnsafeError as error:
        return {"feasible": False, "reason": str(error)}
    before = PreviousRelease.read(config, options.show_values)
    together = backend.together(source, cube, outcome, before)
    of_files = before.warnings(digests(folder), digest(recoding), individuals, together)
    return {"warnings": judged + people_warnings(config, source) + of_files}


def _facts(
    config: Config,
    source: Source,
    cube: Cube,
    options: Options,
    places: DiskUsage,
    copied: int,
    earlier: EarlierGroups | None,
) -> dict[str, Any]:
    values = dispatch.sensitive_values(config, cube, earlier)
    refused = _refused(config, cube, values, options.show_values)
    memory, count, sizes = dispatch.memory_of(config, cube), cube.records.count, cube.records.sizes
    inside = records.bytes_in_memory(count, sizes)
    facts: dict[str, Any] = {
        "feasible": refused is None,
        **({} if refused is None else {"reason": refused}),
        "rows": source.rows,
        "individuals": cube.individuals,
        "left_out": source.left_out.to_dict(),
        "columns": _columns(source, cube),
        "records": {"count": count, "collapsed": cube.counted, "bytes_each": _width(cube), "bytes": inside,
                    "in_memory": inside <= places.memory},
        "method": config.method.kind,
        **_search_size(config, cube, values, places, memory),
        "memory": {"limit": memory.total, "least": memory.least, "for_records_in_memory": LIBRARIES + 5 * inside},
        "criteria": _criteria(config, cube, values),
        "release": {name: redact(str(getattr(config.release, name)), config.secrets) for name in ("path", "run")},
    }  # fmt: skip
    facts["disk"] = {"csv_copy": copied, **places.on_disk, "total": copied + sum(places.on_disk.values())}
    return facts | {"warnings": _warnings(config, source, cube, values)}


def _width(cube: Cube) -> int:
    """Return the bytes of a record, by which a block of the search is measured."""
    from anon.search.partition.search import record_bytes

    return record_bytes(cube)


def _refused(config: Config, cube: Cube, values: Values, show_values: bool) -> str | None:
    """Return why no release can satisfy the criteria, if the whole table shows it."""
    try:
        dispatch.check_before_search(config, cube, values, show_values)
    except UnsafeError as error:
        return str(error)
    return None


def _columns(source: Source, cube: Cube) -> list[dict[str, Any]]:
    """Return the columns in use, with the number of values that the table has of each; null is one of them."""
    listed: list[dict[str, Any]] = []
    for column, domain in zip(source.quasi_identifiers, cube.domains):
        levels = None if domain.tree is None else ColumnLevels(domain).height + 1
        entry = {"name": column.name, "role": "quasi_identifier", "kind": column.kind, "distinct": domain.size}
        listed.append(entry | {"levels": levels, **({} if domain.single else {"binned": True})})
    for column in source.sensitive:
        size = cube.domain(column.name).size
        listed.append({"name": column.name, "role": "sensitive", "kind": column.kind, "distinct": size})
    return [*listed, *({"name": column.name, "role": "keep", "kind": column.kind} for column in source.keep)]


def _search_size(config: Config, cube: Cube, values: Values, places: DiskUsage, memory: Memory) -> dict[str, Any]:
    """Return the size of the search, and note the disk space that it takes in addition to the records."""
    if isinstance(config.method, Lattice):
        from anon.search.lattice.counting import sorting_takes
        from anon.search.lattice.search import size

        nodes, largest = size([ColumnLevels(domain) for domain in cube.domains]), cube.records.count
        largest_set = sorting_takes(largest, 1, cube.counted)
        return {"lattice": {"nodes": nodes, "largest_set": largest_set, "room": memory.search}}
    if not isinstance(config.method, Partition):
        return {}
    budget = dispatch.budget_for(config, cube, places.spill)
    block = int(dispatch.partition_search(config, cube, values, budget, lambda **facts: None).limit)
    if cube.individuals > block:
        places.note(cube.records.count, cube.records.sizes, "sorted-records")
        places.note(cube.records.count, [records.WIDE], "marks", memory.marks)
    return {"partition": {"block": block, "levels_from_the_top": cube.individuals > block}}


def _criteria(config: Config, cube: Cube, values: Values) -> list[dict[str, Any]]:
    """Return the figures of the whole table as one group: the best that a monotone criterion can have."""
    listed = []
    for criterion in bind(config.privacy, values):
        verdict = criterion.verdict(criterion.state(dispatch.whole_table(cube, values, criterion)))
        figure, bound = number(verdict.figure), number(verdict.bound)
        entry = {"name": verdict.name, "safe": verdict.safe, "figure": figure, "bound": bound}
        column = criterion.column or list(criterion.columns)
        about = {"sensitive": column} if column else {}
        listed.append(entry | {"relation": criterion.relation} | about)
    return listed


def _warnings(config: Config, source: Source, cube: Cube, values: Values) -> list[dict[str, Any]]:
    """Return the warnings that a run would give whatever it finds."""
    found = Findings(rows=source.rows, individuals=cube.individuals, criteria=bind(config.privacy, values))
    found.values, found.frequency = values.texts, values.frequency
    return warnings_of(config, found, source.left_out) + people_warnings(config, source)


def _up_to_date(config: Config, options: Options, origin: Origin) -> dict[str, Any]:
    """Return `up_to_date` if a run would do nothing, because there is a release of the same source and config."""
    return {"up_to_date": True} if PreviousRelease.read(config, options.show_values).is_current(origin) else {}


def _of_night(night: Night | None, options: Options) -> dict[str, Any]:
    """Return who is new, waits and was released in a night of a series, and whether a run would do nothing."""
    assert night is not None
    facts = night.facts(None) | {"waiting": night.before.waiting.individuals}
    own = PreviousRelease.read(night.config, options.show_values).dependencies
    return {"series": facts} | ({"up_to_date": True} if night.is_current(own) else {})


def _existing_folders(config: Config, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a warning if a run would replace folders, which it does only with --overwrite, and never of a series."""
    if config.release.series is not None:
        return []
    places = [place for place in (config.release.path, config.release.run) if isinstance(place, Path)]
    there = sum(place.is_dir() and any(place.iterdir()) for place in places)
    if not there or "up_to_date" in facts:
        return []
    text = "folders of the release that exist: a run replaces them only with --overwrite"
    return [Warned("release_exists", there, text).to_dict()]
