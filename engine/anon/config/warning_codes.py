"""The codes of the warnings of a run, and the `accept` section of the config, which signs some of them off."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from anon.config.mistakes import Model, closest, mistake, one_of
from anon.config.values import Mistakes, Name

HIGH, LOW = "high", "low"
STALE = "stale_accept"  # the warning that an entry of `accept` is about nothing; it cannot be accepted


@dataclass(frozen=True)
class WarningKind:
    """How severe a warning is, and whether it is about one column. While one of severity `high` stands, somebody can be
    recognized or a value is certain although every criterion holds, and the verdict of the report says so."""

    severity: str
    of_column: bool = True


WARNINGS = {
    "absent_value": WarningKind(LOW),
    "attacks_not_judged": WarningKind(LOW, of_column=False),
    "binary_prior": WarningKind(LOW),
    "beliefs_left_open": WarningKind(LOW, of_column=False),
    "contradictory_values": WarningKind(HIGH, of_column=False),
    "csv_formula": WarningKind(LOW),
    "groups_under_5": WarningKind(LOW, of_column=False),
    "homogeneous_groups": WarningKind(HIGH, of_column=False),
    "intersection": WarningKind(LOW, of_column=False),
    "kept_identifies": WarningKind(HIGH),
    "kept_identify_together": WarningKind(HIGH, of_column=False),
    "kept_reveal_together": WarningKind(HIGH, of_column=False),
    "kept_reveals": WarningKind(HIGH),
    "look_alike_values": WarningKind(LOW),
    "missing_counts_as_value": WarningKind(LOW),
    "nearly_homogeneous": WarningKind(LOW, of_column=False),
    "nobody_recognized": WarningKind(LOW, of_column=False),
    "numbers_as_categories": WarningKind(LOW),
    "order_of_letters": WarningKind(LOW),
    "placeholder_values": WarningKind(LOW),
    "release_exists": WarningKind(LOW, of_column=False),
    "repeated_identifier": WarningKind(HIGH),
    "rows_not_compared": WarningKind(LOW, of_column=False),
    "rows_dropped": WarningKind(LOW, of_column=False),
    "sensitive_identifies": WarningKind(HIGH),
    "spelled_alike": WarningKind(LOW),
    STALE: WarningKind(LOW, of_column=False),
    "unprotected_sensitive": WarningKind(LOW),
    "vacuous_criterion": WarningKind(LOW, of_column=False),
}
ACCEPTABLE = [code for code in WARNINGS if code not in (STALE, "release_exists")]


class Acceptance(Model):
    """A warning that is accepted, with the reason. It does not fail --strict."""

    warning: Name = Field(description="the code of the warning, such as kept_reveals (docs/traps.md)")
    column: Name | None = Field(None, description="the column that the warning is about; any column when absent")
    reason: Name = Field(description="why it is accepted; the report and the manifest show it")

    def mistakes(self, columns: list[str]) -> Mistakes:
        """Yield what is wrong with the entry, given the columns that the config names."""
        if self.warning not in ACCEPTABLE:
            yield ("warning",), one_of(self.warning, ACCEPTABLE)
        elif self.column is not None and not WARNINGS[self.warning].of_column:
            yield ("column",), mistake(f"no column, because {self.warning} is not about a single one")
        if self.column is not None and self.column not in columns:
            yield ("column",), mistake("a column that the config names", closest(self.column, columns))
        if not self.reason.strip():
            yield ("reason",), mistake("a reason in words")

    def covers(self, code: str, column: str | None) -> bool:
        """Return whether the entry accepts a warning with this code about this column."""
        return self.warning == code and self.column in (None, column)
