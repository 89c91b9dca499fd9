"""What the report says of the source and its columns, from the config: what becomes of each column, and the levels of
hierarchies in words."""

from __future__ import annotations

from collections.abc import Sequence

from anon.config import Config
from anon.config.columns import BuilderModel, Sensitive
from anon.config.mistakes import without_password
from anon.core.phrases import counted
from anon.core.text import text
from anon.cube import Domain
from anon.source import Source

UNCHANGED, NOTHING = "as it is", "not published"
NEVER, NOT_READ = "never leaves the source", "not read"


def roles(config: Config, source: Source) -> list[dict[str, str]]:
    """Return the columns of the source with their roles, and how each is published; that of quasi-identifiers depends
    on the release."""
    columns = config.columns
    listed = [(name, "identifier", NEVER) for name in columns.identifiers]
    if columns.individual != "row" and columns.individual not in columns.identifiers:
        listed.append((columns.individual, "individual", NOTHING))
    if columns.rows.by is not None and columns.rows.by not in [*columns.identifiers, *columns.published()]:
        listed.append((columns.rows.by, "row order", NOTHING))
    listed += [(name, "quasi-identifier", "") for name in columns.quasi_identifiers]
    listed += [(name, "sensitive", _published(spec)) for name, spec in columns.sensitive.items()]
    words = {name: spec.words for name, spec in columns.aggregate.items()}
    listed += [(name, "kept", words.get(name, UNCHANGED)) for name in columns.keep]
    listed += [(name, "not named", NOT_READ) for name in _unnamed(source) or ()]
    return [{"name": name, "role": role, "published": published} for name, role, published in listed]


def _unnamed(source: Source) -> list[str] | None:
    return None if source.origin is None else source.origin.unnamed


def other_columns(source: Source) -> str:
    """Return whether the columns that the config does not name are listed."""
    return "unknown" if _unnamed(source) is None else "listed"


def _published(spec: Sensitive) -> str:
    if spec.round is not None:
        return f"rounded to multiples of {text(spec.round)}"
    if spec.builder is None or spec.builder.kind == "free":
        return UNCHANGED if spec.builder is None else _finest(spec.builder)
    return next(iter(_coarser(spec.builder)), "coarser")


def _finest(builder: BuilderModel) -> str:
    """Return in words what a builder makes coarser: the values, or what it takes in their place."""
    if builder.reference_day is not None:
        return f"age on {builder.reference_day}"
    return UNCHANGED if builder.code_length is None else f"padded to {counted(builder.code_length, 'digit')}"


def _coarser(builder: BuilderModel) -> list[str]:
    """Return the names that a builder has for its levels, which are about ages if it takes these."""
    names = builder.level_names()
    return names if builder.reference_day is None else [f"age in {name}" for name in names]


def configured_source(config: Config, source: Source) -> str:
    """Return the source as the config has it, without passwords and with the names of variables."""
    if source.origin is None or source.origin.replaces_source:
        return "a table in memory"
    kind, written = config.source.kind, config.original["source"]
    if not isinstance(written[kind], dict):
        sheet = f", sheet {written['sheet']}" if "sheet" in written else ""
        return f"{kind} {without_password(str(written[kind]))}{sheet}"
    where, query = written[kind].get("dsn", written[kind].get("file", "")), written[kind].get("query", "")
    return f"{kind} {without_password(str(where))}: {' '.join(str(query).split())}"


def level_names(config: Config, domains: Sequence[Domain]) -> dict[str, list[str]]:
    """Return the levels of each quasi-identifier in words, from the values to `*`.

    A builder names its levels from below the top; where it has fewer names than there are levels, the lowest are
    numbered, and where it has more, its first name is another word for the values."""
    found = {}
    for domain in domains:
        builder = config.columns.quasi_identifiers[domain.column]
        names = _coarser(builder)
        between = len(domain.tree.node_at) - 2 if domain.tree is not None else 0
        names = names[max(len(names) - between, 0) :] if between > 0 else []
        numbered = [f"level {level}" for level in range(1, between - len(names) + 1)]
        found[domain.column] = [_finest(builder), *numbered, *names, NOTHING]
    return found
