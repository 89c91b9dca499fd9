"""The statement with which the page begins, for the person who answers for a release: the verdict, what was published
about whom, what was assumed and dropped, what is promised and what is not, and the three questions of the European
regulators about anonymous data (Article 29 Working Party, Opinion 05/2014, WP 216): singling out, linkability and
inference."""

from __future__ import annotations

from typing import Any

from anon.artifacts.parts import ColumnFacts, CriterionFacts, LeftOutFacts, SensitiveFacts, Summary
from anon.artifacts.schema import Report
from anon.config.warning_codes import HIGH, LOW
from anon.core.phrases import counted, percent
from anon.report import together
from anon.report.promises import REASONS, other_rows
from anon.report.tables import few, table

SAFE, CAUTION, UNSAFE = "safe", "caution", "unsafe"
SETTINGS = {"null_quasi_identifiers": "nulls.quasi_identifiers: drop", "null_sensitive": "nulls.sensitive: drop"}
MANY = 12  # names of columns that are listed in a sentence


def verdict(summary: Summary) -> dict[str, Any]:
    """Return the verdict on a table: `safe`, `caution` if every criterion holds but a warning of severity high stands,
    or `unsafe`; with the warnings that are the reason."""
    if not summary.safe:
        return {"state": UNSAFE, "text": "Not safe", "reasons": []}
    reasons = summary.standing(HIGH)
    if reasons:
        return {"state": CAUTION, "text": "Every criterion holds, but not everybody is protected", "reasons": reasons}
    accepted = len(summary.warnings) - len(summary.standing())
    signed = f"; {counted(accepted, 'warning')} accepted" if accepted else ""
    return {"state": SAFE, "text": f"Safe: every criterion holds on the written files{signed}", "reasons": []}


def statement(report: Report) -> dict[str, Any]:
    """Return the parts of the statement."""
    summary = report.summary
    return {
        "published": _published(report),
        "people": _people(report),
        "source": report.source,
        "known": _known(report),
        "unknown": _named(report, "kept"),
        "dropped_columns": _dropped_columns(report),
        "dropped_rows": dropped_rows(summary.left_out),
        "columns": _columns(report),
        "standing": [*summary.standing(HIGH), *summary.standing(LOW)],
        "accepted": [each for each in summary.warnings if each.has("accepted")],
        "questions": questions(report),
    }


def _named(report: Report, role: str) -> list[str]:
    return [each.name for each in report.roles if each.role == role]


def _published(report: Report) -> str:
    summary = report.summary
    rows, groups = counted(summary.rows, "row"), counted(summary.groups, "group")
    files = ", ".join(report.provenance.release)
    return f"{rows} in {groups}, in the files {files}."


def _people(report: Report) -> str:
    people = counted(report.summary.individuals)
    if report.individual == "row":
        return f"{people}: every row was counted as a different person."
    others = report.summary.left_out.one_row_each
    used = "" if others is None else f"; of several rows of a person the {others.keep} by {others.by} was used"
    return f"{people}, told apart by the column {report.individual}{used}."


def _known(report: Report) -> str:
    names = few(_named(report, "quasi-identifier"), MANY)
    return f"Anyone may know of every person, and may have from other sources: {names}."


def _dropped_columns(report: Report) -> list[str]:
    why = {
        "identifier": "identifiers, which never leave the source",
        "individual": "tells people apart",
        "row order": "chooses among the rows of a person",
        "not named": "not named in the config, not read",
    }
    lines = [f"{few(names, MANY)} ({words})" for role, words in why.items() if (names := _named(report, role))]
    if report.other_columns == "unknown":
        lines.append("every column of the source that the config does not name")
    return lines


def dropped_rows(found: LeftOutFacts) -> list[str]:
    """Return how many rows and individuals are not in the release, one line for each reason."""
    lines = [_dropped(found, reason, words) for reason, words in REASONS.items() if getattr(found.rows, reason)]
    if (others := found.one_row_each) is not None and found.rows.other_rows:
        lines.append(f"{other_rows(others.to_dict())} (columns.rows: keep {others.keep} by {others.by})")
    return lines


def _dropped(found: LeftOutFacts, reason: str, words: str) -> str:
    rows, people = getattr(found.rows, reason), getattr(found.individuals, reason)
    about = f", and with them {counted(people)}" if people not in (0, rows) else ""
    setting = f" ({SETTINGS[reason]})" if reason in SETTINGS else ""
    return f"{counted(rows, 'row')} {words}{about}{setting}"


def _columns(report: Report) -> dict[str, Any]:
    own = {column.name: _as_published(report, column) for column in report.columns}
    rows = [(each.name, each.role, own.get(each.name, each.published)) for each in report.roles]
    return table("Columns of the source", ["column", "role", "in the release"], rows, 3)


def _as_published(report: Report, column: ColumnFacts) -> str:
    """Return how a quasi-identifier is published: its level in words, or the number of its labels."""
    finest = level_words(report, column.name, 0)
    if report.labels == "exact":
        return finest
    if report.lattice is not None and column.levels:
        return ", ".join(level_words(report, column.name, level) for level in column.levels)
    if 1 in (column.not_at_all, column.as_it_is):
        return "not published" if column.not_at_all == 1 else finest
    labels = f"{counted(column.labels, 'label')} for {counted(column.values, 'value')}"
    return labels + (f"; {finest} for {percent(column.as_it_is)} of the individuals" if column.as_it_is else "")


