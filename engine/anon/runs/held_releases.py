"""Open several releases with their run folders, as somebody holds them who knows who is in which group of each, and
report what they reveal together (risk/together.py)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anon.artifacts.reading import read_manifest
from anon.artifacts.schema import Manifest
from anon.config import Config, load
from anon.config.criteria.withstands import must_withstand
from anon.core import disk
from anon.core.database import Database, literal, translated
from anon.errors import ConfigError, SourceError
from anon.risk.composition import NAME
from anon.risk.overview import sampled
from anon.risk.shared_sample import WHOLE, Examined, take_sample
from anon.risk.together import PEOPLE, VALUES, BeliefBounds, Together, learned, link
from anon.runs.members import MEMBERS, hashed, identity, read_key, read_kinds, value_text
from anon.runs.previous_release import PreviousRelease, digest, manifest_marks, released_files
from anon.runs.scratch import at_hand
from anon.runs.workspace import RunFolders
from anon.source import open_grouped, open_source
from anon.source.origins import origin_of
from anon.verify.grouped import Grouped, in_order, same_in, value_of

NO_MEMBERS = "one made with release.members, one value per individual and backend local"


@dataclass(frozen=True)
class HeldRelease:
    """A release with the run folder that says who is in which group of it."""

    config: Config
    place: Path
    run: Path
    key: str
    manifest: Manifest | None = None  # of a run that is complete

    @property
    def members(self) -> str:
        return f"read_parquet({literal(str(self.run / MEMBERS))})"

    @property
    def known_by(self) -> list[str]:
        """The columns by which an individual is recognized."""
        columns = self.config.columns
        return list(columns.quasi_identifiers) if columns.individual == "row" else [columns.individual]


def held_release(place: Path | str, field: str, own: Config | None = None) -> HeldRelease:
    """Return the release in a folder, or of a file in it, with its run folder: the one beside it whose manifest lists
    these files, or that of the config if the release is the config's."""
    folder = Path(place)
    folder = folder.parent if folder.is_file() else folder
    if not folder.is_dir():
        raise ConfigError.at(field, f"{place}, where nothing is", "the folder of a release")
    run = _run_of(folder, own)
    if run is None:
        expected = f"a release whose run folder is beside it ({folder.name}-run, or another folder there)"
        raise ConfigError.at(field, f"{folder}, of which no run folder lists the files", expected)
    manifest = read_manifest(run, field)
    if not read_key(run) or digest(run / MEMBERS) != manifest.members_sha256:
        raise ConfigError.at(field, f"{folder}, whose run folder does not say who is in which group", NO_MEMBERS)
    config = load(manifest.config, base=Path(manifest.base), source=False)
    return HeldRelease(config, folder, run, read_key(run), manifest)


def _run_of(folder: Path, own: Config | None) -> Path | None:
    """Return the run folder of a release."""
    beside = sorted(path for path in folder.resolve().parent.iterdir() if (path / "manifest.json").is_file())
    own_run = [own.release.run] if own is not None else []
    released = disk.digests(folder)
    for run in [*own_run, Path(f"{folder.resolve()}-run"), *beside]:
        try:
            if read_manifest(run).release == released:
                return run
        except ConfigError:
            continue
    return None


def held_together(
    database: Database, config: Config, releases: Sequence[HeldRelease], spill: Path, sample: bool
) -> tuple[Together, Examined | None]:
    """Return what somebody learns who holds these releases, the first of which is the config's: of several sensitive
    columns the one that reveals most. `sample`: of large releases a sample is enough; return how large it is, if one
    was taken."""
    _check_same_people(releases)
    grouped = [_publish_values(database, at, held, config, spill) for at, held in enumerate(releases)]
    others = _translated_names(database, config, releases, spill)
    with translated("comparing releases"):
        rows = [_people(at, held, others) for at, held in enumerate(releases)]
        database.execute(f"CREATE OR REPLACE TEMP VIEW {PEOPLE} AS {' UNION ALL '.join(rows)}")
        not_compared = _set_apart(database) if config.columns.individual == "row" else 0
        _show_values(database, grouped, next(iter(config.columns.sensitive)))
        examined = take_sample(database) if sample else None
        if examined is None:
            _check_members(database, len(releases))
        individuals = link(database, len(releases), WHOLE if examined else "")
        found = []
        for column in config.columns.sensitive:
            _show_values(database, grouped, column)
            found.append(learned(database, individuals, _bounds(database, config, column)))
    worst = max(found, key=lambda each: (each.over, each.largest_belief or 0, each.one_value))
    # people who are not in the source cannot be recognized under another key
    complete = (len(releases) == 2 or not others) and individuals > 0 and not not_compared and examined is None
    exact = worst.exact and complete and not worst.contradictory
    return replace(worst, exact=exact, not_compared=not_compared), examined


