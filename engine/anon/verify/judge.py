"""Judge a grouped table as an outsider would: `grouped` counts its contents by SQL, and the criteria judge the counts.
`check` does this for any table; `verify` does it for the files just written, before anyone else can see them, and
shares only the formulas with what it checks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from anon.config import Config, Reuse
from anon.core.database import Database, translated
from anon.core.memory import Memory
from anon.core.phrases import counted
from anon.core.text import text
from anon.criteria import Criterion, EarlierGroups, Groups, Ints, State, Values, Verdict, bind
from anon.errors import ConfigError, SourceError, UnsafeError, VerificationError
from anon.release import WrittenRelease
from anon.verify.bounds import difference_in_bounds
from anon.verify.content import Content, published
from anon.verify.files import (
    difference_in_content,
    difference_in_form,
    difference_in_numbers,
    files_of,
    formula_cells,
    open_written,
    rows_out_of_order,
)
from anon.verify.grouped import Grouped, Reading, code_tuples, cross_table, labels_of, listed, rows_of, same_in
from anon.verify.histograms import histograms

FEW = 5  # individuals; smaller groups are reported
TOGETHER = ""  # in place of the name of a kept column: all of them
NEARLY = 0.95  # share of a group with one value, from which on the value is almost certain


@dataclass
class Findings:
    """The findings about a grouped table; sizes of groups are in individuals."""

    table: Grouped | None = None  # the table that was examined, for further questions
    rows: int = 0  # of a bucketized table those with the quasi-identifiers, one for each individual
    individuals: int = 0
    groups: int = 0
    smallest: int = 0
    under_5: int = 0
    homogeneous_rows: int = 0  # one for each individual
    nearly_homogeneous_rows: int = 0  # in other groups, where nearly all have a value that is rare in the table
    sizes: dict[int, int] = field(default_factory=dict)  # number of groups by number of individuals
    verdicts: list[Verdict] = field(default_factory=list)
    criteria: list[Criterion] = field(default_factory=list)
    beside: list[Criterion] = field(default_factory=list)  # with what is published already, where all groups count
    states: dict[int, State] = field(default_factory=dict)  # of `criteria` and then `beside`, by their places
    attaining: EarlierGroups = field(default_factory=EarlierGroups)  # of a series, where parts were judged one by one
    with_kept: dict[str, dict[str, float]] = field(default_factory=dict)
    with_all_kept: dict[str, float] = field(default_factory=dict)  # if there are several kept columns
    values: dict[str, list[str | None]] = field(default_factory=dict)  # sensitive values in code order
    frequency: dict[str, list[int]] = field(default_factory=dict)  # individuals with each of them
    labels: dict[int, dict[str, str | None]] = field(default_factory=dict)  # of the worst groups, if asked for
    places: dict[int, list[int]] = field(default_factory=dict)  # first and last row of the worst groups of a release
    formulas: dict[str, int] = field(default_factory=dict)  # cells of CSV files that a spreadsheet may run, per column

    @property
    def worst(self) -> set[int]:
        """Return the groups that are worst for a criterion or for a point of a skyline."""
        findings = {finding.group for verdict in self.verdicts for finding in verdict.findings}
        return findings.union(verdict.worst_group for verdict in self.verdicts)

    @property
    def safe(self) -> bool:
        return all(verdict.safe for verdict in self.verdicts) and not self.unsafe_beside_earlier

    @property
    def unsafe_beside_earlier(self) -> list[str]:
        """Return the criteria that the groups fail together with those that are published already."""
        pairs = [(each, self.states[at]) for at, each in enumerate(self.beside, len(self.criteria))]
        return [each.name for each, state in pairs if not each.holds(each.with_earlier(state))]

    def close(self) -> None:
        """Close the table that was examined, with all tables about its groups."""
        if self.table is not None:
            self.table.database.close()


def examine(grouped: Grouped, config: Config, absent: bool = False, earlier: EarlierGroups | None = None) -> Findings:
    """Judge a grouped table by the config's criteria, and count what every report contains. `earlier`: groups that are
    published already, beside which it must be safe."""
    found = Findings(grouped)
    with translated("examining the table"):
        found.frequency = grouped.frequency
        for column, objects in grouped.objects.items():
            found.values[column] = [None if value is None else text(value) for value in objects]
        found.rows = grouped.rows()
        if not found.rows:
            raise SourceError("the table has no rows")
        values = Values(
            found.values,
            found.frequency,
            partial(cross_table, grouped, memory=config.limits.memory),
            partial(code_tuples, grouped),
            grouped.objects,
            grouped.multiplicity,
        )
        bind_criteria(found, config, values, absent, earlier)
        found.states = judged(grouped, found)
        found.verdicts = [criterion.verdict(found.states[at]) for at, criterion in enumerate(found.criteria)]
        if len(grouped.sensitive) > 1:
            found.homogeneous_rows = people_of(grouped, alike(grouped, grouped.key))["homogeneous"]
        add_shares_with_kept(found, people_with_kept(grouped, found))
    return found


def bind_criteria(
    found: Findings, config: Config, values: Values, absent: bool, earlier: EarlierGroups | None = None
) -> None:
    """Bind the criteria that a table is judged by: alone, and beside the groups that are published already."""
    found.criteria = bind(config.privacy, values, absent=absent)
    if earlier is not None and earlier.groups:
        together = bind(config.privacy, replace(values, earlier=earlier), absent=True)
        found.beside = [criterion for criterion in together if criterion.earlier is not None]


def add_labels(grouped: Grouped, found: Findings) -> None:
    """Add the labels of the worst groups, for users who asked to see values."""
    with translated("examining the table"):
        found.labels = labels_of(grouped, found.worst)


def locate_worst(found: Findings, show_values: bool) -> None:
    """Add where the worst groups are in the files of a release, and their labels, for users who asked to see values."""
    if found.table is None:
        return
    with translated("examining the release"):
        found.places = rows_of(found.table, found.worst)
    if show_values:
        add_labels(found.table, found)


def judged(grouped: Grouped, found: Findings) -> dict[int, State]:
    """Stream the histograms that the criteria need through them, each kind of histogram once; return their states, in
    terms of whole groups."""
    counted = Reading(tuple(grouped.sensitive[:1]))
    readings: dict[Reading, list[int]] = {}
    criteria = [*found.criteria, *found.beside]
    for at, criterion in enumerate(criteria):
        readings.setdefault(_reading(grouped, criterion, counted), []).append(at)
    counted = next((one for one in readings if one._replace(attributes=()) == counted), counted)
    readings.setdefault(counted, [])
    every: dict[int, State] = {}
    for reading, about in readings.items():
        states: dict[int, State] = {}
        whole: list[Ints] = []  # which group each part of one belongs to
        for groups in histograms(grouped, reading):
            if reading == counted:
                _count(found, groups, grouped)
            if groups.row is not None:
                whole.append(groups.row)
            for at in about:
                state = criteria[at].state(groups)
                states[at] = states[at].merge(state) if at in states else state
        every |= {at: of_groups(state, whole) if whole else state for at, state in states.items()}
    return every


def _reading(grouped: Grouped, criterion: Criterion, counted: Reading) -> Reading:
    """Return the kind of histograms that a criterion judges. k-anonymity is about equal labels, which the groups of a
    bucketized table need not have."""
    if grouped.bucketized and criterion.name == "k_anonymity":
        return Reading((), classes=True)
    columns = criterion.columns or ((criterion.column,) if criterion.column else counted.columns)
    return Reading(columns, criterion.context, criterion.attributes)


def of_groups(state: State, whole: list[Ints]) -> State:
    """Return a state about parts of groups, or by places in an order, in terms of the groups. `whole` lists the group
    of each part, in batches."""
    begins = np.cumsum([0, *map(len, whole)])
    witness = state.witness.copy()
    for place in witness:
        if 0 <= place[-1] < begins[-1]:
            batch = int(np.searchsorted(begins, place[-1], "right")) - 1
            place[-1] = whole[batch][place[-1] - begins[batch]]
    return State(state.values, witness)


def _count(found: Findings, groups: Groups, grouped: Grouped) -> None:
    smallest = int(groups.n.min())
    found.smallest = min(found.smallest or smallest, smallest)
    found.individuals += int(groups.n.sum())
    found.groups += len(groups)
    found.under_5 += int(groups.n[groups.n < FEW].sum())
    for size, count in zip(*np.unique(groups.n, return_counts=True)):
        found.sizes[int(size)] = found.sizes.get(int(size), 0) + int(count)
    if len(grouped.sensitive) == 1:
        found.homogeneous_rows += int(groups.n[_homogeneous(groups, grouped.multiplicity)].sum())
    if len(grouped.sensitive) == 1 and grouped.multiplicity == "single":
        found.nearly_homogeneous_rows += _nearly_homogeneous(groups, grouped.frequency[grouped.sensitive[0]])


def _homogeneous(groups: Groups, multiplicity: str) -> NDArray[np.bool_]:
    """Flag the groups whose individuals all have the same value, as `alike` finds it by SQL."""
    if multiplicity == "multiset":
        found: NDArray[np.bool_] = np.diff(groups.start) == 1
        return found
    return groups.largest >= groups.n


def _nearly_homogeneous(groups: Groups, frequency: list[int]) -> int:
    """Return the number of individuals in groups where nearly all have one value, without values that most of the table
    has."""
    n = np.repeat(groups.n, np.diff(groups.start))
    most = (groups.count >= NEARLY * n) & (groups.count < n)
    rare = 2 * np.array(frequency, np.int64)[groups.value] <= sum(frequency)
    return int(n[most & rare].sum())


def alike(grouped: Grouped, by: list[str]) -> str:
    """Return SQL for the number of individuals, n, of each combination of some columns, and whether all of them have
    the same value of some sensitive column. Multisets do not show who has the occurrences of a value: there, whether it
    is the only value."""
    if grouped.multiplicity == "single" and not grouped.bucketized:
        columns = [f"s{index}" for index in range(len(grouped.sensitive))]
        agree = [f"(min({c}) IS NOT DISTINCT FROM max({c}) AND count({c}) IN (0, count(*)))" for c in columns]
        same = f"({' OR '.join(agree) or 'false'})"
        return f"SELECT {grouped.many()} AS n, {same} AS same FROM {grouped.VIEW} GROUP BY {listed(by)}"
    same = "count(*) = 1" if grouped.multiplicity == "multiset" else "max(c.n) >= any_value(z.n)"
    return (
        f"SELECT any_value(z.n) AS n, {same} AS same FROM ({grouped.sizes(by)}) AS z "
        f"JOIN ({grouped.counts(by)}) AS c ON {same_in(by, 'z', 'c')} GROUP BY {listed([f'z.{c}' for c in by])}"
    )


def people_of(grouped: Grouped, alike: str) -> dict[str, int]:
    """Return sums over what `alike` selects."""
    names = ("smallest", "unique", "homogeneous", "all")
    sums = grouped.database.one(
        f"SELECT min(n), count_if(n = 1), coalesce(sum(n) FILTER (same), 0), sum(n) FROM ({alike})"
    )
    return dict(zip(names, map(int, sums)))


def people_with_kept(grouped: Grouped, found: Findings) -> dict[str, dict[str, int]]:
    """Return what an adversary who also knows a kept column would find, and one who knows all of several (TOGETHER)."""
    which = {name: [index] for index, name in enumerate(grouped.keep)}
    if len(which) > 1:
        which[TOGETHER] = list(range(len(grouped.keep)))
    return {name: _people_with(grouped, kept, found) for name, kept in which.items()}


def _people_with(grouped: Grouped, kept: list[int], found: Findings) -> dict[str, int]:
    """Return the numbers of people in the classes of equal labels and values of some kept columns. Those of a
    bucketized table still have the values of their whole group."""
    by = [*grouped.classes, *(f"k{index}" for index in kept)]
    if grouped.bucketized:
        people = people_of(grouped, f"SELECT n, false AS same FROM ({grouped.sizes(by)})")
        return people | {"homogeneous": found.homogeneous_rows}
    return people_of(grouped, alike(grouped, by))


def add_shares_with_kept(found: Findings, people: dict[str, dict[str, int]]) -> None:
    """Add what `people_with_kept` counted, as shares."""
    shares = {name: _shares(counted) for name, counted in people.items()}
    found.with_all_kept = shares.pop(TOGETHER, {})
    found.with_kept = shares


def _shares(people: dict[str, int]) -> dict[str, float]:
    return {
        "smallest_group": people["smallest"],
        "unique_share": people["unique"] / people["all"],
        "homogeneous_share": people["homogeneous"] / people["all"],
    }


def verify(
    database: Database,
    written: WrittenRelease,
    config: Config,
    expected: Content,
    earlier: EarlierGroups | None = None,
) -> Findings:
    """Examine the files of a release that was just written; VerificationError if they are not what they must be.
    `expected`: the content of the source's rows under the written recoding; `earlier`: groups that are published
    already."""
    files = files_of(written)
    try:
        with translated("reading it back"), ThreadPoolExecutor(1) as beside:
            refuse(difference_in_form(database, files, written.counterfeits))
            # takes one thread about as long as the rest takes the others
            disorder = beside.submit(rows_out_of_order, database.cursor(), files)
            if Memory(config.limits.memory).tight:
                disorder.result()
            refuse(difference_in_bounds(database, files[0].view, written.bounds))
            grouped = open_written(database, files, config.columns)
            refuse(difference_in_content(published(grouped, bool(written.labelled)), expected))
            if grouped.bucketized:
                refuse(difference_in_numbers(grouped))
            found = examine(grouped, config, True, earlier)
            found.formulas = formula_cells(database, files)
            if disorder.result():
                refuse(f"has {counted(disorder.result(), 'row')} out of order")
    except (SourceError, ConfigError, ValueError) as error:
        reason = f" ({error})" if isinstance(error, SourceError) else ""
        raise VerificationError(f"the written release cannot be read back{reason}; nothing was published") from error
    refuse_unsafe(found, written, config)
    return found


def refuse_unsafe(found: Findings, written: WrittenRelease, config: Config) -> None:
    """Raise VerificationError if the number of groups is wrong or the release is not safe; UnsafeError if it is not
    safe because rows are new to a reused recoding."""
    if found.groups != written.groups:
        refuse(f"has {counted(found.groups, 'group')}, not {written.groups:,}")
    if not found.safe and isinstance(config.method, Reuse):
        failed = ", ".join(f"{v.name} {v.figure:.6g} (required {v.bound:.6g})" for v in found.verdicts if not v.safe)
        raise UnsafeError(f"the recoding is no longer safe for these rows: {failed}; nothing was published")
    if not found.safe:
        unsafe = [verdict.name for verdict in found.verdicts if not verdict.safe]
        unsafe += [f"{name} with the earlier parts" for name in found.unsafe_beside_earlier]
        refuse(f"is not safe ({', '.join(unsafe)})")


def refuse(wrong: str) -> None:
    """Raise VerificationError if something is wrong."""
    if wrong:
        raise VerificationError(f"the written release {wrong}; nothing was published")
