"""Write the config that `anon init` proposes, as YAML in which every role has its reason as a comment. No data value is
written, only counts, column names and widths in round numbers."""

from __future__ import annotations

import os
import re
from pathlib import Path

from anon.config.yaml_text import PLAIN, printable, quoted, yaml_key, yaml_word
from anon.profile.columns import NUMBERS, Profile
from anon.profile.proposal import DROP, FEW, IDENTIFIER, KEEP, QUASI, ROLES, SENSITIVE, Answers, Proposed
from anon.profile.several_rows import COMMON
from anon.profile.templates import Template

MEMORY = "1GB"  # of a run, and of `anon init` itself
REASONS = 44  # the text column in which comments begin, if there is space


def as_yaml(
    profile: Profile,
    answers: Answers,
    chosen: list[Proposed],
    table: str | None,
    out: Path | None,
    query: str | None = None,
    memory: str = MEMORY,
) -> str:
    """Return the config with its comments; without a source if the table is a frame, None."""
    by_role = {role: [each for each in chosen if each.role == role] for role in ROLES}
    name = Path((table or "").split("?", maxsplit=1)[0]).stem
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "table"
    single = answers.multiplicity == "single"
    form = "" if single else ", form: bucketized"
    lines = [
        *([f"# {line}" for line in answers.template.about] if answers.template else []),
        "# Made by `anon init` from a profile of the table. Read the reasons, change what is wrong, then:",
        f"#     anon plan {out.name if out else 'CONFIG'}     what a run would do",
        f"#     anon run {out.name if out else 'CONFIG'}",
        "# Relative paths are relative to this file.",
        "",
        *_source(table, out, query, profile),
        "",
        *_risk(profile),
        "columns:",
        _line(f"  individual: {yaml_word(answers.individual)}", _who(answers.individual)),
        *_several(answers),
        *_listed("identifiers", by_role[IDENTIFIER], "never leave the source stage"),
        "  quasi_identifiers:    # what an adversary may know about somebody; published in a coarser form",
        *_mapped(by_role[QUASI]),
        *_sensitive_lines(by_role[SENSITIVE]),
        *_listed("keep", by_role[KEEP], "published as they are, because you say that no adversary knows them"),
        *_dropped(by_role[DROP]),
        "",
        *(_privacy(by_role[SENSITIVE], answers) if single else _privacy_of_visits(answers)),
        "",
        *_nulls(by_role[SENSITIVE]),
        "method: {kind: partition}    # cuts the table from the top while all criteria hold",
        f"release: {{path: {stem}-release, run: {stem}-release-run{form}}}    # published; stays internal",
        f"limits: {{memory: {memory}}}",
    ]
    return "\n".join(lines) + "\n"


def _source(table: str | None, out: Path | None, query: str | None, profile: Profile) -> list[str]:
    """Return the block of the source; how a file is read belongs here too."""
    if table is None:
        return ["# There is no source: Python passes the table, as in anon.run(config, table)."]
    if query is None and profile.csv is not None:
        written = [_line(f"  {content}", comment) for content, comment in profile.csv.yaml]
        return ["source:", f"  path: {yaml_word(_seen_from(table, out))}", *written]
    if query is None:
        sheet = f", sheet: {yaml_word(profile.sheet)}" if profile.sheet else ""
        return [f"source: {{path: {yaml_word(_seen_from(table, out))}{sheet}}}"]
    place = f"duckdb:\n    file: {yaml_word(_seen_from(table, out))}"
    if is_dsn(table):
        place = f"postgres:    # ${{NAME}} is taken from the environment\n    dsn: {yaml_key(table)}"
    return ["source:", f"  {place}", f"    query: {yaml_key(query)}"]


def is_dsn(table: str) -> bool:
    """Return whether a table is a connection string of PostgreSQL."""
    return table.startswith(("postgresql://", "postgres://"))


def _who(individual: str) -> str:
    return (
        "every row is a different person: make sure of it"
        if individual == "row"
        else "who a row is about; never published"
    )


def _several(answers: Answers) -> list[str]:
    rows = answers.rows
    if rows is None:
        return []
    if rows.multiplicity != "single":
        return [_line(f"  multiplicity: {rows.multiplicity}", rows.why)]
    return [_line(f"  rows: {{keep: {rows.keep}, by: {yaml_word(rows.by)}}}", rows.why)]


def _privacy_of_visits(answers: Answers) -> list[str]:
    lines = [
        "privacy:    # all must hold; docs/criteria.md says which adversary each is for",
        _line(f"  - k_anonymity: {{k: {answers.k}}}", f"groups of at least {answers.k} individuals"),
    ]
    share = max(answers.shares.values(), default=0.0)
    if share < COMMON:
        sure = "nobody can be sure of anyone's value"
        return [*lines, _line("  - skyline: {points: [{l: 1, k: 1, m: 0, c: 0.9}]}", sure)]
    many = f"{share:.0%} of the individuals have the commonest value"
    return [*lines, f"  # no criterion for the values: {many}, so it is likely for everybody"]


def _risk(profile: Profile) -> list[str]:
    if not profile.combinations:
        return []
    lines = ["# Share of rows that are unique for an adversary who knows:"]
    for each in profile.combinations:
        names = " + ".join(_comment(name) for name in each.columns)
        lines.append(f"#   {each.alone / profile.rows:6.1%}  {names}")
    return lines


def _listed(role: str, chosen: list[Proposed], meaning: str) -> list[str]:
    if not chosen:
        return []
    lines = [f"  {role}:    # {meaning}"]
    for each in chosen:
        lines += _noted(f"    - {yaml_word(each.name)}", each)
    return lines


def _mapped(chosen: list[Proposed]) -> list[str]:
    return [line for each in chosen for line in _noted(f"    {yaml_key(each.name)}: {{{each.builder}}}", each)]