def level_words(report: Report, column: str, level: int) -> str:
    """Return a level of a column in words."""
    names = report.level_names.get(column, [])
    return names[level] if level < len(names) else f"level {level}"


def questions(report: Report) -> list[dict[str, Any]]:
    """Return what the release says to the three questions, each with its figures."""
    return [_singling_out(report), _linkability(report), _inference(report)]


def _worst_kept(report: Report, share: str) -> tuple[str, float] | None:
    """Return the kept column that tells most to one who knows it, and the share of individuals concerned."""
    found = [(name, found) for name, facts in report.summary.with_kept.items() if (found := getattr(facts, share)) > 0]
    return max(found, key=lambda each: each[1], default=None)


def _singling_out(report: Report) -> dict[str, Any]:
    summary, risk = report.summary, report.summary.risk
    smallest, alone = round(1 / risk.highest), report.group_sizes.get("1", 0)
    before = "not counted" if risk.unique_before is None else f"{risk.unique_before:,}"
    if report.labels == "exact":
        answer = (
            "People can be found: their quasi-identifiers are published as they are. Which of the sensitive values of "
            "their group is theirs is not published."
        )
        figures = [(before, "individuals are unique by what is published")]
    else:
        answer = f"No combination of published labels belongs to fewer than {counted(smallest)}."
        figures = [(before, "individuals were unique in the source"), (f"{alone:,}", "are unique in the release")]
        figures.append((f"{risk.under_5:,}", "are in groups of fewer than 5"))
    if kept := _worst_kept(report, "unique_share"):
        figures.append((percent(kept[1]), f"are unique for one who also knows {kept[0]}, which is assumed unknown"))
    return _question("Singling out", "Can a record be isolated that is about one person?", answer, figures, summary)


def _linkability(report: Report) -> dict[str, Any]:
    summary, risk = report.summary, report.summary.risk
    if report.labels == "exact":
        answer = (
            "The quasi-identifiers can be linked with other tables; a person's sensitive value can only be guessed "
            "among those of the group."
        )
        meaning = "highest probability of a right guess"
    else:
        answer = (
            "Somebody who has all quasi-identifiers of a person from another table can link the person to a group, and "
            "has to guess the record."
        )
        meaning = "highest probability of a right guess (re-identification risk)"
    figures = [(percent(risk.highest), meaning), (percent(risk.mean), "on average over all individuals")]
    if summary.together is None:
        answer += " Other releases about the same people are not covered."
    else:
        answer += " Anyone who also holds the release that this one replaces can compare the two."
        figures += together.figures(summary.together.to_dict())
    return _question("Linkability", "Can records of one person be linked, here or elsewhere?", answer, figures, summary)


def _inference(report: Report) -> dict[str, Any]:
    summary, risk = report.summary, report.summary.risk
    question = "Can a value of a person be deduced?"
    if not report.sensitive:
        answer = "No column is declared as sensitive, so that no value is protected beyond the size of groups."
        return _question("Inference", question, answer, [], summary)
    names = few([facts.column for facts in report.sensitive], MANY)
    protected = {name for each in summary.criteria for name in _about(each)}
    answer = f"Somebody who finds the group of a person sees how often each value of {names} is in it."
    if bare := [f.column for f in report.sensitive if f.column not in protected]:
        answer += f" No criterion limits that for {few(bare, MANY)}."
    figures = [
        (percent(highest), f"highest share of one {facts.column} in a group, which is how sure one can be")
        for facts in report.sensitive
        if (highest := _highest(facts)) is not None
    ]
    figures.append((f"{risk.homogeneous_rows:,}", "individuals whose group has one value only"))
    if kept := _worst_kept(report, "homogeneous_share"):
        figures.append((percent(kept[1]), f"have a certain value for one who also knows {kept[0]}"))
    return _question("Inference", question, answer, figures, summary)


def _about(entry: CriterionFacts) -> list[str]:
    return [entry.sensitive] if isinstance(entry.sensitive, str) else entry.sensitive


def _highest(facts: SensitiveFacts) -> float | None:
    """Return the largest share that a value has in a group; of a column of many values it may be one not listed."""
    if facts.largest_share is None:
        return None
    by_percent = max(at for at, count in enumerate(facts.largest_share.groups) if count) / 100
    return float(max([by_percent, *(each.highest for each in facts.values if each.highest is not None)]))


CONCERNED = {
    "Singling out": ("kept_identifies", "kept_identify_together", "repeated_identifier", "sensitive_identifies"),
    "Linkability": ("intersection", "repeated_identifier"),
    "Inference": ("homogeneous_groups", "kept_reveal_together", "kept_reveals", "nearly_homogeneous"),
}


def _question(
    name: str, question: str, answer: str, figures: list[tuple[str, str]], summary: Summary
) -> dict[str, Any]:
    concerned = [each for each in summary.warnings if each.code in CONCERNED[name]]  # accepted or not
    state = UNSAFE if not summary.safe else CAUTION if concerned else SAFE
    return {"name": name, "question": question, "answer": answer, "figures": figures, "state": state}