def _show_values(database: Database, grouped: list[dict[str, str]], column: str) -> None:
    """Make the view VALUES of a sensitive column, given SQL for the columns of each release."""
    parts = " UNION ALL ".join(own[column] for own in grouped)
    database.execute(f"CREATE OR REPLACE TEMP VIEW {VALUES} AS {parts}")


def _check_same_people(releases: Sequence[HeldRelease]) -> None:
    """Refuse releases whose people cannot be recognized in each other."""
    first = releases[0]
    if not first.config.columns.sensitive:
        found, expected = f"{first.place}, without a sensitive column", "one, about which something is learned"
        raise ConfigError.at("--with", found, expected)
    kinds = read_kinds(first.run)
    for held in releases[1:]:
        columns = held.config.columns
        missing = [name for name in first.config.columns.sensitive if name not in columns.sensitive]
        if missing:
            raise ConfigError.at(
                "--with", f"{held.place}, without the sensitive column {missing[0]}", "the same columns"
            )
        if (columns.individual, held.known_by) != (first.config.columns.individual, first.known_by):
            expected = f"people known by {', '.join(first.known_by)}, as in the first release"
            raise ConfigError.at("--with", f"{held.place}, whose people are known by other columns", expected)
        if (own := read_kinds(held.run)) != kinds:
            found, expected = f"{held.place}, whose people are known by {own}", f"{kinds}, as in the first release"
            raise ConfigError.at("--with", found, expected)


def _publish_values(database: Database, at: int, held: HeldRelease, config: Config, spill: Path) -> dict[str, str]:
    """Make tables of the values in each group of a release; return SQL for each sensitive column."""
    opened = open_grouped(database, f"held_{at}", held.config, held.place, spill)
    grouped = Grouped.from_opened(database, opened, held.config.columns)
    found = {}
    for column in config.columns.sensitive:
        place = grouped.sensitive.index(column)
        name = f"held_values_{at}_{place}"
        with translated("reading the release"):
            counts = _counts(grouped, column)
            database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {at} AS release, * FROM ({counts})")
        found[column] = f"SELECT * FROM {name}"
    return found


def _counts(grouped: Grouped, column: str) -> str:
    """Return SQL for the count c of each value v in each group g, numbered as the release numbers them."""
    value, coded = value_of(grouped, (column,))
    text = value_text(value)
    if grouped.bucketized:
        return f"SELECT g, {text} AS v, sum(c)::BIGINT AS c FROM {grouped.COUNTS} GROUP BY ALL"
    number = f"row_number() OVER (ORDER BY {in_order(grouped.key)}) - 1 AS g"
    if grouped.has_few(column):
        counts = grouped.counted_as(column)
        codes = f"unnest(range({len(counts)})) AS code, unnest([{', '.join(counts)}]) AS c"
        counted = f"SELECT {number}, {codes} FROM {grouped.GROUPS}"
        joined = f"({counted}) JOIN {coded} USING (code)"
        return f"SELECT g, {value_text('v')} AS v, c::BIGINT AS c FROM {joined} WHERE c > 0"
    numbers = f"SELECT {number}, {', '.join(grouped.key)} FROM {grouped.GROUPS}"
    joined = f"{grouped.VIEW} AS r JOIN ({numbers}) AS n ON {same_in(grouped.key, 'r', 'n')}"
    return f"SELECT n.g AS g, {text} AS v, count(*) AS c FROM {joined} GROUP BY ALL"


def _translated_names(
    database: Database, config: Config, releases: Sequence[HeldRelease], spill: Path
) -> dict[str, str]:
    """Make a table of the names that the people of the source have under each key that is not that of the first
    release; return the tables by key. The source is read only if there are such keys."""
    first = releases[0]
    keys = sorted({held.key for held in releases} - {first.key})
    if not keys:
        return {}
    source = open_source(database, config, origin_of(config, None), spill)
    if first.manifest is None or first.manifest.source != manifest_marks(source.marks, config):
        raise SourceError("the source has changed since the release was made, so that its people cannot be recognized")
    text, tables = identity(config, source), {}
    with translated("reading the source"):
        for at, key in enumerate(keys):
            names = f"{hashed(text, first.key)} AS who, {hashed(text, key)} AS theirs"
            database.execute(f"CREATE TEMP TABLE other_names_{at} AS SELECT DISTINCT {names} FROM {source.used_rows}")
            tables[key] = f"other_names_{at}"
    return tables


def _people(at: int, held: HeldRelease, others: dict[str, str]) -> str:
    """Return SQL for who is in which group of a release."""
    if held.key not in others:
        return f"SELECT who, {at} AS release, g::BIGINT AS g FROM {held.members}"
    names = f"(SELECT who AS theirs, g FROM {held.members}) LEFT JOIN {others[held.key]} USING (theirs)"
    return f"SELECT coalesce(who, theirs) AS who, {at} AS release, g::BIGINT AS g FROM {names}"


