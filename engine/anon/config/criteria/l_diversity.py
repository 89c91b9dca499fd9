"""l-diversity in the config."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Literal, Self

from pydantic import Field, model_validator

from anon.config.criterion import Confidence, Criterion, Facts
from anon.config.loosening import Number, field_number, step_of
from anon.config.mistakes import Model, mistake, refusal
from anon.config.odds import divided, parts_with_odds
from anon.config.values import Absent, Exact, Mistakes, NameList, Names, Percent
from anon.core.phrases import figure, percent


class KeepPossible(Model):
    """Values that must stay possible in every group."""

    values: Names = Field(description="values that must stay possible in every group")
    percent: Percent = Field(ge=0, le=100, description="least share of each of them in every group, in percent")


class LDiversity(Criterion):
    """Every group has l well-represented values."""

    name = "l_diversity"
    position = 3
    categorical = True
    kind: Literal["distinct", "frequency", "entropy", "recursive"] = Field(description="what well represented means")
    l: Exact = Field(ge=1, description="number of well-represented values; whole for distinct and recursive")
    c: Exact | None = Field(
        None, gt=0, description="recursive only: factor between the most frequent value and the tail, more than 0"
    )
    dont_care: NameList = Field([], description="entropy and recursive only: values that need no protection")
    keep_possible: KeepPossible | None = Field(None, description="values whose absence must not be disclosed either")
    joint: bool = Field(True, description="true: other sensitive columns count as quasi-identifiers (Def 4.6)")
    absent: Absent = None

    @model_validator(mode="after")
    def _parameters_of_the_kind(self) -> Self:
        wrong = list(self._misplaced())
        if wrong:
            raise refusal(wrong)
        return self

    def _misplaced(self) -> Mistakes:
        if self.kind in ("distinct", "recursive") and self.l.as_tuple().exponent != 0:
            yield ("l",), mistake(f"a whole number for kind {self.kind}")
        if self.kind == "recursive" and self.c is None:
            yield ("c",), mistake("a number more than 0, required for kind recursive", found="nothing")
        if self.kind != "recursive" and self.c is not None:
            yield ("c",), mistake(f"no c for kind {self.kind}; it belongs to recursive")
        if self.kind not in ("entropy", "recursive") and self.dont_care:
            yield ("dont_care",), mistake(f"no dont_care for kind {self.kind}; it belongs to entropy and recursive")

    def context(self, sensitive: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in sensitive if name != self.sensitive) if self.joint else ()

    def named_values(self) -> set[str]:
        return {*self.dont_care, *(self.keep_possible.values if self.keep_possible else ())}

    def confidence(self, value: str | None) -> Confidence | None:
        """Return 1/l of the kind frequency. Of the kind recursive, r_y < c tail <= c (n - r_y) for every value that is
        cared for, so that its share is below c / (1 + c)."""
        if self.kind == "frequency":
            return Confidence(1 / Fraction(self.l))
        if self.kind == "recursive" and self.c is not None and self.l > 1 and value not in self.dont_care:
            return Confidence(Fraction(self.c) / (1 + Fraction(self.c)), open=True)
        return None

    def with_overlaps(self) -> str:
        return super().with_overlaps() if self.dont_care else ""

    def fewest_values(self) -> int:
        return 1 if self.dont_care or self.kind == "frequency" else ceil(self.l)

    def follows_from_unique(self, m: int) -> bool:
        return self.kind != "recursive" and not self.dont_care and self.keep_possible is None and self.l <= m

    def tightened(self, factor: Fraction) -> LDiversity | None:
        """Frequency bounds the share of a value by 1 / l. Recursive bounds the odds of a value by c, for somebody who
        knows l - 2 values that the individual does not have."""
        if self.keep_possible is not None or self.kind in ("distinct", "entropy"):
            return None
        if self.kind == "frequency":
            return self.model_copy(update={"l": parts_with_odds(self.l, factor)})
        return self.model_copy(update={"c": divided(self.c or Decimal(1), factor)})

    def vacuous(self) -> bool:
        return self.l == 1 and (self.keep_possible is None or self.keep_possible.percent == 0)

    def numbers(self) -> Iterator[Number]:
        yield field_number(self, "l", 1, whole=self.kind in ("distinct", "recursive"))
        if self.c is not None:
            yield field_number(self, "c", None)
        if self.keep_possible is not None:
            kept = self.keep_possible

            def change(value: Decimal) -> LDiversity:
                return self.model_copy(update={"keep_possible": kept.model_copy(update={"percent": value})})

            yield Number("keep_possible.percent", kept.percent, Decimal(0), step_of(kept.percent), change)

    @classmethod
    def title(cls, spec: Facts) -> str:
        return f"{spec['kind']} l-diversity"

    @classmethod
    def sentences(cls, spec: Facts, entry: Facts) -> tuple[str, str]:
        column, l, found = entry.get("sensitive", "the sensitive column"), figure(spec["l"]), figure(entry["figure"])
        if spec["kind"] == "distinct":
            asked = f"Every group has at least {l} different values of {column}."
            return asked, f"The least diverse group has {found}."
        if spec["kind"] == "frequency":
            asked = f"No value of {column} has more than one in {l} of any group."
            return asked, f"The largest share is {percent(float(entry['figure']))}."
        if spec["kind"] == "entropy":
            asked = f"The values of {column} in every group are as mixed as {l} equally frequent ones."
            return asked, f"The least mixed group is as mixed as {found}."
        asked = (
            f"In every group the most frequent value of {column} counts less than {figure(spec['c'])} times what is "
            f"left without the {max(int(spec['l']) - 1, 1)} most frequent."
        )
        return asked, f"At most it counts {found} times as much."