def _sensitive_lines(chosen: list[Proposed]) -> list[str]:
    return ["  sensitive:    # what nobody may learn about a person", *_mapped(chosen)] if chosen else []


def _dropped(chosen: list[Proposed]) -> list[str]:
    if not chosen:
        return []
    lines = ["  # Not named, so dropped:"]
    for each in chosen:
        lines += [f"  #   {_comment(each.name)}: {printable(each.reason)}"]
        lines += [f"  #     {printable(note)}" for note in each.notes]
    return lines


def _noted(content: str, each: Proposed) -> list[str]:
    indent = " " * (len(content) - len(content.lstrip()))
    return [*(f"{indent}# {printable(note)}" for note in each.notes), _line(content, each.reason)]


def _line(content: str, comment: str) -> str:
    return f"{content:<{REASONS}}    # {printable(comment)}" if comment else content


def _privacy(sensitive: list[Proposed], answers: Answers) -> list[str]:
    k, template = answers.k, answers.template
    why = f"; {template.why_k}" if template is not None and template.k == k else ""
    lines = [
        "privacy:    # all must hold; docs/criteria.md says which adversary each is for",
        _line(f"  - k_anonymity: {{k: {k}}}", f"groups of at least {k} individuals{why}"),
    ]
    for each in sensitive:
        about = f"sensitive: {yaml_word(each.name)}, " if len(sensitive) > 1 else ""
        lines += _criterion(each, about, len(sensitive) > 1, answers)
    return lines


def _criterion(each: Proposed, about: str, several: bool, answers: Answers) -> list[str]:
    column, template = each.column, answers.template
    if column.distinct < 2:
        return [f"  # nothing can protect {_comment(column.name)}: everybody has the same value"]
    if column.kind in NUMBERS and column.distinct > FEW and "as_categories" not in each.builder:
        return [closeness(about, 0.3 if template is None else template.t)]
    if template is not None and answers.shares.get(column.name, 1.0) < COMMON:
        return [confidence(about, template.c)]
    joint = ", joint: false" if several else ""
    least = min(3, column.distinct)
    lines = [_line(f"  - l_diversity: {{{about}kind: distinct, l: {least}{joint}}}", f"{least} values in every group")]
    return (
        [*lines, "    # joint: false does not protect against those who know the other sensitive columns"]
        if several
        else lines
    )


def closeness(about: str, t: float) -> str:
    """Return the criterion of sensitive numbers; `about` names their column, if there are others."""
    content = f"  - t_closeness: {{{about}t: {t}, distance: {{kind: ordered}}}}"
    return _line(content, "no group's numbers are far from those of the whole table")


def confidence(about: str, c: float) -> str:
    """Return the criterion of sensitive values of which none is very common."""
    content = f"  - skyline: {{{about}points: [{{l: 1, k: 2, m: 0, c: {c}}}]}}"
    return _line(content, f"who knows a value that somebody does not have, and two other people's: below {c:.0%}")


def from_template(template: Template, out: Path | None) -> str:
    """Return the config of a template without a table: a starting point whose names are to be replaced."""
    config, by = out.name if out else "CONFIG", template.by
    rows = [_line(f"  rows: {{keep: last, by: {by}}}", "the newest row of each, if there are several")] if by else []
    sensitive = template.of_role(SENSITIVE)
    lines = [
        *(f"# {line}" for line in template.about),
        "# Replace the source and the names of the columns by those of your table, then:",
        f"#     anon plan {config}     what a run would do",
        f"#     anon run {config}",
        f"# `anon init TABLE --template {template.name}` matches the columns of a table by itself.",
        "",
        "source: {path: extract.csv}",
        "",
        "columns:    # a column that is not named is dropped",
        _line(f"  individual: {template.individual}", "who a row is about; never published"),
        *rows,
        _line("  identifiers: [name]", "never leave the source stage; list all that your table has"),
        "  quasi_identifiers:    # what an adversary may know about somebody; published in a coarser form",
        *(_line(f"    {each.name}: {{{each.builder}}}", each.why) for each in template.of_role(QUASI)),
        "  sensitive:    # what nobody may learn about a person",
        *(_line(f"    {each.name}: {{{each.builder}}}", each.why) for each in sensitive),
        *(f"  # {each.name} is dropped: {each.why}" for each in template.of_role(DROP)),
        "",
        "privacy:    # all must hold; docs/criteria.md says which adversary each is for",
        _line(f"  - k_anonymity: {{k: {template.k}}}", template.why_k),
    ]
    for each in sensitive:
        about = f"sensitive: {each.name}, " if len(sensitive) > 1 else ""
        lines.append(closeness(about, template.t) if each.builder else confidence(about, template.c))
    lines += [
        "",
        _line("nulls: {sensitive: drop}", "rows without a sensitive value; `value` would count missing as one"),
        "method: {kind: partition}    # cuts the table from the top while all criteria hold",
        f"release: {{path: {template.name}-release, run: {template.name}-release-run}}    # published; stays internal",
        f"limits: {{memory: {MEMORY}}}",
    ]
    return "\n".join(lines) + "\n"


def _nulls(sensitive: list[Proposed]) -> list[str]:
    if not any(each.column.nulls for each in sensitive):
        return []
    return [_line("nulls: {sensitive: drop}", "rows without a sensitive value; `value` would count missing as one"), ""]


def _comment(word: str) -> str:
    return word if PLAIN.fullmatch(word) else quoted(word)


def _seen_from(table: str, out: Path | None) -> str:
    """Return the path of the table relative to the config."""
    if out is None or os.path.isabs(table):  # noqa: PTH117
        return table
    return os.path.relpath(table, out.resolve().parent)
