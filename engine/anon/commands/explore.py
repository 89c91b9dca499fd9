"""`anon explore`, `anon disclose` and `anon attack`: find what an adversary could do with a table that is already
grouped. They read it as `check` does, and never read the config's source, but for `attack` with the folder of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from anon.config import LARGEST_EXPONENT, Config, Criterion, load, without_secrets
from anon.config.mistakes import closest
from anon.config.support import refuse_unsupported
from anon.config.values import parse_share
from anon.core.database import connect, translated
from anon.core.memory import Memory
from anon.core.progress import Progress
from anon.core.text import SPELLING, meant, text
from anon.criteria import Groups, priors
from anon.criteria.prior_files import read_prior
from anon.criteria.value_names import Names
from anon.errors import ConfigError, Problem, SourceError
from anon.report.warnings import Warned
from anon.risk import attacks
from anon.risk.disclosure import curves
from anon.risk.overview import Attack, Promise
from anon.risk.published import kept_columns, shares_of_values
from anon.risk.skylines import skylines
from anon.risk.witness import Name
from anon.runs.options import DEFAULTS, Options, adjusted
from anon.runs.result import Result
from anon.runs.scratch import scratch
from anon.source import open_grouped
from anon.verify.grouped import Grouped, Reading, cross_table
from anon.verify.histograms import histograms
from anon.verify.judge import Findings, add_shares_with_kept, people_with_kept

MOST_PIECES = 1_000  # as in the config of ck_safety
SINGLE = "`multiplicity: single`; `explore` also supports sets and multisets"


@dataclass(frozen=True)
class OpenedTable:
    """A grouped table that was opened, one sensitive column of it, and the names that its values may be shown by."""

    grouped: Grouped
    column: str
    texts: list[str | None]
    names: Names
    memory: int  # of the whole process
    privacy: list[Criterion]

    def histograms(self, attributes: tuple[tuple[str, ...], ...] = ()) -> Iterator[Groups]:
        return histograms(self.grouped, Reading((self.column,), attributes=attributes))

    def codes(self, values: list[str]) -> list[int | None]:
        """Return the codes of values as users write them (`null` for a missing one), None for one that nobody has;
        ConfigError for one that differs from a value of the table only in spelling."""
        there = {"null": self.texts.index(None)} if None in self.texts else {}
        there |= {text: code for code, text in enumerate(self.texts) if text is not None}
        if problems := [problem for value in values if value not in there for problem in self._alike(value, there)]:
            raise ConfigError(problems)
        return [there.get(value) for value in values]

    def _alike(self, value: str, there: Iterable[str]) -> Iterator[Problem]:
        alike = [other for other in there if meant(other) == meant(value)]
        # in another case it says no more of the data than that the value is there
        shown = [o for o in alike if self.names.show_all or o in self.names.shown or o.casefold() == value.casefold()]
        hint = f"did you mean {shown[0]!r}?" if shown else f"one differs only in spelling ({SPELLING})"
        if alike:
            yield Problem("--value", repr(value), "a value as it is written in the table", hint)

    def name(self, code: int) -> str:
        return self.names.of_value(self.column, code)


@contextmanager
def _opened(
    config: Any, table: Any, options: Options, progress: Progress, column: str | None, shown: Sequence[str] = ()
) -> Iterator[OpenedTable]:
    config = adjusted(load(config), options)
    refuse_unsupported(config, run=False)
    column = _column(config, column)
    Memory(config.limits.memory).check()
    limits = config.limits
    with scratch(config, progress) as spill, closing(connect(limits.memory, limits.threads, spill)) as database:
        with progress.stage("read"):
            opened = open_grouped(database, "checked_table", config, table, spill)
            grouped = Grouped.from_opened(database, opened, config.columns)
            if not grouped.rows():
                raise SourceError("the table has no rows")
        objects = grouped.objects
        texts = {name: [None if value is None else text(value) for value in own] for name, own in objects.items()}
        named = set().union(*(spec.named_values() for spec in config.privacy)) | set(shown)
        names = Names(texts, grouped.frequency, named, options.show_values)
        with translated("examining the table"):
            yield OpenedTable(grouped, column, texts[column], names, limits.memory, config.privacy)


def _column(config: Config, column: str | None) -> str:
    columns = list(config.columns.sensitive)
    if column is None and len(columns) == 1:
        return columns[0]
    if column not in columns:
        found = f"{len(columns)} sensitive columns" if column is None else repr(column)
        raise ConfigError.at("--sensitive", found, f"one of {', '.join(columns)}" if columns else "a sensitive column")
    return column


def _several(given: Any) -> list[Any]:
    """Return what was given as a list; text, bytes and numbers are one value.

    >>> _several("HIV"), _several(0.5), _several(("HIV", "Flu"))
    (['HIV'], [0.5], ['HIV', 'Flu'])
    """
    return list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else [given]


def _value_name(given: Any) -> str:
    """Return a sensitive value as users name it. The text of bytes or None is nobody's value, so that the answer to it
    would be that every knowledge is harmless."""
    if given is None or isinstance(given, bytes):
        raise ConfigError.at("--value", f"a value of type {type(given).__name__}", "text, or a number of the table")
    return str(given)


def _share(given: Any, field: str) -> Fraction:
    """Return a confidence or threshold exactly as it is written, above 0 and at most 1."""
    try:
        written = parse_share(given)
    except ValueError:
        written = Decimal(0)
    if not written.is_finite() or not 0 < written <= 1:
        raise ConfigError.at(field, str(given), "a share above 0 and at most 1, such as 0.95 or 95%")
    if written.adjusted() < -LARGEST_EXPONENT:
        raise ConfigError.at(field, "a number out of range", f"an exponent of at most {LARGEST_EXPONENT}")
    return Fraction(written)


@without_secrets(source=False)
def explore(
    config: Any,
    table: Any,
    values: str | Iterable[str],
    confidences: Any,
    sensitive: str | None = None,
    options: Options = DEFAULTS,
    progress: Progress | None = None,
) -> Result:
    """Compute the knowledge skylines of some values at some confidences."""
    progress = progress or Progress()
    shares, values = [_share(c, "--confidence") for c in _several(confidences)], [*map(_value_name, _several(values))]
    if not values or not shares:
        raise ConfigError.at("--value" if not values else "--confidence", "none", "at least one")
    with _opened(config, table, options, progress, sensitive, values) as opened, progress.stage("explore"):
        codes = opened.codes(values)
        found = skylines(opened.histograms(), codes, shares, opened.grouped.multiplicity)
        repeated = [value for value in values for _ in shares]
        listed = [skyline.to_dict(opened.name, value) for skyline, value in zip(found, repeated)]
    absent = codes.count(None)
    text = f"values given by --value that nobody has as {opened.column}{_nearest(opened, values, codes)}"
    warnings = [Warned("absent_value", absent, text, opened.column).to_dict()] if absent else []
    facts = {"sensitive": opened.column, "skylines": listed, "warnings": warnings}
    return Result(facts, {"skylines": listed})


def _nearest(opened: OpenedTable, values: list[str], codes: list[int | None]) -> str:
    """Return the values of the table that absent ones are probably misspellings of, if values may be shown."""
    there = [text for text in opened.texts if text is not None] if opened.names.show_all else []
    hints = [hint for value, code in zip(values, codes) if code is None and (hint := closest(value, there))]
    return f"; {' '.join(hints)}" if hints else ""


@without_secrets(source=False)
def disclose(
    config: Any,
    table: Any,
    max_k: int,
    sensitive: str | None = None,
    options: Options = DEFAULTS,
    progress: Progress | None = None,
) -> Result:
    """Compute the maximum disclosure given 0 to max_k pieces of knowledge."""
    progress = progress or Progress()
    if not isinstance(max_k, int) or not 0 <= max_k <= MOST_PIECES:
        raise ConfigError.at("--max-k", str(max_k), f"a whole number of at least 0 and at most {MOST_PIECES:,}")
    with _opened(config, table, options, progress, sensitive) as opened, progress.stage("disclose"):
        _refuse_several(opened, "maximum disclosure")
        found = curves(opened.histograms(), max_k, len(opened.texts))
        facts = {"sensitive": opened.column, **found.to_dict(opened.name), "warnings": []}
    return Result(facts, {"disclosure": facts})


def _refuse_several(opened: OpenedTable, what: str) -> None:
    if opened.grouped.multiplicity != "single":
        raise ConfigError.at("columns.multiplicity", f"{opened.grouped.multiplicity}, for {what}", SINGLE)


@without_secrets(source=False)
def attack(
    config: Any,
    table: Any,
    threshold: Any = "0.95",
    prior: Any = None,
    rho1: Any = None,
    rho2: Any = None,
    sensitive: str | None = None,
    run: Path | None = None,
    options: Options = DEFAULTS,
    progress: Progress | None = None,
) -> Result:
    """Compute homogeneity at 100% and at a threshold, elimination, and with a prior the beliefs before and after. With
    the folder of the run that made the table, also the attacks that need its recoding and the people of its source."""
    progress, share = progress or Progress(), _share(threshold, "--threshold")
    rho = _rho(rho1, rho2, prior)
    if options.held_with and run is None:
        raise ConfigError.at("--with", "no --run", "the run folder of the release as well")
    with _opened(config, table, options, progress, sensitive) as opened, progress.stage("attack"):
        facts = _homogeneity(opened, share)
        if opened.grouped.multiplicity == "single":
            facts["elimination"] = _elimination(opened, share)
        facts["beliefs"] = None
        if prior is not None:
            _refuse_several(opened, "beliefs")
            facts["beliefs"] = _beliefs(opened, Path(prior), share, rho)
        found = _overview(opened, facts["homogeneous_individuals"])
    if run is not None:
        from anon.commands.attacked_run import attacks_on

        found = attacks_on(load(config), table, run, options, progress)
    facts["attacks"] = [each.to_dict() for each in found]
    facts["warnings"] = []
    return Result(facts, {"attack": facts})


def _overview(opened: OpenedTable, homogeneous: int) -> list[Attack]:
    """Return the attacks on a column that need only the table."""
    table, found = opened.grouped, Findings(opened.grouped, homogeneous_rows=homogeneous)
    add_shares_with_kept(found, people_with_kept(table, found))
    promise = Promise.from_config(opened.privacy, opened.column, opened.texts)
    kept = kept_columns(found.with_kept, found.with_all_kept, table.rows())
    return [*shares_of_values(table, opened.column, promise), *kept]


def _rho(rho1: Any, rho2: Any, prior: Any) -> tuple[float, float] | None:
    if rho1 is None and rho2 is None:
        return None
    if rho1 is None or rho2 is None:
        raise ConfigError.at("--rho1", "one of --rho1 and --rho2", "both of them, or none")
    low, high = _share(rho1, "--rho1"), _share(rho2, "--rho2")
    if low >= high:
        raise ConfigError.at("--rho1", f"{float(low):g} with --rho2 {float(high):g}", "rho1 below rho2")
    if prior is None:
        raise ConfigError.at("--rho1", "no --prior", "a prior file: what the adversary believes beforehand")
    return float(low), float(high)


def _homogeneity(opened: OpenedTable, threshold: Fraction) -> dict[str, Any]:
    grouped = opened.grouped
    sure, nearly = [], []
    for groups in opened.histograms():
        sure.append(attacks.homogeneous(groups, Fraction(1), grouped.multiplicity))
        nearly.append(attacks.homogeneous(groups, threshold, grouped.multiplicity))
    order = ", ".join(f"{column} NULLS FIRST" for column in grouped.key)
    sizes = grouped.database.query(f"SELECT rows, n FROM {grouped.GROUPS} ORDER BY {order}").fetchnumpy()
    facts: dict[str, Any] = {"sensitive": opened.column, "threshold": float(threshold)}
    facts["multiplicity"] = grouped.multiplicity
    facts |= {"groups": len(sizes["n"]), "rows": int(sizes["rows"].sum()), "individuals": int(sizes["n"].sum())}
    for kind, flags in (("affected", np.concatenate(nearly)), ("homogeneous", np.concatenate(sure))):
        facts[f"{kind}_groups"] = int(flags.sum())
        facts[f"{kind}_rows"] = int(sizes["rows"][flags].sum())
        facts[f"{kind}_individuals"] = int(sizes["n"][flags].sum())
    return facts


def _elimination(opened: OpenedTable, threshold: Fraction) -> list[dict[str, int]]:
    found = attacks.EliminationCounts(len(opened.texts), threshold)
    for groups in opened.histograms():
        found.add(groups)
    return [
        {"ruled_out": ruled_out, "affected_groups": groups, "affected_rows": rows}
        for ruled_out, (groups, rows) in enumerate(zip(found.groups.tolist(), found.individuals.tolist()))
    ]


def _beliefs(opened: OpenedTable, file: Path, threshold: Fraction, rho: tuple[float, float] | None) -> dict[str, Any]:
    raw = read_prior(file, "--prior", opened.memory)
    signatures, _ = cross_table(opened.grouped, tuple(raw.attributes), opened.column, opened.memory)
    prior = priors.bind(raw, raw.attributes, signatures, opened.texts, "--prior")
    found = attacks.belief_changes(opened.histograms((tuple(raw.attributes),)), prior, threshold, rho)
    kinds = {"positive": found.positive, "negative": found.negative, "breaches": found.breaches}
    changes = {"largest_rise": found.rise, "largest_fall": found.fall}
    return {
        "attributes": raw.attributes,
        **({"rho1": rho[0], "rho2": rho[1]} if rho else {}),
        **{kind: vars(affected).copy() for kind, affected in kinds.items() if affected},
        "contradicted": found.contradicted,
        **{kind: _change(change, opened.name) for kind, change in changes.items()},
    }


def _change(change: attacks.Change | None, name: Name) -> dict[str, Any] | None:
    if change is None:
        return None
    return {"value": name(change.value), "group": change.group, "before": change.before, "after": change.after}