def _check_members(database: Database, releases: int) -> None:
    """Raise ConfigError if a file of members has other groups than its release."""
    people = f"SELECT release, g, count(*) AS n FROM {PEOPLE} GROUP BY release, g"
    for at in range(releases):
        values = f"SELECT g, sum(c)::BIGINT AS c FROM held_values_{at}_0 GROUP BY g"
        own = f"SELECT * FROM ({people}) WHERE release = {at}"
        wrong = f"SELECT count(*) FROM ({own}) FULL JOIN ({values}) USING (g) WHERE n IS DISTINCT FROM c"
        if database.one(wrong)[0]:
            raise ConfigError.at("--with", f"a {MEMBERS} with other groups than the release", "those of one run")


def _set_apart(database: Database) -> int:
    """Make rows whose quasi-identifiers another row of a release has, too, people of their own: who is who in another
    release is not known. Return how many of them there are with quasi-identifiers that several releases have."""
    own = f"SELECT *, count(*) OVER (PARTITION BY who, release) AS own FROM {PEOPLE}"
    several = "min(release) OVER (PARTITION BY who) < max(release) OVER (PARTITION BY who) AS shared"
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE held_rows AS SELECT release, g, shared, max(own) OVER (PARTITION BY who) > 1 AS "
        f"equal, CASE WHEN equal THEN NULL ELSE who END AS who FROM (SELECT *, {several} FROM ({own}))"
    )
    # who is unique is a hash of 64 bits, and these are the numbers from 0 on
    numbers = "coalesce(who, (row_number() OVER () - 1)::UBIGINT)"
    database.execute(f"CREATE OR REPLACE TEMP TABLE held_apart AS SELECT {numbers} AS who, release, g FROM held_rows")
    database.execute(f"CREATE OR REPLACE TEMP VIEW {PEOPLE} AS SELECT * FROM held_apart")
    return int(database.one("SELECT count(*) FROM held_rows WHERE equal AND shared")[0])


def _bounds(database: Database, config: Config, column: str) -> BeliefBounds:
    """Return the beliefs in values of a sensitive column that the config's criteria allow."""
    specs = [spec for spec in config.privacy if spec.protects(column)]
    values = [value for (value,) in database.query(f"SELECT DISTINCT v FROM {VALUES}").fetchall()]
    found = {}
    for value in values:
        bounds = [bound for spec in specs if (bound := spec.confidence(value[1:])) is not None]
        if bounds:
            found[value] = min(bounds, key=lambda bound: (bound.share, not bound.open))
    return BeliefBounds(found, max((spec.fewest_values() for spec in specs), default=1))


def compared(
    database: Database, config: Config, releases: Sequence[HeldRelease], spill: Path, sample: bool = False
) -> dict[str, Any]:
    """Return the JSON of what several releases reveal together, with the size of the sample if one was taken."""
    found, examined = held_together(database, config, releases, spill, sample)
    _, facts = sampled(examined.groups, examined.every) if examined else ("", {})
    return {"releases": len(releases), **found.to_dict(), **facts}


def table_with(database: Database, config: Config, table: Any, earlier: Sequence[Path], spill: Path) -> dict[str, Any]:
    """Return what the release in a folder and earlier ones reveal together; nothing if there are none."""
    if not earlier:
        return {}
    if not isinstance(table, str | os.PathLike):
        raise ConfigError.at("--on", "a frame", "the folder of a release, with --with")
    releases = [held_release(Path(table), "--on", config), *(held_release(path, "--with") for path in earlier)]
    return compared(database, config, releases, spill)


def with_previous(database: Database, config: Config, work: RunFolders, previous: PreviousRelease) -> dict[str, Any]:
    """Return what a release that was just written and the one that it replaces reveal together; nothing if there is
    none, or its run folder does not say who is in which group."""
    earlier = previous.manifest
    if earlier is None or not previous.differs_from(disk.digests(work.release)):
        return {}
    place, run = config.release.path, config.release.run
    known = read_key(run) and earlier.members_sha256 and digest(run / MEMBERS) == earlier.members_sha256
    if not known or released_files(config) != earlier.release:
        return {}
    try:
        then = load(earlier.config, base=Path(earlier.base), source=False)
        before = HeldRelease(then, at_hand(place, work.spill / "release_before"), run, read_key(run))
        now = HeldRelease(config, work.release, work.run, read_key(work.run))
        return compared(database, config, [now, before], work.spill, sample=not must_withstand(config, NAME))
    except ConfigError:  # other columns: nobody can be recognized
        return {}
