"""The decision stage of the driver at the scale of a cluster: one level of the top of the tree with very many nodes,
run by the engine's own code on counters that no executor counted. Every node has as many people, evenly spread over 8
columns of 256 codes and over 10 sensitive values with the shares of a common diagnosis and of rarer ones.

    python bench/decisions.py 1000000 alone
    python bench/decisions.py 30000 together
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from anon.config import load
from anon.core.memory import Memory
from anon.criteria import Values, bind
from anon.cube import Cube, Domain
from anon.cube.records import InMemory
from anon.search.budget import SearchBudget
from anon.search.partition import top
from anon.search.partition.candidates import OpenNodes
from anon.search.partition.decide import Decisions, Rules
from anon.search.partition.passes import Passes

COLUMNS, CODES, PEOPLE = 8, 256, 20_000_000
SHARES = np.array([30, 20, 15, 10, 8, 6, 5, 3, 2, 1]) / 100
ALONE = [{"k_anonymity": {"k": 1000}}, {"l_diversity": {"kind": "entropy", "l": 3}}]
TOGETHER = [{"k_anonymity": {"k": 1000}}, {"skyline": {"points": [{"l": 2, "k": 100, "m": 5, "c": 0.9}]}}]


class Made(Passes):
    """Passes that come to even counters, and how many there were."""

    def __init__(self, cube: Cube) -> None:
        self.records, self.number, self.largest = cube.records, 0, 0

    def count(self, fresh: Callable[[], Any], work: Any, tree: Any) -> Any:
        own = fresh()
        own.ahead[:] = PEOPLE // CODES
        for counts in own.values.values():
            counts[:] = (SHARES * PEOPLE / 2).astype(np.int64)
        own.low[:], own.high[:] = 0, CODES - 1
        self.number += 1
        counters = [*own.values.values(), own.records, own.low, own.high, own.ahead]
        self.largest = max(self.largest, sum(array.nbytes for array in counters))
        return own


def decided(count: int, together: bool) -> dict[str, Any]:
    """Decides a level of so many nodes, and makes their children."""
    cube, rules = _made(count, TOGETHER if together else ALONE)
    passes = Made(cube)
    upper = top.Top(cube, rules, passes, PEOPLE // 4, SearchBudget(Memory(2_000_000_000)))
    upper.nodes = count
    state = [criterion.state(cube.whole_table(column)) for criterion, column in rules.whole]
    nodes = _nodes(count)
    began = time.process_time()
    chosen = Decisions(cube, rules, upper, state).decide(nodes)
    children, _ = upper.children(nodes, chosen)
    seconds = time.process_time() - began
    return {
        "nodes": count, "together": together, "seconds": seconds, "split": len(chosen), "children": len(children),
        "passes": passes.number, "largest_pass_bytes": passes.largest,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip


def _made(count: int, privacy: list[Any]) -> tuple[Cube, Rules]:
    domains = [Domain(f"c{i}", "integer", pa.array(range(CODES)), True, False) for i in range(COLUMNS)]
    words = [f"v{i}" for i in range(len(SHARES))]
    total = (SHARES * PEOPLE * count).astype(np.int64)
    people = [np.full(CODES, PEOPLE * count // CODES)] * COLUMNS
    value = Domain("value", "text", pa.array(words), True, False)
    cube = Cube(domains, people, [value], [total], InMemory(np.empty((COLUMNS + 1, 0), np.uint16)))
    columns = {"individual": "row", "quasi_identifiers": {"c0": {}}, "sensitive": ["value"]}
    release = {"path": "/nowhere/release"}
    config = load({"source": {"path": "x"}, "columns": columns, "privacy": privacy, "release": release})
    values = Values({"value": words}, {"value": total.tolist()}, objects={"value": words})
    return cube, Rules.from_criteria(cube, bind(config.privacy, values, shared=True), "widest")


def _nodes(count: int) -> OpenNodes:
    number, low = np.arange(count), np.zeros((count, COLUMNS), np.int64)
    high = np.full_like(low, CODES - 1)
    even = np.full(count, PEOPLE)
    return OpenNodes(number, number, low, high, low, high, even, np.ones(count, bool), np.zeros(count, bool))


if __name__ == "__main__":
    print(json.dumps(decided(int(sys.argv[1]), sys.argv[2] == "together")))
