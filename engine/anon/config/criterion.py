"""What every criterion of the `privacy` section declares beside its parameters: how the methods support it, its
sentences in the report, when it says nothing, the values it names, and how it loosens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import Field

from anon.config.columns import Columns
from anon.config.loosening import Number, field_number
from anon.config.mistakes import Model, closest, mistake
from anon.config.values import Mistakes, Name

ENFORCED, CHECKED = "enforced", "checked"
RELATIVE = "the distribution that groups are compared with changes with every part, also for parts that are published"
TO_ALL = "groups are compared with everybody who is released, which is not known before the last split"
MERGED = "groups that come to the same labels are one group, and merging safe ones may be unsafe"
TOGETHER = "it judges all groups together, and groups are divided one by one"
EXHAUSTIVE_ONLY = "not monotone: only with `exhaustive: true`"
ONE_VALUE = "defined for one value per individual"
SEVERAL_EXHAUSTIVE = "enforced; not monotone there: lattice only with `exhaustive: true`"

Facts = dict[str, Any]  # of a criterion in report.json: its entry under `privacy`, or under `summary.criteria`


@dataclass(frozen=True)
class Support:
    """How one criterion works: per method, with bucketized releases, and with several values per individual. A field is
    `enforced`, `checked` (the method does not aim at it, but the release is not published unless it holds) or the
    reason why it is refused."""

    partition: str = ENFORCED
    lattice: str = ENFORCED
    merge: str = CHECKED
    colour: str = CHECKED
    reuse: str = CHECKED
    bucketized: str = ENFORCED
    exact_labels: str = ENFORCED
    several_values: str = ONE_VALUE


class Confidence(NamedTuple):
    """The probability of a value that a criterion allows at most for somebody in a group; `open`: it must stay below
    that."""

    share: Fraction
    open: bool = False


class Criterion(Model):
    """One condition of `privacy`; `name` is its key in the config. Each subclass has a module of that name in
    `anon.config.criteria`, and its mathematics are the class of the same name in `anon.criteria`."""

    name: ClassVar[str]
    position: ClassVar[int] = 100  # where the docs, the schema and messages list it; ties in alphabetical order
    support: ClassVar[Support] = Support()
    about_values: ClassVar[bool] = True  # and not only about the sizes of groups
    about_groups: ClassVar[bool] = True  # and not about the release as a whole
    categorical: ClassVar[bool] = False  # values are names to it: numbers that nearly agree count as different
    unguarded: ClassVar[str] = "it bounds no confidence in a value, so there are no odds to tighten"
    draws: ClassVar[bool] = False  # of a run: it publishes a random sample of the individuals
    loosest: ClassVar[tuple[tuple[str, int | None], ...]] = ()  # of each number, None if there is no end to it
    sensitive: Name | None = Field(None, description="the sensitive column; the only one when there is one")

    def wrong_columns(self, columns: Columns) -> Mistakes:
        """Yield the columns that the criterion names and the config does not have in that role."""
        known = list(columns.sensitive)
        if self.sensitive is not None and self.sensitive not in known:
            yield ("sensitive",), mistake("one of the sensitive columns", closest(self.sensitive, known))
        elif self.sensitive is None and self.needs_column() and len(known) != 1:
            why = "there are several" if known else "columns.sensitive names none"
            yield (
                ("sensitive",),
                mistake(f"the sensitive column that {self.name} is about, since {why}", found="nothing"),
            )

    def needs_column(self) -> bool:
        return self.about_values

    def on(self, columns: Columns) -> Self:
        """Return the criterion with its sensitive column filled in when there is only one."""
        if self.sensitive is None and self.needs_column():
            return self.model_copy(update={"sensitive": next(iter(columns.sensitive), None)})
        return self

    def about(self) -> list[str]:
        """Return the sensitive columns whose values it protects."""
        return [self.sensitive] if self.about_values and self.sensitive is not None else []

    def protects(self, column: str) -> bool:
        """Return whether it is about the values of a sensitive column."""
        return column in self.about()

    def context(self, sensitive: Iterable[str]) -> tuple[str, ...]:
        """Return those of the sensitive columns that count as quasi-identifiers."""
        return ()

    def tuple_columns(self) -> tuple[str, ...]:
        """Return the columns whose tuple is the sensitive value."""
        return ()

    def named_values(self) -> set[str]:
        """Return the values of the data that the criterion names, which may therefore be shown."""
        return set()

    def confidence(self, value: str | None) -> Confidence | None:
        """Return the confidence in a value, as text, that an adversary who knows the groups alone may have; None if the
        criterion does not bound it."""
        return None

    def in_series(self) -> str:
        """Return why the parts of a series cannot be judged by it one after the other; nothing if they can."""
        return ""

    def when_suppressed(self) -> str:
        """Return why a search that drops people on its way cannot judge by it; nothing if it can."""
        return ""

    def merges_safely(self) -> bool:
        """Return whether groups that satisfy it do so when they are merged."""
        return not self.about_groups or self.support.lattice == ENFORCED

    def links_groups(self) -> bool:
        """Return whether it judges groups together, so that what one may be depends on the others."""
        return False

    def with_overlaps(self) -> str:
        """Return why labels of groups may not overlap under it; nothing if they may, because it also holds for
        averages of distributions for which it holds (search/partition/refine.py says why that matters). Each criterion
        that allows it is enumerated in tests/search/test_refine.py."""
        return "labels overlap, and it is not shown that averages of safe groups are safe"

    def fewest_values(self) -> int:
        """Return the number of values that it keeps possible for everybody."""
        return 1

    def follows_from_unique(self, m: int) -> bool:
        """Return whether it holds for all groups in which at least m values occur, each once."""
        return False

    def vacuous(self) -> bool:
        """Return whether what it demands of values (or of sizes, if it is about these) holds for every table."""
        return False

    def always_holds(self) -> bool:
        """Return whether it is vacuous and does not demand a size either."""
        return self.vacuous() and getattr(self, "k", 1) == 1

    def tightened(self, factor: Fraction) -> Self | None:
        """Return the criterion with the odds that it bounds divided by a factor; None if it bounds the confidence in no
        value by the counts of one group, `unguarded` says why."""
        return None if self.about_values else self

    def numbers(self) -> Iterator[Number]:
        """Yield what can be loosened, one at a time."""
        for name, loosest in self.loosest:
            yield field_number(self, name, loosest)

    @classmethod
    def title(cls, spec: Facts) -> str:
        """Return its name for readers of the report, given its parameters as plain data."""
        return cls.name.replace("_", "-")

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        """Return in words what was demanded and what was found, from what report.json holds of both."""
        raise NotImplementedError


def column_of(entry: Facts) -> str:
    """Return the sensitive columns of a criterion in words, from what report.json holds of it."""
    about = entry.get("sensitive", "the sensitive column")
    return about if isinstance(about, str) else ", ".join(about)


def stray_columns(loc: tuple[int | str, ...], named: list[str], allowed: list[str], role: str) -> Mistakes:
    """Yield a mistake for each name that is no column of a role."""
    for index, name in enumerate(named):
        if name not in allowed:
            yield (*loc, index), mistake(f"a {role} column", closest(name, allowed))
