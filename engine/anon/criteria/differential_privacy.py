"""Differential privacy by random sampling and k-anonymity: what a published table shows of it is that every group has
at least the k individuals that `anon.config.sampling` derives from epsilon, delta and the share who are drawn. That
they were drawn, and that the labels depend on nothing but the values of their own row, is how a run makes the table
(`anon.source.sample`, `anon.config.private_release`).

Monotone, as k-anonymity is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon.criteria.k_anonymity import KAnonymity

if TYPE_CHECKING:
    from anon.config.criteria.differential_privacy import DifferentialPrivacy as Spec
    from anon.criteria.bind import Binder


class DifferentialPrivacy(KAnonymity):
    """n >= k in every group. State: the smallest n."""

    name = "differential_privacy"

    @classmethod
    def bind(cls, spec: Spec, binder: Binder, where: str) -> DifferentialPrivacy:  # type: ignore[override]
        return cls(spec.drawn.k)
