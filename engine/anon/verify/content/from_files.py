"""Compute the content of a release from its files, as an outsider reads them."""

from __future__ import annotations

from anon.verify.content.fingerprint import WRAP, Content, content_of, total
from anon.verify.grouped import Grouped, listed


def published(grouped: Grouped, labelled: bool) -> Content:
    """Return the content of the files of a release, which were opened with the hashes of their rows. `labelled`:
    quasi-identifiers are published as labels."""
    labels = grouped.labels if labelled else []
    if grouped.bucketized:
        sums, groups = ["h", "v"], _buckets(grouped, labels)
    else:
        sums, groups = (
            ["h"],
            f"SELECT {listed(labels)}, n, CAST(hash % {WRAP}::HUGEINT AS UBIGINT) AS h FROM {grouped.GROUPS}",
        )
    return Content(*grouped.database.one(content_of(groups, labels, sums)))


def _buckets(grouped: Grouped, labels: list[str]) -> str:
    """Return SQL for a row for every group of a bucketized release; more than one if its members have different
    labels."""
    by = listed(["g", *labels])
    people = f"SELECT {by}, count(*) AS n, {total('hash')} AS h FROM {grouped.VIEW} GROUP BY {by}"
    values = f"SELECT g, {total('CAST(hash AS HUGEINT) * c')} AS v FROM {grouped.COUNTS} GROUP BY g"
    return f"SELECT {by}, n, h, coalesce(v, 0) AS v FROM ({people}) LEFT JOIN ({values}) USING (g)"
