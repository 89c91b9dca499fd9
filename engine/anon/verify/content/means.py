"""Compute by SQL what a release must publish in place of numbers that are aggregated to means, from the rows of the
source in their groups. Nothing of the code that wrote the release is used; the rule is that of docs/aggregation.md.

Of m values of a group in order, t counts from 0. The runs have q = m // c values, the first e = m % c of them one more,
so that value t is in run t // (q + 1) if that is below e, and in run (t - e) // q otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from anon.config import Aggregation


def with_means(
    rows: str, by: Sequence[str], published: Sequence[str], means: dict[str, tuple[Aggregation, str]]
) -> str:
    """Return SQL for rows with means in the place of the values of some columns, each given with how it is aggregated
    and its type. `by` distinguishes groups; `published` are all columns in which rows may differ, in order."""
    group = ", ".join(by)
    order = ", ".join(f"{name} NULLS FIRST" for name in published)
    sql = f"SELECT *, row_number() OVER (PARTITION BY {group} ORDER BY {order}) AS place FROM {rows}"
    for name, (spec, kind) in means.items():
        sql = _replaced(sql, group, name, spec, kind)
    return sql


def _replaced(rows: str, group: str, name: str, spec: Aggregation, kind: str) -> str:
    counted = (
        f"SELECT *, count({name}) OVER (PARTITION BY {group}) AS m, "
        f"row_number() OVER (PARTITION BY {group} ORDER BY {name} NULLS LAST, place) - 1 AS t FROM ({rows})"
    )
    runs = "1" if spec.mean == "group" else f"CASE WHEN m < 2 * {spec.fewest} THEN 1 ELSE m // {spec.fewest} END"
    lengths = f"SELECT *, m // c AS q, m % c AS e FROM (SELECT *, {runs} AS c FROM ({counted}))"
    run = f"CASE WHEN {name} IS NOT NULL THEN CASE WHEN t // (q + 1) < e THEN t // (q + 1) ELSE (t - e) // q END END"
    summed = (
        f"SELECT *, sum({name}) OVER (PARTITION BY {group}, run) AS total, "
        f"count({name}) OVER (PARTITION BY {group}, run) AS n FROM (SELECT *, {run} AS run FROM ({lengths}))"
    )
    mean = f"CASE WHEN n >= {spec.fewest} THEN {_quotient('total', 'n', kind)} END"
    return f"SELECT * EXCLUDE (m, t, c, q, e, run, total, n) REPLACE ({mean} AS {name}) FROM ({summed})"


def _quotient(total: str, count: str, kind: str) -> str:
    """Return SQL for an exact quotient in a type, a half in the last place away from zero: the digits of the total
    without the point are divided, and the point is put back."""
    places = int(kind.rstrip(")").split(",")[1]) if kind.startswith("DECIMAL") else 0
    digits = f"CAST(replace(CAST({total} AS VARCHAR), '.', '') AS HUGEINT)"
    away = f"CASE WHEN 2 * abs({digits} % {count}) >= {count} THEN sign({digits}) ELSE 0 END"
    return f"CAST(CAST({digits} // {count} + {away} AS VARCHAR) || 'e-{places}' AS {kind})"
