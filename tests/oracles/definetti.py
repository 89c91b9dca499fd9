"""The deFinetti attack, person by person: naive Bayes with add-one smoothing, beliefs fitted to published counts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Beliefs = list[dict[int, float]]


def believed(
    codes: Sequence[Sequence[int]], group: Sequence[int], counts: Sequence[Sequence[int]], rounds: int, fittings: int
) -> Beliefs:
    """Per person the belief in each value of the group; `codes` are per person."""
    people = range(len(group))
    held = [{v: n for v, n in enumerate(row) if n} for row in counts]
    belief = [{v: n / sum(held[g].values()) for v, n in held[g].items()} for g in group]
    for _ in range(rounds):
        before, belief = belief, _likelihoods(codes, belief)
        for _ in range(fittings):
            belief = [_normal(each) for each in belief]
            sums: dict[tuple[int, int], float] = {}
            for i in people:
                for v, p in belief[i].items():
                    sums[group[i], v] = sums.get((group[i], v), 0.0) + p
            belief = [{v: p * held[group[i]][v] / sums[group[i], v] for v, p in belief[i].items()} for i in people]
        belief = [_normal(each) for each in belief]
        if max(abs(belief[i][v] - before[i][v]) for i in people for v in belief[i]) < 1e-3:
            break
    return belief


def _likelihoods(codes: Sequence[Sequence[int]], belief: Beliefs) -> Beliefs:
    total: dict[int, float] = {}
    seen: dict[tuple[int, int, int], float] = {}
    for own, each in zip(codes, belief):
        for v, p in each.items():
            total[v] = total.get(v, 0.0) + p
            for j, code in enumerate(own):
                seen[j, code, v] = seen.get((j, code, v), 0.0) + p
    distinct = [len({own[j] for own in codes}) for j in range(len(codes[0]))]
    return [
        {v: total[v] * prod((seen[j, c, v] + 1) / (total[v] + distinct[j]) for j, c in enumerate(own)) for v in each}
        for own, each in zip(codes, belief)
    ]


def _normal(each: dict[int, float]) -> dict[int, float]:
    return {v: p / sum(each.values()) for v, p in each.items()}
