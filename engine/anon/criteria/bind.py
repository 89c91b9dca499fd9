"""From the criteria of the config to criteria bound to the sensitive values of one table: named values become codes,
and a name that is no value of the data is a mistake, because a misspelt value would go unprotected."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from anon import config as grammar
from anon.core.text import SPELLING, meant
from anon.criteria import distances, priors
from anon.criteria.alpha_k import AlphaK
from anon.criteria.arithmetic import Units
from anon.criteria.ck_safety import CKSafety
from anon.criteria.dissimilarity import Dissimilarity
from anon.criteria.epsilon_m import EpsilonM
from anon.criteria.k_anonymity import KAnonymity
from anon.criteria.k_e import KE
from anon.criteria.l_diversity import l_diversity
from anon.criteria.prior_files import read_prior
from anon.criteria.prior_tables import Counting, SignatureTable
from anon.criteria.protocol import Criterion, Ints, exact
from anon.criteria.r_robustness import RRobustness
from anon.criteria.skyline import Point, Skyline
from anon.criteria.t_closeness import TCloseness
from anon.criteria.variance import Variance
from anon.errors import ConfigError, Problem

CATEGORICAL = (
    "skyline",
    "l_diversity",
    "ck_safety",
    "alpha_k",
    "r_robustness",
)  # values are names to them, not numbers


CrossTable = Callable[[tuple[str, ...], str], tuple[SignatureTable, Counting | None]]
TuplesOf = Callable[[tuple[str, ...]], Ints]


@dataclass(frozen=True)
class Values:
    """The sensitive values of one table, per column in code order, and how many individuals have each. `cross_table`
    gives the signatures over some columns, and what counts people by signature and sensitive value, None of a
    bucketized table, which does not tell that. `tuples` gives those of several sensitive columns that occur, as codes
    [tuples, columns]; `objects` are the values as they are in the table."""

    texts: dict[str, list[str | None]]
    frequency: dict[str, list[int]]
    cross_table: CrossTable | None = None
    tuples: TuplesOf | None = None
    objects: dict[str, list[Any]] = field(default_factory=dict)
    multiplicity: str = "single"  # sensitive values per individual


@dataclass
class Binder:
    """Binds the criteria of one config to one table. `shared`: only verdicts matter, not each finding. `absent`: a
    named value may be missing, as from a release that lost it."""

    values: Values
    shared: bool = False
    absent: bool = False
    problems: list[Problem] = field(default_factory=list)

    def bind(self, privacy: list[grammar.Criterion]) -> list[Criterion]:
        bound: list[Criterion] = []
        for index, spec in enumerate(privacy):
            try:
                bound.append(BINDERS[spec.name](self, spec, f"privacy[{index}].{spec.name}"))
            except ConfigError as error:
                self.problems += error.problems
        if self.problems:
            raise ConfigError(self.problems)
        return bound

    def texts(self, spec: grammar.Criterion) -> list[str | None]:
        return self.values.texts[str(spec.sensitive)]

    def numbers(self, spec: grammar.Criterion, where: str) -> list[Fraction | None]:
        """The values as numbers, exactly as they are written."""
        return self._numbers_of(str(spec.sensitive), spec.name, f"{where}.sensitive")

    def _numbers_of(self, column: str, asking: str, where: str) -> list[Fraction | None]:
        try:
            return [None if text is None else Fraction(text) for text in self.values.texts[column]]
        except ValueError:
            expected = f"a column of numbers for {asking}"
            raise ConfigError.at(where, f"{column!r}, which has other values", expected) from None

    def codes(self, names: Iterable[str], spec: Any, where: str) -> list[int | None]:
        """The codes of named values, None for one that is missing and may be."""
        texts = self.texts(spec)
        found = {text: code for code, text in enumerate(texts) if text is not None}
        listed = list(names)
        if not self.absent:
            self.problems += _unknown(listed, found, where, may_be_absent=spec.absent is not None)
        return [found.get(name) for name in listed]

    def skyline(self, spec: grammar.Skyline, where: str) -> Criterion:
        texts = self.texts(spec)
        points: list[list[Point]] = [[_point(point) for point in spec.points] for _ in texts]
        for code, own in zip(self.codes(spec.values, spec, f"{where}.values"), spec.values.values()):
            if code is not None:
                points[code] = [] if isinstance(own, str) else [_point(point) for point in own]
        return Skyline(str(spec.sensitive), points, self.shared, self.values.multiplicity)

    def l_diversity(self, spec: grammar.LDiversity, where: str) -> Criterion:
        dont_care = [c for c in self.codes(spec.dont_care, spec, f"{where}.dont_care") if c is not None]
        kept: dict[int, Fraction] = {}
        if spec.keep_possible is not None:
            codes = self.codes(spec.keep_possible.values, spec, f"{where}.keep_possible.values")
            percent = exact(spec.keep_possible.percent)
            kept = {-1 - i if code is None else code: percent for i, code in enumerate(codes)}
        c = None if spec.c is None else exact(spec.c)
        criterion = l_diversity(str(spec.sensitive), spec.kind, exact(spec.l), c, dont_care, kept)
        if spec.joint:
            criterion.context = tuple(name for name in self.values.texts if name != spec.sensitive)
        return criterion

    def alpha_k(self, spec: grammar.AlphaK, where: str) -> Criterion:
        codes = None
        if spec.values is not None:
            codes = [code for code in self.codes(spec.values, spec, f"{where}.values") if code is not None]
        return AlphaK(str(spec.sensitive), exact(spec.alpha), spec.k, codes)

    def distance(self, spec: grammar.Dissimilarity | grammar.TCloseness, where: str) -> distances.Distance:
        kind, place = spec.distance, f"{where}.distance"
        if isinstance(kind, grammar.Absolute):
            return distances.absolute(self.numbers(spec, where), place)
        if isinstance(kind, grammar.Equal):
            return distances.equal(len(self.texts(spec)))
        if isinstance(kind, grammar.Ordered):
            return self._ordered(spec, kind, place)
        if isinstance(kind, grammar.HierarchyDistance):
            return distances.hierarchy_file(self.texts(spec), kind.file, f"{place}.file")
        if isinstance(kind, grammar.Matrix):
            return distances.matrix_file(self.texts(spec), kind.file, f"{place}.file")
        if isinstance(kind, grammar.Variational):
            return self._variational(tuple(kind.columns), f"{place}.columns")
        return distances.by_function(self.values.objects[str(spec.sensitive)], kind, place)

    def _variational(self, columns: tuple[str, ...], place: str) -> distances.Distance:
        numbers = [self._numbers_of(name, "variational", f"{place}[{i}]") for i, name in enumerate(columns)]
        for index, column in enumerate(numbers):
            Units.exactly(column, f"{place}[{index}]")
        if len(columns) == 1:
            return distances.variational([[number] for number in numbers[0]], place)
        assert self.values.tuples is not None, "tuples are bound to a table that was opened"
        tuples = self.values.tuples(columns).tolist()
        return distances.variational([[n[code] for n, code in zip(numbers, codes)] for codes in tuples], place)

    def _ordered(self, spec: grammar.Criterion, kind: grammar.Ordered, place: str) -> distances.Distance:
        try:
            numbers = self.numbers(spec, place)
        except ConfigError:
            numbers = None
        return distances.ordered(self.texts(spec), kind.order, numbers, place)

    def dissimilarity(self, spec: grammar.Dissimilarity, where: str) -> Criterion:
        distance, columns = self.distance(spec, where), spec.about()
        criterion = Dissimilarity(columns[0], exact(spec.epsilon), exact(spec.delta), spec.k, distance)
        if len(columns) > 1:
            criterion.column, criterion.columns = None, tuple(columns)
        return criterion

    def t_closeness(self, spec: grammar.TCloseness, where: str) -> Criterion:
        reference = self.values.frequency[str(spec.sensitive)]
        return TCloseness(str(spec.sensitive), exact(spec.t), self.distance(spec, where), reference, where)

    def r_robustness(self, spec: grammar.RRobustness, where: str) -> Criterion:
        bound = [self._prior(spec, prior, f"{where}.priors[{i}]") for i, prior in enumerate(spec.priors)]
        criterion = RRobustness(str(spec.sensitive), exact(spec.r), bound)
        criterion.attributes = tuple(tuple(prior.attributes) for prior in bound)
        return criterion

    def _prior(self, spec: grammar.RRobustness, given: Any, where: str) -> priors.Prior:
        column = str(spec.sensitive)
        assert self.values.cross_table is not None, "priors are bound to a table that was opened to be examined"
        if isinstance(given, grammar.PriorFile):
            raw = read_prior(given.file, f"{where}.file")
            signatures, _ = self.values.cross_table(tuple(raw.attributes), column)
            return priors.bind(raw, raw.attributes, signatures, self.texts(spec), f"{where}.file")
        signatures, counting = self.values.cross_table(tuple(given.estimate), column)
        if counting is None:
            found = "an estimated prior on a bucketized table, which does not tell who has what"
            raise ConfigError.at(where, found, "a prior file (--prior FILE), or one estimated on the source and saved")
        return priors.estimated(list(given.estimate), signatures, self.texts(spec), counting(), exact(given.smoothing))

    def epsilon_m(self, spec: grammar.EpsilonM, where: str) -> Criterion:
        numbers = self.numbers(spec, where)
        return EpsilonM(str(spec.sensitive), exact(spec.epsilon), spec.m, numbers, f"{where}.sensitive")

    def k_e(self, spec: grammar.KE, where: str) -> Criterion:
        return KE(str(spec.sensitive), spec.k, exact(spec.e), self.numbers(spec, where), f"{where}.sensitive")

    def variance(self, spec: grammar.Variance, where: str) -> Criterion:
        return Variance(str(spec.sensitive), exact(spec.minimum), self.numbers(spec, where), f"{where}.sensitive")


BINDERS: dict[str, Callable[[Binder, Any, str], Criterion]] = {
    "k_anonymity": lambda _, spec, where: KAnonymity(spec.k, spec.name),
    "group_size": lambda _, spec, where: KAnonymity(spec.k, spec.name),
    "ck_safety": lambda _, spec, where: CKSafety(spec.sensitive, exact(spec.c), spec.k),
    "skyline": Binder.skyline,
    "l_diversity": Binder.l_diversity,
    "alpha_k": Binder.alpha_k,
    "dissimilarity": Binder.dissimilarity,
    "t_closeness": Binder.t_closeness,
    "epsilon_m": Binder.epsilon_m,
    "k_e": Binder.k_e,
    "variance": Binder.variance,
    "r_robustness": Binder.r_robustness,
}


def bind(
    privacy: list[grammar.Criterion], values: Values, shared: bool = False, absent: bool = False
) -> list[Criterion]:
    """The criteria of a config for a table."""
    return Binder(values, shared, absent).bind(privacy)


def check_names(privacy: list[grammar.Criterion], texts: dict[str, list[str | None]]) -> None:
    """ConfigError for the values that criteria name and the table does not have, before more of it is read."""
    binder = Binder(Values(texts, {}))
    for index, spec in enumerate(privacy):
        if named_values(spec):
            BINDERS[spec.name](binder, spec, f"privacy[{index}].{spec.name}")
    if binder.problems:
        raise ConfigError(binder.problems)


def _point(point: grammar.Point) -> Point:
    return Point(point.l, point.k, point.m, exact(point.c))


def _unknown(names: list[str], known: dict[str, int], path: str, may_be_absent: bool) -> Iterator[Problem]:
    """Names that are no values of the data; those that may be absent only where the data has the value in another
    spelling that no other name stands for. A near miss is told only where a reader may take it for the value: naming
    any other value would quote the data."""
    there, named = {meant(value) for value in known}, {meant(name) for name in names if name in known}
    for name in names:
        alike = meant(name) in there
        if name in known or (may_be_absent and (not alike or meant(name) in named)):
            continue
        others = difflib.get_close_matches(name, [n for n in names if n in known], n=1)
        hint = f"{others[0]!r} is there" if others else "set `absent: ok` if it may be missing"
        hint = f"a value differs from it only in how it is written ({SPELLING})" if alike else hint
        yield Problem(f"{path}.{name}", f"{name!r}", "a value that occurs in the data", hint)


def vacuous(spec: grammar.Criterion) -> bool:
    """Whether what a criterion demands of values (or of sizes, if it is about these) holds for every table."""
    if isinstance(spec, (grammar.KAnonymity, grammar.GroupSize)):
        return spec.k == 1
    if isinstance(spec, grammar.LDiversity):
        return spec.l == 1 and (spec.keep_possible is None or spec.keep_possible.percent == 0)
    if isinstance(spec, grammar.AlphaK):
        return spec.alpha >= 1
    if isinstance(spec, grammar.Dissimilarity):
        return spec.delta == 0
    if isinstance(spec, grammar.TCloseness):
        return spec.t >= 1 and not isinstance(spec.distance, grammar.Absolute)
    if isinstance(spec, grammar.EpsilonM):
        return spec.m == 1
    if isinstance(spec, grammar.KE):
        return spec.k == 1 and spec.e == 0
    return isinstance(spec, grammar.Variance) and spec.minimum == 0


def always_holds(spec: grammar.Criterion) -> bool:
    """Whether a criterion is vacuous and does not ask for a size either."""
    return vacuous(spec) and getattr(spec, "k", 1) == 1


def protects(spec: grammar.Criterion, column: str) -> bool:
    """Whether a criterion is about the values of a sensitive column."""
    return column in spec.about()


def named_values(spec: grammar.Criterion) -> set[str]:
    """The values of the data that a criterion names, which may therefore be shown."""
    if isinstance(spec, grammar.Skyline):
        return set(spec.values)
    if isinstance(spec, grammar.LDiversity):
        return {*spec.dont_care, *(spec.keep_possible.values if spec.keep_possible else ())}
    if isinstance(spec, grammar.AlphaK):
        return set(spec.values or ())
    return set()
